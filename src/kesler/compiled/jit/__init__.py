"""Compilation of plain Python functions to machine code that later processes load from a cache."""

"""Readers: every format in, blocks of rows out."""

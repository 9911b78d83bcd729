"""Scanners of text formats."""

"""Readers, which convert sources in various formats to blocks of rows."""

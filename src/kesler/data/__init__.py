"""Data: rows, ratings, readers, data sets and model files."""

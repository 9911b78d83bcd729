"""Data: rows, ratings, readers, data sets, model files."""

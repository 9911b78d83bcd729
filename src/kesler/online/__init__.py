"""Estimators that learn online, one row after the other."""

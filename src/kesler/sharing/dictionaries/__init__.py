"""Dictionaries of candidate features for ShareBoost."""

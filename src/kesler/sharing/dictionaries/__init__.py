"""Dictionaries: pools of candidate features from which ShareBoost picks."""

"""Trials that compare a row's candidates among many classes."""

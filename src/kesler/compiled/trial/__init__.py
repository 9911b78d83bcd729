"""One trial, and what all kinds of learner share of it."""

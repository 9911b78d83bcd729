"""The trial, and its parts that all kinds of learner share."""

"""Compiled code of learners whose hypotheses are forests."""

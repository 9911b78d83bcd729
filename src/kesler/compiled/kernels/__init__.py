"""Learners over a Mercer kernel: support vectors, scores, the trial."""

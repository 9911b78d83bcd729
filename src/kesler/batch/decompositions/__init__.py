"""Decompositions: multiclass learners made of any binary learner."""

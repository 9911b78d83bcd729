"""The learner: its state, its classes, one trial; kernel learners, ensembles, single events."""

"""The state of learners: declarations of the stored arrays and functions derived from them."""

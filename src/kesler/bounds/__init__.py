"""Mistake bounds, evaluated on runs with competitors found in hindsight."""

from kesler.bounds.bound import MistakeBound, bound_on_blocks, mistake_bound
from kesler.bounds.ratings import RatingsBound, ratings_bound, weighted_majority_bound

__all__ = [
    "MistakeBound",
    "RatingsBound",
    "bound_on_blocks",
    "mistake_bound",
    "ratings_bound",
    "weighted_majority_bound",
]

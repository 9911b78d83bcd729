"""Decompositions: multiclass learners made of any binary learner.

What they have in common stands in :mod:`kesler.decompositions.binary`.
"""

from kesler.decompositions.error_correcting_code import ErrorCorrectingCode
from kesler.decompositions.kesler_reduction import KeslerReduction
from kesler.decompositions.label_tree import LabelTree
from kesler.decompositions.one_against_some import OneAgainstSome
from kesler.decompositions.one_vs_one import OneVsOne
from kesler.decompositions.one_vs_rest import OneVsRest
from kesler.decompositions.tournaments import ErrorCorrectingTournament, FilterTree

__all__ = [
    "ErrorCorrectingCode",
    "ErrorCorrectingTournament",
    "FilterTree",
    "KeslerReduction",
    "LabelTree",
    "OneAgainstSome",
    "OneVsOne",
    "OneVsRest",
]

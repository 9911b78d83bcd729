"""Decompositions: multiclass classifiers made of binary classifiers."""

from kesler.batch.decompositions.error_correcting_code import ErrorCorrectingCode
from kesler.batch.decompositions.kesler_reduction import KeslerReduction
from kesler.batch.decompositions.label_tree import LabelTree
from kesler.batch.decompositions.one_against_some import OneAgainstSome
from kesler.batch.decompositions.one_vs_one import OneVsOne
from kesler.batch.decompositions.one_vs_rest import OneVsRest
from kesler.batch.decompositions.tournaments import ErrorCorrectingTournament, FilterTree

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

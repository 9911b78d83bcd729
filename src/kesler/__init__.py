"""Kesler: multiclass learning in one frame, from a stream whose classes are revealed as it runs.

Every learner is a choice of who shares which hypothesis over which view of an example
(:mod:`kesler.hypotheses`, :mod:`kesler.maps`), which class must outscore which
(:mod:`kesler.constraints`), how far to move (:mod:`kesler.updates`) and in which geometry
(:mod:`kesler.links`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kesler.algorithms.algorithm import threshold_algorithm
    from kesler.bounds import mistake_bound
    from kesler.compact import export
    from kesler.decompositions.error_correcting_code import ErrorCorrectingCode
    from kesler.decompositions.kesler_reduction import KeslerReduction
    from kesler.decompositions.label_tree import LabelTree
    from kesler.decompositions.one_against_some import OneAgainstSome
    from kesler.decompositions.one_vs_one import OneVsOne
    from kesler.decompositions.one_vs_rest import OneVsRest
    from kesler.decompositions.tournaments import ErrorCorrectingTournament, FilterTree
    from kesler.errors import KeslerError
    from kesler.estimators.bank import Bank
    from kesler.estimators.crammer_singer import CrammerSingerClassifier
    from kesler.estimators.files import load
    from kesler.estimators.jointboost import JointBoostClassifier
    from kesler.estimators.linear_max import LinearMax
    from kesler.estimators.mixed_norm import MixedNormClassifier
    from kesler.estimators.multilabel import OnlineMultilabelClassifier
    from kesler.estimators.online import OnlineClassifier
    from kesler.estimators.ordinal import OnlineOrdinalClassifier
    from kesler.estimators.ranking import OnlineLabelRanker
    from kesler.estimators.shareboost import ShareBoostClassifier
    from kesler.estimators.softmax import SoftmaxClassifier
    from kesler.estimators.structured import StructuredLearner
    from kesler.hypotheses import Grouped, Ordered, PerClass, Shared
    from kesler.kernels.mercer import mercer_kernel
    from kesler.links.link import link_function
    from kesler.maps.feature_map import feature_map
    from kesler.maps.sub_experts import SubExperts
    from kesler.progressive import progressive_validate
    from kesler.ratings import Ratings
    from kesler.updates.rule import update_rule

__version__ = "0.1.0"

# What is imported on first use, and where it stands: `import kesler` stays cheap.
_HOMES = {
    "Bank": "kesler.estimators.bank",
    "ErrorCorrectingCode": "kesler.decompositions.error_correcting_code",
    "ErrorCorrectingTournament": "kesler.decompositions.tournaments",
    "FilterTree": "kesler.decompositions.tournaments",
    "CrammerSingerClassifier": "kesler.estimators.crammer_singer",
    "Grouped": "kesler.hypotheses",
    "JointBoostClassifier": "kesler.estimators.jointboost",
    "KeslerError": "kesler.errors",
    "KeslerReduction": "kesler.decompositions.kesler_reduction",
    "LabelTree": "kesler.decompositions.label_tree",
    "LinearMax": "kesler.estimators.linear_max",
    "MixedNormClassifier": "kesler.estimators.mixed_norm",
    "OneVsOne": "kesler.decompositions.one_vs_one",
    "OneVsRest": "kesler.decompositions.one_vs_rest",
    "OneAgainstSome": "kesler.decompositions.one_against_some",
    "OnlineClassifier": "kesler.estimators.online",
    "OnlineLabelRanker": "kesler.estimators.ranking",
    "OnlineMultilabelClassifier": "kesler.estimators.multilabel",
    "OnlineOrdinalClassifier": "kesler.estimators.ordinal",
    "Ordered": "kesler.hypotheses",
    "PerClass": "kesler.hypotheses",
    "Ratings": "kesler.ratings",
    "ShareBoostClassifier": "kesler.estimators.shareboost",
    "Shared": "kesler.hypotheses",
    "SoftmaxClassifier": "kesler.estimators.softmax",
    "StructuredLearner": "kesler.estimators.structured",
    "SubExperts": "kesler.maps.sub_experts",
    "export": "kesler.compact",
    "feature_map": "kesler.maps.feature_map",
    "link_function": "kesler.links.link",
    "load": "kesler.estimators.files",
    "mercer_kernel": "kesler.kernels.mercer",
    "mistake_bound": "kesler.bounds",
    "progressive_validate": "kesler.progressive",
    "threshold_algorithm": "kesler.algorithms.algorithm",
    "update_rule": "kesler.updates.rule",
}

__all__ = [
    "Bank",
    "CrammerSingerClassifier",
    "ErrorCorrectingCode",
    "ErrorCorrectingTournament",
    "FilterTree",
    "Grouped",
    "JointBoostClassifier",
    "KeslerError",
    "KeslerReduction",
    "LabelTree",
    "LinearMax",
    "MixedNormClassifier",
    "OneAgainstSome",
    "OneVsOne",
    "OneVsRest",
    "OnlineClassifier",
    "OnlineLabelRanker",
    "OnlineMultilabelClassifier",
    "OnlineOrdinalClassifier",
    "Ordered",
    "PerClass",
    "Ratings",
    "ShareBoostClassifier",
    "Shared",
    "SoftmaxClassifier",
    "StructuredLearner",
    "SubExperts",
    "export",
    "feature_map",
    "link_function",
    "load",
    "mercer_kernel",
    "mistake_bound",
    "progressive_validate",
    "threshold_algorithm",
    "update_rule",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'kesler' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

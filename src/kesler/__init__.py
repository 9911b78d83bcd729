"""Kesler: online multiclass learning, where new classes may appear at any time.

A learner combines hypotheses, which classes may share (:mod:`kesler.hypotheses`), feature maps
(:mod:`kesler.maps`), an update rule (:mod:`kesler.updates`), which computes the steps along the
constraints of a trial, a link (:mod:`kesler.links`) and a preconditioner
(:mod:`kesler.preconditioners`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kesler.batch.crammer_singer import CrammerSingerClassifier as CrammerSingerClassifier
    from kesler.batch.decompositions.error_correcting_code import (
        ErrorCorrectingCode as ErrorCorrectingCode,
    )
    from kesler.batch.decompositions.kesler_reduction import KeslerReduction as KeslerReduction
    from kesler.batch.decompositions.label_tree import LabelTree as LabelTree
    from kesler.batch.decompositions.one_against_some import OneAgainstSome as OneAgainstSome
    from kesler.batch.decompositions.one_vs_one import OneVsOne as OneVsOne
    from kesler.batch.decompositions.one_vs_rest import OneVsRest as OneVsRest
    from kesler.batch.decompositions.tournaments import (
        ErrorCorrectingTournament as ErrorCorrectingTournament,
    )
    from kesler.batch.decompositions.tournaments import FilterTree as FilterTree
    from kesler.batch.softmax import SoftmaxClassifier as SoftmaxClassifier
    from kesler.data.labels import NEW as NEW
    from kesler.data.ratings import Ratings as Ratings
    from kesler.errors import KeslerError as KeslerError
    from kesler.evaluation.bounds import mistake_bound as mistake_bound
    from kesler.evaluation.comparing import compare as compare
    from kesler.evaluation.validation import progressive_validate as progressive_validate
    from kesler.learner.explanations import Contribution as Contribution
    from kesler.learner.explanations import Explanation as Explanation
    from kesler.online.bandit import BanditClassifier as BanditClassifier
    from kesler.online.classifier import OnlineClassifier as OnlineClassifier
    from kesler.online.cost_sensitive import CostSensitiveClassifier as CostSensitiveClassifier
    from kesler.online.ensemble import Ensemble as Ensemble
    from kesler.online.linear_max import LinearMax as LinearMax
    from kesler.online.loading import load as load
    from kesler.online.multilabel import OnlineMultilabelClassifier as OnlineMultilabelClassifier
    from kesler.online.ordinal import OnlineOrdinalClassifier as OnlineOrdinalClassifier
    from kesler.online.ranking import OnlineLabelRanker as OnlineLabelRanker
    from kesler.online.structured import StructuredLearner as StructuredLearner
    from kesler.parts.algorithms.algorithm import threshold_algorithm as threshold_algorithm
    from kesler.parts.kernels.mercer import mercer_kernel as mercer_kernel
    from kesler.parts.links.link import link_function as link_function
    from kesler.parts.maps.feature_map import feature_map as feature_map
    from kesler.parts.preconditioners import preconditioner as preconditioner
    from kesler.parts.queries.query import query_rule as query_rule
    from kesler.parts.updates.rule import update_rule as update_rule
    from kesler.progress import show_progress as show_progress
    from kesler.sharing.exports.export import export as export
    from kesler.sharing.jointboost import JointBoostClassifier as JointBoostClassifier
    from kesler.sharing.mixed_norm import MixedNormClassifier as MixedNormClassifier
    from kesler.sharing.shareboost import ShareBoostClassifier as ShareBoostClassifier

__version__ = "0.1.0"

# The module that defines each public name. Names are imported on first use, so that
# `import kesler` stays cheap.
_DEFINED_IN = {
    # online estimators
    "BanditClassifier": "kesler.online.bandit",
    "CostSensitiveClassifier": "kesler.online.cost_sensitive",
    "Ensemble": "kesler.online.ensemble",
    "LinearMax": "kesler.online.linear_max",
    "OnlineClassifier": "kesler.online.classifier",
    "OnlineLabelRanker": "kesler.online.ranking",
    "OnlineMultilabelClassifier": "kesler.online.multilabel",
    "OnlineOrdinalClassifier": "kesler.online.ordinal",
    "StructuredLearner": "kesler.online.structured",
    # batch estimators
    "CrammerSingerClassifier": "kesler.batch.crammer_singer",
    "ErrorCorrectingCode": "kesler.batch.decompositions.error_correcting_code",
    "ErrorCorrectingTournament": "kesler.batch.decompositions.tournaments",
    "FilterTree": "kesler.batch.decompositions.tournaments",
    "KeslerReduction": "kesler.batch.decompositions.kesler_reduction",
    "LabelTree": "kesler.batch.decompositions.label_tree",
    "OneAgainstSome": "kesler.batch.decompositions.one_against_some",
    "OneVsOne": "kesler.batch.decompositions.one_vs_one",
    "OneVsRest": "kesler.batch.decompositions.one_vs_rest",
    "SoftmaxClassifier": "kesler.batch.softmax",
    # feature sharing
    "JointBoostClassifier": "kesler.sharing.jointboost",
    "MixedNormClassifier": "kesler.sharing.mixed_norm",
    "ShareBoostClassifier": "kesler.sharing.shareboost",
    "export": "kesler.sharing.exports.export",
    # evaluation
    "compare": "kesler.evaluation.comparing",
    "mistake_bound": "kesler.evaluation.bounds",
    "progressive_validate": "kesler.evaluation.validation",
    # explanations
    "Contribution": "kesler.learner.explanations",
    "Explanation": "kesler.learner.explanations",
    # data and files
    "KeslerError": "kesler.errors",
    "NEW": "kesler.data.labels",
    "Ratings": "kesler.data.ratings",
    "load": "kesler.online.loading",
    "show_progress": "kesler.progress",
    # decorators for user-defined parts
    "feature_map": "kesler.parts.maps.feature_map",
    "link_function": "kesler.parts.links.link",
    "mercer_kernel": "kesler.parts.kernels.mercer",
    "preconditioner": "kesler.parts.preconditioners",
    "query_rule": "kesler.parts.queries.query",
    "threshold_algorithm": "kesler.parts.algorithms.algorithm",
    "update_rule": "kesler.parts.updates.rule",
}

# Public modules, imported on first use too.
_MODULES = frozenset(
    {
        "algorithms",
        "budgets",
        "checks",
        "costs",
        "datasets",
        "decompositions",
        "dictionaries",
        "distributed",
        "durable",
        "exploration",
        "hypotheses",
        "kernels",
        "links",
        "maps",
        "metrics",
        "plots",
        "preconditioners",
        "preprocessing",
        "queries",
        "readers",
        "service",
        "trees",
        "updates",
    }
)

__all__ = list(_DEFINED_IN)


def __getattr__(name: str) -> Any:
    if name in _DEFINED_IN:
        return getattr(import_module(_DEFINED_IN[name]), name)
    if name in _MODULES:
        return import_module(f"kesler.{name}")
    raise AttributeError(f"module 'kesler' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]

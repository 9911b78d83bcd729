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
    from kesler.errors import KeslerError
    from kesler.estimators.files import load
    from kesler.estimators.linear_max import LinearMax
    from kesler.estimators.multilabel import OnlineMultilabelClassifier
    from kesler.estimators.online import OnlineClassifier
    from kesler.estimators.ranking import OnlineLabelRanker
    from kesler.hypotheses import Grouped, PerClass, Shared
    from kesler.kernels.mercer import mercer_kernel
    from kesler.links.link import link_function
    from kesler.maps.feature_map import feature_map
    from kesler.progressive import progressive_validate
    from kesler.updates.rule import update_rule

__version__ = "0.1.0"

# What is imported on first use, and where it stands: `import kesler` stays cheap.
_HOMES = {
    "Grouped": "kesler.hypotheses",
    "KeslerError": "kesler.errors",
    "LinearMax": "kesler.estimators.linear_max",
    "OnlineClassifier": "kesler.estimators.online",
    "OnlineLabelRanker": "kesler.estimators.ranking",
    "OnlineMultilabelClassifier": "kesler.estimators.multilabel",
    "PerClass": "kesler.hypotheses",
    "Shared": "kesler.hypotheses",
    "feature_map": "kesler.maps.feature_map",
    "link_function": "kesler.links.link",
    "load": "kesler.estimators.files",
    "mercer_kernel": "kesler.kernels.mercer",
    "progressive_validate": "kesler.progressive",
    "threshold_algorithm": "kesler.algorithms.algorithm",
    "update_rule": "kesler.updates.rule",
}

__all__ = [
    "Grouped",
    "KeslerError",
    "LinearMax",
    "OnlineClassifier",
    "OnlineLabelRanker",
    "OnlineMultilabelClassifier",
    "PerClass",
    "Shared",
    "feature_map",
    "link_function",
    "load",
    "mercer_kernel",
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

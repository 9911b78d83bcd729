"""Defaults: the learner of those who choose nothing, and what else is left open.

Chosen by `benchmarks/defaults.py`, whose page says how. One setting for rows of which only
non-zeros are listed (words, counts), one for rows that list every feature (measurements, pixels),
one over a kernel. Who names an update rule gets that rule as its source has it, on rows as they
are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kesler.conditioning import Counts, ZScores
from kesler.geometry import AdaGrad
from kesler.hypotheses import PerClass, Shared
from kesler.maps import Contrast, FeatureMap, GaussianRatio, SubExperts, resolve_map
from kesler.updates import OneVsRestHinge, SoftmaxGradient

OPEN = "default"
"""The value of a parameter that is left open."""

Settings = dict[str, Any]


def of_words(view: FeatureMap | None = None) -> Settings:
    """Return the settings for rows of which only non-zeros are listed."""
    return {
        "hypotheses": [PerClass(), Shared(view or Contrast(), begins_at=0.15)],
        "update": OneVsRestHinge(),
        "metric": AdaGrad(),
        "newcomers": "virtual",
        "conditioning": Counts(),
        "intercept": 0.0,
    }


def of_measurements(view: FeatureMap | None = None) -> Settings:
    """Return the settings for rows that list every feature."""
    return {
        "hypotheses": [PerClass(), Shared(view or GaussianRatio(), begins_at=0.02)],
        "update": SoftmaxGradient(1.5, invariant=True),
        "metric": AdaGrad(length_free=True),
        "newcomers": "learn",
        "conditioning": ZScores(),
        "intercept": 1.0,
    }


def of_bank(*, dense: bool) -> list[Settings]:
    """Return the settings of the learners of the bank that nobody chose."""
    if dense:
        paces = [SoftmaxGradient(eta, invariant=True) for eta in (1.0, 2.0)]
        return [{**of_measurements(), "update": pace} for pace in paces]
    default = of_words()
    return [
        default,
        {**default, "newcomers": "learn"},
        {**default, "conditioning": Counts(idf=True)},
    ]


SOURCES: Settings = {
    "hypotheses": "hybrid",
    "update": "pa1",
    "metric": "auto",
    "newcomers": "wait",
    "conditioning": None,
    "intercept": 0.0,
}
"""What the sources of the rules have."""

MARGIN: Settings = {**SOURCES, "newcomers": "learn", "conditioning": "auto"}
"""The settings where costs or a link ask for a rule of margins."""


def over_kernel(*, dense: bool) -> Settings:
    """Return the settings of a learner over a kernel."""
    return {**SOURCES, "hypotheses": "multi", "newcomers": "learn", "conditioning": "auto"}


def resolve_open(given: Mapping[str, Any], *, dense: bool) -> Settings:
    """Return the parameters of a learner, those that were left open chosen.

    Parameters
    ----------
    given : parameters by name.
    dense : whether the first rows list every feature.

    Examples
    --------
    >>> resolve_open({"update": "default", "newcomers": "default"}, dense=False)
    {'update': OneVsRestHinge(eta=0.5, invariant=True), 'newcomers': 'virtual'}
    >>> resolve_open({"update": "mira", "newcomers": "default"}, dense=False)
    {'update': 'mira', 'newcomers': 'wait'}
    """
    chosen = _settings(given, dense=dense)
    settings = {name: chosen[name] if _is(value, OPEN) else value for name, value in given.items()}
    if _is(given.get("metric"), "auto"):
        settings["metric"] = chosen["metric"]
    return settings


def _settings(given: Mapping[str, Any], *, dense: bool) -> Settings:
    """Return the settings that go with what was not left open."""
    if not _is(given.get("update"), OPEN) or _asks_sub_experts(given.get("hypotheses")):
        return SOURCES
    if given.get("kernel") is not None:
        return over_kernel(dense=dense)
    if given.get("costs") is not None or not _is(given.get("link", "linear"), "linear"):
        return MARGIN
    named = given.get("feature_map", "auto")
    view = None if _is(named, "auto") else resolve_map(named, dense=dense)
    return of_measurements(view) if dense else of_words(view)


def _asks_sub_experts(hypotheses: Any) -> bool:
    """Whether sub-experts rate the classes: by name, or as a view of a part."""
    if isinstance(hypotheses, str):
        return "sub-experts" in hypotheses.split("+")
    parts = hypotheses if isinstance(hypotheses, (list, tuple)) else [hypotheses]
    return any(isinstance(getattr(part, "feature_map", None), SubExperts) for part in parts)


def _is(value: Any, name: str) -> bool:
    """Whether a parameter is this name: parts of a learner are not compared with text."""
    return isinstance(value, str) and value == name

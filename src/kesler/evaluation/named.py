"""Methods by name, as on the command line, and the methods of a comparison without a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kesler.errors import KeslerError
from kesler.evaluation.methods import BASELINES, Method
from kesler.online.classifier import OnlineClassifier
from kesler.online.contract import require_usable
from kesler.settings.table import AUTO
from kesler.updates import PARAMETERS, RULES, parameters_of, resolve_rule

Settings = Mapping[str, Any]


def learner_of(settings: Settings) -> OnlineClassifier:
    """Return a learner with these settings, which are checked as far as they can be before a row.

    Raises
    ------
    KeslerError
        If a name or a number is unknown, or settings do not fit each other.
    """
    learner = OnlineClassifier(**settings)
    require_usable(learner)
    return learner


BY_WAY: dict[str, Settings] = {
    "default": {},
    "ensemble": {"update": "ensemble"},
    "kernel": {"kernel": "rbf", "budget": 20_000},
}
"""Learners with settings of their own; the budget bounds the cost of a row on long streams."""

SHARING = ("multi", "single", "hybrid")
"""The three ways of sharing hypotheses."""

MOST_FEATURES = 100
"""Largest number of features for which a kernel is among the methods of a comparison."""

Learner = OnlineClassifier | Method


def default_methods(given: Settings, *, dense: bool, n_features: int) -> dict[str, Learner]:
    """Return the methods of a comparison for which none are named.

    `given` applies to the ways of sharing; its label budget applies to every learner.

    Parameters
    ----------
    dense, n_features : bool and int
        The kind of the first rows.
    """
    kernel = ["kernel"] if dense and n_features <= MOST_FEATURES else []
    budget = {name: given[name] for name in ("label_budget",) if name in given}
    by_way = {name: learner_of({**each, **budget}) for name, each in BY_WAY.items()}
    return {
        **{name: by_way[name] for name in ("default", "ensemble")},
        **_learners(SHARING, given),
        **{name: by_way[name] for name in kernel},
        **{name: make() for name, make in BASELINES.items()},
    }


def named_methods(methods: str, given: Settings) -> dict[str, Learner]:
    """Return the methods that are named, separated by commas.

    Raises
    ------
    KeslerError
        If a name is unknown, or given twice.
    """
    names = [name.strip() for name in methods.split(",")]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise KeslerError(f"the method {twice!r} is named twice: name each method once")
    return _learners(names, given)


def _learners(names: Sequence[str], given: Settings) -> dict[str, Learner]:
    """Return the methods of these names; of several, each has the given settings that fit it."""
    fitting = {name: _fitting(_settings(name, given)) for name in names if name not in BASELINES}
    unused = {name for name in given if all(name not in each for each in fitting.values())}
    return {
        name: BASELINES[name]()
        if name in BASELINES
        else learner_of({**fitting[name], **{each: given[each] for each in unused}})
        for name in names
    }


def _fitting(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings without parameters that the rule lacks."""
    rule = settings.get("update", AUTO)
    lacks = {*PARAMETERS} - {*parameters_of(rule)} if rule in RULES else set()
    return {name: value for name, value in settings.items() if name not in lacks}


def named_method(name: str, given: Settings) -> Learner:
    """Return the method of this name: a baseline, or a learner with the given settings.

    Hypotheses without an update use that of `given`, or pa1. "default" uses `given` as it is,
    "ensemble" with that update, and "kernel" with an rbf kernel unless another is given.

    Raises
    ------
    KeslerError
        If the name is unknown.

    Examples
    --------
    >>> named_method("hybrid:simproj:0.5", {})
    OnlineClassifier(hypotheses='hybrid', update='simproj', C=0.5)
    """
    return BASELINES[name]() if name in BASELINES else learner_of(_settings(name, given))


def _settings(name: str, given: Settings) -> dict[str, Any]:
    """Return the settings of a method HYPOTHESES[:UPDATE[:C]]."""
    if name == "default":
        return dict(given)
    if name == "ensemble":
        return {**given, "update": "ensemble"}
    if name == "kernel":
        return {"kernel": "rbf", **given}
    hypotheses, update, number, *more = [*name.split(":"), "", ""]
    if any(more):
        raise _not_a_method(name)
    hypotheses = AUTO if hypotheses == "default" else hypotheses
    update = update or given.get("update") or ("pa1" if hypotheses != AUTO else AUTO)
    found = {**given, "hypotheses": hypotheses, "update": update}
    return found | _strength(name, update, number) if number else found


def _strength(name: str, update: str, number: str) -> dict[str, float]:
    """Return the parameter of the rule that a number in the name of a method stands for."""
    strength = resolve_rule(update).strength
    try:
        value = float(number)
    except ValueError:
        raise _not_a_method(name) from None
    if strength is None:
        raise KeslerError(f"the method {name!r}: {update} has no parameter: omit {number}")
    return {strength: value}


def _not_a_method(name: str) -> KeslerError:
    return KeslerError(
        f"the method {name!r} is not HYPOTHESES[:UPDATE[:C]], such as hybrid:simproj:0.01"
    )

"""Update rules that are named, with the parameters of the rule beside the name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kesler.errors import KeslerError
from kesler.updates import PARAMETERS, RULES, parameters_of, resolve_rule
from kesler.updates.rule import UpdateRule

Settings = Mapping[str, Any]


def is_name(update: Any) -> bool:
    """Return whether a value of the parameter `update` names a rule."""
    return isinstance(update, str) and update in RULES


def rule_of(update: str | UpdateRule, given: Settings) -> UpdateRule:
    """Return the rule of this name with the parameters that the settings of an estimator give."""
    return resolve_rule(update, **beside(given))


def beside(given: Settings) -> dict[str, Any]:
    """Return the parameters of a rule among the settings of an estimator."""
    return {name: given[name] for name in PARAMETERS if given.get(name) is not None}


def parameters(name: str, given: Settings) -> dict[str, Any]:
    """Return the parameters of a rule that is named, also those left at their defaults."""
    try:
        resolved = rule_of(name, given)
    except KeslerError:  # raised when learning, not when listing parameters
        return {}
    return {inner: getattr(resolved, inner) for inner in parameters_of(name)}


def with_parameter(name: str, given: Settings, inner: str, value: Any) -> dict[str, Any]:
    """Return the settings that change where a parameter of a named rule is set.

    It stands beside the name if it can; otherwise an object takes the place of the name.
    """
    if inner in PARAMETERS:
        return {inner: value}
    rule = resolve_rule(name, **beside(given), **{inner: value})
    return {"update": rule, **dict.fromkeys(PARAMETERS)}

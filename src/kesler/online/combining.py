"""Settings of ensembles: which of those given apply to each member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kesler.errors import KeslerError
from kesler.hypotheses import Ordered, resolve_hypotheses
from kesler.preconditioners import Preconditioner
from kesler.preprocessing import resolve_preprocessing
from kesler.preprocessing.expansion import Expansion
from kesler.settings.table import SETTINGS, given_of

Settings = dict[str, Any]


def require_only(given: Mapping[str, Any], name: str) -> None:
    """Raise if settings are given beside the members, which have their own."""
    for other in given_of(given):
        if other != name and SETTINGS[other].members != "estimator":
            raise KeslerError(
                f"{other}={given[other]!r} has no effect on an ensemble of given "
                f"learners, which have their own settings: omit it, or set it for the learners in "
                f"{name}=[...]"
            )


def with_given(members: Sequence[Settings], given: Mapping[str, Any]) -> list[Settings]:
    """Return the settings of members, each with the given ones that apply to it.

    Raises
    ------
    KeslerError
        If a given setting would have no effect.
    """
    for name, value in given.items() if members else ():
        if SETTINGS[name].members == "refused":
            raise KeslerError(
                f"{name}={value!r} has no effect on an ensemble, whose members are combined by "
                "what their last weights predict: omit it, or name an update rule, such as "
                'update="softmax"'
            )
    return [member | _for_member(member, given) for member in members]


def _for_member(member: Settings, given: Mapping[str, Any]) -> Settings:
    kinds = ("each",) if _has_matrix(member) else ("each", "gradients")
    return {name: each for name, each in given.items() if SETTINGS[name].members in kinds}


def _has_matrix(member: Settings) -> bool:
    chosen = member["preconditioner"]
    return isinstance(chosen, Preconditioner) and chosen.is_full


def setting_without_members(members: Sequence[Settings], given: Mapping[str, Any]) -> str | None:
    """Return the name of a given setting that a member cannot have, None if there is none.

    A matrix of second moments has one row for each feature of x: no view of a class, and no
    preprocessing that makes many features of one.
    """
    alone = (name for name in given if SETTINGS[name].members == "alone" and name != "update")
    of_matrix = any(map(_has_matrix, members))
    return next(alone, next((name for name in _wide(given) if of_matrix), None))


def _wide(given: Mapping[str, Any]) -> list[str]:
    found = []
    if "hypotheses" in given:
        parts = resolve_hypotheses(given["hypotheses"], Ordered)
        found += ["hypotheses"] * any(
            part.feature_map is not None or isinstance(part, Ordered) for part in parts
        )
    if "preprocessing" in given:
        chosen = resolve_preprocessing(given["preprocessing"], dense=True)
        found += ["preprocessing"] * isinstance(chosen, Expansion)
    return found

"""What each part of a learner gains, judged on groups of sets that are left out in turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from judging import Errors, geometric_mean

Groups = Mapping[str, Iterable[str]]
"""The names of the sets of each group."""


@dataclass(frozen=True)
class Gain:
    """What a part gains: its errors relative to those without it; below 1, it reduces them.

    Parameters
    ----------
    overall : float
        The geometric mean over all sets.
    by_group : mapping of group to the geometric mean over its sets
    left_out : float or None
        As `overall`, if each group has the part only if it gains on the other groups; None if
        there is one group.
    """

    overall: float
    by_group: dict[str, float]
    left_out: float | None

    @property
    def worst(self) -> str:
        """The group with the least gain."""
        return max(self.by_group, key=lambda group: self.by_group[group])


def gain_of(present: Errors, absent: Errors, groups: Groups) -> Gain:
    """Return what a part gains, from the errors with it and without it.

    Examples
    --------
    >>> present, absent = {"x": 1.0, "y": 2.0, "z": 3.0}, {"x": 4.0, "y": 2.0, "z": 3.0}
    >>> found = gain_of(present, absent, {"A": ["x"], "B": ["y", "z"]})
    >>> found.by_group, found.worst
    ({'A': 0.25, 'B': 1.0}, 'B')
    """
    ratios = {name: present[name] / absent[name] for name in present if name in absent}
    filled = {group: [n for n in names if n in ratios] for group, names in groups.items()}
    filled = {group: names for group, names in filled.items() if names}
    by_group = {group: mean_over(ratios, names) for group, names in filled.items()}
    used = dict[str, float]()
    for group, names in filled.items():
        pays = mean_over(ratios, others(filled, group)) < 1
        used.update({name: ratios[name] if pays else 1.0 for name in names})
    overall = mean_over(ratios, (name for names in filled.values() for name in names))
    return Gain(overall, by_group, mean_over(used, used) if len(filled) > 1 else None)


def others(groups: Groups, left_out: str) -> list[str]:
    """Return the sets of all groups but one.

    Examples
    --------
    >>> others({"A": ["x"], "B": ["y", "z"]}, "A")
    ['y', 'z']
    """
    return [name for group, names in groups.items() if group != left_out for name in names]


def mean_over(errors: Errors, names: Iterable[str], reference: Errors | None = None) -> float:
    """Return the geometric mean over some sets, relative to a reference if there is one.

    Examples
    --------
    >>> mean_over({"x": 1.0, "y": 4.0, "z": 9.0}, ["x", "y"])
    2.0
    """
    kept = {name: errors[name] for name in names if name in errors}
    return geometric_mean(kept, dict.fromkeys(kept, 1.0) if reference is None else reference)


def chosen_without(table: Mapping[str, Errors], groups: Groups) -> dict[str, str]:
    """Return for each group the learner of the smallest mean error on the others.

    A group alone has no choice.

    Examples
    --------
    >>> table = {"P": {"x": 1.0, "y": 9.0}, "Q": {"x": 2.0, "y": 2.0}}
    >>> chosen_without(table, {"A": ["x"], "B": ["y"]})
    {'A': 'Q', 'B': 'P'}
    """
    rest = {group: others(groups, group) for group in groups}
    return {
        group: min(table, key=lambda learner: mean_over(table[learner], names))
        for group, names in rest.items()
        if names
    }

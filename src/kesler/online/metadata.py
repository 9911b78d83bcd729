"""The metadata of model files: their entries, each declared once, and their validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kesler.data.rows import MAX_FEATURES
from kesler.data.texts import LIMITS
from kesler.hypotheses import Grouped
from kesler.learner.learner import Learner
from kesler.state.fields import damaged
from kesler.state.records import MOST_ROWS
from kesler.state.uncertainty import LARGEST_SCORE

Metadata = dict[str, Any]
Check = Callable[[Any], bool]


@dataclass(frozen=True)
class Entry:
    """Declaration of an entry of the metadata.

    Parameters
    ----------
    what : what its value must be, as messages say it.
    holds : function that returns whether a value is valid.
    """

    what: str
    holds: Check


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer, and not a truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number, and not a truth value."""
    return is_integer(value) or (isinstance(value, float) and math.isfinite(value))


def is_label(value: Any) -> bool:
    """Return whether a value can be a label or the name of a group."""
    return isinstance(value, (bool, str)) or is_number(value)


def _are(holds: Check, *, distinct: bool = False) -> Check:
    """Return the check that a value is a list whose items pass a check."""

    def hold(values: Any) -> bool:
        if not isinstance(values, list) or not all(map(holds, values)):
            return False
        return not distinct or len(set(values)) == len(values)

    return hold


def _is_count(value: Any) -> bool:
    return is_integer(value) and 0 <= value <= MAX_FEATURES


def _are_lengths(value: Any) -> bool:
    """Return whether a value states a number of texts, one of characters and their features."""
    if not _are(lambda n: is_integer(n) and 0 <= n <= MOST_ROWS)(value):
        return False
    return len(value) == 2 or (len(value) == 3 and value[2] in LIMITS)  # files of before have two


def _are_estimates(value: Any) -> bool:
    """Return whether a value describes estimates of uncertainty."""
    # Scores of prediction sets had no largest one in files of earlier versions.
    if not isinstance(value, dict) or value.get("largest_score", LARGEST_SCORE) != LARGEST_SCORE:
        return False
    if value.keys() - {"largest_score"} != {"remembers", "n_inputs"}:
        return False
    return isinstance(value["remembers"], bool) and _is_count(value["n_inputs"])


def _or_none(holds: Check) -> Check:
    return lambda value: value is None or holds(value)


def _is_settings(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("name"), str)
        and isinstance(value.get("parameters"), dict)
    )


_NAMES = "a list of different names, or null"
_COUNT = f"an integer of 0 to {MAX_FEATURES}"
_LABELS = "a list of different numbers and texts"
_SETTINGS = "the settings of an estimator"

_are_names = _or_none(_are(_or_none(is_label), distinct=True))
_distinct_labels = _are(is_label, distinct=True)

OF_FILE = {
    "settings": Entry(_SETTINGS, _is_settings),
    "resolved": Entry(_SETTINGS, _is_settings),
    "dense": Entry("true or false", lambda value: isinstance(value, bool)),
    "learners": Entry("a list of learners", _are(lambda value: isinstance(value, dict))),
    "names": Entry(_NAMES, _are_names),
    "sub_experts": Entry(_NAMES, _are_names),
    "width": Entry(f"{_COUNT}, or null", _or_none(_is_count)),
    "declared": Entry(_LABELS, _distinct_labels),
    "texts": Entry(
        "counts of texts and characters, and a version, or null",
        _or_none(_are_lengths),
    ),
    "table": Entry("a table, or null", _or_none(lambda value: isinstance(value, dict))),
    "uncertainty": Entry(
        "a description of estimates of uncertainty, or null", _or_none(_are_estimates)
    ),
    "ranks": Entry("a list of ranks", _are(lambda value: isinstance(value, dict))),
    "notes": Entry("an object", lambda value: isinstance(value, dict)),
}
"""The entries of a file."""

OF_RANK = {name: OF_FILE[name] for name in ("learners", "uncertainty")}
"""The entries of each rank of a file, as of the learner of the labels."""

OF_LEARNER = {
    "labels": Entry(_LABELS, _distinct_labels),
    "n_features": Entry(_COUNT, _is_count),
    "n_sub_experts": Entry(_COUNT, _is_count),
    "n_inputs": Entry(_COUNT, _is_count),
    "groups": Entry("a list of lists of different names", _are(_distinct_labels)),
    "memberships": Entry("lists of lists of integers", _are(_are(_are(_is_count)))),
}
"""The entries of each learner of a file."""


def validated(metadata: Any) -> Metadata:
    """Return the entries of a file, each of which is of its kind.

    Raises
    ------
    KeslerError
        If one is missing or of another kind.
    """
    if not isinstance(metadata, dict):
        raise damaged("metadata are not an object")
    if "settings" not in metadata:
        metadata = _of_former(metadata)
    # Files that were written before ranks could be learnt do not name them.
    found = _with_learners(_checked({"ranks": []} | metadata, OF_FILE, ""), "")
    ranks = []
    for i, each in enumerate(found["ranks"]):
        path = f"ranks[{i}]."
        ranks.append(_with_learners(_checked(each, OF_RANK, path), path))
    return found | {"ranks": ranks}


def _with_learners(found: Metadata, path: str) -> Metadata:
    """Return entries, after those of each learner have been checked."""
    learners = [
        _checked(each, OF_LEARNER, f"{path}learners[{i}].")
        for i, each in enumerate(found["learners"])
    ]
    return found | {"learners": learners}


def _of_former(metadata: Metadata) -> Metadata:
    """Return the metadata of a file of version 1 in the present form."""
    from kesler.settings import former

    try:
        return former.metadata(metadata)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise damaged(
            f"metadata are not those of a model ({type(error).__name__}: {error})"
        ) from error


def _checked(metadata: Mapping[str, Any], entries: Mapping[str, Entry], path: str) -> Metadata:
    found = {}
    for name, entry in entries.items():
        if name not in metadata:
            raise damaged(f"metadata have no {path}{name}")
        value = metadata[name]
        if not entry.holds(value):
            raise damaged(f"{path}{name} is {_short(value)}, not {entry.what}")
        found[name] = value
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


def require_members(learner: Learner, groups: list[Any], memberships: list[Any]) -> None:
    """Raise an error unless each class of a learner is in groups that exist.

    Parameters
    ----------
    groups : the names of the groups of each part.
    memberships : the groups of each class of each part, virtual classes first.
    """
    if not len(groups) == len(memberships) == len(learner.parts):
        raise damaged("groups and memberships are not one for each of its parts")
    n_virtual, n_classes = learner.classes.n_virtual, len(learner.classes)
    for part, names, members in zip(learner.parts, groups, memberships, strict=True):
        n_columns = n_classes if isinstance(part, Grouped) else n_virtual
        if len(members) != n_columns:
            raise damaged(f"memberships are those of {len(members)} classes, not of {n_columns}")
        for columns in members:
            if columns != sorted(set(columns)) or (columns and columns[-1] >= len(names)):
                raise damaged(f"memberships name groups {_short(columns)}, of {len(names)}")

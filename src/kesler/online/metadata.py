"""The metadata of model files: their entries, each declared once, and their validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from kesler.data.rows import MAX_FEATURES
from kesler.learner.classes import OnNewClass
from kesler.learner.ensemble import Combination
from kesler.learner.targets import Decision
from kesler.links.link import Linear
from kesler.preconditioners import EUCLIDEAN
from kesler.state.fields import damaged
from kesler.state.records import MOST_ROWS

Metadata = dict[str, Any]
Check = Callable[[Any], bool]

REQUIRED = object()


@dataclass(frozen=True)
class Entry:
    """Declaration of an entry of the metadata.

    Parameters
    ----------
    what : what its value must be, as messages say it.
    holds : function that returns whether a value is valid.
    default : the value where a file has no such entry; files of earlier versions have fewer.
    """

    what: str
    holds: Check
    default: Any = REQUIRED


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer, and not a truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number, and not a truth value."""
    return is_integer(value) or (isinstance(value, float) and math.isfinite(value))


def is_label(value: Any) -> bool:
    """Return whether a value can be a label or the name of a group."""
    return isinstance(value, (bool, str)) or is_number(value)


def is_described(value: Any) -> bool:
    """Return whether a value is a description as :mod:`kesler.parts.description` makes it."""
    if not isinstance(value, dict):
        return False
    if "custom" in value:
        return isinstance(value["custom"], str) and _are(is_number)(value.get("parameters"))
    return isinstance(value.get("name"), str) and isinstance(value.get("fields"), dict)


def _are(holds: Check, *, distinct: bool = False) -> Check:
    """Return the check that a value is a list whose items pass a check."""

    def hold(values: Any) -> bool:
        if not isinstance(values, list) or not all(map(holds, values)):
            return False
        return not distinct or len(set(values)) == len(values)

    return hold


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return is_integer(value) and 0 <= value <= MAX_FEATURES


def _is_part(value: Any) -> bool:
    """Return whether a value describes hypotheses."""
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return False
    if not is_number(value.get("begins_at", 0.0)):
        return False
    if isinstance(value.get("groups"), dict) and not _is_tree(value["groups"]):
        return False
    return "map" in value and (value["map"] is None or is_described(value["map"]))


def _is_kernel(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and is_described(value.get("part"))
        and isinstance(value.get("dense"), bool)
        and "budget" in value
    )


def _is_replay(value: Any) -> bool:
    return is_described(value) and set(value.get("fields", ())) == {"n_rows", "size", "seed"}


def _is_tree(value: Any) -> bool:
    """Return whether a value describes a tree of classes."""
    if not isinstance(value, dict) or len(value) != 2 or not _are_pairs(value.get("hung")):
        return False
    are_texts = [isinstance(value.get(name), str) for name in ("separator", "function")]
    return any(are_texts) or _are_pairs(value.get("parents"))


def _are_pairs(value: Any) -> bool:
    """Return whether a value is a list of pairs of a node and its parent."""
    return _are(
        lambda pair: (
            isinstance(pair, list) and len(pair) == 2 and all(map(_or_none(is_label), pair))
        )
    )(value)


def _is_bandit(value: Any) -> bool:
    """Return whether a value describes how a learner explores."""
    if not isinstance(value, dict) or set(value) != {"exploration", "is_weighted", "seed"}:
        return False
    seed, described = value["seed"], is_described(value["exploration"])
    return described and isinstance(value["is_weighted"], bool) and is_integer(seed) and seed >= 0


def _are_costs(value: Any) -> bool:
    return (
        isinstance(value, str)
        or _is_tree(value)
        or _are(lambda c: isinstance(c, list) and len(c) == 3)(value)
    )


def _are_lengths(value: Any) -> bool:
    """Return whether a value states a number of texts and one of characters."""
    return _are(lambda n: is_integer(n) and 0 <= n <= MOST_ROWS)(value) and len(value) == 2


def _are_columns(value: Any) -> bool:
    return isinstance(value, dict) and {"given", "on_mismatch", "table"} <= set(value)


def _are_estimates(value: Any) -> bool:
    """Return whether a value describes estimates of uncertainty."""
    if not isinstance(value, dict) or set(value) != {"remembers", "n_inputs"}:
        return False
    return isinstance(value["remembers"], bool) and _is_count(value["n_inputs"])


def _or_none(holds: Check) -> Check:
    return lambda value: value is None or holds(value)


_PART = "a description of a part"
_NAMES = "a list of different names, or null"
_COUNT = f"an integer of 0 to {MAX_FEATURES}"
_LABELS = "a list of different numbers and texts"
_are_names = _or_none(_are(_or_none(is_label), distinct=True))
_distinct_labels = _are(is_label, distinct=True)

OF_FILE = {
    "names": Entry(_NAMES, _are_names),
    "sub_experts": Entry(_NAMES, _are_names, None),
    "width": Entry(f"{_COUNT}, or null", _or_none(_is_count)),
    "declared": Entry(_LABELS, _distinct_labels, []),
    "texts": Entry("two counts, of texts and characters, or null", _or_none(_are_lengths), None),
    "notes": Entry("an object", lambda value: isinstance(value, dict)),
    "epochs": Entry("an integer of 1 or more", lambda v: is_integer(v) and v > 0, 1),
    "uncertainty": Entry(
        "a description of estimates of uncertainty, or null", _or_none(_are_estimates), None
    ),
    "label_budget": Entry(f"{_PART}, or null", _or_none(is_described), None),
    "columns": Entry("a description of columns, or null", _or_none(_are_columns), None),
}
"""The entries of every file."""

OF_LEARNER = {
    "estimator": Entry("the name of an estimator", _is_text),
    "parts": Entry("a list of hypotheses", lambda value: bool(value) and _are(_is_part)(value)),
    "rule": Entry(_PART, is_described),
    "kernel": Entry("a kernel, or null", _or_none(_is_kernel), None),
    "constant": Entry("a number of 0 or more", lambda v: is_number(v) and v >= 0, 0.0),
    "link": Entry(_PART, is_described, Linear().describe()),
    "averaged": Entry("true or false", lambda value: isinstance(value, bool), False),
    "preconditioner": Entry(_PART, is_described, EUCLIDEAN.describe()),
    "on_new_class": Entry(
        f"one of {', '.join(get_args(OnNewClass))}",
        lambda value: value in get_args(OnNewClass),
        "register",
    ),
    "costs": Entry(
        "a list of costs, a tree, a function's name, or null", _or_none(_are_costs), None
    ),
    "preprocessing": Entry(f"{_PART}, or null", _or_none(is_described), None),
    "half_life": Entry(
        "a number above 0, or null", _or_none(lambda v: is_number(v) and v > 0), None
    ),
    "replay": Entry("a description of a replay, or null", _or_none(_is_replay), None),
    "decision": Entry(
        f"one of {', '.join(get_args(Decision))}",
        lambda value: value in get_args(Decision),
        "score",
    ),
    "bandit": Entry("a description of an exploration, or null", _or_none(_is_bandit), None),
    "labels": Entry(_LABELS, _distinct_labels),
    "order": Entry(f"{_LABELS}, or null", _or_none(_distinct_labels), None),
    "n_features": Entry(_COUNT, _is_count),
    "n_sub_experts": Entry(_COUNT, _is_count, 0),
    "n_inputs": Entry(_COUNT, _is_count, 0),
    "groups": Entry("a list of lists of different names", _are(_distinct_labels)),
    "memberships": Entry("lists of lists of integers", _are(_are(_are(_is_count)))),
}
"""The entries of a learner, or of each member of an ensemble."""

OF_ENSEMBLE = {
    "estimator": OF_LEARNER["estimator"],
    "members": Entry(
        "a list of learners",
        lambda value: bool(value) and _are(lambda v: isinstance(v, dict))(value),
    ),
    "combine": Entry("a way to combine", lambda value: value in get_args(Combination)),
    "discount": Entry("a number", is_number),
    "demotion": Entry("a number", is_number),
    "share": Entry("a number", is_number, 0.003),
}
"""The entries of an ensemble."""


def validated(metadata: Any, n_virtual: Mapping[str, int]) -> Metadata:
    """Return the metadata of a file, with all entries, each of its kind.

    Parameters
    ----------
    metadata : what a file holds, which may be anything.
    n_virtual : the number of virtual classes of each estimator that a file may name.

    Raises
    ------
    KeslerError
        If an entry is missing or not of its kind.
    """
    if not isinstance(metadata, dict):
        raise damaged("metadata are not an object")
    found = _checked(metadata, OF_FILE, "")
    if "members" not in metadata:
        return found | _learner(metadata, "", n_virtual)
    ensemble = _checked(metadata, OF_ENSEMBLE, "")
    _require_known(ensemble["estimator"], "", n_virtual)
    ensemble["members"] = [
        _learner(member, f"members[{i}].", n_virtual)
        for i, member in enumerate(ensemble["members"])
    ]
    return found | ensemble


def _checked(metadata: Mapping[str, Any], entries: Mapping[str, Entry], path: str) -> Metadata:
    """Return these entries of the metadata, those left out with their defaults."""
    found = {}
    for name, entry in entries.items():
        value = metadata.get(name, entry.default)
        if value is REQUIRED:
            raise damaged(f"metadata have no {path}{name}")
        if not entry.holds(value) and value is not entry.default:
            raise damaged(f"{path}{name} is {_short(value)}, not {entry.what}")
        found[name] = value
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


def _require_known(estimator: str, path: str, known: Mapping[str, int]) -> None:
    if estimator not in known:
        raise damaged(f"{path}estimator is {_short(estimator)}, not one of {', '.join(known)}")


def _learner(metadata: Mapping[str, Any], path: str, n_virtual: Mapping[str, int]) -> Metadata:
    """Return the entries of one learner, after validation of what refers to other entries."""
    found = _checked(metadata, OF_LEARNER, path)
    _require_known(found["estimator"], path, n_virtual)
    groups, memberships = found["groups"], found["memberships"]
    if not len(groups) == len(memberships) == len(found["parts"]):
        raise damaged(f"{path}groups and memberships are not one for each of its parts")
    n_columns = n_virtual[found["estimator"]]
    for part, names, members in zip(found["parts"], groups, memberships, strict=True):
        is_grouped = part["kind"] == "Grouped"
        _require_members(members, len(names), n_columns + is_grouped * len(found["labels"]), path)
    return found


def _require_members(
    members: Sequence[Sequence[int]], n_groups: int, n_classes: int, path: str
) -> None:
    """Raise unless there is a list of different groups for each class of a grouped part."""
    if len(members) != n_classes:
        raise damaged(f"{path}memberships are those of {len(members)} classes")
    for columns in members:
        if columns != sorted(set(columns)) or (columns and columns[-1] >= n_groups):
            raise damaged(f"{path}memberships name groups {_short(columns)}, of {n_groups}")

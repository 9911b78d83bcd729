"""The settings of the learners in journals: which can be kept, and which labels they name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kesler.errors import KeslerError

NOT_KEPT = ("BanditClassifier", "CostSensitiveClassifier")
"""The estimators whose answers a journal does not have."""


def settings_of(estimator: Any) -> dict[str, Any]:
    """Return the settings of a new estimator as JSON holds them.

    Raises
    ------
    KeslerError
        If it has learnt already, or a journal cannot hold it.
    """
    from kesler.settings import codec

    name, kept = type(estimator).__name__, [n for n in codec.ESTIMATORS if n not in NOT_KEPT]
    if name not in kept:
        raise KeslerError(
            f"{estimator!r:.60} cannot be kept in a journal: give one of {', '.join(kept)}"
        )
    _require_new(estimator)
    return codec.settings_of(estimator, functions=False)


def estimator_of(settings: dict[str, Any]) -> Any:
    """Return a new estimator with these settings."""
    from kesler.settings import codec

    return codec.estimator_of(settings)


def _require_new(estimator: Any) -> None:
    if estimator._learner is not None:
        raise KeslerError(
            f"this {type(estimator).__name__} has learnt already, from rows that the journal does "
            "not have: give a new one, and teach it these rows with learn_many"
        )
    if estimator._takes_ratings():
        raise KeslerError(
            f"{estimator!r:.60} learns from ratings by sub-experts, which a journal does not keep: "
            "give hypotheses of features"
        )
    if estimator.get_params(deep=False).get("label_budget") is not None:
        raise KeslerError(
            "a journal does not keep which rows have been offered to a label budget: open the "
            "model without label_budget, and offer rows to a copy() of it that has one"
        )


def labels_in(estimator: Any) -> list[Any]:
    """Return the labels that the parameters of an estimator name."""
    own = estimator.get_params(deep=False)
    costs, order = own.get("costs"), own.get("order")
    found = [label for pair in costs for label in pair] if isinstance(costs, Mapping) else []
    found += [] if order is None else list(order)
    found += [label for groups in _groups_of(estimator) for named in groups for label in named]
    found += [node for tree in _trees_of(estimator) for node in tree.nodes]
    return found + [label for member in _members_of(estimator) for label in labels_in(member)]


def depends_on_names(estimator: Any) -> bool:
    """Return whether what an estimator learns depends on the names of classes.

    Classes have costs, groups and places in a tree by their names, and ranks the order of theirs.
    """
    own = estimator.get_params(deep=False)
    is_by_name = own.get("costs") is not None or own.get("ranks") is not None or "order" in own
    return (
        is_by_name
        or bool(_groups_of(estimator) or _trees_of(estimator))
        or any(map(depends_on_names, _members_of(estimator)))
    )


def _members_of(estimator: Any) -> list[Any]:
    """Return the members of an ensemble that the parameters list."""
    own = estimator.get_params(deep=False)
    given = own.get("learners") or own.get("update")
    return list(given) if isinstance(given, (list, tuple)) else []


def _trees_of(estimator: Any) -> list[Any]:
    """Return the tree that is given, and those of the hypotheses."""
    given = estimator.get_params(deep=False).get("tree")
    found = [part.tree for part in _grouped(estimator) if part.tree is not None]
    if given is None:
        return found
    from kesler.trees.tree import Tree

    return [Tree(given), *found]


def _groups_of(estimator: Any) -> list[list[list[Any]]]:
    """Return the labels of each group of each of the hypotheses that have groups."""
    groups = [part.groups for part in _grouped(estimator) if isinstance(part.groups, Mapping)]
    return [list(mapping.values()) for mapping in groups]


def _grouped(estimator: Any) -> list[Any]:
    """Return the hypotheses that have groups."""
    from kesler.hypotheses import Grouped

    parts = estimator.get_params(deep=False).get("hypotheses")
    each = parts if isinstance(parts, (list, tuple)) else [parts]
    return [part for part in each if isinstance(part, Grouped)]

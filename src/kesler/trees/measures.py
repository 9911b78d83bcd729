"""Measures of mistakes in a tree of classes: how far a prediction is from the target, and where."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label, class_of
from kesler.errors import KeslerError
from kesler.trees.tree import Given, Tree


def tree_distances(
    y: Sequence[Label] | npt.NDArray[Any],
    predictions: Sequence[Label] | npt.NDArray[Any],
    tree: Given,
    wrong: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.int64]:
    """Return the distance of each prediction from its target in a tree.

    Parameters
    ----------
    y, predictions : sequences of labels of the same length
        The targets and what was predicted.
    tree : Tree, or what a tree may be given as
        The tree of classes.
    wrong : bool array of shape (n_rows,) or None, default None
        The rows that count; the others have the distance 0. None stands for all.

    Raises
    ------
    KeslerError
        If the lengths differ, or the tree does not hold a label.

    Examples
    --------
    >>> tree_distances(["rec.autos", "sci.med"], ["rec.sport", "rec.autos"], ".").tolist()
    [2, 4]
    """
    targets, said = _labels(y), _labels(predictions)
    if len(targets) != len(said):
        raise KeslerError(
            f"there are {len(targets)} targets, but {len(said)} predictions: give one for each row"
        )
    distance = cache(Tree(tree).distance)
    counts = [True] * len(said) if wrong is None else wrong.tolist()
    found = [
        distance(target, label) if is_counted else 0
        for target, label, is_counted in zip(targets, said, counts, strict=True)
    ]
    return np.array(found, dtype=np.int64)


def tree_loss(
    y: Sequence[Label] | npt.NDArray[Any],
    predictions: Sequence[Label] | npt.NDArray[Any],
    tree: Given,
) -> float:
    """Return the mean distance of predictions from their targets in a tree; 0 without rows.

    Parameters
    ----------
    y, predictions, tree : as in `tree_distances`.

    References
    ----------
    Dekel, Keshet and Singer (2004), the tree-induced error.

    Examples
    --------
    >>> tree_loss(["rec.autos", "sci.med"], ["rec.sport", "rec.autos"], ".")
    3.0
    """
    found = tree_distances(y, predictions, tree)
    return float(found.mean()) if len(found) else 0.0


def level_errors(
    y: Sequence[Label] | npt.NDArray[Any],
    predictions: Sequence[Label] | npt.NDArray[Any],
    tree: Given,
    wrong: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.float64]:
    """Return the share of rows whose prediction is below another node than the target, by level.

    Parameters
    ----------
    y, predictions, tree, wrong : as in `tree_distances`.

    Returns
    -------
    float64 array of shape (depth,): the first is the error among the nodes below the root, the last
    that of classes. A class is its own node at all levels below it.

    Examples
    --------
    >>> level_errors(["rec.autos", "sci.med"], ["rec.sport", "rec.autos"], ".").tolist()
    [0.5, 1.0]
    """
    tree, targets, said = Tree(tree), _labels(y), _labels(predictions)
    path = cache(lambda label: tuple(reversed(tree.path(label)))[1:] or (label,))
    counts = [True] * len(said) if wrong is None else wrong.tolist()
    pairs = [
        (path(target), path(label))
        for target, label, is_counted in zip(targets, said, counts, strict=True)
        if is_counted
    ]
    depth = max((len(p) for label in targets for p in [path(label)]), default=0)
    depth = max([depth, *(len(other) for _, other in pairs)])
    errors = np.zeros(depth)
    for one, other in pairs:
        errors += [_at(one, i) != _at(other, i) for i in range(depth)]
    return errors / max(1, len(targets))


def _at(path: tuple[Any, ...], level: int) -> Any:
    return path[min(level, len(path) - 1)]


def _labels(values: Any) -> list[Any]:
    return [class_of(v) for v in (values.tolist() if hasattr(values, "tolist") else values)]

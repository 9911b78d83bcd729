"""Trees learnt from the confusions of classes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label, class_of
from kesler.errors import KeslerError
from kesler.trees.tree import Tree

Families = list[list[int]]


def tree_of_confusions(
    confusions: npt.ArrayLike, labels: Sequence[Label], sizes: Sequence[int] = ()
) -> Tree:
    r"""Return a tree in which classes that are confused with each other are near.

    Classes are merged by average linkage of the distances

    .. math:: 1 - \tfrac12 (p(s \mid y) + p(y \mid s)), \quad
        p(s \mid y) = n_{ys} / \textstyle\sum_r n_{yr}

    where :math:`n_{ys}` is the number of rows of y that were predicted to be s.

    Parameters
    ----------
    confusions : array of shape (n_classes, n_classes)
        Counts of 0 or more, rows by target and columns by prediction, as of
        `sklearn.metrics.confusion_matrix`.
    labels : sequence of n_classes labels
        The labels of the rows, in their order.
    sizes : sequence of int, default ()
        The numbers of groups at each level from below the root, ascending. The merges are cut
        there, which keeps the tree flat; () keeps every merge of two groups.

    Returns
    -------
    Tree
        Its inner nodes are named by their first class and their size, such as "E and 2 more".

    Raises
    ------
    KeslerError
        If the table is not square with a label for each row, a count is negative or not finite, a
        label occurs twice, or sizes do not ascend from 2 or more to less than the classes.

    Notes
    -----
    O(n_classes^2) for the merges, with SciPy.

    References
    ----------
    Dekel, Keshet and Singer (2004), for whom the tree is given; Sokal and Michener (1958), average
    linkage.

    Examples
    --------
    >>> tree = tree_of_confusions([[9, 4, 0], [3, 9, 1], [0, 0, 9]], ["E", "F", "X"])
    >>> tree.path("E"), tree.path("X")
    (['E', 'E and 1 more', ''], ['X', ''])
    """
    names = [class_of(label) for label in labels]
    table = _checked(np.asarray(confusions, dtype=np.float64), names)
    _require_sizes(sizes, len(names))
    families = _families(table)
    n_classes = len(names)
    kept = _cut(families, n_classes, sizes) if sizes else families[n_classes:-1]
    return Tree(_parents(kept, names))


def _checked(table: npt.NDArray[np.float64], names: list[Any]) -> npt.NDArray[np.float64]:
    if table.shape != (len(names), len(names)) or len(set(names)) < len(names):
        raise KeslerError(
            f"confusions have the shape {table.shape} and there are {len(set(names))} different "
            "labels: give a square table, and one label for each of its rows"
        )
    if not names or not (np.isfinite(table) & (table >= 0)).all():
        raise KeslerError(
            "confusions must be counts of one class or more, finite and not below 0: give the "
            "number of rows of each target that were predicted to be each class"
        )
    return table


def _require_sizes(sizes: Sequence[int], n_classes: int) -> None:
    if sizes and any(a >= b for a, b in pairwise([1, *sizes, n_classes])):
        raise KeslerError(
            f"sizes={tuple(sizes)!r}: give numbers of groups that ascend, from 2 or more to less "
            f"than the {n_classes} classes"
        )


def _families(table: npt.NDArray[np.float64]) -> Families:
    """Return the classes of each cluster: those of one class, then those of each merge."""
    from scipy.cluster.hierarchy import average
    from scipy.spatial.distance import squareform

    found = [[i] for i in range(len(table))]
    if len(table) == 1:
        return found
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)
    distances = 1.0 - (shares + shares.T) / 2
    np.fill_diagonal(distances, 0.0)
    for one, other in average(squareform(distances, checks=False))[:, :2].astype(int).tolist():
        found.append(sorted(found[one] + found[other]))
    return found


def _cut(families: Families, n_classes: int, sizes: Sequence[int]) -> Families:
    """Return the clusters of more than one class into which each number of groups cuts all."""
    kept: Families = []
    for size in sizes:
        merged = families[: 2 * n_classes - size]
        tops = [f for f in merged if not any(set(f) < set(g) for g in merged)]
        kept.extend(f for f in tops if len(f) > 1 and f not in kept)
    return kept


def _parents(families: Families, names: list[Any]) -> list[tuple[Any, Any]]:
    """Return the parent of each class and of each family: the smallest family around it."""
    titles = {f"{names[f[0]]} and {len(f) - 1} more": set(f) for f in sorted(families, key=len)}
    members = {name: {i} for i, name in enumerate(names)} | titles
    return [
        (node, next((title for title, family in titles.items() if own < family), None))
        for node, own in members.items()
    ]

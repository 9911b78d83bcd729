"""Batches: rows on partitions as solvers take them, with classes by number."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler.classes import ClassTable
from kesler.distributed.scattered import Scattered
from kesler.distributed.shards import Description, Shard, require_alike
from kesler.errors import KeslerError
from kesler.estimators import inputs
from kesler.estimators.row_counts import class_weights
from kesler.estimators.softmax import summed

Floats = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of one partition as solvers take them.

    Parameters
    ----------
    X : array or CSR array
    labels : int64 array of shape (n_rows,)
        Classes by number.
    counts : float64 array of shape (n_rows,)
        What each row counts.
    """

    X: Any
    labels: npt.NDArray[np.int64]
    counts: Floats


@dataclass(frozen=True, eq=False)
class Batches:
    """The rows of all partitions that have any.

    Parameters
    ----------
    parts : Scattered
        Of batches.
    first_rows : list of int
        The number of the first row of each among all; the last one is that of all rows.
    classes : array of shape (n_classes,)
        Sorted.
    kind : Description
        Of all rows.
    total : float
        What all rows count together.
    """

    parts: Scattered
    first_rows: list[int]
    classes: npt.NDArray[Any]
    kind: Description
    total: float


def numbered(shards: Scattered, class_weight: Any) -> Batches:
    """Return the rows with classes by number, and what each row counts."""
    told = shards.collect(Shard.description)
    kind = require_alike(told)
    if kind.kind == "named":
        raise KeslerError(
            f"the features of {kind.source} are known by name: give numbers in columns, for "
            "instance what sklearn.feature_extraction.FeatureHasher makes of them"
        )
    filled = [number for number, each in enumerate(told) if each.n_rows]
    shards = shards.some(filled)
    table, n_rows = ClassTable(), dict[Any, int]()
    for each in shards.collect(_labels_of):
        table.encode(list(each))
        for label, count in each.items():
            n_rows[label] = n_rows.get(label, 0) + count
    classes = table.in_order
    counts = np.array([n_rows[label] for label in classes.tolist()])
    per_class = class_weights(classes, counts, class_weight)
    firsts = np.cumsum([0, *(told[number].n_rows for number in filled)]).tolist()
    numbered = shards.each(_batch, kind.n_features, classes.tolist(), per_class)
    return Batches(numbered, firsts, classes, kind, float(per_class @ counts))


def _labels_of(shard: Shard) -> dict[Any, int]:
    """Return how many rows each label has, as they come."""
    return dict(Counter(inputs.label_list(shard.y)))


def _batch(shard: Shard, n_features: int, classes: list[Any], per_class: Floats) -> Batch:
    """Return the rows of a shard with classes by number."""
    X = shard.widened(n_features).X
    X = summed(X) if sparse.issparse(X) else X
    _require_finite(X, shard.source)
    numbers = {label: number for number, label in enumerate(classes)}
    labels = np.array([numbers[each] for each in inputs.label_list(shard.y)], dtype=np.int64)
    return Batch(X, labels, per_class[labels])


def _require_finite(X: Any, source: str) -> None:
    stored: Any = X
    values = stored.data if sparse.issparse(X) else stored
    if not np.isfinite(values).all():
        raise KeslerError(
            f"{source} holds NaN or infinity: fill, drop or rescale such values before learning"
        )

"""Numba's types of the records that `kesler.state.records` declares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import from_dtype, types

from kesler.state.fields import Field, Given, declared_in
from kesler.state.forest import Forest
from kesler.state.records import LearnerRecord, SparseWeights, SupportVectors, TableWeights


def record_type(dtype: np.dtype[Any]) -> Any:
    """Return the Numba type of a record of named numbers."""
    return from_dtype(dtype)


def tuple_type(group: type, weights: type | None = None) -> Any:
    """Return the Numba type of a named tuple, with one of the records of weights."""
    kinds = {**declared_in(group), **({} if weights is None else {"weights": weights})}
    return types.BaseTuple.from_types([_type_of(kind) for kind in kinds.values()], group)


def _type_of(kind: Any) -> Any:
    if isinstance(kind, Field) and not kind.axes:
        return record_type(kind.dtype)
    if isinstance(kind, Field):
        return types.Array(from_dtype(np.dtype(kind.dtype)), len(kind.axes), "C")
    if isinstance(kind, Given):
        return types.Array(from_dtype(np.dtype(kind.dtype)), kind.n_axes, "C")
    return {int: types.int64, float: types.float64}.get(kind) or tuple_type(kind)


LEARNER_RECORD = tuple_type(LearnerRecord, TableWeights)
SPARSE_LEARNER_RECORD = tuple_type(LearnerRecord, SparseWeights)
KERNEL_LEARNER_RECORD = tuple_type(LearnerRecord, SupportVectors)
FOREST_LEARNER_RECORD = tuple_type(LearnerRecord, Forest)

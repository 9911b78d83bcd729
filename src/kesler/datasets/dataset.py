"""What a loader returns: rows of numbers, or records of text, with their answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Rows of numbers and their answers, in the order of their source.

    Parameters
    ----------
    X : float32 array or scipy.sparse.csr_array of shape (n_rows, n_features)
        The instances.
    y : array of shape (n_rows,) or (n_rows, n_targets)
        The class of each row (int64 or str), or its target where the set is one of ordinal
        regression (int64 or float64), or 1 for each of its labels and 0 else (int64, multilabel),
        or the rank of each class, 1 the best (int64, label ranking).
    name : str
        The name that `load` knows.
    n_train : int or None
        Rows before this one are the usual training part; None where there is no usual part.
    feature_names : tuple of str or None
        Names of the columns of `X`.
    target_names : tuple of str or None
        Names of the columns of `y`, where it has several.
    description : str
        Shape, origin and licence.
    """

    X: npt.NDArray[np.float32] | sparse.csr_array = field(repr=False)
    y: npt.NDArray[np.generic] = field(repr=False)
    name: str = ""
    n_train: int | None = None
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    target_names: tuple[str, ...] | None = field(default=None, repr=False)
    description: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class RecordDataset:
    """Records of text and their classes, in the order of their source.

    Parameters
    ----------
    records : list of dict of str to str
        The fields of each record, without those that hold or betray its class.
    y : list of str
        The class of each record.
    name : str
        The name that `load` knows.
    n_train : int or None
        Records before this one are the usual training part; None where there is no usual part.
    description : str
        Shape, origin and licence.
    """

    records: list[dict[str, str]] = field(repr=False)
    y: list[str] = field(repr=False)
    name: str = ""
    n_train: int | None = None
    description: str = field(default="", repr=False)

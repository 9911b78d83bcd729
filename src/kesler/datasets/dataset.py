"""The data sets that loaders return, and the parsers of their files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Rows of numbers and their targets, in the order of their source.

    Parameters
    ----------
    X : float32 array or scipy.sparse.csr_array of shape (n_rows, n_features)
        The instances; an object array of str for a table of text categories.
    y : array of shape (n_rows,) or (n_rows, n_targets)
        The class of each row (int64 or str); for ordinal regression, its target (int64 or float64);
        for multilabel sets, 1 for each of its labels and 0 otherwise (int64); for label ranking,
        the rank of each class, 1 being the best (int64).
    name : str
        The name for `load`.
    n_train : int or None
        Number of rows in the usual training part, which come first; None if there is none.
    feature_names : tuple of str or None
        Names of the columns of `X`.
    target_names : tuple of str or None
        Names of the columns of `y`, if it has several.
    description : str
        Shape, origin and licence.

    Examples
    --------
    >>> from kesler.datasets import load
    >>> data = load("letter")
    >>> data.X.shape, data.n_train, str(data.y[0])
    ((20000, 16), 16000, 'T')
    """

    X: npt.NDArray[Any] | sparse.csr_array = field(repr=False)
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
        The fields of each record, without those that contain or reveal its class.
    y : list of str
        The class of each record.
    name : str
        The name for `load`.
    n_train : int or None
        Number of records in the usual training part, which come first; None if there is none.
    description : str
        Shape, origin and licence.

    Examples
    --------
    >>> from kesler.datasets import load
    >>> data = load("banking77/stream")
    >>> len(data.records), data.y[0]
    (13083, 'lost_or_stolen_phone')
    >>> sorted(data.records[0])
    ['text']
    """

    records: list[dict[str, str]] = field(repr=False)
    y: list[str] = field(repr=False)
    name: str = ""
    n_train: int | None = None
    description: str = field(default="", repr=False)


Array = npt.NDArray[Any]
LETTERS = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))


def table(
    paths: Sequence[Path], n_train: int | None = None, feature_names: tuple[str, ...] | None = None
) -> Dataset:
    """Parse arrays X and y, or X_train, X_test, y_train and y_test; X may hold text.

    If y contains codes, an array `classes` holds their names. An array `feature_names`, or `names`,
    is optional.
    """
    with np.load(paths[0]) as file:
        y = _whole(file, "y")
        if "y_train" in file:
            n_train = len(file["y_train"])
        for key in {"feature_names", "names"} & set(file):
            feature_names = _strings(file[key])
        X = _whole(file, "X")
        return Dataset(
            X.astype(object if X.dtype.kind == "U" else np.float32),
            _names(file["classes"])[y] if "classes" in file else _wide(y),
            n_train=n_train,
            feature_names=feature_names,
        )


def isolet(paths: Sequence[Path], parts: tuple[str, ...]) -> Dataset:
    """Parse arrays X and y with the suffix of each part; X is multiplied by `scale`, y 0 to 25."""
    with np.load(paths[0]) as file:
        X = np.concatenate([file[f"X{part}"] for part in parts]) / file["scale"]
        y = np.concatenate([file[f"y{part}"] for part in parts])
        n_train = len(file[f"y{parts[0]}"]) if len(parts) > 1 else None
    return Dataset(X.astype(np.float32), LETTERS[y], n_train=n_train)


def multilabel(paths: Sequence[Path]) -> Dataset:
    """Parse X_train and X_test, dense or in CSR pieces, and Y_train and Y_test, packed in bits."""
    with np.load(paths[0]) as file:
        return Dataset(
            _features(file),
            _wide(np.concatenate([_bits(file, "Y_train"), _bits(file, "Y_test")])),
            n_train=int(file["Y_train_shape"][0]),
            target_names=_strings(file["labels"]),
        )


def ranking(paths: Sequence[Path], member: str) -> Dataset:
    """Parse arrays X, R (the rank of each class) and classes, prefixed with the set and `__`."""
    with np.load(paths[0]) as file:
        return Dataset(
            file[f"{member}__X"].astype(np.float32),
            _wide(file[f"{member}__R"]),
            target_names=_strings(file[f"{member}__classes"]),
        )


def records(paths: Sequence[Path], label: str, hidden: tuple[str, ...] = ()) -> RecordDataset:
    """Parse gzipped JSON lines: the field `label` holds the class, those in `hidden` reveal it.

    The training part is the first of two files, or the records whose field `split` is "train".
    """
    files = [_lines(path) for path in paths]
    rows = [row for file in files for row in file]
    n_train = len(files[0]) if len(files) > 1 else sum(r.get("split") == "train" for r in rows)
    dropped = {label, "split", *hidden}
    return RecordDataset(
        [{key: str(value) for key, value in row.items() if key not in dropped} for row in rows],
        [str(row[label]) for row in rows],
        n_train=n_train or None,
    )


def appearing(paths: Sequence[Path], label: str) -> RecordDataset:
    """Parse `records` in an order in which classes appear, one after another, in the first half.

    Each record has a random time after the first of its class; the order is the same each time.
    """
    parsed = records(paths, label)
    rng = np.random.default_rng(0)
    _, codes = np.unique(parsed.y, return_inverse=True)
    starts = rng.permutation(codes.max() + 1) / (2 * (codes.max() + 1))
    times = starts[codes] + (1 - starts[codes]) * rng.random(len(codes))
    order = np.argsort(times).tolist()
    return RecordDataset([parsed.records[i] for i in order], [parsed.y[i] for i in order])


def questions(paths: Sequence[Path]) -> RecordDataset:
    """Parse `records` without the first word of each text, which is the question's finer class."""
    parsed = records(paths, label="label")
    for record in parsed.records:
        record["text"] = record["text"].partition(" ")[2]
    return parsed


def _whole(file: Any, key: str) -> Array:
    if key in file:
        return np.asarray(file[key])
    return np.concatenate([file[f"{key}_train"], file[f"{key}_test"]])


def _wide(numbers: Array) -> Array:
    """Return integers as int64, others as float64: small types overflow in users' arithmetic."""
    return numbers.astype(np.int64 if numbers.dtype.kind in "iu" else np.float64)


def _names(classes: Array) -> Array:
    """Return the class names, as numbers if all of them are numbers."""
    return classes.astype(np.int64) if np.strings.isdigit(classes).all() else classes


def _strings(names: Array) -> tuple[str, ...]:
    return tuple(names.tolist())


def _features(file: Any) -> npt.NDArray[np.float32] | sparse.csr_array:
    if "X_train" in file:
        return _whole(file, "X").astype(np.float32)
    from scipy import sparse

    return sparse.csr_array(sparse.vstack([_csr(file, "X_train"), _csr(file, "X_test")]))


def _csr(file: Any, key: str) -> sparse.csr_array:
    from scipy import sparse

    pieces = tuple(file[f"{key}_{piece}"] for piece in ("data", "indices", "indptr"))
    return sparse.csr_array(pieces, shape=tuple(file[f"{key}_shape"]), dtype=np.float32)


def _bits(file: Any, key: str) -> npt.NDArray[np.uint8]:
    return np.unpackbits(file[key], axis=1, count=int(file[f"{key}_shape"][1]))


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]

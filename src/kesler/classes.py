"""The classes met so far: their labels, numbered in the order in which they appeared."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError

Label = Hashable


class ClassTable:
    """Labels to numbers and back.

    Parameters
    ----------
    labels : labels known from the start, in order.

    Examples
    --------
    >>> table = ClassTable()
    >>> table.encode(["spam", "work", "spam"]).tolist(), table.labels
    ([0, 1, 0], ['spam', 'work'])
    >>> table.encode([3])
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: label 3 (int) cannot be ordered among labels like 'spam' (str): use \
labels of one type
    """

    def __init__(self, labels: Iterable[Label] = ()) -> None:
        self.labels: list[Label] = list(labels)
        self._codes: dict[Label, int] = {label: code for code, label in enumerate(self.labels)}
        self._sorted: list[int] = []
        self._by_code: npt.NDArray[Any] = np.empty(0, dtype=object)

    def __len__(self) -> int:
        return len(self.labels)

    def encode(self, labels: Sequence[Label]) -> npt.NDArray[np.int32]:
        """Return the number of each label; new ones join, or none does if one is refused."""
        for label in self._new(labels):
            self._codes[label] = len(self.labels)
            self.labels.append(label)
        return np.array([self._codes[label] for label in labels], dtype=np.int32)

    def __contains__(self, label: object) -> bool:
        return _is_hashable(label) and label in self._codes

    def require_admissible(self, labels: Sequence[Label]) -> None:
        """Raise the sentence that `encode` would raise; change nothing."""
        self._new(labels)

    def code(self, label: Label) -> int | None:
        """Return the number of a label, or None if it has not been met."""
        return self._codes.get(label)

    @property
    def order(self) -> list[int]:
        """The numbers, sorted by label: the order of `classes_`."""
        if len(self._sorted) != len(self.labels):
            labels: list[Any] = self.labels
            self._sorted = sorted(range(len(labels)), key=lambda code: labels[code])
        return self._sorted

    @property
    def by_code(self) -> npt.NDArray[Any]:
        """The labels by number, as an array of their common type."""
        if len(self._by_code) != len(self.labels):
            self._by_code = label_array(self.labels)
        return self._by_code

    def forget_from(self, n_labels: int) -> None:
        """Take back the labels from number `n_labels` on."""
        for label in self.labels[n_labels:]:
            del self._codes[label]
        del self.labels[n_labels:]

    def _new(self, labels: Sequence[Label]) -> list[Label]:
        """Return the labels that are not known, each once, after checking that they fit in."""
        try:
            new = [_plain(label) for label in dict.fromkeys(labels) if label not in self._codes]
        except TypeError:
            unhashable = next(label for label in labels if not _is_hashable(label))
            raise KeslerError(
                f"label {unhashable!r} ({type(unhashable).__name__}) is not hashable: use numbers, "
                "text or tuples"
            ) from None
        for label in new:
            _require_comparable(label, self.labels[0] if self.labels else new[0])
        return new


def label_array(labels: Sequence[Label]) -> npt.NDArray[Any]:
    """Return labels as an array of their common type: numbers, text, or else objects."""
    if all(isinstance(label, (bool, int, float, str, bytes)) for label in labels):
        array = np.array(labels)
        if array.dtype.kind in "biufUS":
            return array
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _plain(label: Label) -> Label:
    """Return a NumPy scalar as the Python one that it equals."""
    return label.item() if isinstance(label, np.generic) else label


def _is_hashable(label: object) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def _require_comparable(label: Label, reference: Label) -> None:
    if label is None or (isinstance(label, float) and not math.isfinite(label)):
        raise KeslerError(f"label {label!r} is no class: leave out rows without a label")
    try:
        label < reference  # type: ignore[operator]  # noqa: B015
    except TypeError:
        raise KeslerError(
            f"label {label!r} ({type(label).__name__}) cannot be ordered among labels like "
            f"{reference!r} ({type(reference).__name__}): use labels of one type"
        ) from None

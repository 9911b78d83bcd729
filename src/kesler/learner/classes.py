"""The classes seen so far: their labels, numbered in the order in which they appeared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kesler.data.labels import NEW, Label, is_missing, plain, require_few_fractions
from kesler.errors import KeslerError

OnNewClass = Literal["register", "learn", "inherit", "unseen"]
"""What happens at the first instance of a class.

register : the class becomes known, without an update (Fink et al. 2006; Crammer and Singer 2003).
learn : there is an update too, from the initial weights.
inherit : there is an update too, from the weights of a virtual class, which takes part in every
    trial as one more wrong class and is never predicted.
unseen : for ratings by sub-experts: there is an update too, in which all sub-experts give the class
    the rating of every class that has not been seen (Mesterharm 2001, Section 6.2).
"""

# Types whose values can be ordered: numbers among numbers, text among text.
SIMPLE = (bool, int, float, str, bytes)


class ClassTable:
    """The labels of the classes, and their numbers.

    Parameters
    ----------
    labels : the labels known from the start, in the order of their numbers.
    n_virtual : the number of virtual classes, such as the threshold between relevant labels and
        others; they have the first numbers and no label, and are not shown to users.
    declared : all admissible labels, in their order; None for any, in sorted order.

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

    def __init__(
        self,
        labels: Iterable[Label] = (),
        n_virtual: int = 0,
        declared: Sequence[Label] | None = None,
    ) -> None:
        self.n_virtual = n_virtual
        self.declared = None if declared is None else list(declared)
        self.labels: list[Label] = list(labels)
        self._codes: dict[Label, int] = {
            label: code for code, label in enumerate(self.labels, start=n_virtual)
        }
        self._sorted: list[int] = []
        self._by_code: npt.NDArray[Any] = np.empty(0, dtype=object)

    def __len__(self) -> int:
        return self.n_virtual + len(self.labels)

    def encode(self, labels: Sequence[Label]) -> npt.NDArray[np.int32]:
        """Return the number of each label; new ones are added, or none if one is refused."""
        for label in self.unknown(labels):
            self._codes[label] = len(self)
            self.labels.append(label)
        return np.fromiter(map(self._codes.__getitem__, labels), np.int32, len(labels))

    def known(self, labels: Sequence[Label]) -> npt.NDArray[np.int32] | None:
        """Return the number of each label, or None if one is unknown."""
        try:
            return np.fromiter(map(self._codes.__getitem__, labels), np.int32, len(labels))
        except (KeyError, TypeError):  # new, or not hashable
            return None

    def numbers_with(self, labels: Sequence[Label]) -> npt.NDArray[np.int32]:
        """Return the number of each label, of a new one that which `encode` will give it.

        None is added: whoever adds a class provides the capacity for it as well.

        Examples
        --------
        >>> table = ClassTable()
        >>> table.encode(["a"]), table.numbers_with(["b", "a", "c", "b"]), table.labels
        (array([0], dtype=int32), array([1, 0, 2, 1], dtype=int32), ['a'])
        """
        known = self.known(labels)
        if known is not None:
            return known
        new = {label: len(self) + i for i, label in enumerate(self.unknown(labels))}
        numbers = (new[each] if each in new else self._codes[each] for each in labels)
        return np.fromiter(numbers, np.int32, len(labels))

    def __contains__(self, label: object) -> bool:
        return _is_hashable(label) and label in self._codes

    def count_with(self, labels: Sequence[Label]) -> int:
        """Return the number of classes including these labels, without adding them."""
        return self.n_virtual + len(self.labels) + len(self.unknown(labels))

    def require_admissible(self, labels: Sequence[Label]) -> None:
        """Raise the error that `encode` would raise, without adding labels."""
        self.unknown(labels)

    def code(self, label: Label) -> int | None:
        """Return the number of a label, or None if it is unknown."""
        try:
            return self._codes.get(label)
        except TypeError:  # not hashable
            return None

    @property
    def order(self) -> list[int]:
        """The numbers of the labels, in the order of `classes_`."""
        if len(self._sorted) != len(self.labels):
            labels: list[Any] = self.labels
            key = None if self.declared is None else self.declared.index
            self._sorted = [self._codes[label] for label in sorted(labels, key=key)]
        return self._sorted

    def ordered_with(self, new: Sequence[Label]) -> list[Label]:
        """Return the labels and these new ones in the order of `classes_`."""
        labels: list[Any] = [*self.labels, *new]
        return sorted(labels, key=None if self.declared is None else self.declared.index)

    @property
    def in_order(self) -> npt.NDArray[Any]:
        """The labels in their order, as an array of their common type: `classes_`."""
        found: npt.NDArray[Any] = self.by_code[[code - self.n_virtual for code in self.order]]
        return found

    @property
    def by_code(self) -> npt.NDArray[Any]:
        """The labels by number, without virtual classes, as an array of their common type."""
        if len(self._by_code) != len(self.labels):
            self._by_code = label_array(self.labels)
        return self._by_code

    def since(self, code: int) -> list[Label]:
        """Return the labels from a number on."""
        return self.labels[max(0, code - self.n_virtual) :]

    def rename(self, labels: Sequence[Label]) -> None:
        """Give the classes these labels, in the order of their numbers, as far as there are any.

        Raises
        ------
        KeslerError
            If labels are not all different and admissible; nothing has changed then.
        """
        renamed = [*labels[: len(self.labels)], *self.labels[len(labels) :]]
        table = ClassTable(n_virtual=self.n_virtual, declared=self.declared)
        if len(table.encode(renamed)) != len(table.labels):
            raise KeslerError(f"classes cannot be renamed to {renamed!r:.60}: one label is twice")
        self.labels, self._codes = table.labels, table._codes
        self._sorted, self._by_code = [], np.empty(0, dtype=object)

    def forget_from(self, code: int) -> None:
        """Remove the labels from a number on."""
        for label in self.since(code):
            del self._codes[label]
            self.labels.pop()

    def unknown(self, labels: Sequence[Label]) -> list[Label]:
        """Return the labels that are not known, each once.

        Raises
        ------
        KeslerError
            If `encode` would refuse one.
        """
        try:
            if self._codes.keys() >= {*labels}:
                return []
            new = [plain(label) for label in dict.fromkeys(labels) if label not in self._codes]
        except TypeError:
            unhashable = next(label for label in labels if not _is_hashable(label))
            raise KeslerError(
                f"label {unhashable!r} ({type(unhashable).__name__}) is not hashable: use numbers, "
                "text or tuples"
            ) from None
        if self.declared is not None:
            self._require_declared(new)
            return new
        if {*map(type, [*self.labels[:1], *new])} == {str}:
            return new  # texts are classes, and can be ordered
        require_few_fractions(new, self.labels)
        for label in new:
            _require_class(label)
            _require_order(label, self.labels[0] if self.labels else new[0])
        if not all(isinstance(label, SIMPLE) for label in new):
            self._require_sortable(new)
        return new

    def _require_declared(self, new: list[Label]) -> None:
        for label in new:
            if label not in (self.declared or ()):
                raise KeslerError(
                    f"label {label!r} is not in the order {self.declared}: pass an order of all "
                    "labels, from the lowest to the highest"
                )

    def _require_sortable(self, new: list[Label]) -> None:
        """Raise unless labels that can be ordered with the first can be sorted."""
        labels: list[Any] = [*self.labels, *new]
        try:
            sorted(labels)
        except TypeError as error:
            raise KeslerError(
                f"labels like {new[0]!r} cannot be ordered with each other ({error}): use labels "
                "of one type"
            ) from None


def label_array(labels: Sequence[Label]) -> npt.NDArray[Any]:
    """Return labels as an array of numbers or text, or of objects if that would change one."""
    if all(isinstance(label, SIMPLE) for label in labels):
        array = np.array(labels)
        if array.tolist() == list(labels):
            return array
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _is_hashable(label: object) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def _require_class(label: Any) -> None:
    if is_missing(label):
        raise KeslerError(f"label {label!r} is no class: leave out rows without a label")
    if label is NEW:
        raise KeslerError(
            "kesler.NEW stands for a class that has not been seen, and is no class itself: give "
            "the label of the row"
        )
    if isinstance(label, float) and math.isinf(label):
        raise KeslerError(
            f"Unknown label type: label {label!r} is no class: give the row a finite number or text"
        )


def _require_order(label: Any, reference: Any) -> None:
    if not _holds(lambda: label < reference or reference < label or label == reference):
        raise KeslerError(
            f"label {label!r} ({type(label).__name__}) cannot be ordered among labels like "
            f"{reference!r} ({type(reference).__name__}): use labels of one type"
        )


def _holds(comparison: Callable[[], Any]) -> bool:
    """Return whether a comparison is possible and true."""
    try:
        return bool(comparison())
    except (TypeError, ValueError, ArithmeticError):
        return False

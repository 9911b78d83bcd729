"""CodeBook: the code word of each class that is known or declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kesler.classes import Label
from kesler.decompositions.codes import (
    RANDOM,
    Code,
    default_bits,
    exhaustive_code,
    hadamard_code,
    most_bits,
    random_code,
    random_row,
    require_code,
)
from kesler.errors import KeslerError

FIXED = {"exhaustive": exhaustive_code, "hadamard": hadamard_code}
CLASSES_TO_COME = 64  # what random codes make bits for where no number of classes is declared


@dataclass(frozen=True)
class CodeBook:
    """The code word of each label; random codes may grow.

    Parameters
    ----------
    kind : "dense" or "sparse" of a code that can grow, else None.
    n_codes : how many words are drawn for a label that joins, of which the furthest is taken.
    random : what they are drawn from.
    labels : the labels that have words.
    code : int8 array of shape (n_labels, n_bits)
    """

    kind: str | None
    n_codes: int
    random: np.random.RandomState
    labels: tuple[Label, ...]
    code: Code

    @staticmethod
    def of(
        labels: Sequence[Label], code: Any, n_bits: int | None, n_codes: int, random_state: Any
    ) -> CodeBook:
        """Return the book of these labels; parameters are those of ErrorCorrectingCode."""
        random = check_random_state(random_state)
        _require_count("n_codes", n_codes)
        if not isinstance(code, str) or code in FIXED:
            words = _fixed_code(labels, code, n_bits)
            return CodeBook(None, n_codes, random, tuple(labels), words)
        if code not in RANDOM:
            known = ", ".join(repr(name) for name in (*RANDOM, *FIXED))
            raise KeslerError(f"code={code!r} is not known: choose one of {known}, or a table")
        if len(labels) < 2:
            width = default_bits(code, CLASSES_TO_COME) if n_bits is None else n_bits
            _require_count("n_bits", width)
            return CodeBook(code, n_codes, random, (), np.empty((0, width), dtype=np.int8))
        width = _random_width(code, len(labels), n_bits)
        words = random_code(code, len(labels), width, n_codes, random)
        return CodeBook(code, n_codes, random, tuple(labels), words)

    def including(self, labels: Sequence[Label]) -> CodeBook:
        """Return a book in which these labels have words too."""
        new = [label for label in labels if label not in self.labels]
        if not new:
            return self
        if self.kind is None:
            raise KeslerError(
                f"the label {new[0]!r} has no row in the code, which was made for "
                f"{list(self.labels)!r}: declare all classes, or choose code='dense'"
            )
        code = self.code
        for _ in new:
            code = np.vstack([code, random_row(self.kind, code, self.n_codes, self.random)])
        return replace(self, labels=(*self.labels, *new), code=code)

    def words(self, labels: Sequence[Label]) -> Code:
        """Return the words of these labels, one a row."""
        row = {label: number for number, label in enumerate(self.labels)}
        return self.code[[row[label] for label in labels]]


def _fixed_code(labels: Sequence[Label], code: Any, n_bits: int | None) -> Code:
    if n_bits is not None:
        raise KeslerError(
            f"n_bits={n_bits!r} is for codes that are drawn at random: leave it out, or choose "
            "code='dense' or 'sparse'"
        )
    if not labels:
        raise KeslerError(
            "this code has to know how many classes there will be: give partial_fit all of "
            "classes=, or choose code='dense'"
        )
    if not isinstance(code, str):
        return require_code(code, len(labels))
    if len(labels) < 2:
        raise KeslerError(f"code={code!r} needs two classes or more, not {list(labels)!r}")
    return FIXED[code](len(labels))


def _random_width(kind: str, n_classes: int, n_bits: int | None) -> int:
    if n_bits is None:
        return default_bits(kind, n_classes)
    _require_count("n_bits", n_bits)
    most = most_bits(kind, n_classes)
    if n_bits > most:
        raise KeslerError(
            f"n_bits={n_bits} is more than the {most} different bits that code={kind!r} has for "
            f"{n_classes} classes: ask for fewer, or leave it out"
        )
    return n_bits


def _require_count(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise KeslerError(f"{name}={value!r} must be an integer of 1 or more")

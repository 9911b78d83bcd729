"""Features are told apart by name or by position: how the entries of rows are put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kesler.readers.faults import BadRow
from kesler.rows import Rows, Vocabulary

LARGEST = float(np.finfo(np.float32).max)


@dataclass(slots=True)
class Names:
    """Features known by name, numbered by a vocabulary.

    Parameters
    ----------
    vocabulary : Vocabulary
        The names and their numbers.
    grow : bool
        True if new names join the vocabulary; False if they have numbers beyond it, or are left
        out where rows are dense.

    Examples
    --------
    >>> names = Names(Vocabulary.of(["price"]), grow=False)
    >>> names.gather([{"price": 2.0, "free": 1.0}]).indices.tolist()
    [0, 1]
    """

    vocabulary: Vocabulary
    grow: bool

    def gather(self, entries: Sequence[Mapping[str, float]], *, dense: bool = False) -> Rows:
        """Rows of consecutive entries {name: value}."""
        known = self.vocabulary.known if dense else self.vocabulary.numbered
        number = self.vocabulary.learnt if self.grow else known
        numbered = [number(entry) for entry in entries]
        return Rows.from_entries(numbered, len(self.vocabulary), dense=dense)


@dataclass(slots=True)
class Positions:
    """Features known by position; there are as many as the largest index seen so far says.

    Parameters
    ----------
    n_features : int
        Largest index seen so far, plus one.
    """

    n_features: int = 0

    def gather(self, entries: Sequence[Mapping[int, float]]) -> Rows:
        """Rows of consecutive entries {index: value}."""
        largest = max((max(entry) for entry in entries if entry), default=-1)
        self.n_features = max(self.n_features, largest + 1)
        return Rows.from_entries(entries, self.n_features)


def finite(entry: dict[Any, float]) -> dict[Any, float]:
    """Return an entry; raises BadRow if a value is NaN, infinite or too large for float32.

    Examples
    --------
    >>> finite({"price": float("nan")})
    Traceback (most recent call last):
    ...
    kesler.readers.faults.BadRow: feature 'price' is nan, not a finite number that float32 can hold
    """
    if not all(-LARGEST <= value <= LARGEST for value in entry.values()):
        name, value = next(pair for pair in entry.items() if not -LARGEST <= pair[1] <= LARGEST)
        raise BadRow(f"feature {name!r} is {value}, not a finite number that float32 can hold")
    return entry

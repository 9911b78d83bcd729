"""Columns: how scanners of tables number features, ahead of the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from kesler.entries import Entries
from kesler.readers.features import MOST_UNKNOWN, Names, Renumbering
from kesler.readers.records import Records
from kesler.rows import Rows


class Columns:
    """The features of a table by number: first its columns, then all others as they come.

    Parameters
    ----------
    names : Names
        The vocabulary, and whether it grows.
    records : Records
        How rows are read one by one; at least one has been.
    header : sequence of str
        The columns.
    label : str or None
        The column of the labels.

    Attributes
    ----------
    is_dense : bool
        Whether each row holds a number in each column, in the order of their numbers.
    takes_text : bool
        Whether a text in a column is a feature, and no other column can have the same one.
    of_header : int64 array
        The number of each column, -1 for that of the labels.
    """

    def __init__(
        self, names: Names, records: Records, header: Sequence[str], label: str | None
    ) -> None:
        features = [column for column in header if column != label]
        self.is_dense = records.columns is not None
        self._columns = list(features if records.columns is None else records.columns)
        self._names = names
        self._renumbering = Renumbering(names)
        # Names that hold "=" may be those of a text in another column.
        self.takes_text = not self.is_dense and not any("=" in name for name in features)
        self._begin()
        self.of_header = np.array([self._numbers.get(column, -1) for column in header])

    @property
    def n_columns(self) -> int:
        """How many columns hold features."""
        return len(self._columns)

    def numbers(self, features: Iterable[str]) -> list[int]:
        """Return the numbers of features."""
        return [self._number(feature) for feature in features]

    def name(self, number: int) -> str:
        """Return the feature of a number."""
        return self._numbered[number]

    def gathering(self, entries: Entries) -> Callable[[], Rows]:
        """Return what makes rows of entries numbered so."""
        if self.is_dense:
            values = entries.values.reshape(len(entries), len(self._columns))
            return partial(self._names.gather_table, self._columns, values)
        return partial(self._renumbering.rows, entries, self._numbered)

    def forgets(self) -> bool:
        """Forget all but the columns if much is kept that joins no vocabulary; say whether."""
        is_much = len(self._numbered) > MOST_UNKNOWN and not self._names.grow
        if is_much:
            self._begin()
        return is_much

    def _number(self, feature: str) -> int:
        number = self._numbers.setdefault(feature, len(self._numbered))
        if number == len(self._numbered):
            self._numbered.append(feature)
        return number

    def _begin(self) -> None:
        self._numbered = list(self._columns)
        self._numbers = {name: number for number, name in enumerate(self._numbered)}

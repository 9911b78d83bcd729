"""Scanners, which read many plain lines of a text format at once in compiled loops.

A loop refuses every line that is malformed or uses rare features of the format. The parser in
Python reads such a line; this parser defines the format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows
from kesler.data.sparse_rows import SparseRows
from kesler.readers.lines import Text, end_of_line, is_utf8, text_of, tokens_of
from kesler.readers.reader import Example, Refused, parse_label
from kesler.readers.stream import COSTS, NUMBER, TEXT

ROOM = 1 << 12  # initial capacity for rows and entries
MOST_LABELS = 1 << 16


class LineScanner(ABC):
    """A `Scanner` of texts of whole lines.

    A format defines how its lines are scanned (`_scanned`), how the features of a row that was read
    in Python are numbered (`_numbers`), and how entries are converted to rows (`_gathering`).

    Attributes
    ----------
    has_ended : bool
        Whether all lines have been read.
    """

    def __init__(self, parse_label: Callable[[str], Any] = parse_label) -> None:
        from kesler.compiled.readers import lexing

        self._lexing = lexing
        self._kind = lexing.ANYTHING
        self._texts = iter(list[tuple[int, Text]]())
        self._first_line = 1
        self._text = text_of(b"")
        self._is_utf8 = True
        self._at = np.zeros(5, dtype=np.int64)
        self._labels = list[Any]()
        self._label_of = Labels(parse_label)
        self._weights = np.empty(ROOM)
        self._indptr = np.zeros(2 * ROOM, dtype=np.int64)
        self._spans = np.empty((ROOM, 2), dtype=np.int64)
        self._indices = np.empty(ROOM, dtype=np.int32)
        self._values = np.empty(ROOM, dtype=np.float32)
        self.has_ended = False

    def expect(self, kind: str) -> None:
        """Set the kind of labels, as in `Admission`; lines with another kind are refused."""
        lexing = self._lexing
        kinds = {NUMBER: lexing.A_NUMBER, TEXT: lexing.TEXT, COSTS: lexing.COSTS}
        self._kind = kinds.get(kind, self._lexing.ANYTHING)

    @property
    def n_rows(self) -> int:
        """Number of rows in the run so far."""
        return len(self._labels)

    def open(self, pieces: Iterator[tuple[int, Text]]) -> None:
        """Set the texts to read: whole lines, with the number of the first line of each text."""
        self._texts = pieces

    def scan(self, n_rows: int) -> Refused | None:
        """Read until the run has `n_rows` rows or the texts end; stop at a refused line."""
        while self.n_rows < n_rows and self._has_text():
            self._reserve_rows(min(n_rows, self.n_rows + ROOM))
            stop = self._scanned(self._text, min(n_rows, len(self._weights)))
            self._take_labels()
            if stop == self._lexing.CROWDED:
                self._reserve_entries(2 * len(self._indices))
            elif stop == self._lexing.REFUSED:
                return self._refused()
        return None

    def extend(self, examples: Sequence[Example], places: Sequence[int | str]) -> None:
        """Append rows that were read in Python; where they are is not kept."""
        for label, entry, weight, *_ in examples:
            row, start = self.n_rows, int(self._at[self._lexing.ENTRY])
            end = start + len(entry)
            self._reserve_rows(row + 1)
            self._reserve_entries(end)
            self._indices[start:end] = self._numbers(list(entry))
            self._values[start:end] = list(entry.values())
            self._weights[row] = weight
            self._indptr[row + 1] = end
            self._at[self._lexing.ROW] = row + 1
            self._at[self._lexing.ENTRY] = end
            self._labels.append(label)

    def taken(self) -> tuple[list[Any], npt.NDArray[np.float64] | None, Callable[[], Rows]]:
        """Return the labels, the weights and a function for the rows of the run; begin another."""
        n_rows, n_entries = self.n_rows, int(self._at[self._lexing.ENTRY])
        entries = SparseRows(
            self._indptr[: n_rows + 1].copy(),
            self._indices[:n_entries].copy(),
            self._values[:n_entries].copy(),
        )
        labels, self._labels = self._labels, []
        weights = self._weights[:n_rows]
        self._at[self._lexing.ROW] = self._at[self._lexing.ENTRY] = 0
        return labels, None if (weights == 1).all() else weights.copy(), self._gathering(entries)

    @abstractmethod
    def _scanned(self, text: npt.NDArray[np.uint8], n_rows: int) -> int:
        """Scan lines in the compiled loop; return the reason why it stopped."""

    @abstractmethod
    def _numbers(self, features: list[Any]) -> Any:
        """Return the numbers of features, as the compiled loop numbers them."""

    @abstractmethod
    def _gathering(self, entries: SparseRows) -> Callable[[], Rows]:
        """Return a function that converts entries with these numbers to rows."""

    @property
    def _draft(self) -> Any:
        return self._lexing.Draft(
            self._indptr, self._indices, self._values, self._spans, self._weights
        )

    def _has_text(self) -> bool:
        """Return whether there is a line to read in this text or a later one."""
        while self._at[self._lexing.POSITION] == len(self._text):
            following = next(self._texts, None)
            if following is None:
                self.has_ended = True
                return False
            self._first_line, self._text = following
            self._is_utf8 = is_utf8(self._text)
            self._at[self._lexing.POSITION] = self._at[self._lexing.LINE] = 0
        return True

    def _take_labels(self) -> None:
        """Append the labels of the rows that were just scanned."""
        spans = self._spans[self.n_rows : self._at[self._lexing.ROW]]
        self._labels.extend(map(self._label_of.__getitem__, tokens_of(self._text, spans)))

    def _refused(self) -> Refused | None:
        """Return the next row and advance; None if the row is empty."""
        return Refused(self._line_number(), self._line())

    def _line_number(self) -> int:
        return self._first_line + int(self._at[self._lexing.LINE])

    def _line(self) -> bytes:
        """Return the next line and advance."""
        at, lexing = self._at, self._lexing
        start = int(at[lexing.POSITION])
        end = end_of_line(self._text, start)
        at[lexing.POSITION], at[lexing.LINE] = end, at[lexing.LINE] + 1
        return self._text[start:end].tobytes()

    def _reserve_rows(self, n_rows: int) -> None:
        if n_rows > len(self._weights):
            self._weights = _enlarged(self._weights, n_rows)
            self._indptr = _enlarged(self._indptr, 2 * len(self._weights))
            self._spans = _enlarged(self._spans, len(self._weights))

    def _reserve_entries(self, n_entries: int) -> None:
        self._indices = _enlarged(self._indices, n_entries)
        self._values = _enlarged(self._values, n_entries)


class Labels(dict[bytes, Any]):
    """The parsed labels, by their text."""

    def __init__(self, parse: Callable[[str], Any]) -> None:
        super().__init__()
        self._parse = parse

    def __missing__(self, token: bytes) -> Any:
        if len(self) == MOST_LABELS:
            self.clear()
        label = self[token] = self._parse(token.decode()) if token else None
        return label


def _enlarged(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """Return the array if it has the given length, or else a longer copy."""
    capacity = max(1, len(array))
    while capacity < length:
        capacity *= 2
    if capacity == len(array):
        return array
    enlarged = np.zeros((capacity, *array.shape[1:]), dtype=array.dtype)
    enlarged[: len(array)] = array
    return enlarged

"""The svmlight (LIBSVM) format: one row per line, ``label index:value index:value ...``."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.rows import MAX_FEATURES, Rows
from kesler.data.sparse_rows import SparseRows
from kesler.readers.features import Density, Positions, finite
from kesler.readers.lines import Lines, decode
from kesler.readers.reader import BadRow, Example, Reader, Scanning, parse_label
from kesler.readers.scanner import LineScanner

PAIR = re.compile(r"(?:[0-9]+|qid):\S+")
FEATURE = re.compile(r"-?[0-9]+:")


def svmlight_reader(lines: Lines, width: int | None) -> Reader:
    """Read svmlight (LIBSVM) text, a label and index:value pairs.

    Indices are used as written, whether they begin at 0 or 1. Text after ``#`` is a comment,
    ``qid:`` is ignored, and a line that begins with ``index:value`` is a row without a label.
    """
    rows = ((number, line) for number, line in lines if line.partition(b"#")[0].strip())
    positions = Positions()
    scanning = Scanning(lines, partial(SvmlightScanner, positions))
    filled = Density(width, None).filled
    return Reader("line", rows, parse_row, positions.gather, None, scanning, filled)


def begins_svmlight(line: str) -> bool:
    """Return whether a first line is svmlight: a label, then only ``index:value`` pairs."""
    pairs = line.partition("#")[0].split()[1:]
    return bool(pairs) and all(PAIR.fullmatch(pair) for pair in pairs)


class SvmlightScanner(LineScanner):
    """A scanner of svmlight lines.

    Parameters
    ----------
    positions : Positions
        Counts the features.
    """

    def __init__(self, positions: Positions) -> None:
        super().__init__()
        from kesler.compiled.readers.svmlight import scan_svmlight

        self._scan = scan_svmlight
        self._positions = positions
        self._seen = np.empty(0, dtype=np.int64)

    def _scanned(self, text: npt.NDArray[np.uint8], n_rows: int) -> int:
        if len(self._seen) < 2 * len(self._indices):
            self._seen = np.zeros(2 * len(self._indices), dtype=np.int64)
        stop: int = self._scan(
            text, self._is_utf8, n_rows, self._kind, self._at, self._draft, self._seen
        )
        return stop

    def _numbers(self, features: list[Any]) -> list[Any]:
        return features

    def _gathering(self, entries: SparseRows) -> Callable[[], Rows]:
        return partial(self._positions.rows, entries)


def parse_row(line: bytes) -> Example:
    """Parse one line.

    Examples
    --------
    >>> parse_row(b"+1 3:0.5 7:2 # a comment")
    Example(label=1, entry={3: 0.5, 7: 2.0}, weight=1.0, \
id=None, misfits=None)
    """
    label, *tokens = decode(line).partition("#")[0].split() or [""]
    if not label:
        return Example(None, {})
    if FEATURE.match(label):
        return Example(None, _entry([label, *tokens]))
    if tokens and tokens[0].startswith("qid:"):
        del tokens[0]
    return Example(parse_label(label), _entry(tokens))


def _entry(tokens: list[str]) -> dict[int, float]:
    if "_" in "".join(tokens):
        raise BadRow("a feature holds '_', which Python takes in numbers and svmlight does not")
    try:
        # One comprehension for all tokens, since reading spends most of its time here.
        entry = {int(index): float(value) for index, value in [t.split(":") for t in tokens]}
    except ValueError:
        raise BadRow(f"{_fault(tokens)!r} is not index:value") from None
    if len(entry) < len(tokens):
        raise BadRow("an index stands twice")
    if entry and not 0 <= min(entry) <= max(entry) < MAX_FEATURES:
        raise BadRow(f"an index is not from 0 to {MAX_FEATURES - 1}")
    return finite(entry)


def _fault(tokens: list[str]) -> str:
    for token in tokens:
        index, _, value = token.partition(":")
        try:
            int(index), float(value)
        except ValueError:
            break
    return token

"""Vowpal Wabbit's text format: ``label [importance] ['tag]|namespace[:scale] name[:value] ...``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.entries import Entries
from kesler.readers.faults import BadRow
from kesler.readers.features import LARGEST, MOST_UNKNOWN, Names, Renumbering, finite
from kesler.readers.labels import parse_label, parse_number
from kesler.readers.lines import Lines, decode
from kesler.readers.name_table import NameTable
from kesler.readers.reader import Example, Reader, Scanning
from kesler.readers.scanner import LineScanner
from kesler.rows import Rows


def vw_reader(lines: Lines, names: Names) -> Reader:
    """Read Vowpal Wabbit rows, their features named ``namespace^name``.

    A feature that stands twice counts twice. As in Vowpal Wabbit, a token that touches the first
    ``|`` is a tag, not a label.
    """
    scanning = Scanning(lines, partial(VwScanner, names))
    return Reader("line", lines.filled(), parse_row, names.gather, names.vocabulary, scanning)


class VwScanner(LineScanner):
    """A scanner of Vowpal Wabbit lines.

    Parameters
    ----------
    names : Names
        Numbers the features.
    """

    def __init__(self, names: Names) -> None:
        super().__init__()
        from kesler.compiled.vw import scan_vw

        self._scan = scan_vw
        self._names = names
        self._tokens = np.empty((0, 6), dtype=np.int64)
        self._row_values = np.empty(0)
        self._renumbering = Renumbering(names)
        self._begin()

    def _scanned(self, text: npt.NDArray[np.uint8], n_rows: int) -> int:
        if len(self._tokens) < len(self._indices):
            self._tokens = np.empty((len(self._indices), 6), dtype=np.int64)
            self._row_values = np.empty(len(self._indices))
        while True:
            arguments = text, self._is_utf8, n_rows, self._kind, self._at, self._draft
            stop: int = self._scan(*arguments, self._tokens, self._row_values, self._table.arrays)
            if stop != self._lexing.NAMELESS:
                return stop
            self._table.grow()

    def _numbers(self, features: list[Any]) -> npt.NDArray[np.int32]:
        return self._table.numbers(features)

    def _gathering(self, entries: Entries) -> Callable[[], Rows]:
        names = self._table.names()
        if len(names) - self._n_known > MOST_UNKNOWN and not self._names.grow:
            self._begin()
        return partial(self._renumbering.rows, entries, names)

    def _begin(self) -> None:
        """Begin a table with the names of the vocabulary, up to one that can't stand in a line.

        Most names then have the same number in both.
        """
        self._table = NameTable()
        known = list(takewhile(_can_be_written, self._names.vocabulary.names))
        self._n_known = len(known)
        self._table.numbers(known)


def _can_be_written(name: str) -> bool:
    return "^" in name and "\n" not in name


def parse_row(line: bytes) -> Example:
    """Read one line.

    Examples
    --------
    >>> parse_row(b"spam 2 'mail7|body:0.5 free win:3 |from bob")
    Example(label='spam', entry={'body^free': 0.5, 'body^win': 1.5, 'from^bob': 1.0}, weight=2.0)
    """
    tokens, entry = parse_line(line)
    if not tokens:
        return Example(None, entry)
    label, *importance = tokens
    if len(importance) > 1:
        raise BadRow(f"{' '.join(tokens)!r} holds more than a label, an importance and a tag")
    return Example(parse_label(label), entry, _weight(*importance))


def parse_line(line: bytes) -> tuple[list[str], dict[str, float]]:
    """Return what stands before the first ``|`` of a line, without a tag, and its features.

    Examples
    --------
    >>> parse_line(b"shared | a b:2 a")
    (['shared'], {'^a': 2.0, '^b': 2.0})
    """
    head, *namespaces = decode(line).split("|")
    if not namespaces:
        raise BadRow("there is no '|' before the features")
    tokens = head.split()
    if tokens and (tokens[-1].startswith("'") or not head[-1].isspace()):
        del tokens[-1]
    entry: dict[str, float] = defaultdict(float)
    for namespace in namespaces:
        for name, value in _features(namespace):
            entry[name] += value
    return tokens, finite(dict(entry))


def _weight(token: str = "1") -> float:
    weight = parse_number(token)
    if weight is None or not 0 <= weight <= LARGEST:
        raise BadRow(f"the importance {token!r} is not a finite number from 0 on")
    return weight


def _features(namespace: str) -> Iterator[tuple[str, float]]:
    tokens = namespace.split()
    anonymous = not tokens or namespace[0].isspace()
    prefix, scale = ("", 1.0) if anonymous else _named_value(tokens.pop(0))
    for token in tokens:
        name, value = _named_value(token)
        yield f"{prefix}^{name}", scale * value


def _named_value(token: str) -> tuple[str, float]:
    name, colon, value = token.partition(":")
    number = parse_number(value) if colon else 1.0
    if not name or number is None:
        raise BadRow(f"{token!r} is not name or name:value")
    return name, number

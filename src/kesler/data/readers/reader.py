"""What a format is to a stream, how its labels and numbers are read.

And what is wrong with a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows, Vocabulary
from kesler.errors import KeslerError


class BadRow(Exception):
    """What is wrong with one row; the stream says where the row stands and what to do."""


@contextmanager
def readable(source: str, kind: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn the errors of a library that can't read a source into one sentence.

    Parameters
    ----------
    source : str
        What the sentence calls the source.
    kind : str
        What it was to be read as.
    *errors : exception types
        What the library raises.

    Examples
    --------
    >>> with readable("cut.npz", "a .npz file", EOFError):
    ...     raise EOFError("no more data")
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: cut.npz can't be read as a .npz file (no more data): if it is cut \
short or damaged, fetch or write it again
    """
    try:
        yield
    except KeslerError:
        raise
    except errors as error:
        raise KeslerError(
            f"{source} can't be read as {kind} ({error}): "
            "if it is cut short or damaged, fetch or write it again"
        ) from error


def parse_number(token: str) -> float | None:
    """Read a token as a number, NaN and infinity included; None if it isn't one.

    Stricter than ``float``, which takes ``1_000`` and the digits of every script for numbers.

    Examples
    --------
    >>> parse_number("-1e3"), parse_number("1_000")
    (-1000.0, None)
    """
    if "_" in token or not token.isascii():
        return None
    try:
        return float(token)
    except ValueError:
        return None


def parse_label(token: str) -> str | int | float:
    """Read the label in a format of numbers: an integer, another finite number, or else the token.

    Parameters
    ----------
    token : str
        As it is written, white space around it allowed.

    Examples
    --------
    >>> parse_label("+1"), parse_label("2.5"), parse_label(" spam "), parse_label("1_0")
    (1, 2.5, 'spam', '1_0')
    """
    token = token.strip()
    number = parse_number(token)
    if number is None or not math.isfinite(number):
        return token
    try:
        return int(token)
    except ValueError:
        return number


def require_label(label: Any, required: bool) -> None:
    """Raise BadRow if a label can't name a class, or is missing although required."""
    if label is None and required:
        raise BadRow("there is no label (only prediction can do without)")
    if not isinstance(label, str | int | float | None):
        raise BadRow(f"the label is a {type(label).__name__}, not a string or a number")
    if isinstance(label, float) and not math.isfinite(label):
        raise BadRow(f"the label is {label}, which names no class")


class Example(NamedTuple):
    """One row as its format gives it, before its features are numbered.

    Parameters
    ----------
    label : str, int, float, bool or None
        Its class; None if the row has none.
    entry : Any
        Its features, in whatever form the reader's `gather` takes: {name: value} or
        {index: value}, or the row's number in an array.
    weight : float
        Its importance.
    """

    label: Any
    entry: Any
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Reader:
    """A format's way through one source.

    Parameters
    ----------
    unit : str
        What its rows are counted in: line, row or message.
    rows : iterable of (place, raw row)
        The rows as they stand, each with its number (or path) in the source.
    parse : callable (raw row) -> Example
        Reads one row; raises BadRow if it can't be read.
    gather : callable (entries) -> Rows
        Puts the entries of consecutive rows together.
    vocabulary : Vocabulary or None
        The names of the features; None if they are positions.
    scanning : Scanning or None
        The same way for many rows at once, if there is one.
    """

    unit: str
    rows: Iterable[tuple[int | str, Any]]
    parse: Callable[[Any], Example]
    gather: Callable[[Sequence[Any]], Rows]
    vocabulary: Vocabulary | None = None
    scanning: Scanning | None = None


class Scanning(NamedTuple):
    """How rows are read many at once.

    Parameters
    ----------
    pieces : Pieces
        Where the rows of the reader come from.
    scanner : callable () -> Scanner
        Makes what reads them; loads what that needs.
    """

    pieces: Pieces
    scanner: Callable[[], Scanner]


class Pieces(Protocol):
    """A source that is read row by row, and from any row on in pieces."""

    @property
    def is_piped(self) -> bool:
        """Whether the source may have more to say at any time."""
        ...

    @property
    def is_long(self) -> bool:
        """Whether so much has been read row by row that reading many at once is worth its start."""
        ...

    def chunks(self) -> Generator[tuple[int, Any], None, None]:
        """All that has not been read yet, each piece with the place of its first row."""
        ...


class Refused(NamedTuple):
    """A row that is not plain.

    Parameters
    ----------
    place : int
        Where it stands in the source.
    row : Any
        The row as the parser of its format takes it.
    """

    place: int
    row: Any


class Scanner(Protocol):
    """A way through pieces of a source, one run of rows after the other."""

    @property
    def has_ended(self) -> bool:
        """Whether all pieces have been read."""
        ...

    @property
    def n_rows(self) -> int:
        """How many rows there are in the run so far."""
        ...

    def expect(self, kind: str) -> None:
        """Say what labels are, as `Admission` has it; rows whose label is not are refused."""
        ...

    def open(self, pieces: Iterator[tuple[int, Any]]) -> None:
        """Read these pieces, as `Pieces` yields them."""
        ...

    def scan(self, n_rows: int) -> Refused | None:
        """Read until the run has so many rows or the pieces end; stop at a row that is refused."""
        ...

    def extend(self, examples: Sequence[Example]) -> None:
        """Append rows that were read in Python."""
        ...

    def taken(self) -> tuple[list[Any], npt.NDArray[np.float64] | None, Callable[[], Rows]]:
        """Return the run, its labels, weights and what makes rows of it, and begin another."""
        ...

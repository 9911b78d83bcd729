"""The interface between formats and streams, and the parsing of labels and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows, Vocabulary
from kesler.errors import KeslerError

Piece = tuple[Any, Rows]  # rows, with the run that they come from


class BadRow(Exception):
    """An error in one row; the stream adds the location of the row and a remedy.

    Attributes
    ----------
    label : Any
        The label of the row; None if it is unknown.
    """

    def __init__(self, said: str, label: Any = None) -> None:
        super().__init__(said)
        self.label = label


class Unlabelled(BadRow):
    """A row without a label where labels are required, which is left out."""


@contextmanager
def readable(source: str, kind: str, *errors: type[Exception]) -> Iterator[None]:
    """Convert the errors of a library that cannot read a source to KeslerError.

    Parameters
    ----------
    source : str
        The name of the source in the message.
    kind : str
        The expected kind of content.
    *errors : exception types
        The errors that the library raises.

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
    """Parse a token as a number, including NaN and infinity; return None if it is not a number.

    This is stricter than ``float``, which accepts ``1_000`` and the digits of every script.

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
    """Parse a label as an integer or another finite number; return the text if it is neither.

    Parameters
    ----------
    token : str
        The label as written; surrounding white space is ignored.

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
    """Raise BadRow if a label cannot name a class, Unlabelled if it is missing and required."""
    if label is None and required:
        raise Unlabelled("there is no label")
    if not isinstance(label, str | int | float | dict | None):
        raise BadRow(f"the label is a {type(label).__name__}, not a string or a number")
    if isinstance(label, float) and not math.isfinite(label):
        raise BadRow(f"the label is {label}, which names no class")


class Origin(NamedTuple):
    """Where a row comes from.

    Parameters
    ----------
    number : int
        Its number among the rows of its source, from 1, bad ones included.
    place : int or str
        Its line, row or path in the source, as in messages.
    id : Any
        What identifies it for its owner, such as the cell of a column; None if nothing does.
    """

    number: int
    place: int | str
    id: Any = None


class Example(NamedTuple):
    """One row as parsed, before its features are numbered.

    Parameters
    ----------
    label : str, int, float, bool, dict or None
        Its class, or the cost of each class; None if the row has none.
    entry : Any
        Its features, in the form that the reader's `gather` takes: {name: value} or
        {index: value}, or the row's number in an array.
    weight : float
        Its importance.
    id : Any
        What identifies it for its owner, if the source says so.
    misfits : mapping of str to str, or None
        The cells that count as missing since they are no numbers, by their columns.
    """

    label: Any
    entry: Any
    weight: float = 1.0
    id: Any = None
    misfits: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """The functions with which a stream reads one source in one format.

    Parameters
    ----------
    unit : str
        The unit in which its rows are counted: line, row or message.
    rows : iterable of (place, raw row)
        The raw rows, each with its number (or path) in the source.
    parse : callable (raw row) -> Example
        Parses one row; raises BadRow if it is unreadable.
    gather : callable (entries) -> Rows
        Converts the entries of consecutive rows to rows.
    vocabulary : Vocabulary or None
        The names of the features; None if they are positions.
    scanning : Scanning or None
        How many rows are read at once, None if that is not possible.
    filled : callable (iterable of (run, rows)) -> iterator of (run, rows)
        Adds the zeros that rows of measurements leave out.
    """

    unit: str
    rows: Iterable[tuple[int | str, Any]]
    parse: Callable[[Any], Example]
    gather: Callable[[Sequence[Any]], Rows]
    vocabulary: Vocabulary | None = None
    scanning: Scanning | None = None
    filled: Callable[[Iterable[Piece]], Iterator[Piece]] = iter


class Scanning(NamedTuple):
    """How many rows are read at once.

    Parameters
    ----------
    pieces : Pieces
        The source of the rows of the reader.
    scanner : callable () -> Scanner
        Creates the scanner, and loads the code that it requires.
    """

    pieces: Pieces
    scanner: Callable[[], Scanner]


LASTING = 4  # pieces that are valid at once, as their buffers are used in turn


class Pieces(Protocol):
    """A source that is read row by row at first, and in pieces from any row on."""

    @property
    def is_piped(self) -> bool:
        """Whether more data may arrive at any time."""
        ...

    @property
    def is_long(self) -> bool:
        """Whether enough has been read row by row to justify loading a scanner."""
        ...

    @property
    def n_bytes(self) -> int:
        """Number of bytes of text that have been read; 0 if rows are no lines."""
        ...

    def chunks(self) -> Generator[tuple[int, Any], None, None]:
        """Yield all unread pieces, each with the place of its first row."""
        ...


class Refused(NamedTuple):
    """A row that a scanner leaves to the parser.

    Parameters
    ----------
    place : int or str
        Its number in the source, or where else it is.
    row : Any
        The row in the form that the parser of its format takes.
    """

    place: int | str
    row: Any


class Scanner(Protocol):
    """A reader of the pieces of a source, one run of rows after the other."""

    @property
    def has_ended(self) -> bool:
        """Whether all pieces have been read."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of rows in the run so far."""
        ...

    def expect(self, kind: str) -> None:
        """Set the kind of labels, as in `Admission`; rows with another kind are refused."""
        ...

    def open(self, pieces: Iterator[tuple[int, Any]]) -> None:
        """Set the pieces to read, as `Pieces` yields them."""
        ...

    def scan(self, n_rows: int) -> Refused | None:
        """Read until the run has `n_rows` rows or the pieces end; stop at a refused row."""
        ...

    def extend(self, examples: Sequence[Example], places: Sequence[int | str]) -> None:
        """Append rows that were read in Python, and where they are."""
        ...

    def taken(self) -> tuple[list[Any], npt.NDArray[np.float64] | None, Callable[[], Rows]]:
        """Return the labels, the weights and a function for the rows of the run; begin another."""
        ...

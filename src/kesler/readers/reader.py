"""What a format is to a stream: where its rows stand, how one is read, how many make a block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kesler.rows import Rows, Vocabulary


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
    """

    unit: str
    rows: Iterable[tuple[int | str, Any]]
    parse: Callable[[Any], Example]
    gather: Callable[[Sequence[Any]], Rows]
    vocabulary: Vocabulary | None = None

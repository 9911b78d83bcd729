"""Faults: what is wrong with one row, or with a whole source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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

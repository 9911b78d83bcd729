"""The exception that Kesler raises for errors that a user can correct, and its warnings."""

from __future__ import annotations

from numbers import Integral
from typing import Any


class KeslerError(ValueError):
    """Exception for invalid input, parameters or files.

    Its message is one sentence that says what was wrong, where, and what to do. It derives from
    ``ValueError``, as scikit-learn expects; scikit-learn's own validation raises its own errors.
    The command line prints the message and exits with code 2.

    Examples
    --------
    >>> from kesler.errors import KeslerError
    >>> raise KeslerError("row 3 holds NaN: fill or drop missing values")
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: row 3 holds NaN: fill or drop missing values
    """


def require_count(name: str, value: Any, what: str) -> int:
    """Return how many are asked for; raise unless it is an integer of 1 or more.

    Examples
    --------
    >>> require_count("n", 3, "the number of labels")
    3
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise KeslerError(f"{name}={value!r}: give {what}, 1 or more")
    return int(value)


class MismatchError(KeslerError):
    """A cell that its column cannot hold.

    Parameters
    ----------
    sentence : str
        What was wrong, where, and what to do.
    said : str
        What was wrong.
    row : int
        The number of its row in the table, from 0.
    """

    def __init__(self, sentence: str, said: str, row: int) -> None:
        super().__init__(sentence, said, row)
        self.said = said
        self.row = row

    def __str__(self) -> str:
        return str(self.args[0])


class MismatchWarning(UserWarning):
    """A cell does not fit its column and counts as missing, or a setting does not fit labels."""


class ReadingWarning(UserWarning):
    """A file was read in a way that was found in it, and that may be wrong."""

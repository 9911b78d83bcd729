"""Interrupts by Ctrl-C: postponed while rows are learnt, so that they are learnt whole."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from signal import SIGINT
from types import FrameType
from typing import Any

signals: Any = sys.modules["_signal"]
"""The functions beneath the module `signal`, which converts their results for 4 us."""

FIRST_ROWS = 128
"""Number of rows of the first piece."""
LONGEST = 0.05
"""The duration that pieces approach, in seconds: an interrupt waits for the end of a piece."""
GROWTH = 16.0
"""The largest ratio of the lengths of two pieces that follow each other."""


class Postponed:
    """Context in which an interrupt of the main thread waits for the end of the context.

    In other threads, which Python does not interrupt, it does nothing; nor where SIGINT is ignored
    or handled outside of Python.

    Examples
    --------
    >>> import signal
    >>> steps = []
    >>> try:
    ...     with Postponed():
    ...         signal.raise_signal(signal.SIGINT)
    ...         steps.append("whole")
    ... except KeyboardInterrupt:
    ...     steps.append("interrupted")
    >>> steps
    ['whole', 'interrupted']
    """

    __slots__ = ("_handler", "_noted")

    def __enter__(self) -> None:
        self._noted: tuple[int, FrameType | None] | None = None
        self._handler: Any = None
        handler = signals.getsignal(SIGINT)
        if callable(handler):
            try:
                signals.signal(SIGINT, self._note)
            except ValueError:  # in another thread than the main one
                return
            self._handler = handler

    def __exit__(self, *error: object) -> None:
        if self._handler is None:
            return
        signals.signal(SIGINT, self._handler)
        if self._noted is not None:
            self._handler(*self._noted)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = number, frame


def pieces_of(n_rows: int, most: int | None = None, *, first: int = FIRST_ROWS) -> Iterator[slice]:
    """Yield consecutive slices of the rows, so that each takes the caller about `LONGEST` seconds.

    They have at most `most` rows, if it is given; the first has `first`.

    Examples
    --------
    >>> [(piece.start, piece.stop) for piece in pieces_of(300)]
    [(0, 128), (128, 300)]
    """
    most = most or n_rows
    start, length = 0, first
    while start < n_rows:
        stop = min(n_rows, start + min(length, most))
        began = time.perf_counter()
        yield slice(start, stop)
        seconds = max(time.perf_counter() - began, 1e-9)
        start, length = stop, max(1, int((stop - start) * min(GROWTH, LONGEST / seconds)))

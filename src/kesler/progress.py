"""Progress of long computations: one line on a terminal, and records of `logging`.

The line lists what runs at the moment, from the outside to the inside, and one thread rewrites it.
Records have the name "kesler": at level INFO for computations of two seconds or more, at level
DEBUG for shorter ones.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TextIO, TypeVar

LOGGER = logging.getLogger("kesler")

PAUSE = 0.25  # seconds between two versions of the line
PATIENCE = 0.5  # seconds until a computation is listed
LONG = 2.0  # seconds from which on a computation has a record at level INFO
BETWEEN_RECORDS = 10.0  # seconds between the records of one computation
NOTEBOOK = "ZMQInteractiveShell"  # IPython's shell where output is shown in a browser

Item = TypeVar("Item")

_is_wanted: bool | None = None


def show_progress(wanted: bool | None) -> None:
    """Choose whether the progress of long computations is printed to standard error.

    Parameters
    ----------
    wanted : bool or None
        True prints a line wherever standard error goes, False never prints it. None, the initial
        value, prints it on terminals and in notebooks only.

    Notes
    -----
    Records of `logging` under the name "kesler" do not depend on it:
    ``logging.basicConfig(level="INFO")`` prints them.

    Examples
    --------
    >>> import kesler
    >>> kesler.show_progress(False)
    >>> kesler.show_progress(None)
    """
    global _is_wanted
    _is_wanted = wanted


def is_shown() -> bool:
    """Return whether the line is printed."""
    if _is_wanted is not None:
        return _is_wanted
    return bool(sys.stderr) and (sys.stderr.isatty() or _is_notebook())


def _is_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == NOTEBOOK


@contextmanager
def logged(handler: logging.Handler) -> Iterator[None]:
    """Give a handler the records of level INFO and above, within the context."""
    level = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(min(LOGGER.getEffectiveLevel(), logging.INFO))
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)


class Task:
    """A computation in progress.

    Parameters
    ----------
    name : what is computed.
    unit : the plural of what is counted, "" if nothing is.
    total : how many of them there are, or at most, if there is a goal; None if that is unknown.
    goal : the gap at which the computation ends, None if it ends at the total.
    """

    def __init__(
        self, name: str, unit: str = "", total: int | None = None, goal: float | None = None
    ) -> None:
        self.name, self.unit, self.total, self.goal = name, unit, total, goal
        self.begun = self.noted = time.monotonic()
        self._done, self._gap, self._share = 0, math.nan, math.nan
        self._first: tuple[float, float] | None = None

    def report(self, done: int, gap: float = math.nan, share: float = math.nan) -> None:
        """Note the progress so far.

        Parameters
        ----------
        done : number of units done.
        gap : distance from the solution, in the units of the goal.
        share : how much of the whole is done, from 0 to 1, where the total is unknown.
        """
        self._done, self._gap, self._share = done, gap, share
        if self._first is None and gap > 0:
            self._first = time.monotonic(), gap

    def count(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items; those that have been dealt with are counted."""
        for n, item in enumerate(items, start=1):
            yield item
            self.report(n)

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.begun

    def seconds_left(self) -> float:
        """Return an estimate of the seconds left, NaN if there is nothing to base it on.

        Counts are assumed to grow linearly, gaps to shrink exponentially.
        """
        done = self._done / self.total if self.total else self._share
        by_count = self.seconds * (1 - done) / done if done > 0 else math.nan
        return min((x for x in (by_count, self._left_by_gap()) if x >= 0), default=math.nan)

    def _left_by_gap(self) -> float:
        if self._first is None or self.goal is None or not 0 < self._gap < self._first[1]:
            return math.nan
        begun, first = self._first
        pace = (time.monotonic() - begun) / math.log(first / self._gap)
        return pace * math.log(max(1.0, self._gap / self.goal)) if self.goal > 0 else math.nan

    def __str__(self) -> str:
        parts = [self.name]
        if self._done:
            parts.append(f"{self._done:,}{self._of_total()} {self.unit}")
        if math.isfinite(self._gap):
            parts.append(f"gap {self._gap:.1e}")
        return ", ".join([*parts, duration(self.seconds)])

    def _of_total(self) -> str:
        if self.total is None:
            return ""
        return f" of {'at most ' if self.goal is not None else ''}{self.total:,}"

    def status(self) -> str:
        """Return the text on the line: what is done and how long the rest may take."""
        left = self.seconds_left()
        return f"{self}, about {duration(left)} left" if math.isfinite(left) else str(self)


def duration(seconds: float) -> str:
    """Return a duration in words.

    Examples
    --------
    >>> duration(0.42), duration(12.3), duration(200), duration(9000)
    ('0.4 s', '12 s', '3 min 20 s', '2 h 30 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


# ---- computations --------------------------------------------------------------------------------


@contextmanager
def progress(
    name: str, unit: str = "", total: int | None = None, goal: float | None = None
) -> Iterator[Task]:
    """Show a computation while the context lasts, and log it; arguments are those of `Task`.

    Examples
    --------
    >>> with progress("dual ascent", "passes", total=100, goal=1e-3) as task:
    ...     for n_passes in range(1, 4):
    ...         task.report(n_passes, gap=0.1**n_passes)
    """
    task = Task(name, unit, total, goal)
    _LINE.add(task)
    try:
        yield task
    finally:
        _LINE.remove(task)
        LOGGER.log(logging.INFO if task.seconds >= LONG else logging.DEBUG, "%s", task)


@contextmanager
def compiling(name: str) -> Iterator[None]:
    """Show a compilation while the context lasts; its beginning and its end are logged."""
    task = Task(f"compiling {name} once on this machine")
    LOGGER.info("compiling %s, once on this machine", name)
    _LINE.add(task)
    try:
        yield
    finally:
        _LINE.remove(task)
        LOGGER.info("compiled %s in %s", name, duration(task.seconds))


def say(text: str, file: TextIO | None = None) -> None:
    """Print a line to standard output, or another file, above the line of progress."""
    with _LINE.erased():
        print(text, file=file, flush=True)


# ---- the line ------------------------------------------------------------------------------------


class _Line:
    """The line of all computations in progress, and the thread that rewrites it."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Forget all computations; in a forked process they do not go on."""
        self._lock = threading.RLock()
        self._tasks: list[Task] = []
        self._width = 0  # of the printed line
        self._stop = threading.Event()

    def add(self, task: Task) -> None:
        """List a computation; the first one starts the thread, unless nobody would see it."""
        with self._lock:
            self._tasks.append(task)
            if len(self._tasks) == 1 and (is_shown() or LOGGER.isEnabledFor(logging.INFO)):
                self._stop = threading.Event()
                arguments = (self._stop, is_shown())
                name = "kesler shows progress"
                threading.Thread(target=self._run, args=arguments, name=name, daemon=True).start()

    def remove(self, task: Task) -> None:
        """Remove a computation; the last one ends the thread."""
        with self._lock:
            self._tasks.remove(task)
            if not self._tasks:
                self._stop.set()
                self._erase()

    @contextmanager
    def erased(self) -> Iterator[None]:
        """Leave the place of the line to other output while the context lasts."""
        with self._lock:
            self._erase()
            yield

    def _run(self, stop: threading.Event, shown: bool) -> None:
        while not stop.wait(PAUSE):
            with self._lock:
                if stop.is_set():
                    return
                self._log()
                if shown:
                    self._write([t.status() for t in self._tasks if t.seconds > PATIENCE])

    def _log(self) -> None:
        now = time.monotonic()
        for task in self._tasks:
            if now - task.noted >= BETWEEN_RECORDS:
                task.noted = now
                LOGGER.info("%s", task.status())

    def _write(self, found: list[str]) -> None:
        text = f"kesler: {' | '.join(found)}"[: get_terminal_size().columns - 1] if found else ""
        print(f"\r{text.ljust(self._width)}", end="", file=sys.stderr, flush=True)
        self._width = len(text)

    def _erase(self) -> None:
        if self._width:
            print(f"\r{' ' * self._width}\r", end="", file=sys.stderr, flush=True)
            self._width = 0


_LINE = _Line()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LINE.renew)

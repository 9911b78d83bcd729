"""Watching a mailbox for months: waiting, looking, and connecting again after failures."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from kesler.durable import JournalError
from kesler.errors import KeslerError
from kesler.mail.folders import is_inbox
from kesler.mail.server import LoginError, Server, ServerError
from kesler.mail.sorter import Done, Sorter
from kesler.progress import LOGGER

LONGEST_PAUSE = 300.0
"""The most seconds between two attempts to connect."""

PAUSES_OF_REFUSED = 120.0, 3600.0
"""The least and most seconds between two attempts with a password that is refused: servers lock out
who has a wrong one five times in ten minutes, as fail2ban does. A new token may come at once."""

HEALTH = "health"
"""The name under which the last look is kept."""

SOON = 1.0  # seconds until the look after one of which the server has told

SPACING = 60.0  # seconds between two notes of health


def watch(
    connect: Callable[[], Server], sorter: Sorter, *, pause: Callable[[float], None] = time.sleep
) -> Iterator[Done]:
    """Look at a mailbox whenever something happens in the inbox, and after each `every` seconds.

    Two connections are used: one waits at the inbox, if the server offers IDLE, the other looks. If
    one fails, both are made again after a pause, which doubles with each failure up to
    `LONGEST_PAUSE`, or `PAUSES_OF_REFUSED` where a password is refused, which is said once.

    Parameters
    ----------
    connect : makes a connection.
    sorter : the sorter of the mailbox.
    pause : waits for a number of seconds.

    Yields
    ------
    What was done. It never ends by itself.
    """
    watching, failures = _Watching(sorter), Counter[bool]()
    while True:
        try:
            with ExitStack() as connections:
                watching.begin(connect, connections)
                while True:
                    yield from watching.look()
                    failures.clear()
                    watching.wait(pause)
        except (ServerError, JournalError) as error:
            if isinstance(error, JournalError) and error.reason != "busy":
                raise
            is_refused = isinstance(error, LoginError)
            pause(_warned(sorter, error, failures[is_refused], is_refused=is_refused))
            failures[is_refused] += 1


def _warned(sorter: Sorter, error: KeslerError, n_before: int, *, is_refused: bool) -> float:
    """Warn of a failure; return the seconds until the next attempt."""
    first, most = PAUSES_OF_REFUSED if is_refused else (1.0, LONGEST_PAUSE)
    if sorter.settings.has_token:
        first = 1.0
    seconds = min(first * 2.0 ** min(n_before, 20), most)
    if not is_refused:
        LOGGER.warning("%s; next attempt in %.0f s", error, seconds)
    elif not n_before:
        text = "%s; next attempt in %.0f s, and then after ever longer pauses, up to an hour"
        LOGGER.warning(text, error, seconds)
    return seconds


class _Watching:
    """The two connections of a watch."""

    def __init__(self, sorter: Sorter) -> None:
        self._sorter = sorter
        self._looker: Server | None = None
        self._waiter: Server | None = None
        self._noted = 0.0
        self._is_told = False  # whether the server has told something before the last look

    def begin(self, connect: Callable[[], Server], connections: ExitStack) -> None:
        """Connect twice, or once to a server that does not tell of changes."""
        self._looker = connections.enter_context(connect())
        self._waiter = connections.enter_context(connect()) if self._looker.can_idle else None
        if self._waiter is not None:
            names = [each.name for each in self._waiter.folders()]
            self._waiter.open(next(filter(is_inbox, names), "INBOX"))
        LOGGER.info("connected")

    def look(self) -> Iterator[Done]:
        """Look at the mailbox; look again after moves, which change it."""
        assert self._looker is not None
        for _ in range(2):  # not without end, if a server only says that it has moved something
            is_moved = False
            for done in self._sorter.look(self._looker):
                is_moved = is_moved or done.what in ("moved", "taken back")
                yield done
            if not is_moved:
                break
        self._note()

    def _note(self) -> None:
        """Keep the time of the last look, not more often than `SPACING`."""
        if time.monotonic() - self._noted > SPACING or not self._noted:
            self._noted = time.monotonic()
            self._sorter.model.keep(HEALTH, {"time": time.time()})

    def wait(self, pause: Callable[[float], None]) -> None:
        """Wait until something happens, or the time of the next look has come.

        Soon after something there is another look: of a message that has come and gone meanwhile
        the server tells nothing.
        """
        seconds = float(self._sorter.settings.every)
        if self._waiter is None:
            pause(seconds)
        else:
            self._is_told = self._waiter.wait(min(seconds, SOON) if self._is_told else seconds)

"""Limits: how often somebody may ask, and how much is read of what they send."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from kesler.service.refusals import TOO_LARGE, TOO_MANY, TOO_SLOW, Refusal

if TYPE_CHECKING:
    from starlette.requests import Request

MOST_CALLERS = 10_000
SLOWEST = 1000  # bytes a second, over a long time

Clock = Callable[[], float]
"""A function that returns the time in seconds."""


class Rate:
    """Counts the requests of each caller, and refuses those above a rate.

    Parameters
    ----------
    rate : float
        The most requests a second; twice as many may come at once after a pause.
    clock : function
        Returns the time in seconds.

    Examples
    --------
    >>> rate = Rate(1.0, clock=lambda: 0.0)
    >>> rate.count("ann"), rate.count("ann")
    (None, None)
    >>> rate.count("ann")
    Traceback (most recent call last):
    ...
    kesler.service.refusals.Refusal: more than 1 requests a second came from ann: wait 1 s
    """

    def __init__(self, rate: float, clock: Clock = time.monotonic) -> None:
        self.rate, self.clock = rate, clock
        self._left = dict[str, tuple[float, float]]()

    def count(self, caller: str) -> None:
        """Count a request.

        Raises
        ------
        Refusal
            With status 429, if there were too many.
        """
        now = self.clock()
        left, last = self._left.get(caller, (2 * self.rate, now))
        left = min(2 * self.rate, left + (now - last) * self.rate)
        if left < 1:
            raise Refusal(
                TOO_MANY,
                f"more than {self.rate:g} requests a second came from {caller}: wait 1 s",
                wait=1,
            )
        self._left[caller] = left - 1, now
        if len(self._left) > MOST_CALLERS:
            self._forget(now)

    def _forget(self, now: float) -> None:
        """Forget callers that would start anew anyway."""
        full = [name for name, (_, last) in self._left.items() if now - last > 2]
        for name in full or [*self._left][: MOST_CALLERS // 2]:
            del self._left[name]


async def pieces_of(request: Request, most: int, patience: float) -> AsyncIterator[bytes]:
    """Yield the body of a request as it comes.

    Raises
    ------
    Refusal
        With status 413 if it is longer than `most` bytes, 408 if nothing comes for `patience`
        seconds, or fewer than `SLOWEST` bytes a second over a long time.
    """
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > most:
        raise _too_large(most)
    stream, length, waited = request.stream(), 0, 0.0
    while True:
        start = time.monotonic()
        try:
            async with asyncio.timeout(patience):
                piece = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise _too_slow() from None
        length, waited = length + len(piece), waited + time.monotonic() - start
        if length > most:
            raise _too_large(most)
        if waited > patience + length / SLOWEST:
            raise _too_slow()
        yield piece


async def body_of(request: Request, most: int, patience: float) -> bytes:
    """Return the body of a request; it is refused as in `pieces_of`."""
    return b"".join([piece async for piece in pieces_of(request, most, patience)])


async def lines_of(
    request: Request, most: int, longest: int, patience: float
) -> AsyncIterator[list[bytes]]:
    """Yield the lines that came whole, piece by piece, empty ones as well.

    Raises
    ------
    Refusal
        As in `pieces_of`, and with status 413 if a line has more than `longest` bytes.
    """
    rest = b""
    async for piece in pieces_of(request, most, patience):
        *lines, rest = (rest + piece).split(b"\n")
        if max(map(len, (rest, *lines))) > longest:
            raise Refusal(TOO_LARGE, f"a line has more than {longest} bytes: send shorter rows")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _too_large(most: int) -> Refusal:
    return Refusal(
        TOO_LARGE, f"the body has more than {most} bytes: send fewer rows at once, or raise a limit"
    )


def _too_slow() -> Refusal:
    return Refusal(TOO_SLOW, "the body came too slowly: send it again")

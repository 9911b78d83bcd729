"""Lanes: several runs over the same pieces of a stream, each in its order and at its own pace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Condition

from kesler.readers import Block

# So many pieces may wait for the slowest: enough to keep threads busy, and memory constant.
MOST_WAITING = 16


class Lanes:
    """Functions that are each called with one piece after the other, in threads.

    No function runs twice at the same time, and none waits for another unless that one is
    `MOST_WAITING` pieces behind: three of equal cost keep two cores busy all the time. A free one
    takes the function with most pieces before it, so that the slowest never rests.

    Parameters
    ----------
    runs : what is called with each piece.
    n_threads : how many of them may run at the same time.

    Examples
    --------
    >>> import numpy as np
    >>> from kesler.rows import Rows
    >>> first, second = list[int](), list[int]()
    >>> with Lanes([lambda p: first.append(len(p)), lambda p: second.append(len(p))], 2) as lanes:
    ...     for n_rows in (1, 2, 3):
    ...         lanes.put(Block(Rows.empty(n_rows), ["a"] * n_rows))
    ...     lanes.finish()
    >>> first, second
    ([1, 2, 3], [1, 2, 3])
    """

    def __init__(self, runs: Sequence[Callable[[Block], None]], n_threads: int) -> None:
        self._runs = list(runs)
        self._waiting: list[deque[Block]] = [deque() for _ in self._runs]
        self._is_running = [False] * len(self._runs)
        self._n_done = [0] * len(self._runs)
        self._failures: list[tuple[int, int, BaseException]] = []
        self._changed = Condition()
        self._n_threads, self._n_at_work = n_threads, 0
        self._pool = ThreadPoolExecutor(n_threads)

    def __enter__(self) -> Lanes:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let what is running come to its end; what waits is left out if somebody stops it."""
        if kind is not None and issubclass(kind, Exception) and not self._failures:
            self.finish()
        with self._changed:
            for waiting in self._waiting:
                waiting.clear()
        self._pool.shutdown(cancel_futures=True)

    def put(self, piece: Block) -> None:
        """Hand a piece to every run, once none has too many before it.

        Raises
        ------
        Exception
            What the first run raised that could not take an earlier piece.
        """
        with self._changed:
            self._changed.wait_for(self._may_go_on)
        if self._failures:
            self.finish()
        with self._changed:
            for waiting in self._waiting:
                waiting.append(piece)
            for _ in range(self._n_at_work, self._n_threads):
                self._pool.submit(self._work)
            self._n_at_work = self._n_threads

    def finish(self) -> None:
        """Wait until all runs have had all pieces; raise as `put` does."""
        with self._changed:
            self._changed.wait_for(lambda: not any(self._waiting))
        if self._failures:
            *_, failure = min(self._failures, key=lambda each: each[:2])
            raise failure

    def _may_go_on(self) -> bool:
        return bool(self._failures) or max(map(len, self._waiting)) < MOST_WAITING

    def _work(self) -> None:
        """Run what is furthest behind, a piece at a time, until nothing is left to do."""
        while (taken := self._take()) is not None:
            lane, piece = taken
            failure = failure_of(self._runs[lane], piece)
            with self._changed:
                self._is_running[lane] = False
                self._n_done[lane] += 1
                waiting = self._waiting[lane]
                if failure is not None:
                    self._failures.append((self._n_done[lane], lane, failure))
                    waiting.clear()
                elif waiting:
                    waiting.popleft()
                self._changed.notify()

    def _take(self) -> tuple[int, Block] | None:
        """Return the lane to go on with, the one with most waiting, and its piece; or stop."""
        with self._changed:
            free = [
                (len(waiting), -lane)
                for lane, waiting in enumerate(self._waiting)
                if waiting and not self._is_running[lane]
            ]
            if not free:
                self._n_at_work -= 1
                return None
            lane = -max(free)[1]
            self._is_running[lane] = True
            return lane, self._waiting[lane][0]


def failure_of(run: Callable[[Block], None], piece: Block) -> BaseException | None:
    """Call a function with a piece; return what it raised."""
    try:
        run(piece)
    except BaseException as failure:
        return failure
    return None

"""Comparison: several learners over one stream, side by side."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.estimators.online import OnlineClassifier
from kesler.progressive.curve import Curve
from kesler.progressive.lanes import Lanes
from kesler.progressive.validation import mistakes
from kesler.readers import Block


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table that a comparison yields while it runs.

    Attributes
    ----------
    n_trials : int
        Trials so far, a power of two.
    n_classes : int
        Classes known by now.
    errors : dict of str to float
        For each method, its mistakes over the trials so far.
    recent_errors : dict of str to float
        The same over the trials since the last line.
    rows_per_second : float or None
        Trials since the last line over the processor time that all methods together took to learn
        them, reading not counted; None in the first line.
    """

    n_trials: int
    n_classes: int
    errors: dict[str, float]
    recent_errors: dict[str, float]
    rows_per_second: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the line as JSON can hold it."""
        return {
            "trials": self.n_trials,
            "classes": self.n_classes,
            "error": self.errors,
            "recent_error": self.recent_errors,
            "rows_per_second": self.rows_per_second,
        }


@dataclass(frozen=True, slots=True)
class MethodResult:
    """The record of one method.

    Attributes
    ----------
    n_trials, n_mistakes, n_first_seen : int
        As in :class:`~kesler.progressive.ProgressiveResult`.
    trials, curve : int64 arrays of shape (n_points,)
        Trials, and mistakes so far after each of them: at most 2,001 points, the last of which is
        the end of the run.
    seconds : float
        Processor time spent in learning all trials but the first, which loads the compiled code:
        that of the method alone, whatever ran beside it. Methods that wait for the same memory
        still slow each other down.
    """

    n_trials: int
    n_mistakes: int
    n_first_seen: int
    trials: npt.NDArray[np.int64]
    curve: npt.NDArray[np.int64]
    seconds: float

    @property
    def error(self) -> float:
        """Mistakes over trials (Fink et al. 2006, Section 2)."""
        return self.n_mistakes / max(1, self.n_trials)

    @property
    def rows_per_second(self) -> float | None:
        """Trials but the first over `seconds`; None if there was one trial only."""
        return (self.n_trials - 1) / self.seconds if self.seconds else None

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON can hold it."""
        return {
            "trials": self.n_trials,
            "mistakes": self.n_mistakes,
            "first_seen": self.n_first_seen,
            "error": self.error,
            "rows_per_second": self.rows_per_second,
            "curve": {"trials": self.trials.tolist(), "mistakes": self.curve.tolist()},
        }


class Comparison:
    """Several learners over one stream; each predicts every row before it learns it.

    Parameters
    ----------
    learners : mapping of str to OnlineClassifier
        The methods by name. They learn in place, and go on from what they know already.
    n_threads : int or None, default None
        The most methods that learn at the same time; None for one a core. What they learn is the
        same.

    Attributes
    ----------
    n_trials : int
        Trials so far.
    n_classes : int
        Classes known by now.
    n_features : int
        Features met so far.

    Raises
    ------
    KeslerError
        If there is no learner, or no thread; while running, if a learner refuses the rows.

    Notes
    -----
    The rows are read once. The methods learn them in a thread each, since compiled loops run
    without Python's lock; they wait for each other at every line, and where one is 16
    blocks ahead. Of those that refuse rows, the first says why. A method alone, or with one thread,
    has learnt a block when the next is asked for.

    Memory does not grow with the stream: curves are thinned to at most 2,000 points. Rows of
    weight 0 are left out and count for nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kesler import OnlineClassifier
    >>> from kesler.readers import Block
    >>> from kesler.rows import Rows
    >>> rows = Rows.from_dense([[1, 0], [0, 1], [0, 1], [1, 0]])
    >>> comparison = Comparison({"multi": OnlineClassifier("multi", update="perceptron")})
    >>> for line in comparison.run([Block(rows, ["a", "b", "b", "a"])]):
    ...     print(line.n_trials, line.n_classes, line.errors, line.recent_errors)
    1 1 {'multi': 0.0} {'multi': 0.0}
    2 2 {'multi': 0.0} {'multi': 0.0}
    4 2 {'multi': 0.25} {'multi': 0.5}
    >>> comparison.results()["multi"].n_mistakes
    1
    """

    def __init__(
        self, learners: Mapping[str, OnlineClassifier], n_threads: int | None = None
    ) -> None:
        if not learners:
            raise KeslerError("there is no method to compare: give one learner at least")
        if n_threads is not None and n_threads < 1:
            raise KeslerError(f"n_threads={n_threads!r} must be 1 or more, or None: one a core")
        self._n_threads = min(len(learners), n_threads or os.cpu_count() or 1)
        self._runs = {name: _Run(learner) for name, learner in learners.items()}
        self.n_features = 0
        self._n_put = 0
        self._next_line = 1

    @property
    def n_trials(self) -> int:
        """Trials so far."""
        return next(iter(self._runs.values())).curve.n_trials

    @property
    def n_classes(self) -> int:
        """Classes known by now."""
        return next(iter(self._runs.values())).learner.n_known_

    def run(self, blocks: Iterable[Block]) -> Iterator[Line]:
        """Learn the blocks as the lines are asked for: one at each power of two."""
        with Lanes([run.learn for run in self._runs.values()], self._n_threads) as lanes:
            for block in blocks:
                start = 0
                while start < len(block):
                    piece = block[start : start + self._next_line - self._n_put]
                    self._put(piece, lanes)
                    start += len(piece)
                    if self._n_put == self._next_line:
                        lanes.finish()
                        yield self._line()
            lanes.finish()

    def results(self) -> dict[str, MethodResult]:
        """Return the record of each method so far."""
        return {name: run.result() for name, run in self._runs.items()}

    def _put(self, piece: Block, lanes: Lanes) -> None:
        self.n_features = piece.rows.n_features
        # The first trial loads the compiled loops: here, where Ctrl-C is heard.
        if self._n_threads > 1 and self._n_put:
            lanes.put(piece)
        else:
            for run in self._runs.values():
                run.learn(piece)
        self._n_put += _n_trials(piece)

    def _line(self) -> Line:
        n_recent = self.n_trials - self._next_line // 2
        self._next_line *= 2
        recent = {name: run.since_last_line() for name, run in self._runs.items()}
        seconds = sum(seconds for _, seconds in recent.values())
        return Line(
            n_trials=self.n_trials,
            n_classes=self.n_classes,
            errors={name: run.curve.n_mistakes / self.n_trials for name, run in self._runs.items()},
            recent_errors={name: wrong / n_recent for name, (wrong, _) in recent.items()},
            rows_per_second=n_recent / seconds if seconds else None,
        )


def _n_trials(piece: Block) -> int:
    """Return how many rows count."""
    return len(piece) if piece.weights is None else int(np.count_nonzero(piece.weights))


class _Run:
    """One learner of a comparison and its account."""

    def __init__(self, learner: OnlineClassifier) -> None:
        self.learner = learner
        self.curve = Curve()
        self._seconds = 0.0
        self._n_first_seen = 0
        self._last_line = (0, 0.0)

    def learn(self, piece: Block) -> None:
        """Learn rows; the clock does not run in the first trial, which loads the compiled code."""
        n_known = self.learner.n_known_
        start = self._processor_time()
        predicted, answers = self.learner.learn_rows(piece.rows, piece.labels, piece.weights)
        self._seconds += self._processor_time() - start if self.curve.n_trials else 0.0
        self.curve.extend(mistakes(predicted, answers, n_known))
        self._n_first_seen += self.learner.n_known_ - n_known

    def _processor_time(self) -> float:
        return time.thread_time() + self.learner.seconds_in_threads_

    def since_last_line(self) -> tuple[int, float]:
        """Return the mistakes and seconds since this was last asked."""
        n_mistakes, seconds = self._last_line
        self._last_line = (self.curve.n_mistakes, self._seconds)
        return self.curve.n_mistakes - n_mistakes, self._seconds - seconds

    def result(self) -> MethodResult:
        return MethodResult(
            n_trials=self.curve.n_trials,
            n_mistakes=self.curve.n_mistakes,
            n_first_seen=self._n_first_seen,
            trials=self.curve.trials,
            curve=self.curve.mistakes,
            seconds=self._seconds,
        )

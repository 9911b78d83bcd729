"""Comparison: several methods validated on one stream."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from threading import Condition
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label
from kesler.errors import KeslerError, integer_of
from kesler.evaluation.methods import KeslerMethod, Method, Outcome
from kesler.evaluation.results import ProgressiveResult, labelled
from kesler.evaluation.tables import Piece
from kesler.learner.events import NO_PLACES, NO_PROBABILITIES
from kesler.metrics import PlaceCounts
from kesler.online.classifier import OnlineClassifier
from kesler.readers.stream import Block

if TYPE_CHECKING:
    from kesler.evaluation.late import LateFigures

MAX_POINTS = 2000

Batch = Block | Piece
"""Consecutive rows with labels: of a reader, or of a table in memory."""


class Curve:
    """Cumulative mistakes, stored after every s-th trial and the last one.

    s is the smallest power of two for which there are at most 2,000 points: 1 for a short run, 16
    for 20,000 trials. Memory therefore does not grow with the run.

    Attributes
    ----------
    n_trials, n_mistakes : int
        Trials and mistakes so far.

    Examples
    --------
    >>> curve = Curve()
    >>> curve.extend(np.array([False, True, True]))
    >>> curve.trials.tolist(), curve.mistakes.tolist()
    ([1, 2, 3], [0, 1, 2])
    """

    def __init__(self) -> None:
        self.n_trials = 0
        self.n_mistakes = 0
        self._stride = 1
        self._stored: list[int] = []

    def extend(self, wrong: npt.NDArray[np.bool_]) -> None:
        """Append trials, given a mask of the mistakes."""
        sums = self.n_mistakes + np.cumsum(wrong, dtype=np.int64)
        to_next = -(self.n_trials + 1) % self._stride
        self._stored.extend(sums[to_next :: self._stride].tolist())
        self.n_trials += len(wrong)
        self.n_mistakes += int(np.count_nonzero(wrong))
        while len(self._stored) > MAX_POINTS:
            self._stored = self._stored[1::2]
            self._stride *= 2

    @property
    def trials(self) -> npt.NDArray[np.int64]:
        """The trial number of each point, counted from 1."""
        stored = self._stride * np.arange(1, len(self._stored) + 1, dtype=np.int64)
        return np.append(stored, self.n_trials) if self._ends_between else stored

    @property
    def mistakes(self) -> npt.NDArray[np.int64]:
        """Cumulative mistakes at each point."""
        stored = np.array(self._stored, dtype=np.int64)
        return np.append(stored, self.n_mistakes) if self._ends_between else stored

    @property
    def _ends_between(self) -> bool:
        return self.n_trials % self._stride != 0


# Maximum length of a queue: enough to keep threads busy, with bounded memory.
MOST_WAITING = 16


class ParallelRuns:
    """Functions that each process all pieces in order, in a pool of threads.

    Each function has a queue of pieces and runs in at most one thread at a time. `put` blocks only
    if a queue holds `MOST_WAITING` pieces, so three functions of equal cost keep two cores busy. A
    free thread takes the function with the longest queue, so the slowest function never waits.

    Parameters
    ----------
    runs : functions that are called with each piece.
    n_threads : number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from kesler.data.rows import Rows
    >>> first, second = list[int](), list[int]()
    >>> with ParallelRuns([lambda p: first.append(len(p)), lambda p: second.append(len(p))],
    ...     2) as runs:
    ...     for n_rows in (1, 2, 3):
    ...         runs.put(Block(Rows.empty(n_rows), ["a"] * n_rows))
    ...     runs.finish()
    >>> first, second
    ([1, 2, 3], [1, 2, 3])
    """

    def __init__(self, runs: Sequence[Callable[[Batch], None]], n_threads: int) -> None:
        self._runs = list(runs)
        self._waiting: list[deque[Batch]] = [deque() for _ in self._runs]
        self._is_running = [False] * len(self._runs)
        self._n_done = [0] * len(self._runs)
        self._failures: list[tuple[int, int, BaseException]] = []
        self._changed = Condition()
        self._n_threads, self._n_at_work = n_threads, 0
        self._pool = ThreadPoolExecutor(n_threads)

    def __enter__(self) -> ParallelRuns:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for running calls; on an interrupt, discard the queued pieces."""
        if kind is not None and issubclass(kind, Exception) and not self._failures:
            self.finish()
        with self._changed:
            for waiting in self._waiting:
                waiting.clear()
        self._pool.shutdown(cancel_futures=True)

    def put(self, piece: Batch) -> None:
        """Append a piece to every queue; block while a queue is full.

        Raises
        ------
        Exception
            The first error that a function raised for an earlier piece.
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
        """Wait until all functions have processed all pieces; raise as `put` does."""
        with self._changed:
            self._changed.wait_for(lambda: not any(self._waiting))
        if self._failures:
            *_, failure = min(self._failures, key=lambda each: each[:2])
            raise failure

    def _may_go_on(self) -> bool:
        return bool(self._failures) or max(map(len, self._waiting)) < MOST_WAITING

    def _work(self) -> None:
        """Call the function with the longest queue, one piece at a time, until all are empty."""
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

    def _take(self) -> tuple[int, Batch] | None:
        """Return the index of the function with the longest queue and its next piece, or None."""
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


def failure_of(run: Callable[[Batch], None], piece: Batch) -> BaseException | None:
    """Call a function with a piece; return the exception that it raised, or None."""
    try:
        run(piece)
    except BaseException as failure:
        return failure
    return None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the progress table that a comparison yields.

    Attributes
    ----------
    n_trials : int
        Number of trials so far: a power of two, or that of the whole stream.
    n_classes : int
        Number of classes seen so far.
    errors : dict of str to float
        For each method, its mistakes divided by the trials so far.
    recent_errors : dict of str to float
        The same for the trials since the previous line.
    rows_per_second : float or None
        Trials since the previous line divided by the processor time in which all methods together
        learnt them, without reading; None in the first line.
    """

    n_trials: int
    n_classes: int
    errors: dict[str, float]
    recent_errors: dict[str, float]
    rows_per_second: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the line as a JSON object."""
        return {
            "trials": self.n_trials,
            "classes": self.n_classes,
            "error": self.errors,
            "recent_error": self.recent_errors,
            "rows_per_second": self.rows_per_second,
        }


@dataclass(frozen=True, slots=True)
class MethodResult:
    """The result of one method.

    Attributes
    ----------
    n_trials, n_mistakes, n_first_seen : int
        As in :class:`~kesler.evaluation.results.ProgressiveResult`.
    trials, curve : int64 arrays of shape (n_points,)
        Trial numbers, and cumulative mistakes after each of these trials: at most 2,001 points, the
        last of which is the end of the run.
    seconds : float
        Processor time for learning all trials but the first, which loads the compiled code. The
        time of other methods is not included, but methods that run at the same time slow each
        other down through shared memory bandwidth.
    places : PlaceCounts or None
        How often the class of a row was among the `top` of highest score; None if this was not
        asked for, or the method scores no classes.
    late : LateFigures or None
        How well its estimates of uncertainty held under a delay; None without one, and for methods
        that have no such estimates.
    """

    n_trials: int
    n_mistakes: int
    n_first_seen: int
    trials: npt.NDArray[np.int64]
    curve: npt.NDArray[np.int64]
    seconds: float
    places: PlaceCounts | None = None
    late: LateFigures | None = None

    @property
    def error(self) -> float:
        """Mistakes divided by trials (Fink et al. 2006, Section 2)."""
        return self.n_mistakes / max(1, self.n_trials)

    @property
    def rows_per_second(self) -> float | None:
        """All trials but the first, divided by `seconds`; None after a single trial."""
        return (self.n_trials - 1) / self.seconds if self.seconds else None

    def to_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        found: dict[str, Any] = {
            "trials": self.n_trials,
            "mistakes": self.n_mistakes,
            "first_seen": self.n_first_seen,
            "error": self.error,
            "rows_per_second": self.rows_per_second,
            "curve": {"trials": self.trials.tolist(), "mistakes": self.curve.tolist()},
        }
        if self.places is not None:
            found["top"] = self.places.to_json()
        return found if self.late is None else found | {"late": self.late.to_dict()}


class Comparison:
    """Progressive validation of several methods on one stream.

    Parameters
    ----------
    methods : mapping of str to OnlineClassifier or Method
        The methods by name. They learn in place and continue if they are fitted.
    n_threads : int or None, default None
        The maximum number of methods that learn at the same time; None means the number of cores.
        Results do not depend on it.
    keep_predictions : bool, default False
        Whether to keep the prediction and the target of each trial, for `validated`.
    top : int of 1 or more, or None, default None
        Up to which number of classes of highest score `results` say how often that of a row is
        among them. Larger numbers cost nothing more; None costs nothing.
    delay : int of 0 or more, default 0
        As in :func:`kesler.progressive_validate`. It replaces the delays of methods if it is above
        0.

    Attributes
    ----------
    n_trials : int
        Number of trials so far.
    n_classes : int
        Number of classes seen so far.
    n_features : int
        Number of features seen so far, in blocks of a reader.

    Raises
    ------
    KeslerError
        If there is no learner or no thread, `top` is no such number, or answers cannot arrive late
        for a method; while running, if a learner raises an error.

    Notes
    -----
    The rows are read once. Each method learns in its own thread, since compiled loops release the
    global interpreter lock. The methods are synchronised at every line, and where one of them is 16
    blocks ahead. If several methods raise errors, the first error is raised. A single method, or
    several with one thread, have learnt a block before the next one is read.

    Memory does not grow with the stream unless predictions are kept: curves are thinned to at most
    2,000 points. Rows of weight 0 are skipped and not counted.

    Examples
    --------
    >>> import numpy as np
    >>> from kesler import OnlineClassifier
    >>> from kesler.readers import Block
    >>> from kesler.data.rows import Rows
    >>> rows = Rows.from_dense([[1, 0], [0, 1], [0, 1]])
    >>> comparison = Comparison({"multi": OnlineClassifier("multi", update="perceptron")})
    >>> for line in comparison.run([Block(rows, ["a", "b", "b"])]):
    ...     print(line.n_trials, line.n_classes, line.errors, line.recent_errors)
    1 1 {'multi': 0.0} {'multi': 0.0}
    2 2 {'multi': 0.0} {'multi': 0.0}
    3 2 {'multi': 0.3333333333333333} {'multi': 1.0}
    >>> comparison.results()["multi"].n_mistakes
    1
    """

    def __init__(
        self,
        methods: Mapping[str, OnlineClassifier | Method],
        n_threads: int | None = None,
        *,
        keep_predictions: bool = False,
        top: int | None = None,
        delay: int = 0,
    ) -> None:
        if top is not None:
            integer_of("top", top, 1, why=": it is the number of classes of each row that count")
        if not methods:
            raise KeslerError("there is no method to compare: give at least one learner")
        if n_threads is not None and n_threads < 1:
            raise KeslerError(
                f"n_threads={n_threads!r} must be 1 or more, or None for the number of cores"
            )
        self._n_threads = min(len(methods), n_threads or os.cpu_count() or 1)
        self._runs = {
            name: _Run(
                _method(each, keep_places=top is not None, delay=delay),
                keep_predictions,
                top,
            )
            for name, each in methods.items()
        }
        self.n_features = 0
        self._n_put = 0
        self._next_line = 1
        self._n_in_lines = 0

    @property
    def n_trials(self) -> int:
        """Number of trials so far."""
        return next(iter(self._runs.values())).curve.n_trials

    @property
    def n_classes(self) -> int:
        """Number of classes seen so far."""
        return next(iter(self._runs.values())).method.n_known

    def ask_for_loops(self, first: Batch) -> None:
        """Let the loops of all methods be compiled at once, by learning a row with copies."""
        from kesler.compiled.jit.background import is_on

        for run in self._runs.values() if len(first) and is_on() else ():
            if isinstance(run.method, KeslerMethod) and not run.method.n_known:
                deepcopy(run.method).learn(first[:1])

    def run(self, blocks: Iterable[Batch]) -> Iterator[Line]:
        """Learn the blocks lazily; yield a line at each power of two of trials and at the end."""
        with ParallelRuns([run.learn for run in self._runs.values()], self._n_threads) as runs:
            for block in blocks:
                start = 0
                while start < len(block):
                    piece = block[start : start + self._next_line - self._n_put]
                    self._put(piece, runs)
                    start += len(piece)
                    if self._n_put == self._next_line:
                        runs.finish()
                        self._next_line *= 2
                        yield self._line()
            runs.finish()
        if self.n_trials > self._n_in_lines:
            yield self._line()

    def results(self) -> dict[str, MethodResult]:
        """Return the result of each method so far."""
        return {name: run.result() for name, run in self._runs.items()}

    def validated(self) -> dict[str, ProgressiveResult]:
        """Return the result of each method with its predictions, which must have been kept."""
        return {name: run.validated() for name, run in self._runs.items()}

    def _put(self, piece: Batch, runs: ParallelRuns) -> None:
        if isinstance(piece, Block):
            self.n_features = piece.rows.n_features
        # The first trial loads the compiled loops, in the main thread, which receives Ctrl-C.
        if self._n_threads > 1 and self._n_put:
            runs.put(piece)
        else:
            for run in self._runs.values():
                run.learn(piece)
        self._n_put += _n_trials(piece)

    def _line(self) -> Line:
        n_recent = self.n_trials - self._n_in_lines
        self._n_in_lines = self.n_trials
        recent = {name: run.since_last_line() for name, run in self._runs.items()}
        seconds = sum(seconds for _, seconds in recent.values())
        return Line(
            n_trials=self.n_trials,
            n_classes=self.n_classes,
            errors={name: run.curve.n_mistakes / self.n_trials for name, run in self._runs.items()},
            recent_errors={name: wrong / n_recent for name, (wrong, _) in recent.items()},
            rows_per_second=n_recent / seconds if seconds else None,
        )


def _n_trials(piece: Batch) -> int:
    """Return the number of rows of weight above 0."""
    weights = piece.weights
    return len(piece) if weights is None else int(np.count_nonzero(weights))


class _Run:
    """One method of a comparison, its curve and its times."""

    def __init__(self, method: Method, keep_predictions: bool, top: int | None) -> None:
        self.method, self._top = method, top
        self._places: PlaceCounts | None = None
        self.curve = Curve()
        self._seconds = 0.0
        self._n_first_seen = 0
        self._last_line = (0, 0.0)
        self._kept: list[tuple[Outcome, list[Label]]] | None = [] if keep_predictions else None

    def learn(self, piece: Batch) -> None:
        """Learn from rows; the first trial is not timed, since it loads the compiled code."""
        start = self._processor_time()
        found = self.method.learn(piece)
        self._seconds += self._processor_time() - start if self.curve.n_trials else 0.0
        self.curve.extend(found.wrong)
        self._n_first_seen += found.n_first_seen
        if self._top is not None and found.places is not None:
            counts = PlaceCounts.of(found.places, self._top)
            self._places = counts if self._places is None else self._places + counts
        if self._kept is not None:
            self._kept.append((found, piece.labels))

    def _processor_time(self) -> float:
        return time.thread_time() + self.method.seconds_in_threads

    def since_last_line(self) -> tuple[int, float]:
        """Return the mistakes and seconds since the previous call."""
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
            places=self._places,
            late=self.method.late,
        )

    def validated(self) -> ProgressiveResult:
        """Return the result with the predictions; rows of weight 0 must have been left out."""
        kept = self._kept or []
        predicted = [label for outcome, _ in kept for label in outcome.predicted()]
        answers = [label for _, labels in kept for label in labels]
        named = dict.fromkeys(each for each in [*answers, *predicted] if each is not None)
        codes = {label: code for code, label in enumerate(named)}
        wrong = [outcome.wrong for outcome, _ in kept]
        return ProgressiveResult(
            n_trials=self.curve.n_trials,
            n_mistakes=self.curve.n_mistakes,
            n_first_seen=self._n_first_seen,
            curve=np.cumsum(np.concatenate([np.empty(0, np.bool_), *wrong]), dtype=np.int64),
            probabilities=np.concatenate(
                [NO_PROBABILITIES, *(_probabilities(outcome) for outcome, _ in kept)]
            ),
            seconds=self._seconds,
            places=_places([outcome for outcome, _ in kept]),
            delay=self.method.delay,
            uncertainty=self.method.uncertainty,
            **labelled(_numbers(predicted, codes), _numbers(answers, codes), list(codes)),
        )


def _numbers(labels: Sequence[Label | None], codes: Mapping[Any, int]) -> npt.NDArray[np.int32]:
    """Return the number of each label, -1 for None."""
    return np.array([codes.get(label, -1) for label in labels], dtype=np.int32)


def _probabilities(outcome: Outcome) -> npt.NDArray[np.float64]:
    found = outcome.probabilities
    return np.full((len(outcome.wrong), 2), np.nan) if found is None else found


def _places(outcomes: list[Outcome]) -> npt.NDArray[np.int32] | None:
    """Return the places of the targets of all trials; None if a method scores no classes."""
    found = [each.places for each in outcomes if len(each.wrong)]
    known = [each for each in found if each is not None]
    return np.concatenate([NO_PLACES, *known]) if len(known) == len(found) else None


def _method(each: OnlineClassifier | Method, *, keep_places: bool, delay: int) -> Method:
    """Return a learner or a method under the interface, whose answers arrive `delay` rows late."""
    if not isinstance(each, Method):
        return method_of_learner(each, keep_places=keep_places, delay=delay)
    if delay:
        each.set_delay(delay)
    return each


def method_of_learner(
    learner: OnlineClassifier, classes: Any = None, *, keep_places: bool = False, delay: int = 0
) -> Method:
    """Return the method of an online classifier, which asks for labels if it has a budget."""
    if delay:
        from kesler.evaluation.delayed import DelayedMethod

        return DelayedMethod(learner, delay, classes)
    if learner.label_budget is None:
        return KeslerMethod(learner, classes, keep_places=keep_places)
    from kesler.evaluation.queries import QueriedMethod

    return QueriedMethod(learner)

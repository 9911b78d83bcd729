"""Growth of the time with rows, words, classes and features, as exponents from four sizes each.

    python benchmarks/growth.py [--quick]

PA-I with one hypothesis per class and the default learner run on rows of uniformly drawn words.
One of the rows, the words per row, the known classes and the features grows at a time. The time is
fitted as proportional to size^exponent, by least squares on the logarithms. An exponent of 1 means
linear growth; features should cost time only through cache misses.

The last table shows the cost of new classes, which appear one after another, the last with the
last rows, on text-like rows of about 80 words out of 2^18. When a table of weights is full, its
nonzero rows are copied to one twice as wide; most of that time is spent on memory that the system
allocates, and clears, for the first time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np
from scipy import sparse

from kesler import OnlineClassifier
from kesler.data.rows import Rows
from kesler.learner.learner import Learner
from kesler.online.blocks import learn_rows
from racing import Growth, Race, command_line, table
from text_stream import make_text_stream

ROWS, WORDS, CLASSES, FEATURES = 20_000, 40, 32, 1 << 16
MOST = {"rows": 1.1, "words per row": 1.15, "known classes": 1.15, "features": 0.5}
"""The largest accepted exponents."""
BLOCK = 1000
COMING = (20, 64, 256)
"""Numbers of classes that appear one after another."""
MOST_ROOM = 0.1
LEARNERS = {
    "PA-I, one hypothesis per class": {"hypotheses": "multi", "update": "pa1"},
    "the default learner": {},
}


def passes(
    settings: dict[str, str],
    n_rows: int,
    n_words: int = WORDS,
    n_classes: int = CLASSES,
    n_features: int = FEATURES,
) -> Callable[[], OnlineClassifier]:
    """Return a function that makes one pass over rows of a given size."""
    generator = np.random.default_rng(0)
    words = generator.integers(0, n_features, (n_rows, n_words), dtype=np.int32)
    starts = np.arange(n_rows + 1, dtype=np.int32) * n_words
    ones = np.ones(words.size, dtype=np.float32)
    X = sparse.csr_array((ones, words.reshape(-1), starts), shape=(n_rows, n_features))
    X.sum_duplicates()
    y = np.concatenate([np.arange(n_classes), generator.integers(0, n_classes, n_rows)])[:n_rows]

    def run() -> OnlineClassifier:
        return OnlineClassifier(**settings).partial_fit(X, y)

    return run


def growths(settings: dict[str, str], n_rows: int) -> list[Growth]:
    """Return the growths to measure."""
    kinds: dict[str, tuple[list[int], Callable[[int], Callable[[], OnlineClassifier]]]] = {
        "rows": (
            [n_rows, 2 * n_rows, 4 * n_rows, 8 * n_rows],
            lambda n: passes(settings, n),
        ),
        "words per row": ([20, 40, 80, 160], lambda n: passes(settings, n_rows, n_words=n)),
        "known classes": ([32, 64, 128, 256], lambda n: passes(settings, n_rows, n_classes=n)),
        "features": (
            [1 << 14, 1 << 15, 1 << 16, 1 << 17],
            lambda n: passes(settings, n_rows, n_features=n),
        ),
    }
    return [Growth(of, sizes, prepare, MOST[of]) for of, (sizes, prepare) in kinds.items()]


# ---- new classes --------------------------------------------------------------------------------


def coming_classes(n_rows: int, n_classes: int) -> tuple[Rows, list[int]]:
    """Return a stream in which class r appears only after its share of the rows."""
    X, y = make_text_stream(n_rows, n_classes)
    order = np.argsort(np.maximum(np.arange(n_rows), y * n_rows // n_classes), kind="stable")
    return Rows.from_sparse(X[order]), y[order].tolist()


def pass_with_pauses(
    rows: Rows, labels: list[int], classes: Sequence[int] = ()
) -> tuple[float, list[float]]:
    """Return the seconds of one pass, and of each allocation in it.

    Memory for `classes` is allocated beforehand.
    """
    pauses, reserve = [], Learner.reserve

    def timed(learner: Learner, *arguments: Any) -> None:
        start = time.perf_counter()
        reserve(learner, *arguments)
        pauses.append(time.perf_counter() - start)

    model, start = OnlineClassifier("multi", update="pa1"), time.perf_counter()
    model.partial_fit(rows[:0], [], classes)
    with mock.patch.object(Learner, "reserve", timed):
        for first in range(0, len(labels), BLOCK):
            some = slice(first, first + BLOCK)
            learn_rows(model, rows[some], labels[some])
    return time.perf_counter() - start, pauses


def capacity(race: Race, n_rows: int) -> None:
    """Show the share of a pass that is spent on memory for new classes."""
    lines, most = [], 0.0
    for n_classes in COMING:
        stream = coming_classes(n_rows, n_classes)
        runs, reserved = [], []
        for _ in range(race.repeats):
            runs.append(pass_with_pauses(*stream))
            reserved.append(pass_with_pauses(*stream, range(n_classes))[0])
        seconds, pauses = sorted(runs, key=lambda run: sum(run[1]) / run[0])[len(runs) // 2]
        most = max(most, sum(pauses) / seconds)
        beyond = float(np.median([run[0] for run in runs]) / np.median(reserved) - 1)
        shares = f"{100 * sum(pauses) / seconds:.1f}", f"{100 * beyond:.1f}"
        pause = f"{1000 * max(pauses):.1f}"
        lines.append([f"{n_classes:,}", f"{n_rows:,}", f"{seconds:.3g}", *shares, pause])
    header = ["classes at the end", "rows", "pass, s", "allocation, %", "extra, %"]
    race.add(
        "### Classes that appear one after another",
        table([*header, "longest pause, ms"], lines),
        "Extra: compared with a pass whose memory is reserved beforehand.",
    )
    race.at_most("share of a pass that is spent on allocation", most, MOST_ROOM)


def main() -> int:
    """Measure the growth of both learners."""
    arguments = command_line(__doc__).parse_args()
    race = Race("growth", "Growth", __doc__, arguments)
    for name, settings in LEARNERS.items():
        passes(settings, 100)()  # compiles the loops, or loads them from the cache
        race.grow(name, growths(settings, ROWS // 4 if race.is_quick else ROWS))
    capacity(race, 5 * ROWS // (5 if race.is_quick else 1))
    return race.write()


if __name__ == "__main__":
    sys.exit(main())

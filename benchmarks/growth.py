"""What a row costs as the work grows: the exponent of the time, from four sizes of each kind.

    python benchmarks/growth.py [--quick]

PA-I with one hypothesis a class, and the default learner, over rows of words drawn evenly from
all: as the rows, the words of a row, the classes known and the features grow, all else the same.
Time is proportional to size^exponent, by least squares on the logarithms; 1 is proportional, and
features should cost nothing but what caches no longer hold.

Then what it costs to make room: classes appear one after the other, the last with the last rows,
over text-like rows of about 80 words out of 2^18. A table of weights that is full gives way to one
twice as wide, to which rows that are not all 0 are copied; most of the time goes to memory that the
machine hands out, and clears, for the first time.
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
from racing import Growth, Race, command_line, table
from text_stream import make_text_stream

ROWS, WORDS, CLASSES, FEATURES = 20_000, 40, 32, 1 << 16
MOST = {"rows": 1.1, "words of a row": 1.15, "classes known": 1.15, "features": 0.5}
"""The largest exponents that are expected."""
BLOCK = 1000
COMING = (20, 64, 256)
"""Classes for which room is made on the way."""
MOST_ROOM = 0.1
LEARNERS = {
    "PA-I, one hypothesis a class": {"hypotheses": "multi", "update": "pa1"},
    "the default learner": {},
}


def passes(
    settings: dict[str, str],
    n_rows: int,
    n_words: int = WORDS,
    n_classes: int = CLASSES,
    n_features: int = FEATURES,
) -> Callable[[], OnlineClassifier]:
    """Return one pass of a learner that has met all classes over rows of a given kind."""
    generator = np.random.default_rng(0)
    words = generator.integers(0, n_features, (n_rows, n_words), dtype=np.int32)
    starts = np.arange(n_rows + 1, dtype=np.int32) * n_words
    ones = np.ones(words.size, dtype=np.float32)
    X = sparse.csr_array((ones, words.reshape(-1), starts), shape=(n_rows, n_features))
    X.sum_duplicates()
    y = np.concatenate([np.arange(n_classes), generator.integers(0, n_classes, n_rows)])[:n_rows]

    def run() -> OnlineClassifier:
        return OnlineClassifier(**settings).fit(X, y)

    return run


def growths(settings: dict[str, str], n_rows: int) -> list[Growth]:
    """Return what grows."""
    kinds: dict[str, tuple[list[int], Callable[[int], Callable[[], OnlineClassifier]]]] = {
        "rows": (
            [n_rows, 2 * n_rows, 4 * n_rows, 8 * n_rows],
            lambda n: passes(settings, n),
        ),
        "words of a row": ([20, 40, 80, 160], lambda n: passes(settings, n_rows, n_words=n)),
        "classes known": ([32, 64, 128, 256], lambda n: passes(settings, n_rows, n_classes=n)),
        "features": (
            [1 << 14, 1 << 15, 1 << 16, 1 << 17],
            lambda n: passes(settings, n_rows, n_features=n),
        ),
    }
    return [Growth(of, sizes, prepare, MOST[of]) for of, (sizes, prepare) in kinds.items()]


# ---- room ---------------------------------------------------------------------------------------


def coming_classes(n_rows: int, n_classes: int) -> tuple[Rows, list[int]]:
    """Return a stream in which class r is not seen before its share of the rows has passed."""
    X, y = make_text_stream(n_rows, n_classes)
    order = np.argsort(np.maximum(np.arange(n_rows), y * n_rows // n_classes), kind="stable")
    return Rows.from_sparse(X[order]), y[order].tolist()


def pass_with_pauses(
    rows: Rows, labels: list[int], classes: Sequence[int] = ()
) -> tuple[float, list[float]]:
    """Return the seconds of one pass, and of each time in it that room was made.

    There is room from the start for the classes that are given, none of which is known.
    """
    pauses, reserve = [], Learner.reserve

    def timed(machine: Learner, *arguments: Any) -> None:
        start = time.perf_counter()
        reserve(machine, *arguments)
        pauses.append(time.perf_counter() - start)

    model, start = OnlineClassifier("multi", update="pa1"), time.perf_counter()
    model.partial_fit(rows[:0], [], classes)
    with mock.patch.object(Learner, "reserve", timed):
        for first in range(0, len(labels), BLOCK):
            some = slice(first, first + BLOCK)
            model.learn_rows(rows[some], labels[some])
    return time.perf_counter() - start, pauses


def capacity(race: Race, n_rows: int) -> None:
    """Show what share of a pass goes to making room for classes."""
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
    header = ["classes at the end", "rows", "a pass, s", "making room, %", "longer, %"]
    race.add(
        "### Room for classes that come one after the other",
        table([*header, "longest pause, ms"], lines),
        "Longer: than a pass with that room from the start, which gets its memory row by row.",
    )
    race.at_most("the share of a pass that goes to making room", most, MOST_ROOM)


def main() -> int:
    """Measure the growth of both learners."""
    arguments = command_line(__doc__).parse_args()
    race = Race("growth", "Growth", __doc__, arguments)
    for name, settings in LEARNERS.items():
        passes(settings, 100)()  # compiles, or loads what was compiled
        race.grow(name, growths(settings, ROWS // 4 if race.is_quick else ROWS))
    capacity(race, 5 * ROWS // (5 if race.is_quick else 1))
    return race.write()


if __name__ == "__main__":
    sys.exit(main())

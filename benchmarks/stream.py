"""Rows per second of one pass over a text-like stream, compared with the peers.

    python benchmarks/stream.py [--quick] [--cpu haswell] [--rows 100000] [--classes 20 200 2000]

Each learner makes one pass over rows of about 80 words out of 2^18, one row in ten with the words
of another class. Kesler runs PassiveAggressive (PA-I) with one hypothesis per class, without prior
knowledge of the classes or their number; with 20 classes also PA-I with hybrid hypotheses, and the
default learner, on a second stream too, whose words have frequencies inverse to their ranks. Vowpal
Wabbit runs `--oaa K` from a warm cache, with a table large enough that weights do not collide;
scikit-learn runs `partial_fit` of its one-vs-rest PA-I, 1,000 rows at a time; river runs its one-
vs-rest logistic regression, from dictionaries. All predict rows before they learn them, and all
errors count every row. Peers that take minutes are timed on fewer rows, as the table shows. The
other contestants have an untimed run before each timed one, so that each finds memory as a run of
its own left it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.linear_model import SGDClassifier

from kesler import OnlineClassifier, progressive_validate
from peer import write
from racing import Contestant, Figures, Laps, Race, command_line, times_faster
from text_stream import make_text_stream, make_topic_stream

TARGETS = {20: 8, 200: 15, 2000: 20}
"""The least ratio of the rows per second of PA-I to Vowpal Wabbit's, by number of classes."""
FEWEST = min(TARGETS)
"""The number of classes for which the other learners are also timed."""
PA1, HYBRID, DEFAULT = "kesler PA-I", "kesler PA-I, hybrid", "kesler default"
VW = "vw --oaa, warm cache"
COSTS = {HYBRID: 3.0, DEFAULT: 4.0}
"""The largest ratio of the time of a learner to that of PA-I with one hypothesis per class."""
LEAST_OF_DEFAULT = 4
"""The least ratio of the rows per second of the default learner to Vowpal Wabbit's."""


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows and their classes; slow learners run on the first few."""

    X: sparse.csr_array
    y: npt.NDArray[np.int64]
    n_classes: int

    def first(self, n: int) -> Stream:
        """Return the first n rows, or all if there are fewer."""
        return Stream(self.X[:n], self.y[:n], self.n_classes)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])


def kesler(stream: Stream, hypotheses: str = "multi", update: str = "pa1") -> Figures:
    """Make one pass with one of our learners."""
    model = OnlineClassifier(hypotheses, update=update)
    result = progressive_validate(model, stream.X, stream.y)
    return error_of(result.n_mistakes + result.n_first_seen, stream)


class VowpalWabbit:
    """Vowpal Wabbit on the cache that its first pass writes."""

    def __init__(self, folder: Path, stream: Stream) -> None:
        bits = 18 + int(np.ceil(np.log2(stream.n_classes)))
        self.stream, self.data = stream, folder / f"{stream.n_classes}.vw"
        self.arguments = (
            f"--oaa {stream.n_classes} -b {bits} -d {self.data} "
            f"--cache_file {self.data}.cache --quiet"
        )

    def prepare(self) -> None:
        """Write the rows and the cache."""
        write(self.data, self.stream.X, self.stream.y)
        self.run()

    def run(self) -> Figures:
        """Make one pass."""
        from vowpalwabbit import Workspace

        workspace = Workspace(self.arguments)
        wrong = workspace.get_sum_loss()
        workspace.finish()
        return error_of(wrong, self.stream)


def scikit_learn(stream: Stream, n_together: int = 1000) -> Figures:
    """Make one pass with scikit-learn's one-vs-rest PA-I, some rows at a time."""
    model = SGDClassifier(loss="hinge", penalty=None, learning_rate="pa1", eta0=1.0)
    wrong, classes = 0, np.arange(stream.n_classes)
    for start in range(0, stream.n_rows, n_together):
        X, y = stream.X[start : start + n_together], stream.y[start : start + n_together]
        X.indptr, X.indices = X.indptr.astype(np.int32), X.indices.astype(np.int32)
        wrong += int(np.count_nonzero(model.predict(X) != y)) if start else len(y)
        model.partial_fit(X, y, classes)
    return error_of(wrong, stream)


def river(stream: Stream) -> Figures:
    """Make one pass with river's one-vs-rest logistic regression, from dictionaries."""
    from river.linear_model import LogisticRegression
    from river.multiclass import OneVsRestClassifier

    model, wrong = OneVsRestClassifier(LogisticRegression()), 0
    for row, label in enumerate(stream.y.tolist()):
        entries = slice(stream.X.indptr[row], stream.X.indptr[row + 1])
        words = stream.X.indices[entries].tolist()
        x = dict(zip(words, stream.X.data[entries].tolist(), strict=True))
        wrong += model.predict_one(x) != label
        model.learn_one(x, label)
    return error_of(wrong, stream)


def error_of(wrong: float, stream: Stream) -> Figures:
    """Return mistakes as a figure beside a time."""
    return {"error %": 100 * wrong / stream.n_rows}


def ours(stream: Stream) -> list[Contestant]:
    """Return PA-I, and with few classes the other learners."""
    named = {PA1: ("multi", "pa1")}
    if stream.n_classes == FEWEST:
        named |= {HYBRID: ("default", "pa1"), DEFAULT: ("default", "default")}
    return [
        Contestant(
            name,
            partial(kesler, stream, *settings),
            stream.n_rows,
            prepare=partial(kesler, stream.first(100), *settings),  # compiles, or loads the cache
        )
        for name, settings in named.items()
    ]


def peers(stream: Stream, folder: Path, is_quick: bool) -> list[Contestant]:
    """Return the peers, each with as many rows as it learns in about a minute."""
    share = stream.n_classes * (10 if is_quick else 1)
    rows, fewer, fewest = (stream.first(n // share) for n in (40_000_000, 800_000, 400_000))
    vw = VowpalWabbit(folder, rows)
    return [
        Contestant(VW, vw.run, rows.n_rows, "vowpalwabbit", prepare=vw.prepare),
        Contestant(
            "scikit-learn PA-I, 1,000 rows at a time",
            partial(scikit_learn, fewer),
            fewer.n_rows,
            "scikit-learn",
            most=1,
        ),
        Contestant("river logistic", partial(river, fewest), fewest.n_rows, "river", most=1),
    ]


def check_costs(race: Race, laps: Mapping[str, Laps], stream: str) -> None:
    """Compare the times of our learners with that of PA-I."""
    for name, most in COSTS.items():
        cost = laps[name].each(race.clock) / laps[PA1].each(race.clock)
        race.at_most(f"time of {name} / PA-I{stream}", cost, most)


def main() -> int:
    """Run the races of all numbers of classes."""
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows (default 100,000)")
    parser.add_argument(
        "--classes", type=int, nargs="+", help="default 20 200 2000, without the last if --quick"
    )
    arguments = parser.parse_args()
    race = Race("stream", "A stream of text-like rows", __doc__, arguments)
    for n_classes in arguments.classes or list(TARGETS)[: 2 if race.is_quick else None]:
        stream = Stream(*make_text_stream(arguments.rows, n_classes), n_classes)
        with tempfile.TemporaryDirectory() as folder:
            entries = [*ours(stream), *peers(stream, Path(folder), race.is_quick)]
            laps = race.run(f"{n_classes:,} classes", entries, is_warm=True)
        faster = times_faster(laps, PA1, VW, race.clock)
        claim = f"PA-I at {n_classes:,} classes, times Vowpal Wabbit's rows per second"
        race.at_least(claim, faster, TARGETS.get(n_classes, 1))
        if n_classes == FEWEST:
            check_costs(race, laps, "")
            faster = times_faster(laps, DEFAULT, VW, race.clock)
            claim = "the default learner, times Vowpal Wabbit's rows per second"
            race.at_least(claim, faster, LEAST_OF_DEFAULT)
            topics = Stream(*make_topic_stream(arguments.rows, n_classes), n_classes)
            name = f"{n_classes:,} classes, words by rank"
            check_costs(race, race.run(name, ours(topics), is_warm=True), ", words by rank")
    return race.write()


if __name__ == "__main__":
    sys.exit(main())

"""Three methods over one stream: in threads, as `kesler compare` runs them, and one by one.

    python benchmarks/compare.py [--quick] [--rows 200000]

The same comparison twice: with a thread a core, and with one. Rows are in memory, so that reading
them, which is done once either way, hides nothing. Mistakes must be the same. That is a ratio of
wall times, and says something only where two cores are free; the processor time of both should be
about the same. A second table has one learner whose rows are shared among two threads without a
lock (Niu et al. 2011): what that gains, and what it costs in mistakes. It is not offered. Which row
meets which weights would hang on the clock, so that no run could be repeated, and no batch equal
its rows one by one; new classes and features, of which streams are made, need a lock anyway; and
the cores have work where methods are compared or banked.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from kesler import OnlineClassifier
from kesler.data.rows import Rows
from kesler.evaluation.comparison import Comparison
from kesler.learner.events import NO_PROBABILITIES, NO_SCORES
from kesler.learner.targets import Answers
from kesler.readers import Block
from racing import Contestant, Figures, Race, command_line
from text_stream import make_text_stream

N_CLASSES = 20
METHODS = ("multi", "single", "hybrid")
"""The hypotheses that `kesler compare` sets side by side unless told, by PA-I."""
TARGET = 0.65
"""The share of the time one by one that two cores may take."""
ROWS_A_BLOCK = 1024  # as readers yield them
ONE_BY_ONE, IN_THREADS = "one by one", "in threads"
UNWEIGHTED = None, Answers.of_classes, NO_SCORES, NO_PROBABILITIES


def blocks_of(n_rows: int) -> list[Block]:
    """Return the stream in blocks, as readers yield it."""
    X, y = make_text_stream(n_rows, N_CLASSES)
    rows, labels = Rows.from_sparse(X), y.tolist()
    pieces = [slice(i, i + ROWS_A_BLOCK) for i in range(0, n_rows, ROWS_A_BLOCK)]
    return [Block(rows[piece], labels[piece]) for piece in pieces]


def learner(name: str) -> OnlineClassifier:
    """Return a method by its name."""
    return OnlineClassifier(name, update="pa1")


def compare(blocks: Sequence[Block], names: Sequence[str], n_threads: int | None) -> Figures:
    """Compare methods; return the mistakes of each."""
    comparison = Comparison({name: learner(name) for name in names}, n_threads)
    for _ in comparison.run(blocks):
        pass
    return {f"{name}, %": 100 * r.error for name, r in comparison.results().items()}


def together(blocks: Sequence[Block], n_threads: int) -> Figures:
    """Let threads learn blocks with one learner, without its lock; return its mistakes."""
    model = OnlineClassifier("multi", update="pa1")
    model.learn_rows(blocks[0].rows, blocks[0].labels)  # room for all features and classes
    machine = model._learner

    def learn(share: Sequence[Block]) -> int:
        wrong = 0
        for block in share:
            rows = machine._prepare(block.rows)
            found = machine._learn(
                rows, block.labels, None, Answers.of_classes, NO_SCORES, NO_PROBABILITIES
            )
            wrong += int(np.count_nonzero(found[0] != found[1]))
        return wrong

    with ThreadPoolExecutor(n_threads) as pool:
        wrong = sum(pool.map(learn, [blocks[1 + i :: n_threads] for i in range(n_threads)]))
    n_rows = sum(len(block) for block in blocks[1:])
    return {"error %": 100 * wrong / n_rows}


def contestants(blocks: Sequence[Block]) -> list[Contestant]:
    """Return the comparison in threads and one by one, and each method alone."""
    n_rows = sum(map(len, blocks))
    warm = partial(compare, blocks[:1], METHODS, 1)
    return [
        Contestant(ONE_BY_ONE, partial(compare, blocks, METHODS, 1), n_rows, prepare=warm),
        Contestant(IN_THREADS, partial(compare, blocks, METHODS, None), n_rows),
        *(
            Contestant(f"{name} alone", partial(compare, blocks, [name], 1), n_rows)
            for name in METHODS
        ),
    ]


def main() -> int:
    """Run the race."""
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="rows (default 200,000)")
    arguments = parser.parse_args()
    race = Race("compare", "Methods side by side", __doc__, arguments)
    blocks = blocks_of(20_000 if race.is_quick else arguments.rows)
    laps = race.run("Three methods over one stream", contestants(blocks))
    in_threads, one_by_one = laps[IN_THREADS], laps[ONE_BY_ONE]
    race.check("the same mistakes", in_threads.figures == one_by_one.figures)
    share = in_threads.seconds() / one_by_one.seconds()
    race.at_most("threads, of the wall time one by one", share, TARGET)
    n_rows = sum(map(len, blocks[1:]))
    shared = [Contestant(f"{n} threads", partial(together, blocks, n), n_rows) for n in (1, 2)]
    race.run("PA-I by threads without a lock (not offered)", shared)
    return race.write()


if __name__ == "__main__":
    sys.exit(main())

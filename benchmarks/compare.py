"""Three methods on one stream: in threads, as `kesler compare` runs them, and one by one.

    python benchmarks/compare.py [--quick] [--rows 200000]

The same comparison runs twice: with one thread per core, and with one thread. Rows are in memory,
so that the time to read them does not count. The mistakes must be the same. The ratio is of wall
times, and is meaningful only if two cores are free; the processor times should be about the same. A
second table shows one learner whose rows two threads share without a lock (Niu et al. 2011), with
its time and its mistakes. Kesler does not offer this: the weights that a row is scored with would
depend on the timing, so that no run would be reproducible, and a batch would not equal its rows one
by one; new classes and features need a lock anyway; and several methods or an ensemble keep the
cores busy.
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
from kesler.online.blocks import learn_rows
from kesler.readers import Block
from racing import Contestant, Figures, Race, command_line
from text_stream import make_text_stream

N_CLASSES = 20
METHODS = ("multi", "single", "hybrid")
"""The three ways of sharing hypotheses that `kesler compare` compares, with PA-I."""
TARGET = 0.65
"""The largest time on two cores, as a share of the time one by one."""
ROWS_PER_BLOCK = 1024  # as readers yield them
ONE_BY_ONE, IN_THREADS = "one by one", "in threads"
UNWEIGHTED = None, Answers.of_classes, NO_SCORES, NO_PROBABILITIES


def blocks_of(n_rows: int) -> list[Block]:
    """Return the stream in blocks, as readers yield them."""
    X, y = make_text_stream(n_rows, N_CLASSES)
    rows, labels = Rows.from_sparse(X), y.tolist()
    pieces = [slice(i, i + ROWS_PER_BLOCK) for i in range(0, n_rows, ROWS_PER_BLOCK)]
    return [Block(rows[piece], labels[piece]) for piece in pieces]


def learner(name: str) -> OnlineClassifier:
    """Return the learner of a method."""
    return OnlineClassifier(name, update="pa1")


def compare(blocks: Sequence[Block], names: Sequence[str], n_threads: int | None) -> Figures:
    """Compare methods; return the mistakes of each."""
    comparison = Comparison({name: learner(name) for name in names}, n_threads)
    for _ in comparison.run(blocks):
        pass
    return {f"{name}, %": 100 * r.error for name, r in comparison.results().items()}


def together(blocks: Sequence[Block], n_threads: int) -> Figures:
    """Learn blocks in threads with one learner, without its lock; return its mistakes."""
    model = OnlineClassifier("multi", update="pa1")
    learn_rows(model, blocks[0].rows, blocks[0].labels)  # room for all features and classes
    inner = model._learner

    def learn(share: Sequence[Block]) -> int:
        wrong = 0
        for block in share:
            rows = inner._prepare(block.rows)
            found = inner._learn(
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
    """Run the comparison."""
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="rows (default 200,000)")
    arguments = parser.parse_args()
    race = Race("compare", "Comparison of methods", __doc__, arguments)
    blocks = blocks_of(20_000 if race.is_quick else arguments.rows)
    laps = race.run("Three methods on one stream", contestants(blocks))
    in_threads, one_by_one = laps[IN_THREADS], laps[ONE_BY_ONE]
    race.check("the same mistakes", in_threads.figures == one_by_one.figures)
    share = in_threads.seconds() / one_by_one.seconds()
    race.at_most("wall time in threads / one by one", share, TARGET)
    n_rows = sum(map(len, blocks[1:]))
    shared = [Contestant(f"{n} threads", partial(together, blocks, n), n_rows) for n in (1, 2)]
    race.run("PA-I in threads without a lock (not offered)", shared)
    return race.write()


if __name__ == "__main__":
    sys.exit(main())

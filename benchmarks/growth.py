"""What a row costs as the work grows: the exponent of the time, from four sizes of each kind.

    python benchmarks/growth.py [--quick]

PA-I with one hypothesis a class, and the default learner, over rows of words drawn evenly from
all: as the rows, the words of a row, the classes known and the features grow, all else the same.
Time is proportional to size^exponent, by least squares on the logarithms; 1 is proportional, and
features should cost nothing but what caches no longer hold.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scipy import sparse

from kesler import OnlineClassifier
from racing import Growth, Race, command_line

ROWS, WORDS, CLASSES, FEATURES = 20_000, 40, 32, 1 << 16
MOST = {"rows": 1.1, "words of a row": 1.15, "classes known": 1.15, "features": 0.5}
"""The largest exponents that are expected."""
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


def main() -> int:
    """Measure the growth of both learners."""
    arguments = command_line(__doc__).parse_args()
    race = Race("growth", "Growth", __doc__, arguments)
    for name, settings in LEARNERS.items():
        passes(settings, 100)()  # compiles, or loads what was compiled
        race.grow(name, growths(settings, ROWS // 4 if race.is_quick else ROWS))
    return race.write()


if __name__ == "__main__":
    sys.exit(main())

"""Synthetic streams of text-like rows for timing: many features, few of them nonzero per row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

N_FEATURES = 1 << 18
COMMON, TOPIC = 62, 24  # words per row drawn from all, and from the 2,000 of the class
LENGTH, OWN, TOPIC_WORDS = 80, 0.3, 4000  # words per row, the share of the class, and its words


def make_text_stream(
    n_rows: int, n_classes: int, random_state: int = 0
) -> tuple[sparse.csr_array, npt.NDArray[np.int64]]:
    """Return binary rows of about 80 words out of 2^18, and their classes.

    Words follow Zipf's law, each class has 2,000 words of its own, and one row in ten carries the
    words of another class, so that no learner gets all of them right.
    """
    generator = np.random.default_rng(random_state)
    y = generator.integers(0, n_classes, n_rows)
    topics = np.where(generator.random(n_rows) < 0.1, generator.integers(0, n_classes, n_rows), y)
    common = _zipf(generator, (n_rows, COMMON), N_FEATURES)
    own = (_zipf(generator, (n_rows, TOPIC), 2000) * 7919 + topics[:, None] * 104729) % N_FEATURES
    words = np.concatenate([common, own], axis=1)
    indptr = np.arange(n_rows + 1) * words.shape[1]
    rows = sparse.csr_array(
        (np.ones(words.size, dtype=np.float32), words.reshape(-1).astype(np.int32), indptr),
        shape=(n_rows, N_FEATURES),
    )
    rows.sum_duplicates()
    rows.data[:] = 1
    return rows, y


def make_topic_stream(
    n_rows: int, n_classes: int, random_state: int = 0
) -> tuple[sparse.csr_array, npt.NDArray[np.int64]]:
    """Return counts of 80 words out of 2^18 per row, and the classes of the rows.

    The frequency of a word is inverse to its rank, so that a tenth of them occur more than once in
    their row. Three words in ten are from the 4,000 of the class, which are drawn from all words
    and so may be frequent in other classes, and one row in ten carries those of another class.
    """
    generator = np.random.default_rng(random_state)
    y = generator.integers(0, n_classes, n_rows)
    topics = np.where(generator.random(n_rows) < 0.1, generator.integers(0, n_classes, n_rows), y)
    of_topics = np.stack(
        [generator.permutation(N_FEATURES)[:TOPIC_WORDS] for _ in range(n_classes)]
    )
    common, own = (_by_rank(generator, (n_rows, LENGTH), n) for n in (N_FEATURES, TOPIC_WORDS))
    is_own = generator.random((n_rows, LENGTH)) < OWN
    words = np.where(is_own, of_topics[topics[:, None], own], common)
    rows = sparse.csr_array(
        (
            np.ones(words.size, dtype=np.float32),
            words.reshape(-1).astype(np.int32),
            np.arange(n_rows + 1) * LENGTH,
        ),
        shape=(n_rows, N_FEATURES),
    )
    rows.sum_duplicates()
    return rows, y


def _by_rank(
    generator: np.random.Generator, shape: tuple[int, int], n: int
) -> npt.NDArray[np.int64]:
    """Return numbers below n whose frequency is inverse to their rank."""
    shares = np.cumsum(1 / np.arange(1, n + 1))
    return np.searchsorted(shares / shares[-1], generator.random(shape))


def _zipf(generator: np.random.Generator, shape: tuple[int, int], n: int) -> npt.NDArray[np.int64]:
    """Return numbers below n whose frequency falls as 1 / (rank + 10)."""
    ranks = 10 * (np.power(1 + n / 10, generator.random(shape)) - 1)
    return np.minimum(ranks.astype(np.int64), n - 1)

"""Benchmarks of the compiled loops for pytest-benchmark, to time a change to one of them.

    pytest benchmarks/test_kernels.py --benchmark-autosave --benchmark-compare

Each test is one pass of a learner, or one call, on 1,000 rows in memory, without the code that
reads and validates them. These tests are not part of `make test`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kesler import OnlineClassifier
from kesler.data.rows import Rows
from text_stream import make_text_stream

N_ROWS = 1000
CLASSES = (20, 200, 2000)
LEARNERS = {
    "pa1": {"hypotheses": "multi", "update": "pa1"},
    "perceptron": {"hypotheses": "multi", "update": "perceptron"},
    "mira": {"hypotheses": "multi", "update": "mira"},
    "hybrid": {"hypotheses": "hybrid", "update": "pa1"},
    "arow": {"hypotheses": "multi", "update": "arow"},
    "softmax": {"hypotheses": "multi", "update": "softmax", "preconditioner": "adagrad"},
    "default": {},
}


def fitted(settings: dict[str, str], n_classes: int) -> tuple[Any, Rows, list[int]]:
    """Return a learner that knows all classes, and rows to learn."""
    n_first = max(N_ROWS, n_classes)
    X, y = make_text_stream(n_first + N_ROWS, n_classes)
    y[:n_classes] = np.arange(n_classes)
    model = OnlineClassifier(**settings).partial_fit(X[:n_first], y[:n_first])
    return model._learner, Rows.from_sparse(X[n_first:]), y[n_first:].tolist()


@pytest.mark.parametrize("n_classes", CLASSES[:2])
@pytest.mark.parametrize("name", LEARNERS)
def test_trials(benchmark: Any, name: str, n_classes: int) -> None:
    """Time trials of a learner."""
    learner, rows, labels = fitted(LEARNERS[name], n_classes)
    benchmark(learner.learn, rows, labels)


@pytest.mark.parametrize("n_classes", CLASSES)
def test_scores(benchmark: Any, n_classes: int) -> None:
    """Time predictions of PA-I."""
    learner, rows, _ = fitted(LEARNERS["pa1"], n_classes)
    benchmark(learner.predict, rows)


@pytest.mark.parametrize("n_classes", CLASSES[:2])
def test_reserve(benchmark: Any, n_classes: int) -> None:
    """Time the allocation for twice the classes, with 2^18 features."""
    learner, _, _ = fitted(LEARNERS["pa1"], n_classes)

    def once_more() -> None:
        learner.reserve(2 * learner.weights.shape[1], 0)

    benchmark.pedantic(once_more, rounds=1)

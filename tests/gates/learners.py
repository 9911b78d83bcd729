"""The four learners of the accuracy gate on the 23 first sets of `benchmarks/sets.py`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "papers")]  # behind the tests' own modules

from kesler import OnlineClassifier, progressive_validate  # noqa: E402
from sets import FIRST, Stream  # noqa: E402

N_ROWS = 3_000
"""The first rows of each set only, in the order in which the benchmark learns them."""

LEARNERS: dict[str, Callable[[], Any]] = {
    "default": lambda: OnlineClassifier(),
    "ensemble": lambda: OnlineClassifier(update="ensemble"),
    "hybrid-pa1": lambda: OnlineClassifier("hybrid", update="pa1"),
    "kernel-rbf": lambda: OnlineClassifier(kernel="rbf"),
}
NAMES = tuple(each.name for each in FIRST)


@cache
def rows_of(name: str) -> Stream:
    """Read the first rows of a set, those of texts as counts of their words."""
    found = next(each for each in FIRST if each.name == name).stream()
    return found.in_numbers().head(N_ROWS)


def run(name: str, learner: str, n_rows: int = N_ROWS) -> tuple[Any, Any]:
    """Predict and learn the first rows of a set; return the learner and the record."""
    rows = rows_of(name).head(n_rows)
    model = LEARNERS[learner]()
    return model, progressive_validate(model, rows.X, rows.y)

"""Every learner whose answers are label sets, rankings or ranks, and random answers for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from kesler import OnlineLabelRanker, OnlineMultilabelClassifier, OnlineOrdinalClassifier
from kesler.links import LINKS
from registry import FAMILIES, PLAIN_RULES, Row
from streams import make_stream

OF_TABLES: dict[str, Any] = {"sets": OnlineMultilabelClassifier, "rankings": OnlineLabelRanker}
ESTIMATORS: dict[str, Any] = {**OF_TABLES, "ranks": OnlineOrdinalClassifier}
Answers = list[Any]  # a list of labels a row; for ranks one label


@dataclass(frozen=True)
class Case:
    """A face of a learner of the registry."""

    estimator: str
    row: Row
    intercept: float = 1.0
    decision: str = "score"

    @property
    def name(self) -> str:
        decision = "" if self.decision == "score" else f"-{self.decision}"
        return f"{self.estimator}-{self.row.name}{decision}"

    def learner(self, C: float = 1.0) -> Any:
        view = self.row.feature_map
        hypotheses = FAMILIES[self.row.family].hypotheses(None, view)
        more: dict[str, Any] = {
            name: getattr(self.row, name)
            for name in ("preprocessing", "preconditioner", "on_new_class")
        }
        more |= {"link": self.row.linked_by, "averaged": self.row.averaged}
        if view is not None and self.estimator != "ranks":
            more["feature_map"] = view
        if self.estimator != "rankings":
            more["decision"] = self.decision
        update = self.row.update(C)
        return ESTIMATORS[self.estimator](
            hypotheses, update=update, intercept=self.intercept, **more
        )


CASES = [
    Case(estimator, Row(rule, family, "product-mean" if FAMILIES[family].kinds[0][1] else None))
    for estimator, rule, family in product(
        ESTIMATORS, PLAIN_RULES, ["multi", "single", "own-view", "grouped"]
    )
] + [
    Case(estimator, Row(rule, "hybrid", "distance"))
    for estimator, rule in product(OF_TABLES, PLAIN_RULES)
]
CASES += [Case("ranks", Row(rule, "hybrid", None)) for rule in PLAIN_RULES]
CASES += [
    Case(estimator, Row("simproj", "multi", None, preprocessing=preprocessing))
    for estimator, preprocessing in product(ESTIMATORS, ["counts", "idf", "z-scores"])
]
CASES += [Case("ranks", Row("simproj", "hybrid", None, link=link)) for link in (*LINKS, "rising")]
CASES += [Case("ranks", Row("mira", "hybrid", None, preconditioner="adagrad"))]
# What text with several labels asks for.
WORDS = Row(
    *("ovr-squared", "multi", None),
    preprocessing="counts",
    preconditioner="adagrad",
    on_new_class="inherit",
)
CASES += [Case("sets", WORDS), Case("sets", replace(WORDS, family="hybrid", view="contrast"))]

OF_PROBABILITIES = [
    Case("sets", WORDS, decision="f1"),
    Case("sets", Row("simproj", "multi", None, averaged=True), decision="f1"),
    Case("sets", Row("pa1", "hybrid", "distance"), decision="f1"),
    Case("ranks", Row("simproj", "hybrid", None), decision="median"),
    Case("ranks", Row("simproj", "multi", None, averaged=True), decision="median"),
]
"""Cases whose predictions follow from probabilities; their scores have no oracle in NumPy."""


def every_case(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def answers_of(estimator: str, seed: int, n_rows: int, k: int) -> Answers:
    """Lists of labels, numbered in the order in which they are named first; ranks in any order."""
    rng = np.random.default_rng(seed)
    if estimator == "ranks":
        return rng.integers(k, size=n_rows).tolist()
    lengths = rng.integers(0, k + 1, size=n_rows)
    named = [rng.permutation(k)[: n // (2 if estimator == "sets" else 1)].tolist() for n in lengths]
    number: dict[int, int] = {}
    return [[number.setdefault(label, len(number)) for label in row] for row in named]


def rows_of(seed: int, n_rows: int = 30) -> np.ndarray:
    return make_stream(seed, n_rows).X


def some(estimator: str, seed: int, n_rows: int = 30, k: int = 6) -> tuple[np.ndarray, Answers]:
    return rows_of(seed, n_rows), answers_of(estimator, seed, n_rows, k)


def table_of(estimator: str, y: Answers, k: int) -> np.ndarray:
    """Return the same answers as an indicator matrix, or as ranks."""
    table = np.zeros((len(y), k))
    for row, labels in enumerate(y):
        table[row, labels] = 1 if estimator == "sets" else np.arange(1, len(labels) + 1)
    return table

"""Small models of every estimator, kind of weights, link, preconditioner and preprocessing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from kesler import (
    Ensemble,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    Ratings,
)
from kesler.algorithms import ALGORITHMS
from kesler.budgets import Budget
from kesler.data import model_file
from kesler.hypotheses import Grouped
from kesler.learner import state
from kesler.links import LINKS
from kesler.preconditioners import PRECONDITIONERS
from kesler.preprocessing import PREPROCESSINGS
from kesler.updates import RULES

N_ROWS, N_FEATURES, N_CLASSES = 18, 5, 4
LABELS = [f"c{i % N_CLASSES}" for i in range(N_ROWS)]
DENSE = np.random.default_rng(0).normal(size=(N_ROWS, N_FEATURES)).round(2)
NAMED = [{f"w{i}": float(v) for i, v in enumerate(row) if v > 0} for row in DENSE]

TABLE = [
    {
        "text": f"word{i % 7} and word{i % 4}",
        "hours": None if i % 5 == 0 else i / 2,
        "team": "abc"[i % 3],
        "day": f"2026-03-{1 + i:02}",
        "tags": [f"t{i % 4}", "all"],
        "place": [0.5 * i, 1.0],
        "id": f"row-{i}",
    }
    for i in range(N_ROWS)
]

Rows = tuple[Any, list[Any]]
"""The rows and the targets that a model learnt from, and that it is asked about again."""


def with_classes(**parameters: Any) -> Callable[[], Any]:
    return lambda: OnlineClassifier(**parameters)


def two() -> list[OnlineClassifier]:
    return [OnlineClassifier("multi", update="pa1"), OnlineClassifier("single", update="pa1")]


def sets() -> list[set[str]]:
    return [{label, "c0"} for label in LABELS[:-1]] + [set()]


def rated() -> Any:
    rng = np.random.default_rng(1)
    return Ratings.from_dense(
        rng.normal(size=(N_ROWS, N_CLASSES, 3)).tolist(), labels=sorted(set(LABELS))
    )


PATHS = [f"{label[-1] > '1'};{label}" for label in LABELS]
GROUPS = {"even": ["c0", "c2"], "low": ["c0", "c1"]}

MAKERS: dict[str, tuple[Callable[[], Any], Rows]] = {
    "default": (OnlineClassifier, (DENSE, LABELS)),
    "default of names": (OnlineClassifier, (NAMED, LABELS)),
    "candidates": (with_classes(candidates=2), (NAMED, LABELS)),
    "ranks": (with_classes(ranks=";"), (NAMED, PATHS)),
    "memory limit": (with_classes(memory_limit="1 MB"), (NAMED, LABELS)),
    "sparse rows": (with_classes(hypotheses="multi", update="pa1"), (DENSE, LABELS)),
    "averaged": (with_classes(hypotheses="multi", update="pa1", averaged=True), (DENSE, LABELS)),
    "inherit": (
        with_classes(hypotheses="multi", update="pa1", on_new_class="inherit"),
        (DENSE, LABELS),
    ),
    "grouped": (with_classes(hypotheses=Grouped(GROUPS), update="pa1"), (DENSE, LABELS)),
    "costs": (
        with_classes(hypotheses="multi", update="pa1", costs={("c0", "c1"): 2.0}),
        (DENSE, LABELS),
    ),
    "half-life": (
        with_classes(hypotheses="multi", update="pa1", half_life=5.0),
        (DENSE, LABELS),
    ),
    "moments": (
        with_classes(hypotheses="hybrid", feature_map="gaussian-ratio", update="pa1"),
        (DENSE, LABELS),
    ),
    "frequency": (
        with_classes(hypotheses="single", feature_map="frequency", update="conproj"),
        (NAMED, LABELS),
    ),
    "texts": (OnlineClassifier, ([row["text"] for row in TABLE], LABELS)),
    "table": (OnlineClassifier, (TABLE, LABELS)),
    "longer table": (OnlineClassifier, (4 * TABLE, 4 * LABELS)),
    "table of sets": (OnlineMultilabelClassifier, (TABLE, sets())),
    "averaged link": (
        with_classes(hypotheses="hybrid", update="perceptron", link="positive", averaged=True),
        (DENSE, LABELS),
    ),
    "kernel": (with_classes(update="pa1", kernel="rbf", sigma=1.0), (DENSE, LABELS)),
    "kernel of names": (with_classes(update="pa1", kernel="rbf"), (NAMED, LABELS)),
    "kernel with budget": (
        with_classes(update="perceptron", kernel="polynomial", budget=6),
        (DENSE, LABELS),
    ),
    "projectron": (
        with_classes(update="perceptron", kernel="rbf", budget=Budget(6, "projectron")),
        (DENSE, LABELS),
    ),
    "forgetron of names": (
        with_classes(update="perceptron", kernel="rbf", budget=Budget(6, "forgetron")),
        (NAMED, LABELS),
    ),
    "ensemble": (with_classes(update="ensemble"), (DENSE, LABELS)),
    "majority": (lambda: Ensemble(two(), combine="majority"), (DENSE, LABELS)),
    **{f"algorithm {name}": (partial(LinearMax, name), (DENSE, LABELS)) for name in ALGORITHMS},
    "multilabel": (OnlineMultilabelClassifier, (DENSE, sets())),
    "candidates of label sets": (
        lambda: OnlineMultilabelClassifier(candidates=2),
        (NAMED, sets()),
    ),
    "ranking": (OnlineLabelRanker, (DENSE, [sorted({a, "c1"}) for a in LABELS])),
    "ordinal": (OnlineOrdinalClassifier, (DENSE, LABELS)),
    "ordinal with an order": (
        lambda: OnlineOrdinalClassifier(order=["c3", "c2", "c1", "c0"]),
        (DENSE, LABELS),
    ),
    "sub-experts": (
        with_classes(hypotheses="sub-experts", update="pa1"),
        (rated(), LABELS),
    ),
    **{
        f"rule {name}": (with_classes(hypotheses="multi", update=name), (DENSE, LABELS))
        for name in RULES
    },
    **{
        f"link {name}": (
            with_classes(hypotheses="hybrid", update="perceptron", link=name),
            (DENSE, LABELS),
        )
        for name in LINKS
    },
    **{
        f"preconditioner {name}": (
            with_classes(hypotheses="multi", update="hinge", preconditioner=name),
            (DENSE, LABELS),
        )
        for name in PRECONDITIONERS
    },
    **{
        f"preprocessing {name}": (
            with_classes(hypotheses="multi", update="pa1", preprocessing=name),
            (DENSE, LABELS),
        )
        for name in PREPROCESSINGS
    },
}


def models_of(folder: Path) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return the arrays and metadata of the files of all models."""
    found = {}
    for name, (make, (X, y)) in MAKERS.items():
        model = make()
        with patch.object(state, "LARGEST_TABLE", 0 if name == "sparse rows" else 1 << 29):
            model.partial_fit(X, y).save(folder / "model")
        found[name] = model_file.load(folder / "model")
    return found

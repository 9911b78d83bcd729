"""Journals: after any calls, a model equals a learner that has met the remaining history."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from histories import Walk, file_of, learnt_anew
from kesler import (
    Ensemble,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
)
from kesler.durable import Journal, numbered, replica, storage

WORDS = [f"w{i}" for i in range(30)]
LABELS = ["a", "b", "c", "d"]


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Make copies and snapshots every few events, in parts, and learn again in small blocks."""
    monkeypatch.setattr(storage, "PART", 1000)
    monkeypatch.setattr(replica, "LEAST_SPACING", 3)
    monkeypatch.setattr(replica, "COPIED", 1 << 40)
    monkeypatch.setattr(replica, "WRITTEN", 1 << 40)
    monkeypatch.setattr(replica, "BLOCK", 5)
    monkeypatch.setattr(replica, "FEW_ROWS", 4)
    monkeypatch.setattr(replica, "ROWS_OF_A_SNAPSHOT", 2)


def words(rng: np.random.Generator) -> dict[str, float]:
    chosen = rng.choice(WORDS, rng.integers(0, 6), replace=False).tolist()
    values = 1 if rng.random() < 0.5 else None
    return {word: values or int(rng.integers(1, 4)) for word in chosen}


def named(rng):
    return words(rng), str(rng.choice(LABELS))


def text(rng):
    return " ".join(words(rng)), str(rng.choice(LABELS))


def mixed(rng):
    return (words(rng) if rng.random() < 0.5 else " ".join(words(rng))), str(rng.choice(LABELS))


def numbers(rng):
    return rng.normal(size=4).round(3), str(rng.choice(LABELS))


def cells(rng):
    row = {
        "body": " ".join(words(rng)),
        "hours": int(rng.integers(9)),
        "kind": "xyz"[rng.integers(3)],
    }
    return (row if rng.random() < 0.8 else row | {"hours": None}), str(rng.choice(LABELS))


def sets(rng):
    return words(rng), sorted(rng.choice(LABELS, rng.integers(0, 3), replace=False).tolist())


def rankings(rng):
    return words(rng), rng.choice(LABELS, 3, replace=False).tolist()


PA1 = partial(OnlineClassifier, "hybrid", update="pa1")
MEMBERS = [OnlineClassifier("multi", update="pa1"), OnlineClassifier("single", update="mira")]
MODELS: dict[str, tuple[Any, Any]] = {
    "default": (OnlineClassifier, named),
    "hybrid": (PA1, mixed),
    "ensemble": (lambda: Ensemble([*MEMBERS]), named),
    "kernel": (
        lambda: OnlineClassifier("hybrid", update="perceptron", kernel="rbf", sigma=1.0, budget=5),
        named,
    ),
    "means of a kernel": (lambda: PA1(kernel="rbf", sigma=1.0, averaged=True), named),
    "ranks of a kernel": (lambda: OnlineOrdinalClassifier("single", kernel="rbf"), named),
    "romma of a kernel": (lambda: LinearMax("romma", kernel="polynomial"), named),
    "multilabel": (OnlineMultilabelClassifier, sets),
    "texts": (OnlineClassifier, text),
    "dense": (OnlineClassifier, numbers),
    "table": (OnlineClassifier, cells),
    "ranks": (OnlineOrdinalClassifier, named),
    "rankings": (lambda: OnlineLabelRanker("multi"), rankings),
    "costs": (lambda: OnlineClassifier(update="hinge", costs={("q", "r"): 3.0}), named),
}


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32 - 1))
def test_equals_learner_of_remaining_history(name, seed, tmp_path_factory):
    make, rows = MODELS[name]
    folder = tmp_path_factory.mktemp("journal")
    rng = np.random.default_rng(seed)
    with Journal(folder / "desk.db") as journal, Journal(folder / "desk.db") as other:
        walk = Walk(journal.open("m", make()), rows, rng)
        reader = other.open("m", make())
        for i in range(30):
            walk.step()
            if i % 5 == 4:
                anew = learnt_anew(make, walk.plain.remaining())
                assert file_of(walk.model, folder) == file_of(anew, folder)
                assert walk.model.classes_.tolist() == sorted(walk.plain.classes())
            if i % 7 == 6:
                assert file_of(reader, folder) == file_of(walk.model, folder)
        assert journal.check() == []
    with Journal(folder / "desk.db") as journal:
        reopened = journal.open("m")
        assert file_of(reopened, folder) == file_of(anew, folder)
        walk.model = reopened
        for _ in range(10):
            walk.step()
        anew = learnt_anew(make, walk.plain.remaining())
        assert file_of(reopened, folder) == file_of(anew, folder)


def test_names_that_a_limit_has_dropped_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(numbered, "MOST_NAMES", 1000)
    make = partial(OnlineClassifier, memory_limit="400 KB")
    given = [({f"new{i} {j}": 1 for j in range(5)}, LABELS[i % 4]) for i in range(2600)]
    with Journal(tmp_path / "desk.db") as journal:
        model = journal.open("m", make())
        model.learn_many((*row, f"m{i}", None) for i, row in enumerate(given))
        model.undo("m3")
        n_names = len(model.estimator.vocabulary_)
        assert model.estimator.n_dropped_ > 10_000 and n_names < 2000
        most = max(1000, 2 * n_names) + 5 * 5  # with those of a block
        assert 0 < len(model._replica._numbering.codes) <= most < 13_000
        anew = learnt_anew(make, given[:3] + given[4:])
        assert file_of(model, tmp_path) == file_of(anew, tmp_path)

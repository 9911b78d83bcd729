"""Rows that an ensemble learns one by one: the same arrays serve all, with the bits of batches."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kesler import Ensemble, OnlineClassifier
from kesler.learner.ensemble import EnsembleLearner

N_FEATURES, N_BEFORE, N_ROWS = 5, 520, 640  # the default learns none of the first 500 rows again


def members() -> list[OnlineClassifier]:
    """Return members with an expansion, a kernel, weights of three kinds, and a constant."""
    return [
        OnlineClassifier("multi", update="pa1", preprocessing="bins"),
        OnlineClassifier("multi", update="pa1", kernel="rbf", sigma=2.0, budget=40),
        OnlineClassifier("multi", update="arow", intercept=1.0),
        OnlineClassifier("single", feature_map="frequency", update="softmax"),
    ]


MODELS: dict[str, Callable[[], OnlineClassifier | Ensemble]] = {
    "default": OnlineClassifier,
    "default, forgetting": lambda: OnlineClassifier(half_life=100.0),
    "default, with a memory": lambda: OnlineClassifier(uncertainty="full"),
    "default, without estimates": lambda: OnlineClassifier(uncertainty=False),
    **{
        combine: lambda combine=combine: Ensemble(members(), combine=combine)
        for combine in ("majority", "best", "mixture", "fixed-share")
    },
}


def rows() -> tuple[np.ndarray, list[int]]:
    """Return rows of classes of which more and more appear."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    y = (rng.integers(0, 2 + np.arange(N_ROWS) // 60) % 11).tolist()
    X[:, 0] += y
    return X, y


def blocks_learnt(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the number of rows of each block is added that an ensemble learns."""
    found, learn = list[int](), EnsembleLearner._learn_scored

    def counted(self: EnsembleLearner, stack, scores, given, *learning):
        found.append(len(given))
        return learn(self, stack, scores, given, *learning)

    monkeypatch.setattr(EnsembleLearner, "_learn_scored", counted)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_rows_learnt_one_by_one_are_learnt_as_in_batches(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (X, y), (one, other) = rows(), (MODELS[name]() for _ in range(2))
    for model in (one, other):
        model.partial_fit(X[:N_BEFORE], y[:N_BEFORE])
    found, predicted = blocks_learnt(monkeypatch), []
    for x, label in zip(X[N_BEFORE:], y[N_BEFORE:], strict=True):
        predicted.append(one.learn_predict_one(x, label))
    n_new = len({*y} - {*y[:N_BEFORE]})
    assert n_new > 0 and len(found) == n_new
    expected = []
    for i in range(N_BEFORE, N_ROWS):
        expected.append(other.predict(X[i : i + 1])[0])
        other.partial_fit(X[i : i + 1], y[i : i + 1])
    assert predicted == expected
    one.save(tmp_path / "one")
    other.save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_rows_of_ever_more_named_features_are_learnt_as_in_batches(tmp_path: Path) -> None:
    rules = ("pa1", "arow", "softmax")
    one, other = (Ensemble([OnlineClassifier("multi", update=r) for r in rules]) for _ in range(2))
    rng = np.random.default_rng(0)
    for n in range(4, 240):  # more than fit into the first buffers
        row = {f"w{i}": float(v) for i, v in zip(range(0, n, 2), rng.normal(size=n), strict=False)}
        assert one.learn_predict_one(row, n % 3) == (other.predict([row])[0] if n > 4 else None)
        other.partial_fit([row], [n % 3])
    one.save(tmp_path / "one")
    other.save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_copy_learns_rows_with_arrays_of_its_own(tmp_path: Path) -> None:

    X, y = rows()
    model = OnlineClassifier().partial_fit(X[:N_BEFORE], y[:N_BEFORE])
    model.learn_one(X[0], y[0])
    copied, before = copy.deepcopy(model), model.predict_proba(X[:20])
    for x, label in zip(X[N_BEFORE:], y[N_BEFORE:], strict=True):
        copied.learn_one(x, label)
    np.testing.assert_array_equal(model.predict_proba(X[:20]), before)
    for x, label in zip(X[N_BEFORE:], y[N_BEFORE:], strict=True):
        model.learn_one(x, label)
    np.testing.assert_array_equal(model.predict_proba(X), copied.predict_proba(X))

"""Weights in sparse rows: nothing that a user sees depends on how weights are stored."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from commands import kesler
from kesler import Ensemble, OnlineClassifier, load, mistake_bound, progressive_validate
from kesler.datasets import load as load_data
from kesler.learner import state as memory_module
from kesler.learner.weights import IN_TABLE, SparseWeights
from streams import Stream, assert_same, make_stream, run_trials

LEARNERS: dict[str, dict[str, Any]] = {
    "perceptron": {"update": "perceptron", "intercept": 1.0},
    "pa": {"update": "pa"},
    "pa1": {"update": "pa1", "half_life": 30.0},
    "pa2": {"update": "pa2", "on_new_class": "learn"},
    "margin": {"update": "margin-perceptron", "preprocessing": "counts"},
    "hinge": {"update": "hinge", "preprocessing": "z-scores"},
}
"""Rules of two classes a trial, each with something else beside."""
NEVER, ALWAYS = 1 << 62, 0
"""The size from which weights are stored in sparse rows."""

every_learner = pytest.mark.parametrize("settings", LEARNERS.values(), ids=LEARNERS)
with_rows = settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def keep_tables(monkeypatch):
    """Return a function that sets the largest size of tables of weights."""
    return lambda size: monkeypatch.setattr(memory_module, "LARGEST_TABLE", size)


def learner(**settings: Any) -> OnlineClassifier:
    return OnlineClassifier("multi", **settings)


def assert_alike(one: OnlineClassifier, other: OnlineClassifier, stream: Stream) -> None:
    """Require equal predictions, bit for bit, of models that store weights differently."""
    for ask in ("predict", "decision_function", "predict_proba"):
        found = [getattr(model, ask)(stream.X) for model in (one, other)]
        np.testing.assert_array_equal(*found, strict=True)
    np.testing.assert_array_equal(weights_of(one), weights_of(other), strict=True)
    assert one._learner.counts.tolist() == other._learner.counts.tolist()


def weights_of(model: OnlineClassifier) -> np.ndarray:
    weights = model._learner.hypothesis_weights()[0]
    return weights.toarray() if sparse.issparse(weights) else weights


def rows_of(model: OnlineClassifier) -> SparseWeights:
    assert model.keeps_sparse_rows_
    return model._learner.sparse


@st.composite
def wide_streams(draw: Any) -> Stream:
    """Streams of up to 200 classes: features have entries for few, and for most of them."""
    return make_stream(
        draw(st.integers(0, 2**32 - 1)),
        n_rows=draw(st.integers(100, 300)),
        n_classes=draw(st.integers(2, 200)),
        n_features=draw(st.integers(1, 30)),
        density=draw(st.sampled_from([0.05, 0.3, 1.0])),
        whole=draw(st.booleans()),
    )


# ---- as in a table ------------------------------------------------------------------------------


@every_learner
@with_rows
@given(stream=wide_streams(), size=st.sampled_from([0, 500, 5000]), batch=st.integers(1, 300))
def test_every_trial_is_that_of_a_table(settings, keep_tables, stream, size, batch):
    """Whether there are sparse rows from the start, later or for a while only; in any batches."""
    keep_tables(NEVER)
    dense = learner(**settings)
    result = progressive_validate(dense, stream.X, stream.y)
    assert not dense.keeps_sparse_rows_
    keep_tables(size)
    model, found = learner(**settings), []
    for start in range(0, len(stream), batch):
        part = stream[start : start + batch]
        found.extend(run_trials(model, part.X, part.y)[0].tolist())
    assert found == result.predictions.tolist()
    assert_alike(dense, model, stream)


@pytest.mark.parametrize(
    "settings", [{"update": "pa1"}, {"update": "perceptron", "intercept": 1.0}]
)
def test_real_rows_are_learnt_as_in_a_table(keep_tables, settings):
    data = load_data("letter")
    stream = Stream(data.X[:3000], data.y[:3000], np.ones(3000))
    keep_tables(NEVER)
    dense = learner(**settings)
    result = progressive_validate(dense, stream.X, stream.y)
    keep_tables(ALWAYS)
    model = learner(**settings)
    other = progressive_validate(model, sparse.csr_array(stream.X), stream.y)
    assert other.predictions.tolist() == result.predictions.tolist()
    assert result.n_mistakes > 500
    assert (other.log_loss, other.calibration_error) == (result.log_loss, result.calibration_error)
    rows_of(model)
    assert_alike(dense, model, stream)


def test_untouched_classes_come_in_where_they_were_met(keep_tables):
    """Classes without a weight on a row have score 0; of those the one seen first is predicted."""
    keep_tables(ALWAYS)
    model = learner(update="perceptron").fit(np.eye(6), [*"dbcaef"])
    assert model.predict(np.zeros((1, 6))).tolist() == ["d"]
    model.learn_one([1, 0, 0, 0, 0, 0], "b")  # d was predicted: feature 0 speaks against it
    assert model.decision_function([[1.0, 0, 0, 0, 0, 0]]).tolist() == [[0, 1, 0, -1, 0, 0]]
    assert model.predict([[1.0, 0, 0, 0, 0, 0], [-1.0, 0, 0, 0, 0, 0]]).tolist() == ["b", "d"]
    model.learn_one([-1, 0, 0, 0, 0, 0], "b")
    assert model.decision_function([[1.0, 0, 0, 0, 0, 0]]).tolist() == [[0] * 6]
    assert model.predict([[1.0, 0, 0, 0, 0, 0]]).tolist() == ["d"]


# ---- from entries to the table and back ---------------------------------------------------------


def test_features_that_fill_up_move_to_the_table_and_back(keep_tables):
    rng = np.random.default_rng(5)
    X = np.where(rng.random((3000, 40)) < np.linspace(0.002, 1, 40), rng.normal(size=(3000, 40)), 0)
    y = np.concatenate([rng.integers(150, size=1500), 150 + rng.integers(2000, size=1500)])
    stream = Stream(X.astype(np.float32), y, np.ones(3000))
    models = {}
    for size in (NEVER, ALWAYS):
        keep_tables(size)
        models[size] = learner(update="pa1").partial_fit(X[:1500], y[:1500])
    stored = rows_of(models[ALWAYS])
    before = stored.stored["counts"] == IN_TABLE
    assert (
        before.any()
        and (stored.stored["counts"][:40] > 0).any()
        and stored.stored["table"].shape[1] == 160
    )
    for model in models.values():
        model.partial_fit(X[1500:], y[1500:])
    after = stored.stored["counts"] == IN_TABLE
    assert (before & ~after).any() and stored.stored["table"].shape[1] > 1000
    assert_alike(models[NEVER], models[ALWAYS], stream[2900:3000])


def test_runs_of_features_that_left_for_the_table_are_used_again(keep_tables):
    keep_tables(ALWAYS)
    rng = np.random.default_rng(1)
    model = learner(update="perceptron").partial_fit(rng.normal(size=(1, 3)), [0], range(256))
    for feature in range(3):
        X = np.zeros((400, 3))
        X[:, feature] = rng.choice([-1, 1], size=400)
        model.partial_fit(X, rng.integers(256, size=400))
        assert rows_of(model).stored["counts"][feature] == IN_TABLE
    assert (
        rows_of(model).stored["pool"]["n_units"] == 2
    )  # units: two runs of 16 entries, which all three have had


# ---- which learners, and when -------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"hypotheses": "hybrid", "update": "pa1"},
        {"hypotheses": "multi", "update": "simproj"},
        {"hypotheses": "multi", "update": "softmax"},
        {"hypotheses": "multi", "update": "arow"},
        {"hypotheses": "multi", "update": "pa1", "preconditioner": "adagrad"},
        {"hypotheses": "multi", "update": "pa1", "preconditioner": "scale-free"},
        {"hypotheses": "multi", "update": "pa1", "averaged": True},
        {"hypotheses": "multi", "update": "pa1", "link": "exponential"},
        {"hypotheses": "multi", "update": "pa1", "on_new_class": "inherit"},
        {"hypotheses": "multi", "update": "pa1", "costs": {(0, 1): 2.0}},
        {"hypotheses": "multi", "update": "pa1", "kernel": "rbf"},
        {},
    ],
    ids=str,
)
def test_all_others_keep_tables(keep_tables, settings):
    keep_tables(ALWAYS)
    model = OnlineClassifier(**settings).fit(make_stream(2).X, make_stream(2).y)
    assert not model.keeps_sparse_rows_


def test_a_table_is_kept_while_it_is_small_or_full(keep_tables):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(400, 50)), rng.integers(100, size=400)
    for size, is_sparse in ((4 * 64 * 112, False), (4 * 64 * 112 - 1, True)):
        keep_tables(size)
        assert learner(update="pa1").fit(X, y).keeps_sparse_rows_ is is_sparse
    keep_tables(4 * 64 * 112)
    model = learner(update="pa1").partial_fit(X, y)
    model.partial_fit(X, y + 300)  # beyond the capacity of that table, a third of which is in use
    assert not model.keeps_sparse_rows_


def test_a_ensemble_of_both_is_mixed_as_ever(keep_tables):
    stream = make_stream(8, n_rows=200, n_classes=30)
    found = []
    for size in (NEVER, ALWAYS):
        keep_tables(size)
        ensemble = Ensemble([learner(update="pa1"), OnlineClassifier("hybrid", update="pa1")])
        found.append(progressive_validate(ensemble, stream.X, stream.y).predictions.tolist())
        assert not ensemble.keeps_sparse_rows_
    assert found[0] == found[1]


def test_bounds_are_those_of_a_table(keep_tables):
    stream = make_stream(4, n_rows=100)
    settings = []
    for size in (NEVER, ALWAYS):
        keep_tables(size)
        model = learner(update="perceptron")
        result = progressive_validate(model, stream.X, stream.y)
        settings.append([str(mistake_bound(result)), str(mistake_bound(result, competitor=model))])
    assert settings[0] == settings[1]


# ---- files --------------------------------------------------------------------------------------


def test_files_hold_what_is_not_zero_and_say_so(keep_tables, tmp_path, capsys):
    stream = make_stream(9, n_rows=300, n_classes=100, n_features=200, density=0.02)
    path = tmp_path / "model.kesler"
    keep_tables(NEVER)
    dense = learner(update="pa1").fit(stream.X, stream.y)
    dense.save(path)
    n_bytes = path.stat().st_size
    assert "sparse" not in kesler(capsys, "show", path).out
    keep_tables(ALWAYS)
    assert_alike(load(path), dense, stream)  # moves to sparse rows
    model = learner(update="pa1").fit(stream.X, stream.y)
    model.save(path)
    n_weights = np.count_nonzero(weights_of(dense))
    assert path.stat().st_size < min(n_bytes / 4, 8 * n_weights + 8000)
    shown = dict(line.rsplit(maxsplit=1) for line in kesler(capsys, "show", path).lines[:12])
    assert shown["sparse weights"] == f"{n_weights:,}"
    keep_tables(NEVER)
    again = load(path)
    assert_same(again, model, stream.X)
    pickled = pickle.dumps(model)
    assert len(pickled) < 20 * n_weights + 200_000
    dense.partial_fit(stream.X[::-1], stream.y[::-1])
    for each in (again, model, pickle.loads(pickled)):
        each.partial_fit(stream.X[::-1], stream.y[::-1])
        assert_alike(each, dense, stream)


# ---- memory -------------------------------------------------------------------------------------


def test_twenty_thousand_classes_take_what_their_weights_take():
    rng = np.random.default_rng(7)
    n_rows, n_classes, n_features = 4000, 20_000, 1 << 18
    X = sparse.random_array((n_rows, n_features), density=2e-4, format="csr", rng=rng)
    y = rng.permutation(np.arange(n_rows) % 1000 * 20)
    model = learner(update="pa1").partial_fit(X[:10], y[:10])  # compiled before it is measured
    tracemalloc.start()
    model = learner(update="pa1").partial_fit(X, y, classes=range(n_classes))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    stored = rows_of(model)
    n_bytes = sum(array.nbytes for array in stored.__getstate__()["stored"].values())
    n_weights = model._learner.hypothesis_weights()[0].nnz
    assert n_weights > 100_000  # of 5.2e9
    assert n_bytes < 8 * (n_features + 64) + 132 * n_weights + 200_000
    assert peak < 200e6  # with room that is not in use yet
    assert stored.stored["table"].shape[1] >= n_classes and model.n_known_ == 1000

"""Units that follow the rows, over kernels: ranges of features, and sigma from the distances."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import homemade
from kesler import (
    KeslerError,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    load,
)
from kesler.budgets import Budget
from kesler.hypotheses import Shared
from kesler.kernels import RBF
from kesler.maps import Difference
from kesler.preprocessing import Counts, Ranges, ZScores
from reference_kernels import reference_kernel_run
from reference_units import kernels, medians
from registry import Row
from streams import assert_same, make_stream, run_trials

LEARNERS: dict[str, dict[str, Any]] = {
    "ranges": {"kernel": RBF(0.3), "preprocessing": "ranges"},
    "auto": {"kernel": "rbf", "preprocessing": None},
    "ranges, auto": {"kernel": "rbf", "preprocessing": "ranges"},
    "ranges, auto, budget": {"kernel": "rbf", "preprocessing": "ranges", "budget": 70},
    "ranges, polynomial": {"kernel": "polynomial", "preprocessing": "ranges"},
    "ranges, auto, intercept": {"kernel": "rbf", "preprocessing": "ranges", "intercept": 2.0},
    "counts, auto": {"kernel": "rbf", "preprocessing": "counts"},
    "ranges, information": {"kernel": RBF(0.3), "preprocessing": Ranges(True)},
    "ranges, auto, information": {"kernel": "rbf", "preprocessing": Ranges(True)},
    "ranges, auto, information, smallest": {
        "kernel": "rbf",
        "preprocessing": Ranges(True),
        "budget": Budget(20, "smallest"),
    },
}
EVERY = pytest.mark.parametrize("name", LEARNERS)


def learner(name: str, **more: Any) -> OnlineClassifier:
    return OnlineClassifier("multi", **LEARNERS[name], **more)


def growing(seed: int, n_rows: int = 300) -> tuple[Any, Any]:
    """Rows of which many widen a range, and one widens them all by far."""
    stream = make_stream(seed, n_rows=n_rows, n_classes=5)
    X = stream.X * np.linspace(1, 4, n_rows)[:, None] + 3
    X[n_rows // 2 :] *= 1e6
    return X.astype(np.float32).astype(np.float64), stream.y


# ---- the reference
# -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["ranges", "auto", "ranges, auto", "ranges, information", "ranges, auto, information"],
)
@pytest.mark.parametrize("rule", ["perceptron", "pa1", "mira"])
def test_trials_are_as_in_the_oracle(name, rule):
    settings, reached = LEARNERS[name], 0
    for seed in range(5):
        stream = make_stream(seed, n_rows=120, n_classes=4, n_features=5, density=1.0)
        sigma = None if "auto" in name else 0.3
        y = stream.y if "information" in name else None
        by_trial = kernels(stream.X, ranged="ranges" in name, sigma=sigma, y=y)
        parts, update = Row(rule, "multi", None).oracle(), Row(rule, "multi", None).update(1.0)
        run = reference_kernel_run(stream.X, stream.y, parts, rule, by_trial)
        model, stop = OnlineClassifier("multi", update=update, **settings), run["doubtful"]
        trials = model._run_trials(stream.X, stream.y, keep_scores=True)
        for t in range(stop):
            expected = run["scores"][t]
            scores = trials.scores[t, : len(expected)]
            assert_allclose(scores, expected, atol=2e-2 if rule == "mira" else 1e-3, rtol=0)
        assert trials.predictions[:stop].tolist() == run["predictions"][:stop]
        reached += stop
    assert reached > 40  # of 600: the first rows tie or decide nothing


@pytest.mark.parametrize("ranged", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_the_median_is_as_in_the_oracle(ranged, dense):
    if ranged and not dense:
        return
    stream = make_stream(1, n_rows=200)
    model = OnlineClassifier("multi", kernel="rbf", preprocessing="ranges" if ranged else None)
    model.partial_fit(stream.X if dense else sparse.csr_array(stream.X), stream.y)
    assert model.sigma_ == pytest.approx(0.04 * medians(stream.X, ranged=ranged)[-1], rel=0.01)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_sigma_comes_to_a_share_of_the_median_distance(unit):
    rng = np.random.default_rng(0)
    X, y = unit * rng.gamma(1.0, size=(4000, 6)), rng.integers(2, size=4000)
    pairs = rng.integers(4000, size=(2, 100_000))
    distances = ((X[pairs[0]] - X[pairs[1]]) ** 2).sum(axis=1)
    median = np.median(distances[distances > 0])
    model = OnlineClassifier("multi", update="perceptron", kernel="rbf", budget=10)
    found = []
    for start in range(0, 4000, 20):
        found.append(model.partial_fit(X[start : start + 20], y[start : start + 20]).sigma_)
    assert np.mean(found[50:]) == pytest.approx(0.04 * median, rel=0.05)
    assert_allclose(found[50:], 0.04 * median, rtol=0.8)
    assert model.partial_fit(X * 3, y).sigma_ > 5 * 0.04 * median


# ---- the laws -----------------------------------------------------------------------------------


@EVERY
def test_a_row_is_predicted_as_the_trial_that_follows_predicts_it(name):
    X, y = growing(0)
    model = learner(name, on_new_class="learn").partial_fit(X[:2], y[:2])
    for x, label in zip(X[2:], y[2:], strict=True):
        before = model._scores(x[None])
        trials = model._run_trials(x[None], [label], keep_scores=True)
        assert_array_equal(trials.scores[:, : before.shape[1]], before)


@EVERY
def test_any_split_and_a_file_on_the_way_are_the_same(name, tmp_path):
    X, y = growing(1)
    whole, pieces, events = learner(name).partial_fit(X, y), learner(name), learner(name)
    for start, stop in pairwise([0, 1, 5, 6, 90, 250, 300]):
        pieces.partial_fit(X[start:stop], y[start:stop])
        pieces.save(tmp_path / "model")
        pieces = load(tmp_path / "model")
    for x, label in zip(X, y, strict=True):
        events.learn_one(x, label)
    assert_same(whole, pieces, X)
    assert_same(whole, events, X)


@EVERY
def test_predicting_changes_nothing(name):
    X, y = growing(2, 100)
    model, other = learner(name).fit(X, y), learner(name).fit(X, y)
    model.decision_function(X * 100)
    assert_same(model, other, X)


@pytest.mark.parametrize("name", ["auto", "counts, auto"])
def test_dense_sparse_and_named_rows_are_the_same(name):
    stream = make_stream(6, n_rows=200, density=0.5)
    rows = sparse.csr_array(stream.X)
    named = [{f"x{j}": v for j, v in enumerate(x) if v} for x in stream.X.tolist()]
    dense, listed, by_name = (learner(name).fit(X, stream.y) for X in (stream.X, rows, named))
    scores = dense.decision_function(stream.X)
    assert_array_equal(scores, listed.decision_function(rows))
    assert_allclose(scores, by_name.decision_function(named), atol=1e-3)
    assert dense.sigma_ == listed.sigma_


@EVERY
def test_units_of_features_do_not_matter_in_ranges(name):
    if "ranges" not in name:
        return
    stream = make_stream(3, n_rows=200)
    powers = 2.0 ** np.array([-60, -9, 0, 3, 20, 60, 100])  # by which products are exact
    one, other = (
        learner(name).fit(stream.X, stream.y),
        learner(name).fit(stream.X * powers, stream.y),
    )
    assert_array_equal(one.decision_function(stream.X), other.decision_function(stream.X * powers))


def test_support_vectors_follow_the_ranges():
    """What was learnt before a range grew is then as if it had been learnt after."""
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.2, 0.8], [0.8, 0.1], [4.0, 10.0]])
    y = [0, 1, 0, 1, 0]
    model = OnlineClassifier("multi", "auto", "perceptron", kernel=RBF(0.1), preprocessing="ranges")
    model.fit(X, y)
    learner = model._learner
    norms = learner.supports.stored["squared_norms"][0, : model.n_support_vectors_[0]]
    stored = learner.supports.stored["panels"][0, 0, :2, : len(norms)].T
    assert_allclose(norms, ((stored / [4, 10]) ** 2).sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize("estimator", [OnlineMultilabelClassifier, OnlineLabelRanker])
def test_the_other_estimators_have_it_too(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) * [1, 1000]
    inside = ((X / [1, 1000]) ** 2).sum(axis=1) < 1.4
    if estimator is OnlineLabelRanker:
        y = np.where(inside[:, None], [[1, 2, 3]], [[3, 2, 1]])
    else:
        y = np.c_[inside, X[:, 0] > 0].astype(int)
    model = estimator("multi", kernel="rbf", preprocessing="scale").fit(X[:300], y[:300])
    assert model.preprocessing_ == Ranges() and model.sigma_ < 0.1
    assert (np.asarray(model.predict(X[300:])) == y[300:]).mean() > 0.85


# ---- streams that are hard to bear --------------------------------------------------------------


def measured(n_rows: int = 1500) -> tuple[Any, Any]:
    rng = np.random.default_rng(11)
    y = rng.integers(4, size=n_rows)
    return (rng.normal(size=(4, 6))[y] * 2 + rng.normal(size=(n_rows, 6))) * 10.0 ** np.arange(6), y


def last_errors(X: Any, y: Any, **more: Any) -> float:
    """Return the share of mistakes in the last 500 rows; all on the way are numbers."""
    model = learner("ranges, auto", on_new_class="learn", **more)
    predictions, codes = run_trials(model, X, y)
    assert all(np.isfinite(a).all() for a in model._learner.arrays().values())
    assert np.isfinite(model.decision_function(X[-20:])).all()
    return float((predictions != codes)[-500:].mean())


def test_mistakes_recover_when_the_scale_jumps_by_a_million():
    X, y = measured()
    calm = last_errors(X, y)
    X[500:] *= 1e6
    assert last_errors(X, y) < 1.5 * calm + 0.02 < 0.3


def test_constant_columns_and_a_first_row_of_zeros_cost_nothing():
    X, y = measured()
    calm = last_errors(X, y)
    X[0] = 0
    assert last_errors(np.c_[X, np.full(len(X), 7e9)], y) < calm + 0.02


@pytest.mark.parametrize("value", [1e30, -3e38, 1e-45])
def test_a_broken_value_hides_its_own_feature_alone(value):
    X, y = measured()
    calm = last_errors(np.delete(X, 2, axis=1), y)
    X[500:503, 2] = value
    assert last_errors(X, y) < calm + 0.05


def test_broken_rows_hide_no_others():
    X, y = measured()
    calm = last_errors(X, y)
    X[500:503] = [[1e30], [-3e38], [1e30]]
    assert last_errors(X, y) < calm + 0.05


def test_no_stream_makes_anything_but_numbers():
    rng = np.random.default_rng(12)
    X, y = measured(700)
    X[:, 0], X[0], X[50:, 1] = 0.1, 0, 0.0
    X[100:, 2] = rng.choice([-1e30, 1e30, 3e38, -3e38, 1e-45, -4.0], size=600)
    last_errors(X, y)
    last_errors(np.zeros((600, 3)), np.arange(600) % 2)


# ---- what "auto" stands for, and what is refused -------------------------------------------------


@pytest.mark.parametrize(
    ("hypotheses", "kernel", "part"),
    [
        ("multi", "rbf", Ranges()),
        ("multi", "polynomial", Ranges()),
        ("hybrid", "rbf", ZScores()),
        ("multi", homemade.overlap, ZScores()),
        ("multi", None, ZScores()),
    ],
)
def test_scale_is_ranges_where_rows_are_compared_with_rows(hypotheses, kernel, part):
    rows, y = np.eye(3), [0, 1, 0]
    update = "auto" if kernel else "softmax"  # the default has a kernel among its members
    model = OnlineClassifier(hypotheses, update=update, kernel=kernel, preprocessing="scale")
    assert model.fit(rows, y).preprocessing_ == part
    if kernel is not homemade.overlap and hypotheses == "multi":
        assert model.fit(sparse.csr_array(rows), y).preprocessing_ == Counts()


@pytest.mark.parametrize(
    "settings",
    [{"hypotheses": Shared(Difference()), "kernel": "rbf"}, {"kernel": homemade.overlap}],
)
def test_ranges_are_refused_where_nothing_can_follow_them(settings):
    model = OnlineClassifier(**{"hypotheses": "multi", **settings}, preprocessing="ranges")
    with pytest.raises(KeslerError, match=r"Ranges\(.*\) changes the units.*z-scores"):
        model.fit(np.eye(3), [0, 1, 2])


def test_ranges_take_no_sparse_rows():
    with pytest.raises(KeslerError, match=r"Ranges\(.*\) is not zero at zero.*sparse rows"):
        learner("ranges").fit(sparse.csr_array(np.eye(3)), [0, 1, 2])


def test_sigma_is_told_where_it_is_not():
    X, y = np.eye(3), [0, 1, 2]
    assert OnlineClassifier("multi").fit(X, y).sigma_ is None
    assert OnlineClassifier("multi", kernel="rbf", sigma=2.0).fit(X, y).sigma_ is None
    assert OnlineClassifier("multi", kernel="rbf").fit(X, y).sigma_ == pytest.approx(0.08)
    assert OnlineClassifier("multi", kernel="rbf").fit(0 * X, y).sigma_ is None
    with pytest.raises(KeslerError, match='or "auto" to estimate it from the rows'):
        RBF("scale")

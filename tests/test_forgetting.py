"""Forgetting: all state decays row by row, and learners follow a changed stream.

Shorter runs of the same learners are held to all laws of the registry.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import reference_forgetting
import reference_pooled
from kesler import (
    Ensemble,
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    Ratings,
    load,
    mistake_bound,
    progressive_validate,
)
from kesler.data.rows import Rows
from kesler.hypotheses import Shared
from kesler.maps import MAPS, Contrast, GaussianRatio, SubExperts
from kesler.online.defaults import of_measurements, of_words
from kesler.preprocessing import Counts, ZScores
from kesler.updates import Perceptron, SoftmaxGradient
from registry import Row
from streams import assert_same, make_stream, run_trials
from test_preconditioners import NOT_PLAIN, follow, reference_of

STILL = SoftmaxGradient(1e-30)  # moves nothing that float32 resolves
HALF_LIVES = [1.0, 2.0, 7.5, 300.0]


def by_event(model: Any, X: Any, y: Any) -> Any:
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, label)
    return model


def gaussians(n_rows: int, change: int, seed: int = 0) -> Any:
    """Rows of five classes, which from row `change` on go by each other's names."""
    rng = np.random.default_rng(seed)
    y = rng.integers(5, size=n_rows)
    centres = rng.normal(0, 1.2, size=(5, 12))
    drawn = np.where(np.arange(n_rows) < change, y, (y + 1) % 5)
    return (centres[drawn] + rng.normal(size=(n_rows, 12))).astype(np.float32), y


def words(n_rows: int, change: int, seed: int = 0) -> Any:
    """Counts of 300 words in messages of six folders, which change their names likewise."""
    rng = np.random.default_rng(seed)
    common = rng.dirichlet(np.full(300, 0.1))
    frequencies = [0.7 * common + 0.3 * rng.dirichlet(np.full(300, 0.05)) for _ in range(6)]
    y = rng.integers(6, size=n_rows)
    drawn = np.where(np.arange(n_rows) < change, y, (y + 1) % 6)
    return np.array([rng.multinomial(15, frequencies[r]) for r in drawn], dtype=np.float32), y


# ---- every trial, over the rows that all is divided in ------------------------------------------

LONG = [
    *(row for row in NOT_PLAIN if row.half_life is not None),
    Row("pa1", "multi", None, preconditioner="scale-free-adagrad", half_life=2.0),
]


@pytest.mark.parametrize("row", LONG, ids=lambda row: row.name)
def test_every_trial_of_a_long_run_equals_its_reference(row):
    row = replace(row, half_life=min(row.half_life, 2.0))
    stream = make_stream(9, n_rows=70, n_classes=4, n_features=5)
    reference_learner, model = reference_of(row, stream, 0.5), row.learner(C=0.5)
    assert follow(reference_learner, model, stream.y) >= 20
    assert model._learner.stored["decay.row"]["weight"][0] < 2.0 ** (
        70 / row.half_life - 19
    )  # divided by now


# ---- decaying state -----------------------------------------------------------------------------


def smooth_contrast(x: Any, rows: Any, w: Any, own: Any) -> Any:
    """x (p - q) / (p + q), of each a row of all rows' shares beside its own."""
    occurs = (rows != 0).astype(float)
    everywhere = w @ occurs / w.sum()
    p = (w[own] @ occurs[own] + everywhere) / (w[own].sum() + 1)
    q = (w[~own] @ occurs[~own] + everywhere) / (w[~own].sum() + 1)
    return x * np.divide(p - q, p + q, out=0 * p, where=p + q > 0)


def gaussian_ratio(x: Any, rows: Any, w: Any, own: Any) -> Any:
    everyone: list[Any] = []
    of_class, of_others = reference_pooled.Seen(everyone), reference_pooled.Seen(everyone)
    for row, weight, is_own in zip(rows, w, own, strict=True):
        (of_class if is_own else of_others).append((row, weight))
    return reference_pooled.gaussian_ratio(x, of_class, shrinkage=0.5)


def mean_product(x: Any, rows: Any, w: Any, own: Any) -> Any:
    return x * np.average(rows[own], axis=0, weights=w[own])


VIEWS = [
    (Contrast(), smooth_contrast),
    (GaussianRatio(shrinkage=0.5), gaussian_ratio),
    (MAPS["product-mean"](), mean_product),
]


@pytest.mark.parametrize("half_life", HALF_LIVES)
@pytest.mark.parametrize(
    ("view", "reference_learner"), VIEWS, ids=["contrast", "gaussian-ratio", "mean"]
)
def test_statistics_of_classes_and_of_all_decay(view, reference_learner, half_life):
    # The 64th row: what Gaussians follow from is brought up to date at powers of two.
    stream = make_stream(3, n_rows=64, n_classes=3, n_features=4, density=0.6)
    model = OnlineClassifier(Shared(view, begins_at=1.0), update=STILL, half_life=half_life)
    model.fit(stream.X, stream.y)
    w, probes = reference_forgetting.counting(64, half_life), stream.X[:9]
    expected = [
        [reference_learner(x, stream.X, w, stream.y == r).sum() for r in range(stream.n_classes)]
        for x in probes
    ]
    found = model._learner.scores(Rows.from_dense(probes))
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)


FADING = [Counts(damped=False, idf=True), Counts(information=True), ZScores()]


@pytest.mark.parametrize("half_life", HALF_LIVES)
@pytest.mark.parametrize("part", FADING, ids=str)
def test_what_preprocessing_keeps_fades(part, half_life):
    stream = make_stream(8, n_rows=120, n_classes=3, n_features=5, density=0.5)
    model = OnlineClassifier("multi", update="pa2", preprocessing=part, half_life=half_life)
    seen = reference_forgetting.conditioned(part, stream.X, half_life, stream.y)
    plain = OnlineClassifier("multi", update="pa2", half_life=half_life).fit(seen, stream.y)
    model.fit(stream.X, stream.y)
    ours, theirs = (each._learner.hypothesis_weights()[0] for each in (model, plain))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3 * abs(theirs).max())


def test_weights_halve_with_every_half_life():
    model = OnlineClassifier("multi", update=Perceptron(), half_life=3)
    model.learn_one([1.0, 0.0], "a").learn_one([0.0, 1.0], "b")
    model.learn_one([1.0, 1.0], "b")  # a tie, which "a" wins: a step of 1, then a row has passed
    before = model.decision_function([[1.0, 1.0]])
    np.testing.assert_allclose(before, 4 * 2 ** (-1 / 3), rtol=1e-6)
    for _ in range(90):  # over the row that all is divided in
        model.learn_one([0.0, 0.0], "a")
    left = model.decision_function([[1.0, 1.0]])
    np.testing.assert_allclose(left, before * 2.0**-30, rtol=1e-6)


@pytest.mark.parametrize("view", [SubExperts(), MAPS["product-mean"]()], ids=str)
def test_weights_that_begin_at_a_value_fade_to_it(view):
    stream = make_stream(7, n_rows=70, n_classes=3, n_features=4)
    rated = np.random.default_rng(1).normal(size=(70, 3, 4)).astype(np.float32)
    is_given = isinstance(view, SubExperts)
    X: Any = Ratings.from_dense(rated, labels=[0, 1, 2]) if is_given else stream.X
    part = Shared(view, begins_at=0.25)
    model = OnlineClassifier(part, update="pa1", half_life=3.0).fit(X, stream.y)
    weights = 0.25 + (model._learner.hypothesis_weights()[0][:, 0] - 0.25) * model._learner.scale
    assert abs(weights - 0.25).max() > 0.05
    w = reference_forgetting.counting(70, 3.0)
    means = [
        np.average(stream.X[stream.y == r], axis=0, weights=w[stream.y == r]) for r in range(3)
    ]
    views = rated if is_given else stream.X[:, None] * np.array(means)
    np.testing.assert_allclose(model._scores(X), views @ weights, rtol=1e-3, atol=1e-4)
    nothing: Any = Ratings.from_dense(0 * rated, labels=[0, 1, 2]) if is_given else 0 * stream.X
    left = model.partial_fit(nothing, stream.y)._learner
    stored = left.hypothesis_weights()[0][:, 0]
    np.testing.assert_allclose(0.25 + (stored - 0.25) * left.scale, 0.25, rtol=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_support_vectors_fade(kernel):
    stream = make_stream(6, n_rows=90, n_classes=4)
    made: dict[str, Any] = {"update": "perceptron", "half_life": 4.0}
    over_kernel = OnlineClassifier("multi", kernel=kernel, **made)
    pieces = OnlineClassifier("multi", kernel=kernel, **made)
    for start in range(0, 90, 13):
        pieces.partial_fit(stream.X[start : start + 13], stream.y[start : start + 13])
    assert_same(over_kernel.fit(stream.X, stream.y), pieces, stream.X)
    if kernel == "linear":
        plain = OnlineClassifier("multi", **made).fit(stream.X, stream.y)
        found, expected = over_kernel.decision_function(stream.X), plain.decision_function(stream.X)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


# ---- streams that change ------------------------------------------------------------------------

CHANGE, N_ROWS = 1500, 3000


def mistakes(model: Any, X: Any, y: Any) -> tuple[int, int]:
    """Return the mistakes in the 1,000 rows before the change, and in those after it."""
    predicted, codes = run_trials(model, X, y)
    wrong = predicted != codes
    return int(wrong[CHANGE - 1000 : CHANGE].sum()), int(wrong[CHANGE : CHANGE + 1000].sum())


WORDS = {**of_words(Contrast()), "preprocessing": "counts"}
MEASUREMENTS = of_measurements(GaussianRatio())


@pytest.mark.parametrize(
    ("stream", "given_", "fewer"), [(words, WORDS, 0.75), (gaussians, MEASUREMENTS, 0.9)]
)
def test_a_changed_stream_is_followed_and_a_ensemble_loses_little_either_way(stream, given_, fewer):
    X, y = stream(N_ROWS, CHANGE)
    lasting, forgetful = OnlineClassifier(**given_), OnlineClassifier(**given_, half_life=250)
    before, after = mistakes(lasting, X, y)
    before_too, after_less = mistakes(forgetful, X, y)
    assert after_less <= fewer * after
    ensemble = Ensemble([clone(lasting), clone(forgetful)])
    in_peace, in_change = mistakes(ensemble, X, y)
    assert in_peace <= min(before, before_too) * 1.05 + 5
    assert in_change <= min(after, after_less) * 1.1 + 5


# ---- invalid half-lives -------------------------------------------------------------------------


@pytest.mark.parametrize("half_life", [0, -3, 0.5, np.nan, np.inf, "100", True, [100]], ids=str)
@pytest.mark.parametrize(
    "estimator",
    [OnlineClassifier, OnlineMultilabelClassifier, OnlineLabelRanker, OnlineOrdinalClassifier],
)
def test_invalid_half_lives_are_refused(estimator, half_life):
    y: Any = {OnlineMultilabelClassifier: [["a"], ["b"]], OnlineLabelRanker: [[1, 2], [2, 1]]}
    with pytest.raises(
        KeslerError, match=r"half_life=.* must be a finite number of rows, 1 or more"
    ):
        estimator(half_life=half_life).fit(np.eye(2), y.get(estimator, [1, 2]))


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ({"link": "exponential"}, "computes all weights from sums"),
        ({"link": "p-norm"}, "computes all weights from sums"),
        ({"averaged": True}, "the mean over all trials"),
    ],
)
def test_where_nothing_can_decay_it_raises(made, why):
    with pytest.raises(KeslerError, match=f"half_life=50: .*{why}"):
        OnlineClassifier("multi", update="perceptron", half_life=50, **made).fit(np.eye(2), [0, 1])


def test_linear_max_has_no_half_life_and_no_theorem_knows_one():
    assert "half_life" not in LinearMax().get_params()
    result = progressive_validate(
        OnlineClassifier("multi", update="perceptron", half_life=9), np.eye(4), [0, 1, 0, 1]
    )
    with pytest.raises(KeslerError, match="learners that forget"):
        mistake_bound(result)


# ---- files and numbers at their ends ------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 30, 41, 59])
def test_a_file_and_a_pickle_go_on_where_they_stopped(cut, tmp_path):
    X, y = gaussians(90, 40)
    whole = OnlineClassifier(half_life=2).partial_fit(X, y)
    part = OnlineClassifier(half_life=2).partial_fit(X[:cut], y[:cut])
    part.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(part))):
        assert again.half_life == 2.0
        assert_same(whole, again.partial_fit(X[cut:], y[cut:]), X)


def test_constants_and_absent_classes_leave_finite_numbers():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(3000, 2)), np.ones((3000, 1))])
    X[100:, 1] = 3.0  # constant for thousands of half-lives
    y = np.where(np.arange(3000) < 60, np.arange(3000) % 3, np.arange(3000) % 2)
    with np.errstate(over="ignore"):  # interpreted, squares overflow before they are clipped
        follow_constants(X, y)


def follow_constants(X: Any, y: Any) -> None:
    for made in ({}, {"update": "pa1"}, {"update": "pa1", "preprocessing": "z-scores"}):
        model = OnlineClassifier(half_life=1, **made).fit(X, y)  # type: ignore[arg-type]
        assert np.isfinite(model.decision_function(X)).all()
        model.learn_one([0.0, 1e6, 1.0], 2)
        assert np.isfinite(model.decision_function(X)).all()

"""Contrast and GaussianRatio by hand, in numbers that float32 bears badly; weights that begin."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import homemade
import reference_pooled
from kesler import (
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    feature_map,
    load,
)
from kesler.compiled.views.maps import PHI, TABLE
from kesler.compiled.weights.scores import of_map
from kesler.data.rows import Rows
from kesler.datasets import load as load_data
from kesler.hypotheses import Grouped, PerClass, Shared
from kesler.maps import Contrast, Distance, Frequency, GaussianRatio
from kesler.state.capacity import whole_lines
from kesler.updates import SoftmaxGradient
from streams import make_stream

DIFFERENCE = Contrast(smoothing=0.0, relative=False)
STILL = SoftmaxGradient(1e-30)  # moves nothing that float32 resolves


def still(view: Any, estimator: Any = OnlineClassifier, **settings: Any) -> Any:
    """Return a learner whose score of a class is the sum of its view."""
    return estimator(Shared(view, begins_at=1.0), update=STILL, **settings)


def scores(model: Any, X: Any) -> Any:
    """Return the score of each class, of two classes too."""
    return model._learner.scores(Rows.from_dense(X))


def seen(X: Any, y: Any, weights: Any = None) -> list[reference_pooled.Seen]:
    """Return the rows of each class, for the references."""
    everyone: list[Any] = []
    classes: dict[Any, reference_pooled.Seen] = {}
    for x, label, w in zip(X, y, np.ones(len(X)) if weights is None else weights, strict=True):
        classes.setdefault(label, reference_pooled.Seen(everyone)).append((x, w))
    return list(classes.values())


def sums(view: str, X: Any, y: Any, probes: Any, weights: Any = None) -> Any:
    """Return what `still` must score."""
    running = seen(X, y, weights)
    phi = (reference_pooled.VIEWS | {"difference of shares": reference_pooled.contrast})[view]
    return np.array([[phi(x, each).sum() for each in running] for x in probes])


def gaussians(seed: int, n_rows: int = 60, offset: float = 0.0, scale: float = 1.0) -> Any:
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(4), rng.integers(4, size=n_rows - 4)])
    X = offset + scale * (rng.normal(size=(4, 3))[y] + rng.normal(size=(n_rows, 3)))
    return X.astype(np.float32).astype(float), y


# ---- Contrast -----------------------------------------------------------------------------------


def test_contrast_is_the_difference_of_two_shares():
    X = np.array([[1, 1, 0], [3, 0, 0], [0, 1, 1], [2, 1, 0]])
    model = still(DIFFERENCE).fit(X, ["a", "a", "b", "c"])
    # Feature 0: a 2 of 2, all others 1 of 2; b 0 of 1, others 3 of 3; c 1 of 1, others 2 of 3.
    expected = [[5 * (1 - 1 / 2), 5 * (0 - 1), 5 * (1 - 2 / 3)]]
    np.testing.assert_allclose(model.decision_function([[5.0, 0, 0]]), expected, rtol=1e-6)


def test_contrast_without_other_classes_is_the_share_itself():
    model = still(DIFFERENCE).fit([[1, 0], [1, 1]], ["a", "a"], sample_weight=[0.3, 0.7])
    model.learn_one([0, 0], "b")
    probes = np.eye(2) * [2, 4]
    np.testing.assert_allclose(scores(model, probes)[:, 0], [2, 4 * 0.7], rtol=1e-6)


@pytest.mark.parametrize("weight", [1.0, 0.1, 2.0**16, 2.0**-16])
def test_shares_stay_shares_whatever_the_weights(weight):
    rng = np.random.default_rng(0)
    X, y = (rng.random((500, 4)) < 0.5) * 1.0, np.arange(500) % 250 % 3
    weights = np.where(y == 0, weight, 1.0) * rng.uniform(0.1, 0.2, 500)
    model = still(DIFFERENCE).fit(X, y, sample_weight=weights)
    found = model.decision_function(np.eye(4))
    assert (abs(found) <= 1).all()
    w = weights.astype(np.float32).astype(float)
    # Where a class outweighs all others a millionfold, float32 keeps two digits of their share.
    near = 1e-2 if weight > 1 else 2e-5
    np.testing.assert_allclose(found, sums("difference of shares", X, y, np.eye(4), w), atol=near)


def test_relative_contrast_by_hand():
    X = np.array([[1, 1, 0], [3, 0, 0], [0, 1, 0], [2, 1, 0]])
    model = still(Contrast()).fit(X, ["a", "a", "b", "c"])
    # Feature 0, in 3 of 4 rows: a (2 + 3/4) / 3 and the rest (1 + 3/4) / 3, a contrast of 1 / 4.5;
    # b (3/4) / 2 and (3 + 3/4) / 4; c (1 + 3/4) / 2 and (2 + 3/4) / 4. Feature 2 was never seen.
    shares = [(2.75 / 3, 1.75 / 3), (0.75 / 2, 3.75 / 4), (1.75 / 2, 2.75 / 4)]
    expected = [[5 * (a - b) / (a + b) for a, b in shares]]
    np.testing.assert_allclose(model.decision_function([[5.0, 0, 9.0]]), expected, rtol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.01, 1.0, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_relative_contrast_equals_its_reference(smoothing, weighted):
    stream = make_stream(33, n_rows=60, n_classes=4)
    weights = stream.weights if weighted else None
    model = still(Contrast(smoothing)).fit(stream.X, stream.y, sample_weight=weights)
    running = seen(stream.X, stream.y, weights)
    view = reference_pooled.relative_contrast
    expected = [[view(x, each, smoothing).sum() for each in running] for x in stream.X]
    np.testing.assert_allclose(model.decision_function(stream.X), expected, atol=2e-5)


def test_equal_shares_have_no_contrast_at_all():
    """Of what rounding leaves of a gradient, AdaGrad would make a step like any other."""
    rng = np.random.default_rng(34)
    rows = [{f"w{j}": 1.0 for j in rng.integers(10, size=4)} for _ in range(40)]
    model = OnlineClassifier().fit(rows, ["a"] * 40)  # without a rest, shares are those of all
    assert (model._learner.hypothesis_weights()[1] == np.float32(0.15)).all()
    # One of three rows and two of six, in any smoothing.
    X, y = np.array([[1.0], [0], [0], [1], [1], [0], [0], [0], [0]]), [*"aaabbbbbb"]
    for smoothing in (0.1, 1.0, 7.0):
        found = still(Contrast(smoothing)).fit(X, y)
        assert (scores(found, X) == 0).all()


@pytest.mark.parametrize("smoothing", [0.5, 8.0])
def test_smooth_shares_lie_nearer_to_that_of_all_rows(smoothing):
    """a - b of shares with pseudo-rows, by hand: two of two rows against one of two, 3/4 of all."""
    X = np.array([[1.0], [1.0], [1.0], [0.0]])
    model = still(Contrast(smoothing, relative=False)).fit(X, ["a", "a", "b", "b"])
    s = smoothing
    difference = ((2 + s * 3 / 4) - (1 + s * 3 / 4)) / (2 + s)
    np.testing.assert_allclose(scores(model, X[:1]), [[difference, -difference]], rtol=1e-6)


def test_rows_of_several_classes_count_once_among_all():
    X = np.array([[1.0, 0], [1, 1], [0, 1], [1, 1]])
    model = still(DIFFERENCE, OnlineMultilabelClassifier)
    model.fit(X, [["a"], ["a", "b"], ["b"], []])
    occurs = X != 0
    a, b = np.array([1, 1, 0, 0], bool), np.array([0, 1, 1, 0], bool)
    expected = [occurs[r].mean(axis=0) - occurs[~r].mean(axis=0) for r in (a, b)]
    found = model.decision_function(np.eye(2))
    spread = found[:, 0] - found[:, 1]
    np.testing.assert_allclose(spread, expected[0] - expected[1], rtol=1e-6)


@feature_map(statistic="contrast", zero_at_zero=True)
def bolder(x, p, others):
    """Return the difference of the squares."""
    return x * (p * p - others * others)


def test_a_user_can_look_at_the_others_too(tmp_path):
    X = np.array([[1.0, 0], [1, 1], [0, 1]])
    model = still(bolder).fit(X, ["a", "a", "b"])
    expected = [[1, -1], [1 / 4 - 1, 1 - 1 / 4]]
    np.testing.assert_allclose(scores(model, np.eye(2)), expected, rtol=1e-6)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m", custom=[bolder])
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_a_look_at_the_others_that_is_not_zero_at_zero_is_noticed():
    with pytest.raises(KeslerError, match=r"zero at zero, but g\(0, 0.0, 0.5\)"):
        feature_map(statistic="contrast", zero_at_zero=True)(lambda x, p, others: others)


# ---- GaussianRatio ------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_the_log_ratio_equals_its_reference(weighted):
    X, y = gaussians(0)
    weights = np.random.default_rng(1).choice([0.5, 1.0, 3.0], len(y)) if weighted else None
    model = still(GaussianRatio()).fit(X, y, sample_weight=weights)
    expected = sums("gaussian-ratio", X, y, X, weights)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=2e-5)


def test_the_intercept_is_the_prior():
    X, y = np.zeros((7, 1)), ["a", "b", "a", "a", "b", "a", "a"]
    model = still(GaussianRatio(), intercept=1.0).fit(X, y, sample_weight=[2, 1, 1, 1, 1, 1, 1])
    expected = np.log([[6 / 8, 2 / 8]])
    np.testing.assert_allclose(scores(model, X[:1]), expected, rtol=1e-6)


@pytest.mark.parametrize("offset", [1e6, -1e6])
def test_small_differences_far_from_zero_are_seen(offset):
    """Means and variances lose nothing, nor does x minus a mean: float32 is exact in steps of 1."""
    X, y = gaussians(2, offset=offset, scale=20.0)
    model = still(GaussianRatio()).fit(X, y)
    expected = sums("gaussian-ratio", X, y, X)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-3)


@pytest.mark.parametrize("power", [-40, -60, 40, 60])
def test_units_do_not_matter(power):
    X, y = gaussians(3)
    plain, scaled = still(GaussianRatio()).fit(X, y), still(GaussianRatio()).fit(X * 2.0**power, y)
    np.testing.assert_allclose(
        scaled.decision_function(X * 2.0**power), plain.decision_function(X), atol=2e-5
    )


def test_constant_features_count_for_nothing():
    X, y = gaussians(4)
    with_constants = np.column_stack([np.full(len(X), 0.1), X, np.zeros(len(X))])
    plain = still(GaussianRatio()).fit(X, y)
    model = still(GaussianRatio()).fit(with_constants, y)
    probes = np.column_stack([np.full(len(X), 7.0), X, np.full(len(X), -1e30)])
    np.testing.assert_array_equal(model.decision_function(probes), plain.decision_function(X))


def test_a_feature_that_ceases_to_be_constant_counts_for_classes_met_before():
    X, y = gaussians(5, n_rows=21)
    X[:18] = X[0]  # no power of two comes after
    model = still(GaussianRatio()).fit(X, y)
    expected = sums("gaussian-ratio", X, y, X)
    assert abs(expected).min() > 0
    np.testing.assert_allclose(model.decision_function(X), expected, atol=2e-5)


def test_one_row_of_each_class():
    X = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 5.0]])
    model = still(GaussianRatio()).fit(X, [0, 1, 2])
    found = model.decision_function(X)
    np.testing.assert_allclose(found, sums("gaussian-ratio", X, [0, 1, 2], X), atol=1e-5)
    assert (found.argmax(axis=1) == [0, 1, 2]).all()


def test_a_first_row_of_zeros():
    X, y = gaussians(6)
    X[0] = 0
    model = still(GaussianRatio()).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), sums("gaussian-ratio", X, y, X), atol=2e-5
    )


@pytest.mark.parametrize("huge", [1e30, 3e38])
@pytest.mark.parametrize("hypotheses", ["single", "hybrid"])
def test_huge_values_neither_overflow_nor_stay(huge, hypotheses):
    rng = np.random.default_rng(7)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 3)) + 4 * y[:, None]
    X[100:110] = rng.choice([-huge, huge], size=(10, 3))
    single = Shared(GaussianRatio(), begins_at=0.1)
    model = OnlineClassifier([single] if hypotheses == "single" else [PerClass(), single])
    for x, label in zip(X, y, strict=True):
        if hypotheses == "hybrid" and abs(x).max() > 1e10:
            continue
        model.learn_one(x, label)
    assert np.isfinite(model.decision_function(X[110:])).all()
    for array in model._learner.arrays().values():
        assert np.isfinite(array).all()
    views = still(GaussianRatio()).fit(X, y).decision_function(X)
    assert (abs(views) <= 3 * 8).all()


def test_it_recovers_when_the_scale_jumps():
    rng = np.random.default_rng(8)
    y = rng.integers(2, size=4000)
    X = rng.normal(size=(4000, 3)) + 2 * y[:, None]
    X[1000:] *= 1e6
    model = OnlineClassifier(Shared(GaussianRatio(), begins_at=0.1)).fit(X[:3000], y[:3000])
    before = model.n_mistakes_
    model.partial_fit(X[3000:], y[3000:])
    assert model.n_mistakes_ - before < 150


def test_classes_without_rows_have_no_view():
    """A class that was only ever ranked below another has no instance."""
    model = still(GaussianRatio(), OnlineLabelRanker)
    X = np.random.default_rng(9).normal(size=(8, 2))
    model.fit(X, [["a", "b"]] * 8)
    assert (model.decision_function(X)[:, 1] == 0).all()


@pytest.mark.parametrize("settings", [{"shrinkage": -0.5}, {"floor": 0.0}, {"clip": float("nan")}])
def test_parameters_out_of_range_are_refused(settings):
    with pytest.raises(KeslerError, match="must be a finite number from"):
        GaussianRatio(**settings)


@pytest.mark.parametrize(
    "name, ends", [("shrinkage", (0.0, 1e6)), ("floor", (1e-12, 1.0)), ("clip", (1e-6, 1e6))]
)
def test_the_ends_of_the_ranges_are_allowed(name, ends):
    for end in ends:
        assert getattr(GaussianRatio(**{name: end}), name) == end


def test_two_ways_of_smoothing_are_refused():
    parts = [Shared(GaussianRatio()), PerClass(GaussianRatio(floor=0.1))]
    with pytest.raises(KeslerError, match="differ in shrinkage, floor or smoothing"):
        OnlineClassifier(parts, update="pa1").fit(np.eye(2), [0, 1])
    parts = [Shared(GaussianRatio()), PerClass(GaussianRatio(clip=2.0))]
    OnlineClassifier(parts, update="pa1").fit(np.eye(2), [0, 1])


def test_the_log_ratio_beats_the_distance_on_letter():
    data = load_data("letter")
    X = np.asarray(data.X, dtype=float)[:6000]
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), np.asarray(data.y)[:6000]
    mistakes = [
        OnlineClassifier("hybrid", view, "pa1", intercept=1.0).fit(X, y).n_mistakes_
        for view in ("gaussian-ratio", "distance")
    ]
    assert mistakes[0] < 0.95 * mistakes[1]


# ---- saving, growing, other learners ------------------------------------------------------------

HYPOTHESES = {
    "contrast": [PerClass(), Shared(Contrast(), begins_at=0.1)],
    "gaussian-ratio": [PerClass(), Shared(GaussianRatio(), begins_at=0.1)],
    "both": [Shared(GaussianRatio(), begins_at=-0.5), Shared(Contrast()), Shared(Frequency())],
}


@pytest.mark.parametrize("hypotheses", HYPOTHESES.values(), ids=HYPOTHESES)
@pytest.mark.parametrize("estimator", [OnlineClassifier, OnlineMultilabelClassifier])
def test_save_and_go_on_bit_for_bit(estimator, hypotheses, tmp_path):
    stream = make_stream(30, n_rows=90, n_classes=40, n_features=50)
    y: Any = stream.y
    if estimator is OnlineMultilabelClassifier:
        y = [[int(code), int(code) // 2][: 1 + code % 2] for code in stream.y]
    whole, half = estimator(hypotheses), estimator(hypotheses)
    whole.partial_fit(stream.X, y)
    half.partial_fit(stream.X[:37], y[:37]).save(tmp_path / "half")
    again = load(tmp_path / "half")
    again.partial_fit(stream.X[37:], y[37:])
    arrays = again._learner.arrays()
    for name, array in whole._learner.arrays().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)
    assert again._learner.parts == hypotheses


@pytest.mark.parametrize("view", [Contrast(), GaussianRatio()])
def test_over_a_kernel_views_are_the_same(view):
    """A linear kernel of views is what weights make of them."""
    stream = make_stream(31)
    plain = OnlineClassifier("hybrid", view, update="pa1").fit(stream.X, stream.y)
    kernel = OnlineClassifier("hybrid", view, update="pa1", kernel="linear").fit(stream.X, stream.y)
    assert kernel.n_mistakes_ == plain.n_mistakes_
    expected = plain.decision_function(stream.X)
    np.testing.assert_allclose(kernel.decision_function(stream.X), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("view", [Distance(), Frequency(), Contrast(), GaussianRatio()])
def test_tables_hold_the_views_of_all_classes(view):
    stream = make_stream(32)
    inner = OnlineClassifier(Shared(view), update="pa1").fit(stream.X, stream.y)._learner
    learner, n, k = inner._record, stream.X.shape[1], inner.n_known
    indices, values = np.arange(n, dtype=np.int32), stream.X[0].astype(np.float32)
    line = whole_lines(k)
    table, out = np.full((n, line + 1), np.float32(-99)), np.empty(n, dtype=np.float32)
    of = getattr(of_map, "py_func", of_map)
    call = compiled_call(of)
    none = values[:0]
    call(learner, 0, TABLE, indices, values, table, none, k, none, np.empty(k))
    for r in range(k):
        call(learner, 0, PHI, indices, values, table, none, r, out, np.empty(k))
        np.testing.assert_array_equal(table[:, r], out)
    assert np.isin(table[:, k:line], [0, -99]).all()  # by lines, or class by class
    assert (table[:, line] == -99).all()


@pytest.mark.parametrize("n_classes", [5, 21, 37])  # of one line, of two, of three
@pytest.mark.parametrize("view", [Distance(), Frequency(), Contrast(), GaussianRatio()])
def test_tables_are_summed_with_weights_as_they_are_filled(view, n_classes):
    stream = make_stream(33, 5 * n_classes, n_classes)
    inner = OnlineClassifier(Shared(view), update="pa1").fit(stream.X, stream.y)._learner
    learner, n, k = inner._record, stream.X.shape[1], inner.n_known
    indices, values = np.arange(n, dtype=np.int32), stream.X[0].astype(np.float32)
    weights = np.linspace(-1, 2, n).astype(np.float32)
    table = np.zeros((n, whole_lines(k)), dtype=np.float32)
    sums = np.linspace(-1, 1, whole_lines(k)).astype(np.float32)
    call = compiled_call(getattr(of_map, "py_func", of_map))
    before = sums.copy()
    call(learner, 0, TABLE, indices, values, table, weights, k, sums, np.empty(k))
    expected = before + weights.astype(float) @ table.astype(float)
    assert np.abs(table[:, :k]).max() > 0
    np.testing.assert_allclose(sums, expected, rtol=1e-4, atol=1e-5)


@cache
def compiled_call(function: Any) -> Any:
    """Return a helper as Python may call it; it is compiled once for all learners of a kind."""
    from numba import config, njit

    return function if config.DISABLE_JIT else njit(function)


# ---- weights that begin at a value --------------------------------------------------------------


def test_weights_begin_there_those_of_late_features_too():
    model = OnlineClassifier([PerClass(), Shared(Contrast(), begins_at=0.25)], update="pa1")
    model.learn_one({"a": 1.0}, "x")
    many = {f"f{i}": 1.0 for i in range(100)}
    model.learn_one(many, "y")
    per_class, shared = model._learner.hypothesis_weights()
    assert shared.shape == (101, 1) and (shared == 0.25).all() and (per_class == 0).all()


def test_the_map_speaks_before_anything_was_learnt():
    X, y = gaussians(10)
    model = still(GaussianRatio(), intercept=1.0).fit(X, y)
    assert (model._learner.hypothesis_weights()[0] == 1.0).all()
    assert (model.predict(X) == y).mean() > 0.6


def test_the_mean_of_weights_counts_where_they_began():
    X, y = gaussians(11)
    hypotheses = Shared(GaussianRatio(), begins_at=0.5)
    model = OnlineClassifier(hypotheses, update=STILL, averaged=True).fit(X, y)
    plain = OnlineClassifier(hypotheses, update=STILL).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize(
    ("learner", "why"),
    [
        (
            lambda part: OnlineClassifier(part, update="pa1", link="exponential"),
            "sets all initial weights",
        ),
        (
            lambda part: OnlineClassifier(part, update="perceptron", link=homemade.bent),
            "sets all initial weights",
        ),
        (
            lambda part: OnlineClassifier(part, update="pa1", kernel="rbf"),
            "over a kernel there are none",
        ),
        (lambda part: LinearMax("romma", part), "sets all initial weights"),
        (lambda part: LinearMax("wma", part), "sets all initial weights"),
    ],
)
def test_where_weights_cannot_begin_it_is_refused(learner, why):
    with pytest.raises(KeslerError, match=why):
        learner(Shared(Contrast(), begins_at=0.1)).fit(np.eye(2), [0, 1])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "0.1", None, 1e30])
def test_what_is_no_beginning_is_refused(value):
    with pytest.raises(KeslerError, match="initial weights must be a number from"):
        Shared(Contrast(), begins_at=value)


def test_it_shows_where_weights_begin():
    assert repr(Shared(Distance())) == "Shared(feature_map=Distance())"
    assert repr(Shared(Distance(), 0.1)) == "Shared(feature_map=Distance(), begins_at=0.1)"
    assert Shared(Contrast(), 0.1) != Shared(Contrast())
    groups = Grouped({"a": [0, 1]}, GaussianRatio())
    assert OnlineClassifier(groups, update="pa1").fit(np.eye(2), [0, 1]).n_trials_ == 2

"""Preprocessing: its reference, its statistics of earlier rows, and difficult streams."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import reference_forgetting
import reference_relevance
from kesler import (
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    Ratings,
    load,
    progressive_validate,
)
from kesler.data.rows import Rows
from kesler.evaluation.replay import Replay
from kesler.links import Exponential
from kesler.maps import Product
from kesler.online.blocks import learn_rows
from kesler.online.defaults import of_least_squares
from kesler.preprocessing import (
    PREPROCESSINGS,
    Bins,
    Concatenated,
    Counts,
    Pairs,
    RandomFourier,
    Ranges,
    ZScores,
    resolve_preprocessing,
)
from reference_preprocessing import conditioned, gained
from streams import make_stream

ESTIMATORS: list[Any] = [
    *(OnlineClassifier, LinearMax, OnlineMultilabelClassifier),
    *(OnlineLabelRanker, OnlineOrdinalClassifier),
]
PARTS = [
    *(Counts(), Counts(idf=True), Counts(damped=False), Counts(unit=False)),
    *(Counts(information=True), Counts(idf=True, unit=False, information=True)),
    *(Counts(False, True, False), ZScores(), ZScores(clip=0.5), Ranges()),
]
WEIGHED = Ranges(weights=(1.0, 2.0, 0.5, 1.0, 0.0, 3.0, 1.0))
EXPANSIONS = [
    *(Bins(), Bins(3), Bins(9, most_features=20), Pairs(), Pairs(2, n_pairs=5, seed=3)),
    *(RandomFourier(20), RandomFourier(7, bandwidth=0.1, seed=5)),
    Concatenated((ZScores(clip=2.0), Bins(4), RandomFourier(20), Pairs(3))),
]
INFORMED = [
    RandomFourier(20, information=True),
    RandomFourier(9, weights=(1.0, 2.0, 0.5, 1.0, 0.0, 3.0, 1.0), information=True),
    Concatenated((ZScores(), RandomFourier(20, information=True))),
]


def seen(part: Any, X: Any, weights: Any = None, **more: Any) -> Any:
    """Return rows as their trials saw them: of a class with one row, the map keeps that row."""
    model = OnlineClassifier("single", Product(), update="pa1", preprocessing=part, **more)
    model.partial_fit(X, np.arange(np.shape(X)[0]), sample_weight=weights)
    return model._learner.arrays()["statistics.sums"][0].T


# ---- the reference
# -----------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [*PARTS, WEIGHED, *EXPANSIONS], ids=repr)
@settings(max_examples=15)
@given(
    seed=st.integers(0, 999),
    scale=st.sampled_from([1e-30, 0.01, 1.0, 50.0]),
    weighted=st.booleans(),
    missing=st.sampled_from([0.0, 0.2, 0.8]),
)
def test_rows_are_seen_as_the_reference_sees_them(part, seed, scale, weighted, missing):
    stream = make_stream(seed, n_rows=25)
    X = (scale * stream.X).astype(np.float32)
    if part.takes_missing:
        X[np.random.default_rng(seed).random(X.shape) < missing] = np.nan
    weights = stream.weights if weighted else None
    rtol = 1e-5 if getattr(part, "information", False) else 1e-6  # counts of classes are float32
    near = 2e-5 if part in EXPANSIONS else 1e-7  # cosines of sums in float32
    assert_allclose(seen(part, X, weights), conditioned(part, X, weights), rtol=rtol, atol=near)


@pytest.mark.parametrize("part", INFORMED, ids=repr)
@settings(max_examples=10)
@given(seed=st.integers(0, 999), weighted=st.booleans(), missing=st.sampled_from([0.0, 0.3]))
def test_inputs_weigh_what_the_classes_explain_of_them(part, seed, weighted, missing):
    stream = make_stream(seed, n_rows=50, n_classes=3)
    X, weights = stream.X.copy(), stream.weights if weighted else np.ones(50)
    X[np.random.default_rng(seed).random(X.shape) < missing] = np.nan
    model = OnlineClassifier("multi", update="pa1", on_new_class="learn", preprocessing=part)
    found = []
    for t in range(50):
        row = slice(t, t + 1)
        if t:
            rows = Rows.from_dense(X[row].astype(np.float32))
            found.append(model._learner._expanded(rows, lists_zeros=True).values)
        model.partial_fit(X[row], stream.y[row], sample_weight=weights[row])
    expected = conditioned(part, X, weights, stream.y)[1:]
    assert_allclose(np.array(found), expected, atol=5e-5)
    unweighted = conditioned(ZScores(), X, weights)
    shares = reference_relevance.by_row(unweighted, stream.y, weights)[-1]
    assert np.ptp(shares) > 0.05


@pytest.mark.parametrize("half_life", [None, 5.0, 20.0])
@pytest.mark.parametrize("over_kernel", [False, True])
def test_weights_follow_the_recent_rows(half_life, over_kernel):
    """Above a weight of 2^20 of a row, that of all is divided by it: after 100 rows with 5."""
    stream = make_stream(8, n_rows=128, n_classes=2)
    part = Ranges(True) if over_kernel else RandomFourier(9, information=True)
    model = OnlineClassifier("multi", update="pa1", on_new_class="learn", half_life=half_life)
    model.set_params(kernel="rbf" if over_kernel else None, preprocessing=part)
    model.partial_fit(stream.X, stream.y)
    counted = np.ones(128)
    if half_life is not None:
        counted = reference_forgetting.counting(128, half_life)
    values = stream.X
    if not over_kernel and half_life is None:
        values = conditioned(ZScores(), stream.X)
    elif not over_kernel:
        values = reference_forgetting.conditioned(ZScores(), stream.X, half_life, stream.y)
    expected = reference_relevance.weights(values, stream.y, counted)
    found = model._learner.stored["relevance.weights"][: stream.X.shape[1]]
    assert_allclose(found, expected, rtol=1e-5)
    assert expected.max() > 1.2 * expected.min()


def test_a_row_of_several_labels_counts_for_each_in_equal_shares():
    X, rng = make_stream(3, n_rows=64).X, np.random.default_rng(0)
    labels = [sorted(rng.choice(list("abcd"), size=rng.integers(1, 4), replace=False)) for _ in X]
    model = OnlineMultilabelClassifier("multi", kernel="rbf", preprocessing=Ranges(True))
    model.partial_fit(X, labels)
    rows = [(x, label, 1 / len(each)) for x, each in zip(X, labels, strict=True) for label in each]
    values, classes, shares = (np.array(each) for each in zip(*rows, strict=True))
    expected = reference_relevance.weights(values, classes, shares)
    found = model._learner.stored["relevance.weights"][: X.shape[1]]
    assert_allclose(found, expected, rtol=1e-6)


def test_columns_that_say_nothing_cost_little():
    """Six columns say the class, and 30 are noise."""
    rng = np.random.default_rng(0)
    y = rng.integers(6, size=1500)
    X = np.c_[rng.normal(size=(6, 6))[y] * 2 + rng.normal(size=(1500, 6)), rng.random((1500, 30))]
    errors = {}
    for informed in (False, True):
        least_squares = {**of_least_squares(), "preprocessing": RandomFourier(information=informed)}
        kernel = {"kernel": "rbf", "on_new_class": "learn", "preprocessing": Ranges(informed)}
        for name, given_ in {"least squares": least_squares, "kernel": kernel}.items():
            model = OnlineClassifier(**{"hypotheses": "multi"} | given_)
            errors[name, informed] = progressive_validate(model, X, y).error
    assert errors["kernel", True] < 0.6 * errors["kernel", False]
    assert errors["least squares", True] < 0.8 * errors["least squares", False]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Ranges(1), r"Ranges\(information=1\): give True or False"),
        (lambda: RandomFourier(information=None), r"information=None\): give True or False"),
        (
            lambda: OnlineMultilabelClassifier("multi", preprocessing=Ranges(True)),
            "choose information=False, or a kernel",
        ),
        (
            lambda: OnlineMultilabelClassifier(
                "multi", preprocessing=RandomFourier(9, information=True)
            ),
            "not one class each: choose information=False",
        ),
    ],
)
def test_weights_are_refused_where_nothing_can_follow_them(make, words):
    with pytest.raises(KeslerError, match=words):
        make().fit(np.eye(3), np.eye(3, dtype=int))


@pytest.mark.parametrize("half_life", [None, 3.0])
@pytest.mark.parametrize("several", [False, True])
def test_information_is_the_divergence_of_the_classes_of_a_feature(half_life, several):
    """From its definition, in the present weights of the rows; labels of equal sets add as one."""
    X, rng = np.abs(make_stream(5, n_rows=60).X), np.random.default_rng(5)
    y = rng.integers(4, size=60)
    X[rng.random(X.shape) < 0.4] = 0
    X[:, 0] = y == 1
    weights = rng.choice([0.5, 1.0, 3.0], size=60)
    estimator = OnlineMultilabelClassifier if several else OnlineClassifier
    model = estimator("multi", update="pa1", preprocessing="information", half_life=half_life)
    model.set_params(intercept=0.0)
    labels = [[f"{r}", f"{r} too"] for r in y] if several else y
    model.partial_fit(sparse.csr_array(X), labels, sample_weight=weights)
    growth = 1.0 if half_life is None else 2.0 ** (1 / half_life)
    w = weights * growth ** np.arange(60)
    stored = model._learner.stored
    unit = stored["preprocessing.seen"]["n_rows"][0] / w.sum()
    found = stored["preprocessing.statistics"][: X.shape[1]]
    assert_allclose(found[:, 0], unit * (w @ (X != 0)), rtol=1e-6)
    assert_allclose(found[:, 1], unit * gained(X, w, y), rtol=1e-4, atol=1e-4 * found[:, 0].max())
    assert found[:, 1].max() > 0.1 * found[:, 0].max()


@pytest.mark.parametrize("part", [Counts(idf=True), Counts(unit=False)], ids=repr)
def test_counts_are_the_same_in_sparse_rows_bit_for_bit(part):
    X = np.rint(2 * make_stream(3).X)
    assert_array_equal(seen(part, sparse.csr_array(X)), seen(part, X))


def test_counts_by_hand():
    X = np.array([[1.0, -3.0, 0.0, 0.25], [1.0, 0.0, 0.0, 0.0]])
    three = 1 + np.log(3)
    assert_allclose(seen(Counts(unit=False), X)[0], [1, -three, 0, 0.25], rtol=1e-6)
    assert_allclose(seen(Counts(False, True, False), X)[1, 0], np.sqrt(np.log(2 / 1.5)), rtol=1e-6)
    assert_allclose((seen(Counts(), X) ** 2).sum(axis=1), 1, rtol=1e-6)


def test_z_scores_by_hand():
    X = np.array([[1.0, 7.0], [3.0, 7.0], [5.0, 7.0], [100.0, 9.0], [3.0, 7.0]])
    rows = seen(ZScores(), X)
    # Two values lie one deviation from their mean; 1, 3, 5 have the variance 8 / 3; 7, 7, 7, 9
    # the mean 7.5 and the variance 3 / 4.
    assert_allclose(rows[:3], [[0, 0], [1, 0], [2 / np.sqrt(8 / 3), 0]], rtol=1e-6)
    assert_allclose(rows[3, 1], 1.5 / np.sqrt(3 / 4), rtol=1e-6)
    # 100 counts as 30 deviations, D, from 3: the mean is 3 + D / 4.
    D = 30 * np.sqrt(8 / 3)
    deviation = np.sqrt((8 + 3 / 4 * D**2) / 4)
    assert_allclose(rows[3, 0], (97 - D / 4) / deviation, rtol=1e-6)


def test_ranges_by_hand():
    X = np.array([[5.0, 7.0], [9.0, 7.0], [7.0, 7.0], [1.0, 9.0], [5.0, 5.0]])
    expected = [[0, 0], [1, 0], [0.5, 0], [-0.5, 1], [0, -0.5]]
    assert_allclose(seen(Ranges(), X), expected, rtol=1e-6)


@pytest.mark.parametrize("part", [Counts(), ZScores(), Ranges(), EXPANSIONS[-1]], ids=repr)
def test_the_intercept_stays_as_it_is_and_out_of_the_length(part):
    X = make_stream(4).X
    rows = seen(part, X, intercept=3.0)
    assert (rows[:, 0] == 3).all()
    assert_array_equal(rows[:, 1:], seen(part, X))


def test_a_row_looks_at_the_rows_before_it_alone():
    X, other = make_stream(5).X, make_stream(6).X
    for part in [*PARTS, *EXPANSIONS]:
        changed = np.vstack([X[:20], other[20:]])
        assert_array_equal(seen(part, X)[:20], seen(part, changed)[:20])


def test_a_row_of_weight_two_counts_as_two():
    """As far as what follows is concerned."""
    X = make_stream(7).X
    for part in (Counts(idf=True), ZScores()):
        once = seen(part, X, np.r_[2.0, np.ones(len(X) - 1)])
        assert_allclose(once[1:], seen(part, np.vstack([X[:1], X]))[2:], rtol=1e-5, atol=1e-6)


# ---- settings of an estimator -------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_takes_a_name_or_a_part(estimator):
    model = estimator(preprocessing="idf")
    assert "preprocessing='idf'" in repr(model) and "preprocessing" not in repr(estimator())
    assert clone(model).get_params()["preprocessing"] == "idf"
    assert estimator().preprocessing in (None, "auto")
    with pytest.raises(KeslerError, match="scale, counts, idf, information, z-scores, ranges"):
        y = [["a"], ["b"]] if estimator in ESTIMATORS[2:4] else ["a", "b"]
        estimator(preprocessing="tfidf").fit(np.eye(2), y)


@pytest.mark.parametrize(
    ("X", "part"),
    [
        (np.eye(3), ZScores()),
        (sparse.csr_array(np.eye(3)), Counts()),
        ([{"a": 1}, {"b": 1}, {"c": 1}], Counts()),
    ],
    ids=["dense", "sparse", "named"],
)
def test_scale_goes_by_the_kind_of_the_first_rows(X, part, tmp_path):
    model = OnlineClassifier(update="pa1", preprocessing="scale").fit(X, [0, 1, 0])
    assert model.preprocessing_ == part
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.preprocessing_ == again.resolved_.preprocessing == part
    assert again.preprocessing == "scale"
    assert OnlineClassifier(update="pa1").fit(X, [0, 1, 0]).preprocessing_ is None
    assert (
        OnlineClassifier(update="pa1", preprocessing=None).fit(X, [0, 1, 0]).preprocessing_ is None
    )


def test_the_table_of_preprocessings_is_complete():
    named = [resolve_preprocessing(name, dense=True) for name in PREPROCESSINGS]
    kinds = {Bins, Counts, Pairs, RandomFourier, Ranges, ZScores}
    assert {type(part) for part in named if part is not None} == kinds
    assert all(resolve_preprocessing(part, dense=False) is part for part in named)
    assert resolve_preprocessing("scale", dense=True, by_distance=True) == Ranges()
    assert resolve_preprocessing("scale", dense=False, by_distance=True) == Counts()


@pytest.mark.parametrize("clip", [0, -1.0, np.inf, np.nan, "4", None, True])
def test_a_clip_that_is_none_is_refused(clip):
    with pytest.raises(KeslerError, match=r"ZScores\(clip=.*finite number above 0"):
        ZScores(clip)


@pytest.mark.parametrize("name", ["damped", "idf", "unit", "information"])
def test_counts_take_yes_or_no(name):
    with pytest.raises(KeslerError, match=rf"Counts\({name}=1\): give True or False"):
        Counts(**{name: 1})


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_z_scores_take_no_sparse_rows(kernel):
    model = OnlineClassifier("multi", update="pa1", preprocessing="z-scores", kernel=kernel)
    with pytest.raises(KeslerError, match=r"ZScores\(clip=4.0\).*sparse rows.*'counts'"):
        model.fit(sparse.csr_array(np.eye(3)), [0, 1, 2])
    assert not model.__sklearn_tags__().input_tags.sparse


def test_attributes_beside_ratings_are_conditioned():
    X, values = np.array([[1.0, 3.0], [2.0, 1.0], [3.0, 0.0]]), np.ones((3, 2, 1))
    rated = Ratings.from_dense(values, labels=[0, 1], attributes=X)
    model = OnlineClassifier(
        "multi+sub-experts", update="perceptron", preprocessing="counts", intercept=1
    )
    plain = OnlineClassifier("multi+sub-experts", update="perceptron", intercept=1)
    beforehand = Ratings.from_dense(values, labels=[0, 1], attributes=conditioned(Counts(), X))
    model.fit(rated, [0, 1, 0]), plain.fit(beforehand, [0, 1, 0])
    assert_array_equal(model.decision_function(rated), plain.decision_function(beforehand))


# ---- features never seen -------------------------------------------------------------------------


def test_an_unknown_word_counts_in_the_length_and_as_the_rarest():
    model = OnlineClassifier("multi", update="perceptron", preprocessing="idf")
    model.learn_one({"a": 1.0}, "x").learn_one({"b": 1.0}, "y").learn_one({"a": 1.0}, "y")
    alone, beside = model.decision_function([{"a": 1.0}, {"a": 1.0, "new": 9.0, "newer": 1.0}])
    v = np.sqrt(np.log(4 / np.array([2.5, 0.5, 0.5]))) * [1, 1 + np.log(9), 1]
    assert_allclose(beside / alone, v[0] / np.linalg.norm(v), rtol=1e-5)


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_positions_never_met_are_one_with_the_trial_that_follows(kernel):
    """A matrix is as wide as it is, but rows of readers grow."""
    from kesler.data.rows import Rows

    rows = [{0: 1.0, 2: 2.0}, {1: 1.0}, {0: 1.0, 16: 3.0}, {99: 5.0, 1: 1.0}, {500: 1.0, 7: 1.0}]
    link = "linear" if kernel else Exponential(balanced=False)
    model = OnlineClassifier(
        "multi", update="pa1", link=link, kernel=kernel, preprocessing=Counts(idf=True)
    )
    learn_rows(model, Rows.from_sparse_rows(rows[:2], 3), ["x", "y"])
    for row in rows[2:]:
        one = Rows.from_sparse_rows([row], 0)
        scores = model._fitted().scores(one)
        trials = model._run_trials(one, ["x"], keep_scores=True)
        assert_array_equal(trials.scores, scores)
    far = Rows.from_sparse_rows([{10**8: 1.0}], 0)
    assert np.isfinite(model._fitted().scores(far)).all()


# ---- saving, and repeated passes ----------------------------------------------------------------


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_the_past_grows_with_the_features_and_is_kept(part, tmp_path):
    rng = np.random.default_rng(8)
    X, y = rng.poisson(2, size=(60, 40)), rng.integers(3, size=60)
    model = OnlineClassifier("multi", update="pa1", preprocessing=part).partial_fit(X[:30], y[:30])
    model.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(again.decision_function(X), model.decision_function(X))
    arrays = model._learner.arrays()
    assert arrays["preprocessing.statistics"].shape == (40, part.n_statistics)
    assert arrays["preprocessing.seen"].tolist() == [30]


def test_a_replay_forgets_the_past_before_each_pass():
    stream = make_stream(10)
    model = OnlineClassifier("multi", update="pa1", preprocessing="z-scores")
    replay = Replay(model, clone(model)._blocks(stream.X, stream.y))
    learner = replay.learner(model._learner.rule)
    for _ in replay.learn(learner):
        pass
    first = learner.stored["preprocessing.statistics"].copy()
    for _ in replay.learn(learner):
        pass
    assert_array_equal(learner.stored["preprocessing.statistics"], first)


# ---- streams that are hard to bear --------------------------------------------------------------


def measured(n_rows: int = 1500) -> tuple[Any, Any]:
    """Measurements of four separated classes, with features of different units."""
    rng = np.random.default_rng(11)
    y = rng.integers(4, size=n_rows)
    X = rng.normal(size=(4, 6))[y] * 2 + rng.normal(size=(n_rows, 6))
    return X * 10.0 ** np.arange(-3, 3), y


def errors(X: Any, y: Any, part: Any, kernel: Any = None) -> Any:
    """Return which trials were mistakes; nothing on the way is anything but a number."""
    sigma = {} if kernel is None else {"sigma": 3.0, "budget": 300}
    model = OnlineClassifier(
        "multi", update="pa1", preprocessing=part, intercept=1, kernel=kernel, **sigma
    )
    result = progressive_validate(model, X, y)
    assert all(np.isfinite(a).all() for a in model._learner.arrays().values())
    assert np.isfinite(model.decision_function(X[-20:])).all()
    return result.predictions != y


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_mistakes_recover_when_the_scale_jumps_by_a_million(kernel):
    X, y = measured()
    calm = errors(X, y, "z-scores", kernel)[-500:].mean()
    X[500:] *= 1e6
    assert errors(X, y, "z-scores", kernel)[-500:].mean() < 1.5 * calm + 0.01 < 0.15


@pytest.mark.parametrize("value", [1e30, -3e38])
def test_a_broken_value_does_not_hide_those_after_it(value):
    X, y = measured()
    broken = X.copy()
    broken[500:503] = value
    calm, later = (errors(rows, y, "z-scores")[-500:].mean() for rows in (X, broken))
    assert later < 1.5 * calm + 0.01 < 0.15


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_no_stream_makes_anything_but_numbers(part):
    rng = np.random.default_rng(12)
    X, y = measured(200)
    X[:, 0], X[0], X[50:, 1] = 0.1, 0, 0.0
    X[100:, 2] = rng.choice([-1e30, 1e30, 3e38, 1e-45, -4.0], size=100)
    if isinstance(part, Counts) and not part.unit:
        X = np.clip(X, -1e4, 1e4)  # which are not brought to a length
    errors(X, y, part)


def test_a_large_offset_costs_no_digits():
    X = np.random.default_rng(13).integers(9, size=(99, 3))
    assert_allclose(seen(ZScores(), X + 2.0**23), seen(ZScores(), X), atol=1e-6)
    assert_array_equal(seen(Ranges(), X + 2.0**23), seen(Ranges(), X))


@pytest.mark.parametrize("given_", [{}, {"kernel": "rbf"}], ids=repr)
def test_features_have_as_many_weights_as_rows_have_features(given_):
    model = OnlineClassifier("multi", update="pa1", preprocessing=Ranges(weights=(1.0, 2.0)))
    model.set_params(**given_)
    with pytest.raises(KeslerError, match="has 2 weights, but rows have 3 inputs"):
        model.partial_fit([[1.0, 2.0, 3.0]], ["a"])
    with pytest.raises(KeslerError, match="give a number of 0 or more for each input"):
        Ranges(weights=(0.0, 0.0))


def test_columns_of_larger_weight_have_larger_parts_in_distances():
    X, y = [[0.0, 0.0], [1.0, 1.0]] * 5, ["low", "high"] * 5
    for weights, expected in ((4.0, 1.0), "low"), ((1.0, 4.0), "high"):
        model = OnlineClassifier("multi", kernel="rbf", on_new_class="learn")
        model.set_params(preprocessing=Ranges(weights=weights)).partial_fit(X, y)
        assert model.predict_one([0.2, 0.8]) == expected


@pytest.mark.parametrize("weights", [(1.0, 0.5, 3.0), (0.0, 2.0, 1.0)])
def test_given_weights_and_information_multiply(weights):
    stream = make_stream(6, n_rows=64, n_classes=3, n_features=3)
    models = []
    for part in Ranges(True), Ranges(True, weights):
        model = OnlineClassifier("multi", update="pa1", kernel="rbf", preprocessing=part)
        models.append(model.partial_fit(stream.X, stream.y))
    alone, both = (model._learner.stored["relevance.weights"][:3] for model in models)
    scales = np.array(weights) / np.sqrt(np.mean(np.square(weights)))
    assert_allclose(both, alone * np.sqrt((scales**2).sum() / (scales**2 @ alone**2)), rtol=1e-6)

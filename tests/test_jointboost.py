"""JointBoostClassifier: its rounds against plain references, its refusals."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from kesler import JointBoostClassifier, KeslerError
from kesler.baselines.jointboost import Thresholds

X_IRIS, Y_IRIS = load_iris(return_X_y=True)


# ---- references
# --------------------------------------------------------------------------------------


def fitted(is_above, z, w, sharing):
    """What each class is given above and below: weighted least squares, written out."""
    given = np.empty((2, z.shape[1]))
    for r in range(z.shape[1]):
        rows = np.ones((1, len(z)), dtype=bool).repeat(2, axis=0)
        classes = [r]
        if r in sharing:
            rows, classes = np.array([~is_above, is_above]), list(sharing)
        for side in range(2):
            part = np.ix_(rows[side], classes)
            given[side, r] = (w[part] * z[part]).sum() / w[part].sum()
    return given


def error(is_above, z, w, sharing):
    given = fitted(is_above, z, w, sharing)
    return float((w * (z - np.where(is_above[:, None], given[1], given[0])) ** 2).sum())


def cuts_of(X):
    for f in range(X.shape[1]):
        values = np.unique(X[:, f])
        for theta in (values[:-1] + values[1:]) / 2:
            yield f, theta


def best_cut(X, z, w, sharing):
    """The least error and its cut, the first among equals."""
    return min(
        (round(error(X[:, f] > theta, z, w, sharing), 9), f, theta) for f, theta in cuts_of(X)
    )


def best_first(X, z, w):
    """Classes join one at a time, the best first; the best set seen on the way."""
    k, sharing, seen = z.shape[1], (), []
    for _ in range(k):
        others = [r for r in range(k) if r not in sharing]
        tried = [(best_cut(X, z, w, (*sharing, r)), (*sharing, r)) for r in others]
        seen.append(min(tried, key=lambda found: found[0][0]))
        sharing = seen[-1][1]
    return min(seen, key=lambda found: found[0][0])


def exhaustive(X, z, w):
    k = z.shape[1]
    sets = [s for n in range(1, k + 1) for s in combinations(range(k), n)]
    return min((best_cut(X, z, w, s), s) for s in sets)


def boosted(X, z, counts, n_rounds, search):
    """GentleBoost, its rounds and the scores after them."""
    scores = np.zeros(z.shape)
    for _ in range(n_rounds):
        w = counts[:, None] * np.exp(-z * scores)
        (_, f, theta), sharing = search(X, z, w)
        is_above = X[:, f] > theta
        given = fitted(is_above, z, w, sharing)
        scores = scores + np.where(is_above[:, None], given[1], given[0])
        yield f, theta, sorted(sharing), scores


@st.composite
def problems(draw, n_classes):
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d, k = draw(st.integers(6, 14)), draw(st.integers(1, 3)), draw(n_classes)
    y = np.concatenate([np.arange(k), generator.integers(0, k, n)])
    X = generator.normal(size=(len(y), d)) + 0.7 * y[:, None] % 2
    return X, y, 0.2 + generator.random(len(y))


def signs(y):
    return np.where(y[:, None] == np.arange(y.max() + 1), 1.0, -1.0)


@settings(max_examples=12, deadline=None)
@given(problems(st.integers(3, 4)))
def test_rounds_are_those_of_the_plain_reference(problem):
    X, y, counts = problem
    model = JointBoostClassifier(3, n_thresholds=None).fit(X, y, counts)
    scores = list(model.staged_decision_function(X))
    for t, (f, theta, sharing, expected) in enumerate(boosted(X, signs(y), counts, 3, best_first)):
        step = model.path_[t]
        assert (step.feature, list(step.classes)) == (f, sharing)
        assert step.threshold == pytest.approx(theta)
        assert_allclose(scores[t], expected, atol=1e-9)
        loss = counts @ np.exp(-signs(y) * expected).sum(axis=1) / counts.sum()
        assert step.loss == pytest.approx(loss)


@settings(max_examples=25, deadline=None)
@given(problems(st.just(2)))
def test_of_two_classes_no_set_is_better(problem):
    X, y, counts = problem
    w = counts[:, None] * np.ones(2)
    (least, *_), _ = exhaustive(X, signs(y), w)
    step = JointBoostClassifier(1, n_thresholds=None).fit(X, y, counts).path_[0]
    found = error(X[:, step.feature] > step.threshold, signs(y), w, step.classes)
    assert found == pytest.approx(least, abs=1e-8)


@settings(max_examples=15, deadline=None)
@given(problems(st.integers(3, 4)))
def test_the_set_found_is_between_no_sharing_and_the_best_set(problem):
    X, y, counts = problem
    z, w = signs(y), counts[:, None] * np.ones(y.max() + 1)
    step = JointBoostClassifier(1, n_thresholds=None).fit(X, y, counts).path_[0]
    found = error(X[:, step.feature] > step.threshold, z, w, step.classes)
    alone = min(best_cut(X, z, w, (r,))[0] for r in range(z.shape[1]))
    together = best_cut(X, z, w, tuple(range(z.shape[1])))[0]
    slack = 1e-8
    assert exhaustive(X, z, w)[0][0] <= found + slack <= min(alone, together) + 2 * slack


# ---- thresholds ---------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=12), st.one_of(st.none(), st.just(2)))
def test_thresholds_part_the_values(values, most):
    X = np.array(values, dtype=float)[:, None]
    found = Thresholds.of(X, np.ones(len(X)), most)
    n_cuts = len(set(values)) - 1
    assert len(found.values) == n_cuts if most is None else len(found.values) <= min(most, n_cuts)
    assert (np.diff(found.values) > 0).all()
    assert not np.isin(found.values, values).any()
    for t, theta in enumerate(found.values):
        assert_array_equal(found.above(t), X[:, 0] > theta)


def test_few_thresholds_stand_at_quantiles():
    X = np.arange(100.0)[:, None]
    assert_allclose(Thresholds.of(X, np.ones(100), 3).values, [25, 50, 75], atol=1)
    weights = np.where(X[:, 0] < 10, 90, 1)
    assert (Thresholds.of(X, weights, 3).values[:2] < 10).all()


def test_neighbouring_floats_are_parted():
    low = 1.0
    high = np.nextafter(low, 2)
    model = JointBoostClassifier(1).fit([[low], [high]] * 3, [0, 1] * 3)
    assert model.predict([[low], [high]]).tolist() == [0, 1]


# ---- the face -----------------------------------------------------------------------------------


def test_rounds_lower_the_loss_and_share_stumps():
    model = JointBoostClassifier(30).fit(X_IRIS, Y_IRIS)
    losses = [step.loss for step in model.path_]
    assert len(losses) == 30 and losses == sorted(losses, reverse=True)
    assert any(len(step.classes) > 1 for step in model.path_)
    assert model.score(X_IRIS, Y_IRIS) > 0.97
    counted = [len({s.feature for s in model.path_[: t + 1]}) for t in range(30)]
    assert [step.n_features for step in model.path_] == counted
    seconds = [step.seconds for step in model.path_]
    assert seconds == sorted(seconds) and seconds[0] > 0


def test_stages_end_where_predictions_are():
    model = JointBoostClassifier(12).fit(X_IRIS, Y_IRIS)
    stages = list(model.staged_predict(X_IRIS))
    assert len(stages) == 12
    assert_array_equal(stages[-1], model.predict(X_IRIS))
    *_, last = model.staged_decision_function(X_IRIS)
    assert_allclose(last, model.decision_function(X_IRIS), atol=1e-12)
    fewer = JointBoostClassifier(5).fit(X_IRIS, Y_IRIS)
    assert_array_equal(stages[4], fewer.predict(X_IRIS))


def test_probabilities_are_logistic_and_sum_to_one():
    model = JointBoostClassifier(8).fit(X_IRIS, Y_IRIS)
    probabilities = 1 / (1 + np.exp(-2 * model.decision_function(X_IRIS)))
    expected = probabilities / probabilities.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(X_IRIS), expected, rtol=1e-9)


def test_two_classes_have_one_score():
    X, y = X_IRIS[:100], np.array(["no", "yes"])[Y_IRIS[:100]]
    model = JointBoostClassifier(3).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (100,)
    assert_array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))
    assert_allclose(model.predict_proba(X)[:, 1] > model.predict_proba(X)[:, 0], scores > 0)


def test_weights_are_copies_and_zero_leaves_out():
    generator = np.random.default_rng(0)
    counts = generator.integers(0, 3, len(X_IRIS))
    weighted = JointBoostClassifier(10).fit(X_IRIS, Y_IRIS, counts)
    repeated = JointBoostClassifier(10).fit(X_IRIS.repeat(counts, 0), Y_IRIS.repeat(counts))
    assert_allclose(weighted.decision_function(X_IRIS), repeated.decision_function(X_IRIS))


def test_a_class_without_weight_is_left_out():
    weights = (Y_IRIS != 2).astype(float)
    model = JointBoostClassifier(5).fit(X_IRIS, Y_IRIS, weights)
    assert model.classes_.tolist() == [0, 1]
    assert set(model.predict(X_IRIS)) == {0, 1}


def test_a_class_of_one_row_and_constant_columns():
    X = np.column_stack([np.ones(len(X_IRIS)), X_IRIS])
    y = Y_IRIS.copy()
    y[7], X[7, 1:] = 3, 9
    model = JointBoostClassifier(100, n_thresholds=None).fit(X, y)
    assert 0 not in model.features_
    assert model.predict(X)[7] == 3


def test_it_ends_early_where_no_stump_helps():
    model = JointBoostClassifier(400).fit([[0.0], [1.0]] * 2, [0, 1, 1, 0])
    assert len(model.path_) == 0
    assert_allclose(model.predict_proba([[0.0], [1.0]]), 0.5)


def test_many_rounds_stay_finite():
    model = JointBoostClassifier(1500).fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    assert np.isfinite(model.predict_proba([[0.0], [5.0]])).all()
    assert model.score([[0.0], [1.0], [2.0]], [0, 1, 2]) == 1


def test_float32_rows_are_cut_where_double_ones_are():
    X = X_IRIS.astype(np.float32)
    single, double = (JointBoostClassifier(10).fit(Z, Y_IRIS) for Z in (X, X.astype(float)))
    assert_array_equal(single.thresholds_, double.thresholds_)
    assert_array_equal(single.predict(X), double.predict(X.astype(float)))


def test_clones_and_pickles():
    model = JointBoostClassifier(4, n_thresholds=9).fit(X_IRIS, Y_IRIS)
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X_IRIS), model.predict_proba(X_IRIS))


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_rounds": 0}, "n_rounds=0 must be an integer of 1 or more"),
        ({"n_rounds": 2.5}, "n_rounds=2.5 must be"),
        ({"n_thresholds": 0}, "n_thresholds=0 must be"),
        ({"n_thresholds": True}, "n_thresholds=True must be"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, sentence):
    with pytest.raises(KeslerError, match=sentence):
        JointBoostClassifier(**parameters).fit(X_IRIS, Y_IRIS)


@pytest.mark.parametrize(
    ("X", "y", "weights", "sentence"),
    [
        ([[1.0], [2.0]], ["a", "a"], None, "y has one class only, 'a'"),
        ([[1.0], [2.0]], [0, 1], [0, 0], "non-zero|every sample_weight"),
        ([[1.0], [1.0]], [0, 1], None, "every feature is constant"),
        ([[1.0], [np.nan]], [0, 1], None, "NaN"),
        ([[1.0], [2.0]], [0, 1], [1, -1], "[Nn]egative"),
    ],
)
def test_rows_that_cannot_be_learnt_are_refused(X, y, weights, sentence):
    with pytest.raises(ValueError, match=sentence):
        JointBoostClassifier().fit(X, y, weights)


def test_scikit_learn_checks_pass():
    model = JointBoostClassifier()
    results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert len(results) == len(list(estimator_checks_generator(model))) >= 60

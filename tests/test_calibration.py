"""Probabilities: the calibration of scores is learnt online."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_calibration as reference
from kesler import (
    LinearMax,
    OnlineClassifier,
    OnlineOrdinalClassifier,
    Ratings,
    link_function,
    load,
    progressive_validate,
    update_rule,
)
from kesler.learner.calibration import probabilities
from kesler.metrics import calibration_error, log_loss
from kesler.state.records import CALIBRATION
from streams import make_stream

STREAM = make_stream(7, n_rows=60, n_classes=5)
ESTIMATORS = {
    "weights": OnlineClassifier("multi", update="softmax"),
    "averaged": OnlineClassifier("multi", update="softmax", averaged=True),
    "kernel": OnlineClassifier("multi", kernel="rbf"),
    "linear-max": LinearMax("romma"),
    "winnow": LinearMax(),
    "ranks": OnlineOrdinalClassifier(update="simproj"),
}
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)


def fresh(estimator):
    return type(estimator)(**estimator.get_params(deep=False))


# ---- scores set by a test -----------------------------------------------------------------------


@update_rule(constraints="predicted", requires="losses")
def stand_still(parameters, weight, losses, squared_norms, gram, steps):
    """Take no step."""
    steps[0] = 0.0


@link_function()
def one_more(v):
    """Begin at 1."""
    return v + 1.0


def run(scores, y):
    """Let a learner whose scores are given go through answers: one sub-expert rates each class."""
    learner = OnlineClassifier("sub-experts", update=stand_still, link=one_more)
    rows = Ratings.from_dense(scores[:, :, None], range(scores.shape[1]))
    return learner, progressive_validate(learner, rows, y)


def drawn(seed, n_rows, n_classes, inverse, lapse=0.0):
    """Return scores, and targets drawn from their probabilities."""
    generator = np.random.default_rng(seed)
    scores = 2 * generator.normal(size=(n_rows, n_classes)).astype(np.float32).astype(float)
    probabilities = [reference.probabilities(row, lapse, inverse)[0] for row in scores]
    y = np.array([generator.choice(n_classes, p=p) for p in probabilities])
    y[:n_classes] = np.arange(n_classes)
    return scores, y


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.integers(1, 12),
    inverse=st.sampled_from([0.1, 1.0, 5.0]),
    jump=st.sampled_from([1.0, 1e-6, 1e6]),
)
def test_what_is_learnt_equals_the_reference(seed, n_classes, inverse, jump):
    scores, y = drawn(seed, 80, n_classes, inverse, 0.1)
    scores[40:] = (scores[40:] * jump).astype(np.float32)
    learner, result = run(scores, y)
    found, beta, lapse = reference.calibrate(scores, y)
    np.testing.assert_allclose(result.probabilities, found, rtol=2e-4, atol=1e-9)
    inverse, _, lapses, encoded = learner._learner.arrays()["calibration"]
    assert (inverse, lapses / encoded) == pytest.approx((beta, lapse), rel=2e-4)


@pytest.mark.parametrize("inverse", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("n_classes", [2, 5, 20])
def test_the_temperature_of_the_targets_is_found(inverse, n_classes):
    scores, y = drawn(1, 4000, n_classes, inverse)
    learner, result = run(scores, y)
    found = learner._learner.arrays()["calibration"][0]  # of the last hundred rows or so
    assert 0.5 < found / inverse < 2
    probabilities = [reference.probabilities(row, 0.0, inverse)[0] for row in scores]
    truth = [-math.log(p[answer]) for p, answer in zip(probabilities, y, strict=True)]
    assert result.log_loss < np.mean(truth) + 0.03
    assert result.calibration_error < 0.02


def test_answers_that_scores_do_not_explain_are_counted():
    scores, y = drawn(2, 4000, 5, 2.0, 0.3)
    learner, result = run(scores, y)
    _, _, lapses, encoded = learner._learner.arrays()["calibration"]
    assert lapses / encoded == pytest.approx(0.3, abs=0.1)
    assert result.calibration_error < 0.05


@pytest.mark.parametrize("power", [-40, -20, 20, 40])
def test_the_scale_of_scores_changes_nothing(power):
    scores, y = drawn(3, 300, 4, 1.0)
    plain, scaled = run(scores, y)[1], run(scores * 2.0**power, y)[1]
    np.testing.assert_array_equal(scaled.probabilities, plain.probabilities)


@pytest.mark.parametrize("jump", [1e-6, 1e6])
def test_a_scale_that_jumps_is_found_anew(jump):
    scores, y = drawn(4, 6000, 4, 1.0)
    scores[2000:] *= jump
    result = run(scores, y)[1]
    right = np.diff(result.curve, prepend=0) == 0
    assert np.isfinite(result.log_loss)
    assert calibration_error(result.probabilities[4000:, 0], right[4000:]) < 0.03
    assert log_loss(result.probabilities[4000:, 1]) == pytest.approx(
        log_loss(result.probabilities[1000:2000, 1]), abs=0.1
    )


@pytest.mark.parametrize("highest", [-1.0, -1e3, -1e30])
@pytest.mark.parametrize("n_classes", [2, 17, 40])
def test_scores_all_below_0_have_the_chances_of_the_same_scores_moved_up(highest, n_classes):
    # A score of 0 would be so far above them that float32 has no e^z for it.
    far, gaps = 128 * math.log(2), np.linspace(0.0, 3.0, n_classes)
    scores = (highest * (1 + gaps / far)).astype(np.float32)[None]
    settings = probabilities(
        scores, np.array([(far / abs(highest), 5.0, 0.0, 1.0)], dtype=CALIBRATION)
    )
    expected = np.exp(-gaps) / np.exp(-gaps).sum()
    np.testing.assert_allclose(settings[0], expected, rtol=1e-4)


def test_equal_scores_are_equal_chances():
    _, result = run(np.zeros((6, 3)), [0, 1, 2, 0, 1, 2])
    np.testing.assert_allclose(result.probabilities[3:], 1 / 3)


# ---- estimators ----------------------------------------------------------------------------------


@every_estimator
def test_probabilities_are_of_the_classes_and_agree_with_predictions(estimator):
    model = fresh(estimator).fit(STREAM.X, STREAM.y)
    probabilities = model.predict_proba(STREAM.X)
    assert (
        probabilities.shape == (len(STREAM), STREAM.n_classes) and probabilities.dtype == np.float64
    )
    assert (probabilities > 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert model.classes_[probabilities.argmax(axis=1)].tolist() == model.predict(STREAM.X).tolist()
    one = model.predict_proba_one(STREAM.X[0])
    assert [one[label] for label in model.classes_.tolist()] == probabilities[0].tolist()


@every_estimator
def test_the_record_holds_what_was_said_before_each_answer(estimator):
    model, found = fresh(estimator), []
    for x, y in zip(STREAM.X, STREAM.y.tolist(), strict=True):
        known = model.predict_proba_one(x) if model.n_known_ else {}
        found.append((max(known.values()), known[y]) if y in known else (np.nan, np.nan))
        model.learn_one(x, y)
    result = progressive_validate(fresh(estimator), STREAM.X, STREAM.y)
    np.testing.assert_array_equal(result.probabilities, found)


@every_estimator
def test_learning_goes_on_from_a_file_as_if_never_stopped(estimator, tmp_path):
    whole = progressive_validate(fresh(estimator), STREAM.X, STREAM.y)
    model = fresh(estimator).partial_fit(STREAM.X[:25], STREAM.y[:25])
    model.save(tmp_path / "model")
    rest = progressive_validate(load(tmp_path / "model"), STREAM.X[25:], STREAM.y[25:])
    np.testing.assert_array_equal(rest.probabilities, whole.probabilities[25:])


@every_estimator
def test_rows_of_one_known_class_and_first_rows_teach_nothing(estimator):
    model = fresh(estimator).fit(STREAM.X[:6], [0] * 6)
    before = model._learner.arrays()["calibration"].tolist()
    assert before == [1.0, 0.0, 1.0, 50.0]
    assert model.predict_proba(STREAM.X[:2]).tolist() == [[1.0], [1.0]]
    model.partial_fit(STREAM.X[6:9], [1, 2, 3])
    assert model._learner.arrays()["calibration"].tolist() == before


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("update", ["perceptron", "pa1", "softmax"])
def test_badly_scaled_rows_have_probabilities(scale, update):
    stream = make_stream(8, n_rows=400, n_classes=3)
    result = progressive_validate(
        OnlineClassifier("multi", update=update), stream.X * scale, stream.y
    )
    assert 0 < result.log_loss < 2 * math.log(3)
    assert np.isfinite(result.calibration_error)


def test_probabilities_reflect_noise():
    generator = np.random.default_rng(5)
    X = generator.normal(size=(3000, 6))
    y = X[:, :4].argmax(axis=1)
    noisy = generator.random(3000) < 0.3
    y[noisy] = generator.integers(0, 4, noisy.sum())
    result = progressive_validate(OnlineClassifier("multi", update="softmax"), X, y)
    assert result.calibration_error < 0.04
    mean = np.nanmean(result.probabilities[:, 0])
    assert mean == pytest.approx(1 - result.error, abs=0.03)


# ---- measures ------------------------------------------------------------------------------------


def test_the_measures_by_hand():
    p = np.array([0.9, 0.9, 0.3, np.nan, 1.0])
    right = np.array([True, False, False, False, True])
    assert calibration_error(p, right) == pytest.approx((0.8 + 0.3 + 0.0) / 4)
    assert log_loss(np.array([0.5, np.nan, 0.25])) == pytest.approx(1.5 * math.log(2))
    assert math.isfinite(log_loss(np.array([0.0])))
    nothing = np.array([np.nan])
    assert math.isnan(log_loss(nothing))
    assert math.isnan(calibration_error(nothing, np.array([True])))

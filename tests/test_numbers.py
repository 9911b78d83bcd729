"""Numbers that float32 bears badly: long streams, large weights, small steps, common offsets."""

from contextlib import nullcontext

import numpy as np
import pytest

import reference
from kesler import KeslerError, OnlineClassifier
from kesler.data.rows import Rows
from kesler.hypotheses import Grouped
from kesler.maps import ProductMean
from kesler.online.blocks import learn_rows, readable_rows
from kesler.updates import MIRA, PassiveAggressive
from kesler.updates.mira import mira_steps_per_class


def mean_of(model: OnlineClassifier, code: int = 0) -> np.ndarray:
    """Return the mean that a learner stores for a class."""
    arrays = model._learner.arrays()
    return arrays["statistics.sums"][0][:, code] / arrays["statistics.totals"][0][code]


def test_the_mean_of_a_million_rows_is_their_mean():
    X = np.tile(np.array([[0.1, 0.7]], dtype=np.float32), (1_000_000, 1))
    model = OnlineClassifier("single", "distance", update="pa1").fit(X, np.zeros(len(X), dtype=int))
    np.testing.assert_allclose(mean_of(model), [0.1, 0.7], rtol=1e-6)


def test_statistics_stand_still_when_float32_is_full():
    X = np.repeat([[1.0], [5.0]], [16, 4], axis=0)
    model = OnlineClassifier("single", "product-mean", update="pa1")
    model.fit(X, np.zeros(20, dtype=int), sample_weight=np.full(20, 2.0**20))
    assert mean_of(model) == 1.0


@pytest.mark.parametrize("weight", [2.0**21, 1e8, 1e30, 2.0**-21, 1e-30])
def test_weights_that_sums_cannot_hold_are_refused(weight):
    with pytest.raises(ValueError, match=r"sample_weight of row 1 is .* between 1/1,048,576 and"):
        OnlineClassifier(update="pa1").fit(np.eye(3), [0, 1, 0], sample_weight=[1.0, weight, 1.0])


@pytest.mark.parametrize("C", [1e-12, 1e-15, 1e-17, 1e-19])
def test_steps_of_mira_sum_to_a_small_aggressiveness(C):
    steps, losses = np.zeros(3), np.array([1.2, 2.0, -0.3])
    mira_steps_per_class(np.array([C]), 1.0, losses, np.full(3, 2.0), np.empty((3, 0)), steps)
    np.testing.assert_allclose(steps, [0.0, C, 0.0], rtol=1e-3)


@pytest.mark.parametrize("offset", [0.0, 100.0, 1000.0])
@pytest.mark.parametrize("update", ["simproj", "mira"])
def test_steps_are_right_where_views_differ_little(offset, update):
    """||phi(x, y) - phi(x, s)||^2 is far smaller than ||phi(x, y)||^2."""
    generator = np.random.default_rng(0)
    X = (generator.normal(size=(6, 4)) + offset).astype(np.float32).astype(float)
    y = np.array([0, 1, 2, 0, 1, 2])
    rule = MIRA(1e-3) if update == "mira" else update
    model = OnlineClassifier("single", "product-mean", rule)
    model.fit(X[:4], y[:4])
    parts = [{"kind": "shared", "map": reference.MAPS["product_mean"]}]
    C = 1e-3 if update == "mira" else 1.0
    expected = reference.reference_run(X[:4], y[:4], parts, update, C)["W"][0][0]
    found = model._learner.arrays()["weights.values.0"][:, 0]
    assert np.abs(found - expected).max() <= 1e-3 * np.abs(expected).max()


def test_classes_of_the_same_groups_do_not_move_them():
    """What they take from each other cancels, however long the step."""
    kinds = Grouped({"even": [0, 2], "odd": [1, 3]})
    model = OnlineClassifier(kinds, update=PassiveAggressive(C=1e8))
    X = np.random.default_rng(1).normal(size=(40, 3)) + 2
    model.fit(X, np.tile([0, 1, 2, 3], 10))
    weights = model._learner.arrays()["weights.values.0"]
    np.testing.assert_allclose(weights[:, 0], -weights[:, 1], rtol=1e-5)


def test_positions_beyond_the_learnt_ones_count_for_nothing():
    model = OnlineClassifier("hybrid", ProductMean(), update="pa1")
    learn_rows(model, Rows.from_sparse_rows([{0: 1.0}, {1: 1.0}], 2), ["x", "y"])
    near = model._fitted().scores(Rows.from_sparse_rows([{0: 1.0}], 2))
    far = model._fitted().scores(Rows.from_sparse_rows([{0: 1.0, 10**8: 9.0}], 10**8 + 1))
    np.testing.assert_array_equal(near, far)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_rows_of_files_have_the_width_of_the_array_that_was_learnt(n, dense):
    """Those that list non-zeros may end before it; beyond it, they are scored, and not learnt."""
    model = OnlineClassifier("multi", update="pa1").fit(np.eye(2), ["x", "y"])
    row = [1.0] + [0.0] * (n - 1)
    rows = Rows.from_dense([row]) if dense else Rows.from_sparse_rows([{0: 1.0}], n)
    learns, scores = (n == 2, n == 2) if dense else (n <= 2, True)
    words = f"the rows have {n} features, but this model expects 2"
    with nullcontext() if scores else pytest.raises(KeslerError, match=words):
        found = model._fitted().scores(readable_rows(model, rows))
        np.testing.assert_array_equal(found, model._scores([[1.0, 0.0]]))
    with nullcontext() if learns else pytest.raises(KeslerError, match=words):
        learn_rows(model, rows, ["x"])
    assert (model.n_trials_, model.n_features_in_) == (2 + learns, 2)


def test_unknown_names_count_for_nothing():
    names = OnlineClassifier("hybrid", ProductMean(), update="pa1").fit(
        [{"a": 1.0}, {"b": 1.0}], ["x", "y"]
    )
    assert names.predict_one({"a": 1.0, **{f"new{i}": 9.0 for i in range(1000)}}) == "x"

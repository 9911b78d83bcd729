"""Expansions: laws over every block, what they make learnable, files, and bad input."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from kesler import KeslerError, OnlineClassifier, load, progressive_validate, update_rule
from kesler.data import model_file
from kesler.hypotheses import PerClass, Shared
from kesler.maps import Distance
from kesler.preconditioners import SecondOrder
from kesler.preprocessing import Bins, Concatenated, Pairs, RandomFourier, ZScores
from streams import (
    assert_labels_are_only_names,
    assert_same_arrays,
    assert_same_in_any_split,
    held,
    make_stream,
    streams,
)

ALL = [ZScores(), Bins(4), RandomFourier(20), Pairs(3)]
LEARNERS: dict[str, Any] = {
    "bins": {"preprocessing": Bins(4), "update": "pa1"},
    "random-fourier": {"preprocessing": RandomFourier(20), "update": "softmax"},
    "information": {
        "preprocessing": ["z-scores", RandomFourier(20, information=True)],
        "update": "softmax",
    },
    "pairs": {"preprocessing": "pairs", "update": "ovr-hinge", "preconditioner": "adagrad"},
    "all": {"preprocessing": ALL, "update": "softmax", "preconditioner": "adagrad"},
    "half-life": {"preprocessing": ALL, "update": "pa1", "half_life": 10.0},
    "information, half-life": {
        "preprocessing": RandomFourier(20, information=True),
        "update": "pa1",
        "half_life": 10.0,
    },
    "second order": {
        "preprocessing": ALL,
        "update": "least-squares",
        "preconditioner": SecondOrder(2.0),
    },
    "map": {
        "hypotheses": [PerClass(), Shared(Distance())],
        "preprocessing": [Bins(3), "z-scores"],
        "update": "pa1",
    },
    "kernel": {"preprocessing": [Bins(3), "z-scores"], "update": "pa1", "kernel": "rbf"},
    "default": {},
    "ensemble": {"update": "ensemble"},
}
every_learner = pytest.mark.parametrize("name", LEARNERS)


def made(name: str) -> OnlineClassifier:
    given = LEARNERS[name]
    shared = {"hypotheses": "multi"} if "preprocessing" in given else {}
    return OnlineClassifier(**shared | given)


# ---- laws ----------------------------------------------------------------------------------------


@every_learner
@settings(max_examples=5)
@given(
    stream=streams(),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    missing=st.sampled_from([0.0, 0.3]),
)
def test_any_split_into_batches_is_the_same(name, stream, cuts, missing):
    gaps = np.random.default_rng(len(stream)).random(stream.X.shape) < missing
    stream = replace(stream, X=np.where(gaps, np.nan, stream.X))
    assert_same_in_any_split(lambda: made(name), stream, cuts)


def test_gaps_are_learnt_where_they_say_the_class():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    X = rng.normal(size=(400, 3))
    X[:, 1] = np.where(y == 1, np.nan, X[:, 1])
    assert progressive_validate(OnlineClassifier(), X, y).error < 0.1
    filled = np.where(np.isnan(X), rng.normal(size=X.shape), X)
    assert progressive_validate(OnlineClassifier(), filled, y).error > 0.1


@pytest.mark.parametrize("where", ["first row", "later batch", "only predicted", "whole column"])
def test_values_may_be_missing_anywhere(where):
    stream = make_stream(9, n_rows=60)
    X, row = stream.X.copy(), {"first row": 0, "later batch": 45, "only predicted": 59}.get(where)
    X[slice(None) if row is None else row, 2] = np.nan
    model = OnlineClassifier().partial_fit(X[:30], stream.y[:30])
    model.partial_fit(X[30:-1], stream.y[30:-1])
    assert model.predict(X[-1:])[0] == model.predict_one(X[-1])
    assert np.isfinite(model.predict_proba(X)).all()


def test_learners_that_take_no_missing_values_say_so():
    X = np.array([[1.0, np.nan], [2.0, 1.0]])
    model = OnlineClassifier("multi", update="pa1", preprocessing=None, kernel="rbf")
    with pytest.raises(KeslerError, match="row 0, feature 1 is NaN, and this learner takes no"):
        model.fit(X, [0, 1])
    with pytest.raises(KeslerError, match=r"NaN.*z-scores"):
        OnlineClassifier("multi", update="pa1", preprocessing=None).learn_one(X[0], 0)


@every_learner
def test_what_is_predicted_before_a_target_is_what_validation_reports(name):
    stream = make_stream(3, n_rows=40)
    result = progressive_validate(made(name), stream.X, stream.y)
    model = made(name)
    for t, (x, y) in enumerate(zip(stream.X, stream.y.tolist(), strict=True)):
        if t:
            assert model.predict_one(x) == result.predictions[t]
            before = held(model)
            assert model.predict(stream.X[t : t + 1])[0] == model.predict_one(x)
            assert held(model) == before
        model.learn_one(x, y)


@every_learner
def test_files_and_pickles_continue_as_if_never_stopped(name, tmp_path):
    stream = make_stream(4, n_rows=60)
    whole = made(name).partial_fit(stream.X, stream.y)
    model = made(name).partial_fit(stream.X[:30], stream.y[:30])
    model.save(tmp_path / "model")
    for copy in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), model):
        copy.partial_fit(stream.X[30:], stream.y[30:])
        assert_same_arrays(whole, copy, stream.X)


@every_learner
def test_declared_classes_and_names_of_labels_change_nothing_else(name):
    assert_labels_are_only_names(lambda: made(name))


def test_more_rows_than_the_sample_holds_are_learnt_in_any_split():
    stream = make_stream(6, n_rows=1500, n_classes=3)
    whole = made("all").fit(stream.X, stream.y)
    pieces = made("all")
    for start in range(0, 1500, 7):
        part = slice(start, start + 7)
        pieces.partial_fit(stream.X[part], stream.y[part])
    assert_same_arrays(whole, pieces, stream.X[:50])


def test_the_sample_is_of_all_rows_and_with_a_half_life_of_recent_ones():
    X, y = np.arange(20_000.0)[:, None], np.arange(20_000) % 2
    for half_life, middle in ((None, 10_000), (300.0, 19_500)):
        model = OnlineClassifier("multi", update="pa1", preprocessing=Bins(2), half_life=half_life)
        learner = model.fit(X, y)._learner
        sample = learner.stored["expansion.sample"][:, 0]
        assert len(set(sample.tolist())) > 400
        assert abs(np.median(sample) - middle) < 0.05 * 20_000
        assert learner.stored["expansion.edges"][0, 0] == pytest.approx(middle, rel=0.3)


# ---- what they make learnable --------------------------------------------------------------------


def test_steps_of_one_input_are_learnt_by_bins_alone():
    X = np.random.default_rng(0).integers(0, 10, (1000, 1))
    y = X[:, 0] % 2
    errors = {
        part: progressive_validate(
            OnlineClassifier("multi", update="pa1", preprocessing=part), X, y
        ).error
        for part in (ZScores(), Bins(10))
    }
    assert errors[Bins(10)] < 0.1 < 0.4 < errors[ZScores()]


@pytest.mark.parametrize("part", [Pairs(2), RandomFourier(100)], ids=repr)
def test_exclusive_or_is_learnt(part):
    X = np.random.default_rng(1).integers(0, 2, (600, 2))
    y = X[:, 0] ^ X[:, 1]
    model = OnlineClassifier("multi", update="pa1", preprocessing=part)
    assert progressive_validate(model, X, y).error < 0.1


def test_products_of_random_features_approximate_the_kernel():
    """Rahimi and Recht (2007), Claim 1: an error of order 1 / sqrt(D)."""
    z = np.random.default_rng(2).standard_normal((20, 3))
    part = RandomFourier(20_000, bandwidth=0.5)
    omega, phases = part.draw(3)
    squared = 0.5 * 2 * 3.0  # bandwidth times the mean squared distance of such rows
    features = np.sqrt(2 / 20_000) * np.cos(z @ omega / np.sqrt(squared) + phases)
    distances = ((z[:, None] - z) ** 2).sum(axis=2)
    np.testing.assert_allclose(features @ features.T, np.exp(-distances / 2 / squared), atol=0.03)


def test_pairs_within_the_budget_are_different_and_drawn_by_the_seed():
    for n_inputs, n_pairs in ((5, 10), (30, 400), (40, 400), (5000, 400)):
        pairs = Pairs(n_pairs=n_pairs).pairs_of(n_inputs)
        assert pairs.shape == (min(n_pairs, n_inputs * (n_inputs - 1) // 2), 2)
        assert (pairs[:, 0] < pairs[:, 1]).all() and pairs.max() < n_inputs
        assert len({tuple(pair) for pair in pairs.tolist()}) == len(pairs)
    one, other = (Pairs(n_pairs=9, seed=seed).pairs_of(20).tolist() for seed in (0, 1))
    assert one != other


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Bins(1), "n_bins must be an integer of 2 or more"),
        (lambda: Bins(2.5), "n_bins must be an integer"),
        (lambda: RandomFourier(0), "n_features must be an integer of 1 or more"),
        (lambda: RandomFourier(bandwidth=0), "finite number above 0"),
        (lambda: RandomFourier(bandwidth="wide"), "finite number above 0"),
        (lambda: RandomFourier(seed=-1), "seed must be an integer"),
        (lambda: Pairs(n_pairs=True), "n_pairs must be an integer"),
        (lambda: Concatenated(()), "at least one block"),
        (lambda: Concatenated((Bins(), Bins(3))), "at most one of each class"),
        (lambda: Concatenated(("counts",)), "a list holds blocks of features"),
        (lambda: Concatenated((Concatenated((Bins(),)),)), "a list holds blocks of features"),
        (lambda: Concatenated((None,)), "a list holds blocks of features"),
        (lambda: SecondOrder(0), "ridge must be a finite number above 0"),
    ],
)
def test_parts_out_of_their_range_are_refused(make, words):
    with pytest.raises(KeslerError, match=words):
        make()


def test_sparse_rows_are_refused_and_nothing_is_learnt():
    stream = make_stream(7)
    model = made("all").fit(stream.X, stream.y)
    before = held(model)
    for rows in (sparse.csr_array(stream.X), [{"a": 1.0}] * len(stream.y)):
        with pytest.raises((KeslerError, ValueError)):
            model.partial_fit(rows, stream.y)
    with pytest.raises(KeslerError):
        model.learn_one({"a": 1.0}, 0)
    with pytest.raises(KeslerError, match="zeros are not listed"):
        made("all").fit(sparse.csr_array(stream.X), stream.y)
    assert held(model) == before


@pytest.mark.parametrize("name", ["all", "default"])
def test_what_is_refused_leaves_the_statistics_of_inputs_as_they_were(name):
    stream = make_stream(8)
    model = made(name).fit(stream.X, stream.y)
    before = held(model)
    with pytest.raises(KeslerError, match="cannot be ordered"):
        model.partial_fit(stream.X[:3], ["a", 1, "b"])
    with pytest.raises(KeslerError, match="cannot be ordered"):
        model.learn_one(stream.X[0], "a")
    with pytest.raises((KeslerError, ValueError)):
        model.partial_fit(np.full_like(stream.X[:2], np.inf), stream.y[:2])
    with pytest.raises((KeslerError, ValueError)):
        model.learn_one(stream.X[0][:-1], 0)
    assert held(model) == before


@update_rule(requires="norms")
def fails_on_heavy_rows(parameters, weight, losses, squared_norms, gram, steps):
    steps[10**9 if weight > 100 else 0] = losses[0] / (squared_norms[0] + 1.0)


def test_a_function_that_fails_leaves_the_statistics_of_the_rows_that_were_learnt():
    stream = make_stream(9, n_rows=30)
    model = OnlineClassifier("multi", update=fails_on_heavy_rows, preprocessing=ALL)
    model.partial_fit(stream.X, stream.y)
    expected = pickle.loads(pickle.dumps(model)).partial_fit(stream.X[:20], stream.y[:20])
    heavy = np.ones(30)
    heavy[20:] = 200.0
    with pytest.raises(KeslerError, match="fails_on_heavy_rows failed"):
        model.partial_fit(stream.X, stream.y, sample_weight=heavy)
    n_learnt = model.n_trials_ - 30
    assert 20 <= n_learnt < 30  # rows without a loss are not asked about
    assert model._learner.stored["expansion.seen"]["n_rows"][0] == model.n_trials_
    if n_learnt == 20:
        for name, array in expected._learner.arrays().items():
            if name.startswith("expansion."):
                assert_array_equal(model._learner.arrays()[name], array)


def test_a_file_with_other_inputs_is_refused(tmp_path):
    stream = make_stream(10)
    path = tmp_path / "model"
    made("random-fourier").fit(stream.X, stream.y).save(path)
    arrays, metadata = model_file.load(path)
    (contents,) = metadata["learners"]
    for n_inputs in (0, contents["n_inputs"] + 1, 2**31 - 1):
        learners = [contents | {"n_inputs": n_inputs}]
        model_file.save(path, arrays, metadata | {"learners": learners})
        with pytest.raises(KeslerError):
            load(path)


def test_second_order_refuses_what_has_no_single_matrix():
    stream = make_stream(11)
    for settings_, words in (
        ({"hypotheses": "hybrid"}, "one matrix for the features of x"),
        ({"link": "exponential"}, "quadratic form"),
        ({"kernel": "rbf"}, "over a kernel there are no"),
    ):
        model = OnlineClassifier(
            **{
                "hypotheses": "multi",
                "update": "pa1",
                "preconditioner": "second-order",
                **settings_,
            }
        )
        with pytest.raises(KeslerError, match=words):
            model.fit(stream.X, stream.y)
    with pytest.raises(KeslerError, match="not zero at zero"):
        OnlineClassifier("multi", update="pa1", preconditioner="second-order").fit(
            sparse.csr_array(stream.X), stream.y
        )

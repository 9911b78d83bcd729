"""Laws of uncertainty: it is learnt with the rows, saved with them, and changes no prediction."""

from __future__ import annotations

import copy
import pickle
import time
from itertools import pairwise
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from faulty import KINDS, LATE, TRIGGER
from kesler import NEW, Ensemble, KeslerError, OnlineClassifier, OnlineOrdinalClassifier, load
from kesler.learner import observing
from test_interrupts import interrupted
from uncertain import (
    LEARNERS,
    OF_CLASSES,
    OFF,
    WITH_MEMORY,
    all_but_estimates,
    estimates,
    everything_said,
    learn_rows,
    said_of_one,
    stream_of,
)

every_learner = pytest.mark.parametrize("name", LEARNERS)


def assert_same(one: Any, other: Any, name: str, X: Any) -> None:
    """Require the same state, bit for bit, and that the same is said."""
    assert estimates(one) == estimates(other)
    assert all_but_estimates(one) == all_but_estimates(other)
    assert everything_said(one, name, X[:20]) == everything_said(other, name, X[:20])


# ---- rows and batches ---------------------------------------------------------------------------


@settings(max_examples=4)
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 120), max_size=5),
    most=st.sampled_from([1 << 20, 100]),
)
@every_learner
def test_any_split_of_a_stream_teaches_the_same(name, seed, cuts, most, tmp_path_factory):
    X, y = stream_of(name, seed)
    whole, pieces, events = (LEARNERS[name]() for _ in range(3))
    whole.partial_fit(X, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(observing, "MOST_SCORES", most)
        for start, end in pairwise(sorted({0, *cuts, len(y)})):
            pieces.partial_fit(X[start:end], y[start:end])
    learn_rows(events, X, y)
    folder = tmp_path_factory.mktemp("models")
    for i, model in enumerate((whole, pieces, events)):
        model.save(folder / str(i))
    first, *others = [(folder / str(i)).read_bytes() for i in range(3)]
    for other, learnt in zip(others, (pieces, events), strict=True):
        assert_same(whole, learnt, name, X)
        assert other == first


@pytest.mark.parametrize("name", ["majority", "best", "full"])
def test_members_in_threads_teach_the_same(name):
    X, y = stream_of(name, 3, n_rows=1100)
    whole = LEARNERS[name]().partial_fit(X, y)
    pieces = LEARNERS[name]()
    for start in range(0, 1100, 100):
        pieces.partial_fit(X[start : start + 100], y[start : start + 100])
    assert_same(whole, pieces, name, X)


@every_learner
def test_rows_in_blocks_and_alone_have_the_same_said_of_them(name):
    X, y = stream_of(name, 4)
    model = LEARNERS[name]().fit(X, y)
    together = everything_said(model, name, X[:6])
    if "new" in together:  # `classes_` is sorted, and keys are in the order of first rows
        columns = [*model.classes_.tolist(), NEW]
        assert len(columns) == len(together["new"][0])
    for i, x in enumerate(X[:6]):
        expected = {what: found[i : i + 1] for what, found in together.items()}
        assert everything_said(model, name, X[i : i + 1]) == expected
        # The sets of `predict_set_one` are those of the next row of the stream.
        alone = said_of_one(model, name, x)
        of_next = {what for what in alone if what.startswith(("set", "never", "by class"))}
        assert {w: alone[w] for w in alone if w not in of_next} == {
            w: expected[w] for w in expected if w not in of_next
        }


@every_learner
def test_what_is_asked_changes_nothing(name):
    X, y = stream_of(name, 5)
    model = LEARNERS[name]().fit(X, y)
    before = estimates(model), all_but_estimates(model), sorted(vars(model))
    everything_said(model, name, X)
    said_of_one(model, name, X[0])
    assert before == (estimates(model), all_but_estimates(model), sorted(vars(model)))


@every_learner
def test_rows_of_weight_0_are_skipped_and_other_weights_do_not_count(name):
    X, y = stream_of(name, 6, 60)
    weights = np.tile([0.0, 0.5, 2.0], 20)
    kept = [i for i in range(60) if weights[i]]
    weighted, plain, all_ones = (LEARNERS[name]() for _ in range(3))
    weighted.partial_fit(X, y, sample_weight=weights)
    plain.partial_fit([X[i] for i in kept], [y[i] for i in kept], sample_weight=weights[kept])
    all_ones.partial_fit([X[i] for i in kept], [y[i] for i in kept])
    assert estimates(weighted) == estimates(plain)  # names of skipped rows are known
    assert everything_said(weighted, name, X) == everything_said(plain, name, X)
    if name != "labels":
        counts = "uncertainty.arrivals.n_rows"
        assert estimates(weighted)[counts] == estimates(all_ones)[counts]


@pytest.mark.parametrize("name", [n for n in OF_CLASSES if n not in ("majority", "best")])
def test_only_the_first_pass_is_observed(name):
    X, y = stream_of(name, 7, 60)
    model = LEARNERS[name]().set_params(epochs=3).fit(X, y)
    once = LEARNERS[name]().fit(X, y)
    assert estimates(model) == estimates(once)
    assert model._learner.uncertainty.stored["arrivals.counts"]["n_rows"] == 60
    for each in (model, once):
        each.partial_fit(X, y)  # the rows of a stream are new ones
        assert each._learner.uncertainty.stored["arrivals.counts"]["n_rows"] == 120


def test_more_passes_leave_the_probability_of_new_classes():
    generator = np.random.default_rng(3)
    y = generator.permutation(np.concatenate([np.arange(60), generator.integers(0, 60, 60)]))
    X = [{f"of{c}.{i}": 1.0 for i in generator.integers(0, 8, 4)} for c in y]
    found = [
        OnlineClassifier(epochs=n).fit(X, y.tolist()).predict_proba([{"?": 1.0}], new=True)[0, -1]
        for n in (1, 4)
    ]
    assert found[0] > 0.3
    np.testing.assert_allclose(found[1], found[0], atol=0.01)


# ---- copies and files ---------------------------------------------------------------------------


def copies_of(model: Any, folder: Any) -> dict[str, Any]:
    """Return copies of a model, made in all ways."""
    model.save(folder / "model")
    joblib.dump(model, folder / "joblib")
    return {
        "file": load(folder / "model"),
        "deepcopy": copy.deepcopy(model),
        "pickle": pickle.loads(pickle.dumps(model)),
        "joblib": joblib.load(folder / "joblib"),
        "memory map": joblib.load(folder / "joblib", mmap_mode="r"),
    }


@every_learner
def test_copies_go_on_as_the_model_does(name, tmp_path):
    X, y = stream_of(name, 8)
    model = LEARNERS[name]().partial_fit(X[:50], y[:50])
    copies = copies_of(model, tmp_path)
    before = estimates(model)
    for other in copies.values():
        assert_same(model, other, name, X)
        other.partial_fit(X[50:80], y[50:80])
        learn_rows(other, X[80:], y[80:])
    assert estimates(model) == before  # they share nothing
    model.partial_fit(X[50:], y[50:])
    for other in copies.values():
        assert_same(model, other, name, X)


@pytest.mark.parametrize("use", ["auto", True, "full", False])
def test_a_file_says_whether_uncertainty_is_estimated(use, tmp_path):
    X, y = stream_of("default", 8, 40)
    model = OnlineClassifier(uncertainty=use).fit(X, y)
    model.save(tmp_path / "model")
    found = load(tmp_path / "model")
    assert found.uncertainty == use
    assert found.resolved_.uncertainty == (True if use == "auto" else use)
    assert (found._learner.uncertainty is None) == (use is False)


# ---- predictions --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OFF)
def test_weights_and_predictions_are_those_without_estimates(name):
    X, y = stream_of(name, 10)
    learners = [LEARNERS[name](), OFF[name]()]
    for model in learners:
        model.partial_fit(X[:60], y[:60])
        learn_rows(model, X[60:], y[60:])
    one, other = learners
    assert all_but_estimates(one) == all_but_estimates(other) and not estimates(other)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert [*map(tuple, np.atleast_2d(one.predict(X)))] == [
        *map(tuple, np.atleast_2d(other.predict(X)))
    ]


@pytest.mark.parametrize("name", OF_CLASSES)
def test_answers_are_the_predictions_that_are_sure_enough(name):
    X, y = stream_of(name, 13)
    model = OF_CLASSES[name]().fit(X, y)
    confidence, plain = model.confidence(X), model.predict(X).tolist()
    for least in (0, 0.3, float(np.median(confidence)), 1):
        expected = [p if c >= least else None for p, c in zip(plain, confidence, strict=True)]
        assert model.predict(X, min_confidence=least).tolist() == expected
        assert [model.predict_one(x, min_confidence=least) for x in X] == expected


@pytest.mark.parametrize("name", OF_CLASSES)
def test_probabilities_of_known_classes_are_multiplied_by_that_of_no_new_one(name):
    X, y = stream_of(name, 14)
    model = OF_CLASSES[name]().fit(X, y)
    p = model.predict_proba(X, new=True)
    np.testing.assert_allclose(p[:, :-1], (1 - p[:, -1:]) * model.predict_proba(X), rtol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-6)
    assert ((p[:, -1] > 0) & (p[:, -1] < 1)).all()


# ---- labels and rows ----------------------------------------------------------------------------


def renamed(said: Any, names: dict[Any, Any]) -> Any:
    if isinstance(said, list):
        return [renamed(each, names) for each in said]
    return names.get(said, said) if type(said) is int else said


@every_learner
def test_other_labels_change_names_only(name):
    X, y = stream_of(name, 15)
    names = {i: f"c{i:02}" for i in range(20)}
    plain = LEARNERS[name]().fit(X, y)
    named = LEARNERS[name]().fit(X, [renamed(target, names) for target in y])
    assert estimates(plain) == estimates(named)
    said, expected = everything_said(named, name, X), everything_said(plain, name, X)
    assert said == {what: renamed(found, names) for what, found in expected.items()}


def test_labels_may_be_tuples():
    X, y = stream_of("pa1", 16)
    model = learn_rows(OF_CLASSES["pa1"](), X, [("c", each) for each in y])
    assert model.predict(X, min_confidence=0).tolist() == model.predict(X).tolist()
    assert model.predict_one(X[0], min_confidence=0.0) == model.predict_one(X[0])
    assert model.predict_one(X[0], min_confidence=1.0) is None
    assert {type(each) for each in model.predict_set_one(X[0], 0.99)} <= {tuple, type(NEW)}


@pytest.mark.parametrize("name", OF_CLASSES)
def test_declared_classes_change_nothing(name):
    X, y = stream_of(name, 17)
    plain = OF_CLASSES[name]().partial_fit(X, y)
    declared = OF_CLASSES[name]().partial_fit(X, y, classes=[*range(60)])
    assert estimates(plain) == estimates(declared)
    assert plain.predict_set(X) == declared.predict_set(X)
    assert plain.confidence(X).tolist() == declared.confidence(X).tolist()
    p, expected = declared.predict_proba(X, new=True), plain.predict_proba(X, new=True)
    seen = plain.classes_
    np.testing.assert_array_equal(p[:, [*seen, -1]], expected)
    assert p.shape[1] == 61 and p[:, -1].all()
    assert (np.delete(p[:, :-1], seen, axis=1) == 0).all()
    found = declared.predict_proba_one(X[0], new=True)
    assert len(found) == 61 and found[59] == 0 and found[NEW] == p[0, -1]


@pytest.mark.parametrize("name", ["pa1", "full pa1"])
def test_sparse_rows_of_the_same_values_have_the_same_said_of_them(name):
    X, y = stream_of(name, 18)
    X = np.where(X > 0, X, 0.0)
    dense, mixed = OF_CLASSES[name](), OF_CLASSES[name]()
    dense.partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    mixed.partial_fit(X[:20], y[:20]).partial_fit(sparse.csr_array(X[20:]), y[20:])
    assert estimates(dense) == estimates(mixed)
    said = everything_said(mixed, name, sparse.csr_array(X))
    assert said == everything_said(dense, name, X)


def test_rows_that_list_non_zeros_are_not_remembered():
    X, y = stream_of("text", 19)
    full, plain = OnlineClassifier(uncertainty="full").fit(X, y), OnlineClassifier().fit(X, y)
    assert estimates(full) == estimates(plain)


@pytest.mark.parametrize("combine", ["fixed-share", "mixture", "best", "majority"])
def test_an_ensemble_of_one_learner_has_its_evidence(combine):
    X, y = stream_of("pa1", 20)
    one = OF_CLASSES["pa1"]().partial_fit(X, y)
    other = Ensemble([OnlineClassifier("multi", update="pa1")], combine).partial_fit(X, y)
    for name in ("spread", "arrivals.priors", "new_class"):
        found, expected = (m._learner.uncertainty.stored[name] for m in (other, one))
        np.testing.assert_array_equal(found, expected)


# ---- errors on the way --------------------------------------------------------------------------

ROWS = np.random.default_rng(5).normal(size=(40, 4))
LABELS = np.abs(ROWS[:, :3]).argmax(axis=1).tolist()
HOSTILE = np.array([TRIGGER, 1.0, -TRIGGER, 1.0])
LATE_PARTS = [(part, kind) for part, kind in LATE if kind != "algorithm"]


@pytest.mark.parametrize("use", [True, "full"])
@pytest.mark.parametrize(
    ("part", "kind"), LATE_PARTS, ids=lambda each: getattr(each, "field", each)
)
def test_rows_from_a_fault_on_are_not_observed(part, kind, use, tmp_path):
    model = KINDS[kind].estimator(part).set_params(uncertainty=use).fit(ROWS, LABELS)
    expected = copy.deepcopy(model).partial_fit(ROWS[:2], LABELS[:2])
    try:
        wrong = next(label for label in range(3) if label != model.predict_one(HOSTILE))
    except KeslerError:  # of maps and kernels
        wrong = 0
    rows = np.vstack([ROWS[:2], HOSTILE[None], ROWS[2:4]])
    for learn in (
        lambda: model.partial_fit(rows, [*LABELS[:2], wrong, 2, 9]),
        lambda: model.learn_one(HOSTILE, wrong),
    ):
        with pytest.raises(KeslerError, match="failed on a row"):
            learn()
        assert estimates(model) == estimates(expected)
        assert all(len(said) <= 4 for said in model.predict_set(ROWS, 0.99, by_class=True))
        assert model.predict_proba(ROWS, new=True).shape == (40, 4)
    model.save(tmp_path / "model")
    assert estimates(load(tmp_path / "model", custom=[part])) == estimates(model)


@pytest.mark.parametrize("make", [OnlineClassifier, OnlineOrdinalClassifier])
def test_rows_whose_steps_are_skipped_are_observed(make):
    settings = {"update": "perceptron", "uncertainty": True}
    start = make(**settings).fit(ROWS, LABELS)
    X, y = [*ROWS[:5], *[[3e38, 0, 0, 0]] * 3, *ROWS[5:]], [*LABELS[:5], 0, 1, 2, *LABELS[5:]]
    whole, events, n_refused = copy.deepcopy(start), copy.deepcopy(start), 0
    with pytest.raises(KeslerError, match="skipped"):
        whole.partial_fit(X, y)
    for x, target in zip(X, y, strict=True):
        try:
            events.learn_one(x, target)
        except KeslerError:
            n_refused += 1
    assert n_refused and whole.n_trials_ == events.n_trials_ == 83
    assert estimates(whole) == estimates(events)
    assert np.isfinite(whole.predict_proba(ROWS, new=True)).all()


@pytest.mark.parametrize("name", ["default", "full pa1", "ranks"])
def test_an_interrupt_leaves_estimates_of_the_rows_learnt(name):
    X, y = stream_of(name, 21, 20_000)
    whole, n_ended = LEARNERS[name]().partial_fit(X[:200], y[:200]), 0  # compiled before
    began = time.perf_counter()
    whole.partial_fit(X, y)
    duration = time.perf_counter() - began
    for share in (0.05, 0.1, 0.3, 0.6, 0.02, 0.01, 0.005, 0.002):
        if share < 0.05 and n_ended:  # the smallest are for runs that are faster than the first
            break
        model = LEARNERS[name]().partial_fit(X[:1], y[:1])
        interrupted(lambda m=model: m.partial_fit(X[1:], y[1:]), share * duration)
        n = model.n_trials_
        expected = LEARNERS[name]().partial_fit(X[:n], y[:n])
        assert estimates(model) == estimates(expected)
        n_ended += n < len(y)
    assert n_ended


@pytest.mark.parametrize("name", sorted(WITH_MEMORY))
def test_extreme_values_leave_finite_answers(name):
    X, y = stream_of(name, 22)
    model = OF_CLASSES[name]().fit(X, y)
    hostile = np.array([[1e30] * 5, [-1e-30] * 5, [1e18, -1e18, 0, 0, 0], [0.0] * 5])
    for x in (*hostile, *hostile):
        try:
            model.learn_one(x, 1)
        except KeslerError:
            continue
    for x in (*hostile, *X[:5]):
        try:
            p = model.predict_proba_one(x, new=True)
        except KeslerError:
            continue
        assert np.isfinite([*p.values()]).all() and 0 <= model.confidence_one(x) <= 1
    assert all(np.isfinite(a).all() for a in model._learner.uncertainty.arrays().values())

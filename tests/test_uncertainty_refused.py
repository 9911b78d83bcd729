"""Uncertainty: bad arguments and damaged files are refused with a sentence, and change nothing."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from kesler import (
    NEW,
    Ensemble,
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    load,
    progressive_validate,
)
from kesler.data import model_file
from test_laws import assert_sentence
from uncertain import LEARNERS, OF_CLASSES, estimates, everything_said, learn_rows, stream_of

X, Y = stream_of("pa1", 1, 60)
FITTED = OF_CLASSES["full pa1"]().fit(X, Y)

# ---- arguments ----------------------------------------------------------------------------------

NOT_BETWEEN = [-0.1, 1.5, np.nan, np.inf, True, False, np.True_, "0.9", None, [0.9], 10**400, 1j]


def refused(call: Any, match: str, kind: type[Exception] = KeslerError) -> None:
    """Require a sentence, and that the fitted model is as it was."""
    before, names = estimates(FITTED), sorted(vars(FITTED))
    with pytest.raises(kind, match=match) as caught:
        call()
    assert_sentence(caught.value)
    assert estimates(FITTED) == before and sorted(vars(FITTED)) == names


@pytest.mark.parametrize("coverage", [0, 1, 0.0, 0.79, 1.0, *NOT_BETWEEN], ids=repr)
def test_coverages_are_numbers_from_the_smallest_that_is_tracked_to_below_1(coverage):
    match = "coverage=.* must be a finite number of 0.8 or more and below 1"
    refused(lambda: FITTED.predict_set(X, coverage), match)
    refused(lambda: FITTED.predict_set_one(X[0], coverage), match)


@pytest.mark.parametrize("least", [each for each in NOT_BETWEEN if each is not None], ids=repr)
def test_least_confidences_are_numbers_from_0_to_1(least):
    match = "min_confidence=.* must be a finite number from 0 to 1"
    refused(lambda: FITTED.predict(X, min_confidence=least), match)
    refused(lambda: FITTED.predict_one(X[0], min_confidence=least), match)


def test_numbers_of_numpy_are_numbers():
    assert FITTED.predict_set(X, np.float32(0.875)) == FITTED.predict_set(X, 0.875)
    least = np.float64(0.5)
    assert FITTED.predict(X, min_confidence=least).tolist() == (
        FITTED.predict(X, min_confidence=0.5).tolist()
    )


@pytest.mark.parametrize("use", ["maybe", "AUTO", 1, 0, None, [], "true"], ids=repr)
@pytest.mark.parametrize(
    "kind",
    [OnlineClassifier, OnlineOrdinalClassifier, OnlineMultilabelClassifier, Ensemble],
    ids=lambda kind: kind.__name__,
)
def test_other_uses_are_unknown(kind, use):
    model, y = kind(uncertainty=use), Y
    if kind is OnlineMultilabelClassifier:
        y = [[each] for each in Y]
    refused(lambda: model.fit(X, y), "uncertainty=.* is unknown")
    assert model._learner is None
    refused(lambda: model.learn_one(X[0], y[0]), "uncertainty=.* is unknown")
    assert model._learner is None


def test_estimators_keep_their_parameter():
    for use in ("auto", True, "full", False):
        model = clone(OnlineClassifier(uncertainty=use))
        assert model.get_params()["uncertainty"] is use
        assert (f"uncertainty={use!r}" in repr(model)) == (use != "auto")


CALLS = {
    "predict_set": lambda m: m.predict_set(X),
    "predict_set_one": lambda m: m.predict_set_one(X[0]),
    "confidence": lambda m: m.confidence(X),
    "confidence_one": lambda m: m.confidence_one(X[0]),
    "predict_proba": lambda m: m.predict_proba(X, new=True),
    "predict_proba_one": lambda m: m.predict_proba_one(X[0], new=True),
    "predict": lambda m: m.predict(X, min_confidence=0.5),
    "predict_one": lambda m: m.predict_one(X[0], min_confidence=0.5),
}
every_call = pytest.mark.parametrize("call", CALLS)


@every_call
def test_learners_that_have_not_learnt_say_so(call):
    for model in (
        OnlineClassifier(),
        OnlineClassifier(uncertainty="full"),
        OnlineOrdinalClassifier(),
        Ensemble(),
        OnlineClassifier(update="pa1"),
    ):
        refused(lambda m=model: CALLS[call](m), "not fitted yet", NotFittedError)
        assert model._learner is None


@every_call
@pytest.mark.parametrize(
    ("model", "match"),
    [
        (OnlineClassifier(update="pa1"), "create it with uncertainty=True"),
        (OnlineClassifier("multi", update="pa1"), "create it with uncertainty=True"),
        (OnlineClassifier(uncertainty=False), "create it with uncertainty=True"),
        (OnlineOrdinalClassifier(update="simproj"), "create it with uncertainty=True"),
        (LinearMax(), "use a classifier that does"),
    ],
    ids=str,
)
def test_learners_without_estimates_say_so(model, match, call):
    fitted = clone(model).fit(X, Y)
    before = copy.deepcopy(fitted._learner.arrays())
    refused(lambda: CALLS[call](fitted), match)
    after = fitted._learner.arrays()
    assert {n: a.tobytes() for n, a in after.items()} == {n: a.tobytes() for n, a in before.items()}
    assert progressive_validate(clone(model), X, Y).uncertainty is None


def test_estimates_are_on_unless_a_rule_is_named():
    for model in (
        OnlineClassifier(),
        OnlineClassifier("multi"),
        OnlineClassifier(kernel="rbf"),
        OnlineClassifier(update="ensemble"),
        OnlineClassifier(update=[OnlineClassifier("multi", update="pa1")]),
        Ensemble(),
        OnlineOrdinalClassifier(),
    ):
        assert model.fit(X, Y)._learner.uncertainty is not None
    for model in (OnlineClassifier("multi", update="pa1"), OnlineOrdinalClassifier(update="pa1")):
        assert model.fit(X, Y)._learner.uncertainty is None


def test_members_of_an_ensemble_have_no_estimates_of_their_own():
    model = Ensemble([OnlineClassifier(uncertainty="full"), OnlineClassifier()]).fit(X, Y)
    assert all(member.uncertainty is None for member in model._learner.members)
    assert not model._learner.uncertainty.remembers


def test_ranks_and_labels_have_no_thresholds_by_class():
    ranks = OnlineOrdinalClassifier().fit(X, Y)
    labels = OnlineMultilabelClassifier().fit(X, [[each] for each in Y])
    for model in (ranks, labels):
        refused(lambda m=model: m.predict_set(X, by_class=True), "by_class=True gives each class")
        refused(lambda m=model: m.predict_set_one(X[0], by_class=True), "by_class=True")
    refused(lambda: labels.confidence(X), "predicts several labels")
    refused(lambda: labels.confidence_one(X[0]), "predicts several labels")


def test_rankings_have_no_probability():
    ranker = OnlineLabelRanker().fit(X, [[1, 2, 3]] * len(X))
    refused(lambda: ranker.confidence(X), "rankings")
    refused(lambda: ranker.confidence_one(X[0]), "rankings")
    refused(lambda: ranker.predict_set(X), "does not estimate its uncertainty")


def test_rows_that_are_not_read_are_refused_as_in_predict():
    for ask in (FITTED.predict_set, FITTED.confidence, lambda rows: FITTED.predict(rows, 0.5)):
        refused(lambda a=ask: a(np.full((1, 5), np.nan)), "NaN")
        with pytest.raises(ValueError, match="5 features"):
            ask(np.zeros((1, 3)))
    refused(lambda: FITTED.confidence_one(X[0][:3]), "5 features")


def test_untracked_coverages_of_a_trace_are_refused():
    trace = progressive_validate(OnlineClassifier(), X, Y).uncertainty
    for ask in (trace.covered, trace.sizes):
        refused(lambda a=ask: a(0.85), "was not tracked")


# ---- NEW ----------------------------------------------------------------------------------------


def test_new_is_one_object():
    for other in (
        copy.copy(NEW),
        copy.deepcopy([NEW])[0],
        *(pickle.loads(pickle.dumps(NEW, protocol)) for protocol in range(6)),
    ):
        assert other is NEW
    assert pickle.loads(pickle.dumps({NEW: 1}))[NEW] == 1
    assert (repr(NEW), str(NEW)) == ("kesler.NEW", "(new)")


@pytest.mark.parametrize("name", LEARNERS)
def test_new_is_not_learnt(name):
    rows, y = stream_of(name, 2, 30)
    new = [NEW] if name == "labels" else NEW
    model = LEARNERS[name]()
    refused(lambda: model.learn_one(rows[0], new), "stands for a class that has not been seen")
    model.fit(rows, y)
    before = estimates(model)
    mixed = np.array([*y[:2], new], dtype=object) if name != "labels" else [*y[:2], new]
    for call in (
        lambda: model.learn_one(rows[0], new),
        lambda: model.partial_fit(rows[:3], mixed),
    ):
        refused(call, "stands for a class that has not been seen")
    assert estimates(model) == before and NEW not in model.classes_.tolist()


def test_new_is_not_declared():
    refused(lambda: OnlineClassifier().partial_fit(X, Y, classes=[*range(20), NEW]), "stands for")
    order = [*range(13), NEW]
    refused(lambda: OnlineOrdinalClassifier(order=order).fit(X, Y), "stands for")


# ---- files --------------------------------------------------------------------------------------


def contents_of(model: Any, folder: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    model.save(folder / "model")
    return model_file.load(folder / "model")


def loaded(arrays: dict[str, Any], metadata: dict[str, Any], folder: Any) -> Any:
    model_file.save(folder / "changed", arrays, metadata)
    return load(folder / "changed")


def of_uncertainty(arrays: dict[str, Any]) -> list[str]:
    return [name for name in arrays if name.startswith("uncertainty.")]


FILES = ["text", "default", "full pa1", "ranks", "labels"]


@pytest.mark.parametrize("name", FILES)
def test_arrays_that_are_missing_or_of_another_kind_are_refused(name, tmp_path):
    rows, y = stream_of(name, 3, 60)
    arrays, metadata = contents_of(LEARNERS[name]().fit(rows, y), tmp_path)
    assert of_uncertainty(arrays)
    for array in of_uncertainty(arrays):
        own = arrays[array]
        others = [
            None,
            own.astype(np.float32 if own.dtype != np.float32 else np.float64),
            np.concatenate([own, own]),
            own[:-1],
            own.reshape(-1, 1, 1),
        ]
        if own.dtype.kind == "f":
            others += [with_first(own, value) for value in (np.nan, np.inf, -np.inf)]
        for other in others:
            changed = {n: a for n, a in arrays.items() if n != array}
            if other is not None:
                changed[array] = other
            with pytest.raises(KeslerError, match=array.replace(".", r"\.")) as caught:
                loaded(changed, metadata, tmp_path)
            assert_sentence(caught.value)


def with_first(array: Any, value: float) -> Any:
    array = array.copy()
    array.reshape(-1)[0] = value
    return array


OUT_OF_RANGE = {
    "arrivals.counts": [-1.0],
    "arrivals.priors": [-0.1, 2.0],
    "arrivals.decayed": [-1.0],
    "arrivals.n_rows": [-1.0],
    "mixed": [-0.1, 2.0],
    "spread": [-1.0],
    "memory.counts": [-1, 61, 2**62 + 1],
    "memory.codes": [-1, 99],
}


@pytest.mark.parametrize(
    ("array", "value"), [(name, v) for name, values in OUT_OF_RANGE.items() for v in values]
)
def test_values_out_of_range_are_refused(array, value, tmp_path):
    arrays, metadata = contents_of(FITTED, tmp_path)
    name = f"uncertainty.{array}"
    with pytest.raises(KeslerError, match="the file is damaged"):
        loaded(arrays | {name: with_first(arrays[name], value)}, metadata, tmp_path)


def test_weights_of_estimates_sum_to_1_and_squares_are_not_negative(tmp_path):
    arrays, metadata = contents_of(FITTED, tmp_path)
    for name in ("arrivals.priors", "mixed"):
        changed = arrays | {f"uncertainty.{name}": 0 * arrays[f"uncertainty.{name}"]}
        with pytest.raises(KeslerError, match="do not sum to 1"):
            loaded(changed, metadata, tmp_path)
    for name, at in (("spread", (0, 1, 2)), ("memory.moments", (3, 1))):
        array = arrays[f"uncertainty.{name}"].copy()
        array[at] = -1.0
        with pytest.raises(KeslerError, match="below 0"):
            loaded(arrays | {f"uncertainty.{name}": array}, metadata, tmp_path)


@pytest.mark.parametrize("n_inputs", [0, 2, 4, 6, 400, 10**6, 2**31 - 1, 10**12, -1, True, None])
@pytest.mark.parametrize("fits", [True, False])
def test_memories_of_rows_of_another_width_are_refused(n_inputs, fits, tmp_path):
    arrays, metadata = contents_of(FITTED, tmp_path)
    metadata = json.loads(json.dumps(metadata))
    metadata["uncertainty"]["n_inputs"] = n_inputs
    if fits and n_inputs in (2, 4, 6, 400):  # otherwise compiled code would read beyond a row
        arrays["uncertainty.memory.rows"] = np.zeros((60, n_inputs), np.float32)
        arrays["uncertainty.memory.moments"] = np.ones((n_inputs, 2))
    with pytest.raises(KeslerError, match="the file is damaged"):
        loaded(arrays, metadata, tmp_path)


def test_descriptions_of_estimates_are_checked(tmp_path):
    arrays, metadata = contents_of(FITTED, tmp_path)
    for described in (1, [], {}, {"remembers": 1, "n_inputs": 5}, {"remembers": False}):
        with pytest.raises(KeslerError, match="the file is damaged"):
            loaded(arrays, metadata | {"uncertainty": described}, tmp_path)
    with pytest.raises(KeslerError, match="the file is damaged"):
        plain = {"remembers": False, "n_inputs": 5}
        loaded(arrays, metadata | {"uncertainty": plain}, tmp_path)
    model = LinearMax().fit(X, Y)
    arrays, metadata = contents_of(model, tmp_path)
    with pytest.raises(KeslerError, match="do not fit LinearMax"):
        loaded(arrays, metadata | {"uncertainty": {"remembers": False, "n_inputs": 0}}, tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_files_without_estimates_are_loaded(name, tmp_path):
    rows, y = stream_of(name, 4, 60)
    model = LEARNERS[name]().fit(rows, y)
    arrays, metadata = contents_of(model, tmp_path)
    metadata["uncertainty"] = None
    metadata["settings"]["parameters"]["uncertainty"] = False
    for array in of_uncertainty(arrays):
        del arrays[array]
    other = loaded(arrays, metadata, tmp_path)
    assert other.uncertainty is False and other._learner.uncertainty is None
    np.testing.assert_array_equal(other.decision_function(rows), model.decision_function(rows))
    with pytest.raises(KeslerError, match="create it with uncertainty=True"):
        other.predict_set(rows)
    other.partial_fit(rows, y)


@pytest.mark.parametrize("name", FILES)
def test_what_is_loaded_can_be_used(name, tmp_path):
    """Whatever finite values the arrays hold, nothing outside of them is read and answers end."""
    rows, y = stream_of(name, 5, 60)
    arrays, metadata = contents_of(LEARNERS[name]().fit(rows, y), tmp_path)
    rng, n_loaded = np.random.default_rng(6), 0
    values = [0.0, -1.0, 1.0, 1e-300, 1e30, -1e30, 1e308, 5e-324]
    for array in of_uncertainty(arrays) * 3:
        own = arrays[array].copy()
        flat, value = own.reshape(-1), values[rng.integers(len(values))]
        where = slice(None) if rng.random() < 0.3 else rng.integers(flat.size)
        with np.errstate(over="ignore"):
            flat[where] = value if own.dtype.kind == "f" else int(min(max(value, 0), 5))
        try:
            model = loaded(arrays | {array: own}, metadata, tmp_path)
        except KeslerError:
            continue
        n_loaded += 1
        with np.errstate(all="ignore"):
            everything_said(model, name, rows[:20])
            model.partial_fit(rows, y)
            learn_rows(model, rows[:5], y[:5])
            everything_said(model, name, rows[:20])
    assert n_loaded

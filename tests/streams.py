"""Random streams of rows, and what two learners must have in common to be the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from kesler import OnlineClassifier


@dataclass(frozen=True)
class Stream:
    """Rows whose values float32 holds, with class numbers in the order of their appearance."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    weights: NDArray[np.float64]
    origin: str = ""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show how to make it again: what hypothesis prints of a failing case."""
        printer.text(self.origin)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    def __getitem__(self, rows: slice) -> Stream:
        origin = f"{self.origin}[{rows.start}:{rows.stop}]"
        return Stream(self.X[rows], self.y[rows], self.weights[rows], origin)


def make_stream(
    seed: int,
    n_rows: int = 40,
    n_classes: int = 5,
    n_features: int = 7,
    *,
    density: float = 0.6,
    whole: bool = False,
) -> Stream:
    """Rows around a centre for each class; whole numbers up to 5, or continuous ones."""
    rng = np.random.default_rng(seed)
    y = in_order_of_appearance(rng.integers(n_classes, size=n_rows))
    centres = rng.normal(size=(n_classes, n_features))
    X = centres[y] + rng.normal(size=(n_rows, n_features))
    if whole:
        X = np.clip(np.rint(2 * X), -5, 5)
    X[rng.random(X.shape) > density] = 0
    # Halves, ones and twos add up exactly in float32, so that shares of rows can be compared.
    weights = rng.choice([0.5, 1.0, 2.0], size=n_rows)
    options = f"density={density}, whole={whole}"
    origin = f"make_stream({seed}, {n_rows}, {n_classes}, {n_features}, {options})"
    return Stream(X.astype(np.float32).astype(np.float64), y, weights, origin)


def in_order_of_appearance(y: NDArray[np.int64]) -> NDArray[np.int64]:
    _, first, inverse = np.unique(y, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


@st.composite
def streams(draw: Any, *, whole: bool = False, max_rows: int = 40) -> Stream:
    """Streams of 2 to 12 classes."""
    n_classes = draw(st.integers(2, 12))
    return make_stream(
        seed=draw(st.integers(0, 2**32 - 1)),
        n_rows=draw(st.integers(max_rows // 2, max_rows)),
        n_classes=n_classes,
        n_features=draw(st.integers(1, 20)),
        density=draw(st.sampled_from([0.3, 0.7, 1.0])),
        whole=whole,
    )


def run_trials(model: Any, X: Any, y: Any, sample_weight: Any = None) -> tuple[Any, Any]:
    """Learn from rows; return the codes predicted before each update, and those of the targets."""
    trials = model._run_trials(X, y, sample_weight)
    return trials.predictions, trials.codes


# ---- what was learnt ----------------------------------------------------------------------------


def of_words(model: Any) -> Any:
    """Return a learner that takes mappings of numbers for words, whose names come and go."""
    return model.set_params(columns=None) if "columns" in model.get_params() else model


def learnt(model: OnlineClassifier) -> dict[str, Any]:
    """Return all that a model has learnt: arrays as bytes, everything else as it is."""
    learner = model._learner
    learners = learner.members
    return {
        **{name: (a.shape, a.tobytes()) for name, a in learner.arrays().items()},
        "labels": list(learner.classes.labels),
        "types": [type(label) for label in learner.classes.labels],
        "groups": [[list(groups) for groups in each.groups] for each in learners],
        "memberships": [[list(map(list, p)) for p in each.memberships] for each in learners],
        "n_features": [each.n_features for each in learners],
        "names": None if model.vocabulary_ is None else model.vocabulary_.names,
        "width": getattr(model, "n_features_in_", None),
        "n_sub_experts": learner.n_sub_experts,
        "sub_experts": None if model.sub_experts_ is None else model.sub_experts_.names,
    }


def whole_arrays(learner: Any) -> dict[str, Any]:
    """Return all that was learnt, with weights as tables however they are stored."""
    arrays = learner.arrays()
    if learner.sparse is None:
        return arrays
    stored = {name: array for name, array in arrays.items() if not name.startswith("sparse.")}
    return stored | {"weights.values.0": learner.hypothesis_weights()[0].toarray()}


def everything(model: OnlineClassifier) -> dict[str, Any]:
    """Return what was learnt and the names of all attributes: what a refusal leaves unchanged."""
    found: dict[str, Any] = {"attributes": sorted(model.__dict__), "parameters": repr(model)}
    return found | (learnt(model) if model._learner is not None else {})


def assert_same_but_declared(plain: Any, declared: Any, probes: Any) -> None:
    """Require the same state and predictions, and empty columns for classes without rows."""
    assert learnt(plain) == learnt(declared)
    assert plain.n_mistakes_ == declared.n_mistakes_
    assert plain.predict(probes).tolist() == declared.predict(probes).tolist()
    columns = declared.classes_.tolist()
    seen = [columns.index(label) for label in plain.classes_.tolist()]
    unseen = sorted({*range(len(columns))} - {*seen})
    assert seen == sorted(seen) and len(unseen) > 1
    scores, probabilities = declared.decision_function(probes), declared.predict_proba(probes)
    assert (scores[:, unseen] == -np.inf).all() and (probabilities[:, unseen] == 0).all()
    np.testing.assert_array_equal(probabilities[:, seen], plain.predict_proba(probes))
    found, expected = scores[:, seen], plain.decision_function(probes)
    if len(seen) == 2:
        found = found[:, 1] - found[:, 0]
    np.testing.assert_array_equal(found, expected)


def assert_same(one: OnlineClassifier, other: OnlineClassifier, probes: Any) -> None:
    """Require that two models have the same state and predictions, bit for bit."""
    assert learnt(one) == learnt(other)
    assert one.n_mistakes_ == other.n_mistakes_
    assert one.classes_.tolist() == other.classes_.tolist()
    scores, others = one.decision_function(probes), other.decision_function(probes)
    np.testing.assert_array_equal(scores, others, strict=True)
    if hasattr(one, "predict_proba"):
        probabilities, others = one.predict_proba(probes), other.predict_proba(probes)
        np.testing.assert_array_equal(probabilities, others, strict=True)
    assert one.predict(probes).tolist() == other.predict(probes).tolist()


def held(model: Any) -> dict[str, Any]:
    """Return the shapes and bytes of all arrays of a learner or an ensemble."""
    return {name: (a.shape, a.tobytes()) for name, a in model._learner.arrays().items()}


def assert_same_bits(one: Any, other: Any) -> None:
    """Require that two models have learnt the same, and name the array that differs."""
    mine, others = one._learner.arrays(), other._learner.arrays()
    assert mine.keys() == others.keys()
    for name, array in mine.items():
        np.testing.assert_array_equal(array, others[name], err_msg=name)


def assert_same_arrays(one: Any, other: Any, probes: Any) -> None:
    """Require the same arrays, scores, probabilities and predictions, bit for bit."""
    assert held(one) == held(other)
    for method in ("decision_function", "predict_proba"):
        if hasattr(one, method):
            found, expected = getattr(one, method)(probes), getattr(other, method)(probes)
            np.testing.assert_array_equal(found, expected, strict=True)
    assert one.predict(probes).tolist() == other.predict(probes).tolist()


def assert_same_in_any_split(make: Callable[[], Any], stream: Stream, cuts: list[int]) -> None:
    """Require that a stream teaches the same as a whole, in batches and row by row."""
    whole, pieces, events = make(), make(), make()
    whole.partial_fit(stream.X, stream.y)
    ends = sorted({0, *(min(cut, len(stream)) for cut in cuts), len(stream)})
    for start, end in pairwise(ends):
        pieces.partial_fit(stream.X[start:end], stream.y[start:end])
    for x, y in zip(stream.X, stream.y, strict=True):
        events.learn_one(x, y)
    assert_same_arrays(whole, pieces, stream.X)
    assert_same_arrays(whole, events, stream.X)


def assert_labels_are_only_names(make: Callable[[], Any]) -> None:
    """Require that names of labels, and classes declared in advance, change nothing else."""
    stream = make_stream(5, n_rows=40, n_classes=5)
    names = np.array([*"edcba"])
    plain = make().partial_fit(stream.X, stream.y)
    named = make().partial_fit(stream.X, names[stream.y], classes=names)
    assert held(named) == held(plain)
    assert named.predict(stream.X).tolist() == names[plain.predict(stream.X)].tolist()

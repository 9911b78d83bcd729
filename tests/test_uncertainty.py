"""Uncertainty: what is said and learnt equals a reference, and sets keep their promise."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesler import (
    NEW,
    OnlineClassifier,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    load,
    progressive_validate,
)
from kesler.data import model_file
from kesler.learner.uncertainty import interpolated
from reference_uncertainty import (
    COVERAGES,
    LAST_PENALISED,
    RANK_PENALTY,
    STEPS,
    LabelReference,
    RankReference,
    Reference,
)
from uncertain import LEARNERS, OF_CLASSES, WITH_MEMORY, learn_rows, stream_of

every_kind = pytest.mark.parametrize("name", OF_CLASSES)

# ---- the reference ------------------------------------------------------------------------------


def evidence_of(model: Any, x: Any) -> tuple[Any, Any, int]:
    """Return the scores of members, the probabilities of known classes, and the prediction."""
    if model._learner is None:
        return None, None, -1
    [rows] = model._input.rows_to_score(model, [x])
    learner = model._learner
    members = learner.members
    scores = np.stack([member.scores(rows)[0] for member in members])
    return scores, learner.probabilities(rows)[0], int(learner.predict(rows)[0])


def run_of_reference(model: Any, X: Any, y: Any, *, remembers: bool) -> tuple[Any, Any]:
    """Learn row by row; return the reference after the last row, and what it said of each.

    The rows of the table are those of `UncertaintyTrace`.
    """
    n_members, reference, table = 1, None, []
    for x, target in zip(X, y, strict=True):
        evidence = evidence_of(model, x)
        model.learn_one(x, target)
        if reference is None:
            n_members = len(model._learner.members)
            reference = Reference(n_members, remembers=remembers)
        code = model._learner.classes.code(target)
        of_memory = np.asarray(x) if remembers else None
        said, at = reference.say(*evidence, of_memory), min(code, reference.k)
        row = [said.new, said.confidence, said.predicted]
        for sets in (said.sets, said.sets_by_class):
            row += [*sets[:, at], *sets.sum(axis=1)]
        table.append(row)
        reference.learn(*evidence, code, of_memory)
    return reference, np.array(table, dtype=float)


def assert_equal_to_reference(stored: Any, reference: Reference, rtol: float) -> None:
    """Require that what was learnt is that of the reference."""

    def same(name: str, expected: Any) -> None:
        found = stored[name][: len(expected)] if name == "offsets" else stored[name]
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol, err_msg=name)

    same("arrivals.priors", reference.arrivals.weights)
    same("mixed", reference.mixed)
    same("new_class", reference.newness.weights)
    same("new_class_covariance", reference.newness.covariance)
    same("confidence", reference.trust.weights)
    same("confidence_covariance", reference.trust.covariance)
    same("thresholds", np.stack([reference.thresholds, reference.means], axis=1))
    same("by_class", np.stack([reference.by_class, reference.means_by_class], axis=1))
    same("offsets", [reference.offsets[r] for r in range(reference.k)])
    same("of_new", reference.of_new)
    numbers = [[each.numbers for each in member] for member in reference.spread]
    same("spread", [[[len(x), np.mean(x or [0]), moment(x)] for x in row] for row in numbers])
    counts = stored["arrivals.counts"][0].tolist()
    codes = reference.arrivals.codes
    assert counts == (len(codes), sum(codes.count(code) == 1 for code in set(codes)))
    if reference.memory is not None:
        same("memory.weights", reference.memory.regression.weights)
        same("memory.covariance", reference.memory.regression.covariance)


def moment(numbers: list[float]) -> float:
    """Return the sum of squares about the mean."""
    return float(np.square(np.subtract(numbers, np.mean(numbers))).sum()) if numbers else 0.0


@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1))
@every_kind
def test_what_is_said_and_learnt_equals_the_reference(name, seed):
    X, y = stream_of(name, seed)
    remembers = name in WITH_MEMORY
    found = progressive_validate(OF_CLASSES[name](), X, y).uncertainty.table
    model = OF_CLASSES[name]()
    reference, expected = run_of_reference(model, X, y, remembers=remembers)
    # Distances are computed in float32.
    rtol = 1e-5 if remembers else 1e-9
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
    assert_equal_to_reference(model._learner.uncertainty.stored, reference, rtol)


def test_only_the_last_thousand_rows_are_remembered():
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=1060).tolist()
    X = rng.normal(size=(1060, 3)).astype(np.float32).astype(float) + np.array(y)[:, None]
    X[:20], y[:20] = X[:20] + 30, [9] * 20  # a class that is forgotten, far from the others
    model = OnlineClassifier("multi", update="pa1", uncertainty="full")
    found = progressive_validate(model, X, y).uncertainty.table
    again = OnlineClassifier("multi", update="pa1", uncertainty="full")
    reference, expected = run_of_reference(again, X, y, remembers=True)
    np.testing.assert_allclose(found[:, :3], expected[:, :3], rtol=1e-4)
    assert_equal_to_reference(again._learner.uncertainty.stored, reference, 1e-4)
    assert reference.memory.log_distance(X[10]) > 0 > reference.memory.log_distance(X[100])


@pytest.mark.parametrize("power", [-40, -20, 20, 50])
def test_the_unit_of_measurements_does_not_change_distances(power):
    X, y = stream_of("full pa1", 23)
    plain, scaled = (
        OF_CLASSES["full pa1"]().fit(X * scale, y)._learner.uncertainty.stored
        for scale in (1.0, 2.0**power)
    )
    for name in ("memory.weights", "memory.covariance"):
        np.testing.assert_allclose(scaled[name], plain[name], rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("n_rows", [3, 1e3, 1e7])
@pytest.mark.parametrize("j", range(9))
def test_each_estimate_of_arrivals_is_kept_from_0_and_1(j, n_rows):
    model = OnlineClassifier("multi", update="perceptron", uncertainty=True)
    stored = model.fit([[0.0], [1.0], [2.0]], [0, 1, 2])._learner.uncertainty.stored
    stored["arrivals.counts"][0] = n_rows, 2
    stored["arrivals.priors"][:], stored["mixed"][:] = np.arange(9) == j, [1, 0, 0]
    stored["arrivals.decayed"][:] = [[0, 10], [3, 3], [0, 1e9], [2000, 3]]
    n, k, once = n_rows, 3, 2
    estimates = [(once + 0.5) / (n + 1), (k + 0.5) / (n + 1), (1 + 0.5 * k) / (1 + n)]
    estimates += [(1 + 0.3 * k) / (1 + n), 3 / (3 + n), 0.5 / 11, 3.5 / 4, 0.5 / 1e9, 2000.5 / 4]
    expected = np.clip(estimates[j], 1e-5, 0.999)
    assert model.predict_proba([[1.0]], new=True)[0, -1] == pytest.approx(expected, rel=1e-12)


@settings(max_examples=6)
@given(seed=st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("decision", ["median", "score"])
def test_intervals_of_ranks_equal_the_reference(seed, decision):
    X, y = stream_of("ranks", seed)
    settings = {"decision": decision, "uncertainty": True}
    trace = progressive_validate(OnlineOrdinalClassifier(**settings), X, y).uncertainty
    model, reference = OnlineOrdinalClassifier(**settings), RankReference()
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        if t:
            ranks = sorted(model.classes_.tolist())
            p = model.predict_proba_one(x)
            given, at = np.array([p[r] for r in ranks]), ranks.index(model.predict_one(x))
            intervals = reference.say(given, at)
            for c, coverage in enumerate(COVERAGES):
                expected = [r for r, inside in zip(ranks, intervals[c], strict=True) if inside]
                assert model.predict_set_one(x, float(coverage)) == expected
                assert trace.sizes(coverage)[t] == len(expected)
                assert trace.covered(coverage)[t] == (target in expected)
            reference.learn(given, at, ranks.index(target) if target in ranks else None)
        model.learn_one(x, target)
        stored = model._learner.uncertainty.stored["others"]
        expected = np.stack([reference.thresholds, reference.means], axis=1)
        np.testing.assert_allclose(stored, expected, rtol=1e-9)
    assert not trace.covered(0.99)[0] and trace.sizes(0.99)[0] == 0


@settings(max_examples=6)
@given(seed=st.integers(0, 2**32 - 1))
def test_sets_of_labels_equal_the_reference(seed):
    X, y = stream_of("labels", seed)
    whole = OnlineMultilabelClassifier()
    said_before = progressive_validate(whole, X, y).uncertainty
    traces = said_before.table
    model, reference, known = OnlineMultilabelClassifier(), LabelReference(), 0
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        p = model.predict_proba_one(x) if known else {}
        labels, values = list(p), np.array(list(p.values()))
        sets = reference.say(values)
        for c, coverage in enumerate(COVERAGES if known else []):
            expected = {labels[r] for r in np.flatnonzero(sets[c])}
            said = model.predict_set_one(x, float(coverage))
            assert set(said) == expected and [*map(p.get, said)] == sorted(
                map(p.get, said), reverse=True
            )
            assert traces[t, 3 + c] == (expected <= set(target))
            assert traces[t, 7 + c] == len(expected)
        reference.learn(values, {labels.index(label) for label in target if label in p})
        model.learn_one(x, target)
        known = known or len(target)
        stored = model._learner.uncertainty.stored["others"]
        expected = np.stack([reference.thresholds, reference.means], axis=1)
        np.testing.assert_allclose(stored, expected, rtol=1e-9)


# ---- what is said before is what is traced ------------------------------------------------------


@every_kind
def test_what_is_said_before_the_target_is_what_is_traced(name):
    X, y = stream_of(name, 11)
    trace = progressive_validate(OF_CLASSES[name](), X, y).uncertainty
    model = OF_CLASSES[name]()
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        if t:
            p = model.predict_proba_one(x, new=True)
            assert p[NEW] == trace.new[t]
            assert sum(p.values()) == pytest.approx(1)
            assert model.confidence_one(x) == trace.confidence[t]
            known = target in model.classes_
            for by_class in (False, True):
                for coverage in COVERAGES.tolist():
                    said = model.predict_set_one(x, coverage, by_class=by_class)
                    assert trace.sizes(coverage, by_class=by_class)[t] == len(said)
                    is_in = (target if known else NEW) in said
                    assert trace.covered(coverage, by_class=by_class)[t] == is_in
        model.learn_one(x, target)
    assert (trace.new[0], trace.confidence[0], trace.sizes()[0]) == (1, 0, 1)


@pytest.mark.parametrize("name", ["text", "full pa1", "best"])
def test_sets_are_ordered_by_probability_and_never_empty_on_request(name):
    X, y = stream_of(name, 12)
    model = OF_CLASSES[name]().fit(X, y)
    labels = [*model.classes_.tolist(), NEW]
    p = model.predict_proba(X, new=True)
    for row, plain, never in zip(
        p,
        model.predict_set(X, 0.8),
        model.predict_set(X, 0.8, allow_empty=False),
        strict=True,
    ):
        chances = [row[labels.index(label)] for label in never]
        assert chances == sorted(chances, reverse=True) and chances[0] == row.max()
        assert plain in ([], never)


def test_larger_coverages_have_larger_sets():
    X, y = stream_of("pa1", 13, 300)
    model = OF_CLASSES["pa1"]().fit(X, y)
    grid = np.linspace(0.8, 0.999, 25)
    tracked = model._learner.uncertainty.stored["thresholds"]
    assert (np.diff(tracked, axis=0) >= 0).all()  # of this stream; it is no law
    sets = [model.predict_set(X[:20], c) for c in grid]
    for smaller, larger in pairwise(sets):
        assert all(set(a) <= set(b) for a, b in zip(smaller, larger, strict=True))


@given(
    st.lists(st.floats(-1, 2), min_size=4, max_size=4),
    st.floats(0.8, 0.999),
)
def test_thresholds_between_tracked_ones_are_interpolated(values, coverage):
    values = np.sort(values)
    expected = np.interp(
        coverage,
        [*COVERAGES, 1],
        [*values, max(1, values[-1])],
    )
    assert interpolated(values, coverage) == pytest.approx(expected, abs=1e-12)


# ---- what sets promise --------------------------------------------------------------------------


def adversary(kind: str, model: Any, x: Any, coverage: float, rng: Any) -> int:
    """Return a target outside of the set of a row if there is one, or inside, or by turns."""
    n = len(model.classes_)
    said = model.predict_set_one(x, coverage)
    outside = [r for r in range(n) if r not in said]
    if NEW not in said and n < 8:
        outside.append(n)
    inside = [r for r in said if r is not NEW] or [n - 1]
    wants_outside = kind == "outside" or (kind == "turns" and model.n_trials_ // 20 % 2)
    if kind == "shift":
        return int(rng.integers(3)) + 5 * (model.n_trials_ > 150) if n > 7 else n
    return int((outside or inside if wants_outside else inside)[-1])


@pytest.mark.parametrize("coverage", COVERAGES.tolist())
@pytest.mark.parametrize("kind", ["outside", "inside", "turns", "shift"])
def test_the_share_outside_is_within_the_bound_on_streams_of_an_adversary(kind, coverage):
    """Angelopoulos, Candes and Tibshirani (2023), Proposition 1."""
    rng, c = np.random.default_rng(4), COVERAGES.tolist().index(coverage)
    model = OnlineClassifier("multi", update="pa1", uncertainty=True)
    X, missed = rng.normal(size=(300, 4)), []
    model.learn_one(X[0], 0)
    for x in X[1:]:
        target = adversary(kind, model, x, coverage, rng)
        said = model.predict_set_one(x, coverage)
        missed.append((target if target in model.classes_ else NEW) not in said)
        model.learn_one(x, target)
    most = 1 + RANK_PENALTY * (LAST_PENALISED - 2)  # B
    for n in range(1, len(missed) + 1):
        difference = abs(np.mean(missed[:n]) - (1 - coverage))
        assert difference <= (most + STEPS[c]) / (STEPS[c] * n) + 1e-12


@pytest.mark.parametrize("n_classes", [2, 6])
def test_sets_of_random_classes_contain_as_many_as_they_must(n_classes):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(4000, 3)), rng.integers(n_classes, size=4000)
    model = OnlineClassifier("multi", update="softmax", uncertainty=True)
    trace = progressive_validate(model, X, y).uncertainty
    for coverage in COVERAGES:
        assert trace.covered(coverage).mean() == pytest.approx(coverage, abs=0.01)
    by_class = trace.covered(0.9, by_class=True)
    for r in range(n_classes):
        assert by_class[y == r].mean() == pytest.approx(0.9, abs=0.03)


def test_rare_classes_are_covered_by_their_own_thresholds():
    rng = np.random.default_rng(6)
    y = (rng.random(4000) < 0.12).astype(int)
    X = rng.normal(size=(4000, 2)) + 0.1 * y[:, None]
    model = OnlineClassifier("multi", update="softmax", uncertainty=True)
    trace = progressive_validate(model, X, y).uncertainty
    assert trace.covered(0.9, by_class=True)[y == 1].mean() == pytest.approx(0.9, abs=0.05)


def test_ranks_and_label_sets_contain_as_many_as_they_must():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(3000, 3))
    y = np.clip(np.rint(2 + X[:, 0] + rng.normal(size=3000)), 0, 5).astype(int)
    trace = progressive_validate(OnlineOrdinalClassifier(), X, y).uncertainty
    labels = [[r for r in range(4) if x + rng.normal() > r - 1] for x in X[:, 0]]
    traces = OnlineMultilabelClassifier()._run_trials(X, labels, keep_traces=True).traces
    for c, coverage in enumerate(COVERAGES):
        assert trace.covered(coverage).mean() == pytest.approx(coverage, abs=0.015)
        assert traces[:, 3 + c].mean() == pytest.approx(coverage, abs=0.015)


def test_new_classes_that_look_new_are_likelier_new_and_errors_are_less_trusted():
    """First rows of late classes far from all others, and rows of classes that overlap."""
    rng = np.random.default_rng(8)
    centres = rng.normal(size=(12, 6)) * 4
    centres[1] = centres[0] + 0.2
    y = np.minimum(np.arange(1500) // 100, rng.integers(12, size=1500))
    X = centres[y] + rng.normal(size=(1500, 6))
    result = progressive_validate(OnlineClassifier(uncertainty="full"), X, y)
    trace = result.uncertainty
    is_first = np.isin(np.arange(1500), np.unique(y, return_index=True)[1])
    is_first[:300] = False
    rank = (trace.new[is_first][:, None] > trace.new[300:][~is_first[300:]]).mean()
    assert is_first.sum() >= 8 and rank > 0.95
    right = np.diff(result.curve, prepend=0) == 0
    known, late = ~is_first, np.arange(1500) >= 300
    right_ones, wrong = (trace.confidence[known & late & r] for r in (right, ~right))
    assert (right_ones[:, None] > wrong).mean() > 0.8
    assert abs(trace.confidence[known & late].mean() - right[known & late].mean()) < 0.02


@pytest.mark.parametrize("name", LEARNERS)
def test_memory_does_not_grow_with_rows(name):
    X, y = stream_of(name, 9)
    model = LEARNERS[name]()
    sizes = []
    for _ in range(4):
        learn_rows(model, X, y)
        sizes.append(sum(a.nbytes for a in model._learner.uncertainty.stored.values()))
    assert sizes[0] == sizes[-1]


def test_sets_of_a_thousand_classes_contain_the_share_asked_for():
    """The rank of a target grows with the classes, and thresholds must follow within few rows."""
    rng = np.random.default_rng(5)
    y = np.concatenate([np.arange(700), rng.integers(0, 700, 700)])[rng.permutation(1400)]
    rows = [{f"w{int(c)}": 1.0, f"v{rng.integers(9)}": 1.0} for c in rng.permutation(y)]
    model = OnlineClassifier(candidates=None, uncertainty=True)
    trace = progressive_validate(model, rows, y.tolist()).uncertainty
    for coverage in (0.8, 0.9, 0.95):
        assert abs(trace.covered(coverage).mean() - coverage) < 0.012
        assert abs(trace.covered(coverage, by_class=True).mean() - coverage) < 0.03


def test_thresholds_of_a_file_of_before_are_at_most_the_largest_score(tmp_path):
    model, path = OnlineClassifier(uncertainty=True), tmp_path / "model.kesler"
    model.fit([{f"w{i % 3}": 1.0} for i in range(30)], [i % 3 for i in range(30)])
    for name in ("thresholds", "by_class"):
        model._learner.uncertainty.stored[name][1:, :] = 7.5
    low = {name: model._learner.uncertainty.stored[name][0] for name in ("thresholds", "by_class")}
    model.save(path)
    kept = load(path)._learner.uncertainty.stored
    arrays, metadata = model_file.load(path)
    del metadata["uncertainty"]["largest_score"]
    model_file.save(path, arrays, metadata)
    lowered = load(path)._learner.uncertainty.stored
    for name in ("thresholds", "by_class"):
        assert (kept[name][1:] == 7.5).all()
        assert (lowered[name][1:] == 1 + RANK_PENALTY * (LAST_PENALISED - 2)).all()
        np.testing.assert_array_equal(lowered[name][0], low[name])

"""LinearMax: the proof of Mesterharm (2001), Section 3, replayed, and what users may get wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

import homemade
import reference
import reference_threshold
from kesler import (
    Ensemble,
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    load,
    threshold_algorithm,
)
from kesler.algorithms import ALGORITHMS, ALMA, ROMMA, QuasiAdditive, resolve_algorithm
from kesler.datasets import load_pendigits
from kesler.hypotheses import Grouped, PerClass, Shared
from kesler.maps import SubExperts
from reference_links import is_doubtful
from registry import ROWS, Row
from streams import Stream, make_stream, streams
from test_laws import oracle_weights

MAXED = [row for row in ROWS if row.algorithm is not None]


def views_of(row: Row, stream: Stream, t: int, running: Any) -> Any:
    parts = row.oracle()
    k = stream.n_classes
    return np.array(
        [reference.stack(stream.X[t], r, running[r], parts, k) for r in range(len(running))]
    )


def direction(w: Any) -> Any:
    """Predictions and bounds do not depend on a common factor."""
    length = np.linalg.norm(w)
    return w / length if length > 0 else w


@pytest.mark.parametrize("row", MAXED, ids=lambda row: row.name)
@settings(max_examples=6, suppress_health_check=[HealthCheck.filter_too_much])
@given(stream=streams())
def test_the_algorithm_holds_the_same_weights_and_makes_no_fewer_mistakes(row, stream):
    """The proof: the algorithm, run on the instances that LinearMax makes, is LinearMax."""
    model, running = row.learner(), []
    seen = replace(stream, X=row.seen(stream.X, None, stream.y))
    assume(seen.X.shape[1])  # of one input there are no pairs
    n_views = seen.X.shape[1] * sum(
        reference.n_hypotheses(part, stream.n_classes) for part in row.oracle()
    )
    threshold = reference_threshold.ALGORITHMS[row.algorithm](n_views)
    mistakes = t = 0
    for t, (x, y) in enumerate(zip(stream.X, stream.y, strict=True)):
        V = views_of(row, seen, t, running)
        if y == len(running):
            running.append([])
        elif len(running) > 1:
            scores = np.array([np.sort(v * threshold.w).sum() for v in V])
            rival = max((s for s in range(len(running)) if s != y), key=lambda s: (scores[s], -s))
            z = V[y] - V[rival]
            pairs = [(int(y), s) for s in range(len(running)) if s != y]
            size = (abs(V) @ abs(threshold.w)).max()
            if is_doubtful(row.algorithm, scores, V * threshold.w, pairs, 0.0, size):
                break  # rounding may decide this trial: the two rightly part
            mistakes += threshold.is_wrong(z)
            threshold.learn(z)
        model.learn_one(x, y)
        running[y].append((seen.X[t], 1.0))
    else:
        t += 1
    assume(t >= 6)
    assert model.n_trials_ == t and model.n_mistakes_ <= mistakes
    ours = np.concatenate([part.ravel() for part in of_all_classes(row, model, seen)])
    were_seen = ours != 0
    np.testing.assert_allclose(
        direction(ours * were_seen), direction(threshold.w * were_seen), rtol=0, atol=2e-3
    )


def of_all_classes(row: Row, model: Any, stream: Stream) -> Any:
    """Return our weights with columns for the classes that appear later in the stream."""
    found = []
    for part, weights in zip(row.oracle(), oracle_weights(row, model), strict=True):
        full = np.zeros((reference.n_hypotheses(part, stream.n_classes), stream.X.shape[1]))
        full[: len(weights)] = weights
        found.append(full)
    return found


def test_romma_satisfies_both_of_its_constraints():
    rng = np.random.default_rng(1)
    model = LinearMax(ROMMA(aggressive=True)).fit(rng.normal(size=(3, 4)), [0, 1, 2])
    for _ in range(60):
        before = weights_of(model)
        x, y = rng.normal(size=4), int(rng.integers(3))
        z = z_of(model, x, y)
        if before @ z < 1:
            model.learn_one(x, y)
            after = weights_of(model)
            assert after @ z >= 1 - 1e-3
            assert after @ before >= before @ before * (1 - 1e-3)


def weights_of(model: LinearMax) -> Any:
    learner = model._learner
    return (learner.scale * learner.arrays()["weights.values.0"].astype(float)).ravel()


def z_of(model: LinearMax, x: Any, y: int) -> Any:
    scores = model._scores([x])[0]
    rival = max((s for s in range(3) if s != y), key=lambda s: (scores[s], -s))
    return np.outer(x, np.eye(3)[y] - np.eye(3)[rival]).ravel()


@pytest.mark.parametrize("name", ["romma", "alma", "alma-p"])
def test_scales_stay_in_range_at_any_length(name):
    rng = np.random.default_rng(2)
    X, y = rng.choice([-30.0, 30.0], size=(30_000, 2)), rng.integers(2, size=30_000)
    model = LinearMax(name).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert 1e-16 < model._learner.scale < 1e16


def test_a_users_algorithm_runs_saved_and_loaded(tmp_path):
    stream = make_stream(3)
    model = LinearMax(homemade.counted.with_parameters(0.3)).fit(stream.X[:20], stream.y[:20])
    model.save(tmp_path / "m")
    again = load(tmp_path / "m", custom=[homemade.counted])
    assert again.algorithm == homemade.counted.with_parameters(0.3)
    for each in (model, again):
        each.partial_fit(stream.X[20:], stream.y[20:])
    np.testing.assert_array_equal(model._scores(stream.X), again._scores(stream.X))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_name_is_saved_and_loaded(name, tmp_path):
    from kesler import load

    stream = make_stream(4)
    model = LinearMax(name, "hybrid").fit(stream.X, stream.y)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.algorithm == name
    assert loaded.resolved_.algorithm == resolve_algorithm(name)


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: resolve_algorithm("svm"), "choose one of perceptron, wma"),
        (lambda: ALMA(alpha=0), "alpha must be a finite number above 0 and at most 1"),
        (lambda: ALMA(p=1.5), "p must be a finite number from 2 to 100"),
        (lambda: QuasiAdditive("linear"), "give a link of kesler.links"),
        (lambda: QuasiAdditive(rate=-1), "rate must be a finite number above 0"),
        (lambda: ALGORITHMS["wma"](alpha=1.0), "alpha must be a finite number above 1"),
        (lambda: threshold_algorithm(n_states=9)(lambda z: None), "from 0 to 4"),
        (lambda: threshold_algorithm()(len), "plain Python function"),
        (lambda: LinearMax("romma").fit([[1.0]] * 2, [0, 1], [1.0, 2.0]), "ignores sample weights"),
    ],
)
def test_what_makes_no_sense_is_refused(make, part):
    with pytest.raises(KeslerError, match=part):
        make()


def ratings_of_classes(seed: int, *, sparse: bool, k: int = 4, n: int = 6, m: int = 60) -> Any:
    """Return ratings (m, k, n), and the right classes: those that the first two rate highest."""
    rng = np.random.default_rng(seed)
    values = rng.random((m, k, n)) * (rng.random((m, k, n)) < (0.6 if sparse else 1.0))
    return values.astype(np.float32), values[:, :, :2].sum(axis=2).argmax(axis=1).tolist()


def ratings_of_an_unseen_class(x: Any, w: Any) -> Any:
    """Mesterharm 2001, sec. 6.2: one number, so low that its vote is below that of any class."""
    heard = (x != 0).any(axis=0)
    low, high, total = x[:, heard].min(), x[:, heard].max(), w[heard].sum()
    constant = low
    if total != 0:
        lowest_vote = min(float(row @ w) for row in x) / total
        constant = lowest_vote - np.sign(total) * (high - low) / 1000
    return np.where(heard, min(max(constant, low), high), 0.0)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("on_new_class", ["register", "learn", "unseen"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_proof_replayed_on_sub_experts(name, on_new_class, sparse):
    """Ratings are what the paper is about: z_i = x_i^rho - x_i^A, also where rho is new."""
    values, right = ratings_of_classes(5, sparse=sparse)
    k, n = values.shape[1:]
    model = LinearMax(name, "sub-experts", on_new_class=on_new_class)
    threshold, known, mistakes, late = reference_threshold.ALGORITHMS[name](n), [], 0, 0
    for x, y in zip(values, right, strict=True):
        others = [r for r in known if r != y]
        if others and (y in known or on_new_class != "register"):
            own = x[y].astype(float)
            if y not in known and on_new_class == "unseen":
                own = ratings_of_an_unseen_class(x[known].astype(float), threshold.w)
                if name == "wma":
                    assert own @ threshold.w < min(x[r] @ threshold.w for r in known)
                late += 1
            scores = {r: float(x[r] @ threshold.w) for r in known}
            rival = max(others, key=lambda r: (scores[r], -known.index(r)))
            mistakes += threshold.is_wrong(own - x[rival])
            threshold.learn(own - x[rival])
        if y not in known:
            known.append(y)
        model.learn_one({r: x[r] for r in range(k)}, y)
    assert len(known) == k and mistakes >= model.n_mistakes_ > 0
    assert late == (k - 1 if on_new_class == "unseen" else 0)
    ours = model._learner.arrays()["weights.values.0"][:n, 0].astype(float)
    np.testing.assert_allclose(direction(ours), direction(threshold.w), atol=2e-3)


def low_by_kind(label: Any, ratings: Any, weights: Any) -> Any:
    """Two kinds of unseen classes: of the second, sub-experts with more weight are surer."""
    lowest = ratings.min(axis=0) - 0.25
    largest = abs(weights).max()
    return lowest if label % 2 or largest == 0 else lowest - weights / largest


@pytest.mark.parametrize("name", ["wma", "perceptron", "romma", "p-norm"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_users_ratings_of_kinds_of_unseen_classes(name, sparse, tmp_path):
    """Mesterharm 2001, sec. 6.2: z = x^inf - x^lambda, with an x^inf of the user's."""
    values, right = ratings_of_classes(7, sparse=sparse, k=5)
    k, n = values.shape[1:]
    parts = [Shared(SubExperts(unseen=low_by_kind))]
    model = LinearMax(name, parts, on_new_class="unseen")
    threshold, known, late = reference_threshold.ALGORITHMS[name](n), [], 0
    for t, (x, y) in enumerate(zip(values, right, strict=True)):
        rivals = [r for r in known if r != y]
        if rivals:
            own = x[y].astype(float)
            if y not in known:
                own, late = low_by_kind(y, x[known].astype(float), threshold.w), late + 1
            scores = {r: float(x[r] @ threshold.w) for r in known}
            rival = max(rivals, key=lambda r: (scores[r], -known.index(r)))
            threshold.learn(own - x[rival])
        if y not in known:
            known.append(y)
        model.learn_one({r: x[r] for r in range(k)}, y)
        if t == 20:
            model.save(tmp_path / "m")
            model = load(tmp_path / "m", custom=[low_by_kind])
    assert late == k - 1
    ours = model._learner.arrays()["weights.values.0"][:n, 0].astype(float)
    np.testing.assert_allclose(direction(ours), direction(threshold.w), atol=2e-3)


@pytest.mark.parametrize(
    ("unseen", "said"),
    [
        (lambda label, ratings, weights: [1.0, 2.0], "one for each of the 3 sub-experts"),
        (lambda label, ratings, weights: 1 / 0, "division by zero"),
        (lambda label, ratings, weights: np.nan, "not finite"),
    ],
)
def test_what_is_no_rating_of_an_unseen_class_is_refused(unseen, said):
    model = LinearMax("perceptron", [Shared(SubExperts(unseen))], on_new_class="unseen")
    model.learn_one({0: [1.0, 2.0, 3.0]}, 0)
    with pytest.raises(KeslerError, match=said):
        model.learn_one({0: [1.0, 2.0, 3.0]}, 1)
    with pytest.raises(KeslerError, match="give a function"):
        SubExperts(unseen=3.0)


@pytest.mark.parametrize("name", ["wma", "perceptron", "romma"])
@pytest.mark.parametrize("named", [False, True])
def test_unseen_classes_in_batches_saved_and_loaded(name, named, tmp_path):
    """Bit for bit, although new sub-experts and classes appear within a batch."""
    from kesler import load

    values, right = ratings_of_classes(6, sparse=True)
    values[:10, :, 3:] = 0
    rows = [
        {
            r: {f"e{i}" if named else i: v for i, v in enumerate(x[r].tolist()) if v}
            for r in range(4)
        }
        for x in values
    ]
    y = [f"class {r}" for r in right]
    rows = [{f"class {r}": each for r, each in row.items()} for row in rows]
    one_by_one, in_two = (LinearMax(name, "sub-experts", on_new_class="unseen") for _ in "12")
    for row, label in zip(rows, y, strict=True):
        one_by_one.learn_one(row, label)
    in_two.partial_fit(rows[:2], y[:2]).save(tmp_path / "m")
    again = load(tmp_path / "m").partial_fit(rows[2:], y[2:])
    assert again.on_new_class == "unseen" and again.n_mistakes_ == one_by_one.n_mistakes_
    at_once = LinearMax(name, "sub-experts", on_new_class="unseen").fit(rows, y)
    for other in (again, at_once):
        for key, array in one_by_one._learner.arrays().items():
            np.testing.assert_array_equal(array, other._learner.arrays()[key], err_msg=key)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LinearMax(on_new_class="unseen"),
        lambda: LinearMax(hypotheses="multi+sub-experts", on_new_class="unseen"),
        lambda: OnlineMultilabelClassifier("sub-experts", on_new_class="unseen"),
    ],
)
def test_only_sub_experts_rate_unseen_classes(make):
    with pytest.raises(KeslerError, match='only hypotheses="sub-experts" for single classes'):
        make()._new_learner(dense=True)


def test_no_row_is_learnt_from_rows_of_weight_0():
    values, right = ratings_of_classes(6, sparse=False)
    rows = [dict(enumerate(x)) for x in values]
    model = LinearMax("perceptron", "sub-experts", on_new_class="unseen")
    model.fit(rows[:9], right[:9]).partial_fit(rows[9:], right[9:], sample_weight=np.zeros(51))
    assert model.n_trials_ == 9


def test_an_ensemble_shares_its_rows():
    member = LinearMax(hypotheses="sub-experts", on_new_class="unseen")
    with pytest.raises(KeslerError, match="which all learners of an ensemble share"):
        Ensemble([member]).fit([{0: [1.0]}], [0])


def similarities() -> list[tuple[Any, int]]:
    """Return ratings of Pendigits: how near each feature is to its mean in each class so far."""
    data, sums, counts = load_pendigits(), np.zeros((10, 16)), np.zeros(10)
    found = []
    for x, y in zip(data.X[:4000] / 100, map(int, data.y[:4000]), strict=True):
        means = sums / np.maximum(counts, 1)[:, None]
        ratings = np.where(counts[:, None] > 0, 1 - abs(x - means), 0).astype(np.float32)
        found.append((ratings, y))
        sums[y] += x
        counts[y] += 1
    return found


@pytest.mark.parametrize("name", ["romma", "alma"])
def test_a_stream_that_no_weights_separate_is_learnt_as_in_float64(name):
    """By its formula, the norm drifts from that of the rounded weights, here by half of it."""
    model = LinearMax(name, "sub-experts")
    threshold, known, mistakes = reference_threshold.ALGORITHMS[name](16), [], 0
    checked = np.random.default_rng(0).random(4000) < 0.01
    for t, (x, y) in enumerate(similarities()):
        if y in known and len(known) > 1:
            scores = {r: float(x[r] @ threshold.w) for r in known}
            rival = max((r for r in known if r != y), key=lambda r: (scores[r], -known.index(r)))
            z = x[y].astype(float) - x[rival]
            mistakes += threshold.is_wrong(z)
            threshold.learn(z)
        if y not in known:
            known.append(y)
        model.learn_one({r: x[r] for r in range(10)}, y)
        if checked[t]:
            squares = model._learner.stored["algorithm.numbers"][1]
            stored = model._learner.weights.astype(np.float64)
            assert squares == pytest.approx((stored**2).sum(), rel=1e-9)
    assert model.n_mistakes_ == pytest.approx(mistakes, abs=3)
    assert mistakes > 900


@pytest.mark.parametrize("p", [2, 2.1, 3, 20, 100])
@pytest.mark.parametrize("alpha", [0.1, 0.9, 1.0])
def test_alma_is_that_of_its_paper_for_any_p(p, alpha):
    """The weights themselves, with their scale: inside of the ball, and on its surface."""
    rng = np.random.default_rng(int(10 * p))
    X = (rng.normal(size=(150, 5)) * np.exp(rng.normal(size=(150, 1)))).astype(np.float32)
    y = np.append([0, 1], (X[2:, 0] > X[2:, 1]) ^ (rng.random(148) < 0.1)).tolist()
    model = LinearMax(ALMA(alpha, p)).fit(X[:2], y[:2])
    threshold, sizes = reference_threshold.ALMAp(10), []
    threshold.p, threshold.alpha = float(p), alpha
    for x, r in zip(X[2:], y[2:], strict=True):
        model.learn_one(x, r)
        threshold.learn(np.outer(x.astype(float), [1 - 2 * r, 2 * r - 1]).ravel())
        ours = model._learner.scale * model._learner.weights[:5, :2].astype(float)
        np.testing.assert_allclose(ours.ravel(), threshold.w, rtol=0, atol=1e-5)
        sizes.append(np.linalg.norm(threshold.w, p / (p - 1)))
    assert min(sizes) < 0.9 and (p > 10 or max(sizes) == pytest.approx(1))


@pytest.mark.parametrize("estimator", [OnlineClassifier, OnlineOrdinalClassifier])
def test_an_algorithm_is_no_update_rule(estimator):
    with pytest.raises(KeslerError, match=r"use kesler\.LinearMax"):
        estimator("multi", update=ROMMA()).fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize("name", ["romma", "alma", "alma-p", "wma"])
def test_joining_a_group_leaves_what_the_algorithm_keeps(name):
    stream = make_stream(6)
    model = LinearMax(name, [PerClass(), Grouped({"low": [0, 1]})]).fit(stream.X, stream.y)
    before = {
        key: array.copy() for key, array in model._learner.stored.items() if not array.ndim > 1
    }
    model.join_group(2, "low")
    stored = model._learner.stored
    assert (stored["algorithm.numbers"] == before["algorithm.numbers"]).all()
    # Under a link its sum is to be computed anew.
    assert bool(stored["link.scale"]["is_stale"][0]) == (name == "wma")
    model.partial_fit(stream.X, stream.y)
    assert np.isfinite(model.decision_function(stream.X)).all()


def test_ratings_of_unseen_classes_without_a_use_are_refused():
    parts = [Shared(SubExperts(unseen=lambda label, row, worst: worst))]
    with pytest.raises(KeslerError, match='with on_new_class="unseen" alone'):
        OnlineClassifier(parts, update="perceptron").learn_one({"a": [1.0, 0.5]}, "a")

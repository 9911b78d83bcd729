"""An ensemble: its learners learn independently, and their mixture agrees with theory."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import reference_ensemble as reference
from commands import kesler
from homemade import not_a_number
from kesler import (
    Ensemble,
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineOrdinalClassifier,
    Ratings,
    load,
    mistake_bound,
    progressive_validate,
)
from kesler.compiled.trial.ensemble import combine
from kesler.data.rows import Rows
from kesler.hypotheses import Grouped
from kesler.learner import ensemble as capacities
from kesler.state.fields import allocated, bind, converted, fields_of
from kesler.state.records import EnsembleRecord
from registry import ROWS
from streams import make_stream, streams

WAYS = ["majority", "best", "mixture", "fixed-share"]
every_way = pytest.mark.parametrize("way", WAYS)
SINGLE = [row for row in ROWS if not row.dense_only and row.takes_weights]
STREAM = make_stream(5, n_rows=80, n_classes=6)


def members():
    """Every kind of machine: weights, statistics, groups, an average, support vectors."""
    return [
        OnlineClassifier("multi", update="softmax"),
        OnlineClassifier("hybrid", "frequency", update="pa1"),
        OnlineClassifier(
            [Grouped({"even": [0, 2, 4], "odd": [1, 3, 5]})], update="pa1", averaged=True
        ),
        OnlineClassifier("multi", update="pa1", kernel="rbf", sigma=2.0),
        LinearMax(),
    ]


def ensemble(way="fixed-share"):
    return Ensemble(members(), way)


def held(model):
    return {name: (a.shape, a.tobytes()) for name, a in model._learner.arrays().items()}


def assert_same(one, other, X):
    assert held(one) == held(other)
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.predict(X).tolist() == other.predict(X).tolist()
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


# ---- how learners are combined ------------------------------------------------------------------


def said(seed, n_members, n_rows, n_classes):
    """Return possible predictions of learners on a stream, and its targets."""
    generator = np.random.default_rng(seed)
    y = make_stream(seed, n_rows=n_rows, n_classes=n_classes).y
    seen = np.maximum.accumulate(y)
    k = np.concatenate([[0], seen[:-1] + 1])
    p = generator.dirichlet(np.ones(n_classes), size=(n_members, n_rows))
    p *= np.arange(n_classes) < k[:, None]
    p /= np.maximum(p.sum(axis=2, keepdims=True), 1e-300)
    skill = generator.random(n_members)[:, None]
    winners = np.where(generator.random((n_members, n_rows)) < skill, y, p.argmax(axis=2))
    winners = np.where(winners < k, winners, p.argmax(axis=2))
    return np.where(k == 0, -1, winners), p, y


def run(way, winners, p, y, discount=0.9, demotion=0.5, state=None):
    """Return what the compiled ensemble predicts, and its state."""
    n_members, n_rows, _ = p.shape
    if state is None:
        shares = way == "fixed-share"
        n_experts = n_members + 2 * (shares and n_members > 1)
        lengths = {"member": n_members, "expert": n_experts}
        owner = SimpleNamespace(shares=shares)
        stored = allocated(fields_of(EnsembleRecord), owner, lengths)
        stored["weights"][:] = 1 / n_experts
        stored["paths"][:] = math.log(n_experts)
        stored["exponents"][:], stored["slopes"][:] = 1 / n_members, 1.0
        rule = {"rule": WAYS.index(way), "discount": discount, "demotion": demotion}
        rule |= {"share": demotion, "is_ordered": 1}
        state = bind(EnsembleRecord, stored | converted(EnsembleRecord, rule))
    probabilities = np.concatenate([np.full((n_members, n_rows, 2), np.nan), p], axis=2)
    for t, answer in enumerate(y):
        probabilities[:, t, 1] = p[:, t, answer]
    predictions = np.empty(n_rows, dtype=np.int32)
    nothing = np.empty((0, 0), dtype=np.float32), np.empty((0, 2))
    codes = y.astype(np.int32)
    combine(state, winners.astype(np.int64), probabilities, codes, predictions, *nothing)
    return predictions, state


@every_way
@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_members=st.integers(1, 7),
    n_classes=st.integers(1, 6),
    discount=st.sampled_from([0.5, 0.9, 0.995, 1.0]),
    demotion=st.sampled_from([0.1, 0.5, 0.9]),
)
def test_combinations_equal_the_reference(way, seed, n_members, n_classes, discount, demotion):
    winners, p, y = said(seed, n_members, 60, n_classes)
    found, state = run(way, winners, p, y, discount, demotion)
    expected = reference.combined(way, winners, p, y, discount, demotion)
    assert found.tolist() == expected
    known = np.arange(60) != np.array([np.flatnonzero(y == r)[0] for r in y])
    assert list(state.counts.tolist()[:3]) == [60, int(((found != y) & known).sum()), y.max() + 1]


def bound(winners, y, wrong, demotion):
    """Littlestone and Warmuth (1994), for pluralities."""
    least = min(((row != y) & wrong).sum() for row in winners)
    votes = math.log(len(winners))
    return (least * math.log(1 / demotion) + votes) / math.log(2 / (1 + demotion))


@pytest.mark.parametrize("demotion", [0.05, 0.5, 0.9])
def test_majority_never_makes_more_mistakes_than_its_bound(demotion):
    for seed in range(150):
        shape = np.random.default_rng(seed).integers([1, 30, 2], [20, 200, 8])
        winners, p, y = said(seed, *shape)
        found, state = run("majority", winners, p, y, demotion=demotion)
        known = np.arange(len(y)) != np.array([np.flatnonzero(y == r)[0] for r in y])
        assert state.counts.n_mistakes == ((found != y) & known).sum()
        assert state.counts.n_mistakes <= bound(winners, y, known, demotion) + 1e-9


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5])
def test_fixed_share_loses_no_more_than_the_best_sequence(share):
    for seed in range(100):
        shape = np.random.default_rng(seed).integers([1, 30, 2], [6, 120, 6])
        winners, p, y = said(seed, *shape)
        found, state = run("fixed-share", winners, p, y, demotion=share)
        _, losses = reference.fixed_share(p, y, share)
        best = reference.best_sequence(p, y, share)
        np.testing.assert_allclose(state.paths.min(), best, rtol=1e-9)
        assert sum(losses) <= best + 1e-6
        known = np.arange(len(y)) != np.array([np.flatnonzero(y == r)[0] for r in y])
        assert ((found != y) & known).sum() * math.log(2) <= best + 1e-6


def test_fixed_share_states_the_bound_of_a_run():
    model = Ensemble(members()).fit(STREAM.X, STREAM.y)
    assert 0 < model.n_mistakes_ <= model.mistake_bound_
    assert Ensemble(members(), "mixture").fit(STREAM.X, STREAM.y).mistake_bound_ is None


def in_runs(n_runs=60, length=10, n_classes=6):
    """Return rows of noisy classes, each of which stays for a number of rows."""
    generator = np.random.default_rng(0)
    y = np.repeat(generator.integers(n_classes, size=n_runs), length)
    X = generator.normal(size=(n_classes, 5))[y] + generator.normal(size=(len(y), 5))
    return X, y, generator.permutation(len(y))


def test_fixed_share_learns_that_classes_come_in_runs():
    X, y, order = in_runs()
    errors = {
        way: [
            progressive_validate(Ensemble(members(), way), X[rows], y[rows]).error
            for rows in (np.arange(len(y)), order)
        ]
        for way in ("fixed-share", "mixture")
    }
    assert errors["fixed-share"][0] < 0.5 * errors["mixture"][0]
    assert errors["fixed-share"][1] < errors["mixture"][1] + 0.01


def test_a_prediction_is_for_the_row_after_the_last_learnt():
    X, y, _ = in_runs()
    model = Ensemble(members()).partial_fit(X, y)
    unclear, last = X.mean(axis=0), int(y[-1])
    other = (last + 1) % 6
    before = model.predict_proba_one(unclear)[last]
    for _ in range(2):
        model.learn_one(X[np.flatnonzero(y == other)[0]], other)
    after = model.predict_proba_one(unclear)
    assert after[last] < 0.5 * before and after[other] > 0.5


def test_rows_of_fit_are_a_set():
    X, y, _ = in_runs()
    unclear, last = X.mean(axis=0), int(y[-1])
    fitted, learnt = Ensemble(members()).fit(X, y), Ensemble(members()).partial_fit(X, y)
    assert fitted.predict_proba_one(unclear)[last] < 0.5 < learnt.predict_proba_one(unclear)[last]
    ended = pickle.loads(pickle.dumps(learnt)).end_sequence()
    assert ended.predict_proba_one(unclear)[last] < 0.5
    assert ended.learn_one(unclear, last).predict_proba_one(unclear)[last] > 0.5
    fitted.learn_one(unclear, last)
    (code,) = fitted._learner.arrays()["ensemble.last"]
    assert fitted.classes_by_code_[code] == last


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_what_is_predicted_is_what_is_counted(learn):
    X, y, _ = in_runs()
    model = getattr(Ensemble(members()), learn)(X[:300], y[:300])
    before, wrong = model.n_mistakes_, 0
    for x, answer in zip(X[300:], y[300:].tolist(), strict=True):
        wrong += model.predict_one(x) != answer
        model.learn_one(x, answer)
    assert model.n_mistakes_ - before == wrong


def test_probabilities_of_fixed_share_sum_to_one():
    X = np.repeat(np.eye(3) * 10, 200, axis=0)
    model = OnlineClassifier().partial_fit(X, np.repeat([0, 1, 2], 200))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("last", [-1, 6, 10**12])
def test_a_last_class_that_cannot_be_is_ignored(last):
    model = Ensemble(members()).fit(STREAM.X, STREAM.y)
    arrays = model._learner.arrays()
    arrays["ensemble.last"][:] = last
    model._learner.restore(arrays)
    probabilities = model.predict_proba(STREAM.X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    model.partial_fit(STREAM.X, STREAM.y)


@pytest.mark.parametrize("demotion", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("n_members", [2, 3, 8, 33])
def test_not_even_where_every_answer_is_made_to_be_a_mistake(demotion, n_members):
    """The target is the prediction of the heaviest learners outside the plurality, if any."""
    generator, n_rows, k = np.random.default_rng(n_members), 120, 4
    state, n_wrong, errors = None, 0, np.zeros(n_members, dtype=int)
    p = np.full((n_members, 1, k), 1 / k)
    for t in range(n_rows + k):
        winners = generator.integers(0, min(t, k), (n_members, 1)) if t else np.full((2, 1), -1)
        winners = np.broadcast_to(winners[:1], (n_members, 1)) if t < k else winners
        answer = t
        if t >= k:
            votes = np.bincount(winners[:, 0], state.weights, minlength=k)
            answer = int(np.argsort(-votes, kind="stable")[1])
            n_wrong, errors = n_wrong + 1, errors + (winners[:, 0] != answer)
        _, state = run("majority", winners, p, np.array([answer]), demotion=demotion, state=state)
    assert state.counts.n_mistakes == n_wrong == n_rows
    votes = errors.min() * math.log(1 / demotion) + math.log(n_members)
    assert n_wrong <= votes / math.log(2 / (1 + demotion)) + 1e-9


# ---- laws ----------------------------------------------------------------------------------------


@every_way
@settings(max_examples=6)
@given(stream=streams(), cuts=st.lists(st.integers(0, 40), max_size=4), data=st.data())
def test_any_split_into_batches_is_the_same(way, stream, cuts, data):
    rows = data.draw(st.lists(st.sampled_from(SINGLE), min_size=1, max_size=3))
    whole, pieces, events, weighted, other = (
        Ensemble([row.learner() for row in rows], way) for _ in range(5)
    )
    whole.partial_fit(stream.X, stream.y)
    ends = sorted({0, *(min(cut, len(stream)) for cut in cuts), len(stream)})
    weighted.partial_fit(stream.X, stream.y, sample_weight=stream.weights)
    for start, end in pairwise(ends):
        part = stream[start:end]
        pieces.partial_fit(part.X, part.y)
        other.partial_fit(part.X, part.y, sample_weight=part.weights)
    for x, y in zip(stream.X, stream.y, strict=True):
        events.learn_one(x, y)
    assert_same(whole, pieces, stream.X)
    assert_same(whole, events, stream.X)
    assert_same(weighted, other, stream.X)


@every_way
def test_large_blocks_and_threads_change_nothing(way, monkeypatch):
    stream = make_stream(9, n_rows=2500, n_classes=6)
    whole = ensemble(way).fit(stream.X, stream.y)
    monkeypatch.setattr(capacities, "WORTH_THREADS", 10**9)
    assert_same(whole, ensemble(way).fit(stream.X, stream.y), stream.X)
    monkeypatch.setattr(capacities, "ROWS_AT_ONCE", 7)
    assert_same(whole, ensemble(way).fit(stream.X, stream.y), stream.X)


@every_way
def test_learners_learn_as_if_they_were_alone(way):
    model = ensemble(way).partial_fit(STREAM.X, STREAM.y)
    alone = [learner.partial_fit(STREAM.X, STREAM.y) for learner in members()]
    assert model.mistakes_of_learners_ == [learner.n_mistakes_ for learner in alone]
    for i, learner in enumerate(alone):
        for name, array in learner._learner.arrays().items():
            np.testing.assert_array_equal(model._learner.arrays()[f"{i}.{name}"], array)


@every_way
def test_a_ensemble_of_one_says_what_it_says(way):
    alone = OnlineClassifier("multi", update="pa1")
    result = progressive_validate(alone, STREAM.X, STREAM.y)
    model = Ensemble([OnlineClassifier("multi", update="pa1")], way)
    found = progressive_validate(model, STREAM.X, STREAM.y)
    assert found.predictions.tolist() == result.predictions.tolist()
    assert found.n_mistakes == model.n_mistakes_ == alone.n_mistakes_
    if way != "majority":
        np.testing.assert_array_equal(found.probabilities, result.probabilities)
        np.testing.assert_array_equal(model.predict_proba(STREAM.X), alone.predict_proba(STREAM.X))


@every_way
def test_the_record_holds_what_was_said_before_each_answer(way):
    result = progressive_validate(Ensemble(members(), way), STREAM.X, STREAM.y)
    model = Ensemble(members(), way)
    for t, (x, y) in enumerate(zip(STREAM.X, STREAM.y.tolist(), strict=True)):
        known = model.predict_proba_one(x) if model.n_known_ else {}
        if known:
            assert model.predict_one(x) == result.predictions[t]
            assert sum(known.values()) == pytest.approx(1)
        found = [known[result.predictions[t]], known[y]] if y in known else [np.nan] * 2
        np.testing.assert_array_equal(result.probabilities[t], found)
        model.learn_one(x, y)


@every_way
def test_predicting_changes_nothing(way):
    model = ensemble(way).fit(STREAM.X, STREAM.y)
    before, rows = held(model), Rows.from_dense(STREAM.X)
    predicted, probabilities = model.predict(STREAM.X), model.predict_proba(STREAM.X)
    assert model.classes_[probabilities.argmax(axis=1)].tolist() == predicted.tolist()
    best = model._fitted().scores(rows).argmax(axis=1)
    assert model.classes_by_code_[best].tolist() == predicted.tolist()
    assert [model.predict_one(x) for x in STREAM.X] == predicted.tolist()
    assert held(model) == before


@every_way
def test_dense_sparse_and_named_rows_are_the_same(way):
    X = np.where(STREAM.X > 0, STREAM.X, 0)
    learners = [
        OnlineClassifier("multi", update="pa1"),
        OnlineClassifier("hybrid", "frequency", update="pa1"),
    ]
    dense = Ensemble(learners, way).fit(X, STREAM.y)
    others = Ensemble(learners, way).fit(sparse.csr_array(X), STREAM.y)
    assert_same(dense, others, X)
    named = [{f"x{i}": value for i, value in enumerate(row) if value} for row in X]
    model = Ensemble(learners, way).fit(named, STREAM.y)
    assert model.mistakes_of_learners_ == dense.mistakes_of_learners_
    assert model.n_mistakes_ == dense.n_mistakes_


@every_way
def test_labels_are_names_and_declared_classes_capacity(way):
    learners = [OnlineClassifier("multi", update="pa1"), LinearMax("romma")]
    plain = Ensemble(learners, way).partial_fit(STREAM.X, STREAM.y)
    names = np.array([*"fedcba"])
    named = Ensemble(learners, way).partial_fit(STREAM.X, names[STREAM.y], classes=names)
    assert held(named) == held(plain)
    assert named.predict(STREAM.X).tolist() == names[plain.predict(STREAM.X)].tolist()


@every_way
def test_files_and_pickles_go_on_as_if_never_stopped(way, tmp_path):
    whole = ensemble(way).partial_fit(STREAM.X, STREAM.y)
    model = ensemble(way).partial_fit(STREAM.X[:30], STREAM.y[:30])
    model.save(tmp_path / "model", seen=30)
    loaded = load(tmp_path / "model")
    assert loaded.notes_ == {"seen": 30} and loaded.combine == way
    for copy in (loaded, pickle.loads(pickle.dumps(model)), model):
        copy.partial_fit(STREAM.X[30:], STREAM.y[30:])
        assert_same(whole, copy, STREAM.X)
    assert [type(each).__name__ for each in loaded.learners].count("LinearMax") == 1
    # What was loaded can begin anew, like any estimator.
    assert_same(whole, clone(loaded).partial_fit(STREAM.X, STREAM.y), STREAM.X)


def test_update_takes_a_ensemble(tmp_path):
    whole = Ensemble(members()).fit(STREAM.X, STREAM.y)
    model = OnlineClassifier(update=members()).fit(STREAM.X, STREAM.y)
    assert_same(whole, model, STREAM.X)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert type(loaded) is OnlineClassifier
    assert_same(whole, loaded, STREAM.X)
    assert_same(
        Ensemble().fit(STREAM.X, STREAM.y),
        OnlineClassifier(update="ensemble").fit(STREAM.X, STREAM.y),
        STREAM.X,
    )


def test_learners_are_left_as_they_are():
    learner = OnlineClassifier("multi", update="pa1").partial_fit(STREAM.X[:9], STREAM.y[:9])
    n_known = learner.n_known_
    model = Ensemble([learner]).partial_fit(STREAM.X, STREAM.y)
    assert learner.n_trials_ == 9 and learner.n_known_ == n_known
    assert (
        model.n_mistakes_
        == OnlineClassifier("multi", update="pa1").partial_fit(STREAM.X, STREAM.y).n_mistakes_
    )


def test_some_learners_look_at_ratings_and_some_at_attributes():
    generator = np.random.default_rng(3)
    ratings = Ratings.from_dense(generator.normal(size=(80, 6, 4)), range(6), STREAM.X)
    model = Ensemble([OnlineClassifier("multi", update="pa1"), LinearMax("wma", "sub-experts")])
    model.partial_fit(ratings, STREAM.y)
    alone = OnlineClassifier("multi", update="pa1").partial_fit(STREAM.X, STREAM.y)
    assert model.mistakes_of_learners_[0] == alone.n_mistakes_
    assert len(model.predict(ratings)) == 80


def test_classes_join_groups_of_every_learner():
    groups = Grouped({"even": [0, 2, 4], "odd": [1, 3, 5]})
    model = Ensemble(
        [OnlineClassifier([groups], update="pa1"), OnlineClassifier("multi", update="pa1")]
    )
    model.fit(STREAM.X, STREAM.y).join_group(0, "new")
    assert "new" in model._learner.members[0].groups[0]


def test_the_bound_of_majority_is_reported():
    model = Ensemble(members(), "majority", demotion=0.5).fit(STREAM.X, STREAM.y)
    least = min(model.mistakes_of_learners_)
    bounded = (least * math.log(2) + math.log(5)) / math.log(4 / 3)
    assert model.mistake_bound_ == pytest.approx(bounded)
    assert model.n_mistakes_ <= model.mistake_bound_
    assert ensemble("best").fit(STREAM.X, STREAM.y).mistake_bound_ is None


def test_the_best_learner_is_found_and_a_change_followed():
    """A feature that determined the class is inverted: learners that forget recover first."""
    generator = np.random.default_rng(7)
    y = generator.integers(0, 2, 600)
    X = np.eye(2)[y]
    X[300:] = X[300:, ::-1]
    slow = OnlineClassifier("multi", update="pa1", averaged=True)
    fast = OnlineClassifier("multi", update="pa1")
    for way in ("best", "mixture"):
        model = Ensemble([slow, fast], way, discount=0.9).partial_fit(X, y)
        assert model.n_mistakes_ <= min(model.mistakes_of_learners_) + 5


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Ensemble([]), "give a list of learners"),
        (lambda: Ensemble("pa1"), "give a list of learners"),
        (lambda: Ensemble([OnlineOrdinalClassifier()]), "cannot be in an ensemble"),
        (lambda: Ensemble(["pa1"]), "cannot be in an ensemble"),
        (lambda: Ensemble([Ensemble()]), "is an ensemble itself"),
        (lambda: Ensemble(combine="vote"), "choose 'majority', 'best', 'mixture'"),
        (lambda: Ensemble(discount=0.0), "above 0 and at most 1"),
        (lambda: Ensemble(demotion=1.0), "above 0 and below 1"),
        (lambda: Ensemble(share=0.0), "above 0 and below 1"),
        (lambda: OnlineClassifier(link="p-norm", update="ensemble"), "does not fit each member"),
        (lambda: OnlineOrdinalClassifier(update="ensemble"), "ensemble"),
    ],
)
def test_what_is_no_ensemble_is_refused(made, words):
    model = made()
    with pytest.raises(KeslerError, match=words):
        model.fit(STREAM.X, STREAM.y)
    assert model._learner is None


def test_what_one_learner_refuses_none_learns():
    model = Ensemble([OnlineClassifier("multi", update="pa1"), LinearMax("romma")]).fit(
        STREAM.X, STREAM.y
    )
    before = held(model)
    with pytest.raises(KeslerError, match="ignores sample weights"):
        model.partial_fit(STREAM.X, STREAM.y, sample_weight=STREAM.weights * 3)
    with pytest.raises(KeslerError, match="cannot be ordered"):
        model.partial_fit(STREAM.X[:2], ["a", "b"])
    with pytest.raises(KeslerError, match="cannot be ordered"):
        model.learn_one(STREAM.X[0], "a")
    assert held(model) == before
    costly = Ensemble(
        [
            OnlineClassifier("multi", update="pa1"),
            OnlineClassifier("hybrid", "distance", update="pa1"),
        ]
    )
    costly.fit(STREAM.X, STREAM.y)
    before = held(costly)
    with pytest.raises(KeslerError, match="sparse rows"):
        costly.partial_fit(sparse.csr_array(STREAM.X), STREAM.y)
    assert held(costly) == before


def test_a_learner_that_cannot_step_is_told_of_and_the_others_learn():
    learners = [
        OnlineClassifier("multi", update=not_a_number),
        OnlineClassifier("multi", update="pa1"),
    ]
    model = Ensemble(learners)
    with pytest.raises(KeslerError, match="not a number that float32 can hold"):
        for x, y in zip(STREAM.X, STREAM.y, strict=True):
            model.learn_one(x, y)
    assert model.n_trials_ == model._learner.members[1].n_trials > 0


def test_other_bounds_and_weights_are_refused():
    with pytest.raises(KeslerError, match="mistake_bound_"):
        mistake_bound(ensemble(), STREAM.X, STREAM.y)
    with pytest.raises(KeslerError, match="an ensemble has no weights"):
        mistake_bound(
            OnlineClassifier("multi", update="perceptron"),
            STREAM.X,
            STREAM.y,
            competitor=ensemble().fit(STREAM.X, STREAM.y),
        )


# ---- estimators ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the rows are sorted by class")
@pytest.mark.parametrize("model", [Ensemble(combine=way) for way in WAYS], ids=WAYS)
def test_scikit_learn_checks_pass(model):
    why = "a row of weight 2 is one longer step, which is not two trials"
    names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    results = check_estimator(
        model, expected_failed_checks=dict.fromkeys(names, why), on_fail=None, on_skip=None
    )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {} and len(results) > 60


def test_the_command_line_learns_ensembles(tmp_path, capsys):
    rows = tmp_path / "rows.svm"
    lines = [
        f"{y} " + " ".join(f"{i + 1}:{value:.4f}" for i, value in enumerate(x))
        for x, y in zip(STREAM.X, STREAM.y, strict=True)
    ]
    rows.write_text("\n".join(lines) + "\n")
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    given = [rows, "--update", "ensemble"]
    assert kesler(capsys, "learn", whole, *given).code == 0
    assert kesler(capsys, "learn", pieces, *given, "--checkpoint", 30).code == 0
    assert held(load(whole)) == held(load(pieces))
    settings = [kesler(capsys, "predict", model, rows) for model in (whole, pieces)]
    assert len(settings[0].lines) == len(STREAM) and settings[0] == settings[1]

"""Bandit feedback: rules equal references, draws are reproducible, bad input is refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import reference_bandit as reference
from histories import file_of
from kesler import (
    BanditClassifier,
    Ensemble,
    KeslerError,
    OnlineClassifier,
    load,
    mistake_bound,
    progressive_validate,
)
from kesler.exploration import Greedy, InverseGap, Uniform
from kesler.updates import SOBA, Banditron
from streams import run_trials

K, N = 4, 300


def rows(seed: int = 0, n: int = N, width: int = 6, *, sparsely: bool = False) -> tuple[Any, Any]:
    """Return rows, of length 1, and the classes of a linear classifier."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width)).astype(np.float32)
    if sparsely:
        X *= rng.random(X.shape) < 0.4
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-6)
    return X, (X @ rng.normal(size=(width, K))).argmax(axis=1)


def texts() -> tuple[list[str], list[int]]:
    """Return texts and the class of each."""
    X, y = rows()
    return [" ".join(f"w{j}" for j in np.flatnonzero(row > 0)) for row in X], y.tolist()


# ---- references ---------------------------------------------------------------------------------

METHODS = {
    "banditron": (Banditron(), lambda: reference.Banditron(K, 6)),
    "soba": (SOBA(a=0.5), lambda: reference.SOBA(K, 6, a=0.5)),
    "soba diagonal": (SOBA(diagonal=True), lambda: reference.SOBA(K, 6, diagonal=True)),
}


@pytest.mark.parametrize("sparsely", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", METHODS)
def test_a_rule_equals_its_reference(name: str, sparsely: bool) -> None:
    rule, make = METHODS[name]
    X, y = rows(sparsely=sparsely)
    own = make()
    wanted = reference.run(own, X.astype(np.float64), y, 0.2, 11)
    model = BanditClassifier(classes=range(K), update=rule, exploration=0.2, seed=11)
    given_rows = sparse.csr_array(X) if sparsely else X
    shown = run_trials(model, given_rows, y)[0]
    assert shown.tolist() == wanted
    weights = model._learner.hypothesis_weights()[0].T
    np.testing.assert_allclose(weights[:, :6], own.W, rtol=2e-3, atol=2e-4)
    assert model.n_mistakes_ == (np.array(wanted) != y).sum()


# ---- draws --------------------------------------------------------------------------------------

SETTINGS: dict[str, dict[str, Any]] = {
    "banditron": {"update": "banditron"},
    "soba": {"update": "soba", "exploration": 0.3},
    "soba diagonal": {"update": SOBA(diagonal=True)},
    "default": {},
    "averaged margins, weighted": {
        "update": "pa1",
        "exploration": 0.1,
        "weighted": True,
        "averaged": True,
    },
    "all constraints over a map": {"update": "mira", "feature_map": "product-mean"},
}
KINDS = {"arrays": rows, "texts": texts}


@pytest.mark.parametrize(
    ("name", "kind"), [(name, [*KINDS][i % 2]) for i, name in enumerate(SETTINGS)]
)
def test_draws_do_not_depend_on_how_rows_come(name: str, kind: str, tmp_path: Path) -> None:
    X, y = KINDS[kind]()

    def new() -> BanditClassifier:
        return BanditClassifier(classes=range(K), seed=3, **SETTINGS[name])

    whole, in_parts, one_by_one = new(), new(), new()
    shown = run_trials(whole, X, y)[0]
    for part in (slice(0, 1), slice(1, 70), slice(70, N)):
        in_parts.partial_fit(X[part], y[part])
    for i in range(N):
        if i == N // 2:
            one_by_one.save(tmp_path / "model")
            one_by_one = load(tmp_path / "model")
        found = one_by_one.explore_one(X[i])
        assert found.label == shown[i]
        one_by_one.learn_feedback_one(X[i], found.label, right=found.label == int(y[i]))
    for other in (in_parts, one_by_one):
        np.testing.assert_array_equal(whole.decision_function(X), other.decision_function(X))
        np.testing.assert_array_equal(whole.predict_proba(X), other.predict_proba(X))
        assert other.n_mistakes_ == whole.n_mistakes_
    assert one_by_one.n_pending_ == 0


def test_other_seeds_draw_other_classes() -> None:
    X, y = rows()
    shown = {
        seed: run_trials(BanditClassifier(range(K), "banditron", 0.5, seed=seed), X, y)[0].tolist()
        for seed in (0, 1, 2**63 - 1)
    }
    assert len({tuple(each) for each in shown.values()}) == 3


def test_classes_are_shown_as_often_as_their_probabilities_say() -> None:
    X, y = rows()
    model = BanditClassifier(range(K), "pa1", InverseGap(2.0, 0.0), seed=5).partial_fit(X, y)
    wanted = np.array(list(model.exploration_proba_one(X[0]).values()))
    drawn = np.array([model.predict_one(X[0]) for _ in range(4000)])
    found = np.bincount(drawn, minlength=K) / len(drawn)
    assert abs(found - wanted).max() < 4 * 0.5 / np.sqrt(len(drawn))
    assert model.n_pending_ == len(drawn)


@settings(max_examples=100, deadline=None)
@given(
    scores=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=6),
    exploration=st.sampled_from([Greedy(), Uniform(0.3), Uniform(1.0, 0.5), InverseGap(5.0)]),
    n_trials=st.integers(0, 10**9),
)
def test_probabilities_sum_to_one(scores: list[float], exploration: Any, n_trials: int) -> None:
    from kesler.compiled.trial.exploration import draw

    array = np.array(scores, dtype=np.float32)
    winner, chances = int(array.argmax()), np.empty(len(array))
    parameters = np.array(exploration.parameters)
    shown = draw(exploration.kind, parameters, n_trials, 7, 9, array, winner, chances)
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    assert chances.min() >= 0
    assert chances[shown] > 0
    assert chances[winner] >= chances.max() - 1e-12


# ---- what is learnt -----------------------------------------------------------------------------


def feedback_of(update: str, right: bool) -> tuple[np.ndarray, int]:
    """Return the change of scores by feedback on one row, and the class that was shown."""
    X, y = rows()
    model = BanditClassifier(range(K), update, "greedy", hypotheses="multi").partial_fit(X, y)
    before, shown = model.decision_function(X[:1])[0], model.predict_one(X[0])
    model.learn_feedback_one(X[0], shown, right)
    return model.decision_function(X[:1])[0] - before, shown


def test_one_vs_rest_rules_lower_the_class_that_was_wrong_and_no_other() -> None:
    change, shown = feedback_of("ovr-squared", False)
    assert change[shown] < 0
    assert not np.delete(change, shown).any()


def test_margin_rules_raise_the_best_other_class_above_a_wrong_one() -> None:
    change, shown = feedback_of("pa1", False)
    assert change[shown] < 0
    assert sorted(np.sign(change)) == [-1, 0, 0, 1]


@pytest.mark.parametrize("update", ["pa1", "ovr-squared", "softmax"])
def test_a_right_class_is_learnt_as_any_target(update: str) -> None:
    X, y = rows()
    full = OnlineClassifier("multi", update=update)
    for label in range(K):
        full.learn_one(X[0], label)  # the first row of a class only makes it known
    model = BanditClassifier(range(K), update, exploration=1.0, hypotheses="multi")
    for x, label in zip(X, y.tolist(), strict=True):
        while model.predict_one(x) != label:
            pass
        model.learn_feedback_one(x, label, True)
        full.learn_one(x, label)
    np.testing.assert_array_equal(model.decision_function(X), full.decision_function(X))
    assert model.n_mistakes_ == 0


def test_late_feedback_takes_the_probability_of_the_draw() -> None:
    X, y = rows()
    model = BanditClassifier(range(K), "banditron", 0.5, seed=1).partial_fit(X, y)
    shown = [model.explore_one(x) for x in X[:5]]
    once = copy.deepcopy(model)
    for x, each in zip(X[:5], shown, strict=True):
        model.learn_feedback_one(x, each.label, True, probability=each.probability)
    first, second = shown[0], copy.deepcopy(once)
    once.learn_feedback_one(X[0], first.label, True)
    second.learn_feedback_one(X[0], first.label, True, probability=first.probability)
    np.testing.assert_array_equal(once.decision_function(X), second.decision_function(X))
    assert model.n_pending_ == 0


LEARNT_AND_ASKED: dict[str, tuple[Any, Any]] = {
    "array": ([1.0, 0.0], [1.0, 0.0]),
    "names": ({"win": 1.0}, {"win": 1.0, "now": 1.0}),
    "text": ("win", "win now"),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", LEARNT_AND_ASKED)
def test_feedback_on_a_class_that_is_no_longer_shown_needs_its_probability(
    kind: str, weighted: bool, tmp_path: Path
) -> None:
    learnt, x = LEARNT_AND_ASKED[kind]
    model = BanditClassifier(["a", "b"], "pa1", "greedy", weighted, hypotheses="multi")
    shown = model.explore_one(x)
    while model.predict([x])[0] == shown.label:
        model.learn_one(learnt, "b" if shown.label == "a" else "a")
    given, pending, before = copy.deepcopy(model), model.n_pending_, file_of(model, tmp_path)
    if weighted:
        with pytest.raises(KeslerError, match=f"does not show '{shown.label}' for this row"):
            model.learn_feedback_one(x, shown.label, True)
        assert model.n_pending_ == pending and file_of(model, tmp_path) == before
        assert kind == "array" or model.vocabulary_.names == ["win"]
    else:
        model.learn_feedback_one(x, shown.label, True)
    assert given.learn_feedback_one(x, shown.label, True, 1).n_pending_ == pending - 1
    assert given.n_trials_ == model.n_trials_ + weighted


@pytest.mark.parametrize("kind", ["names", "text"])
def test_a_question_numbers_no_name(kind: str) -> None:
    """Names of features are those of rows that were learnt."""
    learnt, x = LEARNT_AND_ASKED[kind]
    model = BanditClassifier(["a", "b"], "banditron", 0.5)
    for known in ([], ["win"]):
        for name in ("explore", "exploration_proba", "predict", "predict_proba", "predict_top"):
            getattr(model, f"{name}_one")(x)
            assert model.vocabulary_.names == known
        for name in ("predict", "predict_proba", "predict_top", "decision_function"):
            getattr(model, name)([x])
            assert model.vocabulary_.names == known
        model.learn_one(learnt, "a")


EXPLORATIONS = [
    ({}, "arrays", Greedy()),
    ({}, "texts", InverseGap()),
    ({"update": "pa1"}, "arrays", Greedy()),
    ({"update": "pa1"}, "texts", Greedy()),
    ({"update": "soba"}, "arrays", Uniform(0.05)),
    ({"update": "banditron"}, "texts", Uniform(0.05)),
    ({"update": "banditron", "exploration": "greedy"}, "arrays", Greedy()),
    ({"exploration": 0.3, "weighted": True, "seed": 7}, "texts", Uniform(0.3)),
]


@pytest.mark.parametrize(("given", "kind", "wanted"), EXPLORATIONS, ids=str)
def test_the_exploration_in_use_follows_from_the_rule_and_the_rows(
    given: dict[str, Any], kind: str, wanted: Any
) -> None:
    X, y = KINDS[kind]()
    model = BanditClassifier(range(K), **given).partial_fit(X[:9], y[:9])
    assert model.exploration_ == wanted
    resolved = model.resolved_
    assert (resolved.exploration, resolved.classes) == (wanted, [*range(K)])
    assert resolved.weighted is given.get("weighted", False)
    assert resolved.seed == given.get("seed", 0)


TABLE = [{"note": ["win cash", "team lunch"][i % 2], "size": float(i)} for i in range(6)]


@pytest.mark.parametrize(
    ("cells", "more", "settings"),
    [
        (TABLE, {"kind": "new"}, {"update": "pa1", "hypotheses": "multi"}),
        ([{"size": 1.0, "age": 2.0}] * 6, {}, {}),
    ],
    ids=["cells", "numbers"],
)
def test_feedback_on_rows_of_a_table_is_learnt_once_and_saved(
    cells: Any, more: dict[str, Any], settings: dict[str, Any], tmp_path: Path
) -> None:
    """Further columns leave classes waiting, and what was wrong is not learnt again as right."""
    model = BanditClassifier(["a", "b"], exploration="greedy", **settings)
    model.learn_one(cells[0], "a")
    n_draws = model._learner.stored["exploration.draws"]["n_drawn"][0]
    early = model.predict_one(cells[1])
    n_mistakes = model.n_mistakes_
    for row in [cell | more for cell in cells[2:4]]:
        shown, before = model.predict_one(row), model.decision_function([row])
        model.learn_feedback_one(row, shown, False)
        assert np.sign((model.decision_function([row]) - before).sum()) == (-1, 1)[shown == "a"]
    assert model.n_mistakes_ == n_mistakes + 2
    assert model.n_pending_ == 1 and model.n_trials_ == 3
    assert model._learner.stored["exploration.draws"]["n_drawn"][0] == n_draws + 3
    model.save(tmp_path / "model")
    other = load(tmp_path / "model")
    for each in (model, other):
        each.learn_feedback_one(cells[1], early, True)
    assert model.n_pending_ == other.n_pending_ == 0
    assert model.n_mistakes_ == other.n_mistakes_ == n_mistakes + 2
    np.testing.assert_array_equal(model.decision_function(cells), other.decision_function(cells))


def test_feedback_on_a_list_of_numbers_is_that_on_their_array() -> None:
    X, y = rows(n=40)
    array, numbers = (BanditClassifier(range(K), "banditron", 0.5, seed=4) for _ in range(2))
    for x, label in zip(X, y.tolist(), strict=True):
        shown = array.predict_one(x)
        assert numbers.predict_one(x.tolist()) == shown
        array.learn_feedback_one(x, shown, shown == label)
        numbers.learn_feedback_one(x.tolist(), shown, shown == label)
        np.testing.assert_array_equal(array.decision_function(X), numbers.decision_function(X))
    assert 0 < array.n_mistakes_ == numbers.n_mistakes_ < 40


def test_classes_may_be_added_again_and_again_before_the_first_row() -> None:
    model = BanditClassifier(classes=["b", "d"])
    assert model.n_pending_ == 0
    model.add_classes(["c"]).add_classes(["a", "b"]).add_classes([])
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    assert model.predict_proba([[1.0]]).tolist() == [[pytest.approx(1 / 4)] * 4]
    assert [*model.exploration_proba_one([1.0])] == ["b", "d", "c", "a"]
    assert model.classes_.tolist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("begin", ["", "explore", "learn"])
def test_classes_that_cannot_be_added_leave_those_there_are(begin: str) -> None:
    model = BanditClassifier(classes=["d", "a"])
    if begin == "explore":
        model.explore_one([1.0])
    elif begin == "learn":
        model.learn_one([1.0], "a")
    for classes, message in (
        (["b", 3], "cannot be ordered"),
        (["b", None], "label None is no class"),
        ("bc", "give a sequence of labels"),
        (3, "give a sequence of labels"),
    ):
        with pytest.raises(KeslerError, match=message):
            model.add_classes(classes)
        assert model.classes_.tolist() == ["a", "d"]
    assert model.add_classes(["b"]).classes_.tolist() == ["a", "b", "d"]
    assert model.predict_proba([[1.0]]).shape == (1, 3)


def test_a_classifier_is_fitted_from_its_first_draw_or_row_on() -> None:
    for begin in (lambda model: model.explore_one([1.0]), lambda model: model.learn_one([1.0], 0)):
        model = BanditClassifier(classes=range(K))
        with pytest.raises(NotFittedError):
            check_is_fitted(model)
        begin(model)
        check_is_fitted(model)


def test_classes_come_by_name() -> None:
    model = BanditClassifier(update="banditron", exploration=1.0)
    model.add_classes(["a"])
    shown = model.predict_one([1.0, 0.0])
    assert shown == "a"
    model.learn_feedback_one([1.0, 0.0], shown, False, new_class="b")
    assert model.classes_.tolist() == ["a", "b"]
    assert {model.predict_one([1.0, 0.0]) for _ in range(30)} == {"a", "b"}
    model.learn_one([1.0, 0.0], "c")  # simulated: the feedback names a class
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.n_trials_ == 2


def test_predictions_of_several_rows_do_not_explore() -> None:
    X, y = rows()
    model = BanditClassifier(range(K), "banditron", 1.0).partial_fit(X, y)
    best = model.decision_function(X).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), best)
    assert model.n_pending_ == 0


# ---- bad input ----------------------------------------------------------------------------------


def fitted() -> BanditClassifier:
    X, y = rows()
    model = BanditClassifier(range(K), "banditron", 0.5).partial_fit(X, y)
    model.predict_one(X[0])
    return model


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((9, True), "no class that is known"),
        (([0], True), "no class that is known"),
        ((None, "yes"), "must be True or False"),
        ((None, 1), "must be True or False"),
        ((None, True, 0.0), "above 0 and at most 1"),
        ((None, True, True), "above 0 and at most 1"),
        ((None, True, float("nan")), "above 0 and at most 1"),
        ((None, True, 1.5), "above 0 and at most 1"),
        ((None, True, "1"), "above 0 and at most 1"),
        ((None, True, None, 7), "only if the one that was shown is wrong"),
        ((None, False, None, "text"), "cannot be ordered"),
    ],
)
def test_bad_feedback_is_refused_and_nothing_is_learnt(
    arguments: tuple[Any, ...], message: str
) -> None:
    X, _ = rows()
    model = fitted()
    waiting = int(np.flatnonzero(model._learner.stored["exploration.pending"])[0])
    before, n_trials = model.decision_function(X), model.n_trials_
    predicted, *others = arguments
    with pytest.raises(KeslerError, match=message):
        model.learn_feedback_one(X[0], waiting if predicted is None else predicted, *others)
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert (model.n_trials_, model.n_pending_) == (n_trials, 1)
    model.learn_feedback_one(X[0], waiting, True)
    with pytest.raises(KeslerError, match="not waiting for feedback"):
        model.learn_feedback_one(X[0], waiting, True)


def test_a_row_that_is_refused_keeps_its_feedback_waiting() -> None:
    model = fitted()
    waiting = int(np.flatnonzero(model._learner.stored["exploration.pending"])[0])
    for x in ([np.nan] * 6, [1.0] * 5, {"a": 1.0}):
        with pytest.raises((KeslerError, ValueError)):
            model.learn_feedback_one(x, waiting, True)
    assert model.n_pending_ == 1
    assert model._learner.stored["exploration.given"]["probability"][0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"exploration": 0.0}, "above 0 and at most 1"),
        ({"exploration": 1.5}, "above 0 and at most 1"),
        ({"exploration": float("nan")}, "above 0 and at most 1"),
        ({"exploration": "thompson"}, "is not known"),
        ({"exploration": True}, "is not known"),
        ({"seed": -1}, "from 0 to"),
        ({"seed": 2**63}, "from 0 to"),
        ({"seed": 1.0}, "from 0 to"),
        ({"weighted": "yes"}, "True or False"),
        ({"classes": "ab"}, "sequence of labels"),
        ({"classes": 3}, "sequence of labels"),
        ({"classes": [0, "a"]}, "cannot be ordered"),
        ({"update": "soba", "C": 1.0}, "has no effect"),
        ({"update": "soba", "hypotheses": "hybrid"}, "one weight vector of each class"),
        ({"update": "banditron", "half_life": 10}, "half-life"),
        ({"update": "banditron", "preconditioner": "adagrad"}, "Euclidean"),
        ({"update": "ensemble"}, "ensemble"),
        ({"update": [OnlineClassifier()]}, "ensemble"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    X, y = rows()
    with pytest.raises(KeslerError, match=message):
        BanditClassifier(**{"classes": range(K), **arguments}).partial_fit(X, y)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SOBA(a=0.0),
        lambda: SOBA(a=float("inf")),
        lambda: SOBA(diagonal=1),  # type: ignore[arg-type]
        lambda: Uniform(0.0),
        lambda: Uniform(0.1, -1.0),
        lambda: InverseGap(0.0),
        lambda: InverseGap(1.0, float("nan")),
    ],
)
def test_bad_parts_are_refused(make: Any) -> None:
    with pytest.raises(KeslerError):
        make()


def test_rules_of_feedback_need_feedback() -> None:
    with pytest.raises(KeslerError, match="BanditClassifier"):
        OnlineClassifier(update=Banditron()).fit([[1.0], [0.0]], [0, 1])
    with pytest.raises(KeslerError, match="cannot be in an ensemble"):
        Ensemble([BanditClassifier([0, 1])]).fit([[1.0], [0.0]], [0, 1])
    with pytest.raises(KeslerError, match="no class is known"):
        BanditClassifier().predict_one([1.0])
    with pytest.raises(KeslerError, match="does not estimate its uncertainty"):
        fitted().predict_one(rows()[0][0], min_confidence=0.5)


# ---- bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.05, 0.3])
@pytest.mark.parametrize("update", ["banditron", "soba"])
def test_mistakes_are_at_most_the_bound(update: str, gamma: float) -> None:
    X, y = rows(n=2000)
    for seed in range(3):
        model = BanditClassifier(range(K), update, gamma, seed=seed, intercept=1.0)
        result = progressive_validate(model, X, y)
        found = mistake_bound(result)
        assert found.n_mistakes == result.n_mistakes <= found.bound
        assert found.bound == mistake_bound(model, X, y).bound


@pytest.mark.parametrize(
    "arguments",
    [
        {"update": "pa1"},
        {"update": SOBA(diagonal=True)},
        {"update": "soba", "exploration": "greedy"},
        {"update": "banditron", "exploration": Uniform(0.1, 0.5)},
        {"update": "banditron", "hypotheses": "hybrid"},
    ],
)
def test_runs_without_a_theorem_have_no_bound(arguments: dict[str, Any]) -> None:
    X, y = rows()
    with pytest.raises(KeslerError, match="theorem"):
        mistake_bound(BanditClassifier(range(K), **arguments), X, y)


FIRST_ROWS = {
    "named": ({"a": 1.0}, [{"a": 1.0}]),
    "text": ("a text", ["a text"]),
    "array": (np.array([1.0, 2.0]), np.array([[1.0, 2.0]])),
}


@pytest.mark.parametrize("kind", FIRST_ROWS)
def test_classes_that_are_declared_are_as_probable_before_any_row(kind):
    row, rows = FIRST_ROWS[kind]
    model, third = BanditClassifier(classes=["a", "b", "c"]), pytest.approx(1 / 3)
    batch = {name: getattr(model, name) for name in ("predict_proba", "predict_top", "predict")}
    for passed, named in ((rows,), {}), ((), {"X": rows}):
        (probabilities,), (ranked,), (label,) = (each(*passed, **named) for each in batch.values())
        assert probabilities.tolist() == [third] * 3 and label in [*"abc"]
        assert [(each.label, each.probability) for each in ranked] == [(c, third) for c in "abc"]
        assert model.decision_function(*passed, **named).tolist() == [[0.0] * 3]
        with pytest.raises(KeslerError, match="does not estimate its uncertainty"):
            model.predict(*passed, **named, min_confidence=0.5)
        (path,) = model.predict_path(*passed, **named)
        assert path.probability == 1 and path.path == ""
    for passed, named in ((row,), {}), ((), {"x": row}):
        assert model.predict_proba_one(*passed, **named) == dict.fromkeys("abc", third)
        assert model.predict_top_one(*passed, **named) == ranked
        assert model.predict_path_one(*passed, **named) == path
        with pytest.raises(KeslerError, match="does not estimate its uncertainty"):
            model.predict_one(*passed, **named, min_confidence=0.5)
    assert model._learner is None

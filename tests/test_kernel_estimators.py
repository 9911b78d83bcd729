"""Kernels of ranks, of feedback and of linear-threshold algorithms, beside explicit features.

Of any kernel, a root of the Gram matrix of all rows has a row of features for each of them, whose
inner products are those of the kernel: there the references of weights are those of kernels.
"""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import homemade
import reference_bandit
import reference_threshold
from kesler import (
    BanditClassifier,
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    load,
    progressive_validate,
)
from kesler.algorithms import ALMA, QuasiAdditive
from kesler.budgets import Budget
from kesler.kernels import RBF, Polynomial
from kesler.links import PNorm
from kesler.updates import SOBA, MarginPerceptron
from reference_ordinal import prank, reference_ordinal_run
from registry import Row
from streams import Stream, assert_same_in_any_split, held, make_stream, run_trials
from test_bandit import K
from test_bandit import rows as rows_of_bandits
from test_ordinal import KINDS, unit_steps
from test_ordinal import stream as ranked

RULES = ("perceptron", "pa1", "simperc", "conproj", "simproj", "hinge", "logistic")
SQUARES = Polynomial(degree=2, constant=1.0, scale=1.0)
WIDE = RBF(8.0)


def squared(X: Any) -> Any:
    """The features of (<x, z> + 1)^2: all products of two numbers of (x, 1)."""
    wide = np.hstack([X, np.ones((len(X), 1))])
    return np.einsum("ti,tj->tij", wide, wide).reshape(len(X), -1)


def root(X: Any) -> Any:
    """Rows whose inner products are exp(-||x - z||^2 / 16), those of the kernel `WIDE`."""
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    values, vectors = np.linalg.eigh(np.exp(-squares / 16))
    return vectors * np.sqrt(np.maximum(values, 0))


SPACES: dict[str, tuple[Any, Any]] = {
    "linear": ("linear", lambda X: X),
    "squares": (SQUARES, squared),
    "rbf": (WIDE, root),
}


# ---- ranks --------------------------------------------------------------------------------------

# The vectors of ranks, unlike the direction, have the constant of a row among what is squared.
OF_RANKS = [(h, s) for h in KINDS for s in SPACES if h == "single" or s != "squares"]


@pytest.mark.parametrize(("hypotheses", "space"), OF_RANKS)
@pytest.mark.parametrize("rule", RULES)
def test_ranks_over_a_kernel_are_those_over_its_features(rule, hypotheses, space):
    kernel, features = SPACES[space]
    own = float(space != "rbf")  # a distance does not depend on the constant
    reached = 0
    for seed in range(8):
        X, y = ranked(seed, n_rows=60, k=4)
        wide = np.hstack([np.ones((len(X), 1)), features(X)])
        asked = KINDS[hypotheses], rule, 0.3
        stop = reference_ordinal_run(wide, y, *asked, own=own)["doubtful"]
        if stop < 2:
            continue
        run = reference_ordinal_run(wide[:stop], y[:stop], *asked, own=own)
        update = Row(rule, "multi", None).update(0.3)
        model = OnlineOrdinalClassifier(hypotheses, update, kernel=kernel)
        found = progressive_validate(model, X[:stop], y[:stop])
        assert found.predictions.tolist() == run["predictions"]
        assert model.n_mistakes_ == run["mistakes"]
        assert_scores_are(model, run, X, wide, sorted(set(y[:stop].tolist())))
        reached += stop
    assert reached >= 40


def assert_scores_are(model: Any, run: Any, X: Any, wide: Any, known: list[int]) -> None:
    """Compare by how much ranks outscore their lower neighbours on all rows, and thresholds."""
    space, v = run["space"], run["v"]
    D = np.array([[space.instance(x, a, b) for a, b in pairwise(known)] for x in wide])
    scores = model._scores(X)[:, [model._learner.classes.code(r) for r in known]]
    close = 2e-4 * (1 + (np.abs(D) @ run["moved"]).max(initial=0))
    assert_allclose(np.diff(scores, axis=1), D @ v, atol=close, rtol=0)
    if "ordered" in space.kinds:
        below = v[space.starts["ordered"] + space.n - 1 :][known[1:]]
        assert_allclose(model.thresholds_, -below, atol=close, rtol=0)


@pytest.mark.parametrize("k", [2, 4])
def test_unit_steps_over_a_kernel_are_prank_over_its_features(k):
    X, y = ranked(3, 150, k)
    firsts = np.zeros((k, X.shape[1])), np.arange(k)[::-1]  # of equals PRank, too, predicts these
    model = OnlineOrdinalClassifier("single", unit_steps, kernel=SQUARES).fit(*firsts)
    y[0] = 0  # at the start all is tied, and PRank moves unless the highest rank is right
    predictions, _, thresholds = prank(squared(X), y, k)
    assert progressive_validate(model, X, y).predictions.tolist() == predictions
    assert_allclose(model.thresholds_, thresholds, atol=1e-5)


@pytest.mark.parametrize("hypotheses", ["single", "hybrid"])
def test_a_direction_that_decays_is_that_of_weights(hypotheses):
    X, y = ranked(2, n_rows=150, k=4)  # row weights double often enough to be divided twice
    asked: dict[str, Any] = {"half_life": 3.0, "C": 0.3}
    weights = OnlineOrdinalClassifier(hypotheses, "simproj", **asked).fit(X, y)
    over = OnlineOrdinalClassifier(hypotheses, "simproj", kernel="linear", **asked).fit(X, y)
    wanted = weights._scores(X)
    assert_allclose(over._scores(X), wanted, atol=1e-4 * np.abs(wanted).max(), rtol=0)
    assert_allclose(over.thresholds_, weights.thresholds_, atol=1e-4)


# ---- feedback -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sparsely", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("space", SPACES)
def test_banditron_over_a_kernel_is_that_over_its_features(space, sparsely):
    X, y = rows_of_bandits(n=200, sparsely=sparsely)
    X[~X.any(axis=1)] = [[0, 1, 0, 0, 0, 0]]  # of rows without numbers all scores may tie
    kernel, features = SPACES[space]
    Z = features(X.astype(float))
    own = reference_bandit.Banditron(K, Z.shape[1])
    wanted = reference_bandit.run(own, Z, y, 0.2, 11)
    model = BanditClassifier(range(K), "banditron", 0.2, seed=11, kernel=kernel)
    assert run_trials(model, sparse.csr_array(X) if sparsely else X, y)[0].tolist() == wanted
    assert model.n_mistakes_ == (np.array(wanted) != y).sum()
    scores = model.decision_function(sparse.csr_array(X) if sparsely else X)
    assert_allclose(scores, Z @ own.W.T, atol=2e-4 * (1 + np.abs(scores).max()), rtol=0)


@pytest.mark.parametrize("update", ["pa1", "ovr-squared", "softmax"])
def test_a_class_that_is_shown_and_right_is_learnt_over_a_kernel_as_any_target(update):
    X, y = rows_of_bandits(n=60)
    chosen: dict[str, Any] = {"update": update, "hypotheses": "multi", "kernel": SQUARES}
    full = OnlineClassifier(**chosen)
    for label in range(K):
        full.learn_one(X[0], label)  # the first row of a class only makes it known
    model = BanditClassifier(range(K), exploration=1.0, **chosen)
    for x, label in zip(X, y.tolist(), strict=True):
        while model.predict_one(x) != label:
            pass
        model.learn_feedback_one(x, label, True)
        full.learn_one(x, label)
    assert_array_equal(model.decision_function(X), full.decision_function(X))
    assert model.n_mistakes_ == 0


def test_feedback_over_a_kernel_finds_what_no_line_does():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1500, 2))
    y = np.digitize(np.hypot(X[:, 0], X[:, 1]), [0.8, 1.5])
    over_kernel = BanditClassifier(range(3), kernel="rbf").partial_fit(X, y)
    assert over_kernel.n_mistakes_ < 150
    assert BanditClassifier(range(3)).partial_fit(X, y).n_mistakes_ > 250
    # Until any row is learnt all classes have one score.
    begun = BanditClassifier(["a", "b"], kernel="rbf")
    assert begun.predict(X[:3]).tolist() == ["a", "a", "a"]


# ---- linear-threshold algorithms ----------------------------------------------------------------

ALGORITHMS: dict[str, tuple[Any, str]] = {
    "perceptron": ("perceptron", "perceptron"),
    "p-norm, p = 2": (QuasiAdditive(PNorm(2)), "perceptron"),
    "romma": ("romma", "romma"),
    "alma": ("alma", "alma"),
    "alma-p, p = 2": (ALMA(p=2.0), "alma"),
}


def threshold_run(name: str, Z: Any, y: Any) -> tuple[Any, list[int]]:
    """Mesterharm 2001: the algorithm on z = phi(x, y) - phi(x, rival); scores before each trial.

    The vector has a block of weights for each class. Return the blocks and the predictions.
    """
    k, n = int(max(y)) + 1, Z.shape[1]
    own = reference_threshold.ALGORITHMS[name](k * n)
    known, predictions = 0, []
    for x, right in zip(Z, y, strict=True):
        scores = own.w.reshape(k, n)[:known] @ x
        predictions.append(int(scores.argmax()) if known else -1)
        if right == known:
            known += 1
        elif known > 1:
            scores[right] = -np.inf
            z = np.zeros((k, n))
            z[right], z[int(scores.argmax())] = x, -x
            own.learn(z.ravel())
    return own.w.reshape(k, n), predictions


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms_over_a_kernel_are_those_over_its_features(name, space):
    (algorithm, reference), (kernel, features) = ALGORITHMS[name], SPACES[space]
    for seed in (1, 2):
        stream = make_stream(seed, n_rows=120, n_classes=4, density=1.0)
        Z = features(stream.X)
        blocks, predictions = threshold_run(reference, Z, stream.y)
        model = LinearMax(algorithm, kernel=kernel)
        assert run_trials(model, stream.X, stream.y)[0].tolist() == predictions
        scores, wanted = model._scores(stream.X), Z @ blocks.T
        assert_allclose(scores, wanted, atol=2e-3 * np.abs(wanted).max(), rtol=0)


@pytest.mark.parametrize("name", ["perceptron", "romma", "alma"])
@pytest.mark.parametrize("hypotheses", ["single", "hybrid"])
def test_algorithms_over_the_linear_kernel_are_those_of_weights(name, hypotheses):
    stream = make_stream(3, n_rows=150, density=1.0)
    weights = LinearMax(name, hypotheses, "product").fit(stream.X, stream.y)
    over = LinearMax(name, hypotheses, "product", kernel="linear").fit(stream.X, stream.y)
    assert over.n_mistakes_ == weights.n_mistakes_
    wanted = weights._scores(stream.X)
    assert_allclose(over._scores(stream.X), wanted, atol=2e-3 * np.abs(wanted).max(), rtol=0)


def test_a_budget_of_the_perceptron_forgets_the_oldest():
    stream = make_stream(4, n_rows=200, density=1.0)
    asked: dict[str, Any] = {"kernel": WIDE, "budget": 12}
    model = LinearMax("perceptron", **asked).fit(stream.X, stream.y)
    other = OnlineClassifier("multi", update="perceptron", preprocessing=None, **asked)
    assert model.n_support_vectors_ == [12]
    # Of equals the Perceptron of pairs does not move, that of LinearMax does.
    assert other.fit(stream.X, stream.y).n_support_vectors_ == [12]


# ---- the laws of all ----------------------------------------------------------------------------


class _Made:
    """A model by the words of its settings."""

    def __init__(self, kind: Any, **settings: Any) -> None:
        self.kind, self.settings = kind, settings

    def __call__(self) -> Any:
        return self.kind(**self.settings)


MADE = {
    "ranks": _Made(OnlineOrdinalClassifier, kernel="rbf"),
    "one direction": _Made(OnlineOrdinalClassifier, hypotheses="single", kernel="rbf", C=0.1),
    "a direction, averaged": _Made(
        OnlineOrdinalClassifier, hypotheses="hybrid", update="pa1", kernel=SQUARES, averaged=True
    ),
    "a direction, smallest": _Made(
        OnlineOrdinalClassifier, hypotheses="hybrid", kernel="rbf", budget=Budget(9, "smallest")
    ),
    "a direction, projectron": _Made(
        OnlineOrdinalClassifier,
        hypotheses="hybrid",
        update="simproj",
        kernel=WIDE,
        averaged=True,
        budget=Budget(9, "projectron"),
    ),
    "a direction that decays": _Made(
        OnlineOrdinalClassifier, hypotheses="single", update="pa1", kernel=WIDE, half_life=3.0
    ),
    "a direction and a map": _Made(
        OnlineOrdinalClassifier,
        hypotheses="hybrid",
        update="pa1",
        feature_map="difference",
        kernel=WIDE,
    ),
    "feedback": _Made(BanditClassifier, classes=range(5), kernel="rbf", seed=3),
    "feedback, averaged": _Made(
        BanditClassifier,
        classes=range(5),
        update="pa1",
        hypotheses="multi",
        kernel=WIDE,
        averaged=True,
        weighted=True,
    ),
    "feedback, budget": _Made(
        BanditClassifier, classes=range(5), update="banditron", kernel="rbf", budget=20
    ),
    "romma": _Made(LinearMax, algorithm="romma", kernel=WIDE, on_new_class="learn"),
    "alma": _Made(LinearMax, algorithm="alma", kernel=SQUARES, preprocessing="z-scores"),
    "perceptron": _Made(LinearMax, algorithm="perceptron", kernel="rbf", budget=15),
    "label budget": _Made(
        OnlineClassifier,
        hypotheses="multi",
        update="pa1",
        kernel=WIDE,
        averaged=True,
        label_budget=0.5,
    ),
}


def in_some_order(seed: int) -> Stream:
    """A stream whose classes do not come in their order, so that ranks are inserted."""
    stream = make_stream(seed, n_rows=130)
    return Stream(stream.X, np.array([2, 4, 0, 1, 3])[stream.y], stream.weights)


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_1_any_split_is_the_same(make):
    assert_same_in_any_split(make, in_some_order(3), [1, 5, 6, 70, 100])


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_2_save_load_go_on_is_never_stopped(make, tmp_path):
    stream = in_some_order(4)
    X, y = stream.X, stream.y
    whole = make().partial_fit(X, y)
    model = make().partial_fit(X[:60], y[:60])
    model.save(tmp_path / "model")
    for restored in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert held(restored) == held(model)
        assert_array_equal(restored.decision_function(X), model.decision_function(X))
        assert held(restored.partial_fit(X[60:], y[60:])) == held(whole)
        assert_array_equal(restored.decision_function(X), whole.decision_function(X))
        assert restored.get_params(deep=False) == whole.get_params(deep=False)


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_3_parameters_are_those_given_and_what_is_in_use_learns_the_same(make):
    stream = in_some_order(5)
    model = make()
    assert {n: model.get_params(deep=False)[n] for n in make.settings} == make.settings
    assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    model.partial_fit(stream.X, stream.y)
    again = clone(model.resolved_).partial_fit(stream.X, stream.y)
    assert_array_equal(again.decision_function(stream.X), model.decision_function(stream.X))


SPARSELY = [name for name, make in MADE.items() if make.settings.get("preprocessing") is None]


@pytest.mark.parametrize("name", [n for n in SPARSELY if "map" not in n])
def test_4_dense_and_sparse_rows_are_the_same(name):
    stream = in_some_order(6)
    chosen = {} if "preprocessing" not in MADE[name]().get_params() else {"preprocessing": None}
    models = [MADE[name]().set_params(**chosen) for _ in range(2)]
    if name == "feedback":  # which explores in another way on such rows
        models = [each.set_params(exploration="greedy") for each in models]
    forms = [stream.X, sparse.csr_array(stream.X)]
    shown = [run_trials(m, X, stream.y)[0] for m, X in zip(models, forms, strict=True)]
    assert shown[0].tolist() == shown[1].tolist()
    one, other = (m.decision_function(X) for m, X in zip(models, forms, strict=True))
    assert_allclose(one, other, atol=1e-5 * (1 + np.abs(one).max()), rtol=0)


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_5_contributions_sum_to_the_score(make):
    stream = in_some_order(7)
    model = make().partial_fit(stream.X, stream.y)
    for x in stream.X[:5]:
        found = model.explain_one(x)
        total = sum(each.score for each in found.summands)
        assert total == pytest.approx(found.score, abs=2e-4 * (1 + abs(found.score)))


def test_means_of_other_answers_are_the_means_of_all_scores():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    sets = (X @ rng.normal(size=(3, 3)) > 0).astype(int)
    orders = (X @ rng.normal(size=(3, 3))).argsort(axis=1)
    for kind, targets in ((OnlineMultilabelClassifier, sets), (OnlineLabelRanker, orders)):
        last = kind("multi", update="simproj", kernel=SQUARES)
        means, scores = clone(last).set_params(averaged=True), []
        for x, target in zip(X, targets, strict=True):
            last.partial_fit(x[None], target[None])
            means.partial_fit(x[None], target[None])
            scores.append(last._scores(X))
        found, wanted = means._scores(X), np.mean(scores, axis=0)
        assert_allclose(found, wanted, atol=2e-4 * np.abs(wanted).max(), rtol=0)


# ---- what is refused ----------------------------------------------------------------------------

OVER: dict[str, Any] = {"kernel": "rbf", "sigma": 2.0}
REFUSED: dict[str, tuple[Any, str]] = {
    "means of removed rows": (
        OnlineClassifier(update="pa1", averaged=True, budget=9, **OVER),
        "would have to be kept",
    ),
    "means under the smallest": (
        OnlineOrdinalClassifier(averaged=True, budget=Budget(9, "smallest"), **OVER),
        "projectron",
    ),
    "means that decay": (
        OnlineClassifier(update="pa1", averaged=True, half_life=9.0, **OVER),
        "mean over all trials",
    ),
    "wma": (LinearMax("wma", **OVER), "inner products alone"),
    "winnow": (LinearMax("winnow", **OVER), "inner products alone"),
    "p-norm": (LinearMax("p-norm", **OVER), "inner products alone"),
    "alma-p": (LinearMax("alma-p", **OVER), "inner products alone"),
    "a user's algorithm": (LinearMax(homemade.counted, **OVER), "inner products alone"),
    "romma, sigma of rows": (LinearMax("romma", kernel="rbf"), "give a number as sigma"),
    "romma, a budget": (LinearMax("romma", budget=9, **OVER), "leave it out"),
    "alma, ranges": (LinearMax("alma", preprocessing="ranges", **OVER), "choose"),
    "soba": (BanditClassifier(range(3), "soba", **OVER), "banditron"),
    "soba with a diagonal": (BanditClassifier(range(3), SOBA(diagonal=True), **OVER), "banditron"),
    "projectron++ of a direction": (
        OnlineOrdinalClassifier(
            "single", MarginPerceptron(), budget=Budget(9, "projectron++"), **OVER
        ),
        "one step for the whole update",
    ),
    "forgetron of a direction": (
        OnlineOrdinalClassifier("single", "perceptron", budget=Budget(9, "forgetron"), **OVER),
        "thresholds",
    ),
    "a direction without a constant": (
        OnlineOrdinalClassifier("single", intercept=0.0, **OVER),
        "without thresholds",
    ),
    "sigma without a kernel": (LinearMax(sigma=2.0), "omit"),
    "a budget without a kernel": (OnlineOrdinalClassifier(budget=3), "omit budget"),
}


@pytest.mark.parametrize(("model", "words"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_meaning_over_a_kernel_is_refused_in_a_sentence(model, words):
    with pytest.raises(KeslerError) as caught:
        model.fit(np.eye(3), [0, 1, 2])
    text = str(caught.value)
    assert words in text and len(text.split()) > 12 and "\n" not in text

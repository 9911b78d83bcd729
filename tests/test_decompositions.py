"""Decompositions: against scikit-learn's, against decoders by hand, and the facts about them."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from kesler import ErrorCorrectingCode, KeslerError, OneVsOne, OneVsRest, OnlineClassifier
from kesler.decompositions.error_correcting_code import (
    exhaustive_code,
    hadamard_code,
    most_bits,
    random_code,
    row_distance,
)
from kesler.sharing.shareboost import ShareBoostClassifier

SGD = SGDClassifier(random_state=0, learning_rate="constant", eta0=0.1)
ONLINE = OnlineClassifier("multi", update="pa1", intercept=1.0)
TREE = DecisionTreeClassifier(random_state=0)
ESTIMATORS = [
    OneVsRest(),
    OneVsOne(),
    OneVsOne(decoding="tournament"),
    OneVsOne(decoding="margins"),
    ErrorCorrectingCode(n_codes=5, random_state=0),
    ErrorCorrectingCode(code="sparse", n_codes=5, decoding="hamming", random_state=0),
]


def made(subject: Any, estimator: Any, **settings: Any) -> Any:
    return clone(subject).set_params(estimator=estimator, **settings)


def clusters(n_classes: int = 5, n_rows: int = 150, seed: int = 0, spread: float = 1.0) -> Any:
    random = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), random.integers(n_classes, size=n_rows - n_classes)]
    centres = random.normal(scale=3, size=(n_classes, 4))
    return centres[y] + random.normal(scale=spread, size=(n_rows, 4)), y


class Column(ClassifierMixin, BaseEstimator):
    """A binary learner whose margin is a column of the row."""

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def fit(self, X: Any, y: Any) -> Column:
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Any) -> Any:
        return X[:, self.column]

    def predict(self, X: Any) -> Any:
        return (X[:, self.column] > 0).astype(int)


class Votes(ClassifierMixin, BaseEstimator):
    """A binary learner that predicts labels only."""

    def fit(self, X: Any, y: Any) -> Votes:
        self.classes_, self.inner_ = np.unique(y), LinearDiscriminantAnalysis().fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return self.inner_.predict(X)


def with_margins(subject: Any, margins: Any, n_classes: int) -> Any:
    """Return a model whose binary learners have these margins, one column each."""
    rows = np.zeros((n_classes, margins.shape[1]))
    model = made(subject, DummyClassifier()).fit(rows, np.arange(n_classes))
    columns = [Column(column).fit(None, [0, 1]) for column in range(len(model.estimators_))]
    name = "_learners" if isinstance(model, OneVsRest) else "estimators_"
    setattr(model, name, columns)
    return model


@st.composite
def small_margins(draw: Any, most_classes: int = 6) -> tuple[int, Any]:
    """Whole numbers near 0, so that there are ties; columns for each pair."""
    n_classes = draw(st.integers(2, most_classes))
    n_pairs = n_classes * (n_classes - 1) // 2
    rows = st.lists(st.integers(-2, 2), min_size=n_pairs, max_size=n_pairs)
    return n_classes, np.array(draw(st.lists(rows, min_size=1, max_size=5)), dtype=float)


# ---- beside scikit-learn ------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [LinearDiscriminantAnalysis(), GaussianNB()], ids=repr)
def test_one_vs_rest_is_scikit_learns(learner):
    X, y = clusters(spread=2.5)
    ours, theirs = OneVsRest(learner).fit(X, y), OneVsRestClassifier(learner).fit(X, y)
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()
    if hasattr(theirs, "decision_function"):
        np.testing.assert_array_equal(ours.decision_function(X), theirs.decision_function(X))


def test_one_vs_one_majority_is_scikit_learns():
    X, y = clusters(spread=2.5)
    ours = OneVsOne(LinearDiscriminantAnalysis()).fit(X, y)
    theirs = OneVsOneClassifier(LinearDiscriminantAnalysis()).fit(X, y)
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-6)


def test_hamming_decoding_is_scikit_learns_where_its_distances_are_of_bits():
    """scikit-learn decodes 0/1 answers by Euclidean distance, which orders as Hamming's does."""
    X, y = clusters(spread=2.5)
    theirs = OutputCodeClassifier(TREE, code_size=2, random_state=0).fit(X, y)
    code = 2 * theirs.code_book_ - 1
    ours = ErrorCorrectingCode(TREE, code=code, decoding="hamming").fit(X, y)
    further = clusters(seed=7)[0]
    assert ours.predict(further).tolist() == theirs.predict(further).tolist()


# ---- decoders by hand ---------------------------------------------------------------------------


def one_vs_one_by_hand(n_classes: int, margins: Any) -> tuple[list[int], list[int]]:
    """Votes and sums of margins; the columns are (0, 1), (0, 2), (1, 2), (0, 3), ..."""
    votes, sums = [0] * n_classes, [0.0] * n_classes
    columns = iter(margins)
    for second in range(n_classes):
        for first in range(second):
            margin = next(columns)
            votes[first if margin >= 0 else second] += 1
            sums[first] += margin
            sums[second] -= margin
    return votes, sums


@given(small_margins())
def test_majority_breaks_ties_by_margins_and_then_by_age(case):
    n_classes, margins = case
    model = with_margins(OneVsOne(), margins, n_classes)
    expected = []
    for row in margins:
        votes, sums = one_vs_one_by_hand(n_classes, row)
        expected.append(max(range(n_classes), key=lambda r: (votes[r], sums[r], -r)))
    assert model.predict(margins).tolist() == expected
    assert model.n_evaluations_ == margins.shape[1]


@given(small_margins())
def test_margins_are_summed(case):
    n_classes, margins = case
    model = with_margins(OneVsOne(decoding="margins"), margins, n_classes)
    sums = np.array([one_vs_one_by_hand(n_classes, row)[1] for row in margins])
    scores = sums if n_classes > 2 else sums[:, 1] - sums[:, 0]
    np.testing.assert_array_equal(model.decision_function(margins), scores)
    assert model.predict(margins).tolist() == sums.argmax(axis=1).tolist()


@given(small_margins(8))
def test_a_tournament_is_one_of_single_elimination(case):
    n_classes, margins = case
    model = with_margins(OneVsOne(decoding="tournament"), margins, n_classes)
    column = {pair: number for number, pair in enumerate(model.pairs_)}
    expected = []
    for row in margins:
        left, asked = list(range(n_classes)), 0
        while len(left) > 1:
            matches = [left[at : at + 2] for at in range(0, len(left), 2)]
            left = []
            for match in matches:
                asked += len(match) - 1
                wins = len(match) == 1 or row[column[min(match), max(match)]] >= 0
                left.append(min(match) if wins else max(match))
        expected.append(left[0])
        assert asked == model.n_evaluations_ == n_classes - 1
    assert model.predict(margins).tolist() == expected


def test_a_tournament_asks_each_row_n_classes_less_1_learners(monkeypatch):
    X, y = clusters(7, 60)
    model = OneVsOne(LinearDiscriminantAnalysis(), decoding="tournament").fit(X, y)
    asked = []
    plain = LinearDiscriminantAnalysis.decision_function
    monkeypatch.setattr(
        LinearDiscriminantAnalysis,
        "decision_function",
        lambda self, X: asked.append(len(X)) or plain(self, X),
    )
    model.predict(X)
    assert sum(asked) == 6 * len(X)
    assert not hasattr(model, "decision_function")


def test_the_order_in_a_tournament_is_that_of_classes():
    """Of classes seen as c, b, a, the first match is a with b, which c sits out."""
    model = OneVsOne(SGD, decoding="tournament")
    model.partial_fit([[0.0] * 3] * 3, ["c", "b", "a"])
    assert model.pairs_ == [("c", "b"), ("c", "a"), ("b", "a")]
    model.estimators_ = [Column(column).fit(None, [0, 1]) for column in range(3)]
    # b beats a, so that a's win over c is never evaluated.
    assert model.predict([[1.0, -1.0, 1.0]]).tolist() == ["c"]
    assert model.predict([[1.0, -1.0, -1.0]]).tolist() == ["a"]


LOSSES = {
    "hinge": lambda z: max(0.0, 1.0 - z),
    "exponential": lambda z: np.exp(-z),
    "logistic": lambda z: np.log(1.0 + np.exp(-z)),
}
CODES = [exhaustive_code(3), hadamard_code(5)] + [
    random_code(kind, 5, 9, 10, np.random.RandomState(0)) for kind in ("dense", "sparse")
]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("code", CODES, ids=lambda code: str(code.shape))
def test_loss_decoding_sums_the_loss_of_each_bit(code, loss):
    margins = np.random.default_rng(0).normal(scale=2, size=(40, code.shape[1]))
    subject = ErrorCorrectingCode(code=code, loss=loss)
    model = with_margins(subject, margins, len(code))
    losses = [
        [sum(LOSSES[loss](m * f) for m, f in zip(word, row, strict=True)) for word in code]
        for row in margins
    ]
    np.testing.assert_allclose(model.decision_function(margins), -np.array(losses))
    assert model.predict(margins).tolist() == np.argmin(losses, axis=1).tolist()


@pytest.mark.parametrize("code", CODES, ids=lambda code: str(code.shape))
def test_hamming_decoding_counts_bits_and_ties_go_to_the_first_known_class(code):
    margins = np.random.default_rng(0).integers(-1, 2, size=(60, code.shape[1])).astype(float)
    model = with_margins(ErrorCorrectingCode(code=code, decoding="hamming"), margins, len(code))
    distances = [
        [sum((1 - np.sign(m * f)) / 2 for m, f in zip(word, row, strict=True)) for word in code]
        for row in margins
    ]
    np.testing.assert_array_equal(model.decision_function(margins), -np.array(distances))
    expected = [row.index(min(row)) for row in distances]
    assert model.predict(margins).tolist() == expected
    assert any(row.count(min(row)) > 1 for row in distances)


def test_exponential_loss_bears_any_margin():
    code = exhaustive_code(3)
    margins = np.array([[1e6, -1e6, 1e6]])
    model = with_margins(ErrorCorrectingCode(code=code, loss="exponential"), margins, 3)
    assert np.isfinite(model.decision_function(margins)).all()


def test_one_vs_rest_counts_the_features_that_its_classes_choose_together():
    generator = np.random.default_rng(0)
    y = np.arange(90) % 6
    X = generator.normal(size=(90, 12))
    X[:, :6] += 2 * np.eye(6)[y]
    model = OneVsRest(ShareBoostClassifier(4)).fit(X, y)
    chosen = np.array([learner.support_ for learner in model.estimators_])
    counts = [len(np.unique(chosen[:, :t])) for t in (1, 2, 3, 4)]
    assert model.n_features_by_round_ == counts
    assert counts == sorted(counts) and counts[-1] > 4
    assert (model.predict(X) == y).mean() > 0.8
    with pytest.raises(AttributeError, match="path_"):
        OneVsRest(GaussianNB()).fit(X, y).n_features_by_round_  # noqa: B018


def test_one_vs_rest_gives_equal_margins_to_the_first_known_class():
    X = [[0.0, 0.0]] * 3
    assert OneVsRest(DummyClassifier(strategy="prior")).fit(X, list("cba")).predict(X)[0] == "a"
    model = OneVsRest(OnlineClassifier("multi", update="perceptron")).partial_fit(X, list("cba"))
    assert model.predict(X)[0] == "c"


# ---- the lecture's facts ------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_where_every_pair_is_separated_majority_and_tournament_are_right(seed, n_classes):
    X, y = clusters(n_classes, 12 * n_classes, seed, spread=0.5)
    assume(min(Counter(y.tolist()).values()) > 1)
    model = OneVsOne(LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.01)).fit(X, y)
    for (first, second), learner in zip(model.pairs_, model.estimators_, strict=True):
        within = np.isin(y, (first, second))
        assume((learner.predict(X[within]) == (y[within] == first)).all())
    assert model.predict(X).tolist() == y.tolist()
    assert model.set_params(decoding="tournament").predict(X).tolist() == y.tolist()


def test_classes_along_a_line_are_beyond_one_vs_rest_and_not_beyond_pairs():
    """No class but the outer two is separable from the rest, and every pair is separable."""
    y = np.repeat(np.arange(5), 20)
    X = (10.0 * y + np.tile(np.linspace(-1, 1, 20), 5))[:, None]
    learner = LinearDiscriminantAnalysis()
    rest = OneVsRest(learner).fit(X, y).predict(X)
    assert (rest[np.isin(y, (1, 2, 3))] != y[np.isin(y, (1, 2, 3))]).any()
    for subject in (OneVsOne(), OneVsOne(decoding="tournament")):
        assert (made(subject, learner).fit(X, y).predict(X) == y).all()
    pairs = list(combinations(range(5), 2))
    code = [[(r == first) - (r == second) for first, second in pairs] for r in range(5)]
    for decoding in ("loss", "hamming"):
        model = ErrorCorrectingCode(learner, code=code, decoding=decoding).fit(X, y)
        assert (model.predict(X) == y).all()


@pytest.mark.parametrize("n_classes", range(2, 40))
def test_hadamard_rows_differ_in_half_of_the_order(n_classes):
    code = hadamard_code(n_classes)
    order = code.shape[1] + 1
    distances = {int((a != b).sum()) for a, b in combinations(code, 2)}
    assert distances == {order // 2}
    assert order // 2 < n_classes <= order
    assert_columns_differ(code)


@pytest.mark.parametrize("n_classes", range(2, 9))
def test_exhaustive_codes_have_every_split_once(n_classes):
    code = exhaustive_code(n_classes)
    assert code.shape == (n_classes, 2 ** (n_classes - 1) - 1)
    assert row_distance(code) == max(1, 2 ** (n_classes - 2))
    assert_columns_differ(code)


def assert_columns_differ(code: Any) -> None:
    words = {tuple(column) for column in code.T} | {tuple(-column) for column in code.T}
    assert len(words) == 2 * code.shape[1]
    assert all({-1, 1} <= set(word) for word in words)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 12, 40])
def test_random_codes_have_good_columns_and_the_best_is_taken(kind, n_classes):
    X, y = np.eye(n_classes), np.arange(n_classes)
    subject = ErrorCorrectingCode(DummyClassifier(), code=kind, random_state=3)
    one, many = (clone(subject).set_params(n_codes=n).fit(X, y) for n in (1, 60))
    assert_columns_differ(many.code_)
    usual = np.ceil({"dense": 10, "sparse": 15}[kind] * np.log2(n_classes))
    assert many.code_.shape[1] == min(usual, most_bits(kind, n_classes)) == many.n_evaluations_
    by_hand = min(
        sum((1 - int(a) * int(b)) / 2 for a, b in zip(*pair, strict=True))
        for pair in combinations(many.code_, 2)
    )
    assert many.distance_ == by_hand >= one.distance_
    if n_classes == 40:
        assert many.distance_ > one.distance_
        assert (many.code_ == 0).any() == (kind == "sparse")


@pytest.mark.parametrize(("kind", "n_classes"), [("dense", 4), ("sparse", 3), ("sparse", 4)])
def test_most_bits_is_the_number_of_different_columns(kind, n_classes):
    """Counted by hand: every column with both signs, opposites once."""
    signs = (-1, 1) if kind == "dense" else (-1, 0, 1)
    grid = np.array(np.meshgrid(*[signs] * n_classes)).reshape(n_classes, -1).T
    both = [column for column in grid.tolist() if {-1, 1} <= set(column)]
    assert most_bits(kind, n_classes) == len(both) // 2


# ---- streams ------------------------------------------------------------------------------------


def stream(order: Any = (4, 3, 2, 1, 0)) -> list[tuple[Any, Any]]:
    """Batches in which classes appear one or two at a time."""
    X, y = clusters()
    y = np.asarray(order)[y]
    first = [0, 2, 3, 5]  # how many classes there are by the end of each batch
    batches = []
    for known in first[1:]:
        rows = np.flatnonzero(np.isin(y, order[:known]))[: 25 * known]
        batches.append((X[rows], y[rows]))
    return batches


def test_one_vs_rest_is_taught_as_if_all_classes_had_been_declared():
    theirs, ours = OneVsRestClassifier(SGD), OneVsRest(SGD)
    for X, y in stream():
        theirs.partial_fit(X, y, classes=range(5))
        ours.partial_fit(X, y)
    assert ours.classes_.tolist() == [0, 1, 2, 3, 4]
    assert ours.n_evaluations_ == len(ours.estimators_) == 5
    assert ours.classes_by_code_.tolist() != ours.classes_.tolist()
    for learner, reference_learner in zip(ours.estimators_, theirs.estimators_, strict=True):
        np.testing.assert_array_equal(learner.coef_, reference_learner.coef_)
    np.testing.assert_array_equal(ours.decision_function(X), theirs.decision_function(X))
    assert (ours.predict(X) == y).mean() > 0.8


def test_one_vs_one_is_taught_as_if_all_classes_had_been_declared():
    """The class seen first is positive, and scikit-learn has the last one positive."""
    theirs, ours = OneVsOneClassifier(SGD), OneVsOne(SGD)
    for X, y in stream():
        rows = np.argsort(-y, kind="stable")  # within a batch too, classes are seen from the last
        theirs.partial_fit(X[rows], y[rows], classes=range(5))
        ours.partial_fit(X[rows], y[rows])
    learnt = dict(zip(ours.pairs_, ours.estimators_, strict=True))
    for (first, second), learner in zip(combinations(range(5), 2), theirs.estimators_, strict=True):
        np.testing.assert_array_equal(learnt[second, first].coef_, learner.coef_)
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()
    assert (ours.predict(X) == y).mean() > 0.8


@pytest.mark.parametrize("kind", ["hadamard", "sparse"])
def test_each_bit_is_taught_the_rows_of_its_classes(kind):
    model = ErrorCorrectingCode(SGD, code=kind, random_state=0)
    references = None
    for X, y in stream():
        model.partial_fit(X, y, classes=range(5))
        n_bits = model.code_.shape[1]
        references = references or [clone(SGD) for _ in range(n_bits)]
        words = dict(zip(model.classes_, model.code_, strict=True))
        for bit, reference_learner in enumerate(references):
            signs = np.array([words[label][bit] for label in y])
            if signs.any():
                reference_learner.partial_fit(
                    X[signs != 0], signs[signs != 0] > 0, classes=[False, True]
                )
    for learner, reference_learner in zip(model.estimators_, references, strict=True):
        np.testing.assert_array_equal(learner.coef_, reference_learner.coef_)
    assert (model.predict(X) == y).mean() > 0.8


def test_bits_are_asked_once_they_tell_known_classes_apart():
    pairs_as_code = [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]
    model = ErrorCorrectingCode(SGD, code=pairs_as_code, loss="hinge")
    asked = []
    for label in ("a", "b", "c"):
        model.partial_fit([[0.0]], [label], classes=["a", "b", "c"])
        asked.append(model.n_evaluations_)
    assert asked == [0, 1, 3]
    assert ErrorCorrectingCode(SGD).partial_fit([[0.0]], ["a"]).predict([[1.0]]).tolist() == ["a"]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_random_codes_grow_with_the_classes(kind):
    model = ErrorCorrectingCode(SGD, code=kind, random_state=0)
    before = {}
    for X, y in stream():
        model.partial_fit(X, y)
        words = dict(zip(model.classes_.tolist(), model.code_.tolist(), strict=True))
        assert before.items() <= words.items()
        assert model.distance_ > 0.3 * model.code_.shape[1]
        before = words
    assert model.n_evaluations_ <= len(model.estimators_) == (60 if kind == "dense" else 90)
    assert (model.predict(X) == y).mean() > 0.8


@pytest.mark.parametrize("subject", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("learner", [SGD, ONLINE], ids=repr)
def test_classes_may_appear_row_by_row(subject, learner):
    model = made(subject, learner)
    if isinstance(subject, ErrorCorrectingCode):
        model.set_params(n_bits=15)
    X, y = clusters(4, 40, spread=0.3)
    names = np.array(["ant", "bee", "cow", "dog"])[y]
    for row in range(len(y)):
        model.partial_fit(X[row : row + 1], names[row : row + 1])
        assert model.classes_.tolist() == sorted(set(names[: row + 1].tolist()))
        assert set(model.predict(X[:3]).tolist()) <= set(model.classes_.tolist())
    assert (model.predict(X) == names).mean() > 0.7


@pytest.mark.parametrize("subject", ESTIMATORS[:3], ids=repr)
def test_a_class_may_appear_after_fit(subject):
    X, y = clusters(3, 90)
    model = made(subject, SGD).fit(X[y < 2], y[y < 2])
    model.partial_fit(X, y).partial_fit(X, y)
    assert (model.predict(X) == y).mean() > 0.9
    again = clone(model).fit(X[y < 2], y[y < 2])
    fitted = model.fit(X[y < 2], y[y < 2])
    assert fitted.predict(X).tolist() == again.predict(X).tolist()
    assert fitted.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("subject", ESTIMATORS, ids=repr)
def test_declared_classes_are_known_from_their_first_row(subject):
    model = made(subject, SGD).partial_fit([[0.0], [1.0]], ["b", "a"], classes=["a", "b", "c"])
    assert model.classes_.tolist() == ["a", "b"]
    if isinstance(subject, ErrorCorrectingCode):
        assert model.code_.shape[0] == 2


# ---- common laws --------------------------------------------------------------------------------


@pytest.mark.parametrize("subject", ESTIMATORS, ids=repr)
def test_jobs_pickles_and_sparse_rows_change_nothing(subject):
    X, y = clusters(4, 60)
    X[X < 0] = 0.0
    expected = made(subject, SGD).fit(X, y)
    labels = expected.predict(X).tolist()
    assert made(subject, SGD, n_jobs=2).fit(X, y).predict(X).tolist() == labels
    assert pickle.loads(pickle.dumps(expected)).predict(X).tolist() == labels
    csc = sparse.csc_array(X)
    of_rows, of_entries = (made(subject, TREE).fit(each, y) for each in (X, csc))
    assert of_rows.predict(X).tolist() == of_entries.predict(csc).tolist()
    again = pickle.loads(pickle.dumps(expected)).partial_fit(X, y).predict(X).tolist()
    assert again == expected.partial_fit(X, y).predict(X).tolist()


@pytest.mark.parametrize("subject", ESTIMATORS, ids=repr)
def test_a_row_of_weight_2_is_two_rows(subject):
    X, y = clusters(4, 60, spread=3.0)
    weights = np.random.default_rng(1).integers(0, 3, size=len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    weighted = made(subject, GaussianNB()).fit(X, y, sample_weight=weights)
    repeated = made(subject, GaussianNB()).fit(X[rows], y[rows])
    assert weighted.predict(X).tolist() == repeated.predict(X).tolist()
    assert weighted.predict(X).tolist() != made(subject, GaussianNB()).fit(X, y).predict(X).tolist()
    streamed = made(subject, GaussianNB()).partial_fit(X, y, sample_weight=weights)
    assert len(streamed.classes_) == 4


@pytest.mark.parametrize("subject", ESTIMATORS, ids=repr)
def test_a_learner_that_only_votes_is_welcome(subject):
    X, y = clusters(4, 120, spread=0.5)
    model = made(subject, Votes()).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.7
    if isinstance(subject, OneVsRest):
        assert set(np.unique(model.decision_function(X))) == {-1.0, 1.0}


@pytest.mark.parametrize("subject", ESTIMATORS, ids=repr)
def test_a_class_with_one_row_is_learnt(subject):
    X, y = [[0.0, 0.0], [0.0, 1.0], [5.0, 0.0], [5.0, 1.0], [0.0, 9.0]], [0, 0, 1, 1, 2]
    model = made(subject, LogisticRegression(C=1000.0)).fit(X, y)
    assert model.predict([[0.0, 9.0], [0.0, 0.5]]).tolist() == [2, 0]


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("subject", ESTIMATORS, ids=repr)
def test_bad_rows_are_refused_in_a_sentence_and_change_nothing(subject):
    X, y = clusters(3, 30)
    model = clone(subject)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.predict(X)
    with pytest.raises(KeslerError, match="one class only, 'a'"):
        model.fit([[0.0], [1.0]], ["a", "a"])
    with pytest.raises(KeslerError, match="one class only"):
        model.fit([[0.0], [1.0]], ["a", "b"], sample_weight=[1.0, 0.0])
    with pytest.raises(ValueError, match="zero"):
        model.fit([[0.0], [1.0]], ["a", "b"], sample_weight=[0.0, 0.0])
    assert not model.__sklearn_is_fitted__()
    labels = model.fit(X, y).predict(X).tolist()
    holed = np.where(X == X.max(), np.nan, X)
    for rows, words in ((holed, "NaN"), (X[:, :0], "0 feature"), (X[:5], "numbers of samples")):
        with pytest.raises(ValueError, match=words):
            model.fit(rows, y)
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.predict(X[:, :2])
    with pytest.raises(KeslerError, match="cannot be ordered among labels"):
        model.fit(X, ["a", *y[1:].tolist()])
    assert model.predict(X).tolist() == labels


@pytest.mark.parametrize("subject", ESTIMATORS, ids=repr)
def test_learners_that_lack_something_are_refused_in_a_sentence(subject):
    X, y = clusters(3, 30)
    for estimator in (LogisticRegression, "logistic", object()):
        with pytest.raises(KeslerError, match="is not a binary learner"):
            made(ESTIMATORS[0], None).set_params(estimator=estimator).fit(X, y)
    with pytest.raises(KeslerError, match=r"KNeighborsClassifier\.fit takes no sample_weight"):
        made(subject, KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(30))
    with pytest.raises(AttributeError, match="partial_fit"):
        clone(subject).partial_fit(X, y)
    assert not hasattr(clone(subject), "partial_fit")
    assert hasattr(made(subject, SGD), "partial_fit")


def test_missing_values_are_the_learners_affair():
    X, y = clusters(3, 30)
    X[::3, 0] = np.nan
    model = OneVsOne(DecisionTreeClassifier(random_state=0)).fit(X, y)
    assert model.predict(X).tolist() == y.tolist()
    assert get_tags(model).input_tags.allow_nan
    assert not get_tags(OneVsOne()).input_tags.allow_nan


BAD_CODES = [
    ([[1, 1, -1], [1, 1, -1], [-1, -1, 1]], "rows 0 and 1 of the code are equal"),
    ([[1, 1], [-1, 1], [-1, 1]], "column 1 of the code does not have both -1 and 1"),
    ([[1, 1], [-1, 0], [-1, 1]], "column 1 of the code does not have both -1 and 1"),
    ([[1, 1], [0, 0], [-1, -1]], "row 1 of the code is all 0"),
    ([[1, -1], [-1, 1]], r"the code has the shape \(2, 2\).*each of the 3 classes"),
    ([1, -1, 1], r"the code has the shape \(3,\)"),
    (np.empty((3, 0)), r"the code has the shape \(3, 0\)"),
    ([[1, 2], [0, 1], [-1, 1]], "values other than -1, 0 and 1"),
    ([["a"], ["b"], ["c"]], "must be a name or a table"),
    ("hamming", "code='hamming' is unknown"),
]


@pytest.mark.parametrize(("code", "sentence"), BAD_CODES)
def test_bad_codes_are_refused_in_a_sentence(code, sentence):
    X, y = clusters(3, 30)
    with pytest.raises(KeslerError, match=sentence):
        ErrorCorrectingCode(code=code).fit(X, y)


BAD_SETTINGS = [
    ({"n_bits": 4}, "more than the 3 distinct bits"),
    ({"n_bits": 1}, "none of n_codes=100 random codes of n_bits=1 distinguishes all 3 classes"),
    ({"n_bits": 0}, "n_bits=0 must be an integer of 1 or more"),
    ({"n_bits": 2.0}, "n_bits=2.0 must be"),
    ({"n_codes": 0}, "n_codes=0 must be"),
    ({"n_bits": 3, "code": "hadamard"}, "n_bits=3 applies to random codes only"),
    ({"decoding": "soft"}, "decoding='soft' is unknown: use 'loss' or 'hamming'"),
    ({"loss": "squared"}, "loss='squared' is unknown"),
]


@pytest.mark.parametrize(("settings", "sentence"), BAD_SETTINGS)
def test_bad_settings_are_refused_in_a_sentence(settings, sentence):
    X, y = clusters(3, 30)
    with pytest.raises(KeslerError, match=sentence):
        ErrorCorrectingCode(**settings).fit(X, y)


def test_what_cannot_be_is_refused_in_a_sentence():
    X, y = np.eye(13), np.arange(13)
    with pytest.raises(KeslerError, match="has 4,095 bits for 13 classes"):
        ErrorCorrectingCode(code="exhaustive").fit(X, y)
    with pytest.raises(KeslerError, match="how many classes there will be"):
        ErrorCorrectingCode(SGD, code="hadamard").partial_fit(X, y)
    with pytest.raises(KeslerError, match="needs two classes or more"):
        ErrorCorrectingCode(SGD, code="hadamard").partial_fit(X[:1], [0], classes=[0])
    model = ErrorCorrectingCode(SGD, code="hadamard").partial_fit(X, y, classes=range(14))
    with pytest.raises(KeslerError, match="the label 99 has no row in the code"):
        model.partial_fit(X, [99, *range(12)])
    assert model.classes_.tolist() == y.tolist()
    with pytest.raises(KeslerError, match="differs from those of the 2 classes seen so far"):
        ErrorCorrectingCode(SGD, n_bits=1).partial_fit(X, y)
    with pytest.raises(KeslerError, match="decoding='swiss' is unknown"):
        OneVsOne(decoding="swiss").fit(X, y)
    model = OneVsOne(LinearDiscriminantAnalysis(solver="lsqr")).fit(*clusters(3, 30))
    with pytest.raises(KeslerError, match="decoding='swiss' is unknown"):
        model.set_params(decoding="swiss").predict(clusters(3, 30)[0])


# ---- scikit-learn's checks ----------------------------------------------------------------------

WEIGHTS = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
SGD_CHECKED = SGDClassifier(random_state=0)
CHECKED = [
    *(made(ESTIMATORS[number], TREE) for number in (0, 1, 5)),
    *(made(ESTIMATORS[number], SGD_CHECKED) for number in (2, 4)),
]


@pytest.mark.parametrize("estimator", CHECKED, ids=repr)
@pytest.mark.filterwarnings("ignore:Maximum number of iteration")
def test_scikit_learn_checks_pass(estimator):
    failing = WEIGHTS if estimator.estimator is SGD_CHECKED else []
    results = check_estimator(
        estimator,
        expected_failed_checks=dict.fromkeys(failing, "the learner goes by the order of rows"),
        on_fail=None,
        on_skip=None,
    )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    n_checks = len(list(estimator_checks_generator(estimator)))
    assert len(results) == n_checks
    passed = Counter(r["status"] for r in results)["passed"]
    assert passed == n_checks - 1 - len(failing) >= 60

"""Weights of rows mean repetition: batch learners on weighted rows and on copies of them."""

from collections import defaultdict

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from kesler import (
    CrammerSingerClassifier,
    JointBoostClassifier,
    KeslerError,
    KeslerReduction,
    LabelTree,
    MixedNormClassifier,
    ShareBoostClassifier,
    SoftmaxClassifier,
)
from kesler.batch import distinct_rows
from kesler.batch.distinct_rows import DistinctRows, hash_rows
from kesler.dictionaries import Columns, Pieces, Stumps, Templates
from kesler.dictionaries.stumps import Thresholds
from kesler.dictionaries.templates import contrast_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.* were chosen, not n_features_to_select:UserWarning"),
]

SPARSE_TOO = {
    "svm": CrammerSingerClassifier(random_state=0),
    "svm, cyclic": CrammerSingerClassifier(order="cyclic", class_weight="balanced"),
    "svm, free intercept": CrammerSingerClassifier(regularise_intercept=False, random_state=0),
    "svm, kernel": CrammerSingerClassifier(kernel="rbf", random_state=0),
    "svm, hybrid": CrammerSingerClassifier(
        hypotheses="hybrid", feature_map="frequency", max_iter=50, random_state=0
    ),
    "softmax": SoftmaxClassifier(),
    "softmax, balanced": SoftmaxClassifier(loss="margin-softmax", class_weight="balanced"),
    "softmax, hybrid": SoftmaxClassifier(hypotheses="hybrid", feature_map="frequency", max_iter=9),
    "ShareBoost": ShareBoostClassifier(3),
    "ShareBoost, balanced": ShareBoostClassifier(3, class_weight="balanced", choice="line"),
    "mixed norm": MixedNormClassifier(alpha=0.02),
}
DENSE_ONLY = {
    "ShareBoost, stumps": ShareBoostClassifier(4, dictionary=Stumps(2), penalty="frobenius"),
    "ShareBoost, pieces": ShareBoostClassifier(
        2, dictionary=Pieces(3, n_radii=2, random_state=0), penalty="frobenius"
    ),
    "ShareBoost, templates": ShareBoostClassifier(
        2,
        dictionary=Templates((2, 3), 2, (2,), n_masks=1, random_state=0),
        penalty="frobenius",
    ),
    "mixed norm, stumps": MixedNormClassifier(alpha=0.02, dictionary=Stumps(2)),
    "JointBoost": JointBoostClassifier(12, n_thresholds=2),
}
CASES = [
    *((name, kind) for name in SPARSE_TOO for kind in ("dense", "sparse")),
    *((name, "dense") for name in DENSE_ONLY),
]


def make_rows(seed, n=40):
    """Rows of three classes with small weights, some of which are 0."""
    generator = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = generator.normal(size=(n, 6)) + 1.5 * np.eye(6)[y]
    return np.where(generator.random(X.shape) < 0.2, 0.0, X), y, generator.integers(0, 5, n)


def as_kind(X, kind):
    return sparse.csr_array(X) if kind == "sparse" else X


# ---- learners -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_weight_is_so_many_rows_to_the_last_bit(name, kind, seed):
    X, y, weights = make_rows(seed)
    copies = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(y)), weights))
    model = (SPARSE_TOO | DENSE_ONLY)[name]
    weighted = clone(model).fit(as_kind(X, kind), y, sample_weight=weights)
    repeated = clone(model).fit(as_kind(X[copies], kind), y[copies])
    expected = repeated.decision_function(as_kind(X, kind))
    assert_array_equal(weighted.decision_function(as_kind(X, kind)), expected)
    # Not because weights make no difference:
    plain = clone(model).fit(as_kind(X, kind), y).decision_function(as_kind(X, kind))
    assert np.abs(plain - expected).max() > 1e-3


@pytest.mark.parametrize("name", [*SPARSE_TOO, *DENSE_ONLY])
def test_a_weight_of_1_and_twice_every_row_change_nothing_else(name):
    X, y, _ = make_rows(3)
    model = (SPARSE_TOO | DENSE_ONLY)[name]
    plain = clone(model).fit(X, y).decision_function(X)
    ones = clone(model).fit(X, y, sample_weight=np.ones(len(y)))
    assert_array_equal(ones.decision_function(X), plain)
    # Twice all weights is twice C, and nothing where the loss is a mean.
    twice = clone(model).set_params(**({"C": 0.5} if hasattr(model, "C") else {}))
    twice.fit(np.tile(X, (2, 1)), np.tile(y, 2))
    assert_array_equal(twice.decision_function(X), plain)


@pytest.mark.parametrize("name", SPARSE_TOO)
def test_equal_weights_within_classes_are_class_weights(name):
    X, y, _ = make_rows(3)
    model = clone(SPARSE_TOO[name]).set_params(class_weight={0: 2, 1: 1, 2: 3})
    by_class = clone(model).fit(X, y).decision_function(X)
    by_row = clone(model).set_params(class_weight=None)
    by_row.fit(X, y, sample_weight=np.array([2, 1, 3])[y])
    assert_array_equal(by_row.decision_function(X), by_class)


@pytest.mark.parametrize("name", [*SPARSE_TOO, *DENSE_ONLY])
def test_a_class_without_weight_is_left_out(name):
    X, y, _ = make_rows(4)
    model = (SPARSE_TOO | DENSE_ONLY)[name]
    weighted = clone(model).fit(X, y, sample_weight=y != 2)
    assert weighted.classes_.tolist() == [0, 1]
    alone = clone(model).fit(X[y != 2], y[y != 2])
    assert_array_equal(weighted.decision_function(X), alone.decision_function(X))


def test_a_warm_start_knows_copies():
    X, y, weights = make_rows(5, n=90)
    copies = np.repeat(np.arange(len(y)), weights)
    model = CrammerSingerClassifier(0.3, tol=1e-4, random_state=0, warm_start=True)
    cold = clone(model).fit(X, y, sample_weight=weights)
    n_passes = cold.n_iter_
    assert cold.fit(X, y, sample_weight=weights).n_iter_ < n_passes / 2
    repeated = clone(model).fit(X[copies], y[copies])
    assert repeated.fit(X[copies], y[copies]).n_iter_ < n_passes / 2
    more = np.r_[copies, np.arange(len(y))]
    assert repeated.fit(X[more], y[more]).objective_ == pytest.approx(
        clone(model).fit(X, y, sample_weight=weights + 1).objective_, rel=2e-4
    )


def test_support_rows_are_numbered_as_given():
    X, y, weights = make_rows(6)
    model = CrammerSingerClassifier(kernel="linear", fit_intercept=False, random_state=0)
    model.fit(X, y, sample_weight=weights)
    scores = X @ X[model.support_].T @ model.dual_coef_
    assert_allclose(model.decision_function(X), scores, rtol=1e-4, atol=1e-4)


def test_a_label_tree_deals_copies_to_one_fold():
    X, y, weights = make_rows(7, n=60)
    copies = np.repeat(np.arange(len(y)), weights)
    tree = LabelTree(DecisionTreeClassifier(max_depth=2, random_state=0))
    weighted = clone(tree).fit(X, y, sample_weight=weights)._confusions
    assert_allclose(weighted, clone(tree).fit(X[copies], y[copies])._confusions)
    assert not np.allclose(weighted, clone(tree).fit(X, y)._confusions)


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0]])
def test_errors_name_the_row_as_given(weights):
    with pytest.raises(KeslerError, match="squared length of row 1 overflows"):
        CrammerSingerClassifier().fit([[1.0], [1e200], [2.0]], [0, 1, 1], weights)
    with pytest.raises(KeslerError, match="row 1, feature 0 is"):
        CrammerSingerClassifier(kernel="rbf").fit([[1.0], [1e200], [2.0]], [0, 1, 1], weights)


# ---- dictionaries -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_quantiles_are_those_of_copies(seed):
    generator = np.random.default_rng(seed)
    line, weights = generator.integers(0, 30, 25).astype(float), generator.integers(1, 6, 25)
    for most in (1, 3, 7):
        weighted = Thresholds.between([line], most, weights)
        assert_array_equal(weighted.values, Thresholds.between([line.repeat(weights)], most).values)


def test_the_contrast_is_that_of_copies():
    images = np.random.default_rng(0).random((30, 4, 5)).astype(np.float32)
    weights = np.arange(1.0, 31.0)
    copies = np.repeat(images, weights.astype(int), axis=0)
    assert contrast_of(images, weights) == pytest.approx(contrast_of(copies), rel=1e-6)


def test_the_thresholds_of_a_fit_are_quantiles_of_copies():
    X, y, weights = make_rows(12)
    copies = np.repeat(np.arange(len(y)), weights)
    model = ShareBoostClassifier(2, dictionary=Stumps(3)).fit(X, y, sample_weight=weights)
    expected = Stumps(3).fit(X[copies]).thresholds_.values
    assert_array_equal(model.dictionary_.thresholds_.values, expected)
    assert not np.isin(Stumps(3).fit(X).thresholds_.values, expected).all()


class Unweighted(Columns):
    """A dictionary as users have written them, without weights."""

    def fit(self, X, y=None):
        """Count the features."""
        return super().fit(X, y)


def test_a_dictionary_needs_no_weights():
    X, y, weights = make_rows(8)
    own = ShareBoostClassifier(2, dictionary=Unweighted()).fit(X, y, sample_weight=weights)
    plain = ShareBoostClassifier(2).fit(X, y, sample_weight=weights)
    assert_array_equal(own.coef_, plain.coef_)


# ---- distinct rows ------------------------------------------------------------------------------


def by_definition(X, y, weights):
    """Total weight and first number of each pair of a row and a label."""
    totals, firsts = defaultdict(float), {}
    for number, (row, label, weight) in enumerate(
        zip(X.tolist(), y.tolist(), weights, strict=True)
    ):
        if weight > 0:
            key = (*(0.0 + value for value in row), label)
            totals[key] += weight
            firsts.setdefault(key, number)
    return {key: (total, firsts[key]) for key, total in totals.items()}


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(8))
def test_distinct_rows_are_those_of_the_definition(seed, dtype, kind):
    generator = np.random.default_rng(seed)
    X = generator.choice([-0.0, 0.0, 1.0, 0.5], size=(200, 3)).astype(dtype)
    y, weights = generator.choice(list("abc"), 200), generator.integers(0, 3, 200).astype(float)
    found = DistinctRows.of(as_kind(X, kind), y, weights)
    rows = np.column_stack([X[found.numbers] + 0.0, found.y.astype(object)])
    given = {
        tuple(row): (w, n) for row, w, n in zip(rows, found.weights, found.numbers, strict=True)
    }
    assert given == by_definition(X, y, weights)
    assert ((found.members < 0) == (weights == 0)).all()
    kept = np.flatnonzero(weights)
    assert_array_equal(X[found.numbers][found.members[kept]], X[kept])
    assert_array_equal(found.y[found.members[kept]], y[kept])
    # The order is the same for permuted rows, since their weights differ.
    order = generator.permutation(200)
    again = DistinctRows.of(as_kind(X[order], kind), y[order], weights[order])
    assert_array_equal(X[order][again.numbers] + 0.0, X[found.numbers] + 0.0)
    assert_array_equal(again.weights, found.weights)


def test_distinct_rows_without_weights_are_not_copied_nor_moved():
    X, y, _ = make_rows(9)
    for kind in ("dense", "sparse"):
        rows = as_kind(X, kind)
        found = DistinctRows.of(rows, y, np.full(len(y), 2.5))
        assert found.are_all and found.of_rows(rows) is rows
    twice = DistinctRows.of(np.repeat(X, 2, axis=0), y.repeat(2), np.ones(2 * len(y)))
    assert_array_equal(twice.numbers, np.arange(0, 2 * len(y), 2))
    assert_array_equal(twice.weights, np.full(len(y), 2.0))


def test_hashes_depend_on_values_only_and_may_collide(monkeypatch):
    X, y, weights = make_rows(10)
    X = X.astype(np.float32)
    for other in (X.astype(np.float64), sparse.csr_array(X), np.asfortranarray(X)):
        assert_array_equal(hash_rows(other), hash_rows(X))
    assert len(set(hash_rows(X).tolist())) == len(X)
    monkeypatch.setattr(distinct_rows, "_multipliers", lambda n: np.zeros((2, n), np.uint64))
    found = DistinctRows.of(X, np.sort(y), weights.astype(float))
    assert len(found.weights) == (weights > 0).sum()
    one = DistinctRows.of(np.ones((3, 2)), np.array([0, 1, 1]), np.ones(3))
    assert one.numbers.tolist() == [0, 1] and one.weights.tolist() == [1, 2]


# ---- indicator matrices as lists ----------------------------------------------------------------


def test_lists_of_the_rows_of_an_indicator_matrix_are_one():
    X, y, _ = make_rows(11)
    table = np.column_stack([y == 0, y > 0, y == 2]).astype(np.int64)
    expected = KeslerReduction().fit(X, table)
    for given in (table.tolist(), list(table), [tuple(row) for row in table.tolist()]):
        model = KeslerReduction().fit(X, given)
        assert_array_equal(model.predict(X), expected.predict(X))
        assert model.score(X, given) == expected.score(X, table)
    # Labels that are numbers are no indicators.
    sets = [[0], [1], [0, 1]] * 10
    assert KeslerReduction().fit(X[:30], sets).classes_.tolist() == [0, 1]
    assert KeslerReduction().fit(X[:30], [[0, 2], [1, 0]] * 15).classes_.tolist() == [0, 1, 2]

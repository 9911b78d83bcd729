"""Dictionaries against candidates that are written out in plain NumPy."""

from __future__ import annotations

import pickle
from itertools import combinations, combinations_with_replacement, product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse
from sklearn.base import clone

from kesler import KeslerError
from kesler.dictionaries import Columns, Pieces, Pool, Products, Stumps
from kesler.dictionaries.dictionary import BLOCK_BYTES
from kesler.dictionaries.pieces import PiecesPool
from kesler.dictionaries.products import ProductsPool
from kesler.sharing.shareboost import ShareBoostClassifier

# ---- every candidate as a list of columns, written out ------------------------------------------


def written_products(X, squares):
    pairs = (combinations_with_replacement if squares else combinations)(range(X.shape[1]), 2)
    return [[X[:, a] * X[:, b]] for a, b in pairs]


def written_stumps(X):
    candidates = []
    for values in X.T:
        for value in sorted({*values.tolist()})[1:]:
            candidates.append([(values < value).astype(float)])
    return candidates


def written_pieces(X, pieces):
    candidates = []
    for number, centre in enumerate(pieces.centres_):
        away = np.array([sum((a - b) ** 2 for a, b in zip(x, centre, strict=True)) for x in X])
        radii = pieces.radii_
        for radius in radii.values[radii.firsts[number] : radii.firsts[number + 1]]:
            within = (np.sqrt(away) < radius).astype(float)
            offsets = [within * (X[:, j] - centre[j]) for j in range(X.shape[1])]
            candidates.append([within, *offsets])
    return candidates


def written_scores(candidates, residuals):
    """Return the definition: for each column and class a sum over rows, absolute values added."""
    return [
        sum(abs(float(column @ residuals[:, k])) for column in group for k in range(width))
        for width in [residuals.shape[1]]
        for group in candidates
    ]


def written_spreads(candidates, q, centred, share):
    """Return the squares of the definition: of each column, the weighted variance and the rest."""
    squares = []
    for group in candidates:
        means = [(q @ column / q.sum() if centred else 0.0) for column in group]
        gaps = [column - mean for column, mean in zip(group, means, strict=True)]
        squares.append(sum(q @ gap**2 + share * q.sum() * max(gap**2) for gap in gaps))
    return squares


def assert_spread(pool, candidates, residuals, X):
    """Check spreads with some weights of rows, those of the base class too."""
    q = np.abs(residuals[:, 0]) + 0.01
    tolerance = 1e-4 if X.dtype == np.float32 else 1e-8
    for centred in (True, False):
        largest = max(written_spreads(candidates, q, False, 1.0))
        for kind, share in product((type(pool), Pool), (0.0, 0.025)):
            wanted = np.array(written_spreads(candidates, q, centred, share))
            with patch("kesler.dictionaries.dictionary.RARE", share):
                found = joined(list(kind.spreads(pool, q, centred=centred))) ** 2
            near = tolerance * (largest + wanted) + 1e-60  # float32 has nothing as small squared
            # What products and offsets reach is bounded, not known, without their columns.
            if share == 0 or kind not in (ProductsPool, PiecesPool):
                assert (abs(found - wanted) <= near).all()
            else:
                least = written_spreads(candidates, q, centred, 0.0)
                assert (found >= (wanted if kind is ProductsPool else least) - near).all()


def all_scores(pool, residuals):
    return joined(list(pool.scores(residuals)))


def joined(blocks):
    ends = np.cumsum([len(scores) for _, scores in blocks])
    assert [first for first, _ in blocks] == [0, *ends[:-1]]
    return np.concatenate([scores for _, scores in blocks])


# ---- rows with ties, constant columns and duplicates --------------------------------------------

TIED = st.integers(-3, 3).map(float)
SMOOTH = st.floats(-8, 8, width=32)


@st.composite
def problems(draw, least_rows=1, least_features=1):
    shape = draw(array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=9))
    shape = (max(shape[0], least_rows), max(shape[1], least_features))
    X = draw(arrays(np.float64, shape, elements=draw(st.sampled_from([TIED, SMOOTH]))))
    if draw(st.booleans()):
        X[:, 0] = 2.0
    if shape[1] > 1 and draw(st.booleans()):
        X[:, -1] = X[:, 0]
    n_classes = draw(st.integers(1, 4))
    residuals = draw(arrays(np.float64, (shape[0], n_classes), elements=st.floats(-1, 1, width=32)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return np.asarray(X, dtype=dtype, order=draw(st.sampled_from("CF"))), residuals


def assert_close(found, wanted, X):
    tolerance = 1e-4 if X.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * 100)


@given(problems())
@settings(deadline=None, max_examples=60)
def test_columns_score_by_definition(problem):
    X, residuals = problem
    wanted = written_scores([[column.astype(np.float64)] for column in X.T], residuals)
    for rows in (X, sparse.csr_array(X)):
        pool = Columns().fit(rows).pool(rows)
        assert_close(all_scores(pool, residuals), wanted, X)
        assert_spread(pool, [[column.astype(np.float64)] for column in X.T], residuals, X)
        assert_close(all_scores(Pool(pool.dictionary, rows), residuals), wanted, X)


@given(problems(least_features=2), st.booleans())
@settings(deadline=None, max_examples=60)
def test_products_score_by_definition(problem, squares):
    X, residuals = problem
    candidates = written_products(X.astype(np.float64), squares)
    products = Products(squares).fit(X)
    assert products.n_candidates_ == len(candidates)
    assert_close(all_scores(products.pool(X), residuals), written_scores(candidates, residuals), X)
    assert_spread(products.pool(X), candidates, residuals, X)
    columns = products.columns(X, np.arange(len(candidates)))
    assert_close(columns, np.column_stack([group[0] for group in candidates]), X)


@given(problems(least_rows=2))
@settings(deadline=None, max_examples=60)
def test_stumps_score_by_definition(problem):
    X, residuals = problem
    candidates = written_stumps(X)
    if not candidates:
        with pytest.raises(KeslerError, match="no feature takes two values"):
            Stumps().fit(X)
        return
    wanted = written_scores(candidates, residuals)
    columns = np.column_stack([group[0] for group in candidates])
    for rows in (X, sparse.csr_array(X)):
        stumps = Stumps().fit(rows)
        assert_close(all_scores(stumps.pool(rows), residuals), wanted, X.astype(np.float64))
        assert_spread(stumps.pool(rows), candidates, residuals, X)
        np.testing.assert_array_equal(stumps.columns(rows, np.arange(len(candidates))), columns)


@given(problems(least_rows=2), st.integers(1, 5))
@settings(deadline=None, max_examples=60)
def test_few_stumps_are_some_of_all_and_never_constant(problem, n_thresholds):
    X, residuals = problem
    candidates = written_stumps(X)
    if not candidates:
        return
    stumps = Stumps(n_thresholds).fit(X)
    columns = stumps.columns(X, np.arange(stumps.n_candidates_))
    assert np.all(np.ptp(columns, axis=0) == 1)
    assert {tuple(c) for c in columns.T} <= {tuple(group[0]) for group in candidates}
    distinct = np.array([len(np.unique(column)) for column in X.T])
    counts = stumps.thresholds_.counts
    assert np.all(counts <= n_thresholds) and np.all((counts > 0) == (distinct > 1))
    assert np.all(
        counts[distinct <= n_thresholds + 1] == distinct[distinct <= n_thresholds + 1] - 1
    )
    wanted = written_scores([[column] for column in columns.T.astype(np.float64)], residuals)
    assert_close(all_scores(stumps.pool(X), residuals), wanted, X.astype(np.float64))


@given(problems(least_rows=2), st.integers(1, 4), st.integers(1, 5), st.integers(0, 9))
@settings(deadline=None, max_examples=60)
def test_pieces_score_by_definition(problem, n_centres, n_radii, seed):
    X, residuals = problem
    centres = np.random.default_rng(seed).normal(0, 2, (n_centres, X.shape[1]))
    try:
        pieces = Pieces(centres, n_radii).fit(X)
    except KeslerError as error:
        assert "equally far" in str(error) and len(np.unique(X, axis=0)) <= 2
        return
    candidates = written_pieces(X.astype(np.float64), pieces)
    wanted = written_scores(candidates, residuals)
    assert_close(all_scores(pieces.pool(X), residuals), wanted, X)
    assert_close(all_scores(Pool(pieces, X), residuals), wanted, X)
    assert_spread(pieces.pool(X), candidates, residuals, X)
    columns = pieces.columns(X, np.arange(pieces.n_candidates_))
    assert_close(columns, np.column_stack([c for group in candidates for c in group]), X)


# ---- many rows: blocks, wide bins, quantiles ----------------------------------------------------


def many(n_rows, n_features, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    return X, rng.normal(size=(n_rows, n_classes)) / n_rows


@pytest.mark.parametrize("bin_type", [np.uint8, np.uint16, np.uint32])
def test_bins_of_every_width(bin_type):
    n_rows = {np.uint8: 200, np.uint16: 300, np.uint32: 70_000}[bin_type]
    X, residuals = many(n_rows, 2, n_classes=2)
    stumps = Stumps().fit(X)
    pool = stumps.pool(X)
    assert pool.bins.dtype == bin_type
    order = np.argsort(X[:, 1])
    wanted = np.abs(np.cumsum(residuals[order], axis=0)).sum(axis=1)[:-1]
    np.testing.assert_allclose(all_scores(pool, residuals)[n_rows - 1 :], wanted, atol=1e-10)


def test_few_thresholds_stand_at_quantiles():
    X = np.arange(1000.0)[:, None]
    assert Stumps(3).fit(X).thresholds_.values.tolist() == [249.5, 499.5, 749.5]
    pieces = Pieces([[0.0]], 4).fit(X)
    assert pieces.radii_.values.tolist() == [199.5, 399.5, 599.5, 799.5]


def test_products_of_rows_and_features_that_take_several_blocks():
    X, residuals = many(1100, 40, n_classes=30)
    pool = Products(squares=True).fit(X).pool(X)
    assert len(list(pool.scores(residuals))) > 1
    wanted = written_scores(written_products(X, squares=True), residuals)
    np.testing.assert_allclose(all_scores(pool, residuals), wanted, atol=1e-12)
    assert_spread(pool, written_products(X, squares=True), residuals, X)


def test_columns_of_so_many_classes_that_they_take_several_blocks(monkeypatch):
    X, residuals = many(50, 20, n_classes=9)
    monkeypatch.setattr("kesler.dictionaries.dictionary.BLOCK_BYTES", 8 * 20 * 2)
    wanted = np.abs(X.T @ residuals).sum(axis=1)
    np.testing.assert_allclose(all_scores(Columns().fit(X).pool(X), residuals), wanted)


def test_pieces_of_many_centres_and_rows_far_from_the_origin(monkeypatch):
    X, residuals = many(400, 3)
    X = (X + 1000).astype(np.float32)
    # Sums of two centres, and columns of three hundred pieces, at once.
    monkeypatch.setattr("kesler.dictionaries.pieces.SUM_BYTES", 2 * 4 * 201 * 4 * 3)
    monkeypatch.setattr("kesler.dictionaries.pieces.BLOCK_BYTES", 300 * 8 * 4 * 400)
    pieces = Pieces(X[:5], n_radii=200).fit(X)
    pool = pieces.pool(X)
    assert len(list(pool.scores(residuals))) == 3 and len(list(pool.blocks())) > 2
    candidates = written_pieces(X.astype(np.float64), pieces)
    wanted = written_scores(candidates, residuals)
    np.testing.assert_allclose(all_scores(pool, residuals), wanted, rtol=1e-3, atol=1e-5)
    assert_spread(pool, candidates, residuals, X)


def test_blocks_of_pieces_hold_all_candidates_and_fit_in_memory():
    X, _ = many(3000, 5)
    pool = Pieces(X[:60], n_radii=20).fit(X).pool(X)
    blocks = list(pool.blocks())
    assert np.array_equal(np.concatenate(blocks), np.arange(pool.n_candidates))
    assert len(blocks) > 1 and max(8 * 6 * 3000 * len(block) for block in blocks) <= BLOCK_BYTES


# ---- numbers, steps, new rows -------------------------------------------------------------------


@given(st.integers(2, 3_000_000), st.booleans(), st.data())
def test_pairs_are_numbered_both_ways(n_features, squares, data):
    products = Products(squares).fit(np.empty((0, n_features)))
    last = products.n_candidates_ - 1
    numbers = np.array([0, last, *data.draw(st.lists(st.integers(0, last), max_size=5))])
    for number, a, b in zip(numbers, *products.pairs(numbers), strict=True):
        assert 0 <= a < b + squares and b < n_features
        assert products.number(a, b) == number
    assert products.pairs(numbers[:1])[1] == [0 if squares else 1]
    a, b = products.pairs(numbers[1:2])
    assert (a, b) == (n_features - 1 - (not squares), n_features - 1)


def test_the_papers_pools_have_the_papers_sizes():
    sizes = [Products().fit(np.empty((1, d))).n_candidates_ for d in (36, 16, 617)]
    assert sizes == [630, 120, 190_036]


FITTED = {
    "columns": Columns(),
    "products": Products(squares=True),
    "stumps": Stumps(),
    "pieces": Pieces(5, 4, random_state=0),
}


def by_step(step, x):
    """Return the columns of an instance by the description of a step."""
    match type(step).__name__:
        case "Column":
            return [x[step.index]]
        case "Product":
            return [x[step.left] * x[step.right]]
        case "Stump":
            return [float(x[step.index] < step.threshold)]
    within = np.linalg.norm(x - step.centre) < step.radius
    return [float(within), *(within * (x - step.centre))]


@pytest.mark.parametrize("name", FITTED)
def test_steps_compute_the_columns_of_new_rows(name):
    X, residuals = many(60, 4)
    dictionary = pickle.loads(pickle.dumps(clone(FITTED[name]).fit(X)))
    new = many(9, 4, seed=1)[0]
    for number in range(dictionary.n_candidates_):
        step, candidates = dictionary.step(number), np.array([number])
        wanted = np.array([by_step(step, x) for x in new])
        assert wanted.shape[1] == step.width == dictionary.widths(candidates)[0]
        np.testing.assert_allclose(dictionary.columns(new, candidates), wanted, atol=1e-12)
    assert len(all_scores(dictionary.pool(X), residuals)) == dictionary.n_candidates_


@pytest.mark.parametrize("name", FITTED)
def test_columns_of_several_candidates_stand_side_by_side(name):
    X, _ = many(60, 4)
    dictionary = clone(FITTED[name]).fit(X)
    some = np.array([3, 0, 2])
    apart = [dictionary.columns(X, some[i : i + 1]) for i in range(3)]
    np.testing.assert_array_equal(dictionary.columns(X, some), np.hstack(apart))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_stump_separates_neighbouring_numbers(dtype):
    low = np.array([1.0, -1e30, 5e-324, 0.0], dtype=dtype)
    X = np.array([low, np.nextafter(low, dtype(np.inf))])
    stumps = Stumps().fit(X)
    columns = stumps.columns(X, np.arange(stumps.n_candidates_))
    np.testing.assert_array_equal(columns[0], 1)
    np.testing.assert_array_equal(columns[1], 0)
    pool, residuals = stumps.pool(X), np.array([[1.0, 2.0], [10.0, 20.0]])
    np.testing.assert_array_equal(all_scores(pool, residuals), 3.0)


def test_thresholds_between_the_largest_numbers_are_finite():
    largest = np.finfo(np.float64).max
    assert Stumps().fit(np.array([[-largest], [largest]])).thresholds_.values.tolist() == [0.0]
    assert np.isfinite(Stumps().fit(np.array([[largest / 2], [largest]])).thresholds_.values).all()


# ---- memory maps --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FITTED)
def test_memory_maps_give_what_arrays_give(name, tmp_path):
    X, residuals = many(300, 4)
    X = X.astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    found, wanted = (
        all_scores(clone(FITTED[name]).fit(rows).pool(rows), residuals) for rows in (mapped, X)
    )
    np.testing.assert_array_equal(found, wanted)


def test_scores_of_columns_copy_no_rows(tmp_path):
    import tracemalloc

    X, residuals = many(20_000, 30)
    for rows in (X.astype(np.float32), sparse.csr_array(X.astype(np.float32))):
        pool = Columns().fit(rows).pool(rows)
        tracemalloc.start()
        all_scores(pool, residuals)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20_000 * 30 * 4 / 2


# ---- chosen by ShareBoost -----------------------------------------------------------------------


def ring(n_rows=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 2))
    return X, (np.linalg.norm(X, axis=1) > 1.2).astype(int)


@pytest.mark.parametrize(
    ("dictionary", "n", "most"),
    [
        (Products(squares=True), 3, 0.03),
        (Stumps(), 8, 0.12),
        (Pieces([[0.0, 0.0], [2.0, 2.0]], 20), 4, 0.08),
    ],
)
def test_a_ring_is_learnt_by_what_is_not_linear(dictionary, n, most):
    X, y = ring()
    linear = ShareBoostClassifier(2).fit(X, y)
    assert np.mean(linear.predict(X) != y) > 0.3
    model = ShareBoostClassifier(n, dictionary=dictionary)
    assert np.mean(model.fit(X, y).predict(X) != y) < most


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dictionary", "sentence"),
    [
        (Stumps(0), "n_thresholds=0 must be an integer of 1 or more"),
        (Stumps(-3), "n_thresholds=-3 must be an integer"),
        (Stumps(2.5), r"n_thresholds=2\.5 must be an integer"),
        (Stumps(True), "n_thresholds=True must be an integer"),
        (Pieces(3, 0), "n_radii=0 must be an integer from 1 to 255"),
        (Pieces(3, 256), "n_radii=256 must be an integer from 1 to 255"),
        (Pieces(0), "centres=0 must be an integer of 1 or more"),
        (Pieces(2.0), r"centres=2\.0 must be an integer"),
        (Pieces(9), "centres=9 is more than the number of rows, 8"),
        (
            Pieces(np.ones((2, 3))),
            r"centres have the shape \(2, 3\), but rows have 2 features: give an array",
        ),
        (Pieces(np.ones(2)), r"centres have the shape \(2,\)"),
        (Pieces(np.empty((0, 2))), r"centres have the shape \(0, 2\)"),
        (Pieces([[0.0, 0.0], [np.nan, 0.0]]), "centre 1 holds NaN or infinity"),
    ],
)
def test_bad_parameters_are_refused(dictionary, sentence):
    with pytest.raises(KeslerError, match=sentence):
        dictionary.fit(many(8, 2)[0])


@pytest.mark.parametrize("dictionary", [Products(), Pieces(2)])
def test_sparse_rows_are_refused_where_candidates_would_be_dense(dictionary):
    with pytest.raises(KeslerError, match=r"do not support sparse rows.*toarray"):
        dictionary.fit(sparse.csr_array(np.eye(4)))


def test_rows_without_a_candidate_are_refused():
    with pytest.raises(KeslerError, match="one feature makes no pair"):
        Products().fit(np.ones((3, 1)))
    with pytest.raises(KeslerError, match="no feature takes two values"):
        Stumps().fit(np.ones((3, 2)))
    with pytest.raises(KeslerError, match="no feature takes two values"):
        Stumps(1).fit(np.array([[1.0, 2.0]]))
    with pytest.raises(KeslerError, match="equally far"):
        Pieces([[0.0, 0.0]]).fit(np.array([[1.0, 0.0], [0.0, 1.0]]))


@pytest.mark.parametrize("dictionary", [Products(), Stumps(), Pieces([[0.0, 0.0]])])
def test_nan_is_refused_before_a_dictionary_sees_it(dictionary):
    X, y = ring(20)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        ShareBoostClassifier(1, dictionary=dictionary).fit(X, y)

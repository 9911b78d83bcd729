"""Malformed sparse matrices are refused before their arrays are read; all others are accepted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from kesler import (
    CrammerSingerClassifier,
    Ensemble,
    KeslerError,
    KeslerReduction,
    OneVsRest,
    OnlineClassifier,
    OnlineMultilabelClassifier,
    Ratings,
    ShareBoostClassifier,
    SoftmaxClassifier,
)
from kesler.data.matrices import canonical, well_formed
from test_laws import assert_sentence

DENSE = np.array([[1.0, 0, 2, 0], [0, 3, 0, 0], [4, 0, 0, 5], [0, 0, 6, 7]] * 3)
LABELS = ["a", "b", "c", "d"] * 3


def with_index(at, value):
    def changed(array):
        array = array.astype(np.int64)
        array[at] = value
        return array

    return changed


FAULTS = {
    "an index of 10^9": ("indices", with_index(3, 10**9)),
    "an index of -1": ("indices", with_index(0, -1)),
    "an index of 2^40": ("indices", with_index(5, 2**40)),
    "the first index too large": ("indices", with_index(2, 4)),
    "a decreasing indptr": ("indptr", with_index(2, 0)),
    "a short indptr": ("indptr", lambda array: array[:-1]),
    "an indptr beyond the indices": ("indptr", with_index(-1, 10**6)),
    "an indptr that begins with 1": ("indptr", with_index(0, 1)),
    "a negative indptr": ("indptr", with_index(0, -(2**62))),
    "fewer data than indices": ("data", lambda array: array[:-1]),
    "fewer indices than data": ("indices", lambda array: array[:-2]),
    "data of objects": ("data", lambda array: array.astype(object)),
    "indices of floats": ("indices", lambda array: array.astype(float)),
    "an indptr of floats": ("indptr", lambda array: array.astype(float)),
    "a shape of 2^40 columns": ("_shape", lambda shape: (shape[0], 2**40)),
    "more rows than lists": ("_shape", lambda shape: (shape[0] + 1, shape[1])),
}


def malformed(fault, kind=sparse.csr_array):
    matrix = kind(DENSE)
    name, change = FAULTS[fault]
    setattr(matrix, name, change(getattr(matrix, name)))
    return matrix


every_fault = pytest.mark.parametrize("fault", FAULTS)


@every_fault
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_a_malformed_matrix_is_refused(fault, kind):
    with pytest.raises(KeslerError, match="X is a malformed sparse matrix") as caught:
        well_formed(malformed(fault, kind))
    assert_sentence(caught.value)


@every_fault
@pytest.mark.parametrize(
    "make", [lambda: OnlineClassifier("multi", update="pa1"), OnlineClassifier, Ensemble]
)
def test_a_refused_matrix_changes_nothing(make, fault, tmp_path):
    model = make().fit(sparse.csr_array(DENSE), LABELS)
    model.save(tmp_path / "before")
    for call in (
        lambda X: model.partial_fit(X, ["new", *LABELS[1:]]),
        model.predict,
        model.decision_function,
        model.predict_proba,
    ):
        with pytest.raises(KeslerError, match="malformed sparse matrix"):
            call(malformed(fault))
    model.save(tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


@pytest.mark.parametrize("fault", ["an index of 10^9", "a decreasing indptr"])
@pytest.mark.parametrize(
    "make",
    [
        CrammerSingerClassifier,
        SoftmaxClassifier,
        lambda: ShareBoostClassifier(2),
        OneVsRest,
        KeslerReduction,
    ],
    ids=["crammer-singer", "softmax", "shareboost", "one-vs-rest", "reduction"],
)
def test_batch_learners_refuse_malformed_matrices(make, fault):
    with pytest.raises(KeslerError, match="malformed sparse matrix"):
        make().fit(malformed(fault), LABELS)
    model = make().fit(sparse.csr_array(DENSE), LABELS)
    with pytest.raises(KeslerError, match="malformed sparse matrix"):
        model.predict(malformed(fault))


def test_malformed_targets_and_ratings_are_refused():
    y = sparse.csr_array(np.eye(4))
    y.indices[1] = 9
    with pytest.raises(KeslerError, match="y is a malformed sparse matrix"):
        OnlineMultilabelClassifier().fit(DENSE[:4], y)
    with pytest.raises(KeslerError, match="the matrix of row 1 is a malformed"):
        Ratings.from_sparse([sparse.csr_array(np.eye(4)), y], labels=LABELS[:4])
    row = sparse.csr_array(DENSE[:1])
    row.indices[0] = -4
    model = OnlineClassifier("multi", update="pa1").fit(sparse.csr_array(DENSE), LABELS)
    with pytest.raises(KeslerError, match="the row is a malformed"):
        model.learn_one(row, "a")


def test_other_formats_are_checked_too():
    coo = sparse.coo_array(DENSE)
    coo.coords[1][2] = 4
    lil = sparse.lil_array(DENSE)
    lil.rows[1] = [7]
    bsr = sparse.bsr_array(DENSE, blocksize=(2, 2))
    bsr.indices[0] = 2
    csc = sparse.csc_array(DENSE)
    csc.indices[3] = len(DENSE)
    for matrix in (coo, lil, bsr, csc):
        with pytest.raises(KeslerError, match="between 0 and"):
            well_formed(matrix)
    for kind in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr"):
        model = OnlineClassifier("multi", update="pa1").fit(sparse.csr_array(DENSE), LABELS)
        expected = model.decision_function(DENSE)
        found = model.decision_function(sparse.csr_array(DENSE).asformat(kind))
        np.testing.assert_array_equal(found, expected)


integers = st.integers(-2, 8)


@given(
    st.lists(integers, max_size=8),
    st.lists(integers, min_size=1, max_size=6),
    st.integers(0, 8),
    st.integers(0, 4),
    st.integers(1, 6),
)
def test_exactly_the_matrices_that_scipy_finds_consistent_are_accepted(
    indices, indptr, n_data, n_rows, n_columns
):
    matrix = sparse.csr_array((n_rows, n_columns))
    matrix.indices, matrix.indptr = np.array(indices, np.int64), np.array(indptr, np.int64)
    matrix.data = np.arange(1.0, n_data + 1)
    try:
        sparse.csr_array(matrix, copy=True).check_format(full_check=True)
        wanted = indptr[-1] >= 0
    except ValueError:
        wanted = False
    if not wanted:
        with pytest.raises(KeslerError):
            well_formed(matrix)
        return
    found = canonical(well_formed(matrix))
    expected = np.zeros((n_rows, n_columns))
    for row in range(n_rows):
        for entry in range(indptr[row], indptr[row + 1]):
            expected[row, indices[entry]] += matrix.data[entry]
    np.testing.assert_array_equal(found.toarray(), expected)
    assert len(found.indices) == found.indptr[-1] == len(found.data)
    for row in range(n_rows):
        assert (np.diff(found.indices[found.indptr[row] : found.indptr[row + 1]]) > 0).all()


def test_outdated_flags_of_scipy_are_not_believed():
    matrix = sparse.csr_array(DENSE)
    assert matrix.has_canonical_format
    matrix.indices[:2] = [2, 0]
    matrix.indices[3:5] = [3, 3]
    expected = OnlineClassifier("multi", update="pa1").fit(
        sparse.csr_array(matrix.toarray()), LABELS
    )
    model = OnlineClassifier("multi", update="pa1").fit(matrix, LABELS)
    np.testing.assert_array_equal(model.decision_function(DENSE), expected.decision_function(DENSE))


def test_arrays_with_steps_are_learnt_as_contiguous_ones():
    X = sparse.csr_array(DENSE)
    strided = sparse.csr_array(DENSE)
    strided.data = np.repeat(X.data, 2)[::2]
    strided.indices = np.repeat(X.indices, 2)[::2]
    models = [SoftmaxClassifier().fit(rows, LABELS) for rows in (X, strided)]
    np.testing.assert_array_equal(*(model.coef_ for model in models))


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.bool_])
def test_masked_values_are_missing(kind):
    rng = np.random.default_rng(0)
    values, mask = rng.integers(-1, 2, (60, 3)).astype(kind), rng.random((60, 3)) < 0.2
    masked, gaps = np.ma.array(values, mask=mask), np.where(mask, np.nan, values)
    labels = values[:, 0].astype(int).tolist()
    models = [OnlineClassifier().fit(rows, labels) for rows in (masked, gaps)]
    for model, rows in zip(models, (masked, gaps), strict=True):
        model.partial_fit(rows, labels).learn_one(rows[0], labels[0])
    found = models[0].predict_proba(masked)
    assert np.array_equal(found, models[1].predict_proba(gaps))
    assert models[0].predict_proba_one(masked[1]) == models[1].predict_proba_one(gaps[1])
    assert not np.array_equal(found, models[0].predict_proba(values))
    assert np.array_equal(models[0].predict_proba(np.ma.array(gaps)), found)  # none is masked


def test_masked_values_are_refused_as_missing_ones_are():
    masked = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    with pytest.raises(KeslerError, match="row 0, feature 1 is NaN"):
        OnlineClassifier("multi", update="pa1").fit(masked, [0, 1])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        SoftmaxClassifier().fit(masked, [0, 1])
    for labels in (np.ma.array([5, 6], mask=[True, False]), np.ma.array(["a", "b"], mask=[1, 0])):
        with pytest.raises(KeslerError, match="row 0 of y: label None is no class"):
            OnlineClassifier().fit(masked.data, labels)
    with pytest.raises(ValueError, match="NaN"):  # pandas has masks of its own
        SoftmaxClassifier().fit(masked.data, pd.array([5, None], dtype="Int64"))


def test_one_value_as_label_sets_is_refused():
    with pytest.raises(KeslerError, match="one value: give one label set for each row"):
        OnlineMultilabelClassifier().fit([{"text": "some words"}], 3)


FRAME = pd.DataFrame(DENSE, columns=list("abcd")).assign(d="Bern")
WITH_TEXTS = {
    "frame": FRAME,
    "objects": FRAME.to_numpy(),
    "texts": FRAME.to_numpy().astype(str),
}


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("form", WITH_TEXTS)
@pytest.mark.parametrize(
    "made", [ShareBoostClassifier(2), SoftmaxClassifier(), OnlineClassifier()], ids=repr
)
def test_texts_in_place_of_numbers_are_refused_with_what_learns_them(made, form):
    made = clone(made).fit(DENSE, LABELS)
    with pytest.raises(KeslerError, match=r"X holds texts, .* from the first row on"):
        made.predict(WITH_TEXTS[form])


@pytest.mark.parametrize("form", WITH_TEXTS)
def test_learners_of_batches_say_what_learns_texts(form):
    with pytest.raises(KeslerError, match=r"X holds texts, and SoftmaxClassifier reads"):
        SoftmaxClassifier().fit(WITH_TEXTS[form], LABELS)
    assert len(OnlineClassifier().fit(FRAME, LABELS).predict(FRAME)) == len(LABELS)

"""Spaces of joint features: names, arrays and sparse rows, against vectors of NumPy."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from kesler import KeslerError
from kesler.online.joint_features import gram, space_for

N = 7


def halves(v: Any) -> Any:
    """A sparse row that holds each value in two parts."""
    places = np.tile(np.arange(N), 2)
    return sparse.coo_array((np.tile(v / 2, 2), (np.zeros_like(places), places)), shape=(1, N))


FORMS: dict[str, Any] = {
    "names": lambda v: {f"f{i}": x for i, x in enumerate(v.tolist()) if x},
    "names of zeros": lambda v: {f"f{i}": x for i, x in enumerate(v.tolist())},
    "lists": lambda v: v.tolist(),
    "sparse rows": lambda v: sparse.csr_array(v[None]),
    "sparse vectors": sparse.coo_array,
    "sums of entries": halves,
}


def dense(vector: Any) -> Any:
    found = np.zeros(N)
    if isinstance(vector, tuple):
        found[vector[0]] = vector[1]
    else:
        for name in vector:
            found[int(name[1:])] = vector[name]
    return found


def weights_of(view: Any) -> Any:
    return view if isinstance(view, np.ndarray) else dense(view)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", FORMS)
def test_operations_are_those_of_vectors(form, seed):
    rng, as_phi = np.random.default_rng(seed), FORMS[form]
    u, v = (rng.integers(-1, 3, N) * 0.5 for _ in range(2))
    u[0] = v[0] = 1.5  # what both have, and of equal value
    space, other = space_for(as_phi(u)), space_for(as_phi(v))
    a, b = space.read(as_phi(u)), space.read(as_phi(v))
    np.testing.assert_array_equal(dense(a), u)
    apart = space.difference(a, b)
    np.testing.assert_array_equal(dense(apart), u - v)
    assert len(apart[0] if isinstance(apart, tuple) else apart) == np.count_nonzero(u - v)
    assert [space.dot(a, b), space.dot(b, a), space.dot(a, a)] == [u @ v, u @ v, u @ u]
    rows = np.array([u, v, u])
    assert gram(space, [a, b, a]).tolist() == (rows @ rows.T).tolist()

    space.add(0.5, a)
    space.add(-2.0, b)
    other.add(3.0, b)
    w = 0.5 * u - 2.0 * v
    np.testing.assert_array_equal(weights_of(space.view()), w)
    assert [space.score(a), space.score(b)] == [w @ u, w @ v]
    for left in (space.less(other, 0.25).view(), space.view_less(other, 0.25)):
        np.testing.assert_array_equal(weights_of(left), w - 0.75 * v)
    with space.moved(np.array([1.0, -3.0]), [a, b]):
        np.testing.assert_array_equal(weights_of(space.view()), w + u - 3.0 * v)
    np.testing.assert_array_equal(weights_of(space.view()), w)
    with pytest.raises((TypeError, ValueError)):
        space.view()[0 if isinstance(a, tuple) else "f0"] = 1.0


def test_names_that_were_moved_along_are_forgotten():
    space = space_for({"a": 1.0})
    space.add(1.0, {"a": 1.0})
    with (
        pytest.raises(ZeroDivisionError),
        space.moved(np.array([1.0, 1.0]), [{"a": 1.0, "b": 1.0}] * 2),
    ):
        raise ZeroDivisionError
    assert dict(space.view()) == {"a": 1.0}
    left = space.view_less(space, 0.5)
    assert (len(left), left.get("a"), left.get("b"), left.get("b", 2), left["b"]) == (
        1,
        0.5,
        None,
        2,
        0,
    )
    assert "a" in left and "b" not in left


@pytest.mark.parametrize(
    ("phi", "words"),
    [
        ([1.0, 2.0], "returned 2 numbers, but 3 the first time"),
        ([0.0, np.nan, np.inf], "NaN or infinite at feature 1:"),
        ([2.0, 0.0, np.inf], "NaN or infinite at feature 2:"),
        ("x" * 100, rf"must return numbers here, not str \('{'x' * 59}\): return"),
        ([[1.0, 2.0, 3.0]], r"an array of shape \(n_features,\) here, not list \("),
        (np.eye(3), r"not ndarray \(shape \(3, 3\)\)"),
        (sparse.csr_array((2, 3)), r"one row here, not csr_array \(shape \(2, 3\)\)"),
        (sparse.csr_array((0, 3)), r"one row here, not csr_array \(shape \(0, 3\)\)"),
        (1.0, r"an array of shape \(n_features,\) here, not float \(1.0\)"),
    ],
    ids=str,
)
def test_what_is_no_vector_of_an_array_is_refused(phi, words):
    space = space_for([1.0, 0.0, 2.0])
    with pytest.raises(KeslerError, match=words):
        space.read(phi)


@pytest.mark.parametrize(
    ("phi", "words"),
    [
        ([1.0], r"a mapping of names to values here, not list \(\[1.0\]\)"),
        ({"a": "b"}, "must map names to numbers"),
        ({"a": 1.0, "b": -np.inf, "c": np.nan}, "gave 'b' the value -inf: every value"),
    ],
    ids=str,
)
def test_what_is_no_mapping_to_numbers_is_refused(phi, words):
    space = space_for({"a": 1.0})
    with pytest.raises(KeslerError, match=words):
        space.read(phi)

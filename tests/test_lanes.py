"""Loops over whole cache lines do what NumPy does number by number, to the bit."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from numba import config, types

from kesler.compiled.jit import simd
from kesler.compiled.jit.decorators import FLOAT_TABLE, FLOATS, INDICES, INT, kernel
from kesler.compiled.jit.numba_internals import register_width
from kesler.compiled.weights.scores import add_products, dense_best, dense_best_but

NUMBERS = st.floats(-1e3, 1e3, width=32)
SCORES = st.sampled_from([-2.0, -0.0, 0.0, 1.0, 1.5, np.inf, -np.inf])
WIDTHS = (1, 15, 16, 17, 48, 50, 115)
NARROWER = "KESLER_TESTS_REGISTER_WIDTH"


@kernel(types.UniTuple(INT, 2)(FLOATS, INT))
def winners(scores: Any, y: int) -> Any:
    k = scores.shape[0]
    return dense_best(scores, scores, k), dense_best_but(scores, scores, k, y)


@kernel(types.void(INDICES, FLOATS, INDICES, FLOAT_TABLE, INT, FLOATS))
def products(indices: Any, values: Any, upcoming: Any, weights: Any, offset: int, out: Any) -> None:
    add_products(indices, values, upcoming, weights, offset, out.shape[0], out)


@kernel(
    types.Tuple((types.float64, types.float32, types.boolean, types.boolean))(
        FLOATS, FLOATS, FLOATS
    )
)
def operations(one: Any, other: Any, out: Any) -> Any:
    a, b = simd.load(one, 0), simd.load(other, 0)
    simd.store(out, 0, (a + b) * a - np.float32(2) * b)
    wide = simd.widen(a) * 3.0
    simd.store(out, 16, simd.larger(simd.narrow(wide), simd.spread(np.float32(1))))
    total, highest = simd.total_of(wide), simd.highest_of(b)
    return total, highest, simd.holds(b, highest), simd.holds(b, np.float32(1e6))


@kernel(types.float32(FLOATS, FLOATS, INT, FLOATS))
def choices(one: Any, other: Any, n: int, out: Any) -> Any:
    a, b = simd.load(one, 0), simd.load(other, 0)
    simd.store(out, 0, simd.beyond(a, b, a / b))
    simd.store(out, 16, simd.first_of(a, n))
    half = simd.load_half(one, 8)
    simd.store(out, 32, simd.first_of(half * np.float32(2) + half, n - 8))
    return simd.beyond(one[0], other[0], one[0] / other[0])


@given(arrays(np.float32, st.integers(1, 70), elements=SCORES), st.data())
def test_the_best_class_is_the_first_of_the_highest_score(
    scores: npt.NDArray[np.float32], data: Any
) -> None:
    y, before = data.draw(st.integers(0, len(scores) - 1)), scores.copy()
    winner, rival = winners(scores, y)
    assert winner == int(np.argmax(before))
    others = np.flatnonzero(np.arange(len(scores)) != y)
    finite = np.where(np.isneginf(before), np.float32(-1e30), before)
    expected = others[np.argmax(finite[others])] if len(others) else -1
    if not np.isneginf(before[others]).all():
        assert rival == expected
    np.testing.assert_array_equal(scores, before)


def test_no_class_no_winner() -> None:
    assert winners(np.empty(0, dtype=np.float32), 0) == (-1, -1)


@pytest.mark.parametrize("width", WIDTHS)
@given(data=st.data())
def test_products_are_added_in_the_order_that_is_documented(width: int, data: Any) -> None:
    n, offset = data.draw(st.integers(0, 11)), data.draw(st.integers(0, 3))
    weights = data.draw(arrays(np.float32, (12, 128), elements=NUMBERS))
    values = data.draw(arrays(np.float32, n, elements=NUMBERS))
    indices = data.draw(st.permutations(range(12)).map(lambda p: np.array(p[:n], np.int32)))
    upcoming = np.arange(data.draw(st.integers(0, 12)), dtype=np.int32)
    out = np.ones(width, dtype=np.float32)
    products(indices, values, upcoming, weights, offset, out)
    terms = values[:, None] * weights[indices, offset : offset + width]
    expected = np.ones(width, dtype=np.float32)
    for term in terms:
        expected += term
    np.testing.assert_array_equal(out, expected)


@given(*[arrays(np.float32, 16, elements=NUMBERS)] * 2)
def test_a_line_is_an_array_of_sixteen(
    one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]
) -> None:
    out = np.empty(32, dtype=np.float32)
    total, highest, holds, holds_not = operations(one, other, out)
    np.testing.assert_array_equal(out[:16], (one + other) * one - np.float32(2) * other)
    np.testing.assert_array_equal(out[16:], np.maximum((one * 3.0).astype(np.float32), 1))
    halves = one * np.float64(3)
    while len(halves) > 1:
        halves = halves[: len(halves) // 2] + halves[len(halves) // 2 :]
    assert total == halves[0]
    assert (highest, holds, holds_not) == (other.max(), True, False)


@given(*[arrays(np.float32, 16, elements=NUMBERS)] * 2, st.integers(-20, 40))
def test_lanes_are_chosen_by_size_and_by_place(
    one: npt.NDArray[np.float32], other: npt.NDArray[np.float32], n: int
) -> None:
    out, bound = np.empty(40, dtype=np.float32), np.abs(other) + np.float32(1e-3)
    first = choices(one, bound, n, out)
    expected = np.where(np.abs(one) > bound, one / bound, np.float32(0))
    np.testing.assert_array_equal(out[:16], expected)
    np.testing.assert_array_equal(out[16:32], np.where(np.arange(16) < n, one, 0))
    tripled = one[8:] * np.float32(2) + one[8:]
    np.testing.assert_array_equal(out[32:], np.where(np.arange(8) < n - 8, tripled, 0))
    assert first == expected[0]


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are processors of x86-64")
@pytest.mark.parametrize(("processor", "bits"), [("haswell", 256), ("x86-64-v2", 128)])
def test_lines_are_the_same_on_processors_with_narrower_registers(
    processor: str, bits: int, tmp_path: Path
) -> None:
    settings = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": "", NARROWER: str(bits)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    environment = os.environ | settings | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [*command, "-k", "not narrower"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_the_width_of_registers_is_that_of_the_processor() -> None:
    expected = os.environ.get(NARROWER)
    assert str(register_width()) in ([expected] if expected else ["512", "256", "128"])

"""Copies of tables to larger ones."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesler.compiled.weights.copies import SPAN, copy_filled
from kesler.state.capacity import CACHE_LINE, LARGE_PAGE, aligned_zeros


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 3000),
    st.integers(1, 40),
    st.integers(0, 5),
    st.sampled_from([0.0, 0.001, 0.5, 1.0]),
    st.sampled_from([(np.float32, np.float32), (np.float64, np.float64), (np.float64, np.float32)]),
    st.integers(0, 9),
)
def test_a_copy_is_that_of_numpy(n_rows, n_columns, n_before, share, dtypes, seed):
    generator, (given_type, wanted) = np.random.default_rng(seed), dtypes
    table = generator.normal(size=(n_rows, n_columns + n_before)).astype(given_type)
    table[generator.random(n_rows) >= share] = 0
    source = table[:, n_before:]
    target = np.zeros((n_rows + 2, 2 * n_columns + n_before), dtype=wanted)
    expected = target.copy()
    expected[:n_rows, n_before : n_before + n_columns] = source
    copy_filled(source, target[:, n_before : n_before + n_columns])
    np.testing.assert_array_equal(target, expected)


def test_rows_of_nan_and_of_negative_zero_are_copied_bit_by_bit():
    source = np.array([[np.nan], [-0.0], [0.0]], dtype=np.float32)
    target = np.zeros((3, 2), dtype=np.float32)
    copy_filled(source, target[:, 1:])
    assert target[:, 1].tobytes() == source.tobytes()


@pytest.mark.parametrize(("rows", "unit"), [(1 << 10, CACHE_LINE), (1 << 17, LARGE_PAGE)])
def test_tables_begin_where_the_machine_reads_from(rows, unit):
    table = aligned_zeros(rows, 16)
    assert table.ctypes.data % unit == 0
    assert table.shape == (rows, 16) and not table.any()


def memory():
    """Return how many bytes of memory this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux says what memory it gave")
def test_memory_that_no_row_fills_is_not_taken():
    n, step = 1 << 19, 64
    source, target = aligned_zeros(n, 16), aligned_zeros(n, step)
    source[: SPAN // (4 * step)] = 1
    before = memory()
    copy_filled(source, target[:, :16])
    assert memory() - before < target.nbytes / 4
    assert target[: SPAN // (4 * step), :16].all()

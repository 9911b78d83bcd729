"""What papers/shareboost2011.py must show, on the parts that run in seconds."""

from __future__ import annotations

import pytest

import shareboost2011


@pytest.mark.parametrize("k", [16, 32])
def test_shareboost_needs_log_k_columns_where_l1_and_frobenius_use_k(k):
    X, y = shareboost2011.code_and_unit(k)
    n_bits = k.bit_length() - 1
    assert shareboost2011.columns_of_shareboost(X, y, 2 * n_bits) <= 2 * n_bits
    assert shareboost2011.columns_of_l1(X, y) >= k
    assert shareboost2011.columns_of_frobenius(X, y) >= k


@pytest.mark.parametrize("n_blocks", [2, 8, 20])
def test_shareboost_needs_few_columns_where_the_mixed_norm_spreads_over_all_blocks(n_blocks):
    X, y = shareboost2011.code_blocks(16, n_blocks, in_turn=True)
    assert shareboost2011.columns_of_shareboost(X, y, 16) <= 16
    assert shareboost2011.columns_of_mixed_norm(X, y) == X.shape[1]

"""The error among the rows of highest confidence, against loops over rows and orders of rows."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesler import KeslerError
from kesler.evaluation.confidence import RiskCoverage

ROWS = st.lists(
    st.tuples(st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9, 1.0]), st.booleans()),
    min_size=1,
    max_size=40,
)


def curve_of(rows):
    return RiskCoverage.of([p for p, _ in rows], [wrong for _, wrong in rows])


def answered(rows, threshold):
    """The mistakes of the rows of at least this confidence."""
    return [wrong for p, wrong in rows if p >= threshold]


def chance_of_at_most(k, n, p):
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


def upper_limit(k, n, miss):
    """The largest share under which at most k of n mistakes have this probability, by bisection."""
    low, high = 0.0, 1.0
    while k < n and high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if chance_of_at_most(k, n, middle) > miss else (low, middle)
    return high if k < n else 1.0


def lower_limit(k, n, miss):
    return 1 - upper_limit(n - k, n, miss)


@given(ROWS)
def test_each_point_is_the_error_of_the_rows_answered(rows):
    found = curve_of(rows)
    assert found.thresholds.tolist() == sorted({p for p, _ in rows}, reverse=True)
    for threshold, coverage, risk in zip(found.thresholds, found.coverage, found.risk, strict=True):
        kept = answered(rows, threshold)
        assert coverage == len(kept) / len(rows) and risk == sum(kept) / len(kept)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from([0.2, 0.6]), st.booleans()), min_size=1, max_size=6))
def test_the_area_is_the_mean_over_all_orders_of_equal_confidences(rows):
    areas = []
    for order in permutations(range(len(rows))):
        ranked = sorted((rows[i] for i in order), key=lambda row: -row[0])
        errors = [sum(w for _, w in ranked[:k]) / k for k in range(1, len(rows) + 1)]
        areas.append(sum(errors) / len(errors))
    assert curve_of(rows).area == pytest.approx(sum(areas) / len(areas), abs=1e-12)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_has_no_effect(rows, random):
    mixed = random.sample(rows, len(rows))
    assert curve_of(mixed).area == curve_of(rows).area
    assert (curve_of(mixed).risk == curve_of(rows).risk).all()


@given(ROWS, st.sampled_from([0.0, 0.05, 0.2, 0.5, 0.9]))
def test_the_threshold_is_the_lowest_that_reaches_the_error(rows, error):
    levels = sorted({p for p, _ in rows})
    reached = [p for p in levels if sum(answered(rows, p)) <= error * len(answered(rows, p))]
    if not reached:
        with pytest.raises(KeslerError, match="no confidence reaches an error of"):
            curve_of(rows).threshold_for(error)
        return
    found, kept = curve_of(rows).threshold_for(error), answered(rows, reached[0])
    assert found.confidence == reached[0]
    assert (found.n_answered, found.coverage) == (len(kept), len(kept) / len(rows))
    assert found.error == sum(kept) / len(kept) <= error
    assert found.error_limit == pytest.approx(upper_limit(sum(kept), len(kept), 0.05), abs=1e-9)


@given(ROWS, st.sampled_from([0.05, 0.2, 0.5, 0.9]))
def test_below_the_interval_the_error_is_refuted(rows, error):
    try:
        low, high = curve_of(rows).threshold_for(error).interval
    except KeslerError:
        return
    for p in sorted({p for p, _ in rows}):
        kept = answered(rows, p)
        limit = lower_limit(sum(kept), len(kept), 0.025)
        if p < low:
            assert limit > error - 1e-9
        if p == low:
            assert limit <= error + 1e-9
    if math.isfinite(high):
        kept = answered(rows, high)
        n_tests = math.ceil(math.log2(len({p for p, _ in rows}) + 1))
        assert upper_limit(sum(kept), len(kept), 0.025 / n_tests) <= error + 1e-9


def drawn(rng, n, spread=0.5):
    """Rows whose probability of a mistake falls with their confidence."""
    confidences = rng.random(n)
    return confidences, rng.random(n) < spread * (1 - confidences)


def test_the_interval_covers_the_true_threshold():
    # The error among confidences above c is (1 - c) / 4, which is 0.1 at c = 0.6.
    rng, covered, widths = np.random.default_rng(0), 0, []
    for _ in range(200):
        low, high = RiskCoverage.of(*drawn(rng, 2000)).threshold_for(0.1).interval
        covered += low <= 0.6 <= high
        widths.append(high - low)
    assert covered >= 190 and np.median(widths) < 0.25


def test_the_guarantee_holds_for_all_tests_together():
    # 64 confidences take 7 tests; that of the upper half, 0 of 800 rows, decides.
    p, wrong = np.repeat(np.arange(64, 0, -1) / 64, 25), np.repeat([False, True], 800)
    limit, alone = upper_limit(0, 800, 0.025 / 7), upper_limit(0, 800, 0.025)
    between = (limit + alone) / 2
    curve = RiskCoverage.of(p, wrong)
    assert curve.threshold_for(limit + 1e-6).interval[1] <= 33 / 64
    assert curve.threshold_for(between).interval[1] > 33 / 64


def test_rows_without_a_confidence_are_left_out():
    p, wrong = [0.9, math.nan, 0.4, 0.3], [False, True, True, True]
    found = RiskCoverage.of(p, wrong, np.array([True, True, True, False]))
    assert found.thresholds.tolist() == [0.9, 0.4] and found.n_left_out == 2
    assert found.risk.tolist() == [0.0, 0.5] and found.area == 0.25


@pytest.mark.parametrize("p", [[], [math.nan, math.nan]])
def test_without_confidences_there_is_no_curve(p):
    with pytest.raises(KeslerError, match="no row has a confidence"):
        RiskCoverage.of(p, [False] * len(p))


def test_arrays_of_other_lengths_are_refused():
    with pytest.raises(KeslerError, match=r"shape \(2,\).*\(1,\)"):
        RiskCoverage.of([0.5, 0.5], [True])


@pytest.mark.parametrize("error", [-0.1, 1, 1.5, math.nan, "5 %", None, True])
def test_errors_that_are_no_share_are_refused(error):
    with pytest.raises(KeslerError, match="give a share of mistakes"):
        curve_of([(0.5, False)]).threshold_for(error)

"""Features of numbers and dates of tables: those of a reference that knows all rows before."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kesler.data.schema.features import cycles_of, z_scores


def reference(numbers: np.ndarray, weights: np.ndarray, decay: float) -> np.ndarray:
    """Return the z-score of each number over those before, which count less, and itself."""
    found = np.full(len(numbers), np.nan)
    known = ~np.isnan(numbers)
    for row in np.flatnonzero(known):
        before = np.flatnonzero(known[:row])
        shares = weights[before] * decay ** np.arange(len(before), 0, -1)
        values, shares = numbers[[*before, row]], np.append(shares, 1.0)
        mean = np.average(values, weights=shares)
        deviation = math.sqrt(np.average((values - mean) ** 2, weights=shares))
        found[row] = np.clip((numbers[row] - mean) / deviation, -4, 4) if deviation else 0.0
    return found


@given(st.integers(0, 2**32), st.sampled_from([1.0, 0.9]), st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_scores_are_those_over_the_rows_so_far(
    seed: int, decay: float, has_weights: bool, has_gaps: bool
) -> None:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(5, 3, size=40)
    if has_gaps:
        numbers[rng.random(40) < 0.3] = np.nan
    numbers[:2] = 0.0, 10.0  # so that none is thirty deviations away
    weights = rng.integers(1, 4, size=40).astype(float) if has_weights else np.ones(40)
    given_weights = weights if has_weights else None
    expected = reference(numbers, weights, decay)
    update: dict[str, Any] = {}
    found = z_scores("x", {}, given_weights, update, decay, numbers)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    # Any split of the rows, and rows that are scored and not learnt.
    first = z_scores("x", {}, None if given_weights is None else weights[:25], update, decay,
                     numbers[:25])  # fmt: skip
    moments = dict(update)
    rest = z_scores("x", moments, None if given_weights is None else weights[25:], update, decay,
                    numbers[25:])  # fmt: skip
    assert np.array_equal(np.concatenate([first, rest]), found, equal_nan=True)
    scored = [z_scores("x", moments, None, None, decay, numbers[[row]])[0] for row in range(25, 40)]
    afresh = [
        reference(np.append(numbers[:25], numbers[row]), np.append(weights[:25], 1.0), decay)[-1]
        for row in range(25, 40)
    ]
    assert_allclose(scored, afresh, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("number", [1e3, -1e3, 3e38])
def test_a_number_that_is_very_far_away_counts_as_thirty_deviations(number: float) -> None:
    numbers = np.array([-1.0, 1.0] * 50 + [number])
    update: dict[str, Any] = {}
    scores = z_scores("x", {}, None, update, 1.0, numbers)
    assert scores[-1] == math.copysign(4.0, number)
    n, mean, _ = update["x"]
    assert n == 101 and abs(mean) <= 30.1 / 101 * math.sqrt(1.0)


def test_equal_numbers_have_the_score_0() -> None:
    assert z_scores("x", {}, None, {}, 1.0, np.full(5, 7.0)).tolist() == [0.0] * 5


@given(st.lists(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)) | st.none(), max_size=9))
@settings(deadline=None)
def test_dates_are_points_on_circles(moments: list[datetime | None]) -> None:
    found = cycles_of(np.array(moments, dtype="datetime64[us]"))
    for point, moment in zip(found, moments, strict=True):
        if moment is None:
            assert point.tolist() == [0.0] * 6
            continue
        of_day = timedelta(hours=moment.hour, minutes=moment.minute) / timedelta(days=1)
        places = of_day, (moment.isoweekday() - 1 + of_day) / 7
        places += ((moment.date() - moment.date().replace(month=1, day=1)).days / 366,)
        expected = [f(2 * math.pi * place) for place in places for f in (math.sin, math.cos)]
        assert_allclose(point, expected, atol=1e-12)

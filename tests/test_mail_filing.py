"""Which messages are filed: the threshold, from the past alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from kesler.errors import KeslerError
from kesler.mail.filing import Filing


def random_past(seed, n=600):
    """Return sureness and whether it was right, more often so if it is large."""
    rng = np.random.default_rng(seed)
    sure = rng.normal(2, 2, n).round(2)
    return sure, rng.uniform(size=n) < 1 / (1 + np.exp(-1 - sure))


def learnt(error, sure, right):
    filing = Filing(error)
    for each, was in zip(sure, right, strict=True):
        filing.learn(each, "a", bool(was))
    return filing


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("error", [0.02, 0.1])
def test_the_threshold_is_the_lowest_whose_error_is_certainly_below_the_wished_one(seed, error):
    sure, right = random_past(seed)
    allowed = []
    for threshold in np.unique(sure):
        n, wrong = (sure >= threshold).sum(), (~right[sure >= threshold]).sum()
        # So few mistakes have a chance of one in five if the error is the wished one.
        if binom.cdf(wrong, n, error) <= 0.2 and n >= round(3 / error):
            allowed.append(threshold)
    expected = min(allowed) if allowed else math.inf
    assert learnt(error, sure, right).threshold == expected


def test_nothing_is_filed_before_fifty_messages():
    filing = Filing(0.5)
    for _ in range(49):
        filing.learn(9.0, "a", True)
        assert not filing.files(99.0)
    filing.learn(9.0, "a", True)
    assert filing.files(9.0)
    assert not filing.files(8.9)


@pytest.mark.parametrize(("error", "fewest"), [(0.02, 150), (0.05, 60)])
def test_nothing_is_filed_before_the_wished_error_is_three_mistakes(error, fewest):
    filing = learnt(error, [9.0] * fewest + [8.0] * 25, [True] * fewest + [False] * 25)
    assert filing.threshold == 9.0
    filing = learnt(error, [9.0] * (fewest - 1) + [8.0] * 26, [True] * (fewest - 1) + [False] * 26)
    assert filing.threshold == math.inf


def test_nothing_is_filed_where_all_is_wrong():
    assert learnt(0.02, *random_past(0)[:1], [False] * 600).threshold == math.inf


def test_sureness_grows_with_confidence_agreement_and_what_was_right_in_the_folder():
    filing = Filing()
    of = filing.sureness
    assert of(0.9, "a", {}) > of(0.8, "a", {})
    assert of(0.9, "a", {"thread in:a": 10.0, "sender in:a": 10.0}) == of(0.9, "a", {}) + 0.5
    assert of(0.9, "a", {"thread in:b": 10.0}) == of(0.9, "a", {})
    assert math.isfinite(of(1.0, "a", {}) - of(0.0, "a", {}))
    before = of(0.9, "a", {})
    filing.learn(1.0, "a", True)
    assert of(0.9, "a", {}) == pytest.approx(before + math.log(2))
    filing.learn(1.0, "a", False)
    assert of(0.9, "a", {}) == pytest.approx(before + math.log(1.97 / 2))
    assert of(0.9, "b", {}) == before


@pytest.mark.parametrize("error", [-0.1, 1, "2 %", True])
def test_a_wished_error_is_a_share(error):
    with pytest.raises(KeslerError, match="give a share of mistakes"):
        Filing(error)

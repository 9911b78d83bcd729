"""Statistics that compare learners over sets: geometric means, McNemar's test."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest

Errors = Mapping[str, float]
"""Mistakes in % by set."""


def geometric_mean(errors: Errors, reference: Errors) -> float:
    """Return the geometric mean of the errors relative to a reference, over the sets of both.

    Examples
    --------
    >>> geometric_mean({"a": 1.0, "b": 8.0}, {"a": 2.0, "b": 4.0})
    1.0
    """
    shares = [errors[name] / reference[name] for name in errors if name in reference]
    return float(np.exp(np.mean(np.log(shares)))) if shares else float("nan")


def mcnemar(ours: npt.NDArray[np.bool_], theirs: npt.NDArray[np.bool_]) -> float:
    """Return the exact two-sided p-value of McNemar's test, from the mistakes on the same rows.

    Examples
    --------
    >>> mcnemar(np.zeros(5, dtype=bool), np.ones(5, dtype=bool))
    0.0625
    """
    only_ours = int(np.count_nonzero(ours & ~theirs))
    only_theirs = int(np.count_nonzero(theirs & ~ours))
    if only_ours + only_theirs == 0:
        return 1.0
    return float(binomtest(only_ours, only_ours + only_theirs).pvalue)

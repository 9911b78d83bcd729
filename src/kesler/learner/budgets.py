"""Budgets of learners over a kernel: what they require, and the capacity that they need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kesler.budgets import POLICIES, Budget
from kesler.errors import KeslerError
from kesler.hypotheses import Ordered, Part
from kesler.preprocessing import Preprocessing, Ranges
from kesler.state.fields import Arrays, damaged
from kesler.updates.rule import UpdateRule


def require_fit(
    budget: Budget,
    rule: UpdateRule,
    parts: Sequence[Part],
    preprocessing: Preprocessing | None,
    half_life: float | None,
) -> None:
    """Raise if the policy of a budget does not fit the other parameters of a learner."""
    wanted = POLICIES[budget.policy].rule
    if wanted and type(rule).__name__ != wanted:
        name = {"Perceptron": '"perceptron"', "MarginPerceptron": "MarginPerceptron()"}[wanted]
        raise KeslerError(
            f"{budget!r} is defined for the rule {wanted}, not for {rule!r}: choose update={name}, "
            'or a policy for every rule, such as "projectron"'
        )
    if half_life is not None and budget.is_measured:
        raise KeslerError(
            f"{budget!r} assumes that all rows have the same weight, which a half-life changes: "
            'omit half_life, or choose policy="least-recent"'
        )
    if budget.projects and isinstance(preprocessing, Ranges):
        raise KeslerError(
            f"{preprocessing!r} changes the units of rows after they were learnt, and {budget!r} "
            'stores the inverse of the Gram matrix of these rows: choose preprocessing="z-scores" '
            "or None"
        )
    if budget.policy == "projectron++" and not _is_plain(parts):
        raise KeslerError(
            f"{budget!r} has one step for the whole update, and so requires one part of the "
            "hypotheses, without a feature map or thresholds: choose "
            'hypotheses="multi", or policy="projectron"'
        )
    if budget.policy == "forgetron" and any(isinstance(part, Ordered) for part in parts):
        raise KeslerError(
            f"{budget!r} shrinks all of the hypotheses by one factor, and Ordered ones have "
            'thresholds that are in no support vector: choose hypotheses="multi", or '
            'policy="projectron"'
        )


def _is_plain(parts: Sequence[Part]) -> bool:
    """Return whether there is one part, whose view of a row is the row."""
    return len(parts) == 1 and parts[0].feature_map is None and not isinstance(parts[0], Ordered)


def projected_capacity(
    size: int, in_use: Sequence[int], widths: Sequence[int], n_supports: int
) -> tuple[int, int]:
    """Return how many more support vectors and entries trials may need, if they project.

    Parameters
    ----------
    size : the budget.
    in_use, widths : the number of support vectors and of hypotheses of each part.
    n_supports : the number of support vectors that the trials would store without a budget.
    """
    n_more = min(n_supports, size - min(in_use))
    entries = [min(size, n + n_more) * width for n, width in zip(in_use, widths, strict=True)]
    return n_more, max(entries)


def require_whole(n: int, oldest: int, size: int, own: Arrays) -> None:
    """Raise unless each of n support vectors of a model file has an entry for each hypothesis.

    Those up to the last hypothesis that was updated have one.
    """
    starts = own["entry_starts"][: n + 1]
    width = int(starts[1]) if n else 0
    owners = own["owners"][: n * width]
    if n > size or oldest or (starts != np.arange(n + 1) * width).any():
        raise damaged(f"{n} projected support vectors do not have {width} entries each")
    if (owners != np.tile(np.arange(width), n)).any():
        raise damaged("projected support vectors do not have the hypotheses in order")

"""The first row of a class, whose ratings are those of all classes that have not been seen.

Mesterharm (2001), Section 6.2: sub-experts give one rating to every class that has not been seen,
low enough that such a class is never predicted. Once the class has been learnt, they rate it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label
from kesler.data.ratings import Ratings
from kesler.errors import KeslerError
from kesler.learner.classes import ClassTable
from kesler.maps.view import Unseen

# The share of the range of ratings by which the mean of the lowest class is undercut: float32 must
# not turn a defeat into a tie.
SHORTFALL = 1e-3

Numbers = npt.NDArray[np.float64]


def runs_of(classes: ClassTable, labels: Sequence[Label]) -> Iterator[tuple[slice, bool]]:
    """Yield the rows in runs: first rows of classes one by one, and those between them.

    Examples
    --------
    >>> for rows, is_first in runs_of(ClassTable("a"), "aabab"):
    ...     print(rows, is_first)
    slice(0, 2, None) False
    slice(2, 3, None) True
    slice(3, 5, None) False
    """
    start, seen = 0, {*classes.labels}
    for t, label in enumerate(labels):
        if label not in seen:
            seen.add(label)
            if start < t:
                yield slice(start, t), False
            yield slice(t, t + 1), True
            start = t + 1
    if start < len(labels) or start == 0:  # also if there is no row
        yield slice(start, len(labels)), False


def rated_as_unseen(
    ratings: Ratings,
    label: Label,
    known: ClassTable,
    weights: Numbers,
    unseen: Unseen | None = None,
) -> Ratings:
    """Return the ratings of one row with those that this class has while it is unseen.

    Parameters
    ----------
    ratings : the ratings of the row, without zeros.
    label : the label of the class.
    known : the classes seen before, at least one.
    weights : the weight of each sub-expert, or common multiples of them.
    unseen : a user's function of the ratings of unseen classes, None for ours.
    """
    labels = [ratings.labels[number] for number in ratings.rated]
    rated = {r: ratings.vectors[i : i + 1] for i, r in enumerate(labels) if r in known}
    listed = np.unique(
        np.concatenate([np.empty(0, np.int32), *(v.indices for v in rated.values())])
    )
    # Classes that a row does not rate have the rating 0 from every sub-expert.
    table = np.zeros((min(len(rated) + 1, len(known)), len(listed)))
    for line, vector in zip(table, rated.values(), strict=False):
        line[np.searchsorted(listed, vector.indices)] = vector.values
    entries = {r: dict(zip(v.indices.tolist(), v.values, strict=True)) for r, v in rated.items()}
    if unseen is None:
        entries[label] = dict.fromkeys(listed.tolist(), rating_of_unseen(table, weights[listed]))
    else:
        entries[label] = dict(enumerate(_by_user(unseen, label, rated, known, weights)))
    found = Ratings.from_sparse_rows(entries).without_zeros()
    return replace(found, n_sub_experts=ratings.n_sub_experts)


def _by_user(
    unseen: Unseen, label: Label, rated: Mapping[Label, Any], known: ClassTable, weights: Numbers
) -> list[float]:
    """Return the ratings of an unseen class by each sub-expert, from a user's function."""
    table = np.zeros((len(known), len(weights)))
    for r, vector in rated.items():
        table[known.code(r), vector.indices] = vector.values
    try:
        found = np.asarray(unseen(label, table, weights.copy()), dtype=np.float64)
        each = np.broadcast_to(found, weights.shape)
    except Exception as error:
        raise KeslerError(
            f"{unseen!r} failed on the ratings of the unseen class {label!r} ({error}): it must "
            f"return one number, or one for each of the {len(weights)} sub-experts"
        ) from error
    if not np.isfinite(each).all():
        raise KeslerError(f"{unseen!r} rated the unseen class {label!r} by numbers not finite")
    return each.tolist()  # type: ignore[no-any-return]


def rating_of_unseen(ratings: Numbers, weights: Numbers) -> float:
    """Return the rating c of unseen classes by every sub-expert.

    It is within the range of the ratings of the known classes, shape (n_classes, n_sub_experts).
    For positive weights c times their sum is below every score, unless all ratings are equal.

    Examples
    --------
    >>> round(rating_of_unseen(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([1.0, 3.0])), 3)
    0.249
    """
    if not ratings.size:
        return 0.0
    lowest, highest, total = ratings.min(), ratings.max(), weights.sum()
    if total == 0:
        return float(lowest)
    mean = (ratings @ weights).min() / total
    below = mean - np.sign(total) * SHORTFALL * (highest - lowest)
    return float(np.clip(below, lowest, highest))

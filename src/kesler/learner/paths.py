"""Contributions of columns that trials mix: replaced one after another, from a baseline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kesler.data.ratings import Ratings
from kesler.data.rows import Rows
from kesler.data.sparse_rows import SparseRows
from kesler.learner.ensemble import AnyLearner
from kesler.learner.explanations import Terms
from kesler.learner.forest_learner import ForestLearner
from kesler.preprocessing import ZScores

Doubles = npt.NDArray[np.float64]

# The number of rows along all orders of a row's columns, where the columns are few; at least one
# order and its reverse are walked.
MOST_STEPS = 512
MOST_PAIRS = 8
# Entries of rows that are scored at once.
MOST_ENTRIES = 1 << 20

Scorer = Callable[[Rows], Doubles]
"""Returns the scores of classes by own and by shared hypotheses, of shape (n_rows, classes, 2)."""


class Replaced(Protocol):
    """What of a row is replaced one after another: columns, or the cells of a table.

    Attributes
    ----------
    numbers, values : the numbers of features, and then of sub-experts, and their values.
    n_features : how many are features.
    """

    numbers: npt.NDArray[np.int64]
    values: Doubles
    n_features: int

    def rows_of(self, masks: npt.NDArray[np.bool_]) -> Rows:
        """Return a row for each mask (n_rows, n_units), with the units where it is true."""
        ...


def units_of(learner: AnyLearner, rows: Rows, label: int) -> Replaced:
    """Return the columns and sub-experts of a row that differ from a baseline."""
    return Units.of(rows, _baseline(learner, rows.n_features), learner, label)


def along_paths(
    learner: AnyLearner, units: Replaced, codes: npt.NDArray[np.int64], score: Scorer
) -> Terms:
    """Return the mean changes of the scores as units are replaced one after another."""
    orders = _orders(len(units.numbers))
    scores = _scores_of(score, units, orders, learner)
    table = np.zeros((len(units.numbers), len(codes), 2))
    for order, path in zip(orders, scores, strict=True):
        table[order] += np.diff(path, axis=0) / len(orders)
    return Terms(units.numbers, units.values, table, units.n_features, scores[0, 0], None)


def _orders(n: int) -> list[npt.NDArray[np.int64]]:
    """Return random orders of n columns, always the same, each followed by its reverse."""
    rng = np.random.default_rng(n)
    n_pairs = max(1, min(MOST_PAIRS, MOST_STEPS // (2 * n + 2)))
    drawn = [rng.permutation(n) for _ in range(n_pairs)]
    return [order for each in drawn for order in (each, each[::-1])]


def _scores_of(
    score: Scorer, units: Replaced, orders: list[npt.NDArray[np.int64]], learner: AnyLearner
) -> Doubles:
    """Return the scores along each order, of shape (n_orders, 1 + n_columns, classes, 2).

    Row i of an order has the first i columns of the order. Rows are made and scored in blocks.
    """
    n_steps, places = len(units.numbers) + 1, np.array([np.argsort(order) for order in orders])
    width = max(member.width_of(max(1, member.n_inputs)) for member in learner.members)
    block = max(1, MOST_ENTRIES // max(width, n_steps))
    pieces = []
    for start in range(0, len(orders) * n_steps, block):
        rows = np.arange(start, min(start + block, len(orders) * n_steps))
        masks = places[rows // n_steps] < (rows % n_steps)[:, None]
        pieces.append(score(units.rows_of(masks)))
    found = np.concatenate(pieces)
    return found.reshape(len(orders), n_steps, *found.shape[1:])


def _baseline(learner: AnyLearner, n_features: int) -> npt.NDArray[np.float32]:
    """Return the means of the columns of earlier rows if a member keeps them, else zeros."""
    for member in learner.members:
        if member.expansion is not None:
            return member.stored["expansion.moments"][:, 0].astype(np.float32)
        if isinstance(member.preprocessing, ZScores):
            first = int(bool(member.constant))
            means = member.stored["preprocessing.statistics"][first:, 0]
            return means[:n_features].astype(np.float32)
        if isinstance(member, ForestLearner):
            return member.trees.means(n_features)
    return np.zeros(n_features, dtype=np.float32)


class Units:
    """The columns and sub-experts of a row that differ from a baseline, replaced one by one.

    Parameters
    ----------
    rows : one row.
    baseline : the values of all columns of dense rows; others are absent.
    places : the entries that differ.
    rated : the sub-experts, by number.

    Attributes
    ----------
    numbers, values : numbers of the columns and then of the sub-experts, and their values; a
        sub-expert's is its rating of the class that is explained.
    n_features : number of columns.
    """

    def __init__(
        self,
        rows: Rows,
        baseline: npt.NDArray[np.float32],
        places: npt.NDArray[np.int64],
        rated: npt.NDArray[np.int64],
        of_rated: Doubles,
    ) -> None:
        self.row, self.baseline, self.places, self.rated = rows, baseline, places, rated
        self.n_features = len(places)
        self.numbers = np.concatenate([rows.indices[places].astype(np.int64), rated])
        self.values = np.concatenate([rows.values[places].astype(np.float64), of_rated])

    @classmethod
    def of(
        cls, rows: Rows, baseline: npt.NDArray[np.float32], learner: AnyLearner, label: int
    ) -> Units:
        """Return the units of a row."""
        base = baseline if rows.dense else np.zeros(len(rows.values), dtype=np.float32)
        places = np.flatnonzero(rows.values != base)
        if rows.ratings is None:
            return cls(rows, base, places, np.empty(0, dtype=np.int64), np.empty(0))
        vectors = rows.ratings.vectors
        codes = rows.ratings.numbers_of_rated(learner.classes.code)
        rated, where = np.unique(vectors.indices, return_inverse=True)
        of_rated = np.zeros(len(rated))
        for j in np.flatnonzero(codes == label).tolist():
            entries = slice(vectors.indptr[j], vectors.indptr[j + 1])
            of_rated[where[entries]] = vectors.values[entries]
        return cls(rows, base, places, rated.astype(np.int64), of_rated)

    def rows_of(self, masks: npt.NDArray[np.bool_]) -> Rows:
        """Return a row for each mask (n_rows, n_units), with the units where it is true."""
        columns = masks[:, : self.n_features]
        if self.row.dense:
            table = np.tile(self.baseline, (len(masks), 1))
            table[:, self.places] = np.where(
                columns, self.row.values[self.places], self.baseline[self.places]
            )
            rows = Rows.from_dense(table)
        else:
            indptr = np.concatenate([[0], np.cumsum(columns.sum(axis=1))]).astype(np.int64)
            _, chosen = np.nonzero(columns)
            entries = self.places[chosen]
            rows = replace(
                self.row,
                indptr=indptr,
                indices=self.row.indices[entries],
                values=self.row.values[entries],
                ratings=None,
            )
        ratings = self.row.ratings
        if ratings is None:
            return rows
        return replace(rows, ratings=self._rated(ratings, masks[:, self.n_features :]))

    def _rated(self, ratings: Ratings, masks: npt.NDArray[np.bool_]) -> Ratings:
        """Return the ratings of the row, for each mask by the sub-experts where it is true."""
        n, vectors = len(masks), ratings.vectors
        n_lists, n_entries = len(vectors), len(vectors.indices)
        starts = np.arange(n, dtype=np.int64)[:, None] * n_entries + vectors.indptr[:-1]
        repeated = SparseRows(
            np.append(starts.reshape(-1), n * n_entries),
            np.tile(vectors.indices, n),
            np.tile(vectors.values, n),
        )
        place = np.searchsorted(self.rated, vectors.indices)
        return replace(
            ratings,
            starts=np.arange(n + 1, dtype=np.int64) * n_lists,
            rated=np.tile(ratings.rated, n),
            vectors=repeated.where(masks[:, place].reshape(-1)),
        )

"""Contributions of features, or of support vectors, to the scores of two classes of a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.ratings import Ratings
from kesler.data.rows import Rows
from kesler.data.sparse_rows import SparseRows
from kesler.learner.ensemble import AnyLearner, EnsembleLearner
from kesler.learner.events import Event
from kesler.learner.explanations import LABEL, OWN, RIVAL, Terms
from kesler.learner.kernel_learner import KernelLearner
from kesler.learner.learner import Learner
from kesler.parts.hypotheses import Grouped, PerClass
from kesler.parts.preprocessing import Bins, Pairs, RandomFourier, ZScores

Doubles = npt.NDArray[np.float64]

# The number of rows along all orders of a row's columns, where the columns are few; at least one
# order and its reverse are walked.
MOST_STEPS = 512
MOST_PAIRS = 8
# Entries of rows that are scored at once.
MOST_ENTRIES = 1 << 20
# The virtual class of label sets, which scores are compared with.
THRESHOLD = 0


def terms_of(learner: AnyLearner, rows: Rows | Event, label: int, rival: int | None) -> Terms:
    """Return the contributions to the scores of a class and of its rival.

    Parameters
    ----------
    rows : one row, as the learner scores it.
    label, rival : numbers of known classes; None for no rival.

    Returns
    -------
    Terms, whose sums are the scores: for label sets above the threshold.

    Raises
    ------
    KeslerError
        If a function of the user fails.

    Notes
    -----
    O(nnz) for each class and part where scores are sums over features, O(n) for n support vectors.
    Otherwise the cost of scoring twice as many rows as the row has columns, or up to 512 rows if
    these are few.
    """
    codes = [label] if rival is None else [label, rival]
    if learner.answer == "sets":
        codes.append(THRESHOLD)
    numbers = np.array(codes, dtype=np.int64)
    if isinstance(learner, EnsembleLearner):
        terms = _along_paths(learner, _plain(rows), numbers, _scored_by_ensemble(learner, numbers))
    elif isinstance(learner, KernelLearner):
        terms = _by_supports(learner, rows, numbers)
    elif mixes_columns(learner):
        terms = _along_paths(learner, _plain(rows), numbers, _scored_apart(learner, numbers))
    else:
        terms = _by_entries(learner, rows, numbers)
    above = learner.answer == "sets"
    if rival is not None and not above:
        return terms
    return terms._replace(
        table=_of_two(terms.table, rival is not None, above=above),
        start=_of_two(terms.start[None], rival is not None, above=above)[0],
    )


def mixes_columns(learner: Learner) -> bool:
    """Return whether a feature of the trial is computed from several columns of the row."""
    return learner._block(RandomFourier) is not None or learner._block(Pairs) is not None


def _of_two(table: Doubles, has_rival: bool, *, above: bool) -> Doubles:
    """Return contributions to the scores of two classes, (n, 2, 2): above the threshold or as is.

    table : of shape (n, classes, 2): the class, the rival if there is one, the threshold if `above`.
    """
    found = np.zeros((len(table), 2, 2))
    n_classes = 2 if has_rival else 1
    found[:, :n_classes] = table[:, :n_classes]
    if above:
        found[:, :n_classes] -= table[:, -1:]
    return found


# ---- sums over entries ---------------------------------------------------------------------------


def contributions_of_entries(
    learner: Learner, rows: Rows | Event, codes: npt.NDArray[np.int64], address: Any = None
) -> tuple[Any, Doubles, Doubles]:
    """Return prepared rows, and what their entries and ratings add to the scores of classes.

    Parameters
    ----------
    learner : whose hypotheses are weights.
    rows : one or several rows.
    codes : numbers of known classes.
    address : of a record of the learner with other settings; None for its own.

    Returns
    -------
    Rows as compiled code takes them, and arrays of shape (n_entries, n_classes, 2) and (n_ratings,
    n_classes, 2).
    """
    blocks = _blocks(learner, rows)
    n_entries, n_ratings = int(blocks.indptr[-1]), len(blocks.ratings.indices)
    out, given = (np.zeros((n, len(codes), 2)) for n in (n_entries, n_ratings))
    address = learner._kernel_arguments.address if address is None else address
    _explain(learner)(address, blocks, codes, out, given)
    if learner._faults:
        learner._require_no_faults()
    return blocks, out, given


def _blocks(learner: Learner, rows: Rows | Event) -> Any:
    return learner._blocks(learner._prepare(rows, unseen=learner.n_features))


def _explain(learner: Learner) -> Callable[..., None]:
    """Return the kernel for a learner, imported on first use."""
    if learner.sparse is not None:
        from kesler.compiled.weights.sparse_contributions import explain as of_sparse_rows

        return of_sparse_rows
    from kesler.compiled.trial.contributions import explain

    return explain


def _by_entries(
    learner: Learner, rows: Rows | Event, codes: npt.NDArray[np.int64]
) -> Terms:
    """Return contributions where scores are sums over the features of a trial."""
    blocks, table, given = contributions_of_entries(learner, rows, codes)
    n_constant = int(bool(learner.constant))
    start = table[0] if n_constant else np.zeros((len(codes), 2))
    n_entries = len(table)
    numbers = blocks.indices[n_constant:n_entries].astype(np.int64) - n_constant
    values = blocks.values[n_constant:n_entries].astype(np.float64)
    table = table[n_constant:]
    if learner.expansion is not None:
        values = _plain(rows).values.astype(np.float64)
        table = _summed(table, _inputs_of(learner, numbers), len(values))
        numbers = np.arange(len(values))
    terms = Terms(numbers, values, table, len(numbers), start, learner.constant)
    if not len(given):
        return terms
    more = _of_sub_experts(blocks.ratings, given, int(codes[0]))
    both = (np.concatenate(pair) for pair in zip(terms[:3], more, strict=True))
    return Terms(*both, *terms[3:])


def _inputs_of(learner: Learner, features: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the column that each feature of z-scores and bins is computed from."""
    inputs, start = np.empty_like(features), 0
    assert learner.expansion is not None
    for block in learner.expansion.blocks:
        is_scores = isinstance(block, ZScores)
        width = learner.n_inputs if is_scores else block.width(learner.n_inputs)  # type: ignore[attr-defined]
        per_input = 1 if is_scores else max(1, width // max(1, learner.n_inputs))
        within = (features >= start) & (features < start + width)
        inputs[within] = (features[within] - start) // per_input
        start += width
    return inputs


def _summed(table: Doubles, numbers: npt.NDArray[np.int64], n: int) -> Doubles:
    """Return the sums of the terms of each number below n."""
    found = np.zeros((n, *table.shape[1:]))
    np.add.at(found, numbers, table)
    return found


def _of_sub_experts(
    ratings: Any, given: Doubles, label: int
) -> tuple[npt.NDArray[np.int64], Doubles, Doubles]:
    """Return the sub-experts of a row, their ratings of a class, and their contributions."""
    numbers, places = np.unique(ratings.indices, return_inverse=True)
    values = np.zeros(len(numbers))
    for j in np.flatnonzero(ratings.codes == label).tolist():
        entries = slice(ratings.indptr[j], ratings.indptr[j + 1])
        values[places[entries]] = ratings.values[entries]
    return numbers.astype(np.int64), values, _summed(given, places, len(numbers))


# ---- support vectors -----------------------------------------------------------------------------


def _by_supports(learner: KernelLearner, rows: Rows | Event, codes: npt.NDArray[np.int64]) -> Terms:
    """Return the contributions of support vectors."""
    from kesler.compiled.kernels.contributions import explain

    blocks, in_use = _blocks(learner, rows), learner.n_support_vectors
    table, similarities = (np.zeros((sum(in_use), len(codes), 2)) for _ in range(2))
    explain(learner._kernel_arguments.address, blocks, codes, table, similarities)
    if learner._faults:
        learner._require_no_faults()
    return Terms(
        np.arange(len(table)),
        similarities[:, 0, OWN],
        table,
        0,
        np.zeros((len(codes), 2)),
        0.0,
        lambda i: _name_of_support(learner, i),
    )


def _name_of_support(learner: KernelLearner, i: int) -> str:
    """Return the name of a support vector, counted over all parts."""
    part = 0
    for n in learner.n_support_vectors:
        if i < n:
            break
        i, part = i - n, part + 1
    kind = "row" if learner.parts[part].feature_map is None else "view"
    label = _class_of_support(learner, part, i)
    place = f"support {kind} {i}" + (f", part {part}" if len(learner.parts) > 1 else "")
    return place if label is None else f"{place} ({label})"


def _class_of_support(learner: KernelLearner, part: int, i: int) -> Any:
    """Return the class, or the group, whose score a support vector raises most; None if none."""
    stored = learner.supports.stored
    s = int(stored["oldest"][part]) + i
    entries = slice(*stored["entry_starts"][part, s : s + 2].tolist())
    owners, coefficients = (stored[name][part, entries] for name in ("owners", "coefficients"))
    if not len(owners) or coefficients.max() <= 0:
        return None
    owner = int(owners[coefficients.argmax()])
    if isinstance(learner.parts[part], PerClass):
        owner -= learner.classes.n_virtual
        return learner.classes.labels[owner] if owner >= 0 else "the threshold"
    is_grouped = isinstance(learner.parts[part], Grouped)
    return list(learner.groups[part])[owner] if is_grouped else None


# ---- paths from a baseline -----------------------------------------------------------------------

Scorer = Callable[[Rows], Doubles]
"""Returns the scores of classes by own and by shared hypotheses, of shape (n_rows, classes, 2)."""


def _scored_by_ensemble(learner: EnsembleLearner, codes: npt.NDArray[np.int64]) -> Scorer:
    def score(rows: Rows) -> Doubles:
        found = np.zeros((len(rows), len(codes), 2))
        found[:, :, OWN] = learner.scores(rows)[:, codes]
        return found

    return score


def _scored_apart(learner: Learner, codes: npt.NDArray[np.int64]) -> Scorer:
    def score(rows: Rows) -> Doubles:
        blocks, table, _ = contributions_of_entries(learner, rows, codes)
        row_of = np.repeat(np.arange(len(rows)), np.diff(blocks.indptr))
        return _summed(table, row_of, len(rows))

    return score


def _along_paths(
    learner: AnyLearner, rows: Rows, codes: npt.NDArray[np.int64], score: Scorer
) -> Terms:
    """Return the mean changes of the scores as columns are replaced one after the other."""
    units = Units.of(rows, _baseline(learner, rows.n_features), learner, int(codes[0]))
    orders = _orders(len(units.numbers))
    n_steps = len(units.numbers) + 1
    masks = [np.argsort(order)[None, :] < np.arange(n_steps)[:, None] for order in orders]
    scores = _scores_of(score, units, np.concatenate(masks), learner)
    table = np.zeros((len(units.numbers), len(codes), 2))
    for i, order in enumerate(orders):
        path = scores[i * n_steps : (i + 1) * n_steps]
        table[order] += np.diff(path, axis=0) / len(orders)
    return Terms(units.numbers, units.values, table, units.n_features, scores[0], None)


def _orders(n: int) -> list[npt.NDArray[np.int64]]:
    """Return random orders of n columns, always the same, each followed by its reverse."""
    rng = np.random.default_rng(n)
    n_pairs = max(1, min(MOST_PAIRS, MOST_STEPS // (2 * n + 2)))
    drawn = [rng.permutation(n) for _ in range(n_pairs)]
    return [order for each in drawn for order in (each, each[::-1])]


def _scores_of(
    score: Scorer, units: Units, masks: npt.NDArray[np.bool_], learner: AnyLearner
) -> Doubles:
    """Return the scores of the rows in which some columns are replaced, in blocks of rows."""
    members = learner.members if isinstance(learner, EnsembleLearner) else [learner]
    width = max(member.width_of(max(1, member.n_inputs)) for member in members)
    step = max(1, MOST_ENTRIES // max(width, masks.shape[1] + 1))
    pieces = [score(units.rows_of(masks[i : i + step])) for i in range(0, len(masks), step)]
    return np.concatenate(pieces)


def _baseline(learner: AnyLearner, n_features: int) -> npt.NDArray[np.float32]:
    """Return the means of the columns of earlier rows if a member keeps them, else zeros."""
    members = learner.members if isinstance(learner, EnsembleLearner) else [learner]
    for member in members:
        if member.expansion is not None:
            return member.stored["expansion.moments"][:, 0].astype(np.float32)
        if isinstance(member.preprocessing, ZScores):
            first = int(bool(member.constant))
            means = member.stored["preprocessing.statistics"][first:, 0]
            return means[:n_features].astype(np.float32)
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
        """Return the ratings of the row, for each mask those of the sub-experts where it is true."""
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


def _plain(rows: Rows | Event) -> Rows:
    return rows.rows if isinstance(rows, Event) else rows


def winner_and_scores(
    learner: AnyLearner, rows: Rows | Event
) -> tuple[int, npt.NDArray[np.float32]]:
    """Return the number of the class predicted for a row, and the scores of all classes.

    For label sets and rankings it is the label of the highest score.
    """
    scores, first = learner.scores(rows)[0], learner.classes.n_virtual
    if isinstance(learner, EnsembleLearner) or learner.decision == "median":
        return int(learner.predict(rows)[0]), scores
    return first + int(scores[first:].argmax()), scores

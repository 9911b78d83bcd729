"""Contributions of features, or of support vectors, to the scores of two classes of a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows
from kesler.hypotheses import Grouped, PerClass
from kesler.learner.ensemble import AnyLearner, EnsembleLearner
from kesler.learner.events import Event
from kesler.learner.explanations import OWN, Terms
from kesler.learner.kernel_learner import KernelLearner
from kesler.learner.learner import Learner
from kesler.learner.paths import Replaced, Scorer, along_paths, units_of
from kesler.preprocessing import Pairs, RandomFourier
from kesler.preprocessing.expansion import width_of

Doubles = npt.NDArray[np.float64]

# Entries of rows that are explained at once.
MOST_ENTRIES = 1 << 20
# The virtual class of label sets, which scores are compared with.
THRESHOLD = 0


def terms_of(
    learner: AnyLearner,
    rows: Rows | Event,
    label: int,
    rival: int | None,
    cells: Replaced | None = None,
) -> Terms:
    """Return the contributions to the scores of a class and of its rival.

    Parameters
    ----------
    rows : one row, as the learner scores it.
    label, rival : numbers of known classes; None for no rival.
    cells : the cells of the row, if members of an ensemble read their inputs.

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
    if isinstance(learner, EnsembleLearner) or learner.grows_trees:
        units = cells or units_of(learner, _plain(rows), label)
        terms = along_paths(learner, units, numbers, _scored_as_a_whole(learner, numbers))
    elif isinstance(learner, KernelLearner):
        terms = _by_supports(learner, rows, numbers)
    elif mixes_columns(learner):
        units = units_of(learner, _plain(rows), label)
        terms = along_paths(learner, units, numbers, _scored_apart(learner, numbers))
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

    table : (n, classes, 2), of the class, the rival if there is one, the threshold if `above`.
    """
    found = np.zeros((len(table), 2, 2))
    n_classes = 2 if has_rival else 1
    found[:, :n_classes] = table[:, :n_classes]
    if above:
        found[:, :n_classes] -= table[:, -1:]
    return found


# ---- sums over entries ---------------------------------------------------------------------------


def contributions_of_blocks(
    learner: Learner, blocks: Any, codes: npt.NDArray[np.int64], address: Any
) -> tuple[Doubles, Doubles]:
    """Return what the entries and the ratings of rows add to the scores of classes.

    Parameters
    ----------
    learner : whose hypotheses are weights.
    blocks : rows as compiled code takes them.
    codes : numbers of known classes.
    address : of the record of the learner.

    Returns
    -------
    Arrays of shape (n_entries, n_classes, 2) and (n_ratings, n_classes, 2): by own and by shared
    hypotheses.
    """
    n_entries, n_ratings = int(blocks.indptr[-1]), len(blocks.ratings.indices)
    out, given = np.zeros((n_entries, len(codes), 2)), np.zeros((n_ratings, len(codes), 2))
    _explain(learner)(address, blocks, codes, out, given)
    if learner._faults:
        learner._require_no_faults()
    return out, given


def _blocks(learner: Learner, rows: Rows | Event) -> Any:
    return learner._blocks(learner._prepare(rows, unseen=learner.n_features))


def _explain(learner: Learner) -> Callable[..., None]:
    """Return the kernel for a learner, imported on first use."""
    if learner.sparse is not None:
        from kesler.compiled.weights.sparse_contributions import explain as of_sparse_rows

        return of_sparse_rows
    from kesler.compiled.trial.contributions import explain

    return explain


def _by_entries(learner: Learner, rows: Rows | Event, codes: npt.NDArray[np.int64]) -> Terms:
    """Return contributions where scores are sums over the features of a trial."""
    blocks = _blocks(learner, rows)
    table, given = _contributions(learner, blocks, codes)
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
    return terms if not len(given) else _with_ratings(terms, blocks.ratings, given, int(codes[0]))


def _contributions(
    learner: Learner, blocks: Any, codes: npt.NDArray[np.int64]
) -> tuple[Doubles, Doubles]:
    """Return what the entries and the ratings of one row add to the scores of classes."""
    if learner.comparing is None:
        return contributions_of_blocks(learner, blocks, codes, learner._kernel_arguments.address)
    n_entries = int(blocks.indptr[1])
    window = learner.comparing.show(learner, blocks.indices[:n_entries], codes.astype(np.int32))
    there = blocks._replace(indices=np.arange(n_entries, dtype=np.int32))
    columns = np.arange(len(codes))
    return contributions_of_blocks(window, there, columns, window._kernel_arguments.address)


def _inputs_of(learner: Learner, features: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the column that each feature of z-scores and bins is computed from."""
    inputs, start = np.empty_like(features), 0
    assert learner.expansion is not None
    for block in learner.expansion.blocks:
        width = width_of(block, learner.n_inputs)
        per_input = max(1, width // learner.n_inputs)
        within = (features >= start) & (features < start + width)
        inputs[within] = (features[within] - start) // per_input
        start += width
    return inputs


def _summed(table: Doubles, numbers: npt.NDArray[np.int64], n: int) -> Doubles:
    """Return the sums of the terms of each number below n."""
    found = np.zeros((n, *table.shape[1:]))
    np.add.at(found, numbers, table)
    return found


def _with_ratings(terms: Terms, ratings: Any, given: Doubles, label: int) -> Terms:
    """Return terms with those of the sub-experts of a row; their values are ratings of a class."""
    numbers, places = np.unique(ratings.indices, return_inverse=True)
    values = np.zeros(len(numbers))
    for j in np.flatnonzero(ratings.codes == label).tolist():
        entries = slice(ratings.indptr[j], ratings.indptr[j + 1])
        values[places[entries]] = ratings.values[entries]
    return terms._replace(
        numbers=np.concatenate([terms.numbers, numbers]),
        values=np.concatenate([terms.values, values]),
        table=np.concatenate([terms.table, _summed(given, places, len(numbers))]),
    )


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
        _thresholds_below(learner, codes),
        learner.constant if learner.thresholds is not None else 0.0,
        lambda i: _name_of_support(learner, i),
    )


def _thresholds_below(learner: KernelLearner, codes: npt.NDArray[np.int64]) -> Doubles:
    """Return minus the sum of the thresholds below each class, (classes, 2); 0 without any."""
    found, thresholds = np.zeros((len(codes), 2)), learner.thresholds
    if thresholds is not None:
        ranks = learner.stored["ranks.positions"][codes]
        found[:, OWN] = -np.append(0.0, np.cumsum(thresholds, dtype=float))[ranks]
    return found


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


def _scored_as_a_whole(learner: AnyLearner, codes: npt.NDArray[np.int64]) -> Scorer:
    def score(rows: Rows) -> Doubles:
        found = np.zeros((len(rows), len(codes), 2))
        found[:, :, OWN] = learner.scores(rows)[:, codes]
        return found

    return score


def _scored_apart(learner: Learner, codes: npt.NDArray[np.int64]) -> Scorer:
    def score(rows: Rows) -> Doubles:
        blocks = _blocks(learner, rows)
        table, _ = contributions_of_blocks(
            learner, blocks, codes, learner._kernel_arguments.address
        )
        row_of = np.repeat(np.arange(len(rows)), np.diff(blocks.indptr))
        return _summed(table, row_of, len(rows))

    return score


def _plain(rows: Rows | Event) -> Rows:
    return rows.rows if isinstance(rows, Event) else rows


def winner_and_scores(
    learner: AnyLearner, rows: Rows | Event
) -> tuple[int, npt.NDArray[np.float32]]:
    """Return the number of the class predicted for a row, and the scores of all classes.

    For label sets and rankings it is the label of the highest score; the scores of label sets are
    those above the threshold.
    """
    scores, first = learner.scores(rows)[0], learner.classes.n_virtual
    if learner.answer == "sets":
        scores = scores - scores[THRESHOLD]
    if isinstance(learner, EnsembleLearner) or learner.decision in ("median", "distance"):
        return int(learner.predict(rows)[0]), scores
    return first + int(scores[first:].argmax()), scores


def best_other(learner: AnyLearner, scores: npt.NDArray[np.float32], code: int) -> int | None:
    """Return the class of the highest score except one; None if there is no other."""
    first = learner.classes.n_virtual
    others = scores[first:].copy()
    others[code - first] = -np.inf
    return first + int(others.argmax()) if len(others) > 1 else None

"""How rows and targets are validated, and learnt in blocks, by an estimator.

The first `N_ROWS` rows of a table are kept. Until there are as many, the model is the one of the
schema inferred from those so far: if a further row changes the schema, the model learns all of them
again. It is therefore the same for any split of the rows into batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data import inputs
from kesler.data.inputs import texts_of
from kesler.data.rows import Rows, Vocabulary
from kesler.errors import KeslerError, warn
from kesler.interrupts import FIRST_ROWS
from kesler.learner.events import NO_PLACES, NO_PROBABILITIES
from kesler.learner.targets import Kind, Targets
from kesler.learner.uncertainty import NO_TRACES
from kesler.online.answers import Scores
from kesler.online.columns import (
    decay_of,
    given_columns,
    learns_again,
    on_mismatch,
    vectors_of,
)
from kesler.online.contract import exclusive_trials

if TYPE_CHECKING:
    from kesler.data.schema.measurements import Inputs
    from kesler.data.schema.records import Table
    from kesler.data.schema.schema import Schema
    from kesler.online.model import Model
    from kesler.online.table_state import Batch, TableState

_SORTED = (
    "the rows are sorted by class, and a learner of streams then predicts the last classes far too "
    "often: shuffle rows and labels before fit, for example with sklearn.utils.shuffle(X, y)"
)
INTERPRETED_ROWS = 8  # of the first piece while rows are interpreted
MOST_INTERPRETED = 512  # of all calls of several rows; more take longer than the compiler
_interpreted = {"n_rows": 0}
_NOTHING = nullcontext()
BLOCK_ROWS = 4096  # rows of a table, or with a limit on memory, that are read at a time

Weights = npt.NDArray[np.float64] | None
Block = tuple[Rows, Targets, Weights]


def blocks(
    model: Model, X: Any, y: Any, sample_weight: Any = None, classes: Any = None
) -> Iterator[Block]:
    """Yield blocks of rows, their encoded targets, and their sample weights or None.

    All checks come before any change of state; new feature names are added last.
    """
    reader = model._input
    if reader.columns.is_open(model, X):
        given = validated_targets(model, inputs.count_rows(X), y, sample_weight, classes)
        yield from _open_blocks(model, X, *given)
        return
    table = reader.columns.table_of(model, X)
    if table is not None:
        given = validated_targets(model, table.n_rows, y, sample_weight, classes)
        yield from table_blocks(model, table, *given)
        return
    X, ratings, texts = reader.apart(model, X)
    named = inputs.holds_names(X)
    data = X if named or texts else reader.array_rows(model, X, learn=True)
    n_rows = inputs.count_rows(data) if named else len(data)
    targets, weights = validated_targets(model, n_rows, y, sample_weight, classes)
    inputs.require_rated(n_rows, ratings)
    if not learns_again(model):
        reader.columns.close()
    if (named or texts) and ratings is None and is_limited(model):
        yield from _limited_blocks(model, X, targets, weights, classes)
        return
    with model._between_trials():  # others may add the names of events
        if named:
            data = reader.named_rows(model, X, learn=True)
        elif texts:
            data = reader.text_rows(model, X, weights, learn=True)
        ratings = reader.numbered(model, ratings, learn=True)
    _prepare(model, data, targets, classes)
    start = 0
    for rows in inputs.blocks(data, ratings):
        part = slice(start, start := start + len(rows))
        yield rows, targets[part], None if weights is None else weights[part]


def is_limited(model: Model) -> bool:
    """Return whether the memory of an estimator has a limit."""
    if model._learner is not None:
        return model._learner.memory is not None
    return model.get_params(deep=False).get("memory_limit") is not None


def _limited_blocks(
    model: Model, X: Any, targets: Targets, weights: Weights, classes: Any
) -> Iterator[Block]:
    """Yield blocks of texts or mappings, each read when those before it have been learnt.

    All mappings are read once before, so that nothing is learnt if one is refused.
    """
    reader, texts = model._input, texts_of(X)
    entries = [X] if isinstance(X, Mapping) else X if texts is None else texts
    parts = [slice(i, i + BLOCK_ROWS) for i in range(0, len(entries), BLOCK_ROWS)]
    for part in parts if texts is None and len(parts) > 1 else ():
        with model._between_trials():
            reader.named_rows(model, entries[part], learn=False)
    for part in parts:
        some = None if weights is None else weights[part]
        with model._between_trials():  # others may add the names of events
            reader.count_texts(model)
            if texts is None:
                rows = reader.named_rows(model, entries[part], learn=True)
            else:
                rows = reader.text_rows(model, entries[part], some, learn=True)
        _prepare(model, rows, targets, classes)
        yield rows, targets[part], some


def _prepare(model: Model, rows: Any, targets: Targets, classes: Any) -> None:
    """Make the learner for rows, if there is none, and capacity for the declared classes."""
    learner = model._prepared(dense=inputs.is_dense(rows))
    learner.require_admissible(targets.distinct)
    if classes is not None:
        learner.reserve(len(classes), 0)


def validated_targets(
    model: Model, n_rows: int, y: Any, sample_weight: Any = None, classes: Any = None
) -> tuple[Targets, Weights]:
    """Return the encoded targets and the sample weights of this many rows, validated.

    The declared classes are stored, and forgotten if the call fails.
    """
    if classes is not None and not isinstance(classes, Sized):
        raise KeslerError(f"classes={classes!r}: give a sequence of labels, or None")
    known = model._known_classes()
    targets = model.answer.encoded(y, classes, known)
    inputs.require_lengths(n_rows, targets)
    weights = inputs.row_weights(sample_weight, n_rows)
    declared = [*model._declared, *model.answer.declared(classes)]
    known.require_admissible([*targets.distinct, *declared])
    if declared:
        model._declared = list(dict.fromkeys(declared))
    return targets, weights


@contextmanager
def names_of_learnt_rows(model: Model) -> Iterator[None]:
    """Count the texts that are learnt, and remove new names of rows that are not.

    Those are names of features and sub-experts of rows whose learning fails.
    """
    reader = model._input
    n_names, n_sub_experts = len(reader.names or ()), len(reader.sub_experts or ())
    numbering = None if reader.names is None else reader.names.numbering
    try:
        yield
        reader.count_texts(model)
    except BaseException:
        reader.count_texts(model)
        learner = model._learner
        with model._between_trials():
            if reader.names is not None:
                learnt = 0 if learner is None else learner.n_named_features
                is_same = reader.names.numbering is numbering  # otherwise names were dropped
                reader.names.forget_from(max(n_names, learnt) if is_same else learnt)
            if reader.sub_experts is not None:
                learnt = 0 if learner is None else learner.n_sub_experts
                reader.sub_experts.forget_from(max(n_sub_experts, learnt))
        raise


@exclusive_trials
def first_trial(
    model: Model, x: Any, y: Any, weights: Weights, *, keep_scores: bool
) -> tuple[int, Scores]:
    """Run the trial of one row as a batch of one; return the predicted code, and the scores."""
    reader, known = model._input, model._known_classes()
    x = reader.named(model, x)
    targets, is_open = model.answer.encoded([y], None, known), reader.columns.is_open(model, x)
    table = None if is_open else reader.columns.table_of_row(model, x)
    known.require_admissible(targets.names)
    with model._between_trials(), names_of_learnt_rows(model):
        n_known = 0 if model._learner is None else int(model._learner.n_known)
        if table is None and not is_open:
            reader.columns.close()
            row = reader.row(model, x, learn=True)
            trials = model._learn(row, targets, weights, keep_scores=keep_scores)
        else:
            of_names = _open_blocks(model, x, targets, weights)
            given = of_names if table is None else table_blocks(model, table, targets, weights)
            (trials,) = [model._learn(*block, keep_scores=keep_scores) for block in given]
    scores = trials.scores[0, :n_known] if keep_scores else trials.scores
    return int(trials.predictions[0]), scores


def first_rows() -> int:
    """Return the number of rows to learn first, few if they are interpreted."""
    from kesler.compiled.jit.background import COMPILING

    return INTERPRETED_ROWS if COMPILING.is_busy else FIRST_ROWS


def compiled_for(n_rows: int) -> AbstractContextManager[None]:
    """Return a context in which kernels are compiled before they are called, if rows are many.

    Rows that are learnt one by one are answered at once; calls of several wait for the compiler
    as soon as they have had more than `MOST_INTERPRETED` rows.
    """
    from kesler.compiled.jit.background import COMPILING, in_foreground

    if n_rows < 2:
        return _NOTHING
    if COMPILING.is_busy:
        _interpreted["n_rows"] += n_rows
    are_many = max(n_rows, _interpreted["n_rows"]) > MOST_INTERPRETED
    return in_foreground(alone=False) if are_many else _NOTHING


def part_of(rows: Rows, targets: Targets, part: slice) -> tuple[Rows, Targets]:
    """Return consecutive rows, which name no feature that only later rows have."""
    some = rows[part]
    return some if rows.dense else some.without_later(), targets[part]


# ---- tables -------------------------------------------------------------------------------------


def table_blocks(
    model: Model, table: Table, targets: Targets, weights: Any = None, entries: Any = None
) -> Iterator[Block]:
    """Yield blocks of rows of a table; learn the first rows again if the schema changes.

    Mappings of numbers are given as `entries` as well.
    """
    from kesler.data.schema.values import usable
    from kesler.online.table_state import Batch, TableState

    columns, given = model._input.columns, given_columns(model)
    rows = usable(table, given, on_mismatch(model))
    batch = Batch(rows, targets, weights, entries).counted()
    state = columns.state or TableState(named=table.named)
    if state.kept is None or learns_again(model):
        yield from _blocks_of(model, batch)
        return
    by_name = entries is not None
    kept, state = (*state.kept, batch), replace(state, by_name=by_name)
    reads = columns.forms(model)
    schema, found = state.inferred(batch, given, reads, vectors_of(model))
    if by_name and not (reads.gaps or reads.features):
        _require_listed(kept)
    elif by_name and not len(schema):
        inputs.require_entries(entries, takes_missing=False)
    if (schema, found) != (state.schema, state.inputs):
        _begin_again(model, state, schema, found)
    else:
        columns.state = state.begun(schema, found, again=False)
    # Before they are learnt: an interrupt keeps the rows learnt by then, and the schema.
    columns.state = columns.known.with_kept(kept)
    if columns.known.kept is None:
        columns.require_texts(model)
    yield from _blocks_of(model, batch)


def _require_listed(batches: Sequence[Batch]) -> None:
    """Raise if a row of the last batch, or one before, lacks a number that others have."""
    names = list(dict.fromkeys(name for batch in batches for name in batch.table.columns))
    for batch in reversed(batches):
        for row, entry in enumerate(batch.entries or ()):
            lacking = [name for name in names if name not in entry]
            if lacking:
                which = f"row {row}" if batch is batches[-1] else "an earlier row"
                raise KeslerError(
                    f"{which} has no number named {lacking[0]!r}, as others do, and this learner "
                    "takes no missing values: name the same numbers in each row, or choose "
                    'preprocessing="z-scores" or the default learner'
                )


def _begin_again(
    model: Model, state: TableState, schema: Schema, found: Inputs | None = None
) -> None:
    """Learn the first rows again, with another schema or other inputs."""
    model._learner = None
    model._input.begin_again()
    columns = model._input.columns
    columns.state = state.begun(schema, found, again=True)
    columns.learnt_again |= bool(state.kept)
    for earlier in state.kept or ():
        for block in _blocks_of(model, earlier):
            model._learn(*block)


def _open_blocks(model: Model, X: Any, targets: Targets, weights: Weights) -> Iterator[Block]:
    """Yield blocks of mappings of numbers; the first rows say whether they are measurements."""
    from kesler.data.schema.measurements import MOST_NAMES
    from kesler.data.schema.records import table_of
    from kesler.data.schema.schema import Schema
    from kesler.online.table_state import TableState

    columns = model._input.columns
    entries = [X] if isinstance(X, Mapping) else X
    inputs.require_entries(entries, takes_missing=model._input.takes_missing(model))
    if weights is not None and not weights.all():
        counted = np.flatnonzero(weights)
        entries, weights = [entries[i] for i in counted.tolist()], weights[counted]
        targets = targets.take(counted)
    state = columns.state or TableState()
    n = min(state.n_open, len(entries))
    if len(set[str]().union(*entries[:n])) > MOST_NAMES:
        if len(state.schema):
            _begin_again(model, state, Schema())
        columns.close()
        n = 0
    for part in (slice(0, n), slice(n, len(entries))):
        some = entries[part], targets[part], None if weights is None else weights[part]
        if part.start == part.stop:
            continue
        if part.start < n:
            yield from table_blocks(model, table_of(some[0]), *some[1:], entries=some[0])
        else:
            yield from _named_blocks(model, *some)


def _named_blocks(
    model: Model, entries: Sequence[Any], targets: Targets, weights: Weights
) -> Iterator[Block]:
    """Yield mappings of numbers as a block of rows."""
    with model._between_trials():  # others may add the names of events
        rows = model._input.named_rows(model, entries, learn=True)
    model._prepared(dense=rows.dense)
    yield rows, targets, weights


def _measured_blocks(
    model: Model, array: npt.NDArray[np.float32], targets: Targets, weights: Weights
) -> Iterator[Block]:
    """Yield blocks of rows of numbers, whose features are the inputs of a table."""
    reader = model._input
    model._prepared(dense=True)
    reader.names = reader.names or Vocabulary.of(reader.columns.known.inputs.names)
    reader.width = array.shape[1]  # of rows that are read before these are learnt
    start = 0
    for rows in inputs.blocks(array):
        part = slice(start, start := start + len(rows))
        yield rows, targets[part], None if weights is None else weights[part]


def _blocks_of(model: Model, batch: Batch) -> Iterator[Block]:
    """Yield blocks of rows with the schema so far, extended by the new columns of a batch."""
    from kesler.data.schema import features, values

    reader, is_new = model._input, not learns_again(model)
    columns, state = reader.columns, reader.columns.known
    read = given_columns(model), on_mismatch(model)
    if state.are_words:
        if state.kept is None:
            columns.close()
        yield from _named_blocks(model, batch.words, batch.targets, batch.weights)
        return
    alone = columns.inputs_alone
    if alone is not None:
        columns.warn_of_new(state.schema, batch.table.with_cells)
        table = batch.table.of_columns(set(state.schema.names))
        cells, schema = values.parse(table, state.schema, *read, learn=is_new, count=is_new)
        columns.state = replace(state, schema=schema)
        reader.warn_of_merged(alone.merged(cells))
        array = alone.array(cells, len(batch))
        yield from _measured_blocks(model, array, batch.targets, batch.weights)
        return
    model._prepared(dense=False)
    moments, decay = state.moments, decay_of(model)
    cells, schema = values.parse(batch.table, state.schema, *read, learn=is_new, count=is_new)
    beside = columns.inputs_beside
    reader.warn_of_merged([] if beside is None else beside.merged(cells))
    for start in range(0, len(batch), BLOCK_ROWS):
        part = slice(start, min(len(batch), start + BLOCK_ROWS))
        weights = None if batch.weights is None else batch.weights[part]
        of_part = {name: column[part] for name, column in cells.items()}
        entries, moments = features.entries_of(
            columns.of_features(of_part),
            part.stop - part.start,
            schema,
            moments,
            weights,
            learn=is_new,
            decay=decay,
        )
        columns.state = replace(state, schema=schema, moments=moments)
        with model._between_trials():  # others may add the names of events
            rows = reader.entry_rows(model, entries, learn=True)
        yield columns.with_inputs(model, rows, of_part), batch.targets[part], weights


# ---- results ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trials:
    """The results of a run of trials, classes by number.

    Parameters
    ----------
    predictions : int32 array of shape (n_rows,)
        The class of highest score before the target was used, -1 if no class was known.
    codes : int32 array
        The classes named by the targets, one row after the other.
    scores : float32 array of shape (n_rows, n_classes) or (0, 0)
        The score of each class before the target was used, NaN for classes not known by then;
        filled only with ``keep_scores=True``.
    probabilities : float64 array of shape (n_rows, 2) or (0, 2)
        The probabilities of the predicted class and of the target, before the target was used;
        NaN where that class was not known; filled only with ``keep_probabilities=True``.
    traces : float64 array of shape (n_rows, n_traced) or (0, 0)
        What was said of the uncertainty of each row before the target was used; see
        :mod:`kesler.compiled.trial.uncertainty`. Filled only with ``keep_traces=True`` and if
        uncertainty is estimated.
    places : int32 array of shape (n_rows,) or (0,)
        The place of each target among the classes by score before the target was used, 1 for the
        highest score, 0 where it was not known; filled only with ``keep_places=True``, for
        targets of one class.
    """

    predictions: npt.NDArray[np.int32]
    codes: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    probabilities: npt.NDArray[np.float64]
    traces: npt.NDArray[np.float64]
    places: npt.NDArray[np.int32]

    def warn_if_sorted(self, answer: Kind) -> None:
        """Warn if each of several classes comes in one run, with 20 rows of a class on average."""
        if answer not in ("class", "rank"):
            return
        n_classes = len(np.unique(self.codes))
        n_runs = 1 + np.count_nonzero(np.diff(self.codes))
        if 1 < n_classes == n_runs and len(self.codes) >= 20 * n_classes:
            warn(_SORTED, UserWarning)

    @staticmethod
    def concatenate(pieces: list[Trials], n_classes: int) -> Trials:
        """Concatenate runs of trials; the scores are padded with NaN to `n_classes` columns."""
        if len(pieces) == 1 and pieces[0].scores.shape[1] in (0, n_classes):
            return pieces[0]
        none = np.empty(0, dtype=np.int32)
        capacities = [(0, n_classes - each.scores.shape[1]) for each in pieces]
        scores = [
            np.pad(each.scores, ((0, 0), capacity), constant_values=np.nan)
            for each, capacity in zip(pieces, capacities, strict=True)
        ]
        return Trials(
            np.concatenate([none, *(each.predictions for each in pieces)]),
            np.concatenate([none, *(each.codes for each in pieces)]),
            np.concatenate([np.empty((0, n_classes), dtype=np.float32), *scores]),
            np.concatenate([NO_PROBABILITIES, *(each.probabilities for each in pieces)]),
            np.concatenate([each.traces for each in pieces]) if pieces else NO_TRACES,
            np.concatenate([NO_PLACES, *(each.places for each in pieces)]),
        )

"""Learning from tables: blocks of rows under a schema that the first rows determine.

The first `N_ROWS` rows are kept. Until there are as many, the model is the one of the schema
inferred from those so far: if a further row changes the schema, the model learns all of them again.
It is therefore the same for any split of the rows into batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kesler.data.rows import Rows
from kesler.learner.combinations import require_half_life
from kesler.online.columns import given_columns, on_mismatch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from kesler.data.schema.records import Table
    from kesler.learner.targets import Targets
    from kesler.online.model import Model
    from kesler.online.table_state import Batch

    Block = tuple[Rows, Targets, npt.NDArray[np.float64] | None]

BLOCK_ROWS = 4096  # rows of a table whose features are in memory at a time


def table_blocks(
    model: Model, table: Table, targets: Targets, weights: Any = None
) -> Iterator[Block]:
    """Yield blocks of rows of a table; learn the first rows again if the schema changes."""
    from kesler.data.schema.values import usable
    from kesler.online.table_state import Batch, TableState

    columns, given = model._input.columns, given_columns(model)
    batch = Batch(usable(table, given, on_mismatch(model)), targets, weights).counted()
    state = columns.state or TableState(named=table.named)
    if state.kept is None:
        yield from _blocks_of(model, batch)
        return
    kept, schema = (*state.kept, batch), state.inferred(batch, given)
    again = schema != state.schema
    if again:
        model._learner = None
        model._input.begin_again()
    columns.state = state.begun(schema, again=again)
    for earlier in state.kept if again else ():
        for block in _blocks_of(model, earlier):
            model._learn(*block)
    # Before they are learnt: an interrupt keeps the rows learnt by then, and the schema.
    columns.state = columns.known.with_kept(kept)
    yield from _blocks_of(model, batch)


def _blocks_of(model: Model, batch: Batch) -> Iterator[Block]:
    """Yield blocks of rows with the schema so far, extended by the new columns of a batch."""
    from kesler.data.schema import values

    model._prepared(dense=False)
    columns = model._input.columns
    state, moments = columns.known, columns.known.moments
    cells, schema = values.parse(
        batch.table, state.schema, given_columns(model), on_mismatch(model), learn=True
    )
    for start in range(0, len(batch), BLOCK_ROWS):
        part = slice(start, min(len(batch), start + BLOCK_ROWS))
        weights = None if batch.weights is None else batch.weights[part]
        entries, moments = values.entries_of(
            {name: column[part] for name, column in cells.items()},
            part.stop - part.start,
            schema,
            moments,
            weights,
            learn=True,
            decay=_decay(model.half_life),
        )
        columns.state = replace(state, schema=schema, moments=moments)
        with model._between_trials():  # others may add the names of events
            rows = model._input.named_rows(model, entries, learn=True)
        yield rows, batch.targets[part], weights


def _decay(half_life: Any) -> float:
    """Return the share of the influence of a row on moments that remains after another."""
    rows = require_half_life(half_life)
    return 1.0 if rows is None else 0.5 ** (1 / rows)

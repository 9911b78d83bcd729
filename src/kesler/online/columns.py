"""Tables as input: estimators that learn from columns of text, numbers, categories and dates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kesler.data.ratings import Ratings
from kesler.data.rows import Rows
from kesler.data.sparse_rows import is_sparse
from kesler.errors import KeslerError
from kesler.learner.combinations import require_half_life

if TYPE_CHECKING:
    import numpy.typing as npt

    from kesler.data.schema.records import Table
    from kesler.data.schema.schema import Column, Schema
    from kesler.learner.targets import Targets
    from kesler.online.table_state import Batch, TableState

    Block = tuple[Rows, Targets, npt.NDArray[np.float64] | None]

AUTO = "auto"
BLOCK_ROWS = 4096  # rows of a table whose features are in memory at a time
NOT_LEARNT = ("identifier", "ignore")
OF_MODEL = ("_learner", "_names", "_sub_expert_names")


class ColumnLearner:
    """The part of an estimator that learns from tables, whose columns are of different kinds.

    The first `N_ROWS` rows are kept. Until there are as many, the model is the one of the schema
    inferred from those so far: if a further row changes the schema, the model learns all of them
    again. It is therefore the same for any split of the rows into batches.
    """

    _learn: Callable[..., Any]
    _named_rows: Callable[..., Rows]
    _prepared: Callable[..., Any]
    _between_trials: Callable[..., Any]
    _takes_ratings: Callable[[], bool]

    @property
    def schema_(self) -> Schema | None:
        """The kinds of the columns; None if the model does not learn from a table."""
        state = self._table_state
        return None if state is None else state.schema

    @property
    def _table_state(self) -> TableState | None:
        return self.__dict__.get("_table")

    @_table_state.setter
    def _table_state(self, state: TableState) -> None:
        self.__dict__["_table"] = state

    # ---- input ------------------------------------------------------------------------------

    def _table_of(self, X: Any) -> Table | None:
        """Return the table in X; None if the model learns from numbers, which are no table."""
        own = self.__dict__
        if "_table" not in own and not self._begins_table(X, own.get("columns")):
            return None
        if isinstance(X, (Rows, Ratings)) or is_sparse(X):
            raise KeslerError(
                f"X is a {type(X).__name__}, but this model learns from the columns of a table, "
                "which have names: give rows with these, as it learnt from"
            )
        from kesler.data.schema.records import table_of

        table = table_of(X, self._text_column())
        if not len(table):
            raise KeslerError("X has 0 rows, while a minimum of 1 is required: give rows")
        state = self._table_state
        if state is not None and len(state.schema) and table.named != state.named:
            raise KeslerError(
                "this model learnt from columns with names, and an array has none, or the reverse: "
                "give rows in the same form as before"
            )
        return table

    def _read_table(self, rows: Any) -> Table | None:
        """Return rows of a reader if they are a table; None if they are rows of numbers."""
        table = self._table_of(rows)
        if table is None and not isinstance(rows, Rows):
            raise KeslerError(
                "this model learnt from rows of numbers, not from a table: read the rows as those "
                "that it learnt from, without kinds of columns"
            )
        return table

    def _begins_table(self, X: Any, columns: Any) -> bool:
        """Return whether a model without a schema learns X as a table."""
        # A learner without a table has begun with rows of numbers.
        if columns is None or "_learner" in self.__dict__ or isinstance(X, (Rows, Ratings)):
            return False
        if isinstance(columns, str) and columns == AUTO:
            if type(X) is np.ndarray and X.dtype.kind in "biufc":
                return False
            from kesler.data.schema.records import is_table

            return not is_sparse(X) and is_table(X) and not self._takes_ratings()
        self._given_columns()
        return True

    def _given_columns(self) -> dict[str, Column]:
        """Return the columns that the user named."""
        from kesler.data.schema.schema import given_columns

        columns = vars(self).get("columns")
        return {} if columns is None or columns == AUTO else given_columns(columns)

    def _text_column(self) -> str:
        """Return the column of a text that is given alone: the only one of texts."""
        from kesler.data.schema.schema import OF_TEXTS

        given, state = self._given_columns().values(), self._table_state
        known = [*given, *(state.schema if state else ())]
        names = {column.name for column in known if column.kind == "text"}
        if len(names) > 1:
            return OF_TEXTS if OF_TEXTS in names else min(names)
        return names.pop() if names else OF_TEXTS

    def _table_of_row(self, x: Any) -> Table | None:
        """Return the table of one row; None if the model learns from numbers."""
        if "_table" not in self.__dict__ and not isinstance(x, (str, Mapping, list, tuple)):
            return None
        if isinstance(x, str):
            self._require_one_text(x)
        if isinstance(x, (str, Mapping)) or isinstance(x, (Rows, Ratings)):
            return self._table_of(x)
        return self._table_of([list(x)] if isinstance(x, (list, tuple, np.ndarray)) else x)

    def _require_one_text(self, x: str) -> None:
        state = self._table_state
        names = [column.name for column in state.schema.of_kind("text")] if state else []
        if state is not None and len(state.schema) and len(names) != 1:
            raise KeslerError(
                f"this model learnt from the columns {', '.join(c.name for c in state.schema)}, so "
                f"it cannot tell which of them the text {x[:30]!r} is: give a mapping of names of "
                "columns to cells"
            )

    def _require_given_columns(self) -> None:
        """Raise if the user named a column of which no row has a cell."""
        state = self._table_state
        known = [] if state is None else [column.name for column in state.schema]
        for name, column in self._given_columns().items() if state else ():
            if name not in known and column.kind not in NOT_LEARNT:
                raise KeslerError(
                    f"columns={{{name!r}: {column.kind!r}}}, but no row has a cell in a column "
                    f"of this name: those with cells are {', '.join(map(repr, known))}"
                )

    # ---- features ---------------------------------------------------------------------------

    def _entries_to_score(self, table: Table) -> list[dict[str, float]]:
        """Return the features of rows that are not learnt."""
        from kesler.data.schema import values

        state, given = self._known_table(), self._given_columns()
        usable = values.usable(table, given, self._on_mismatch())
        cells, _ = values.parse(usable, state.schema, given, self._on_mismatch(), learn=False)
        entries, _ = values.entries_of(
            cells, table.n_rows, state.schema, state.moments, None, learn=False
        )
        return entries

    def _on_mismatch(self) -> str:
        choice = vars(self).get("on_mismatch", "raise")
        if choice not in ("raise", "missing"):
            raise KeslerError(
                f'on_mismatch={choice!r}: give "raise", or "missing" for cells that do not fit '
                "their column to count as missing"
            )
        return str(choice)

    def _decay(self) -> float:
        """Return the share of the influence of a row on moments that remains after another."""
        half_life = require_half_life(vars(self).get("half_life"))
        return 1.0 if half_life is None else 0.5 ** (1 / half_life)

    # ---- learning ---------------------------------------------------------------------------

    def _table_blocks(self, table: Table, targets: Targets, weights: Any = None) -> Iterator[Block]:
        """Yield blocks of rows of a table; learn the first rows again if the schema changes."""
        from kesler.data.schema.values import usable
        from kesler.online.table_state import Batch, TableState

        given = self._given_columns()
        batch = Batch(usable(table, given, self._on_mismatch()), targets, weights).counted()
        state = self._table_state or TableState(named=table.named)
        if state.kept is None:
            yield from self._blocks_of(batch)
            return
        kept, schema = (*state.kept, batch), state.inferred(batch, given)
        again = schema != state.schema
        if again:
            self._begin_again()
        self._table_state = state.begun(schema, again=again)
        for earlier in state.kept if again else ():
            for block in self._blocks_of(earlier):
                self._learn(*block)
        # Before they are learnt: an interrupt keeps the rows learnt by then, and the schema.
        self._table_state = self._known_table().with_kept(kept)
        yield from self._blocks_of(batch)

    def _known_table(self) -> TableState:
        """Return what is known of the table, once there is one."""
        state = self._table_state
        assert state is not None
        return state

    def _begin_again(self) -> None:
        """Discard what has been learnt; the objects themselves are not changed."""
        for name in OF_MODEL:
            self.__dict__.pop(name, None)

    def _blocks_of(self, batch: Batch) -> Iterator[Block]:
        """Yield blocks of rows with the schema so far, extended by the new columns of a batch."""
        from kesler.data.schema import values

        self._prepared(dense=False)
        state = self._known_table()
        cells, schema = values.parse(
            batch.table, state.schema, self._given_columns(), self._on_mismatch(), learn=True
        )
        moments = state.moments
        for part in _parts(len(batch)):
            weights = None if batch.weights is None else batch.weights[part]
            block = {name: column[part] for name, column in cells.items()}
            entries, moments = values.entries_of(
                block,
                part.stop - part.start,
                schema,
                moments,
                weights,
                learn=True,
                decay=self._decay(),
            )
            self._table_state = replace(state, schema=schema, moments=moments)
            with self._between_trials():  # others may add the names of events
                rows = self._named_rows(entries, learn=True)
            yield rows, batch.targets[part], weights


def _parts(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, BLOCK_ROWS):
        yield slice(start, min(n_rows, start + BLOCK_ROWS))


def texts_of(X: Any) -> list[str] | None:
    """Return X as a list of texts, None if its rows are anything else.

    Examples
    --------
    >>> texts_of(("win cash", "lunch")), texts_of([{"win": 1.0}])
    (['win cash', 'lunch'], None)
    """
    if isinstance(X, np.ndarray) and (X.ndim != 1 or X.dtype.kind not in "OU"):
        return None
    if isinstance(X, (list, tuple)) and not (X and isinstance(X[0], str)):
        return None
    if isinstance(X, (Rows, Ratings, Mapping)) or is_sparse(X):
        return None
    from kesler.data.schema.records import texts_in

    return texts_in(X)

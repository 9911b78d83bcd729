"""Tables as input: how an estimator reads columns of text, numbers, categories and dates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kesler.data.ratings import Ratings
from kesler.data.rows import Rows
from kesler.data.sparse_rows import is_sparse
from kesler.errors import KeslerError

if TYPE_CHECKING:
    from kesler.data.schema.records import Table
    from kesler.data.schema.schema import Column, Schema
    from kesler.online.model import Model
    from kesler.online.table_state import TableState

AUTO = "auto"
NOT_LEARNT = ("identifier", "ignore")


class ColumnReader:
    """What an estimator knows of the columns of a table, and how it reads rows with it.

    Attributes
    ----------
    state : the schema, the moments of numbers and the first rows; None where rows are no table.
    """

    def __init__(self) -> None:
        self.state: TableState | None = None

    @property
    def known(self) -> TableState:
        """What is known of the table, once there is one."""
        assert self.state is not None
        return self.state

    @property
    def schema(self) -> Schema | None:
        """The kinds of the columns; None if rows are no table."""
        return None if self.state is None else self.state.schema

    # ---- input ------------------------------------------------------------------------------

    def table_of(self, model: Model, X: Any) -> Table | None:
        """Return the table in X; None if the model learns from numbers, which are no table."""
        if self.state is None and not _begins_table(model, X):
            return None
        if isinstance(X, (Rows, Ratings)) or is_sparse(X):
            raise KeslerError(
                f"X is a {type(X).__name__}, but this model learns from the columns of a table, "
                "which have names: give rows with these, as it learnt from"
            )
        from kesler.data.schema.records import table_of

        table = table_of(X, self._text_column(model))
        if not len(table):
            raise KeslerError("X has 0 rows, while a minimum of 1 is required: give rows")
        state = self.state
        if state is not None and len(state.schema) and table.named != state.named:
            raise KeslerError(
                "this model learnt from columns with names, and an array has none, or the reverse: "
                "give rows in the same form as before"
            )
        return table

    def read_table(self, model: Model, rows: Any) -> Table | None:
        """Return rows of a reader if they are a table; None if they are rows of numbers."""
        table = self.table_of(model, rows)
        if table is None and not isinstance(rows, Rows):
            raise KeslerError(
                "this model learnt from rows of numbers, not from a table: read the rows as those "
                "that it learnt from, without kinds of columns"
            )
        return table

    def _text_column(self, model: Model) -> str:
        """Return the column of a text that is given alone: the only one of texts."""
        from kesler.data.schema.schema import OF_TEXTS

        given, state = given_columns(model).values(), self.state
        known = [*given, *(state.schema if state else ())]
        names = {column.name for column in known if column.kind == "text"}
        if len(names) > 1:
            return OF_TEXTS if OF_TEXTS in names else min(names)
        return names.pop() if names else OF_TEXTS

    def table_of_row(self, model: Model, x: Any) -> Table | None:
        """Return the table of one row; None if the model learns from numbers."""
        if self.state is None and not isinstance(x, (str, Mapping, list, tuple)):
            return None
        if isinstance(x, str):
            self._require_one_text(x)
        if isinstance(x, (str, Mapping)) or isinstance(x, (Rows, Ratings)):
            return self.table_of(model, x)
        return self.table_of(model, [list(x)] if isinstance(x, (list, tuple, np.ndarray)) else x)

    def _require_one_text(self, x: str) -> None:
        state = self.state
        names = [column.name for column in state.schema.of_kind("text")] if state else []
        if state is not None and len(state.schema) and len(names) != 1:
            raise KeslerError(
                f"this model learnt from the columns {', '.join(c.name for c in state.schema)}, so "
                f"it cannot tell which of them the text {x[:30]!r} is: give a mapping of names of "
                "columns to cells"
            )

    def require_given(self, model: Model) -> None:
        """Raise if the user named a column of which no row has a cell."""
        state = self.state
        known = [] if state is None else [column.name for column in state.schema]
        for name, column in given_columns(model).items() if state else ():
            if name not in known and column.kind not in NOT_LEARNT:
                raise KeslerError(
                    f"columns={{{name!r}: {column.kind!r}}}, but no row has a cell in a column "
                    f"of this name: those with cells are {', '.join(map(repr, known))}"
                )

    # ---- features ---------------------------------------------------------------------------

    def entries_to_score(self, model: Model, table: Table) -> list[dict[str, float]]:
        """Return the features of rows that are not learnt."""
        from kesler.data.schema import values

        state, given, choice = self.known, given_columns(model), on_mismatch(model)
        usable = values.usable(table, given, choice)
        cells, _ = values.parse(usable, state.schema, given, choice, learn=False)
        entries, _ = values.entries_of(
            cells, table.n_rows, state.schema, state.moments, None, learn=False
        )
        return entries


def _begins_table(model: Model, X: Any) -> bool:
    """Return whether an estimator without a schema learns X as a table."""
    columns = model.columns
    # A learner without a table has begun with rows of numbers.
    if columns is None or model._learner is not None or isinstance(X, (Rows, Ratings)):
        return False
    if isinstance(columns, str) and columns == AUTO:
        if type(X) is np.ndarray and X.dtype.kind in "biufc":
            return False
        from kesler.data.schema.records import is_table

        return not is_sparse(X) and is_table(X) and not model._takes_ratings()
    given_columns(model)
    return True


def given_columns(model: Model) -> dict[str, Column]:
    """Return the columns that the user named."""
    if model.columns is None or model.columns == AUTO:
        return {}
    from kesler.data.schema import schema

    return schema.given_columns(model.columns)


def on_mismatch(model: Model) -> str:
    """Return what is done with cells that their column cannot hold."""
    if model.on_mismatch not in ("raise", "missing"):
        raise KeslerError(
            f'on_mismatch={model.on_mismatch!r}: give "raise", or "missing" for cells that do not '
            "fit their column to count as missing"
        )
    return model.on_mismatch

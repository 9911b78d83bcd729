"""Columns: how an estimator reads the rows of a table, by the kinds of its columns."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kesler.data import inputs
from kesler.data.inputs import texts_of
from kesler.data.ratings import Ratings
from kesler.data.rows import Rows
from kesler.data.sparse_rows import is_sparse
from kesler.errors import KeslerError, MismatchWarning, warn
from kesler.learner.combinations import require_half_life
from kesler.settings.table import AUTO

if TYPE_CHECKING:
    from kesler.data.schema.entries import Entries
    from kesler.data.schema.measurements import Forms, Inputs
    from kesler.data.schema.records import Table
    from kesler.data.schema.row_features import RowPlan
    from kesler.data.schema.schema import Column, Schema
    from kesler.online.model import Model
    from kesler.online.table_state import TableState


class ColumnReader:
    """What an estimator knows of the columns of a table, and how it reads rows with it.

    Attributes
    ----------
    state : the schema, the moments of numbers and the first rows; None where rows are no table.
    scored : the columns with the cells of rows that were scored, if these are counted.
    left_out : the names that only later rows have, of which a warning has been given.
    learnt_again : whether first rows have been learnt again, as later ones changed how they are
        read.
    """

    def __init__(self) -> None:
        self.state: TableState | None = None
        self.scored: Schema | None = None
        self.left_out = set[str]()
        self.learnt_again = False
        self._are_numbers: tuple[Any, bool] = (None, False)
        self._forms: tuple[dict[str, Any], Forms] | None = None  # of these settings
        self._plan: RowPlan | None = None  # of the schema that follows
        self._planned: Schema | None = None

    @property
    def inputs_alone(self) -> Inputs | None:
        """The inputs that are learnt in place of features, as rows of an array; None without."""
        inputs = None if self.state is None else self.state.inputs
        return None if inputs is None or inputs.beside else inputs

    @property
    def inputs_beside(self) -> Inputs | None:
        """The inputs that members of an ensemble read beside features; None without."""
        inputs = None if self.state is None else self.state.inputs
        return inputs if inputs is not None and inputs.beside else None

    @property
    def are_numbers_alone(self) -> bool:
        """Whether rows are learnt as those of an array, and each column is a number."""
        inputs = self.inputs_alone
        if inputs is not self._are_numbers[0]:
            self._are_numbers = inputs, inputs is not None and inputs.are_numbers
        return self._are_numbers[1]

    @property
    def known(self) -> TableState:
        """What is known of the table, once there is one."""
        if self.state is None:
            raise KeslerError(
                "the kinds of the columns of a table are known from the first row that is learnt, "
                "and there is none: learn a row first, with learn_one or partial_fit"
            )
        return self.state

    @property
    def schema(self) -> Schema | None:
        """The kinds of the columns; None if rows are no table."""
        return None if self.state is None or self.state.are_words else self.state.schema

    # ---- input ------------------------------------------------------------------------------

    def table_of(self, model: Model, X: Any) -> Table | None:
        """Return the table in X; None if the model learns from numbers, which are no table."""
        if self.state is None and not _begins_table(model, X):
            return None
        if self.state is not None and self.state.by_name and self._are_no_table(X):
            return None
        if isinstance(X, (Rows, Ratings)) or is_sparse(X):
            raise KeslerError(
                f"X is a {type(X).__name__}, but this model learns from the columns of a table, "
                "which have names: give rows with these, as it learnt from"
            )
        from kesler.data.schema.records import table_of

        table = table_of(X, self._text_column(model))
        inputs.require_rows(table)
        state = self.state
        if state and (len(state.schema) or state.by_name) and table.named != state.named:
            raise KeslerError(
                "this model learnt from columns with names, and an array has none, or the reverse: "
                "give rows in the same form as before"
            )
        return table

    def warn_of_lacking(self, X: Any, table: Table) -> None:
        """Warn if a data frame lacks columns that were learnt, which a mapping may leave out."""
        from kesler.data.schema.records import is_frame

        learnt = [column.name for column in self.known.schema.learnt]
        lacking = [name for name in learnt if name not in table.columns]
        if lacking and is_frame(X):
            warn(
                f"X lacks the columns {', '.join(map(repr, lacking))}, which the model learnt: "
                "their cells count as missing; if they have other names, rename them",
                MismatchWarning,
            )

    def forms(self, model: Model) -> Forms:
        """Return the forms of rows that a learner of the model's settings reads.

        To find them takes longer than to learn a row: settings that are the same objects as before
        have the same ones. Members in a list may have changed.
        """
        given = model.get_params(deep=False)
        if self._forms is not None:
            before, found = self._forms
            if all(before[name] is each for name, each in given.items()):
                return found
        found = cast("Forms", model._maker.forms(given))
        has_members = any(isinstance(each, list) for each in given.values())
        self._forms = None if has_members else (given, found)
        return found

    def is_open(self, model: Model, X: Any) -> bool:
        """Return whether X are mappings of numbers, and these may still be measurements.

        They may be of learners that read missing values, or that read nothing but arrays, and whose
        memory has no limit, which drops names.
        """
        reader, state = model._input, self.state
        if state is None:
            is_new = model._learner is None and reader.names is None and reader.width is None
            may_be = is_new and _infers_columns(model) and model.memory_limit is None
            if not (may_be and _are_entries(X)) or model._takes_ratings():
                return False
            takes_features = model._maker.takes_sparse_rows(model.get_params(deep=False))
            return reader.takes_missing(model) or not takes_features
        is_kept = state.by_name and state.kept is not None and not learns_again(model)
        return is_kept and _are_entries(X)

    def _are_no_table(self, X: Any) -> bool:
        """Return whether X are rows of numbers, or texts that are learnt along with words."""
        from kesler.data.schema.records import is_frame, is_table

        with_words = self.known.are_words and texts_of(X) is not None
        return with_words or not (is_table(X) or is_frame(X))

    def close(self) -> None:
        """Forget the first rows of words, so that no further row is kept."""
        if self.state is not None and self.state.are_words:
            self.state = None

    def settle(self) -> None:
        """Forget the first rows, so that no further row has them learnt again."""
        self.close()
        if self.state is not None and self.state.kept is not None:
            self.state = replace(self.state, kept=None)

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
        """Return the column of a text that is given alone: that of texts alone, or the first."""
        from kesler.data.schema.schema import OF_TEXTS, OTHERS

        given, state = given_columns(model).values(), self.state
        known = [*given, *(state.schema if state else ())]
        names = {column.name for column in known if column.kind == "text"} - {OTHERS}
        return OF_TEXTS if OF_TEXTS in names else min(names, default=OF_TEXTS)

    def table_of_row(self, model: Model, x: Any) -> Table | None:
        """Return the table of one row; None if the model learns from numbers."""
        may_begin = isinstance(model.columns, Mapping) or isinstance(x, (str, Mapping, list, tuple))
        if self.state is None and not may_begin:
            return None
        if isinstance(x, str):
            self._require_one_text(x)
        if isinstance(x, (str, Mapping, Rows, Ratings)):
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

    def require_texts(self, model: Model) -> None:
        """Raise if the estimator has vectors of texts, and its rows have no text."""
        inputs = None if self.state is None else self.state.inputs
        texts = [] if inputs is None else [c for c in inputs.columns if c.kind == "text"]
        if model.vectors is not None and not texts:
            raise KeslerError(
                f"vectors={model.vectors!r:.60} are those of texts, and no row has any: leave it "
                'out, or name the columns of texts, such as columns={"body": "text"}'
            )

    def require_given(self, model: Model) -> None:
        """Raise if all columns are ignored, or one that the user named has no cell in any row."""
        self.require_texts(model)
        from kesler.data.schema.kinds import NOT_LEARNT
        from kesler.data.schema.schema import OTHERS

        state = self.state
        known = [] if state is None else [column.name for column in state.schema]
        named = not isinstance(model.columns, str)
        for name, column in given_columns(model).items() if state and named else ():
            if name not in (*known, OTHERS) and column.kind not in NOT_LEARNT:
                raise KeslerError(
                    f"columns={{{name!r}: {column.kind!r}}}, but no row has a cell in a column "
                    f"of this name: those with cells are {', '.join(map(repr, known))}"
                    f"{_formats_of_dates(column)}"
                )
        if state is not None:
            state.schema.require_learnt()

    def warn_of_kinds(self) -> None:
        """Warn of columns that cannot hold most of their cells."""
        schema = self.schema
        for sentence in [] if schema is None else schema.wrong_kinds:
            warn(sentence, MismatchWarning)

    def warn_of_new(self, known: Container[str], names: Iterable[str]) -> None:
        """Warn once of each name that only later rows have, and that is not learnt."""
        from kesler.data.schema.inference import N_ROWS

        for name in dict.fromkeys(names):
            if name not in known and name not in self.left_out:
                self.left_out.add(name)
                other = ", or set columns=None, which learns names that come and go"
                warn(
                    f"{name!r} is in none of the first {N_ROWS} rows, whose columns are the "
                    "features, and is not learnt: put a row that has it among these"
                    f"{other if self.are_numbers_alone else ''}",
                    MismatchWarning,
                )

    # ---- features ---------------------------------------------------------------------------

    def parsed(self, model: Model, table: Table) -> dict[str, list[Any]]:
        """Return the parsed cells of each column of rows that are not learnt."""
        from kesler.data.schema import values

        given, choice = given_columns(model), on_mismatch(model)
        usable, count = values.usable(table, given, choice), self.scored is not None
        schema = self.known.schema if self.scored is None else self.scored
        found, after = values.parse(usable, schema, given, choice, learn=False, count=count)
        self.scored = after if count else None
        return found

    def require_fit(self, model: Model, table: Table, *, learn: bool) -> None:
        """Raise MismatchError if a cell of rows to learn or score does not fit its column."""
        from kesler.data.schema import values
        from kesler.data.schema.inference import N_ROWS, infer

        given, choice, state = given_columns(model), on_mismatch(model), self.state
        is_open = state is None or (learn and state.kept is not None)
        table = values.usable(table, given, choice)
        schema = infer(table[:N_ROWS].columns, given) if is_open else self.known.schema
        values.parse(table, schema, given, choice, learn=learn, count=False)

    def score_as(self, schema: Schema) -> None:
        """Read the rows that are scored from now on by this schema, and count their cells."""
        self.scored = schema.uncounted()

    def count_scored(self) -> None:
        """Count the cells of rows that are scored from now on, in `scored`."""
        self.scored = None if self.state is None else self.state.schema.uncounted()

    def entries_to_score(self, cells: Mapping[str, Any], n_rows: int) -> Entries:
        """Return the features of parsed rows that are not learnt."""
        from kesler.data.schema import features

        state, cells = self.known, self.of_features(cells)
        return features.entries_of(cells, n_rows, state.schema, state.moments, None, learn=False)[0]

    def of_features(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        """Return the cells without vectors that are inputs, which are no features besides."""
        inputs = self.known.inputs
        beside = () if inputs is None else inputs.vectors
        return {name: column for name, column in cells.items() if name not in beside}

    def features_of_row(
        self, model: Model, row: Mapping[Any, Any], *, learn: bool
    ) -> dict[str, float] | None:
        """Return the features of a row by name; None if it is to be read as a table.

        If `learn`, its cells are counted, and its numbers are added to the moments.
        """
        state = self.known
        if state.kept is not None or state.inputs is not None or self.scored is not None:
            return None
        plan = self._plan_of(state.schema)
        parsed = None if learn and learns_again(model) else plan.parsed(row, learn=learn)
        if parsed is None:
            return None
        cells, stated = parsed
        if not learn:
            return plan.features_of(cells, state.moments)[0]
        moments, decay = state.moments, decay_of(model)
        found, moments = plan.features_of(cells, moments, learn=True, decay=decay)
        self._planned = plan.counted(state.schema, stated)
        self.state = replace(state, schema=self._planned, moments=moments)
        return found

    def _plan_of(self, schema: Schema) -> RowPlan:
        """Return what the features of rows follow from, for the columns of the table."""
        if self._plan is None or self._planned is not schema:
            from kesler.data.schema.row_features import RowPlan

            self._plan, self._planned = RowPlan(schema), schema
        return self._plan

    def with_inputs(self, model: Model, rows: Rows, cells: Mapping[str, Any]) -> Rows:
        """Return rows of parsed cells with their inputs beside, if members read these."""
        inputs = self.inputs_beside
        if inputs is None:
            return rows
        array = inputs.array(cells, len(rows), vectors_of(model))
        return replace(rows, measured=Rows.from_dense(array))


def _formats_of_dates(column: Column) -> str:
    """Return the formats that may follow the name of a column of dates, where one seems to."""
    from kesler.data.schema.dates import NAMED

    name, _, form = column.name.partition(":")
    if column.kind != "date" or not form:
        return ""
    listed = f"{', '.join(NAMED)}, or as in strptime, such as %d/%m/%Y"
    return f"; if {form!r} is meant as the format of {name!r}, choose one of {listed}"


def _are_entries(X: Any) -> bool:
    """Return whether X is a mapping of names to numbers, or a list of them."""
    if not inputs.holds_names(X):
        return False
    from kesler.data.schema.records import is_table

    return not is_table(X)


def _begins_table(model: Model, X: Any) -> bool:
    """Return whether an estimator without a schema learns X as a table."""
    # A learner without a table has begun with rows of numbers.
    if model.columns is None or model._learner is not None or isinstance(X, (Rows, Ratings)):
        return False
    if _infers_columns(model):
        if type(X) is np.ndarray and X.dtype.kind in "biufc":
            return False
        from kesler.data.schema.records import is_table

        if model.vectors is not None and texts_of(X) is not None:
            return True
        return not is_sparse(X) and is_table(X) and not model._takes_ratings()
    given_columns(model)
    return True


def _infers_columns(model: Model) -> bool:
    """Return whether rows are those of a table if they look so."""
    return isinstance(model.columns, str) and model.columns == AUTO


def asks_for_table(model: Model) -> bool:
    """Return whether the user asks for any rows to be read as those of a table."""
    return model.columns is not None and not _infers_columns(model)


def given_columns(model: Model) -> dict[str, Column]:
    """Return the columns that the user named; with vectors of texts, texts alone are such."""
    is_auto = _infers_columns(model)
    if model.columns is None or (is_auto and model.vectors is None):
        return {}
    from kesler.data.schema import schema

    return schema.given_columns({schema.OF_TEXTS: "text"} if is_auto else model.columns)


def vectors_of(model: Model) -> Any:
    """Return the function of an estimator from texts to vectors, None if it has none."""
    if model.vectors is None:
        return None
    from kesler.readers import word_vectors

    return word_vectors.vectors_of(model.vectors)


def on_mismatch(model: Model) -> str:
    """Return what is done with cells that their column cannot hold."""
    if model.on_mismatch not in ("raise", "missing"):
        raise KeslerError(
            f'on_mismatch={model.on_mismatch!r}: give "raise", or "missing" for cells that do not '
            "fit their column to count as missing"
        )
    return model.on_mismatch


def decay_of(model: Model) -> float:
    """Return the share of the influence of a row on moments that remains after another."""
    rows = require_half_life(model.half_life)
    return 1.0 if rows is None else 0.5 ** (1 / rows)


def learns_again(model: Model) -> bool:
    """Return whether rows come again, of which what is known of all rows is not to change."""
    return model._learner is not None and not model._learner.observes

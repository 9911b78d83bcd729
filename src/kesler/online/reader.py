"""Reader: how an estimator reads its input as rows, by the names of features or by position."""

from __future__ import annotations

import math
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data import inputs
from kesler.data.ratings import Ratings
from kesler.data.rows import Rows, Vocabulary
from kesler.data.sparse_rows import is_sparse
from kesler.data.texts import TextLengths, counted, with_runs
from kesler.errors import KeslerError, MismatchWarning
from kesler.learner.events import DICTIONARIES, Event

if TYPE_CHECKING:
    from kesler.data.schema.entries import Entries
    from kesler.data.schema.measurements import Inputs
    from kesler.data.schema.records import Table
    from kesler.data.schema.schema import Column, Schema
    from kesler.learner.ensemble import AnyLearner
    from kesler.online.model import Model
    from kesler.online.table_state import TableState


AUTO = "auto"


class Reader:
    """What an estimator knows of its features, and how it reads rows with it.

    Attributes
    ----------
    names : the names of the features; None if they are identified by position.
    sub_experts : the names of the sub-experts; None if there are none, or they are numbered.
    width : the number of features, if dense rows, an array or a data frame have determined it.
    column_names : the names of the columns of a data frame of numbers, or None.
    texts : the lengths of the texts learnt; None if the features of texts are words alone.
    columns : what is known of the columns of a table.
    """

    def __init__(self) -> None:
        self.names: Vocabulary | None = None
        self.sub_experts: Vocabulary | None = None
        self.width: int | None = None
        self.column_names: npt.NDArray[Any] | None = None
        self.texts: TextLengths | None = None
        self.columns = ColumnReader()
        self._to_count: list[int] = []  # lengths of texts that are being learnt
        self._n_counted = 0  # rows that had been learnt before these

    def begin_again(self) -> None:
        """Forget the names of features and sub-experts; the objects themselves are not changed."""
        self.names = self.sub_experts = self.width = self.column_names = None

    # ---- rows -------------------------------------------------------------------------------

    def rows_to_score(self, model: Model, X: Any) -> Iterator[Rows]:
        """Yield the rows in X in blocks; nothing of them is stored."""
        table = self.columns.table_of(model, X)
        if table is not None:
            self.columns.warn_of_lacking(X, table)
            return inputs.blocks(self.table_rows(model, table))
        X, ratings, texts = self.apart(model, X)
        if texts:
            data: Any = self.text_rows(model, X, None, learn=False)
        elif inputs.holds_names(X):
            data = self.named_rows(model, X, learn=False)
        else:
            data = self.array_rows(model, X, learn=False)
        inputs.require_rated(inputs.count_rows(data), ratings)
        return inputs.blocks(data, self.numbered(model, ratings, learn=False))

    def readable(self, model: Model, rows: Any) -> Rows:
        """Return rows of a reader of files as the learner scores them."""
        table = self.columns.read_table(model, rows)
        if table is not None:
            rows = self.table_rows(model, table)
        inputs.require_width(rows, self.width, more=True)
        self.require_readable(model, rows)
        return replace(rows, ratings=self.numbered(model, rows.ratings, learn=False))

    def require_readable(self, model: Model, rows: Rows) -> None:
        """Raise if rows of a reader of files have missing values that the learner cannot take."""
        if rows.dense:
            values = rows.values.reshape(rows.shape)
            inputs.require_values(values, takes_missing=self.takes_missing(model))

    def table_rows(self, model: Model, table: Table) -> Rows:
        """Return rows of a table as they are scored."""
        cells, alone = self.columns.parsed(model, table), self.columns.inputs_alone
        if alone is not None:
            return Rows.from_dense(alone.array(cells, table.n_rows))
        entries = self.columns.entries_to_score(cells, table.n_rows)
        rows = self.entry_rows(model, entries, learn=False)
        return self.columns.with_inputs(model, rows, cells)

    def apart(self, model: Model, X: Any) -> tuple[Any, Ratings | None, bool]:
        """Return the attributes and the ratings in X, and whether the attributes are texts."""
        texts, rated = texts_of(X), model._takes_ratings()
        if texts is not None and not rated:
            return texts, None, True
        return (
            *inputs.apart(X if texts is None else [counted([t]) for t in texts], rated=rated),
            False,
        )

    def array_rows(self, model: Model, X: Any, *, learn: bool) -> Any:
        """Return the validated rows of an array, a sparse matrix or a data frame of numbers."""
        if isinstance(X, Rows):
            if not X.n_features:
                self._require_no_attributes()
            return X
        self._require_positions()
        first, has_no_names = learn and self.width is None, self.column_names is None
        if inputs.is_plain(X) and has_no_names and (first or X.shape[1] == self.width):
            self.width = X.shape[1]
            return inputs.measured(X, takes_missing=self.takes_missing(model))
        data = inputs.array_rows(model, X, reset=first, takes_missing=self.takes_missing(model))
        if first and self.column_names is not None:
            self.names = Vocabulary.of(self.column_names)
        return data

    def named_rows(self, model: Model, X: Any, *, learn: bool) -> Rows:
        """Return the rows of mappings, with their features by number."""
        vocabulary = self._vocabulary(model)
        if self.width is None:
            return inputs.named_rows(X, vocabulary, learn=learn)
        is_measured = self.columns.state is not None
        if not is_measured:
            inputs.require_framed(X, vocabulary)
        elif learn:
            names = chain.from_iterable([X] if isinstance(X, Mapping) else X)
            self.columns.warn_of_new(vocabulary, names)
        absent = math.nan if is_measured else 0.0
        takes_missing = self.takes_missing(model)
        return inputs.framed_rows(X, vocabulary, absent=absent, takes_missing=takes_missing)

    def entry_rows(self, model: Model, entries: Entries, *, learn: bool) -> Rows:
        """Return the features of a table as rows, with their features by number."""
        rows = entries.rows(self._vocabulary(model), learn=learn)
        rows.require_finite()
        return rows

    def takes_missing(self, model: Model) -> bool:
        """Return whether values of rows that list every feature may be missing (NaN)."""
        if model._learner is not None:
            return model._learner.takes_missing
        return bool(model._maker.takes_missing(model.get_params(deep=False)))

    def _vocabulary(self, model: Model) -> Vocabulary:
        """Return the names of the features; raise if they are identified by position."""
        if self.names is None and self._knows_features(model):
            raise KeslerError(
                "this model learnt from arrays without column names, so it cannot match named "
                "features with them: give arrays, or learn from a data frame or from mappings"
            )
        if self.names is None:
            self.names = Vocabulary()
        return self.names

    def _knows_features(self, model: Model) -> bool:
        """Return whether rows have been learnt, by name or by position."""
        return self.width is not None or n_learnt(model) > 0

    def _require_positions(self) -> None:
        if self.names is not None and self.width is None:
            raise KeslerError(
                "this model learns from named features, so it cannot match the columns of an array "
                "with them: give mappings of names to values, or use another model for arrays"
            )

    def _require_no_attributes(self) -> None:
        if self.width is not None:
            raise KeslerError(
                f"this model learnt from {self.width} attributes in addition to ratings, "
                "but these rows have none: give Ratings with attributes=..."
            )

    def numbered(self, model: Model, ratings: Ratings | None, *, learn: bool) -> Ratings | None:
        """Return ratings with sub-experts by number; new names are added if `learn`.

        Otherwise all new names get the next unused number.

        Raises
        ------
        KeslerError
            If the model identifies its sub-experts in another way.
        """
        if ratings is None or not len(ratings.vectors.indices):
            return ratings
        known = self.sub_experts
        learner = model._learner
        by_number = known is None and learner is not None and learner.n_sub_experts > 0
        if (ratings.names is None and known is not None) or (ratings.names and by_number):
            ways = ("number", "name") if by_number else ("name", "number")
            raise KeslerError(
                f"this model identifies its sub-experts by {ways[0]}, but the ratings identify "
                f"them by {ways[1]}: give ratings in the same form as before"
            )
        if ratings.names is None:
            return ratings
        if known is None:
            known = self.sub_experts = Vocabulary()
        if learn:
            numbers = [known.add(name) for name in ratings.names]
            return ratings.numbered(numbers, len(known))
        unseen = len(known)
        numbers = [known.indices.get(name, unseen) for name in ratings.names]
        return ratings.numbered(numbers, unseen + 1)

    # ---- texts ------------------------------------------------------------------------------

    def earlier_texts(self, model: Model) -> TextLengths | None:
        """Return the lengths of the texts learnt; None if the features of texts are words alone.

        They are where parameters are chosen, and where the first row was no text.
        """
        is_default = model._maker.is_default(model.get_params(deep=False))
        if self.texts is None and is_default and not self._knows_features(model):
            return TextLengths()
        return self.texts

    def text_rows(self, model: Model, texts: Sequence[str], weights: Any, *, learn: bool) -> Rows:
        """Return the rows of texts, whose lengths `count_texts` adds once they are learnt."""
        if self.width is not None:
            rows = self.named_rows(model, [counted([text]) for text in texts], learn=learn)
            return replace(rows, of_words=True)
        names, known = self._vocabulary(model), self.earlier_texts(model)
        event = Event() if model._learner is None else model._learner.event
        pieces, to_count, counts = [], list[int](), learn and not learns_again(model)
        for i, text in enumerate(texts):
            pieces.append(_entries_of(text, known, event, names, learn=learn))
            if counts and known is not None and (weights is None or weights[i]):
                known = known.and_text(len(text))
                to_count.append(len(text))
        if counts:
            self._to_count, self._n_counted = to_count, n_learnt(model)
        indices, values = map(np.concatenate, zip(*pieces, strict=True))
        return Rows(
            np.cumsum([0, *(len(each) for each, _ in pieces)], dtype=np.int64),
            indices,
            values,
            max(len(names), 1 + int(indices.max(initial=-1))),
            dense=False,
            numbering=names.numbering,
            of_words=True,
        )

    def count_texts(self, model: Model) -> None:
        """Add the lengths of the texts that were learnt since they were read."""
        if self._to_count:
            lengths, self._to_count = self._to_count[: n_learnt(model) - self._n_counted], []
            for length in lengths:
                self.count_text(length)

    def count_text(self, length: int) -> None:
        """Add a text of this many characters to those learnt."""
        self.texts = (self.texts or TextLengths()).and_text(length)

    def words_of(self, model: Model, texts: Sequence[str]) -> dict[str, float]:
        """Return the features of the texts of a row by name, read as one."""
        known, text = self.earlier_texts(model), " ".join(texts)
        if self.width is not None:
            known = None
        found = _features_of_text(text, known)
        return found if model._fitted().counts_words else dict.fromkeys(found, 1.0)

    # ---- single rows ------------------------------------------------------------------------

    def named(self, model: Model, x: Any) -> Any:
        """Return a row of a data frame as a mapping, unless the model learns by position."""
        is_by_name = self.names is not None or self.columns.state is not None
        return inputs.named_cells(x) if is_by_name or not self._knows_features(model) else x

    def row(self, model: Model, x: Any, *, learn: bool) -> Rows:
        """Return one row, by names or by position."""
        x = self.named(model, x)
        table = self.columns.table_of_row(model, x)
        if table is not None:
            return self.table_rows(model, table)
        x, ratings = inputs.apart(x, rated=model._takes_ratings())
        if ratings is None:
            return self._features_of(model, x, learn=learn)
        rows = self._features_of(model, inputs.only_row(x), learn=learn)
        inputs.require_rated(1, ratings)
        return replace(rows, ratings=self.numbered(model, ratings, learn=learn))

    def _features_of(self, model: Model, x: Any, *, learn: bool) -> Rows:
        if isinstance(x, str):
            return self.text_rows(model, [x], None, learn=learn)
        if isinstance(x, Mapping):
            return self.named_rows(model, x, learn=learn)
        if isinstance(x, Rows):
            return self.array_rows(model, x, learn=learn)
        self._require_positions()
        listed = inputs.listed_features(x)
        if listed is None:
            return inputs.positional_row(x, self.width, takes_missing=self.takes_missing(model))
        if is_sparse(x):
            self._settle_width(x.shape[-1], learn=learn)
        return inputs.listed_row(*listed, self.width)

    def _settle_width(self, width: int, *, learn: bool) -> None:
        """Let a sparse row determine the number of features if none has, and raise if one had."""
        if self.width not in (None, width):
            raise KeslerError(
                f"the row has {width} features, but this model expects {self.width}: give rows of "
                "that width"
            )
        if learn:
            self.width = width

    def read(self, x: Any, learner: AnyLearner, *, learn: bool) -> bool:
        """Read one row into the learner's event buffer; return whether it could be read this way.

        New feature names are added if `learn`, even if the row could not be read.
        """
        event, kind = learner.event, type(x)
        if learner.takes_ratings:
            return False
        if self.columns.state is not None:
            return kind in DICTIONARIES and self._read_measured(x, event)
        if kind is str or kind in DICTIONARIES:
            names = self.names
            if names is None or self.width is not None:
                return False
            if kind is str:
                return _read_text(x, self.texts, event, names, learn=learn)
            return event.read_mapping(x, names, joins=learn)
        if kind is np.ndarray:
            takes_missing = learner.takes_missing
            return x.shape == (self.width,) and event.read_array(x, takes_missing=takes_missing)
        if is_sparse(x) and x.shape[-1] != self.width:
            return False
        listed = None if self.names is not None else inputs.listed_features(x)
        return listed is not None and event.read_pair(*listed, self.width)

    def _read_measured(self, x: Any, event: Event) -> bool:
        """Read a mapping that names all columns of a table of numbers, in their order."""
        state, names = self.columns.known, self.names
        if state.kept is not None or names is None or not self.columns.are_numbers_alone:
            return False
        n = len(names)
        if not event.read_mapping(x, names, joins=False) or event.n_entries != n:
            return False
        event.dense = bool((event.indices == np.arange(n)).all())
        return event.dense

    def forget_names(self, n_names: int) -> None:
        """Forget the names of features beyond so many, of a row that was read but not learnt."""
        if self.names is not None and len(self.names) > n_names:
            self.names.forget_from(n_names)


def n_learnt(model: Model) -> int:
    """Return the number of rows that an estimator has learnt from."""
    return 0 if model._learner is None else int(model._learner.n_trials)


def learns_again(model: Model) -> bool:
    """Return whether rows come again, of which what is known of all rows is not to change."""
    return model._learner is not None and not model._learner.observes


def _entries_of(
    text: str,
    known: TextLengths | None,
    event: Event,
    names: Vocabulary,
    *,
    learn: bool,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return the numbers and values of the features of a text; see `_features_of_text`."""
    if _read_text(text, known, event, names, learn=learn):
        return event.indices.copy(), event.values.copy()
    entry = _features_of_text(text, known)
    numbers = (names.learnt if learn else names.numbered)(entry)
    return np.array([*numbers], np.int32), np.array([*entry.values()], np.float32)


def _read_text(
    text: str,
    known: TextLengths | None,
    event: Event,
    names: Vocabulary,
    *,
    learn: bool,
) -> bool:
    """Read the features of a text into an event; return whether its letters could be read."""
    if known is not None and known.is_short(text):
        return event.read_short_text(text, names, joins=learn)
    return event.read_text(text, names, joins=learn)


def _features_of_text(text: str, known: TextLengths | None) -> dict[str, float]:
    """Return the features of a text by name, given the lengths of the texts before it."""
    is_short = known is not None and known.is_short(text)
    return with_runs(text) if is_short else counted([text])


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


# ---- tables -------------------------------------------------------------------------------------


class ColumnReader:
    """What an estimator knows of the columns of a table, and how it reads rows with it.

    Attributes
    ----------
    state : the schema, the moments of numbers and the first rows; None where rows are no table.
    scored : the columns with the cells of rows that were scored, if these are counted.
    left_out : the names that only later rows have, of which a warning has been given.
    """

    def __init__(self) -> None:
        self.state: TableState | None = None
        self.scored: Schema | None = None
        self.left_out = set[str]()
        self._are_numbers: tuple[Any, bool] = (None, False)

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
        if not len(table):
            raise KeslerError("X has 0 rows, while a minimum of 1 is required: give rows")
        state = self.state
        is_known = state is not None and (len(state.schema) or state.by_name)
        if state is not None and is_known and table.named != state.named:
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
            warnings.warn(
                f"X lacks the columns {', '.join(map(repr, lacking))}, which the model learnt: "
                "their cells count as missing; if they have other names, rename them",
                MismatchWarning,
                stacklevel=5,
            )

    def is_open(self, model: Model, X: Any) -> bool:
        """Return whether X are mappings of numbers, and these may still be measurements.

        They may be of learners that read missing values, or that read nothing but arrays, and whose
        memory has no limit, which drops names.
        """
        reader, state = model._input, self.state
        if state is None:
            is_new = model._learner is None and reader.names is None and reader.width is None
            may_be = is_new and isinstance(model.columns, str) and model.columns == AUTO
            may_be = may_be and model.memory_limit is None
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
        from kesler.data.schema.schema import OF_TEXTS, OTHERS

        given, state = given_columns(model).values(), self.state
        known = [*given, *(state.schema if state else ())]
        names = {column.name for column in known if column.kind == "text"} - {OTHERS}
        if len(names) > 1:
            return OF_TEXTS if OF_TEXTS in names else min(names)
        return names.pop() if names else OF_TEXTS

    def table_of_row(self, model: Model, x: Any) -> Table | None:
        """Return the table of one row; None if the model learns from numbers."""
        may_begin = isinstance(model.columns, Mapping) or isinstance(x, (str, Mapping, list, tuple))
        if self.state is None and not may_begin:
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
        from kesler.data.schema.schema import NOT_LEARNT, OTHERS

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
            warnings.warn(sentence, MismatchWarning, stacklevel=3)  # of the caller of `fit`

    def warn_of_new(self, known: Container[str], names: Iterable[str]) -> None:
        """Warn once of each name that only later rows have, and that is not learnt."""
        from kesler.data.schema.inference import N_ROWS

        for name in dict.fromkeys(names):
            if name not in known and name not in self.left_out:
                self.left_out.add(name)
                other = ", or set columns=None, which learns names that come and go"
                warnings.warn(
                    f"{name!r} is in none of the first {N_ROWS} rows, whose columns are the "
                    "features, and is not learnt: put a row that has it among these"
                    f"{other if self.are_numbers_alone else ''}",
                    MismatchWarning,
                    stacklevel=2,
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
    columns = model.columns
    # A learner without a table has begun with rows of numbers.
    if columns is None or model._learner is not None or isinstance(X, (Rows, Ratings)):
        return False
    if isinstance(columns, str) and columns == AUTO:
        if type(X) is np.ndarray and X.dtype.kind in "biufc":
            return False
        from kesler.data.schema.records import is_table

        if model.vectors is not None and texts_of(X) is not None:
            return True
        return not is_sparse(X) and is_table(X) and not model._takes_ratings()
    given_columns(model)
    return True


def given_columns(model: Model) -> dict[str, Column]:
    """Return the columns that the user named; with vectors of texts, texts alone are such."""
    is_auto = isinstance(model.columns, str) and model.columns == AUTO
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

"""Reader: how an estimator reads its input as rows, by the names of features or by position."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data import inputs
from kesler.data.inputs import texts_of
from kesler.data.ratings import Ratings
from kesler.data.rows import Rows, Vocabulary
from kesler.data.sparse_rows import is_sparse
from kesler.data.texts import TextLengths, counted, with_beginning, with_runs
from kesler.errors import KeslerError, MismatchWarning, warn
from kesler.learner.events import DICTIONARIES, Event
from kesler.online.columns import ColumnReader, learns_again
from kesler.settings.table import version_of_texts

if TYPE_CHECKING:
    from kesler.data.schema.entries import Entries
    from kesler.data.schema.records import Table
    from kesler.learner.ensemble import AnyLearner
    from kesler.online.model import Model


MOST_NUMBERS = 1 << 29  # scores or probabilities of all classes in one array


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
    merged : the columns in which different numbers are equal as float32, as a warning has said.
    """

    def __init__(self) -> None:
        self.names: Vocabulary | None = None
        self.sub_experts: Vocabulary | None = None
        self.width: int | None = None
        self.column_names: npt.NDArray[Any] | None = None
        self.texts: TextLengths | None = None
        self.columns = ColumnReader()
        self.merged = set[Any]()
        self._to_count: list[TextLengths] = []  # with each text that is being learnt
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

    def few_rows_to_score(self, model: Model, X: Any) -> Iterator[Rows]:
        """Yield rows whose scores of all classes are kept; raise if these are too many numbers."""
        n_rows, n_classes = 0, model._fitted().n_known
        for rows in self.rows_to_score(model, X):
            n_rows += len(rows)
            if n_rows * n_classes > MOST_NUMBERS:
                raise KeslerError(
                    f"{n_rows:,} rows and {n_classes:,} classes have {n_rows * n_classes:,} scores "
                    f"or probabilities, more than {MOST_NUMBERS:,}: call predict_top(X, n) for the "
                    "labels of highest score, or ask for fewer rows at a time"
                )
            yield rows

    def row_to_score(self, model: Model, x: Any, learner: AnyLearner) -> Rows | Event:
        """Return one row that is scored, read into the learner's event buffer if it can be."""
        is_read = self.read(model, x, learner, learn=False)
        return learner.event if is_read else self.row(model, x, learn=False)

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
        if self.width is None and isinstance(X, (list, tuple)):
            inputs.require_rows(X)
        self._require_positions()
        first, has_no_names = learn and self.width is None, self.column_names is None
        takes_missing = self.takes_missing(model)
        merged = self._warn_of_merged_places if learn else None
        if inputs.is_plain(X) and has_no_names and (first or X.shape[1] == self.width):
            self.width = X.shape[1]
            return inputs.measured(X, takes_missing=takes_missing, merged=merged)
        data = inputs.array_rows(model, X, reset=first, takes_missing=takes_missing, merged=merged)
        if first and self.column_names is not None:
            self.names = Vocabulary.of(self.column_names)
        return data

    def _warn_of_merged_places(self, places: Sequence[int]) -> None:
        names = self.column_names
        self.warn_of_merged(places if names is None else [names[place] for place in places])

    def warn_of_merged(self, columns: Iterable[Any]) -> None:
        """Warn once of each column in which different numbers are equal as float32."""
        for column in columns:
            if column not in self.merged:
                self.merged.add(column)
                warn(
                    f"column {column!r} holds different numbers that are equal as float32, which "
                    "has 7 digits, and rows are learnt as float32: subtract a number near them, "
                    "such as the least, or give columns= that say that it holds dates, categories "
                    "or identifiers",
                    MismatchWarning,
                )

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
            return TextLengths(version=version_of_texts(model.columns))
        return self.texts

    def text_rows(self, model: Model, texts: Sequence[str], weights: Any, *, learn: bool) -> Rows:
        """Return the rows of texts, whose lengths `count_texts` adds once they are learnt."""
        if self.width is not None:
            rows = self.named_rows(model, [counted([text]) for text in texts], learn=learn)
            return replace(rows, of_words=True)
        names, known = self._vocabulary(model), self.earlier_texts(model)
        event = Event() if model._learner is None else model._learner.event
        pieces, to_count, counts = [], list[TextLengths](), learn and not learns_again(model)
        for i, text in enumerate(texts):
            pieces.append(_entries_of(text, known, event, names, learn=learn))
            if counts and known is not None and (weights is None or weights[i]):
                known = known.and_text(len(text))
                to_count.append(known)
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
            counted, self._to_count = self._to_count[: n_learnt(model) - self._n_counted], []
            self.texts = counted[-1] if counted else self.texts

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

    def read(self, model: Model, x: Any, learner: AnyLearner, *, learn: bool) -> bool:
        """Read one row into the learner's event buffer; return whether it could be read this way.

        If `learn`, new feature names are added, even if the row could not be read, and what is
        known of the columns of a table changes.
        """
        event, kind = learner.event, type(x)
        if learner.takes_ratings:
            return False
        if self.columns.state is not None:
            is_read = kind in DICTIONARIES and learner.memory is None
            return is_read and self._read_columns(model, x, event, learn=learn)
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

    def _read_columns(self, model: Model, x: Any, event: Event, *, learn: bool) -> bool:
        """Read a mapping of names of columns to cells."""
        names = self.names
        if self.columns.inputs_alone is not None:
            return self._read_measured(x, event)
        if names is None:
            return False
        before = self.columns.state
        found = self.columns.features_of_row(model, x, learn=learn)
        if found is not None and event.read_mapping(found, names, joins=learn):
            return True
        self.columns.state = before
        return False

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
    if known is None:
        return event.read_text(text, names, joins=learn)
    if known.is_short(text):
        return event.read_short_text(text, known.runs(text), names, joins=learn)
    return event.read_text(text, names, known.beginning(text), joins=learn)


def _features_of_text(text: str, known: TextLengths | None) -> dict[str, float]:
    """Return the features of a text by name, given the lengths of the texts before it."""
    if known is None:
        return counted([text])
    if known.is_short(text):
        return with_runs(text, known.runs(text))
    return with_beginning(text, known.beginning(text))

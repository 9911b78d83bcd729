"""Explanations of predictions by the names of features and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kesler.data.labels import class_of
from kesler.data.rows import Rows
from kesler.errors import KeslerError, integer_of, is_flag
from kesler.learner.contributions import best_other, terms_of, winner_and_scores
from kesler.learner.explanations import Explanation, Naming
from kesler.online.reasons import Reasons, name_of_cell

if TYPE_CHECKING:
    from kesler.data.rows import Vocabulary
    from kesler.data.schema.records import Table
    from kesler.learner.ensemble import AnyLearner
    from kesler.learner.events import Event
    from kesler.online.model import Model
    from kesler.online.reader import Reader

UNSEEN = "unseen feature"


class Question(NamedTuple):
    """What is asked of a row; fields are as in :meth:`~kesler.OnlineClassifier.explain_one`."""

    label: Any
    rival: Any
    n: int
    features: bool


def explained(
    learner: AnyLearner,
    rows: Rows | Event,
    name_of: Naming,
    asked: Question,
    reasons: Reasons | None = None,
    cells: Cells | None = None,
) -> Explanation:
    """Return the explanation of one row.

    Parameters
    ----------
    learner : fitted.
    rows : one row, as the learner scores it.
    name_of : names features and sub-experts.
    asked : Question
    reasons : what the features of the row are summed into; None if they are not.
    cells : the cells of the row, if members of an ensemble read their inputs.
    """
    n = integer_of("n", asked.n, 1, why=OF_FEATURES)
    if not is_flag(asked.features):
        raise KeslerError(
            f"features={asked.features!r} must be True, to list single features, or False, to list "
            "words, pairs and cells"
        )
    code, other, scores = _classes_of(learner, rows, asked)
    labels, first = learner.classes.labels, learner.classes.n_virtual
    terms = terms_of(learner, rows, code, other, cells)
    pair = float(scores[code]), None if other is None else float(scores[other])
    if learner.comparing is not None:  # a class that is no candidate has no score of its own
        sums = (terms.table.sum(axis=(0, 2)) + terms.start.sum(axis=1)).tolist()
        if learner.decision == "f1":
            from kesler.learner.compared import move_of_labels

            sums = [each + move_of_labels(learner) for each in sums]
        pair = sums[0], None if other is None else sums[1]
    if learner.decision == "f1":
        terms = terms.moved_to(*pair)
    named = labels[code - first], None if other is None else labels[other - first]
    if reasons is None or terms.name_of is not None:  # support vectors are no features
        return terms.explained(*named, pair, n, name_of, by_feature=asked.features)
    names = terms.names(name_of) if reasons.names is None else reasons.names
    by_feature, marks = asked.features and cells is None, reasons.marks(terms, names)
    listed = terms if by_feature or cells is not None else reasons.summed(terms, names)
    why = listed.explained(*named, pair, n, name_of, by_feature=asked.features, marks=marks)
    return why if by_feature else reasons.compared(why)


def _classes_of(
    learner: AnyLearner, rows: Rows | Event, asked: Question
) -> tuple[int, int | None, npt.NDArray[np.float32]]:
    """Return the class that is explained, its rival if it has one, and the scores of all."""
    winner, scores = winner_and_scores(learner, rows)
    label, rival = asked.label, asked.rival
    code = winner if label is None else code_of(learner, "label", label)
    other = best_other(learner, scores, code) if rival is None else code_of(learner, "rival", rival)
    if other == code:
        raise KeslerError(
            f"rival={rival!r} is the class that is explained: name another one, or leave rival out "
            "for the best of the others"
        )
    return code, other, scores


def top_features(
    learner: AnyLearner, name_of: Naming, label: Any, n: int
) -> list[tuple[str | int, float]]:
    """Return the features of largest weight above 0 for a class, with their weights."""
    from kesler.learner.top_features import weights_of

    weights = weights_of(learner, code_of(learner, "label", label))
    order = np.argsort(-weights, kind="stable")[: integer_of("n", n, 1, why=OF_FEATURES)]
    return [(name_of(i, i, True), float(weights[i])) for i in order.tolist() if weights[i] > 0]


OF_FEATURES = ": it is the number of features to list"


def code_of(learner: AnyLearner, name: str, label: Any) -> int:
    """Return the number of a label; raise if no row of it has been learnt."""
    code = learner.classes.code(class_of(label))
    if code is None:
        known = learner.classes.labels
        some = ", ".join(repr(each) for each in known[:5]) + (", ..." if len(known) > 5 else "")
        raise KeslerError(f"{name}={label!r} is not a class that has been learnt: choose of {some}")
    return code


def explained_row(model: Model, learner: AnyLearner, x: Any, asked: Question) -> Explanation:
    """Return the explanation of one row as it is given; parameters are as in `explained`."""
    reader = model._input
    x = reader.named(model, x)
    table = reader.columns.table_of_row(model, x)
    if table is not None:
        return explained_cells(model, learner, table, asked)
    row = model._input.row_to_score(model, x, learner)
    by_name = isinstance(x, (str, Mapping)) and not learner.takes_ratings
    if not by_name or row.dense:
        return explained(learner, row, names_of_model(reader), asked)
    words = reader.words_of(model, [x]) if isinstance(x, str) else x
    reasons = Reasons({None: x}, names=[*words]) if isinstance(x, str) else None
    name_of = names_of_entries(words, row, reader.sub_experts)
    return explained(learner, row, name_of, asked, reasons)


def explained_cells(
    model: Model, learner: AnyLearner, table: Table, asked: Question
) -> Explanation:
    """Return the explanation of one row of a table, by its features or by its cells."""
    reader = model._input
    row, name_of, known = reader.table_rows(model, table), names_of_model(reader), reader.columns
    parsed = known.parsed(model, table)
    state, first = known.known, {name: column[0] for name, column in parsed.items()}
    if row.measured is not None:
        cells, reasons = Cells(model, table, first), Reasons({}, first, moments=state.moments)
        return explained(learner, row, cells.naming, asked, reasons, cells)
    if row.dense:
        return explained(learner, row, name_of, asked)
    entry = known.entries_to_score(parsed, 1)[0]
    name_of = names_of_entries(entry, row, reader.sub_experts)
    reasons = Reasons.of_cells(first, state.schema, state.moments)
    return explained(learner, row, name_of, asked, reasons)


class Cells:
    """The cells of a row of a table, which are missing until they are replaced one after another.

    Parameters
    ----------
    model : the estimator that reads the table.
    table : one row.
    parsed : its cells.

    Attributes
    ----------
    numbers, values, n_features : the places of the cells that are not missing, their numbers, NaN
        if they are of another kind, and how many there are.
    """

    def __init__(self, model: Model, table: Table, parsed: Mapping[str, Any]) -> None:
        schema = model._input.columns.known.schema
        kinds = {column.name: column.kind for column in schema.learnt}
        found = {name: parsed[name] for name in kinds if name in parsed}
        self._known = {name: cell for name, cell in found.items() if cell is not None}
        are_numbers = [kinds[name] == "number" for name in self._known]
        self.numbers = np.arange(len(self._known))
        self.values = np.array(
            [
                float(cell) if is_number else np.nan
                for cell, is_number in zip(self._known.values(), are_numbers, strict=True)
            ]
        )
        self.n_features = len(self._known)
        self._model, self._table, self._kinds = model, table, kinds

    def naming(self, place: int, number: int, is_feature: bool) -> str:
        """Return the name of a cell."""
        name = [*self._known][place]
        is_named = self._kinds[name] in ("category", "date")
        return name_of_cell(name, self._known[name] if is_named else None)

    def rows_of(self, masks: npt.NDArray[np.bool_]) -> Rows:
        """Return a row for each mask (n_rows, n_cells), with the cells where it is true."""
        columns = {
            name: [self._table.columns[name][0] if is_there else None for is_there in mask.tolist()]
            for name, mask in zip(self._known, masks.T, strict=True)
        }
        table = replace(self._table, n_rows=len(masks), columns=columns, places=None)
        return self._model._input.table_rows(self._model, table)


# ---- names ---------------------------------------------------------------------------------------


def names_of_entries(names: Iterable[str], rows: Rows | Event, rated: Vocabulary | None) -> Naming:
    """Return the naming of the features of a row that lists some, given their names in its order.

    Features of value 0 have no terms. Features that the model has not seen also have their names.
    """
    values = rows.values
    known = list(names)
    if not values.all():
        known = [name for name, value in zip(known, values.tolist(), strict=True) if value]
    return _naming(lambda place, number: known[place], rated)


def names_of_model(reader: Reader) -> Naming:
    """Return the naming of all features of a model; positions if it identifies them so."""
    if reader.names is None:
        return _naming(lambda place, number: number, reader.sub_experts)
    names = reader.names.names
    return _naming(
        lambda place, number: names[number] if number < len(names) else UNSEEN, reader.sub_experts
    )


def _naming(name_of: Callable[[int, int], str | int], rated: Vocabulary | None) -> Naming:
    experts = None if rated is None else rated.names

    def named(place: int, number: int, is_feature: bool) -> str | int:
        if is_feature:
            return name_of(place, number)
        if experts is None:
            return f"sub-expert {number}"
        return f"sub-expert {experts[number]}" if number < len(experts) else "unseen sub-expert"

    return named

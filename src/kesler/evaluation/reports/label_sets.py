"""Reports on label sets: what a method gets wrong, label by label."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from kesler.data.labels import Label
from kesler.errors import KeslerError
from kesler.evaluation.reports.coding import Mask
from kesler.evaluation.reports.measures import share
from kesler.evaluation.reports.report import plain
from kesler.evaluation.reports.text import clipped, counted, number, percent, table
from kesler.metrics import Floats, TopLabels

if TYPE_CHECKING:
    from kesler.evaluation.results import MultilabelResult

MOST_LABELS = 40
DEPTHS = (1, 3, 5)
MEASURES_AT = {"precision": "precision", "recall": "recall", "f1": "F1", "ndcg": "NDCG"}
"""The measures of the k labels of highest score, as fields of `FiguresAt`, and their titles."""


@dataclass(frozen=True, slots=True)
class LabelFigures:
    """The figures of one label; measures that are not defined are NaN.

    Attributes
    ----------
    label : label
        The label.
    first : int or None
        The number of the first row to which it was relevant, counted from 1; None without such.
    rows : int
        Number of rows to which it was relevant.
    predictions : int
        Number of rows for which it was predicted.
    precision : float
        Share of these predictions that are right.
    recall : float
        Share of the rows to which it was relevant for which it was predicted, without rows before
        it was known.
    f1 : float
        The harmonic mean of precision and recall.
    """

    label: Label
    first: int | None
    rows: int
    predictions: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class FiguresAt:
    """The figures of the k labels of highest score; see `kesler.metrics`.

    Attributes
    ----------
    k : int
        Number of labels of each row.
    precision, recall, f1, ndcg : float
        Means over the rows with a relevant label; NaN without such.
    """

    k: int
    precision: float
    recall: float
    f1: float
    ndcg: float


@dataclass(frozen=True, slots=True)
class LabelReport:
    """A report on label sets, with `str`, `to_dict`, `to_json` and `to_frame`.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    n_mistakes : int
        Number of rows with an imperfect prediction, among the labels known by then.
    micro_f1, hamming_loss, one_error, ranking_loss : float
        As of the result.
    at : tuple of FiguresAt
        The figures of the 1, 3 and 5 labels of highest score.
    labels : tuple of LabelFigures
        The figures of each label, those relevant to the most rows first.
    """

    n_rows: int
    n_mistakes: int
    micro_f1: float
    hamming_loss: float
    one_error: float
    ranking_loss: float
    at: tuple[FiguresAt, ...]
    labels: tuple[LabelFigures, ...]

    @staticmethod
    def of_result(result: MultilabelResult) -> LabelReport:
        """Return the report of a result; see `MultilabelResult.report`."""
        if not result.n_trials:
            raise KeslerError(
                "there are no trials to report: validate on rows of which at least one has a "
                "weight above 0"
            )
        names = result.labels or tuple(range(result.scores.shape[1]))
        columns = zip(names, result.scores.T, result.relevant.T, strict=True)
        figures = [_figures(*each) for each in columns]
        return LabelReport(
            result.n_trials,
            result.n_mistakes,
            result.micro_f1,
            result.hamming_loss,
            result.one_error,
            result.ranking_loss,
            _figures_at(result),
            tuple(sorted(figures, key=lambda each: -each.rows)),
        )

    def __str__(self) -> str:
        shown = self.labels[:MOST_LABELS]
        rows = [
            (
                clipped(each.label),
                "-" if each.first is None else f"{each.first:,}",
                f"{each.rows:,}",
                f"{each.predictions:,}",
                percent(each.precision),
                percent(each.recall),
                percent(each.f1),
            )
            for each in shown
        ]
        n = len(self.labels)
        which = f", the {MOST_LABELS} of most rows of {n:,}" if n > len(shown) else ""
        heading = ("label", "first row", "rows", "predicted", "precision", "recall", "F1")
        return (
            f"{counted(self.n_rows, 'row')} with {counted(n, 'label')}: "
            f"{counted(self.n_mistakes, 'row')} predicted imperfectly\n"
            f"micro F1 {self.micro_f1:.3f}, Hamming loss {self.hamming_loss:.4f}, one-error "
            f"{self.one_error:.3f}, ranking loss {self.ranking_loss:.4f}\n\n"
            f"Labels of highest score\n{self._at()}\n\n"
            f"Labels{which}\n{table(heading, rows)}"
        )

    def _at(self) -> str:
        rows = [
            (f"first {each.k}", *(number(getattr(each, name)) for name in MEASURES_AT))
            for each in self.at
        ]
        return table(("", *MEASURES_AT.values()), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as what JSON can hold; measures that are not defined are None."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}

    def to_json(self, indent: int | None = 1) -> str:
        """Return `to_dict` as a JSON text; `indent` is that of `json.dumps`."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def to_frame(self) -> Any:
        """Return the labels as a pandas data frame; raise KeslerError if pandas is missing."""
        from kesler.evaluation.tables import data_frame

        names = [field.name for field in fields(LabelFigures)]
        return data_frame({name: [getattr(each, name) for each in self.labels] for name in names})


def _figures_at(result: MultilabelResult) -> tuple[FiguresAt, ...]:
    """Return the figures of the labels of highest score, which are looked for once."""
    top = TopLabels.of(result.scores, result.relevant, max(DEPTHS))
    return tuple(FiguresAt(k, *(getattr(top, name)(k) for name in MEASURES_AT)) for k in DEPTHS)


def _figures(name: Label, scores: Floats, relevant: Mask) -> LabelFigures:
    """Return the figures of the label of a column."""
    known, predicted = ~np.isnan(scores), scores > 0
    n_right = int((relevant & predicted).sum())
    n_relevant, n_predicted = int((relevant & known).sum()), int(predicted.sum())
    return LabelFigures(
        name,
        int(relevant.argmax()) + 1 if relevant.any() else None,
        int(relevant.sum()),
        n_predicted,
        share(n_right, n_predicted),
        share(n_right, n_relevant),
        share(2 * n_right, n_predicted + n_relevant),
    )

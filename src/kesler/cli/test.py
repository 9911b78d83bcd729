"""kesler test: a report on labelled rows, which the model does not learn from."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.cli import files
from kesler.cli.json_output import write_json
from kesler.cli.methods import loaded
from kesler.cli.model_input import blocks_for, opened_for, report_misfits
from kesler.cli.table import counted, counted_rows
from kesler.data.labels import Label
from kesler.data.rows import Rows, Vocabulary
from kesler.errors import KeslerError
from kesler.evaluation.reports.coding import Codes, Doubles, ScoredRows
from kesler.evaluation.reports.measures import WrongRow
from kesler.evaluation.reports.report import Report
from kesler.learner.uncertainty import Judged
from kesler.online.blocks import estimates, judged_rows, readable_rows
from kesler.online.classifier import OnlineClassifier
from kesler.progress import progress
from kesler.readers.stream import Block, Stream

MOST_NAMES = 30  # features of a row that are shown
MOST_CHARACTERS = 200  # of a cell that is shown


def run(options: Namespace) -> None:
    """Score the rows of INPUT, print the report, and write the files."""
    if options.report is not None:
        from kesler.evaluation.reports.page import require_jinja

        require_jinja()
    files.require_distinct(options, "model", "report", "json")
    files.require_writable(options.report)
    files.require_writable(options.json)
    model = loaded(options)
    stream = opened_for(model, options, require_labels=True)
    scoring = Scoring(model, options.n)
    with progress("testing", "rows") as task:
        for block in counted_rows(blocks_for(model, stream, options), stream, task):
            scoring.score(block)
    if not scoring.n_rows:
        raise KeslerError(f"{stream.source} has no row of weight above 0: check the input")
    report_misfits(model)
    report = Report.of(scoring.scored(), options.n, notes=_skipped(stream))
    print(report)
    if options.json is not None:
        write_json(options, report.to_dict())
    if options.report is not None:
        _write_page(options, report, scoring)


def _skipped(stream: Stream) -> tuple[str, ...]:
    """Return what is said of bad rows, which are not numbered."""
    if not stream.n_bad:
        return ()
    return (f"{counted(stream.n_bad, 'bad row')} of {stream.source} skipped and not numbered.",)


def _write_page(options: Namespace, report: Report, scoring: Scoring) -> None:
    shown, model = scoring.shown(report), scoring.model
    found = {each.row: _explained(model, shown[each.row], each) for each in report.surely_wrong}
    report.to_html(
        options.report,
        title=f"{Path(options.model).name} on {Path(options.input).name}",
        texts={row: text_of(event) for row, event in shown.items()},
        explanations={row: each for row, each in found.items() if each is not None},
    )
    print(f"\nreport: {options.report}")


def _explained(model: OnlineClassifier, event: Any, wrong: WrongRow) -> Any:
    """Return why the model prefers its prediction to the label; None if it cannot tell."""
    try:
        return model.explain_one(event, label=wrong.predicted, rival=wrong.target, n=5)
    except KeslerError:  # such as for ratings by sub-experts
        return None


@dataclass
class Scoring:
    """The predictions of a model for rows that it does not learn from.

    Per row, only numbers are stored; the surest mistakes so far are stored with their rows.

    Parameters
    ----------
    model : OnlineClassifier
        The model.
    top : int
        The number of mistakes whose rows are stored.
    """

    model: OnlineClassifier
    top: int
    n_rows: int = 0
    _codes: dict[Label, int] = field(default_factory=dict)
    _pieces: list[tuple[Codes, Judged]] = field(default_factory=list)
    _surest: list[tuple[float, int, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        labels = self.model.classes_by_code_.tolist()
        self._codes = {label: code for code, label in enumerate(labels)}
        self._n_known = len(labels)

    def score(self, block: Block) -> None:
        """Predict the rows of a block that have a weight above 0."""
        rows, labels = block.rows, block.labels
        if block.weights is not None and not block.weights.all():
            kept = np.flatnonzero(block.weights)
            rows, labels = rows.take(kept), [labels[i] for i in kept.tolist()]
        if not labels:
            return
        codes = self._codes
        answers = np.array([codes.setdefault(y, len(codes)) for y in labels], dtype=np.int32)
        found = judged_rows(self.model, readable_rows(self.model, rows), answers)
        is_wrong = (found.predictions != answers) & (answers < self._n_known)
        self._note(rows, is_wrong, found.confidences)
        self._pieces.append((answers, found))
        self.n_rows += len(labels)

    def _note(self, rows: Any, wrong: npt.NDArray[np.bool_], confidences: Doubles) -> None:
        """Store the rows of the surest mistakes; of equal ones, the first."""
        at = np.flatnonzero(wrong)
        at = at[np.argsort(-confidences[at], kind="stable")[: self.top]]
        new = [
            (float(-confidences[i]), self.n_rows + i + 1, rows.take(np.array([i])))
            for i in at.tolist()
        ]
        self._surest = sorted([*self._surest, *new], key=lambda each: each[:2])[: self.top]

    def scored(self) -> ScoredRows:
        """Return the rows so far."""
        answers = np.concatenate([codes for codes, _ in self._pieces])
        found = Judged.concatenate([judged for _, judged in self._pieces])
        return ScoredRows(
            list(self._codes),
            found.predictions,
            answers,
            answers >= self._n_known,
            found.confidences,
            found.of_targets,
            learns=False,
            estimates=estimates(self.model),
            places=found.places,
        )

    def shown(self, report: Report) -> dict[int, Any]:
        """Return the rows that a report lists as surely wrong, by their numbers."""
        listed = {each.row for each in report.surely_wrong}
        names = self.model.vocabulary_
        return {row: event_of(each, names) for _, row, each in self._surest if row in listed}


def event_of(rows: Any, vocabulary: Vocabulary | None) -> Any:
    """Return the only row of some rows as a model takes one: a mapping, or indices and values.

    Features that the model does not know, and ratings, are left out.

    Examples
    --------
    >>> event_of(Rows.from_dense([[0.5, 2.0]]), None)
    ([0, 1], [0.5, 2.0])
    >>> event_of(Rows.from_dense([[0.5, 2.0]]), Vocabulary.of(["width", "height"]))
    {'width': 0.5, 'height': 2.0}
    """
    if not isinstance(rows, Rows):
        return {name: cells[0] for name, cells in rows.columns.items() if cells[0] is not None}
    indices, values = rows.indices.tolist(), rows.values.tolist()
    if vocabulary is None:
        return indices, values
    names = vocabulary.names
    pairs = zip(indices, values, strict=True)
    return {names[index]: value for index, value in pairs if index < len(names)}


def text_of(event: Any) -> str:
    """Return a row as a text: its cells, or its features with the values that are not 1.

    Examples
    --------
    >>> text_of({"cash": 1.0, "now": 2.0}), text_of({"body": "no cash"}), text_of(([3], [0.5]))
    ('cash now=2', 'body: no cash', '3=0.5')
    """
    if isinstance(event, tuple):
        event = dict(zip(*event, strict=True))
    is_table = any(not isinstance(value, float) for value in event.values())
    separator, part = (" · ", _cell) if is_table else (" ", _feature)
    names = list(event)
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return separator.join(part(name, event[name]) for name in names[:MOST_NAMES]) + more


def _cell(name: Any, value: Any) -> str:
    text = str(value)
    return f"{name}: {text[:MOST_CHARACTERS]}{'…' if len(text) > MOST_CHARACTERS else ''}"


def _feature(name: Any, value: float) -> str:
    return str(name) if value == 1 and isinstance(name, str) else f"{name}={value:.4g}"

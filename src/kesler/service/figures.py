"""Figures: what the pages show of the progressive validation of a history."""

from __future__ import annotations

from typing import Any

from kesler.evaluation.reports import charts
from kesler.evaluation.reports.label_sets import MEASURES_AT, LabelReport
from kesler.evaluation.reports.report import Report
from kesler.evaluation.reports.text import number
from kesler.service.served import Served
from kesler.service.validation import Validated
from kesler.service.views import counted, percent, shown_name, shown_time

MOST_CONFUSIONS = 15
MOST_OF_CLASS = 3
MAKING = "The figures are being computed: show this page again in a few seconds."
OF_CLASSES = (
    "The error of a class is the share of its rows for which another class was predicted before "
    "the answer was learnt."
)
OF_LABELS = (
    "The error of a label is the share of its rows for which it was not predicted before the "
    "answer was learnt."
)


def classes_of(served: Served) -> dict[str, Any]:
    """Return what is known of each class, and sentences about all."""
    found, is_current = served.validation.last()
    shown = {"classes": [], "summary": "", "state": _state_of(found, is_current=is_current)}
    if found is None or found.report is None:
        return shown
    wrong = _confused_with(found.report)
    classes = [
        {
            "label": shown_name(each.label),
            "rows": f"{each.rows:,}",
            "error": percent(1 - each.recall),
            "arrival": _arrival(each.first, found.times),
            "confusions": wrong.get(shown_name(each.label), [])[:MOST_OF_CLASS],
        }
        for each in _classes_in(found.report)
        if each.rows
    ]
    what = OF_LABELS if isinstance(found.report, LabelReport) else OF_CLASSES
    n = counted(len(classes), "class").replace("classs", "classes")
    summary = f"{n}, {counted(found.report.n_rows, 'row')}. {what}"
    return shown | {"classes": classes, "summary": summary}


def error_of(served: Served) -> dict[str, Any]:
    """Return the figures and charts of the running error."""
    found, is_current = served.validation.last()
    state = _state_of(found, is_current=is_current)
    shown = {"tiles": [], "charts": [], "confusions": [], "state": state}
    if found is None or found.report is None:
        return shown
    if isinstance(found.report, LabelReport):
        return shown | {"tiles": _tiles_of_labels(found.report)}
    return shown | _error_of(found.report)


def _state_of(found: Validated | None, *, is_current: bool) -> str:
    """Return what is to be said of figures that are not those of the whole history."""
    if is_current:
        return ""
    if found is None or found.report is None:
        return MAKING
    rows = counted(found.report.n_rows, "row")
    return f"These figures are of the first {rows}. Newer ones are being computed."


def _classes_in(report: Report | LabelReport) -> tuple[Any, ...]:
    return report.labels if isinstance(report, LabelReport) else report.classes


def _confused_with(report: Report | LabelReport) -> dict[str, list[tuple[str, int]]]:
    """Return for each class the classes that were predicted in its place, and how often."""
    wrong: dict[str, list[tuple[str, int]]] = {}
    for each in () if isinstance(report, LabelReport) else report.confusions:
        wrong.setdefault(shown_name(each.target), []).append(
            (shown_name(each.predicted), each.count)
        )
    return wrong


def _arrival(first: int | None, times: list[float]) -> str:
    if first is None or not 1 <= first <= len(times):
        return "-"
    return f"{shown_time(times[first - 1])}, row {first:,}"


def _error_of(report: Report) -> dict[str, Any]:
    confusions = [
        {
            "target": shown_name(each.target),
            "predicted": shown_name(each.predicted),
            "count": f"{each.count:,}",
        }
        for each in report.confusions[:MOST_CONFUSIONS]
    ]
    tiles = [
        ("error", percent(report.error)),
        ("mistakes", f"{report.n_mistakes:,}"),
        ("rows", f"{report.n_rows:,}"),
        ("classes", f"{report.n_classes:,}"),
    ]
    drawn = [
        charts.error_over_time(report.windows),
        charts.mistakes_so_far(report.growth),
        charts.classes_so_far(report.growth),
    ]
    return {"tiles": tiles, "charts": drawn, "confusions": confusions}


def _tiles_of_labels(report: LabelReport) -> list[tuple[str, str]]:
    return [
        ("micro F1", f"{report.micro_f1:.3f}"),
        ("Hamming loss", f"{report.hamming_loss:.4f}"),
        *_tiles_at(report),
        ("imperfect predictions", f"{report.n_mistakes:,}"),
        ("rows", f"{report.n_rows:,}"),
        ("labels", f"{len(report.labels):,}"),
    ]


def _tiles_at(report: LabelReport) -> list[tuple[str, str]]:
    """Return the measures of the labels of highest score, one for each number of labels."""
    depths = ", ".join(str(each.k) for each in report.at)
    return [
        (f"{title} at {depths}", ", ".join(number(getattr(each, name)) for each in report.at))
        for name, title in MEASURES_AT.items()
    ]

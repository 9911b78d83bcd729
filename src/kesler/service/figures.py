"""Figures: what the pages show of the progressive validation of a history."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from kesler.evaluation.reports import charts
from kesler.evaluation.reports.label_sets import MEASURES_AT, LabelReport
from kesler.evaluation.reports.report import Report
from kesler.evaluation.reports.text import number
from kesler.service.names import shown_name
from kesler.service.served import Served
from kesler.service.validation import Validated
from kesler.service.views import count_line, counted, percent, shown_time

CLASSES_OF_PAGE = 25
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


def classes_of(served: Served, q: str, start: int) -> dict[str, Any]:
    """Return what is known of the classes of a page, and sentences about all.

    Parameters
    ----------
    served : Served
    q : str
        A text that the names of the classes contain.
    start : int
        The first class of the page, of those of most rows first.
    """
    found, is_current = served.validation.last()
    state = _state_of(found, is_current=is_current)
    shown = {"shown": [], "summary": "", "state": state, "q": q, "older": "", "newer": ""}
    if found is None or found.report is None:
        return shown
    every = [each for each in _classes_in(found.report) if each.rows]
    wanted = q.casefold()
    some = [each for each in every if not q or wanted in shown_name(each.label).casefold()]
    start = min(start, max(0, len(some) - 1)) // CLASSES_OF_PAGE * CLASSES_OF_PAGE
    listed = some[start : start + CLASSES_OF_PAGE]
    wrong = _confused_with(found.report)
    what = OF_LABELS if isinstance(found.report, LabelReport) else OF_CLASSES
    n = counted(len(every), "class").replace("classs", "classes")
    return shown | {
        "shown": [_class_of(each, wrong, found.times) for each in listed],
        "summary": f"{n}, {counted(found.report.n_rows, 'row')}. {what}",
        "count": count_line("Classes", len(some), start, len(listed), q),
        "newer": _link(served, q, start - CLASSES_OF_PAGE) if start else "",
        "older": _link(served, q, start + len(listed)) if start + len(listed) < len(some) else "",
    }


def _link(served: Served, q: str, start: int) -> str:
    return f"/models/{served.name}/classes?{urlencode({'q': q, 'start': start})}"


def _class_of(
    each: Any, wrong: dict[str, list[tuple[str, int]]], times: list[float]
) -> dict[str, Any]:
    """Return what is shown of a class, given its figures."""
    name = shown_name(each.label)
    return {
        "label": name,
        "rows": f"{each.rows:,}",
        "error": percent(1 - each.recall),
        "arrival": _arrival(each.first, times),
        "confusions": wrong.get(name, [])[:MOST_OF_CLASS],
    }


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

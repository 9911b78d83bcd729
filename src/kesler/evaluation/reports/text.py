"""Reports as text, of at most 100 columns."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from kesler.data.labels import Label

if TYPE_CHECKING:
    from kesler.evaluation.reports.measures import AgeGroup, Window
    from kesler.evaluation.reports.report import Report

WIDTH = 99
LABEL_WIDTH = 24
MOST_CLASSES = 20
MOST_WINDOWS = 10
Row = Sequence[str]


def text_of(report: Report) -> str:
    """Return a report as text."""
    parts = [summary(report), _levels(report), _classes(report), _confusions(report)]
    parts += [_windows(report), _ages(report), _thresholds(report), _wrong_rows(report)]
    return "\n\n".join(part for part in parts if part)


def summary(report: Report) -> str:
    """Return the first lines: the counts, the error and what was left out."""
    known = "" if report.learns else " on known classes"
    figures = top_accuracies(report) | _figures(report)
    lines = [
        f"{counted(report.n_rows, 'row')} of {counted(report.n_classes, 'class', 'classes')}: "
        f"{counted(report.n_mistakes, 'mistake')}, an error of {percent(report.error)}{known}",
        first_seen_line(report),
        ", ".join(f"{name} {value}" for name, value in figures.items()),
        *report.notes,
    ]
    return "\n".join(fill(line, WIDTH, subsequent_indent="  ") for line in lines if line)


def first_seen_line(report: Report) -> str:
    """Return what is said of rows of classes that had not been seen."""
    n = report.n_first_seen
    if not n:
        return ""
    if report.learns:
        return f"{counted(n, 'row')} {_is(n)} the first of a class, which is no mistake"
    return f"{counted(n, 'row')} of classes unknown to the model {_is(n)} counted apart"


def _is(n: int) -> str:
    return "is" if n == 1 else "are"


def top_accuracies(report: Report) -> dict[str, str]:
    """Return the accuracy and NDCG of the classes of highest score, with the names of both.

    Those of one class say what the error says.
    """
    several = [each for each in report.top_accuracy if each.k > 1]
    shares = {f"top-{each.k} accuracy": percent(each.accuracy) for each in several}
    return shares | {f"NDCG@{each.k}": number(each.ndcg) for each in several}


def _figures(report: Report) -> dict[str, str]:
    """Return the measures that are defined."""
    found = {
        "log-loss": report.log_loss,
        "calibration error": report.calibration_error,
        "mean absolute error": report.mean_absolute_error,
        "tree loss": report.tree_loss,
    }
    return {
        name: f"{value:.3f}"
        for name, value in found.items()
        if value is not None and not math.isnan(value)
    }


# ---- tables --------------------------------------------------------------------------------------


def _classes(report: Report) -> str:
    shown = report.classes[:MOST_CLASSES]
    rows = [
        (
            clipped(each.label),
            "-" if each.first is None else f"{each.first:,}",
            f"{each.rows:,}",
            f"{each.mistakes:,}",
            percent(each.precision),
            percent(each.recall),
            percent(each.f1),
            number(each.calibration_error),
        )
        for each in shown
    ]
    n = len(report.classes)
    which = f", the {MOST_CLASSES} with the most rows of {n:,}" if n > len(shown) else ""
    heading = ("class", "first row", "rows", "mistakes", "precision", "recall", "F1", "calibration")
    return f"Classes{which}\n{table(heading, rows)}"


def _levels(report: Report) -> str:
    errors = report.level_errors
    rows = [(f"{level}", percent(error)) for level, error in enumerate(errors, start=1)]
    heading = "Error by level of the tree, 1 below the root"
    return f"{heading}\n{table(('level', 'error'), rows)}" if rows else ""


def _confusions(report: Report) -> str:
    rows = [
        (
            clipped(each.target),
            "(none)" if each.predicted is None else clipped(each.predicted),
            f"{each.count:,}",
            percent(each.share),
            _last_of(each.rows),
        )
        for each in report.confusions
    ]
    heading = ("target", "predicted", "rows", "of target", "last of them")
    return f"Most confused\n{table(heading, rows, n_texts=2)}" if rows else ""


def _last_of(rows: Sequence[int], most: int = 32) -> str:
    """Return as many of the last numbers as fit into a column."""
    while len(text := " ".join(map(str, rows))) > most:
        rows = rows[1:]
    return text


def _windows(report: Report) -> str:
    joined = merged(report.windows, MOST_WINDOWS)
    n_columns = 4 if report.n_first_seen else 3
    rows = [
        (f"{start:,} to {stop:,}", f"{mistakes:,}", percent(error), f"{first:,}")[:n_columns]
        for start, stop, mistakes, first, error in joined
    ]
    heading = ("rows", "mistakes", "error", first_seen_title(report))[:n_columns]
    return f"Error over time\n{table(heading, rows)}" if len(rows) > 1 else ""


def first_seen_title(report: Report) -> str:
    """Return the heading of a column of rows of classes that had not been seen."""
    return "first of a class" if report.learns else "unknown class"


def merged(windows: Sequence[Window], most: int) -> list[tuple[int, int, int, int, float]]:
    """Return runs of neighbouring windows, at most this many: bounds, counts and error."""
    step = max(1, math.ceil(len(windows) / most))
    runs = [windows[i : i + step] for i in range(0, len(windows), step)]
    return [_joined(run) for run in runs]


def _joined(run: Sequence[Window]) -> tuple[int, int, int, int, float]:
    rows, mistakes, first = (
        sum(getattr(each, name) for each in run) for name in ("rows", "mistakes", "first_seen")
    )
    error = mistakes / rows if rows else float("nan")
    return run[0].start, run[-1].stop, mistakes, first, error


def _ages(report: Report) -> str:
    rows = [
        (age_name(each), f"{each.rows:,}", f"{each.mistakes:,}", percent(each.error))
        for each in report.ages
        if each.rows
    ]
    heading = ("row of its class", "rows", "mistakes", "error")
    return f"Error by the age of the class\n{table(heading, rows)}" if rows else ""


def age_name(group: AgeGroup) -> str:
    """Return the ages of a group.

    Examples
    --------
    >>> from kesler.evaluation.reports.measures import AgeGroup
    >>> age_name(AgeGroup(1, 5, 10, 1, 0.1)), age_name(AgeGroup(501, None, 10, 1, 0.1))
    ('1 to 5', '501 or more')
    """
    return f"{group.least} or more" if group.most is None else f"{group.least} to {group.most}"


def _thresholds(report: Report) -> str:
    rows = [
        (percent(error, 0), *(["-"] * 4))
        if each is None
        else (
            percent(error, 0),
            number(each.confidence),
            percent(each.coverage),
            percent(each.error),
            percent(each.error_limit),
        )
        for error, each in report.thresholds().items()
    ]
    heading = ("error at most", "confidence from", "answered", "error", "limit at 95 %")
    title = "Confidence to ask for"
    return f"{title}\n{table(heading, rows)}" if rows else ""


def _wrong_rows(report: Report) -> str:
    rows = [
        (
            clipped(each.target),
            clipped(each.predicted),
            f"{each.row:,}",
            number(each.confidence),
            number(each.of_target),
        )
        for each in report.surely_wrong
    ]
    heading = ("labelled", "predicted", "row", "confidence", "of the label")
    title = "Rows most surely wrong, or labelled wrongly"
    return f"{title}\n{table(heading, rows, n_texts=2)}" if rows else ""


def table(heading: Row, rows: Iterable[Row], n_texts: int = 1) -> str:
    """Return a table, indented by two; the first columns are texts, the others numbers.

    Examples
    --------
    >>> print(table(["class", "rows"], [["spam", "1,000"], ["work", "20"]]))
      class   rows
      spam   1,000
      work      20
    """
    lines = [heading, *rows]
    widths = [max(width(line[i]) for line in lines) for i in range(len(heading))]
    return "\n".join(
        "  " + "  ".join(_padded(cell, widths[i], i < n_texts) for i, cell in enumerate(line))
        for line in lines
    )


def _padded(cell: str, to: int, is_text: bool) -> str:
    blank = " " * (to - width(cell))
    return cell + blank if is_text else blank + cell


# ---- cells ---------------------------------------------------------------------------------------


def clipped(label: Label, most: int = LABEL_WIDTH) -> str:
    r"""Return a label that fits into a column; characters that are not printed are escaped.

    Examples
    --------
    >>> clipped("a" * 30), clipped("two\nlines")
    ('aaaaaaaaaaaaaaaaaaaaaaa…', 'two\\nlines')
    """
    text = printable(str(label)[: 4 * most])
    if width(text) <= most:
        return text or "''"
    while width(text) >= most:
        text = text[:-1]
    return f"{text}…"


def printable(text: str) -> str:
    r"""Return a text in which control characters, which could change a terminal, are escaped.

    Examples
    --------
    >>> printable("\x1b[31mred")
    '\\x1b[31mred'
    """
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def width(text: str) -> int:
    """Return the number of columns that a text takes in a terminal.

    Examples
    --------
    >>> width("abc"), width("漢字")
    (3, 4)
    """
    return sum(_columns(each) for each in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def percent(value: float, digits: int = 2) -> str:
    """Return a share in %, or a dash if it is not defined."""
    return "-" if math.isnan(value) else f"{100 * value:.{digits}f} %"


def number(value: float) -> str:
    """Return a number with three digits, or a dash if it is not defined."""
    return "-" if math.isnan(value) else f"{value:.3f}"


def counted(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"

"""Reports as one page of HTML: what its template is given, and the template itself."""

from __future__ import annotations

import base64
import hashlib
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kesler.data.labels import Label
from kesler.errors import KeslerError
from kesler.evaluation.reports import charts
from kesler.evaluation.reports.charts import Chart
from kesler.evaluation.reports.measures import ClassFigures, Matrix, WrongRow
from kesler.evaluation.reports.text import first_seen_line, number, percent, top_accuracies

if TYPE_CHECKING:
    from kesler.evaluation.reports.report import Report

FOLDER = Path(__file__).parent / "template"
MOST_CLASSES = 500
MOST_CHARACTERS = 300
SHADES = 5


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: its text, and the number by which it is sorted, if it is one."""

    text: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Shaded:
    """A cell of the confusion matrix: its count, its shade from 0 to 5, and what it means."""

    count: int
    shade: int
    is_right: bool


def require_jinja() -> Any:
    """Return the module jinja2; raise KeslerError if it is not installed."""
    try:
        import jinja2
    except ImportError as error:
        raise KeslerError(
            "pages of reports need Jinja2: install it with pip install 'kesler[report]'"
        ) from error
    return jinja2


def page_of(
    report: Report, title: str, texts: Mapping[int, str], explanations: Mapping[int, Any]
) -> str:
    """Return the page of a report; the arguments are those of `Report.to_html`."""
    jinja2 = require_jinja()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    style, script = (_inline(name) for name in ("style.css", "sort.js"))
    page: str = environment.get_template("page.html.j2").render(
        title=_clipped(title),
        policy=_policy(style, script),
        style=style,
        script=script,
        report=report,
        tiles=_tiles(report),
        first_seen=first_seen_line(report),
        over_time=_over_time(report),
        by_confidence=_by_confidence(report),
        classes=[_of_class(each) for each in report.classes[:MOST_CLASSES]],
        n_classes=len(report.classes),
        confusions=[_pair(each.target, each.predicted, each) for each in report.confusions],
        matrix=_shaded(report.matrix),
        matrix_labels=[_clipped(label) for label in report.matrix.labels],
        thresholds=_thresholds(report),
        wrong_rows=[_wrong_row(each, texts, explanations) for each in report.surely_wrong],
    )
    return page


def write(path: str | os.PathLike[str], page: str) -> None:
    """Write a page; raise KeslerError if that is not possible."""
    try:
        Path(path).write_text(page, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise KeslerError(
            f"{os.fspath(path)} cannot be written ({error.strerror}): name a file in a writable "
            "folder"
        ) from error


# ---- safety --------------------------------------------------------------------------------------


def _breakable(name: str) -> str:
    """Return a name whose words, joined by `_`, may stand on lines of their own."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(map(escape, name.split("_")))


def _inline(name: str) -> str:
    """Return a file of the template, which is not escaped."""
    from markupsafe import Markup

    return Markup((FOLDER / name).read_text(encoding="utf-8"))


def _policy(style: str, script: str) -> str:
    """Return the policy of the page: its own style and script alone, and nothing loaded."""
    style_hash, script_hash = (_hash(each) for each in (style, script))
    return (
        f"default-src 'none'; style-src '{style_hash}'; script-src '{script_hash}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _clipped(label: Label | None) -> str:
    """Return a text of bounded length; characters that HTML forbids become signs."""
    text = "(none)" if label is None else str(label)
    text = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
    return "".join(map(_visible, text)) or "(empty)"


def _visible(character: str) -> str:
    r"""Return a control or half character as its code, and any other as it is.

    Examples
    --------
    >>> _visible("\x00"), _visible("é"), _visible("\ud800")
    ('\\x00', 'é', '\\ud800')
    """
    is_odd = ord(character) < 32 or 127 <= ord(character) < 160 or 0xD800 <= ord(character) < 0xE000
    return character.encode("unicode_escape").decode("ascii") if is_odd else character


# ---- parts ---------------------------------------------------------------------------------------


def _tiles(report: Report) -> list[tuple[str, str]]:
    """Return the most important figures with their names."""
    absolute = report.mean_absolute_error
    found = [
        ("error", percent(report.error)),
        ("mistakes", f"{report.n_mistakes:,}"),
        ("rows", f"{report.n_rows:,}"),
        ("classes", f"{report.n_classes:,}"),
        ("mean absolute error", "-" if absolute is None else number(absolute)),
        ("tree loss", "-" if report.tree_loss is None else number(report.tree_loss)),
        *top_accuracies(report).items(),
        ("log-loss", number(report.log_loss)),
        ("calibration error", number(report.calibration_error)),
    ]
    return [(name, value) for name, value in found if value != "-"]


def _over_time(report: Report) -> list[Chart]:
    """Return the charts of errors over time and by age."""
    found = [charts.error_over_time(report.windows), charts.mistakes_so_far(report.growth)]
    if report.learns:
        found.append(charts.classes_so_far(report.growth))
    if any(each.rows for each in report.ages):
        found.append(charts.error_by_age(report.ages))
    if report.level_errors:
        found.append(charts.error_by_level(report.level_errors))
    return found


def _by_confidence(report: Report) -> list[Chart]:
    """Return the charts of confidences; none without them."""
    if report.risk_coverage is None:
        return []
    return [
        charts.risk_by_coverage(report.risk_coverage),
        charts.accuracy_by_confidence(report.reliability, report.calibration_error),
    ]


def _count(value: int | None) -> Cell:
    return Cell("-") if value is None else Cell(f"{value:,}", value)


def _share(value: float) -> Cell:
    return Cell("-") if math.isnan(value) else Cell(percent(value), value)


def _number(value: float) -> Cell:
    return Cell("-") if math.isnan(value) else Cell(number(value), value)


def _of_class(each: ClassFigures) -> tuple[str, list[Cell]]:
    """Return the row of a class in the table of classes."""
    return _clipped(each.label), [
        _count(each.first),
        _count(each.rows),
        _count(each.mistakes),
        _share(each.precision),
        _share(each.recall),
        _share(each.f1),
        _number(each.calibration_error),
    ]


def _pair(target: Label, predicted: Label | None, of: Any) -> dict[str, Any]:
    """Return two classes as texts beside what is known of them."""
    return {"target": _clipped(target), "predicted": _clipped(predicted), "of": of}


def _shaded(matrix: Matrix) -> list[list[Shaded]]:
    """Return the cells of the confusion matrix; shades are shares of the row."""
    return [
        [
            Shaded(count, math.ceil(SHADES * count / max(1, sum(row))), i == j)
            for j, count in enumerate(row)
        ]
        for i, row in enumerate(matrix.counts)
    ]


def _thresholds(report: Report) -> list[tuple[str, list[str]]]:
    """Return the rows of the table of thresholds."""
    rows = []
    for error, each in report.thresholds().items():
        cells = ["-"] * 5
        if each is not None:
            low, high = (number(end) if math.isfinite(end) else "∞" for end in each.interval)
            cells = [
                number(each.confidence),
                f"{low} to {high}",
                percent(each.coverage),
                percent(each.error),
                percent(each.error_limit),
            ]
        rows.append((percent(error, 0), cells))
    return rows


def _wrong_row(
    each: WrongRow, texts: Mapping[int, str], explanations: Mapping[int, Any]
) -> dict[str, Any]:
    """Return a row of the table of rows most surely wrong."""
    found = explanations.get(each.row)
    text = texts.get(each.row)
    return {
        **_pair(each.target, each.predicted, each),
        "confidence": number(each.confidence),
        "of_target": number(each.of_target),
        "text": "" if text is None else _clipped(text),
        "reasons": [] if found is None else list(_reasons(found)),
    }


def _reasons(explanation: Any) -> Iterable[tuple[str, str]]:
    """Yield the features of an explanation with their shares of the margin, and the rest."""
    for each in explanation.contributions:
        yield _clipped(each.feature), f"{each.margin:+.3g}"
    yield "all other features", f"{explanation.remainder.margin:+.3g}"

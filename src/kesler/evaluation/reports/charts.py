"""Charts of the page: positions in drawings of 360 by 220 units, and the numbers drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kesler.evaluation.confidence import RiskCoverage
from kesler.evaluation.reports.measures import AgeGroup, Growth, ReliabilityBin, Window
from kesler.evaluation.reports.text import age_name, percent

LEFT, RIGHT, TOP, BOTTOM = 46, 340, 10, 182
MOST_LISTED = 20
MOST_DRAWN = 200
Row = Sequence[str]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of an axis: its position and its text."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart, with its text for the pointer."""

    x: float
    y: float
    width: float
    height: float
    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A dot of a chart, with its text for the pointer."""

    x: float
    y: float
    radius: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its words, its marks and the table of its numbers.

    Attributes
    ----------
    key : str
        The name of the chart on the page.
    title, description : str
        What it shows, and what can be seen in it.
    x, y : str
        The titles of the axes.
    x_ticks, y_ticks : tuple of Tick
        Their marks.
    line : str
        The points of a line, as SVG writes them; empty for none.
    diagonal : str
        The points of a line to compare with; empty for none.
    bars, dots : tuple of Bar, tuple of Dot
        The other marks.
    heading : sequence of str
        The heading of the table of the numbers.
    rows : tuple of sequences of str
        The rows of the table.
    """

    key: str
    title: str
    description: str
    x: str
    y: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    heading: Row
    rows: tuple[Row, ...]
    line: str = ""
    diagonal: str = ""
    bars: tuple[Bar, ...] = ()
    dots: tuple[Dot, ...] = ()


@dataclass(frozen=True, slots=True)
class Scale:
    """The positions of numbers along an axis.

    Parameters
    ----------
    low, high : float
        The numbers at its ends.
    start, stop : float
        The positions of its ends.
    """

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """Return the position of a number."""
        part = (value - self.low) / ((self.high - self.low) or 1)
        return round(self.start + part * (self.stop - self.start), 1)

    def ticks(self, text: Callable[[float], str], step: float | None = None) -> tuple[Tick, ...]:
        """Return marks at round numbers."""
        each = step or step_of(self.high - self.low)
        first = math.ceil(self.low / each - 1e-9)
        numbers = [i * each for i in range(first, math.floor(self.high / each + 1e-9) + 1)]
        return tuple(Tick(self(value), text(value)) for value in numbers)


def step_of(extent: float, most: int = 5) -> float:
    """Return the shortest of 1, 2, 5, 10 ... times a power of ten with at most this many steps.

    Examples
    --------
    >>> step_of(100), step_of(0.7), step_of(3000)
    (20.0, 0.2, 1000.0)
    """
    power = 10 ** math.floor(math.log10(extent / most))
    step = next(power * m for m in (1, 2, 5, 10, 20) if power * m * most >= extent * (1 - 1e-9))
    return float(round(step, 12))


def _across(low: float, high: float) -> Scale:
    return Scale(low, high, LEFT, RIGHT)


def _upwards(high: float) -> Scale:
    """Return a vertical axis from 0 to the next mark above a number."""
    top = high if math.isfinite(high) and high > 0 else 1.0
    step = step_of(top)
    return Scale(0.0, math.ceil(top / step - 1e-9) * step, BOTTOM, TOP)


def _points(points: Sequence[Point], x: Scale, y: Scale) -> str:
    return " ".join(f"{x(a):g},{y(b):g}" for a, b in points)


def short(value: float) -> str:
    """Return a count as a mark of an axis.

    Examples
    --------
    >>> short(0), short(2500), short(20_000), short(1_500_000)
    ('0', '2,500', '20k', '1.5M')
    """
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= 10 * unit or (unit == 1e6 and value >= unit):
            return f"{value / unit:g}{name}"
    return f"{value:,g}"


def _in_percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def _some(items: Sequence[Row], most: int = MOST_LISTED) -> tuple[Row, ...]:
    """Return at most this many evenly spaced items, with both ends."""
    at = np.unique(np.linspace(0, len(items) - 1, min(len(items), most)).astype(int))
    return tuple(items[i] for i in at.tolist())


# ---- time ----------------------------------------------------------------------------------------


def error_over_time(windows: Sequence[Window]) -> Chart:
    """Return the chart of the error in consecutive rows."""
    errors = [each.error for each in windows if not math.isnan(each.error)]
    x, y = _across(0, windows[-1].stop), _upwards(max(errors, default=0.0))
    bars = tuple(
        Bar(
            x(each.start - 1) + 0.5,
            y(each.error),
            max(0.5, round(x(each.stop) - x(each.start - 1) - 1, 1)),
            round(BOTTOM - y(each.error), 1),
            f"rows {each.start:,} to {each.stop:,}: {percent(each.error)}",
        )
        for each in windows
        if not math.isnan(each.error)
    )
    length = windows[0].stop
    return Chart(
        "error-over-time",
        "Error over time",
        f"The error in each {length:,} rows: {percent(windows[0].error)} in the first, "
        f"{percent(windows[-1].error)} in the last.",
        "row",
        "error",
        x.ticks(short),
        y.ticks(_in_percent),
        ("rows", "mistakes", "error"),
        tuple(
            (f"{each.start:,} to {each.stop:,}", f"{each.mistakes:,}", percent(each.error))
            for each in windows
        ),
        bars=bars,
    )


def _count_so_far(key: str, title: str, noun: str, rows: Sequence[int], n: Sequence[int]) -> Chart:
    """Return the chart of a count that grows with the rows."""
    x, y = _across(0, rows[-1]), _upwards(max(5, n[-1]))
    listed = [(f"{a:,}", f"{b:,}") for a, b in zip(rows, n, strict=True)]
    return Chart(
        key,
        title,
        f"{n[-1]:,} {noun} after {rows[-1]:,} rows, half of them after {_half(rows, n):,}.",
        "row",
        noun,
        x.ticks(short),
        y.ticks(short),
        ("row", noun),
        _some(listed),
        line=_points([(0, 0), *zip(rows, n, strict=True)], x, y),
    )


def _half(rows: Sequence[int], n: Sequence[int]) -> int:
    return next(row for row, count in zip(rows, n, strict=True) if 2 * count >= n[-1])


def mistakes_so_far(growth: Growth) -> Chart:
    """Return the chart of cumulative mistakes."""
    return _count_so_far("mistakes", "Mistakes so far", "mistakes", growth.rows, growth.mistakes)


def classes_so_far(growth: Growth) -> Chart:
    """Return the chart of the arrivals of classes."""
    return _count_so_far("arrivals", "Classes so far", "classes", growth.rows, growth.classes)


def _bars(errors: Sequence[float], captions: Sequence[str]) -> tuple[Scale, Scale, tuple[Bar, ...]]:
    """Return the scales and the bars of a chart with a bar for each error."""
    x, y = _across(0, len(errors)), _upwards(max(errors))
    width = round(x(0.85) - x(0.15), 1)
    bars = tuple(
        Bar(x(i + 0.15), y(error), width, round(BOTTOM - y(error), 1), caption)
        for i, (error, caption) in enumerate(zip(errors, captions, strict=True))
    )
    return x, y, bars


def error_by_level(errors: Sequence[float]) -> Chart:
    """Return the chart of the error by the level of a tree of classes."""
    levels = [f"{level}" for level in range(1, len(errors) + 1)]
    captions = [f"level {n}: {percent(e)}" for n, e in zip(levels, errors, strict=True)]
    x, y, bars = _bars(errors, captions)
    return Chart(
        "error-by-level",
        "Error by level of the tree",
        f"At level 1, below the root, {percent(errors[0])} of the rows are predicted in another "
        f"branch; at level {levels[-1]}, {percent(errors[-1])}.",
        "level",
        "error",
        tuple(Tick(x(i + 0.5), name) for i, name in enumerate(levels)),
        y.ticks(_in_percent),
        ("level", "error"),
        tuple(zip(levels, map(percent, errors), strict=True)),
        bars=bars,
    )


def error_by_age(ages: Sequence[AgeGroup]) -> Chart:
    """Return the chart of the error by the age of classes."""
    groups = [each for each in ages if each.rows]
    captions = [f"{age_name(g)}: {percent(g.error)} of {g.rows:,} rows" for g in groups]
    x, y, bars = _bars([each.error for each in groups], captions)
    names = [
        f"{each.least}+" if each.most is None else f"{each.least}–{each.most}" for each in groups
    ]
    first, last = groups[0], groups[-1]
    return Chart(
        "error-by-age",
        "Error by the age of the class",
        f"The error at rows {age_name(first)} of a class is {percent(first.error)} of "
        f"{first.rows:,}, at rows {age_name(last)} {percent(last.error)} of {last.rows:,}.",
        "row of its class",
        "error",
        tuple(Tick(x(i + 0.5), name) for i, name in enumerate(names)),
        y.ticks(_in_percent),
        ("row of its class", "rows", "mistakes", "error"),
        tuple(
            (age_name(each), f"{each.rows:,}", f"{each.mistakes:,}", percent(each.error))
            for each in groups
        ),
        bars=bars,
    )


# ---- confidence ----------------------------------------------------------------------------------


def risk_by_coverage(curve: RiskCoverage) -> Chart:
    """Return the chart of the error by the share of rows answered."""
    n_points = len(curve.thresholds)
    at = np.unique(np.linspace(0, n_points - 1, min(n_points, MOST_DRAWN)).astype(int))
    coverage, risk = curve.coverage[at].tolist(), curve.risk[at].tolist()
    x, y = _across(0, 1), _upwards(max(risk))
    listed = [
        (percent(a), percent(b), f"{c:.3f}")
        for a, b, c in zip(coverage, risk, curve.thresholds[at].tolist(), strict=True)
    ]
    half = percent(curve.risk[np.searchsorted(curve.coverage, 0.5)])
    return Chart(
        "risk-coverage",
        "Error by share answered",
        f"Answering only the surer half of the rows leaves an error of {half}, answering "
        f"all one of {percent(risk[-1])}. The area under the curve is {curve.area:.4f}.",
        "share of rows answered, the surest first",
        "error of these",
        x.ticks(_in_percent, 0.25),
        y.ticks(_in_percent),
        ("answered", "error", "confidence from"),
        _some(listed),
        line=_points(list(zip(coverage, risk, strict=True)), x, y),
    )


def accuracy_by_confidence(bins: Sequence[ReliabilityBin], error: float) -> Chart:
    """Return the chart of reliability."""
    x, y = _across(0, 1), Scale(0, 1, BOTTOM, TOP)
    used = [each for each in bins if each.rows]
    most = max(each.rows for each in used)
    dots = tuple(
        Dot(
            x(each.confidence),
            y(each.accuracy),
            round(2.5 + 5.5 * math.sqrt(each.rows / most), 1),
            f"{percent(each.accuracy)} of {each.rows:,} rows of confidence {each.confidence:.3f}",
        )
        for each in used
    )
    return Chart(
        "reliability",
        "Accuracy by confidence",
        "On the dashed line, predictions are as often right as their confidence says; below it, "
        f"they are too sure. Larger dots are more rows. The calibration error is {error:.3f}.",
        "confidence",
        "right",
        x.ticks(lambda value: f"{value:g}", 0.2),
        y.ticks(_in_percent, 0.2),
        ("confidence", "rows", "mean confidence", "right"),
        tuple(
            (
                f"{each.low:.1f} to {each.high:.1f}",
                f"{each.rows:,}",
                f"{each.confidence:.3f}",
                percent(each.accuracy),
            )
            for each in used
        ),
        line=_points([(each.confidence, each.accuracy) for each in used], x, y),
        diagonal=_points([(0, 0), (1, 1)], x, y),
        dots=dots,
    )

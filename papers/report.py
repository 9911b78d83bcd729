"""How the scripts show what they found: a page of tables and checks, and pictures of curves."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator
from sklearn.isotonic import isotonic_regression

import kesler

RESULTS = Path(__file__).parent / "results"

COLOURS = {
    "multi": "#0072B2",
    "single": "#D55E00",
    "hybrid": "#009E73",
    "SimProj": "#A63A88",
    "ConProj": "#D08C00",
    "SimPerc": "#707070",
    "Max-SP": "#D55E00",
    "Max-MP": "#0072B2",
    "Mira": "#3FA7E0",
    "hybrid PA": "#009E73",
}
"""One colour a method, after Okabe and Ito. Max-MP, Max-SP and the hybrid of Amit's table run on
the hypotheses of Fink's three methods, and have their colours."""

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#E6E6E6",
    "axes.axisbelow": True,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
}
LAYOUT = ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.1, hspace=0.06)


# ---- the page -------------------------------------------------------------------------------


@dataclass
class Report:
    """A page of results: what is added is printed at once, and kept until it is written.

    Parameters
    ----------
    name : str
        Of its file, without the suffix.
    title : str
        Its first line.
    folder : Path
        Where it is written.
    """

    name: str
    title: str
    folder: Path = RESULTS
    blocks: list[str] = field(default_factory=list)
    checks: list[tuple[str, bool]] = field(default_factory=list)
    start: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """Time since the report was begun."""
        return time.perf_counter() - self.start

    def add(self, *blocks: str) -> None:
        """Add blocks of Markdown."""
        for block in blocks:
            print(f"\n{block}", flush=True)
        self.blocks.extend(blocks)

    def check(self, claim: str, holds: bool) -> None:
        """Add a claim that the run must show."""
        self.checks.append((claim, bool(holds)))

    def picture(self, suffix: str, caption: str) -> Path:
        """Add a picture, and return the path where it is to be drawn."""
        path = self.folder / f"{self.name}-{suffix}.png"
        self.add(f"![{caption}]({path.name})")
        return path

    def write(self) -> int:
        """Write the page, and return the exit code: 1 if a check failed."""
        verdicts = [f"- {'yes' if holds else 'NO'}: {claim}" for claim, holds in self.checks]
        self.add("## Checks", "\n".join(verdicts), f"The run took {self.seconds:.0f} s.")
        page = [f"# {self.title}", circumstances(), *self.blocks]
        self.folder.mkdir(exist_ok=True)
        (self.folder / f"{self.name}.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")
        return 0 if all(holds for _, holds in self.checks) else 1


def circumstances() -> str:
    """Return when and with what a run was made."""
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{date.today()}; Kesler {kesler.__version__}, Python {platform.python_version()}, "
        f"{versions}; {os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB."
    )


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, padded so that it reads well as text; numbers to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
    padded = [[line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in [padded[0], rule, *padded[1:]])


def in_line(figures: Iterable[object]) -> str:
    """Return figures side by side, as they are."""
    return " / ".join(map(str, figures))


def percentages(numbers: Iterable[float]) -> str:
    """Return figures side by side, rounded to one decimal.

    Examples
    --------
    >>> percentages([52.11, 4.3])
    '52.1 / 4.3'
    """
    return in_line(f"{number:.1f}" for number in numbers)


# ---- the pictures ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """One of several pictures of mistakes as they add up.

    Parameters
    ----------
    title : str
    curves : mapping of method to array of shape (n_runs, n_trials)
        Mistakes so far; the mean over the runs is drawn, and their range behind it.
    published : mapping of method to number
        Mistakes that a paper reports for the end.
    """

    title: str
    curves: Mapping[str, npt.NDArray[Any]]
    published: Mapping[str, float] = field(default_factory=dict)


def draw(path: Path, panels: Sequence[Panel], columns: int, width: float, height: float) -> None:
    """Draw panels in rows, each of the given size in inches."""
    rows = -(-len(panels) // columns)
    with rc_context(STYLE):
        figure = Figure(figsize=(columns * width, rows * height), layout=LAYOUT)
        axes = figure.subplots(rows, columns, squeeze=False)
        for ax, panel in zip_longest(axes.flat, panels):
            _draw_panel(ax, panel, 0.16 / (height - 0.7)) if panel else ax.set_axis_off()
        circles = " (circles: published)" if any(panel.published for panel in panels) else ""
        figure.supxlabel(f"trials{circles}", fontsize=9, color="#555555")
        figure.supylabel("mistakes so far", fontsize=9, color="#555555")
        path.parent.mkdir(exist_ok=True)
        figure.savefig(path, dpi=150)


def _draw_panel(ax: Axes, panel: Panel, gap: float) -> None:
    """Draw one panel; `gap` is the least distance of two labels, as a share of its height."""
    ends = {method: _draw_curve(ax, method, runs) for method, runs in panel.curves.items()}
    n_trials = max(runs.shape[1] for runs in panel.curves.values())
    highest = [runs[:, -1].max() for runs in panel.curves.values()]
    top = 1.04 * max([*highest, *panel.published.values()])
    ax.set(title=panel.title, xlim=(0, n_trials), ylim=(0, top))
    for axis, n_steps in ((ax.xaxis, 3), (ax.yaxis, 4)):
        axis.set_major_locator(MaxNLocator(n_steps, steps=[1, 2, 4, 5, 10]))
        axis.set_major_formatter("{x:,.0f}")
    for method, end in panel.published.items():
        ax.plot(n_trials, end, "o", ms=5, mfc="white", mec=COLOURS[method], clip_on=False)
    places = spread([*ends.values()], gap * top)
    for (method, end), place in zip(ends.items(), places, strict=True):
        figure = f"{100 * end / n_trials:.1f} %" if panel.published else f"{end:,.0f}"
        ax.annotate(
            f"{method} {figure}",
            (n_trials, place),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            color=COLOURS[method],
            annotation_clip=False,
        )


def _draw_curve(ax: Axes, method: str, runs: npt.NDArray[Any]) -> float:
    """Draw the mean of some runs, and their range; return where the mean ends."""
    trials = np.arange(1, runs.shape[1] + 1)
    mean = runs.mean(axis=0)
    ax.fill_between(
        trials, runs.min(axis=0), runs.max(axis=0), color=COLOURS[method], alpha=0.15, lw=0
    )
    ax.plot(trials, mean, color=COLOURS[method], lw=1.5)
    return float(mean[-1])


def draw_beside(
    path: Path, rows: Sequence[str], panels: Mapping[str, tuple[Sequence[float], Sequence[float]]]
) -> None:
    """Draw one panel a method, each row's figure in it a dot, the published one a circle."""
    with rc_context({**STYLE, "axes.grid.axis": "both"}):
        figure = Figure(figsize=(1.6 * len(panels) + 0.8, 2.6), layout=LAYOUT)
        axes = figure.subplots(1, len(panels), sharex=True, sharey=True)
        for ax, (method, (ours, theirs)) in zip(axes, panels.items(), strict=True):
            places, colour = np.arange(len(rows)), COLOURS[method]
            ax.hlines(places, ours, theirs, color=colour, lw=1, alpha=0.5)
            ax.plot(theirs, places, "o", ms=5, mfc="white", mec=colour)
            ax.plot(ours, places, "o", ms=5, color=colour)
            ax.set_title(method, color=colour)
            ax.tick_params(length=0)
        axes[0].set(yticks=places, yticklabels=rows, xlim=(0, None), ylim=(len(rows) - 0.5, -0.5))
        figure.supxlabel(
            "mistakes in % (dots: ours, circles: published)", fontsize=9, color="#555555"
        )
        path.parent.mkdir(exist_ok=True)
        figure.savefig(path, dpi=150)


def spread(wanted: Sequence[float], gap: float) -> npt.NDArray[np.float64]:
    """Return the places nearest to those wanted, in least squares, that lie a gap apart.

    Examples
    --------
    >>> spread([5.0, 0.0, 5.0], gap=1.0).tolist()
    [4.5, 0.0, 5.5]
    """
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(order))
    places = np.empty(len(order))
    places[order] = isotonic_regression(np.asarray(wanted, dtype=float)[order] - steps) + steps
    return places

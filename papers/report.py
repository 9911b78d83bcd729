"""Pages of tables and checks, and pictures of curves, for the results of the scripts."""

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

# Figures are of compiled loops only: none is interpreted until another process has compiled it.
os.environ.setdefault("KESLER_COMPILE", "foreground")

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
"""One colour per method, after Okabe and Ito. Max-MP, Max-SP and the hybrid of Amit's table use
the hypotheses of Fink's three methods, and have the same colours."""

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
    """A page of results; each block is printed when it is added.

    Parameters
    ----------
    name : str
        The name of the file, without suffix.
    title : str
        The title of the page.
    folder : Path
        The folder of the file.
    """

    name: str
    title: str
    folder: Path
    blocks: list[str] = field(default_factory=list)
    checks: list[tuple[str, bool]] = field(default_factory=list)
    start: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """The seconds since the report was created."""
        return time.perf_counter() - self.start

    def add(self, *blocks: str) -> None:
        """Add blocks of Markdown."""
        for block in blocks:
            print(f"\n{block}", flush=True)
        self.blocks.extend(blocks)

    def check(self, claim: str, holds: bool) -> None:
        """Add a claim to check, and whether it holds."""
        self.checks.append((claim, bool(holds)))

    def picture(self, suffix: str, caption: str) -> Path:
        """Add a picture, and return its path, which the caller must write."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.name}-{suffix}.png"
        self.add(f"![{caption}]({path.name})")
        return path

    def write(self) -> int:
        """Write the page, and return the exit code: 1 if a check failed."""
        verdicts = [f"- {'yes' if holds else 'NO'}: {claim}" for claim, holds in self.checks]
        self.add("## Checks", "\n".join(verdicts), f"The run took {self.seconds:.0f} s.")
        page = [f"# {self.title}", circumstances(), *self.blocks]
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{self.name}.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")
        print(f"\nwritten to {self.folder}")
        return 0 if all(holds for _, holds in self.checks) else 1


def circumstances() -> str:
    """Return the date, the versions and the machine of a run."""
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{date.today()}; Kesler {kesler.__version__}, Python {platform.python_version()}, "
        f"{versions}; {os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB."
    )


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a padded Markdown table, with all but the first column aligned to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
    padded = [[line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in [padded[0], rule, *padded[1:]])


def in_line(figures: Iterable[object]) -> str:
    """Return figures joined by slashes."""
    return " / ".join(map(str, figures))


def percentages(numbers: Iterable[float]) -> str:
    """Return figures rounded to one decimal, joined by slashes.

    Examples
    --------
    >>> percentages([52.11, 4.3])
    '52.1 / 4.3'
    """
    return in_line(f"{number:.1f}" for number in numbers)


# ---- the pictures ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """A panel of cumulative mistakes.

    Parameters
    ----------
    title : str
    curves : mapping of method to array of shape (n_runs, n_trials)
        Cumulative mistakes; the mean over the runs is drawn, and their range is shaded.
    published : mapping of method to number
        The published total mistakes.
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
        figure.supylabel("cumulative mistakes", fontsize=9, color="#555555")
        figure.savefig(path, dpi=150)


def _draw_panel(ax: Axes, panel: Panel, gap: float) -> None:
    """Draw one panel; `gap` is the least distance between labels, relative to its height."""
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
    heights = spread([*ends.values()], gap * top)
    for (method, end), height in zip(ends.items(), heights, strict=True):
        figure = f"{100 * end / n_trials:.1f} %" if panel.published else f"{end:,.0f}"
        ax.annotate(
            f"{method} {figure}",
            (n_trials, height),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            color=COLOURS[method],
            annotation_clip=False,
        )


def _draw_curve(ax: Axes, method: str, runs: npt.NDArray[Any]) -> float:
    """Draw the mean and the range of the runs; return the last mean."""
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
    """Draw one panel per method, with a dot per row for our figure and a circle for theirs."""
    with rc_context({**STYLE, "axes.grid.axis": "both"}):
        figure = Figure(figsize=(1.6 * len(panels) + 0.8, 2.6), layout=LAYOUT)
        axes = figure.subplots(1, len(panels), sharex=True, sharey=True)
        for ax, (method, (ours, theirs)) in zip(axes, panels.items(), strict=True):
            heights, colour = np.arange(len(rows)), COLOURS[method]
            ax.hlines(heights, ours, theirs, color=colour, lw=1, alpha=0.5)
            ax.plot(theirs, heights, "o", ms=5, mfc="white", mec=colour)
            ax.plot(ours, heights, "o", ms=5, color=colour)
            ax.set_title(method, color=colour)
            ax.tick_params(length=0)
        axes[0].set(yticks=heights, yticklabels=rows, xlim=(0, None), ylim=(len(rows) - 0.5, -0.5))
        figure.supxlabel(
            "mistakes in % (dots: ours, circles: published)", fontsize=9, color="#555555"
        )
        figure.savefig(path, dpi=150)


def spread(wanted: Sequence[float], gap: float) -> npt.NDArray[np.float64]:
    """Return the positions nearest to the wanted ones, in least squares, at least a gap apart.

    Examples
    --------
    >>> spread([5.0, 0.0, 5.0], gap=1.0).tolist()
    [4.5, 0.0, 5.5]
    """
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(order))
    positions = np.empty(len(order))
    positions[order] = isotonic_regression(np.asarray(wanted, dtype=float)[order] - steps) + steps
    return positions

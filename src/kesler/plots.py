"""Pictures of runs: Display classes in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

MAX_POINTS = 2000

# The colours of Okabe and Ito (2008), told apart whatever the colour vision; without its yellow,
# which is faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("solid", "dashed", "dotted", "dashdot")
INK, FAINT = "#333333", "#DDDDDD"


class Record(Protocol):
    """What is drawn of a run: a ProgressiveResult or a MethodResult."""

    @property
    def trials(self) -> npt.NDArray[np.int64]: ...  # noqa: D102
    @property
    def curve(self) -> npt.NDArray[np.int64]: ...  # noqa: D102
    @property
    def error(self) -> float: ...  # noqa: D102


class MistakeCurveDisplay:
    """Cumulative mistakes against trials, a line for each method (Fink et al. 2006, Fig. 1).

    Parameters
    ----------
    results : mapping of str to result
        The methods by name, each a result of :func:`kesler.progressive_validate` or of a
        :class:`kesler.progressive.Comparison`.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure drawn on.
    ax_ : matplotlib Axes
        The axes drawn on.
    lines_ : list of matplotlib Line2D
        One line for each method, of at most 2,000 points.

    Raises
    ------
    KeslerError
        If there are no results; on drawing, if matplotlib is not installed.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Figure 1.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kesler import OnlineClassifier, progressive_validate
    >>> from kesler.datasets import make_shared
    >>> from kesler.plots import MistakeCurveDisplay
    >>> X, y = make_shared(n=500)
    >>> results = {name: progressive_validate(OnlineClassifier(name), X, y)
    ...            for name in ("multi", "single")}
    >>> display = MistakeCurveDisplay.from_results(results, ax=Figure().subplots())
    >>> [line.get_label() for line in display.lines_]
    ['multi', 'single']
    """

    figure_: Figure
    ax_: Axes
    lines_: list[Line2D]

    def __init__(self, results: Mapping[str, Record]) -> None:
        if not results:
            raise KeslerError("there is nothing to draw: give one result at least")
        self.results = dict(results)

    @classmethod
    def from_results(
        cls, results: Mapping[str, Record], ax: Axes | None = None
    ) -> MistakeCurveDisplay:
        """Draw results, on new axes unless some are given; return the display."""
        return cls(results).plot(ax)

    def plot(self, ax: Axes | None = None) -> MistakeCurveDisplay:
        """Draw on new axes, unless some are given; return the display itself."""
        self.ax_ = _new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        self.lines_ = [self._draw(i, name) for i, name in enumerate(self.results)]
        _dress(self.ax_)
        self._name_lines()
        return self

    def _draw(self, i: int, name: str) -> Line2D:
        trials, mistakes = _thinned(self.results[name])
        colour = COLOURS[i % len(COLOURS)]
        dashes = DASHES[i // len(COLOURS) % len(DASHES)]
        [line] = self.ax_.plot(trials, mistakes, color=colour, linestyle=dashes, label=name)
        return line

    def _name_lines(self) -> None:
        """Write each method and its error in % beside the end of its line."""
        records = self.results.values()
        ends = [float(record.curve[-1]) for record in records]
        heights = _apart(ends, 0.05 * (self.ax_.get_ylim()[1] or 1))
        for line, record, height in zip(self.lines_, records, heights, strict=True):
            self.ax_.annotate(
                f"{line.get_label()}  {100 * record.error:.2f} %",
                (record.trials[-1], height),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                color=line.get_color(),
                annotation_clip=False,
            )


def save_mistake_curves(results: Mapping[str, Record], path: str, title: str) -> None:
    """Draw results into a file, of the kind that its suffix says."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    ax = figure.subplots()
    MistakeCurveDisplay.from_results(results, ax)
    ax.set_title(title, loc="left", color=INK)
    figure.savefig(path, dpi=150)


def require_drawable(path: str) -> None:
    """Raise a sentence if matplotlib is not installed or draws no files with this suffix."""
    _require_matplotlib()
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = FigureCanvasBase.get_supported_filetypes()
    if Path(path).suffix.lower().lstrip(".") not in kinds:
        raise KeslerError(
            f"{path} does not say what kind of picture to draw: let it end in .png, .svg or .pdf"
        )


def _require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise KeslerError(
            "drawing needs matplotlib: install it with pip install 'kesler[plots]'"
        ) from error


def _new_axes() -> Axes:
    _require_matplotlib()
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(8, 5), layout="constrained")[1]


def _dress(ax: Axes) -> None:
    ax.set_title("Mistakes made while learning", loc="left", color=INK)
    ax.set_xlabel("trials", color=INK)
    ax.set_ylabel("mistakes so far", color=INK)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:,.0f}")
    ax.margins(x=0)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.grid(color=FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(colors=INK, length=0)


def _thinned(result: Record) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return at most 2,000 points of a curve, evenly spread, both ends among them."""
    n_points = len(result.curve)
    kept = np.unique(np.linspace(0, n_points - 1, min(n_points, MAX_POINTS)).astype(np.int64))
    return result.trials[kept], result.curve[kept]


def _apart(heights: Sequence[float], gap: float) -> npt.NDArray[np.float64]:
    """Return heights moved as little as keeps them `gap` apart, in least squares.

    Examples
    --------
    >>> _apart([5.0, 1.0, 1.5], gap=1.0).tolist()
    [5.0, 0.75, 1.75]
    """
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(heights))
    moved = np.empty(len(heights))
    moved[order] = isotonic_regression(np.array(heights)[order] - steps) + steps
    return moved

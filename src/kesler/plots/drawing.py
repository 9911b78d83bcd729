"""Helpers of all plots: colours, axes, and positions of line labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# The colour-blind safe palette of Okabe and Ito (2008), without yellow, which is faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("solid", "dashed", "dotted", "dashdot")
INK, FAINT = "#333333", "#DDDDDD"


def require_drawable(path: str) -> None:
    """Raise if matplotlib is not installed or cannot write files with this suffix.

    Examples
    --------
    >>> from kesler.plots import require_drawable
    >>> require_drawable("curve.png")
    """
    require_matplotlib()
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = FigureCanvasBase.get_supported_filetypes()
    if Path(path).suffix.lower().lstrip(".") not in kinds:
        raise KeslerError(
            f"{path} has no suffix of a supported image format: use .png, .svg or .pdf"
        )


def require_matplotlib() -> None:
    """Raise if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise KeslerError(
            "drawing needs matplotlib: install it with pip install 'kesler[plots]'"
        ) from error


def new_axes(size: tuple[float, float] = (8, 5)) -> Axes:
    """Return axes on a new figure, with a size in inches."""
    require_matplotlib()
    from matplotlib import pyplot

    return pyplot.subplots(figsize=size, layout="constrained")[1]


def grid(
    n: int, n_columns: int, figure: Figure | None, *, rows_each: int = 1
) -> tuple[Figure, npt.NDArray[Any]]:
    """Return `figure`, or a new one, and a grid of axes for n small images.

    Parameters
    ----------
    n : int
        Number of images, 1 or more.
    n_columns : int
        Maximum number of columns.
    figure : Figure or None
    rows_each : int
        Number of axes of each image, one above the other.
    """
    n_columns = min(n, n_columns)
    n_rows = -(-n // n_columns) * rows_each
    if figure is None:
        require_matplotlib()
        from matplotlib import pyplot

        size = (max(4.0, 0.85 * n_columns), 0.5 + n_rows * (1.05 if rows_each == 1 else 0.95))
        figure = pyplot.figure(figsize=size, layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def blank(ax: Axes) -> None:
    """Remove the ticks and frame of axes."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_frame_on(False)


def style(i: int) -> dict[str, Any]:
    """Return the colour and line style of the i-th line: neighbours differ in both.

    So lines can be told apart in black and white.
    """
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)]}


MAX_POINTS = 2000  # of a line


def spread(n: int, most: int = MAX_POINTS) -> npt.NDArray[np.int64]:
    """Return at most so many of the numbers from 0 to n - 1, evenly spaced, with both ends.

    Examples
    --------
    >>> spread(3).tolist(), spread(90, 4).tolist()
    ([0, 1, 2], [0, 29, 59, 89])
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def show_counts(ax: Axes) -> None:
    """Write the numbers of both axes as counts, with commas."""
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:,.0f}")


def dress(ax: Axes, title: str, x: str, y: str) -> None:
    """Set the title and labels of axes that start at zero, and draw a faint grid."""
    ax.set_title(title, loc="left", color=INK)
    ax.set_xlabel(x, color=INK)
    ax.set_ylabel(y, color=INK)
    ax.margins(x=0)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.grid(color=FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(colors=INK, length=0)


def name_lines(ax: Axes, lines: Sequence[Line2D], texts: Sequence[str]) -> None:
    """Write a text to the right of the end of each line, without overlaps."""
    ends = [float(line.get_ydata()[-1]) for line in lines]  # type: ignore[index,arg-type]
    heights = apart(ends, 0.05 * (ax.get_ylim()[1] or 1))
    right = max(float(line.get_xdata()[-1]) for line in lines)  # type: ignore[index,arg-type]
    for line, text, height in zip(lines, texts, heights, strict=True):
        ax.annotate(
            text,
            (right, height),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=line.get_color(),
            annotation_clip=False,
        )


def apart(heights: Sequence[float], gap: float) -> npt.NDArray[np.float64]:
    """Return the nearest heights, in least squares, with distances of at least `gap`.

    Examples
    --------
    >>> apart([5.0, 1.0, 1.5], gap=1.0).tolist()
    [5.0, 0.75, 1.75]
    """
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(heights))
    moved = np.empty(len(heights))
    moved[order] = isotonic_regression(np.array(heights)[order] - steps) + steps
    return moved

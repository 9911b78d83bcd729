"""What all pictures share: colours, axes, and where names stand."""

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

# The colours of Okabe and Ito (2008), told apart whatever the colour vision; without its yellow,
# which is faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("solid", "dashed", "dotted", "dashdot")
INK, FAINT = "#333333", "#DDDDDD"


def require_drawable(path: str) -> None:
    """Raise a sentence if matplotlib is not installed or draws no files with this suffix."""
    require_matplotlib()
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = FigureCanvasBase.get_supported_filetypes()
    if Path(path).suffix.lower().lstrip(".") not in kinds:
        raise KeslerError(
            f"{path} does not say what kind of picture to draw: let it end in .png, .svg or .pdf"
        )


def require_matplotlib() -> None:
    """Raise a sentence if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise KeslerError(
            "drawing needs matplotlib: install it with pip install 'kesler[plots]'"
        ) from error


def new_axes(size: tuple[float, float] = (8, 5)) -> Axes:
    """Return axes on a figure of their own, of a size in inches."""
    require_matplotlib()
    from matplotlib import pyplot

    return pyplot.subplots(figsize=size, layout="constrained")[1]


def grid(
    n: int, n_columns: int, figure: Figure | None, *, rows_each: int = 1
) -> tuple[Figure, npt.NDArray[Any]]:
    """Return a figure, new unless one is given, and its axes for n small pictures.

    Parameters
    ----------
    n : int
        How many, 1 or more.
    n_columns : int
        The most side by side.
    figure : Figure or None
    rows_each : int
        How many axes each has, one above the other.
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
    """Take ticks and frame from axes."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_frame_on(False)


def style(i: int) -> dict[str, Any]:
    """Return the colour and the dashes of a line by its number."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "linestyle": DASHES[i // len(COLOURS) % len(DASHES)],
    }


def dress(ax: Axes, title: str, x: str, y: str) -> None:
    """Say what axes show, from zero on, over a faint grid."""
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
    """Write texts to the right of all lines, as high as each line ends, moved apart."""
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
    """Return heights moved as little as keeps them `gap` apart, in least squares.

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

"""Mistakes made while learning, as curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.plots.drawing import INK, dress, name_lines, new_axes, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

MAX_POINTS = 2000


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
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        self.lines_ = [self._draw(i, name) for i, name in enumerate(self.results)]
        dress(self.ax_, "Mistakes made while learning", "trials", "mistakes so far")
        for axis in (self.ax_.xaxis, self.ax_.yaxis):
            axis.set_major_formatter("{x:,.0f}")
        errors = [f"{name}  {100 * each.error:.2f} %" for name, each in self.results.items()]
        name_lines(self.ax_, self.lines_, errors)
        return self

    def _draw(self, i: int, name: str) -> Line2D:
        trials, mistakes = _thinned(self.results[name])
        [line] = self.ax_.plot(trials, mistakes, label=name, **style(i))
        return line


def save_mistake_curves(results: Mapping[str, Record], path: str, title: str) -> None:
    """Draw results into a file, of the kind that its suffix says."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    ax = figure.subplots()
    MistakeCurveDisplay.from_results(results, ax)
    ax.set_title(title, loc="left", color=INK)
    figure.savefig(path, dpi=150)


def _thinned(result: Record) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return at most 2,000 points of a curve, evenly spread, both ends among them."""
    n_points = len(result.curve)
    kept = np.unique(np.linspace(0, n_points - 1, min(n_points, MAX_POINTS)).astype(np.int64))
    return result.trials[kept], result.curve[kept]

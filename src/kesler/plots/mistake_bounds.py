"""Mistakes of a run beside the number that a theorem allows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kesler.errors import KeslerError
from kesler.plots.drawing import INK, dress, new_axes, show_counts, spread, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from kesler.bounds.mistakes import MistakeBound


class MistakeBoundDisplay:
    """The mistakes of a run by trials, and the bounds of theorems as horizontal lines.

    A bound that is not below the number of trials says nothing; the display says so. A bound that
    needs a competitor without loss, where none was found, is named but has no line.

    Parameters
    ----------
    result : ProgressiveResult
        What :func:`kesler.progressive_validate` returned.
    bounds : mapping of str to MistakeBound
        Bounds by name, each what :func:`kesler.mistake_bound` returned.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure drawn on.
    ax_ : matplotlib Axes
        The axes drawn on.
    line_ : matplotlib Line2D
        The mistakes so far, of at most 2,000 points.
    lines_ : dict of str to matplotlib Line2D
        The bounds by name, as far as they are finite.

    Raises
    ------
    KeslerError
        If there are no bounds; when drawing, if matplotlib is not installed.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Theorem 1.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kesler import OnlineClassifier, progressive_validate
    >>> from kesler.datasets import make_disjoint
    >>> from kesler.plots import MistakeBoundDisplay
    >>> X, y = make_disjoint(n=500)
    >>> result = progressive_validate(OnlineClassifier("multi", update="perceptron"), X, y)
    >>> display = MistakeBoundDisplay.from_result(result, ax=Figure().subplots())
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('trials', 'mistakes so far')
    """

    figure_: Figure
    ax_: Axes
    line_: Line2D
    lines_: dict[str, Line2D]

    def __init__(self, result: Any, bounds: Mapping[str, MistakeBound]) -> None:
        if not bounds:
            raise KeslerError("there is no bound to draw: give at least one")
        self.result = result
        self.bounds = dict(bounds)

    @classmethod
    def from_result(cls, result: Any, ax: Axes | None = None) -> MistakeBoundDisplay:
        """Evaluate the theorem of the run's update rule, and draw it.

        Parameters
        ----------
        result : ProgressiveResult
            The result of a learner that has a bound.
        ax : Axes, optional
            Axes to draw on; new axes by default.
        """
        from kesler.bounds.mistakes import mistake_bound

        bound = mistake_bound(result)
        return cls(result, {bound.theorem: bound}).plot(ax)

    def plot(self, ax: Axes | None = None) -> MistakeBoundDisplay:
        """Draw on `ax`, or on new axes; return the display itself."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        trials, mistakes = self.result.trials, self.result.curve
        shown = spread(len(mistakes))
        [self.line_] = self.ax_.plot(trials[shown], mistakes[shown], label="mistakes", **style(0))
        self.lines_ = {
            name: self.ax_.axhline(bound.bound, label=_decode(name, bound), **style(i))
            for i, (name, bound) in enumerate(self.bounds.items(), start=1)
            if math.isfinite(bound.bound)
        }
        self._name()
        return self

    def _name(self) -> None:
        """Label the axes, and say below the title what cannot be drawn."""
        without = [name for name, bound in self.bounds.items() if name not in self.lines_]
        title = "Mistakes and the number that theory allows"
        if without:
            title += f"\n{', '.join(without)}: no competitor without loss was found, no bound"
        dress(self.ax_, title, "trials", "mistakes so far")
        show_counts(self.ax_)
        self.ax_.legend(frameon=False, labelcolor=INK)


def _decode(name: str, bound: MistakeBound) -> str:
    """Return the text of a line: the theorem, its bound, and whether it says anything."""
    text = f"{name}: at most {bound.bound:,.0f}"
    return f"{text} (vacuous)" if bound.is_vacuous else text

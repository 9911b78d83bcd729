"""Error, or loss, against the number of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.plots.drawing import INK, dress, name_lines, new_axes, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Measure = Literal["error", "loss"]
Curve = tuple[npt.ArrayLike, npt.ArrayLike]


class FeatureCurveDisplay:
    """Error, or loss, against the number of features, a line for each method.

    Parameters
    ----------
    curves : mapping of str to (sizes, values)
        The methods by name: numbers of features, ascending, and what each gave.
    measure : {'error', 'loss'}, default 'error'
        What the values are; errors are shares of rows, from 0 to 1, and are drawn in %.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure drawn on.
    ax_ : matplotlib Axes
        The axes drawn on.
    lines_ : list of matplotlib Line2D
        One for each method.

    Raises
    ------
    KeslerError
        If there is no curve, one is empty, or its sizes and values differ in number; on drawing,
        if matplotlib is not installed.

    References
    ----------
    Shalev-Shwartz, Wexler and Shashua (2011), Figures 3 and 4.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kesler import ShareBoostClassifier
    >>> from kesler.datasets import load_pendigits
    >>> from kesler.plots import FeatureCurveDisplay
    >>> pens = load_pendigits()
    >>> model = ShareBoostClassifier(5).fit(pens.X[:500] / 50 - 1, pens.y[:500])
    >>> display = FeatureCurveDisplay.from_estimator(
    ...     model, measure="loss", rivals={"a guess": ([1, 5], [2.2, 2.2])}, ax=Figure().subplots()
    ... )
    >>> [(line.get_label(), len(line.get_xdata())) for line in display.lines_]
    [('ShareBoost', 5), ('a guess', 2)]
    """

    figure_: Figure
    ax_: Axes
    lines_: list[Line2D]

    def __init__(self, curves: Mapping[str, Curve], *, measure: Measure = "error") -> None:
        if measure not in get_args(Measure):
            raise KeslerError(f"measure={measure!r}: choose 'error' or 'loss'")
        if not curves:
            raise KeslerError("there is nothing to draw: give one curve at least")
        self.curves = {name: _checked(name, *curve) for name, curve in curves.items()}
        self.measure = measure

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        measure: Measure = "error",
        name: str = "ShareBoost",
        rivals: Mapping[str, Curve] | None = None,
        ax: Axes | None = None,
    ) -> FeatureCurveDisplay:
        """Draw the path of a fitted ShareBoostClassifier, and curves of others.

        Parameters
        ----------
        model : ShareBoostClassifier
            Fitted; with an `eval_set` where the measure is the error.
        measure : {'error', 'loss'}, default 'error'
            The error on the `eval_set`, or the training loss.
        name : str, default 'ShareBoost'
            What the line is called.
        rivals : mapping of str to (sizes, values), optional
            Of the same measure.
        ax : Axes, optional
            To draw on; new ones by default.
        """
        return cls({name: path_curve(model, measure), **(rivals or {})}, measure=measure).plot(ax)

    def plot(self, ax: Axes | None = None) -> FeatureCurveDisplay:
        """Draw on new axes, unless some are given; return the display itself."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        self.lines_ = [self._draw(i, name) for i, name in enumerate(self.curves)]
        in_percent = self.measure == "error"
        unit = "error in %" if in_percent else "loss"
        dress(self.ax_, _title(self.measure), "features", unit)
        self.ax_.locator_params(axis="x", integer=True)
        ends = [values[-1] for _, values in self.curves.values()]
        spelt = [f"{100 * end:.2f} %" if in_percent else f"{end:.4g}" for end in ends]
        texts = [f"{name}  {end}" for name, end in zip(self.curves, spelt, strict=True)]
        name_lines(self.ax_, self.lines_, texts)
        return self

    def _draw(self, i: int, name: str) -> Line2D:
        sizes, values = self.curves[name]
        drawn = 100 * values if self.measure == "error" else values
        marker = "o" if len(sizes) <= 60 else None
        [line] = self.ax_.plot(sizes, drawn, label=name, marker=marker, markersize=3, **style(i))
        return line


def path_curve(model: Any, measure: Measure) -> Curve:
    """Return numbers of features and what each gave, from the path of a fitted model."""
    rounds = model.path_
    if measure == "error" and rounds[0].validation_error is None:
        raise KeslerError(
            "the path holds no validation errors: fit with eval_set=(X, y), or draw measure='loss'"
        )
    field = "validation_error" if measure == "error" else "loss"
    sizes = np.array([each.n_chosen for each in rounds])
    return sizes, np.array([getattr(each, field) for each in rounds])


def save_feature_curves(
    curves: Mapping[str, Curve], path: str, title: str, measure: Measure
) -> None:
    """Draw curves into a file, of the kind that its suffix says."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    ax = figure.subplots()
    FeatureCurveDisplay(curves, measure=measure).plot(ax)
    ax.set_title(title, loc="left", color=INK)
    figure.savefig(path, dpi=150)


def _title(measure: Measure) -> str:
    return "Error" * (measure == "error") + "Loss" * (measure == "loss") + " by number of features"


def _checked(
    name: str, sizes: npt.ArrayLike, values: npt.ArrayLike
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    sizes, values = np.asarray(sizes), np.asarray(values, dtype=np.float64)
    if sizes.ndim != 1 or sizes.shape != values.shape or not len(sizes):
        raise KeslerError(
            f"the curve {name!r} has sizes of shape {sizes.shape} and values of shape "
            f"{values.shape}: give as many of each, and one at least"
        )
    return sizes, values

"""Heat map of chosen features and their weights for each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.plots.drawing import INK, new_axes
from kesler.sharing.exports.predictor import chosen_steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# Maximum length of a displayed feature name.
LONGEST = 36
# Maximum number of cells that are marked where their weight is negative.
MOST_MARKED = 1000


class ChosenFeaturesDisplay:
    """The weights of chosen features as a heat map, with the first choice on top.

    Parameters
    ----------
    weights : array of shape (n_columns, n_classes)
    names : sequence of str
        Names of the rows of `weights`.
    classes : sequence
        Labels of the columns of `weights`.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure drawn on.
    ax_ : matplotlib Axes
        The axes drawn on.
    image_ : matplotlib AxesImage
        The heat map: orange for weights above 0, purple for weights below 0, with a dash, so that
        they can be told apart in black and white.

    Raises
    ------
    KeslerError
        If the shape of the weights does not match the names and classes; when drawing, if
        matplotlib is not installed.

    References
    ----------
    Shalev-Shwartz, Wexler and Shashua (2011), Figure 5 (b).

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kesler import ShareBoostClassifier
    >>> from kesler.datasets import load_pendigits
    >>> from kesler.plots import ChosenFeaturesDisplay
    >>> pens = load_pendigits()
    >>> model = ShareBoostClassifier(5).fit(pens.X[:500] / 50 - 1, pens.y[:500])
    >>> display = ChosenFeaturesDisplay.from_estimator(model, ax=Figure().subplots())
    >>> display.image_.get_array().shape
    (5, 10)
    """

    figure_: Figure
    ax_: Axes
    image_: AxesImage
    unit = "weight"

    def __init__(
        self, weights: npt.ArrayLike, names: Sequence[str], classes: Sequence[Any]
    ) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)
        if self.weights.shape != (len(names), len(classes)):
            raise KeslerError(
                f"weights of shape {self.weights.shape} do not match {len(names)} names and "
                f"{len(classes)} classes: give a row for each name and a column for each class"
            )
        self.names = list(names)
        self.classes = list(classes)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any = None, *, most: int = 30, ax: Axes | None = None
    ) -> ChosenFeaturesDisplay:
        """Draw a fitted ShareBoostClassifier.

        Parameters
        ----------
        model : ShareBoostClassifier
            Fitted.
        X : array of shape (n_rows, n_features), optional
            Rows, such as those of the fit. With them each weight is multiplied by the standard
            deviation of its feature, which makes the rows of the map comparable: a feature of
            small values has large weights.
        most : int, default 30
            Maximum number of features to show, in the order of choice. A feature of several columns
            has a row for each column.
        ax : Axes, optional
            Axes to draw on; new axes of a suitable height by default.
        """
        names = column_names(model, most)
        weights = np.asarray(model.coef_).T[: len(names)]
        if X is None:
            return cls(weights, names, model.classes_.tolist()).plot(ax)
        spread = np.asarray(model.transform(X), dtype=np.float64).std(axis=0)[: len(names)]
        scaled = cls(weights * spread[:, None], names, model.classes_.tolist())
        scaled.unit = "weight times the spread of the feature"
        return scaled.plot(ax)

    def plot(self, ax: Axes | None = None) -> ChosenFeaturesDisplay:
        """Draw on `ax`, or on new axes; return the display itself."""
        n_rows, n_classes = self.weights.shape
        size = (min(16.0, 4.5 + 0.3 * n_classes), 1.6 + 0.24 * n_rows)
        self.ax_ = new_axes(size) if ax is None else ax
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        farthest = np.abs(self.weights).max(initial=0) or 1.0
        self.image_ = self.ax_.imshow(
            self.weights, cmap="PuOr_r", vmin=-farthest, vmax=farthest, aspect="auto"
        )
        self.figure_.colorbar(self.image_, ax=self.ax_, label=self.unit)
        self._mark_negative(0.1 * farthest)
        self._name()
        return self

    def _mark_negative(self, least: float) -> None:
        """Write a dash on cells that are clearly negative, unless there are very many cells."""
        if self.weights.size > MOST_MARKED:
            return
        for row, column in np.argwhere(self.weights < -least):
            self.ax_.text(
                column, row, "\N{EN DASH}", ha="center", va="center",
                color=INK if self.weights[row, column] > -5 * least else "white",
            )  # fmt: skip

    def _name(self) -> None:
        """Label rows and columns, with a stride if there are many."""
        self.ax_.set_title("Chosen features and their weights", loc="left", color=INK)
        self.ax_.set_xlabel("class", color=INK)
        self.ax_.set_ylabel("feature", color=INK)
        columns, rows = _spread(len(self.classes), 40), _spread(len(self.names), 60)
        labels = [str(self.classes[i]) for i in columns]
        slant = 90 if max(map(len, labels)) > 3 else 0
        self.ax_.set_xticks(columns, labels, rotation=slant)
        self.ax_.set_yticks(rows, [_cut(self.names[i]) for i in rows])
        self.ax_.tick_params(colors=INK, length=0)
        self.ax_.spines[:].set_visible(False)


def column_names(model: Any, most: int) -> list[str]:
    """Return a name for each column of the first `most` features that a model chose."""
    names = list[str]()
    for step, name in list(zip(*chosen_steps(model), strict=True))[:most]:
        names += [name, *[f"column {i}" for i in range(1, step.width)]]
    return names


def _spread(n: int, most: int) -> list[int]:
    """Return at most `most` evenly spaced numbers below n.

    Examples
    --------
    >>> _spread(3, 40), _spread(90, 40)[:3]
    ([0, 1, 2], [0, 3, 6])
    """
    return list(range(0, n, -(-n // most) if n else 1))


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 3] + "..."

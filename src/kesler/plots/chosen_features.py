"""Chosen features and the weights that classes give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.compact.predictor import chosen_steps
from kesler.errors import KeslerError
from kesler.plots.drawing import INK, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# A name of a feature that is longer is cut, so that the map keeps its room.
LONGEST = 36


class ChosenFeaturesDisplay:
    """Chosen features, first choice on top, and their columns of weights as a heat map.

    Parameters
    ----------
    weights : array of shape (n_columns, n_classes)
    names : sequence of str
        Of the rows of weights.
    classes : sequence
        Labels.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure drawn on.
    ax_ : matplotlib Axes
        The axes drawn on.
    image_ : matplotlib AxesImage
        The map: red for weights above 0, blue below.

    Raises
    ------
    KeslerError
        If names or classes are not as many as the weights; on drawing, if matplotlib is not
        installed.

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

    def __init__(
        self, weights: npt.ArrayLike, names: Sequence[str], classes: Sequence[Any]
    ) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)
        if self.weights.shape != (len(names), len(classes)):
            raise KeslerError(
                f"weights of shape {self.weights.shape} do not go with {len(names)} names and "
                f"{len(classes)} classes: give a row for each name and a column for each class"
            )
        self.names = list(names)
        self.classes = list(classes)

    @classmethod
    def from_estimator(
        cls, model: Any, *, most: int = 30, ax: Axes | None = None
    ) -> ChosenFeaturesDisplay:
        """Draw a fitted ShareBoostClassifier.

        Parameters
        ----------
        model : ShareBoostClassifier
            Fitted.
        most : int, default 30
            How many of the chosen features are shown, the first ones. One of several columns has a
            row for each.
        ax : Axes, optional
            To draw on; new ones, as high as the rows need, by default.
        """
        names = column_names(model, most)
        weights = np.asarray(model.coef_).T[: len(names)]
        return cls(weights, names, model.classes_.tolist()).plot(ax)

    def plot(self, ax: Axes | None = None) -> ChosenFeaturesDisplay:
        """Draw on new axes, unless some are given; return the display itself."""
        n_rows, n_classes = self.weights.shape
        room = (min(16.0, 4.5 + 0.3 * n_classes), 1.6 + 0.24 * n_rows)
        self.ax_ = new_axes(room) if ax is None else ax
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        farthest = np.abs(self.weights).max(initial=0) or 1.0
        self.image_ = self.ax_.imshow(
            self.weights, cmap="RdBu_r", vmin=-farthest, vmax=farthest, aspect="auto"
        )
        self.figure_.colorbar(self.image_, ax=self.ax_, label="weight")
        self._name()
        return self

    def _name(self) -> None:
        """Name rows and columns; of very many, every so many."""
        self.ax_.set_title("Chosen features and their weights", loc="left", color=INK)
        self.ax_.set_xlabel("class", color=INK)
        columns, rows = _spread(len(self.classes), 40), _spread(len(self.names), 60)
        labels = [str(self.classes[i]) for i in columns]
        slant = 90 if max(map(len, labels)) > 3 else 0
        self.ax_.set_xticks(columns, labels, rotation=slant)
        self.ax_.set_yticks(rows, [_cut(self.names[i]) for i in rows])
        self.ax_.tick_params(colors=INK, length=0)
        self.ax_.spines[:].set_visible(False)


def column_names(model: Any, most: int) -> list[str]:
    """Return a name for each column of the first features that a model chose."""
    names = list[str]()
    for step, name in list(zip(*chosen_steps(model), strict=True))[:most]:
        names += [name, *[f"column {i}" for i in range(1, step.width)]]
    return names


def _spread(n: int, most: int) -> list[int]:
    """Return every so many of the first n numbers.

    Examples
    --------
    >>> _spread(3, 40), _spread(90, 40)[:3]
    ([0, 1, 2], [0, 3, 6])
    """
    return list(range(0, n, -(-n // most) if n else 1))


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 3] + "..."

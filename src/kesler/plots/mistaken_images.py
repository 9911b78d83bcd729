"""Images that were predicted wrongly, with what they are and what they were taken for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.plots.drawing import INK, blank, grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class MistakenImagesDisplay:
    """Thumbnails of the mistakes, each under its label and the one that was predicted.

    Parameters
    ----------
    images : array of shape (n_mistakes, rows, columns)
    labels, predictions : sequences of shape (n_mistakes,)
        What each is, and what it was taken for.
    n_rows : int
        Of how many rows these are the mistakes.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure drawn on.
    axes_ : array of matplotlib Axes
        One for each thumbnail.

    Raises
    ------
    KeslerError
        If labels, predictions or features do not fit; on drawing, if matplotlib is not installed.

    References
    ----------
    Shalev-Shwartz, Wexler and Shashua (2011), Figure 6.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from kesler.plots import MistakenImagesDisplay
    >>> images, labels = np.eye(4).reshape(4, 2, 2), ["a", "b", "c", "d"]
    >>> display = MistakenImagesDisplay.from_predictions(
    ...     images, labels, ["a", "c", "c", "b"], figure=Figure()
    ... )
    >>> [ax.get_title() for ax in display.axes_]
    ['b → c', 'd → b']
    """

    figure_: Figure
    axes_: npt.NDArray[Any]

    def __init__(
        self, images: npt.ArrayLike, labels: npt.ArrayLike, predictions: npt.ArrayLike, n_rows: int
    ) -> None:
        self.images = np.asarray(images)
        self.labels, self.predictions = np.asarray(labels), np.asarray(predictions)
        self.n_rows = n_rows
        if self.images.ndim != 3 or not (
            len(self.images) == len(self.labels) == len(self.predictions)
        ):
            raise KeslerError(
                f"images of shape {self.images.shape} do not go with {len(self.labels)} labels "
                f"and {len(self.predictions)} predictions: give (n, rows, columns), n and n"
            )

    @classmethod
    def from_predictions(
        cls,
        images: npt.ArrayLike,
        labels: npt.ArrayLike,
        predictions: npt.ArrayLike,
        *,
        most: int = 60,
        figure: Figure | None = None,
    ) -> MistakenImagesDisplay:
        """Draw those of some images that were predicted wrongly.

        Parameters
        ----------
        images : array of shape (n_rows, rows, columns)
        labels, predictions : sequences of shape (n_rows,)
        most : int, default 60
            How many are shown, the first ones.
        figure : Figure, optional
            To draw on; a new one by default.
        """
        whole = cls(images, labels, predictions, len(np.asarray(labels)))
        wrong = np.flatnonzero(whole.labels != whole.predictions)
        images, labels = whole.images[wrong], whole.labels[wrong]
        mistakes = cls(images, labels, whole.predictions[wrong], whole.n_rows)
        return mistakes.plot(figure, most=most)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: npt.ArrayLike,
        image_shape: tuple[int, int],
        *,
        most: int = 60,
        figure: Figure | None = None,
    ) -> MistakenImagesDisplay:
        """Draw the mistakes of a fitted classifier on rows that are images.

        Parameters
        ----------
        model : classifier
            Fitted.
        X : array of shape (n_rows, n_features)
            Pixels, row by row.
        y : array of shape (n_rows,)
        image_shape : (int, int)
            Rows and columns of an image.
        most : int, default 60
            How many are shown, the first ones.
        figure : Figure, optional
            To draw on; a new one by default.
        """
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != image_shape[0] * image_shape[1]:
            raise KeslerError(
                f"rows of shape {rows.shape} are no images of {image_shape[0]} x "
                f"{image_shape[1]} pixels: give (n_rows, {image_shape[0] * image_shape[1]})"
            )
        images = rows.reshape(-1, *image_shape)
        return cls.from_predictions(images, y, model.predict(X), most=most, figure=figure)

    def plot(self, figure: Figure | None = None, *, most: int = 60) -> MistakenImagesDisplay:
        """Draw the first on a new figure, unless one is given; return the display itself."""
        n_mistakes = len(self.images)
        n_shown = min(most, n_mistakes)
        self.figure_, axes = grid(max(1, n_shown), 10, figure)
        for ax in axes.ravel():
            blank(ax)
        self.axes_ = axes.ravel()[:n_shown]
        for i, ax in enumerate(self.axes_):
            ax.imshow(self.images[i], cmap="gray_r")
            named = f"{self.labels[i]} → {self.predictions[i]}"
            ax.set_title(named, fontsize=8, color=INK, pad=2)
        shown = f"; the first {n_shown} are shown" if n_shown < n_mistakes else ""
        self.figure_.suptitle(
            f"{n_mistakes:,} of {self.n_rows:,} images predicted wrongly{shown}",
            x=0.01,
            ha="left",
            color=INK,
            fontsize=11,
        )
        return self

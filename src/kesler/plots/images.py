"""Plots of wrongly predicted images and of chosen templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.dictionaries.steps import Template
from kesler.errors import KeslerError
from kesler.plots.drawing import INK, blank, grid
from kesler.sharing.exports.predictor import chosen_steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class MistakenImagesDisplay:
    """Thumbnails of the mistakes, each with its true and predicted label.

    Parameters
    ----------
    images : array of shape (n_mistakes, rows, columns)
    labels, predictions : sequences of shape (n_mistakes,)
        The true and the predicted labels.
    n_rows : int
        Number of rows that were predicted.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure drawn on.
    axes_ : array of matplotlib Axes
        One for each thumbnail.

    Raises
    ------
    KeslerError
        If shapes do not match; when drawing, if matplotlib is not installed.

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
                f"images of shape {self.images.shape} do not match {len(self.labels)} labels "
                f"and {len(self.predictions)} predictions: give n images of shape "
                "(n, rows, columns), n labels and n predictions"
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
        """Draw the wrongly predicted images.

        Parameters
        ----------
        images : array of shape (n_rows, rows, columns)
        labels, predictions : sequences of shape (n_rows,)
        most : int, default 60
            Maximum number of mistakes to show, from the first.
        figure : Figure, optional
            Figure to draw on; a new figure by default.
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
            Maximum number of mistakes to show, from the first.
        figure : Figure, optional
            Figure to draw on; a new figure by default.
        """
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != image_shape[0] * image_shape[1]:
            raise KeslerError(
                f"rows of shape {rows.shape} are not images of {image_shape[0]} x "
                f"{image_shape[1]} pixels: give (n_rows, {image_shape[0] * image_shape[1]})"
            )
        images = rows.reshape(-1, *image_shape)
        return cls.from_predictions(images, y, model.predict(X), most=most, figure=figure)

    def plot(self, figure: Figure | None = None, *, most: int = 60) -> MistakenImagesDisplay:
        """Draw the first mistakes on `figure`, or on a new one; return the display itself."""
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


class TemplatesDisplay:
    """Templates in the order of choice: the patch, and below it the mask on the image.

    Parameters
    ----------
    templates : sequence of Template
        Return values of `dictionary.step(candidate)`.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure drawn on.
    axes_ : array of matplotlib Axes, of shape (n_templates, 2)
        Axes of each patch, from black (lowest) to white, and of its mask, at the positions of the
        centre of the patch; darker positions have larger weights.

    Raises
    ------
    KeslerError
        If there is no template, or a step is not a template; when drawing, if matplotlib is not
        installed.

    References
    ----------
    Shalev-Shwartz, Wexler and Shashua (2011), Figure 5 (a).

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from kesler.dictionaries.steps import Template
    >>> from kesler.plots import TemplatesDisplay
    >>> edge, top = np.array([[-1.0, 1.0]]), np.array([[1.0] * 4, [0.0] * 4])
    >>> TemplatesDisplay([Template((2, 5), edge, top)]).plot(Figure()).axes_.shape
    (1, 2)
    """

    figure_: Figure
    axes_: Any

    def __init__(self, templates: Sequence[Any]) -> None:
        if not templates:
            raise KeslerError("there is nothing to draw: give at least one template")
        other = next((each for each in templates if not isinstance(each, Template)), None)
        if other is not None:
            raise KeslerError(
                f"a {type(other).__name__} is not a template: use ChosenFeaturesDisplay"
            )
        self.templates: list[Template] = list(templates)

    @classmethod
    def from_estimator(
        cls, model: Any, *, most: int = 30, figure: Figure | None = None
    ) -> TemplatesDisplay:
        """Draw the first templates that a fitted ShareBoostClassifier chose.

        Parameters
        ----------
        model : ShareBoostClassifier
            Fitted with a dictionary of templates.
        most : int, default 30
            Maximum number of templates to show.
        figure : Figure, optional
            Figure to draw on; a new figure by default.
        """
        return cls(chosen_steps(model)[0][:most]).plot(figure)

    def plot(self, figure: Figure | None = None) -> TemplatesDisplay:
        """Draw on `figure`, or on a new one; return the display itself."""
        n = len(self.templates)
        self.figure_, axes = grid(n, 10, figure, rows_each=2)
        n_columns = axes.shape[1]
        pairs = axes.reshape(-1, 2, n_columns).swapaxes(1, 2).reshape(-1, 2)
        for ax in axes.ravel():
            blank(ax)
        self.axes_ = pairs[:n]
        for i, template in enumerate(self.templates):
            _draw(self.axes_[i], template)
            self.axes_[i][0].set_title(str(i + 1), fontsize=8, color=INK, pad=2)
        self.figure_.suptitle(
            "Chosen templates and their masks", x=0.01, ha="left", color=INK, fontsize=11
        )
        return self


def _draw(axes: Sequence[Axes], template: Template) -> None:
    patch, mask = axes
    patch.imshow(template.patch, cmap="gray")
    rows, columns = template.image_shape
    # Masks refer to the top left corner of a patch; they are drawn at its centre.
    top, left = (np.array(template.patch.shape) - 1) / 2 - template.padding - 0.5
    height, width = template.mask.shape
    mask.imshow(
        template.mask,
        cmap="Blues",
        vmin=0 if template.mask.min() >= 0 else None,
        extent=(left, left + width, top + height, top),
    )
    mask.set_xlim(-0.5, columns - 0.5)
    mask.set_ylim(rows - 0.5, -0.5)
    mask.set_frame_on(True)
    mask.spines[:].set_color("#BBBBBB")

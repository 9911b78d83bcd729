"""Chosen templates: patches, and the masks that say where they count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kesler.compact.predictor import chosen_steps
from kesler.dictionaries.steps import Template
from kesler.errors import KeslerError
from kesler.plots.drawing import INK, blank, grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class TemplatesDisplay:
    """Templates in the order of choice: above the patch, below the mask in the image's frame.

    Parameters
    ----------
    templates : sequence of Template
        As `dictionary.step(candidate)` returns them.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure drawn on.
    axes_ : array of matplotlib Axes, of shape (n_templates, 2)
        Those of each patch, from black (least) to white, and of its mask, the darker the more a
        response counts where the patch's middle is there.

    Raises
    ------
    KeslerError
        If there is no template, or a step is none; on drawing, if matplotlib is not installed.

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
            raise KeslerError("there is nothing to draw: give one template at least")
        other = next((each for each in templates if not isinstance(each, Template)), None)
        if other is not None:
            raise KeslerError(
                f"a {type(other).__name__} is no template, and cannot be drawn as one: draw "
                "ChosenFeaturesDisplay"
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
            Fitted over templates.
        most : int, default 30
            How many are shown.
        figure : Figure, optional
            To draw on; a new one by default.
        """
        return cls(chosen_steps(model)[0][:most]).plot(figure)

    def plot(self, figure: Figure | None = None) -> TemplatesDisplay:
        """Draw on a new figure, unless one is given; return the display itself."""
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
            "Chosen templates, and where they count", x=0.01, ha="left", color=INK, fontsize=11
        )
        return self


def _draw(axes: Sequence[Axes], template: Template) -> None:
    patch, mask = axes
    patch.imshow(template.patch, cmap="gray")
    rows, columns = template.image_shape
    # Masks say where a patch's top left corner is; they are drawn where its middle is.
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

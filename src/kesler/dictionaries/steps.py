"""Steps, which compute single candidates from an instance, for exports, names and costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Step(ABC):
    """The computation of one candidate's columns from an instance.

    Attributes
    ----------
    width : int
        The number of columns.
    """

    width: int = 1

    @property
    @abstractmethod
    def cost(self) -> int:
        """Multiply-accumulates per instance, without those for weights."""

    @abstractmethod
    def name(self, features: Sequence[str]) -> str:
        """Return the name of the candidate, given the names of the features."""


@dataclass(frozen=True)
class Column(Step):
    """Feature `index` itself."""

    index: int

    @property
    def cost(self) -> int:
        """The cost, which is 0."""
        return 0

    def name(self, features: Sequence[str]) -> str:
        """Return the feature's name."""
        return features[self.index]


@dataclass(frozen=True)
class Product(Step):
    """Feature `left` times feature `right`."""

    left: int
    right: int

    @property
    def cost(self) -> int:
        """The cost: one multiplication."""
        return 1

    def name(self, features: Sequence[str]) -> str:
        """Return the product of the features' names."""
        return f"{features[self.left]} * {features[self.right]}"


@dataclass(frozen=True)
class Stump(Step):
    """1 where feature `index` is below `threshold`, else 0."""

    index: int
    threshold: float

    @property
    def cost(self) -> int:
        """The cost, which is 0: there is only a comparison."""
        return 0

    def name(self, features: Sequence[str]) -> str:
        """Return the condition."""
        return f"{features[self.index]} < {self.threshold:.6g}"


@dataclass(frozen=True, eq=False)
class Piece(Step):
    """[1, x - centre] if x is closer than `radius` to `centre`, else zeros."""

    centre: Floats
    radius: float

    @property
    def width(self) -> int:  # type: ignore[override]
        """Number of columns: the constant and one per feature."""
        return len(self.centre) + 1

    @property
    def cost(self) -> int:
        """The cost of the distance."""
        return len(self.centre)

    def name(self, features: Sequence[str]) -> str:
        """Return the radius and the first coordinates of the centre."""
        first = ", ".join(f"{value:.3g}" for value in self.centre[:3])
        return f"within {self.radius:.4g} of [{first}{', ...' if len(self.centre) > 3 else ''}]"


@dataclass(frozen=True, eq=False)
class Template(Step):
    r"""The largest response of a patch anywhere in an image, weighted by a mask over positions.

    .. math:: \max_p \; g_p \frac{\langle w, x_p \rangle}{\sigma(x_p) + c}

    for the window x_p of the patch's size at position p, whose pixels have the standard deviation
    sigma. Without c the denominator is 1.

    Parameters
    ----------
    image_shape : (int, int)
        Rows and columns of the image, whose pixels are the features in row-major order.
    patch : array of shape (rows, columns)
        w.
    mask : array of shape (image_rows + 2 padding - rows + 1, the same for columns)
        g: a weight for each position of the patch's top left corner in the padded image.
    padding : int
        Width of the border of zeros around the image.
    fading : float or None
        c, in the units of pixels. Responses are normalised by the window's contrast, less strongly
        for larger c. None is no normalisation.
    """

    image_shape: tuple[int, int]
    patch: Floats
    mask: Floats
    padding: int = 0
    fading: float | None = None

    @property
    def cost(self) -> int:
        """The cost of the patch on the mask's bounding box, mask weights, and contrasts if any."""
        per_place = self.patch.size * (1 if self.fading is None else 2)
        return area(box_of(self.mask != 0)) * per_place + int(np.count_nonzero(self.mask))

    def name(self, features: Sequence[str]) -> str:
        """Return the patch's size and the position of the mask's maximum."""
        row, column = np.unravel_index(self.mask.argmax(), self.mask.shape)
        rows, columns = self.patch.shape
        return f"template {rows}x{columns} near ({row}, {column})"


def box_of(needed: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the bounding box of needed places: first row, end, first column, end.

    Examples
    --------
    >>> box_of(np.array([[False, False], [False, True]])).tolist()
    [1, 2, 1, 2]
    """
    ends = list[int]()
    for axis in (1, 0):
        seen = np.flatnonzero(needed.any(axis=axis))
        ends += [seen[0], seen[-1] + 1] if len(seen) else [0, 0]
    return np.array(ends, dtype=np.int64)


def area(box: npt.NDArray[np.int64]) -> int:
    """Return the number of places in a box."""
    return int((box[1] - box[0]) * (box[3] - box[2]))

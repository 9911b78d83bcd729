"""How single candidates are computed from an instance: what exports, names and costs go by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Step(ABC):
    """How one candidate's columns follow from an instance.

    Attributes
    ----------
    width : int
        How many columns it has.
    """

    width: int = 1

    @property
    @abstractmethod
    def cost(self) -> int:
        """Multiply-accumulates per instance, its weights apart."""

    @abstractmethod
    def name(self, features: Sequence[str]) -> str:
        """Return what to call it, by the names of the features."""


@dataclass(frozen=True)
class Column(Step):
    """Feature `index` as it is."""

    index: int

    @property
    def cost(self) -> int:
        """None."""
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
        """One product."""
        return 1

    def name(self, features: Sequence[str]) -> str:
        """Return both names."""
        return f"{features[self.left]} * {features[self.right]}"


@dataclass(frozen=True)
class Stump(Step):
    """1 where feature `index` is below `threshold`, else 0."""

    index: int
    threshold: float

    @property
    def cost(self) -> int:
        """A comparison only."""
        return 0

    def name(self, features: Sequence[str]) -> str:
        """Return the condition."""
        return f"{features[self.index]} < {self.threshold:.6g}"


@dataclass(frozen=True, eq=False)
class Piece(Step):
    """[1, x - centre] where x is nearer than `radius` to `centre`, else zeros."""

    centre: Floats
    radius: float

    @property
    def width(self) -> int:  # type: ignore[override]
        """One column a feature, and the constant."""
        return len(self.centre) + 1

    @property
    def cost(self) -> int:
        """The distance."""
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
        Rows and columns of the image, whose pixels are the features, row by row.
    patch : array of shape (rows, columns)
        w.
    mask : array of shape (image_rows + 2 padding - rows + 1, the same of columns)
        g: a weight for each position of the patch's top left corner in the padded image.
    padding : int
        How many zeros the image has around it.
    fading : float or None
        c: responses are taken relative to the window's contrast, the less so the larger c is, in
        the units of pixels. None takes them as they are.
    """

    image_shape: tuple[int, int]
    patch: Floats
    mask: Floats
    padding: int = 0
    fading: float | None = None

    @property
    def cost(self) -> int:
        """A patch on the box of places that the mask needs, weights, and contrasts if asked."""
        per_place = self.patch.size * (1 if self.fading is None else 2)
        return area(box_of(self.mask != 0)) * per_place + int(np.count_nonzero(self.mask))

    def name(self, features: Sequence[str]) -> str:
        """Return the patch's size and where the mask is highest."""
        row, column = np.unravel_index(self.mask.argmax(), self.mask.shape)
        rows, columns = self.patch.shape
        return f"template {rows}x{columns} near ({row}, {column})"


def box_of(needed: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the first row and column that are needed, and those after the last.

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
    """Return how many places a box holds."""
    return int((box[1] - box[0]) * (box[3] - box[2]))

"""Images as rows of pixels: their shape."""

from __future__ import annotations

from math import isqrt

from kesler.errors import KeslerError


def image_shape_of(n_pixels: int, given: tuple[int, int] | None) -> tuple[int, int]:
    """Return the rows and columns of images of so many pixels, square ones unless given.

    Raises
    ------
    KeslerError
        If no image of that shape has so many pixels.
    """
    side = isqrt(n_pixels)
    rows, columns = (side, side) if given is None else map(int, given)
    if rows < 1 or rows * columns != n_pixels:
        said = "square images" if given is None else f"images of {rows}x{columns}"
        raise KeslerError(
            f"rows of {n_pixels} pixels are no {said}: say image_shape=(rows, columns)"
        )
    return rows, columns

"""The values of chosen features on rows, by kind, in NumPy alone.

An exported Python module holds these very functions, copied: they may use nothing but `np`, `npt`
and `sliding_window_view`, and no function may call another.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view


def columns(X: npt.NDArray[np.float64], index: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return features as they are."""
    return X[:, index]


def products(
    X: npt.NDArray[np.float64], left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return products of two features."""
    return np.asarray(X[:, left] * X[:, right])


def stumps(
    X: npt.NDArray[np.float64], index: npt.NDArray[np.int64], threshold: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return 1 where a feature is below its threshold, else 0."""
    return (X[:, index] < threshold).astype(np.float64)


def pieces(
    X: npt.NDArray[np.float64],
    centres: npt.NDArray[np.float64],
    centre: npt.NDArray[np.int64],
    squared_radius: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return 1 and the offset from a centre where rows are near to it, else zeros."""
    values = np.zeros((len(X), len(centre), 1 + X.shape[1]))
    for number, point in enumerate(centres):
        offsets = X - point
        distances = np.square(offsets).sum(axis=1)
        for i in np.flatnonzero(centre == number):
            near = distances < squared_radius[i]
            values[near, i, 0] = 1.0
            values[near, i, 1:] = offsets[near]
    return values.reshape(len(X), -1)


def templates(
    X: npt.NDArray[np.float64],
    image_shape: tuple[int, int],
    padding: int,
    fading: float | None,
    patches: npt.NDArray[np.float64],
    masks: npt.NDArray[np.float64],
    patch: npt.NDArray[np.int64],
    mask: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """Return the largest masked responses of patches, image by image."""
    values = np.empty((len(X), len(patch)))
    flat_patches = patches.reshape(len(patches), -1).T
    weights = masks.reshape(len(masks), -1).T[:, mask]
    for i, pixels in enumerate(X):
        image = np.pad(pixels.reshape(image_shape), padding)
        windows = sliding_window_view(image, patches.shape[1:]).reshape(len(weights), -1)
        responses = windows @ flat_patches
        if fading is not None:
            responses /= windows.std(axis=1, keepdims=True) + fading
        values[i] = (responses[:, patch] * weights).max(axis=0)
    return values

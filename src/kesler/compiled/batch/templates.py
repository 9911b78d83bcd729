"""Templates: the largest response of each patch at the places of a mask."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import FLOAT_STACK, FLOAT_TABLE, inlined, kernel


def _read(kind, n_dimensions):
    return types.Array(kind, n_dimensions, "C", readonly=True)


@kernel(
    types.void(_read(types.float32, 3), _read(types.int64, 1), _read(types.float32, 1), FLOAT_STACK)
)
def weigh_maxima(responses, places, weights, maxima):
    """Raise each patch's maximum, in maxima[:, 0], to its largest weighted response at the places.

    `responses` has one row per place of each image and one column per patch: the inner loop runs
    over patches, which are contiguous in memory.
    """
    for image in range(responses.shape[0]):
        for i in range(places.shape[0]):
            place, weight = np.uintp(places[i]), weights[i]
            for patch in range(maxima.shape[2]):
                weighted = weight * responses[image, place, patch]
                largest = maxima[image, 0, patch]
                maxima[image, 0, patch] = weighted if weighted > largest else largest


@inlined
def _divide_by_contrast(windows, image, fading, moments):
    means, shares = moments[0], moments[1]
    n_pixels, n_places = windows.shape[1], windows.shape[2]
    size = np.float32(n_pixels)
    for place in range(n_places):
        means[place] = shares[place] = np.float32(0)
    for p in range(n_pixels):
        for place in range(n_places):
            means[place] += windows[image, p, place]
    for place in range(n_places):
        means[place] /= size
    for p in range(n_pixels):
        for place in range(n_places):
            off = windows[image, p, place] - means[place]
            shares[place] += off * off
    for place in range(n_places):
        shares[place] = np.float32(1) / (np.sqrt(shares[place] / size) + fading)
    for p in range(n_pixels):
        for place in range(n_places):
            windows[image, p, place] *= shares[place]


@kernel(
    types.void(
        _read(types.float32, 3), types.int64, types.int64, types.float32, FLOAT_STACK, FLOAT_TABLE
    )
)
def cut_windows(images, n_rows, n_columns, fading, windows, moments):
    """Copy the window at each place, divided by its standard deviation plus `fading`.

    There is no division if `fading` is infinite. `windows` has one row per pixel of a patch and one
    column per place: the inner loops run over places. `moments` is a buffer of two such rows.
    """
    height, width = images.shape[1] - n_rows + 1, images.shape[2] - n_columns + 1
    for image in range(images.shape[0]):
        for i in range(n_rows):
            for j in range(n_columns):
                for top in range(height):
                    for left in range(width):
                        pixel = images[image, top + i, left + j]
                        windows[image, i * n_columns + j, top * width + left] = pixel
        if np.isfinite(fading):
            _divide_by_contrast(windows, image, fading, moments)

"""Patches: small windows of images, clustered by shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError

Singles = npt.NDArray[np.float32]

# Patches drawn for the clustering, at most.
N_DRAWN = 100_000
# Patches whose deviation is below this share of that of all pixels have no shape to speak of.
FLAT = 0.5
# Images that deviations of all pixels are measured on.
N_MEASURED = 2_000


def contrast_of(images: Singles) -> float:
    """Return the standard deviation of the pixels of images."""
    step = max(1, len(images) // N_MEASURED)
    return float(images[::step].std(dtype=np.float64))


def cluster_patches(
    images: Singles, n_patches: int, size: int, contrast: float, random: np.random.RandomState
) -> Singles:
    """Return the means of clusters of patches: mean 0, length 1, of shape (n, size, size).

    Raises
    ------
    KeslerError
        If there are fewer patches with any contrast than clusters.
    """
    from sklearn.cluster import MiniBatchKMeans

    drawn = shaped(_draw(images, size, contrast, random))
    if len(drawn) < n_patches:
        raise KeslerError(
            f"{n_patches} patches of {size}x{size} cannot be told apart among {len(drawn)} that "
            "are not flat: ask for fewer, or give images with more contrast"
        )
    means = MiniBatchKMeans(
        n_patches, batch_size=4096, n_init=1, max_iter=15, init="random", random_state=random
    ).fit(drawn)
    return shaped(means.cluster_centers_.astype(np.float32)).reshape(-1, size, size)


def shaped(patches: Singles) -> Singles:
    """Return patches, one a row, with mean 0 and length 1."""
    apart = patches - patches.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(apart, axis=1, keepdims=True)
    return np.asarray(apart / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def _draw(images: Any, size: int, contrast: float, random: np.random.RandomState) -> Singles:
    """Return patches from anywhere that are not flat, one a row."""
    places = np.array(images.shape[1:]) - size + 1
    n = int(min(4 * N_DRAWN, 4 * len(images) * places.prod()))
    which = random.randint(len(images), size=n)
    tops, lefts = random.randint(places[0], size=n), random.randint(places[1], size=n)
    windows = np.lib.stride_tricks.sliding_window_view(images, (size, size), axis=(1, 2))
    patches = windows[which, tops, lefts].reshape(n, -1)
    return np.asarray(patches[patches.std(axis=1) > FLAT * contrast][:N_DRAWN])

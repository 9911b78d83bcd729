"""Pieces: sums of residuals and their products with features over rings around centres."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import kernel

# Number of rows whose outer products are computed at a time, for all centres.
N_ROWS = 128


def _array(kind, n_dimensions, readonly=True):
    return types.Array(kind, n_dimensions, "C", readonly=readonly)


@kernel(
    [
        types.void(
            _array(types.uint8, 2),
            _array(kind, 2),
            _array(kind, 2),
            _array(kind, 3, readonly=False),
        )
        for kind in (types.float32, types.float64)
    ]
)
def add_outer_products(rings, X, residuals, sums):
    """Add (1, x) times the residuals of each row to the sum of its ring around each centre.

    The product is the same for all centres, so it is computed once and then added contiguously.
    """
    n_rows, n_classes = residuals.shape
    width = sums.shape[2]
    products = np.empty((N_ROWS, width), dtype=X.dtype)
    for start in range(0, n_rows, N_ROWS):
        n = min(N_ROWS, n_rows - start)
        for i in range(n):
            for k in range(n_classes):
                products[i, k] = residuals[start + i, k]
            for j in range(X.shape[1]):
                for k in range(n_classes):
                    products[i, (j + 1) * n_classes + k] = X[start + i, j] * residuals[start + i, k]
        for centre in range(rings.shape[0]):
            for i in range(n):
                ring = rings[centre, start + i]
                for place in range(width):
                    sums[centre, ring, place] += products[i, place]

"""Templates: how strongly a small patch answers anywhere in an image, under a mask of places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from kesler.dictionaries.dictionary import Dictionary, Floats, Ints, Pool, spread
from kesler.dictionaries.masks import grid_of_masks
from kesler.dictionaries.options import check_count, check_dense
from kesler.dictionaries.patches import cluster_patches, contrast_of
from kesler.dictionaries.responses import Family
from kesler.dictionaries.steps import Step, Template
from kesler.errors import KeslerError
from kesler.images import image_shape_of

Self = TypeVar("Self", bound="Templates")
Singles = npt.NDArray[np.float32]

# Rows of stored responses that are made or scored at once; rows that scales of codes are found on.
N_ROWS = 256
N_MEASURED = 2_000
# Codes reach this far beyond the responses that were measured.
HEADROOM = 1.25
N_CODES = 255


class Templates(Dictionary):
    r"""How strongly patches answer in an image, wherever under a mask they answer most.

    .. math:: x_{w, g} = \max_p \; g_p \frac{\langle w, x_p \rangle}{s(x_p) + c}

    over the places p of the window x_p, whose pixels have the standard deviation s. Patches w are
    means of clusters of the training images' own, of mean 0 and length 1; masks g are Gaussians
    about the points of a grid.

    Parameters
    ----------
    image_shape : (int, int) or None, default None
        Rows and columns of the images that rows of X hold, row by row. None: square ones.
    n_patches : int >= 1, default 500
        How many there are of each size. Candidates are these times sizes times masks: more leave
        more to choose from, and cost as much more.
    patch_sizes : sequence of ints >= 1, default (5, 7)
        Sides of the square patches, in pixels.
    n_masks : int >= 1, default 4
        Masks along each side of the grid: there are n_masks^2 for each size.
    mask_width : float > 0, default 0.23
        Their standard deviation, as a share of the longer side of the places. Wider masks say less
        about where a patch answered, and mind less where the image stands.
    fading : float >= 0 or None, default 0.15
        c, as a share of the standard deviation of all pixels. At 0 faint strokes answer as strongly
        as bold ones; large values count both as they are, and so does None, without the division.
    store : "float32" or "uint8", default "float32"
        How responses to the training images are kept while candidates are chosen. One byte takes a
        quarter of the memory, and chosen columns are computed again.
    random_state : int, RandomState or None, default None
        Of the patches and their clusters.

    Attributes
    ----------
    families_ : list of Family
        The patches and masks of each size.
    image_shape_ : (int, int)
    n_candidates_ : int

    Raises
    ------
    KeslerError
        If a parameter is out of its range, rows are sparse or have not as many pixels as the shape
        says, or a patch is larger than the image.

    Notes
    -----
    Responses take 4 bytes (or 1) an image and candidate, and are made once, in O(pixels of a patch)
    an image, place and patch; a round reads them once. `columns` makes chosen ones alone.

    References
    ----------
    Shalev-Shwartz, Wexler and Shashua (2011), Section 7.4.

    Examples
    --------
    >>> from kesler.dictionaries import Templates
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((50, 36))
    >>> templates = Templates(n_patches=3, patch_sizes=(3,), n_masks=2, random_state=0).fit(X)
    >>> templates.n_candidates_, templates.columns(X, np.array([0, 11])).shape
    (12, (50, 2))
    """

    families_: list[Family]
    image_shape_: tuple[int, int]

    def __init__(
        self,
        image_shape: tuple[int, int] | None = None,
        n_patches: int = 500,
        patch_sizes: Sequence[int] = (5, 7),
        n_masks: int = 4,
        mask_width: float = 0.23,
        fading: float | None = 0.15,
        store: Literal["float32", "uint8"] = "float32",
        random_state: Any = None,
    ) -> None:
        self.image_shape = image_shape
        self.n_patches = n_patches
        self.patch_sizes = patch_sizes
        self.n_masks = n_masks
        self.mask_width = mask_width
        self.fading = fading
        self.store = store
        self.random_state = random_state

    def fit(self: Self, X: Any, y: Any = None) -> Self:
        """Cluster patches of the images."""
        check_dense(X, "templates")
        self._require_parameters()
        self.image_shape_ = image_shape_of(X.shape[1], self.image_shape)
        random, images = check_random_state(self.random_state), self._images(X)
        contrast = contrast_of(images)
        fading = np.inf if self.fading is None else self.fading * contrast
        # A window without contrast answers nothing, not NaN.
        fading = max(fading, float(np.finfo(np.float32).tiny))
        sizes = [int(size) for size in self.patch_sizes]
        masks = [
            grid_of_masks(self._places(size), self.n_masks, float(self.mask_width))
            for size in sizes
        ]
        self.families_ = [
            Family(cluster_patches(images, self.n_patches, size, contrast, random), each, fading)
            for size, each in zip(sizes, masks, strict=True)
        ]
        self.n_candidates_ = sum(family.n_candidates for family in self.families_)
        return self

    def columns(self, X: Any, candidates: Ints) -> Singles:
        """Return the responses of some templates."""
        images, found = self._images(X), np.empty((X.shape[0], len(candidates)), np.float32)
        families, numbers = self._locate(candidates)
        for number in np.unique(families):
            here = np.flatnonzero(families == number)
            found[:, here] = self.families_[number].responses_of(images, numbers[here])
        return found

    def responses(self, X: Any) -> Singles:
        """Return the responses of all templates."""
        images = self._images(X)
        return np.hstack([family.responses(images) for family in self.families_])

    def pool(self, X: Any) -> Pool:
        """Return the training images by their responses to all templates."""
        return StoredResponses(self, X) if self.store == "float32" else CodedResponses(self, X)

    def step(self, candidate: int) -> Step:
        """Return the patch and the mask."""
        families, numbers = self._locate(np.array([candidate], dtype=np.int64))
        family = self.families_[families[0]]
        patch, mask = family.template(int(numbers[0]))
        fading = None if np.isinf(family.fading) else family.fading
        return Template(self.image_shape_, patch.astype(np.float64), mask.image(), fading=fading)

    def _locate(self, candidates: Ints) -> tuple[Ints, Ints]:
        """Return the family of each candidate, and its number there."""
        ends = np.cumsum([family.n_candidates for family in self.families_])
        families = np.searchsorted(ends, candidates, side="right")
        return families, candidates - np.concatenate([[0], ends])[families]

    def _images(self, X: Any) -> Singles:
        return np.ascontiguousarray(X, dtype=np.float32).reshape(-1, *self.image_shape_)

    def _places(self, size: int) -> tuple[int, int]:
        rows, columns = (side - size + 1 for side in self.image_shape_)
        if min(rows, columns) < 1:
            raise KeslerError(
                f"a patch of {size}x{size} is larger than an image of {self.image_shape_[0]}x"
                f"{self.image_shape_[1]}: name smaller patch_sizes"
            )
        return rows, columns

    def _require_parameters(self) -> None:
        check_count("n_patches", self.n_patches)
        check_count("n_masks", self.n_masks)
        if np.ndim(self.patch_sizes) != 1 or not len(self.patch_sizes):
            raise KeslerError(f"patch_sizes={self.patch_sizes!r} must be a list of sides in pixels")
        for size in self.patch_sizes:
            check_count("a patch size", size)
        if not (np.isfinite(self.mask_width) and self.mask_width > 0):
            raise KeslerError(f"mask_width={self.mask_width!r} must be a number above 0")
        if self.fading is not None and not 0 <= self.fading < np.inf:
            raise KeslerError(f"fading={self.fading!r} must be a number from 0, or None")
        if self.store not in ("float32", "uint8"):
            raise KeslerError(f'store={self.store!r} is not known: use "float32" or "uint8"')


class StoredResponses(Pool):
    """Training images by their responses, as they are."""

    def __init__(self, dictionary: Templates, X: Any) -> None:
        super().__init__(dictionary, X)
        self.table = np.empty((X.shape[0], dictionary.n_candidates_), np.float32)
        for rows, responses in _by_rows(dictionary, X):
            self.table[rows] = responses

    def columns(self, candidates: Ints) -> Singles:
        """Return some stored columns."""
        return self.table[:, candidates]

    def scores(self, residuals: Floats) -> Iterator[tuple[int, Floats]]:
        """Yield the scores of all templates at once."""
        yield 0, np.abs(residuals.astype(np.float32).T @ self.table).sum(axis=0, dtype=np.float64)

    def spreads(self, row_weights: Floats, *, centred: bool) -> Iterator[tuple[int, Floats]]:
        """Yield the spreads of all templates at once."""
        sums = np.zeros((2, self.n_candidates))
        ends = self.table.min(axis=0), self.table.max(axis=0)
        for start in range(0, len(self.table), N_ROWS):
            rows, q = self.table[start : start + N_ROWS], row_weights[start : start + N_ROWS]
            q = q.astype(np.float32)
            sums += q @ rows, q @ np.square(rows)
        yield 0, spread(sums[0], sums[1], ends, row_weights, centred=centred)


class CodedResponses(Pool):
    """Training images by their responses to one part in 255 of each template's range."""

    dictionary: Templates

    def __init__(self, dictionary: Templates, X: Any) -> None:
        super().__init__(dictionary, X)
        measured = dictionary.responses(X[:: max(1, X.shape[0] // N_MEASURED)])
        self.least = measured.min(axis=0)
        self.unit = np.maximum((measured.max(axis=0) - self.least) * (HEADROOM / N_CODES), 1e-30)
        self.codes = np.empty((X.shape[0], dictionary.n_candidates_), np.uint8)
        for rows, responses in _by_rows(dictionary, X):
            shares = (responses - self.least) / self.unit
            self.codes[rows] = np.clip(np.rint(shares), 0, N_CODES)

    def scores(self, residuals: Floats) -> Iterator[tuple[int, Floats]]:
        """Yield the scores of all templates at once."""
        residuals = residuals.astype(np.float32)
        products = np.zeros((residuals.shape[1], self.n_candidates))
        for start in range(0, len(self.codes), N_ROWS):
            rows = self.codes[start : start + N_ROWS].astype(np.float32)
            products += residuals[start : start + N_ROWS].T @ rows
        products = products * self.unit + np.outer(residuals.sum(axis=0), self.least)
        yield 0, np.abs(products).sum(axis=0)

    def spreads(self, row_weights: Floats, *, centred: bool) -> Iterator[tuple[int, Floats]]:
        """Yield the spreads of all templates at once."""
        sums = np.zeros((2, self.n_candidates))
        for start in range(0, len(self.codes), N_ROWS):
            rows = self.codes[start : start + N_ROWS] * self.unit + self.least
            q = row_weights[start : start + N_ROWS].astype(np.float32)
            sums += q @ rows, q @ np.square(rows)
        ends = self.least, self.least + N_CODES / HEADROOM * self.unit
        yield 0, spread(sums[0], sums[1], ends, row_weights, centred=centred)


def _by_rows(dictionary: Templates, X: Any) -> Iterator[tuple[slice, Singles]]:
    """Yield blocks of rows and their responses."""
    for start in range(0, X.shape[0], N_ROWS):
        rows = slice(start, start + N_ROWS)
        yield rows, dictionary.responses(X[rows])

"""Templates: the largest response of a small patch in an image, weighted by a mask of places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from kesler.data.rows import image_shape_of
from kesler.dictionaries.dictionary import (
    Dictionary,
    Floats,
    Ints,
    Pool,
    check_dense,
    spread,
)
from kesler.dictionaries.steps import Step, Template
from kesler.errors import KeslerError, integer_of, number_of, require_choice

Singles = npt.NDArray[np.float32]

# Mask weights below this are 0.
FAINT = 0.02
# Distance of the outermost mask centres from the border, as a share of the side length.
MARGIN = 0.1


@dataclass(frozen=True, eq=False)
class Mask:
    """Weights of places, stored sparsely.

    Parameters
    ----------
    shape : (int, int)
        The numbers of rows and columns of places of a patch's top left corner.
    places : int64 array
        The places with nonzero weights, numbered in row-major order.
    weights : float32 array of the same length
    """

    shape: tuple[int, int]
    places: Ints
    weights: Singles

    @classmethod
    def about(cls, shape: tuple[int, int], centre: tuple[float, float], width: float) -> Mask:
        """Return a Gaussian mask with a given centre and standard deviation, in places."""
        rows, columns = np.indices(shape)
        squares = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2
        weights = np.exp(-squares / (2 * width**2)).ravel()
        places = np.flatnonzero(weights >= min(FAINT, weights.max()))
        return cls(shape, places.astype(np.int64), weights[places].astype(np.float32))

    @property
    def least(self) -> float:
        """The lower bound of responses: 0 if a place has weight 0, else -inf."""
        return 0.0 if len(self.places) < self.shape[0] * self.shape[1] else -np.inf

    def image(self) -> npt.NDArray[np.float64]:
        """Return the weights of all places."""
        weights = np.zeros(self.shape)
        weights.flat[self.places] = self.weights
        return weights


def grid_of_masks(shape: tuple[int, int], n_side: int, width: float) -> list[Mask]:
    """Return masks whose centres form a grid of n_side by n_side places.

    `width` is the standard deviation of the masks as a share of the longer side.
    """
    sides = [np.linspace(MARGIN, 1 - MARGIN, n_side) if n_side > 1 else [0.5]] * 2
    deviation = max(width * max(shape), 1e-3)
    return [
        Mask.about(shape, (row * (shape[0] - 1), column * (shape[1] - 1)), deviation)
        for row in sides[0]
        for column in sides[1]
    ]


# Maximum number of patches sampled for clustering.
N_DRAWN = 100_000
# Patches are flat if their standard deviation is below this share of that of all pixels.
FLAT = 0.5
# Number of images from which statistics of all images are estimated.
N_MEASURED = 2_000


def contrast_of(images: Singles, weights: Any = None) -> float:
    """Estimate the standard deviation of the pixels of images, which may have weights."""
    step = max(1, len(images) // N_MEASURED)
    some = images[::step]
    if weights is None:
        return float(some.std(dtype=np.float64))
    powers = [np.square(some, dtype=np.float64), some.astype(np.float64)]
    square, mean = (np.average(each.mean(axis=(1, 2)), weights=weights[::step]) for each in powers)
    return float(np.sqrt(max(square - mean**2, 0.0)))


def cluster_patches(
    images: Singles,
    n_patches: int,
    size: int,
    contrast: float,
    random: np.random.RandomState,
    weights: Any = None,
) -> Singles:
    """Return the means of clusters of patches, each with mean 0 and length 1, (n, size, size).

    Patches are drawn from images in proportion to their weights.

    Raises
    ------
    KeslerError
        If there are fewer patches that are not flat than clusters.
    """
    from sklearn.cluster import MiniBatchKMeans

    drawn = shaped(_draw(images, size, contrast, random, weights))
    if len(drawn) < n_patches:
        raise KeslerError(
            f"{n_patches} clusters of patches of {size}x{size} cannot be found among {len(drawn)} "
            "that are not flat: choose a smaller n_patches, or give images with more contrast"
        )
    means = MiniBatchKMeans(
        n_patches, batch_size=4096, n_init=1, max_iter=15, init="random", random_state=random
    ).fit(drawn)
    return shaped(means.cluster_centers_.astype(np.float32)).reshape(-1, size, size)


def shaped(patches: Singles) -> Singles:
    """Return patches, one per row, normalised to mean 0 and length 1."""
    apart = patches - patches.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(apart, axis=1, keepdims=True)
    return np.asarray(apart / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def _draw(
    images: Any, size: int, contrast: float, random: np.random.RandomState, weights: Any
) -> Singles:
    """Return patches from random places that are not flat, one per row."""
    places = np.array(images.shape[1:]) - size + 1
    n = int(min(4 * N_DRAWN, 4 * len(images) * places.prod()))
    if weights is None:
        which = random.randint(len(images), size=n)
    else:
        which = random.choice(len(images), size=n, p=weights / weights.sum())
    tops, lefts = random.randint(places[0], size=n), random.randint(places[1], size=n)
    windows = np.lib.stride_tricks.sliding_window_view(images, (size, size), axis=(1, 2))
    patches = windows[which, tops, lefts].reshape(n, -1)
    return np.asarray(patches[patches.std(axis=1) > FLAT * contrast][:N_DRAWN])


# Block sizes of responses, in numbers (which should fit into the cache) and in patches.
ROOM = 1 << 19
N_TOGETHER = 128


@dataclass(frozen=True, eq=False)
class Family:
    """Patches of one size with their masks; the candidates of a mask have consecutive numbers.

    Parameters
    ----------
    patches : float32 array of shape (n_patches, rows, columns)
    masks : sequence of Mask
    fading : float
        The number added to the standard deviation of a window before division; infinite for no
        division.
    """

    patches: Singles
    masks: Sequence[Mask]
    fading: float

    @property
    def n_candidates(self) -> int:
        """Number of candidates: patches times masks."""
        return len(self.patches) * len(self.masks)

    def responses(self, images: Singles) -> Singles:
        """Return the responses of all candidates, shape (n_images, n_candidates)."""
        return self.responses_of(images, np.arange(self.n_candidates))

    def responses_of(self, images: Singles, candidates: Ints) -> Singles:
        """Return the responses of some candidates, computing only the patches that they need."""
        from kesler.compiled.batch.templates import cut_windows

        masks, patches = np.divmod(candidates, len(self.patches))
        found = np.empty((len(images), len(candidates)), np.float32)
        needed = np.unique(patches)
        n_rows, n_columns = self.patches.shape[1:]
        n_places = self.masks[0].shape[0] * self.masks[0].shape[1]
        step = max(1, ROOM // (n_places * max(n_rows * n_columns, min(len(needed), N_TOGETHER))))
        moments = np.empty((2, n_places), np.float32)
        for start in range(0, len(images), step):
            some = images[start : start + step]
            windows = np.empty((len(some), n_rows * n_columns, n_places), np.float32)
            cut_windows(some, n_rows, n_columns, np.float32(self.fading), windows, moments)
            for first in range(0, len(needed), N_TOGETHER):
                chosen = needed[first : first + N_TOGETHER]
                here = np.flatnonzero((patches >= chosen[0]) & (patches <= chosen[-1]))
                within = np.searchsorted(chosen, patches[here])
                maxima = self._maxima(windows, chosen, masks[here], within)
                found[start : start + step, here] = maxima
        return found

    def template(self, candidate: int) -> tuple[Singles, Mask]:
        """Return the patch and the mask of a candidate."""
        mask, patch = divmod(candidate, len(self.patches))
        return self.patches[patch], self.masks[mask]

    def _maxima(self, windows: Singles, chosen: Ints, masks: Ints, within: Ints) -> Singles:
        """Return the largest weighted responses for pairs of a mask and a chosen patch."""
        from kesler.compiled.batch.templates import weigh_maxima

        patches = np.ascontiguousarray(self.patches[chosen].reshape(len(chosen), -1).T)
        responses = windows.transpose(0, 2, 1) @ patches
        maxima = np.empty((len(windows), len(masks)), np.float32)
        for number in np.unique(masks):
            mask, here = self.masks[number], np.flatnonzero(masks == number)
            wanted = within[here]
            whole = np.array_equal(np.sort(wanted), np.arange(len(chosen)))
            used = responses if whole else np.ascontiguousarray(responses[:, :, wanted])
            largest = np.full((len(windows), 1, len(wanted)), mask.least, np.float32)
            weigh_maxima(used, mask.places, mask.weights, largest)
            maxima[:, here[np.argsort(wanted)] if whole else here] = largest[:, 0]
        return maxima


Self = TypeVar("Self", bound="Templates")

# Number of rows of stored responses that are computed or scored at once.
N_ROWS = 256
# The range of codes as a multiple of the measured range of responses.
HEADROOM = 1.25
N_CODES = 255


class Templates(Dictionary):
    r"""The largest responses of patches in an image, weighted by masks of places.

    .. math:: x_{w, g} = \max_p \; g_p \frac{\langle w, x_p \rangle}{s(x_p) + c}

    over the places p of the window x_p, whose pixels have the standard deviation s. Patches w are
    the means of clusters of patches from the training images, normalised to mean 0 and length 1;
    masks g are Gaussians centred at the points of a grid.

    Parameters
    ----------
    image_shape : (int, int) or None, default None
        Rows and columns of the images, which rows of X contain in row-major order. None is for
        square images.
    n_patches : int >= 1, default 500
        Number of patches of each size. The number of candidates is this times the numbers of sizes
        and masks; cost is proportional to it.
    patch_sizes : sequence of ints >= 1, default (5, 7)
        Sides of the square patches, in pixels.
    n_masks : int >= 1, default 4
        Number of masks along each side of the grid: there are n_masks^2 for each size.
    mask_width : float > 0, default 0.23
        Standard deviation of the masks, as a share of the longer side of the places. Wider masks
        are less specific about the place of a response, and more robust to shifts of the image.
    fading : float >= 0 or None, default 0.15
        c, as a share of the standard deviation of all pixels. At 0, faint strokes have the same
        responses as bold ones; large values and None, which omits the division, make responses
        proportional to contrast.
    store : "float32" or "uint8", default "float32"
        The type in which responses to the training images are stored during selection. "uint8"
        takes a quarter of the memory, and recomputes chosen columns.
    random_state : int, RandomState or None, default None
        Controls the sampling and clustering of patches.

    Attributes
    ----------
    families_ : list of Family
        The patches and masks of each size.
    image_shape_ : (int, int)
    n_candidates_ : int

    Raises
    ------
    KeslerError
        If a parameter is out of its range, rows are sparse or their number of pixels does not match
        the shape, or a patch is larger than the image.

    Notes
    -----
    Responses take 4 bytes (or 1) per image and candidate. They are computed once, at O(pixels of a
    patch) per image, place and patch; a round reads them once. `columns` computes only the
    requested ones.

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

    def fit(self: Self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster patches of the images."""
        check_dense(X, "templates")
        self._require_parameters()
        self.image_shape_ = image_shape_of(X.shape[1], self.image_shape)
        random, images = check_random_state(self.random_state), self._images(X)
        contrast = contrast_of(images, sample_weight)
        fading = np.inf if self.fading is None else self.fading * contrast
        # The response of a window without contrast is 0 instead of NaN.
        fading = max(fading, float(np.finfo(np.float32).tiny))
        sizes = [int(size) for size in self.patch_sizes]
        masks = [
            grid_of_masks(self._places(size), self.n_masks, float(self.mask_width))
            for size in sizes
        ]
        self.families_ = [
            Family(
                cluster_patches(images, self.n_patches, size, contrast, random, sample_weight),
                each,
                fading,
            )
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
        """Return the pool of training images, which stores the responses of all templates."""
        return StoredResponses(self, X) if self.store == "float32" else CodedResponses(self, X)

    def step(self, candidate: int) -> Step:
        """Return the step for a patch and mask."""
        families, numbers = self._locate(np.array([candidate], dtype=np.int64))
        family = self.families_[families[0]]
        patch, mask = family.template(int(numbers[0]))
        fading = None if np.isinf(family.fading) else family.fading
        return Template(self.image_shape_, patch.astype(np.float64), mask.image(), fading=fading)

    def _locate(self, candidates: Ints) -> tuple[Ints, Ints]:
        """Return the family of each candidate, and its number in the family."""
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
                f"{self.image_shape_[1]}: give smaller patch_sizes"
            )
        return rows, columns

    def _require_parameters(self) -> None:
        integer_of("n_patches", self.n_patches, 1)
        integer_of("n_masks", self.n_masks, 1)
        if np.ndim(self.patch_sizes) != 1 or not len(self.patch_sizes):
            raise KeslerError(f"patch_sizes={self.patch_sizes!r} must be a list of sides in pixels")
        for size in self.patch_sizes:
            integer_of("each of patch_sizes", size, 1)
        number_of("mask_width", self.mask_width, above=0)
        if self.fading is not None:
            number_of("fading", self.fading, ", or None", least=0)
        require_choice("store", self.store, ("float32", "uint8"))


class StoredResponses(Pool):
    """Training images with stored float32 responses."""

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
    """Training images with responses quantised to 1 byte over each template's range."""

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

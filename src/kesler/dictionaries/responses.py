"""Responses: how strongly patches of one size answer in images, under masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kesler.dictionaries.masks import Mask

Ints = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]

# Numbers in the responses that are worked out at once, which a cache should hold, and patches.
ROOM = 1 << 19
N_TOGETHER = 128


@dataclass(frozen=True, eq=False)
class Family:
    """Patches of one size and their masks; the candidates of a mask are numbered in a row.

    Parameters
    ----------
    patches : float32 array of shape (n_patches, rows, columns)
    masks : sequence of Mask
    fading : float
        What the standard deviation of a window is raised by before it divides; infinite for no
        division.
    """

    patches: Singles
    masks: Sequence[Mask]
    fading: float

    @property
    def n_candidates(self) -> int:
        """Patches times masks."""
        return len(self.patches) * len(self.masks)

    def responses(self, images: Singles) -> Singles:
        """Return the responses of all candidates, of shape (n_images, n_candidates)."""
        return self.responses_of(images, np.arange(self.n_candidates))

    def responses_of(self, images: Singles, candidates: Ints) -> Singles:
        """Return the responses of some candidates, at about their own cost."""
        from kesler.compiled.templates import cut_windows

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
        """Return a candidate's patch and mask."""
        mask, patch = divmod(candidate, len(self.patches))
        return self.patches[patch], self.masks[mask]

    def _maxima(self, windows: Singles, chosen: Ints, masks: Ints, within: Ints) -> Singles:
        """Return the largest weighted responses for pairs of a mask and a chosen patch."""
        from kesler.compiled.templates import weigh_maxima

        patches = np.ascontiguousarray(self.patches[chosen].reshape(len(chosen), -1).T)
        answers = windows.transpose(0, 2, 1) @ patches
        maxima = np.empty((len(windows), len(masks)), np.float32)
        for number in np.unique(masks):
            mask, here = self.masks[number], np.flatnonzero(masks == number)
            wanted = within[here]
            whole = np.array_equal(np.sort(wanted), np.arange(len(chosen)))
            taken = answers if whole else np.ascontiguousarray(answers[:, :, wanted])
            largest = np.full((len(windows), 1, len(wanted)), mask.least, np.float32)
            weigh_maxima(taken, mask.places, mask.weights, largest)
            maxima[:, here[np.argsort(wanted)] if whole else here] = largest[:, 0]
        return maxima

"""Recent rows: what a bandwidth is told from, in the distances between rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

RECENT = 64  # the PANEL of `kesler.compiled.supports`, which is not imported before the first trial

Arrays = dict[str, npt.NDArray[Any]]


class RecentRows:
    """The last rows that a learner over a kernel was given, and the median of their distances.

    The arrays are those of `kesler.compiled.supports.KernelLearner`.

    Parameters
    ----------
    share : sigma is this share of the median squared distance; 0 if it is fixed, and nothing kept.
    n_features : how many features there is room for.
    in_panel : whether all features of each row are kept, or lists of those that are not zero.
    """

    def __init__(self, share: float, n_features: int, *, in_panel: bool) -> None:
        self.share, self.in_panel = share, in_panel
        height = n_features if share and in_panel else 0
        self.panel = np.zeros((height, RECENT), dtype=np.float32)
        self.features = np.zeros((RECENT, 0), dtype=np.int64)
        self.values = np.zeros((RECENT, 0), dtype=np.float32)
        self.lengths = np.zeros(RECENT, dtype=np.int64)
        self.squared_norms = np.zeros(RECENT, dtype=np.float32)
        self.bandwidth = np.array([share, 0.0, 0.0, 0.0])

    @property
    def median(self) -> float:
        """The median squared distance, 0 before there is one."""
        return float(self.bandwidth[1])

    def make_room(self, longest: int) -> bool:
        """Make room for lists of so many non-zeros; return whether arrays have changed."""
        room = self.values.shape[1]
        if not self.share or self.in_panel or longest <= room:
            return False
        more = ((0, 0), (0, max(longest, 2 * room) - room))
        self.features, self.values = np.pad(self.features, more), np.pad(self.values, more)
        return True

    def arrays(self, n_features: int) -> Arrays:
        """Return what is kept, as a model file keeps it."""
        if not self.share:
            return {}
        found = {"recent_norms": self.squared_norms, "bandwidth": self.bandwidth}
        if self.in_panel:
            return {**found, "recent": self.panel[:n_features]}
        width = int(self.lengths.max())
        taken = np.arange(width) < self.lengths[:, None]
        return {
            **found,
            "recent_lengths": self.lengths,
            "recent_features": np.where(taken, self.features[:, :width], 0),
            "recent_values": np.where(taken, self.values[:, :width], np.float32(0)),
        }

    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` returned, having none yet, but room for the features."""
        if not self.share:
            return
        self.squared_norms[:], self.bandwidth[:] = arrays["recent_norms"], arrays["bandwidth"]
        if self.in_panel:
            self.panel[: len(arrays["recent"])] = arrays["recent"]
        else:
            self.lengths[:] = arrays["recent_lengths"]
            self.features = arrays["recent_features"].copy()
            self.values = arrays["recent_values"].copy()

    def own(self) -> None:
        """Copy arrays that may be a read-only memory map."""
        for name, array in vars(self).items():
            if isinstance(array, np.ndarray):
                setattr(self, name, array.copy())

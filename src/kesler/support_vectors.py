"""Support vectors: the rows and views that hypotheses over a Mercer kernel are sums of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

PANEL = 64  # as in `kesler.compiled.supports`, which is not imported before the first trial
OLDEST, NEXT = range(2)

Arrays = dict[str, npt.NDArray[Any]]


class SupportVectors:
    """The support vectors of each part of a learner, in arrays that grow.

    The arrays are those of `kesler.compiled.supports.KernelLearner`.

    Parameters
    ----------
    n_parts : the number of parts, each with support vectors of its own.
    n_features : how many features there is room for.
    in_panels : whether all features of each are kept, or lists of those that are not zero.

    Notes
    -----
    A support vector never changes its place within a panel, so that sums over lanes have the same
    bits whenever room was made, and whatever was forgotten before.
    """

    def __init__(self, n_parts: int, n_features: int, *, in_panels: bool) -> None:
        self.in_panels = in_panels
        self.counts = np.zeros((n_parts, 2), dtype=np.int64)
        shape = (n_parts, 0, n_features, PANEL) if in_panels else (n_parts, 1, 0, PANEL)
        self.panels = np.zeros(shape, dtype=np.float32)
        self.starts = np.zeros((n_parts, 1), dtype=np.int64)
        self.features = np.zeros((n_parts, 0), dtype=np.int64)
        self.values = np.zeros((n_parts, 0), dtype=np.float32)
        self.squared_norms = np.zeros((n_parts, 0), dtype=np.float32)
        self.entry_starts = np.zeros((n_parts, 1), dtype=np.int64)
        self.owners = np.zeros((n_parts, 0), dtype=np.int64)
        self.coefficients = np.zeros((n_parts, 0), dtype=np.float32)

    def in_use(self) -> list[int]:
        """Return how many support vectors each part has."""
        return [int(n) for n in self.counts[:, NEXT] - self.counts[:, OLDEST]]

    # ---- room -------------------------------------------------------------------------------

    def make_room(self, n_supports: int, n_entries: int, n_values: int) -> bool:
        """Make room for so many more of each in every part; return whether arrays have changed."""
        if self._has_room(n_supports, n_entries, n_values):
            return False
        self._drop_forgotten()
        ends = self._ends()
        room = _doubled(self.squared_norms.shape[1], ends[0] + n_supports)
        self.squared_norms = _grown(self.squared_norms, 1, room)
        self.entry_starts = _grown(self.entry_starts, 1, room + 1)
        if self.in_panels:
            self.panels = _grown(self.panels, 1, room // PANEL)
        else:
            self.starts = _grown(self.starts, 1, room + 1)
            room = _doubled(self.values.shape[1], ends[2] + n_values)
            self.features = _grown(self.features, 1, room)
            self.values = _grown(self.values, 1, room)
        room = _doubled(self.owners.shape[1], ends[1] + n_entries)
        self.owners = _grown(self.owners, 1, room)
        self.coefficients = _grown(self.coefficients, 1, room)
        return True

    def _has_room(self, n_supports: int, n_entries: int, n_values: int) -> bool:
        supports, entries, values = self._ends()
        return (
            supports + n_supports <= self.squared_norms.shape[1]
            and entries + n_entries <= self.owners.shape[1]
            and (self.in_panels or values + n_values <= self.values.shape[1])
        )

    def _ends(self) -> tuple[int, int, int]:
        """Return how many places are taken of support vectors, entries and values, at most."""
        following = self.counts[:, NEXT]
        parts = np.arange(len(following))
        entries = self.entry_starts[parts, following].max()
        values = 0 if self.in_panels else self.starts[parts, following].max()
        return int(following.max()), int(entries), int(values)

    def _drop_forgotten(self) -> None:
        """Move every part to the front, over whole panels of support vectors that are forgotten."""
        for part in range(len(self.counts)):
            n = int(self.counts[part, OLDEST]) // PANEL * PANEL
            if n:
                self._drop(part, n)

    def _drop(self, part: int, n: int) -> None:
        room = self.squared_norms.shape[1] - n
        self.squared_norms[part, :room] = self.squared_norms[part, n:]
        _drop_lists(self.entry_starts[part], n, self.owners[part], self.coefficients[part])
        if self.in_panels:
            panels = self.panels[part]
            panels[: room // PANEL] = panels[n // PANEL :]
            panels[room // PANEL :] = 0
        else:
            _drop_lists(self.starts[part], n, self.features[part], self.values[part])
        self.counts[part] -= n

    # ---- saving -----------------------------------------------------------------------------

    def arrays(self, n_features: int) -> Arrays:
        """Return what is in use, as a model file keeps it: the first panel whole."""
        found: Arrays = {}
        for part, (oldest, following) in enumerate(self.counts.tolist()):
            first = oldest // PANEL * PANEL
            span = slice(first, following)
            found[f"oldest.{part}"] = np.array([oldest - first])
            found[f"squared_norms.{part}"] = self.squared_norms[part, span]
            lists = _in_use(self.entry_starts[part], span, self.owners[part])
            found[f"entry_starts.{part}"], found[f"owners.{part}"], entries = lists
            found[f"coefficients.{part}"] = self.coefficients[part, entries]
            if self.in_panels:
                found[f"vectors.{part}"] = self._vectors(part, span, n_features)
            else:
                lists = _in_use(self.starts[part], span, self.features[part])
                found[f"starts.{part}"], found[f"features.{part}"], values = lists
                found[f"values.{part}"] = self.values[part, values]
        return found

    def _vectors(self, part: int, span: slice, n_features: int) -> npt.NDArray[np.float32]:
        """Return support vectors from the first of a panel on, one a row."""
        n = span.stop - span.start
        panels = self.panels[part, span.start // PANEL : -(-span.stop // PANEL), :n_features]
        rows = panels.transpose(0, 2, 1).reshape(len(panels) * PANEL, panels.shape[1])
        return rows[:n]

    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` returned, having none yet, but room for the features."""
        lengths = [
            [len(arrays[f"{name}.{part}"]) for part in range(len(self.counts))]
            for name in ("squared_norms", "owners")
        ]
        values = 0
        if not self.in_panels:
            values = max(len(arrays[f"values.{part}"]) for part in range(len(self.counts)))
        self.make_room(max(lengths[0]), max(lengths[1]), values)
        names = ["squared_norms", "entry_starts", "owners", "coefficients"]
        for part, n in enumerate(lengths[0]):
            self.counts[part] = arrays[f"oldest.{part}"][0], n
            if self.in_panels:
                self._put_vectors(part, arrays[f"vectors.{part}"])
            for name in names if self.in_panels else [*names, "starts", "features", "values"]:
                array = arrays[f"{name}.{part}"]
                getattr(self, name)[part, : len(array)] = array

    def _put_vectors(self, part: int, vectors: npt.NDArray[np.float32]) -> None:
        n_panels = -(-len(vectors) // PANEL)
        padded = np.zeros((n_panels * PANEL, vectors.shape[1]), dtype=np.float32)
        padded[: len(vectors)] = vectors
        panels = padded.reshape(n_panels, PANEL, vectors.shape[1]).transpose(0, 2, 1)
        self.panels[part, :n_panels, : vectors.shape[1]] = panels

    def own(self) -> None:
        """Copy arrays that may be a read-only memory map."""
        for name, array in vars(self).items():
            if isinstance(array, np.ndarray):
                setattr(self, name, array.copy())


def _in_use(
    starts: npt.NDArray[np.int64], span: slice, items: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], slice]:
    """Return where lists start, counted from the first of a span, their items, and where."""
    taken = slice(int(starts[span.start]), int(starts[span.stop]))
    return starts[span.start : span.stop + 1] - taken.start, items[taken], taken


def _drop_lists(starts: npt.NDArray[np.int64], n: int, *items: npt.NDArray[Any]) -> None:
    """Move lists to the front, over the first n."""
    base = int(starts[n])
    starts[: len(starts) - n] = starts[n:] - base
    for array in items:
        array[: len(array) - base] = array[base:]


def _doubled(room: int, needed: int) -> int:
    """Return room for `needed` and a quarter more: as it is, or at least twice as much."""
    wanted = needed + needed // 4
    return room if wanted <= room else -(-max(wanted, 2 * room) // PANEL) * PANEL


def _grown(array: npt.NDArray[Any], axis: int, room: int) -> npt.NDArray[Any]:
    """Return the array with zeros behind it along an axis, itself if it is that long."""
    if array.shape[axis] >= room:
        return array
    shape = [*array.shape]
    shape[axis] = room
    grown = np.zeros(shape, dtype=array.dtype)
    grown[tuple(slice(n) for n in array.shape)] = array
    return grown

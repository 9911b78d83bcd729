"""Support vectors: the rows and views that hypotheses over a Mercer kernel are sums of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.state.fields import (
    Arrays,
    allocated,
    array_of,
    bind,
    damaged,
    fields_of,
    require_valid,
    shape_of,
)
from kesler.state.records import SupportVectors as Record

PANEL = 64  # as in `kesler.compiled.kernels.supports`, which is not imported before the first trial


class SupportVectors:
    """The support vectors of each part of a learner, and recent rows, in arrays that grow.

    The arrays are those of :class:`kesler.state.records.SupportVectors`.

    Parameters
    ----------
    n_parts : the number of parts, each with support vectors of its own.
    n_features : how many features there is room for.
    in_panels : whether all features of each are kept, or lists of those that are not zero.
    share : sigma is this share of the median squared distance of recent rows; 0 if it is fixed, and
        no row is kept.

    Notes
    -----
    A support vector never changes its place within a panel, so that sums over lanes have the same
    bits whenever room was made, and whatever was forgotten before.
    """

    def __init__(self, n_parts: int, n_features: int, *, in_panels: bool, share: float) -> None:
        self.in_panels, self.share = in_panels, share
        self.lengths = {
            **dict.fromkeys(("panel", "value", "support", "entry", "longest"), 0),
            **dict.fromkeys(("list", "entry list"), 1),
            **{"part": n_parts, "panel feature": n_features, "recent feature": n_features},
        }
        if not in_panels:
            self.lengths |= {"panel": 1, "panel feature": 0}
        if not in_panels or not share:
            self.lengths["recent feature"] = 0
        self.n_features = n_features
        self.stored = allocated(fields_of(Record), self, self.lengths)
        self.stored["recent.bandwidth"]["share"] = share

    def bound(self, **settings: Any) -> Any:
        """Return the support vectors as the kernels take them."""
        places = np.zeros(self.n_features, dtype=np.int64)
        return bind(Record, self.stored | settings | {"places": places})

    @property
    def median(self) -> float:
        """The median squared distance of recent rows, 0 before there is one."""
        return float(self.stored["recent.bandwidth"]["median"][0])

    def in_use(self) -> list[int]:
        """Return how many support vectors each part has."""
        return [int(n) for n in self.stored["following"] - self.stored["oldest"]]

    # ---- room -------------------------------------------------------------------------------

    def make_room_for_features(self, n_features: int) -> None:
        """Make room for so many features."""
        self.n_features = n_features
        axes = ("panel feature", "recent feature")
        self._grow({axis: n_features for axis in axes if self._lists_features(axis)})

    def _lists_features(self, axis: str) -> bool:
        return self.in_panels and (axis == "panel feature" or bool(self.share))

    def reserve(self, n_supports: int, n_entries: int, n_values: int, longest: int) -> bool:
        """Make room for so many more of each in every part; return whether arrays have changed.

        Recent rows that are lists have room for `longest` non-zeros.
        """
        before, wanted = dict(self.lengths), {}
        if self.share and not self.in_panels and longest > before["longest"]:
            wanted["longest"] = max(longest, 2 * before["longest"])
        if not self._has_capacity(n_supports, n_entries, n_values):
            self._drop_forgotten()
            wanted |= self._more(n_supports, n_entries, n_values)
        self._grow(wanted)
        return bool(wanted)

    def _more(self, n_supports: int, n_entries: int, n_values: int) -> dict[str, int]:
        """Return the lengths of axes with room for so many more of each."""
        supports, entries, values = self._ends()
        capacity = _doubled(self.lengths["support"], supports + n_supports)
        found = {
            "support": capacity,
            "entry list": capacity + 1,
            "entry": _doubled(self.lengths["entry"], entries + n_entries),
        }
        if self.in_panels:
            return {**found, "panel": capacity // PANEL}
        room_for_values = _doubled(self.lengths["value"], values + n_values)
        return {**found, "list": capacity + 1, "value": room_for_values}

    def _grow(self, lengths: dict[str, int]) -> None:
        """Let axes be so long, with zeros behind what there is."""
        self.lengths |= lengths
        for name, field in fields_of(Record).items():
            if set(field.axes) & set(lengths):
                self.stored[name] = _enlarged(
                    self.stored[name], shape_of(field, self, self.lengths)
                )

    def _has_capacity(self, n_supports: int, n_entries: int, n_values: int) -> bool:
        supports, entries, values = self._ends()
        return (
            supports + n_supports <= self.lengths["support"]
            and entries + n_entries <= self.lengths["entry"]
            and (self.in_panels or values + n_values <= self.lengths["value"])
        )

    def _ends(self) -> tuple[int, int, int]:
        """Return how many places are taken of support vectors, entries and values, at most."""
        following = self.stored["following"]
        parts = np.arange(len(following))
        entries = self.stored["entry_starts"][parts, following].max()
        values = 0 if self.in_panels else self.stored["starts"][parts, following].max()
        return int(following.max()), int(entries), int(values)

    def _drop_forgotten(self) -> None:
        """Move every part to the front, over whole panels of support vectors that are forgotten."""
        for part, oldest in enumerate(self.stored["oldest"].tolist()):
            n = oldest // PANEL * PANEL
            if n:
                self._drop(part, n)

    def _drop(self, part: int, n: int) -> None:
        found = {name: array[part] for name, array in self._by_part().items()}
        capacity = self.lengths["support"] - n
        found["squared_norms"][:capacity] = found["squared_norms"][n:]
        _drop_lists(found["entry_starts"], n, found["owners"], found["coefficients"])
        if self.in_panels:
            panels = found["panels"]
            panels[: capacity // PANEL] = panels[n // PANEL :]
            panels[capacity // PANEL :] = 0
        else:
            _drop_lists(found["starts"], n, found["features"], found["values"])
        self.stored["oldest"][part] -= n
        self.stored["following"][part] -= n

    def _by_part(self) -> Arrays:
        return {n: a for n, a in self.stored.items() if fields_of(Record)[n].axes[:1] == ("part",)}

    # ---- saving -----------------------------------------------------------------------------

    def arrays(self, n_features: int) -> Arrays:
        """Return what is in use, as a model file keeps it: the first panel whole."""
        found = self._recent(n_features)
        for part, (oldest, following) in enumerate(
            zip(self.stored["oldest"].tolist(), self.stored["following"].tolist(), strict=True)
        ):
            own = {name: array[part] for name, array in self._by_part().items()}
            first = oldest // PANEL * PANEL
            span = slice(first, following)
            stored: Arrays = {
                "oldest": np.array([oldest - first]),
                "squared_norms": own["squared_norms"][span],
            }
            stored["entry_starts"], stored["owners"], entries = _in_use(
                own["entry_starts"], span, own["owners"]
            )
            stored["coefficients"] = own["coefficients"][entries]
            if self.in_panels:
                stored["vectors"] = self._vectors(part, span, n_features)
            else:
                stored["starts"], stored["features"], values = _in_use(
                    own["starts"], span, own["features"]
                )
                stored["values"] = own["values"][values]
            found |= {f"supports.{name}.{part}": array for name, array in stored.items()}
        return found

    def _recent(self, n_features: int) -> Arrays:
        """Return the recent rows, as a model file keeps them."""
        if not self.share:
            return {}
        stored = {n.removeprefix("recent."): a for n, a in self.stored.items() if "recent" in n}
        found = {
            "recent.squared_norms": stored["squared_norms"],
            "recent.bandwidth": array_of(stored["bandwidth"]),
        }
        if self.in_panels:
            return {**found, "recent.panel": stored["panel"][:n_features]}
        lengths = stored["lengths"]
        width = int(lengths.max())
        taken = np.arange(width) < lengths[:, None]
        return {
            **found,
            "recent.lengths": lengths,
            "recent.features": np.where(taken, stored["features"][:, :width], 0),
            "recent.values": np.where(taken, stored["values"][:, :width], np.float32(0)),
        }

    def _vectors(self, part: int, span: slice, n_features: int) -> npt.NDArray[np.float32]:
        """Return support vectors from the first of a panel on, one a row."""
        n, first = span.stop - span.start, span.start // PANEL
        panels = self.stored["panels"][part, first : -(-span.stop // PANEL), :n_features]
        rows = panels.transpose(0, 2, 1).reshape(len(panels) * PANEL, panels.shape[1])
        return rows[:n]

    def restore(self, arrays: Arrays, n_features: int, n_hypotheses: list[int]) -> None:
        """Take over what `arrays` returned, having none yet, but room for the features.

        Raises
        ------
        KeslerError
            If what a file brings does not go together.
        """
        parts = [_of_part(arrays, part) for part in range(self.lengths["part"])]
        for own, n in zip(parts, n_hypotheses, strict=True):
            _require_whole(own, n_features, n, in_panels=self.in_panels)
        longest = arrays["recent.values"].shape[1] if "recent.values" in arrays else 0
        most = [max(len(own[name]) for own in parts) for name in ("squared_norms", "owners")]
        n_values = 0 if self.in_panels else max(len(own["values"]) for own in parts)
        self.reserve(most[0], most[1], n_values, longest)
        for part, own in enumerate(parts):
            self._restore_part(part, own)
        if self.share:
            self._restore_recent(_recent_of(arrays, n_features, in_panels=self.in_panels))

    def _restore_part(self, part: int, own: Arrays) -> None:
        self.stored["oldest"][part] = own["oldest"][0]
        self.stored["following"][part] = len(own["squared_norms"])
        if self.in_panels:
            self._put_vectors(part, own["vectors"])
        for name, array in own.items():
            if name not in ("oldest", "vectors"):
                self.stored[name][part, : len(array)] = array

    def _restore_recent(self, recent: Arrays) -> None:
        for name, array in recent.items():
            target = self.stored[name]
            if fields_of(Record)[name].axes:
                target[tuple(map(slice, array.shape))] = array
            else:
                target[0] = tuple(array.tolist())

    def _put_vectors(self, part: int, vectors: npt.NDArray[np.float32]) -> None:
        n_panels = -(-len(vectors) // PANEL)
        padded = np.zeros((n_panels * PANEL, vectors.shape[1]), dtype=np.float32)
        padded[: len(vectors)] = vectors
        panels = padded.reshape(n_panels, PANEL, vectors.shape[1]).transpose(0, 2, 1)
        self.stored["panels"][part, :n_panels, : vectors.shape[1]] = panels

    def own(self) -> None:
        """Copy arrays that may be a read-only memory map."""
        self.stored = {name: array.copy() for name, array in self.stored.items()}


_KINDS = {"oldest": "int64", "entry_starts": "int64", "owners": "int64", "starts": "int64"}
_KINDS |= {"features": "int64", "values": "float32", "vectors": "float32"}
_KINDS |= {"squared_norms": "float32", "coefficients": "float32"}


def _of_part(arrays: Arrays, part: int) -> Arrays:
    """Return the arrays of one part, by their own names."""
    found = {name: arrays.get(f"supports.{name}.{part}") for name in _KINDS}
    own = {name: array for name, array in found.items() if array is not None}
    for name, array in own.items():
        if str(array.dtype) != _KINDS[name] or array.ndim != 1 + (name == "vectors"):
            raise damaged(f"{name} of part {part} is {array.dtype} of shape {array.shape}")
    return own


def _require_whole(own: Arrays, n_features: int, n_hypotheses: int, *, in_panels: bool) -> None:
    """Raise unless the arrays of a part go together."""
    lists = {"vectors"} if in_panels else {"starts", "features", "values"}
    if set(own) != lists | {"oldest", "squared_norms", "entry_starts", "owners", "coefficients"}:
        raise damaged(f"support vectors are {', '.join(sorted(own)) or 'missing'}")
    n = len(own["squared_norms"])
    if own["oldest"].shape != (1,) or not 0 <= own["oldest"][0] <= n:
        raise damaged(f"oldest support vector is {own['oldest']} of {n}")
    _require_lists("entry_starts", own["entry_starts"], n, own["owners"], own["coefficients"])
    _require_below("owners", own["owners"], n_hypotheses)
    if in_panels:
        if own["vectors"].shape != (n, n_features):
            raise damaged(f"support vectors have shape {own['vectors'].shape}")
    else:
        _require_lists("starts", own["starts"], n, own["features"], own["values"])
        _require_below("features", own["features"], n_features)
    for name, array in own.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise damaged(f"{name} of support vectors are not finite")


def _require_lists(name: str, starts: Any, n: int, *items: Any) -> None:
    """Raise unless n lists follow each other to the end of their items."""
    follow = len(starts) == n + 1 and starts[0] == 0 and (np.diff(starts) >= 0).all()
    if not follow or any(len(array) != starts[-1] for array in items):
        raise damaged(f"{name} of support vectors are not those of {n} lists")


def _require_below(name: str, numbers: Any, most: int) -> None:
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < most):
        raise damaged(f"{name} of support vectors go from {numbers.min()} to {numbers.max()}")


def _recent_of(arrays: Arrays, n_features: int, *, in_panels: bool) -> Arrays:
    """Return the recent rows of a file, by name, each as its field has it."""
    values = arrays.get("recent.values", np.empty((0, 0)))
    width = values.shape[1] if values.ndim == 2 else 0
    stored: dict[str, tuple[tuple[int, ...], int | None]] = {
        "recent.squared_norms": ((PANEL,), None),
        "recent.bandwidth": ((), None),
    }
    if in_panels:
        stored["recent.panel"] = ((n_features, PANEL), None)
    else:
        stored["recent.lengths"] = ((PANEL,), width)
        stored["recent.features"] = ((PANEL, width), n_features - 1)
        stored["recent.values"] = ((PANEL, width), None)
    for name, (shape, most) in stored.items():
        if name not in arrays:
            raise damaged(f"{name} is missing")
        require_valid(name, arrays[name], fields_of(Record)[name], shape, most)
    return {name: arrays[name] for name in stored}


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


def _doubled(capacity: int, needed: int) -> int:
    """Return room for `needed` and a quarter more: as it is, or at least twice as much."""
    wanted = needed + needed // 4
    return capacity if wanted <= capacity else -(-max(wanted, 2 * capacity) // PANEL) * PANEL


def _enlarged(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return the array with zeros behind it along its axes."""
    enlarged = np.zeros(shape, dtype=array.dtype)
    enlarged[tuple(map(slice, array.shape))] = array
    return enlarged

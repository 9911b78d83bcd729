"""Support vectors: the rows and views that hypotheses over a Mercer kernel are sums of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.state.fields import (
    Arrays,
    allocated,
    array_of,
    bind,
    checked,
    converted,
    damaged,
    fields_of,
    put,
    require_lists,
    shape_of,
)
from kesler.state.records import SupportVectors as Record

if TYPE_CHECKING:
    from kesler.budgets import Budget

    Limit = int | Budget | None
else:
    Limit = Any  # budgets that are no numbers are imported where they are used

PANEL = 64  # as in `kesler.compiled.kernels.supports`, which is not imported before the first trial


class SupportVectors:
    """The support vectors of each part of a learner, and recent rows, in arrays that grow.

    The arrays are those of :class:`kesler.state.records.SupportVectors`.

    Parameters
    ----------
    n_parts : number of parts, each with its own support vectors.
    n_features : capacity for features.
    in_panels : whether all features of a support vector are stored, or a list of its non-zeros.
    share : sigma is this share of the median squared distance of recent rows; 0 if sigma is fixed
        and no recent row is stored.
    budget : the maximum number of support vectors of a part and its policy, or None.
    is_averaged : whether the means of the coefficients after each trial predict.
    is_ordered : whether a part is ordered, so that there are thresholds between ranks.

    Notes
    -----
    A support vector never changes its place within a panel, so that sums over lanes have the same
    bits whenever arrays grow or old support vectors are dropped.
    """

    def __init__(
        self,
        n_parts: int,
        n_features: int,
        *,
        in_panels: bool,
        share: float,
        budget: Limit = None,
        is_averaged: bool = False,
        is_ordered: bool = False,
    ) -> None:
        self.in_panels, self.share, self.n_features = in_panels, share, n_features
        self.is_averaged, self.is_ordered = is_averaged, is_ordered
        given = (
            (budget or 0, 0, 0.0, False, False)
            if budget is None or isinstance(budget, int)
            else budget.settings
        )
        self.size, self.policy, self.eta, self.projects, self.is_measured = given
        self.lengths = {"part": n_parts, "rank": 0} | self._lengths()
        self.lengths |= self._feature_axes(n_features)
        self.stored = allocated(fields_of(Record), self, self.lengths)
        self.stored["recent.bandwidth"]["share"] = share

    def bound(self, **settings: Any) -> Any:
        """Return the record that compiled code takes."""
        settings["places"] = np.zeros(self.n_features, dtype=np.int64)
        settings |= {"budget": self.size, "policy": self.policy, "eta": self.eta}
        n_work = max(PANEL, self.lengths["support"]) if self.policy else 0
        every = np.arange(self.n_features if self.policy else 0)
        settings |= {"work": np.zeros((5, n_work)), "whole": np.zeros(len(every)), "every": every}
        return bind(Record, self.stored | converted(Record, settings))

    @property
    def median(self) -> float:
        """The median squared distance of recent rows; 0 before there is one."""
        return float(self.stored["recent.bandwidth"]["median"][0])

    def in_use(self) -> list[int]:
        """Return the number of support vectors of each part."""
        return [int(n) for n in self.stored["following"] - self.stored["oldest"]]

    @property
    def n_entries(self) -> int:
        """The largest number of entries that a part uses."""
        return self._ends()[1]

    # ---- capacity ---------------------------------------------------------------------------

    def _lengths(
        self, n_supports: int = 0, n_entries: int = 0, n_values: int = 0, longest: int = 0
    ) -> dict[str, int]:
        """Return the lengths of the axes for this many support vectors, entries and values."""
        return {
            "support": n_supports,
            "basis": min(n_supports, self.size) if self.projects else 0,
            "panel": -(-n_supports // PANEL) if self.in_panels else 1,
            "list": 1 if self.in_panels else 1 + n_supports,
            "entry list": 1 + n_supports,
            **{"entry": n_entries, "value": n_values, "longest": longest},
        }

    def _feature_axes(self, n_features: int) -> dict[str, int]:
        n = n_features if self.in_panels else 0
        return {"panel feature": n, "recent feature": n, "feature": n_features}

    def reserve_features(self, n_features: int) -> None:
        """Provide capacity for this many features."""
        self.n_features = n_features
        self._grow(self._feature_axes(n_features))

    def reserve_ranks(self, n_ranks: int) -> None:
        """Provide capacity for the thresholds of this many ranks."""
        self._grow({"rank": n_ranks})

    def reserve(self, n_supports: int, n_entries: int, n_values: int, longest: int) -> bool:
        """Provide capacity for this many more of each in every part; return whether arrays changed.

        Lists of recent rows get capacity for `longest` non-zeros.
        """
        found = {}
        if self.share and not self.in_panels and longest > self.lengths["longest"]:
            found["longest"] = max(longest, 2 * self.lengths["longest"])
        if not self._has_capacity(n_supports, n_entries, n_values):
            self._drop_unused()
            found = self._enlarged(n_supports, n_entries, n_values) | found
        self._grow(found)
        return bool(found)

    def _enlarged(self, n_supports: int, n_entries: int, n_values: int) -> dict[str, int]:
        """Return lengths of the axes with capacity for this many more of each."""
        (supports, entries, values), now = self._ends(), self.lengths
        return self._lengths(
            _doubled(now["support"], supports + n_supports),
            _doubled(now["entry"], entries + n_entries),
            0 if self.in_panels else _doubled(now["value"], values + n_values),
            now["longest"],
        )

    def _grow(self, lengths: dict[str, int]) -> None:
        """Enlarge the arrays along these axes; the new elements are 0."""
        self.lengths |= lengths
        for name, field in fields_of(Record).items():
            if set(field.axes) & set(lengths):
                before = self.stored[name]
                self.stored[name] = np.zeros(shape_of(field, self, self.lengths), before.dtype)
                put(before, self.stored[name])

    def _has_capacity(self, n_supports: int, n_entries: int, n_values: int) -> bool:
        supports, entries, values = self._ends()
        return (
            supports + n_supports <= self.lengths["support"]
            and entries + n_entries <= self.lengths["entry"]
            and (self.in_panels or values + n_values <= self.lengths["value"])
        )

    def _ends(self) -> tuple[int, int, int]:
        """Return the largest number of support vectors, entries and values that a part uses."""
        following = self.stored["following"]
        parts = np.arange(len(following))
        entries = self.stored["entry_starts"][parts, following].max()
        values = 0 if self.in_panels else self.stored["starts"][parts, following].max()
        return int(following.max()), int(entries), int(values)

    def _drop_unused(self) -> None:
        """Move each part to the front, over whole panels of support vectors no longer in use."""
        for part, oldest in enumerate(self.stored["oldest"].tolist()):
            n = oldest // PANEL * PANEL
            if n:
                self._drop(part, n)

    def _drop(self, part: int, n: int) -> None:
        own = {name: self.stored[name][part] for name in self._saved if "recent" not in name}
        _move_to_front(own["squared_norms"], n)
        _drop_lists(own["entry_starts"], n, own["owners"], own["coefficients"])
        if self.in_panels:
            _move_to_front(own["panels"], n // PANEL)
        else:
            _drop_lists(own["starts"], n, own["features"], own["values"])
        self.stored["oldest"][part] -= n
        self.stored["following"][part] -= n

    # ---- saving -----------------------------------------------------------------------------

    def arrays(self, n_features: int, n_ranks: int) -> Arrays:
        """Return the part of the arrays that is in use, which a model file stores."""
        self._drop_unused()
        recent = self.stored["recent.lengths"]
        used = self._lengths(*self._ends(), int(recent.max())) | self._feature_axes(n_features)
        used["rank"] = n_ranks
        for name in ("recent.features", "recent.values"):  # no more of the rows stored before
            self.stored[name][np.arange(self.lengths["longest"]) >= recent[:, None]] = 0
        return {
            f"supports.{name}": array_of(self.stored[name][tuple(map(slice, shape))])
            for name, field in self._saved.items()
            for shape in [shape_of(field, self, self.lengths | used)]
        }

    def restore(
        self, arrays: Arrays, n_features: int, n_hypotheses: list[int], n_ranks: int
    ) -> None:
        """Take over what `arrays` returned; there is only capacity for features and ranks so far.

        Raises
        ------
        KeslerError
            If an array is missing, or the arrays are inconsistent.
        """
        axes = {"support": "squared_norms", "entry": "owners", "value": "features"}
        axes["longest"] = "recent.features"
        found = {axis: arrays.get(f"supports.{name}") for axis, name in axes.items()}
        used = {axis: 0 if a is None else sum(a.shape[-1:]) for axis, a in found.items()}
        sizes = used["support"], used["entry"], used["value"], used["longest"]
        lengths = self.lengths | self._lengths(*sizes) | self._feature_axes(n_features)
        lengths["rank"] = n_ranks
        stored = checked(self._saved, self, lengths, arrays, "supports.")
        for part, n in enumerate(n_hypotheses):
            own = {name: array[part] for name, array in stored.items() if "recent" not in name}
            self._require_consistent(own, n)
        self.reserve(*sizes)
        for name, array in stored.items():
            put(array, self.stored[name])

    def _require_consistent(self, own: Arrays, n_hypotheses: int) -> None:
        """Raise unless the arrays of a part of a model file are consistent."""
        n = int(own["following"])
        if own["oldest"] > n:
            raise damaged(f"oldest support vector is {own['oldest']} of {n}")
        require_lists("supports.entry_starts", own["entry_starts"][: n + 1])
        owners = own["owners"][: own["entry_starts"][n]]
        if owners.size and owners.max() >= n_hypotheses:
            raise damaged(f"support vectors belong to hypothesis {owners.max()} of {n_hypotheses}")
        if not self.in_panels:
            require_lists("supports.starts", own["starts"][: n + 1])
        if self.projects:
            from kesler.learner.budgets import require_whole

            require_whole(n, int(own["oldest"]), self.size, own)

    @property
    def _saved(self) -> dict[str, Any]:
        """The fields that a model file stores."""
        return {name: each for name, each in fields_of(Record).items() if each.exists(self)}

    def own(self) -> None:
        """Copy arrays that may be a read-only memory map."""
        self.stored = {name: array.copy() for name, array in self.stored.items()}


def limit_of(budget: Any) -> Limit:
    """Return a budget; raise KeslerError unless it is None, an integer above 0 or a `Budget`."""
    if budget is None:
        return None
    from kesler.budgets import resolve_budget

    return resolve_budget(budget)


def _drop_lists(starts: npt.NDArray[np.int64], n: int, *items: npt.NDArray[Any]) -> None:
    """Remove the first n lists and their items."""
    base = int(starts[n])
    _move_to_front(starts, n)
    starts[: len(starts) - n] -= base
    starts[starts < 0] = 0
    for array in items:
        _move_to_front(array, base)


def _move_to_front(array: npt.NDArray[Any], n: int) -> None:
    """Remove the first n elements of an array; the elements behind the others become 0."""
    end = len(array) - n
    array[:end] = array[n:]
    array[end:] = 0


def _doubled(capacity: int, needed: int) -> int:
    """Return a capacity for `needed` and a quarter more: unchanged, or at least doubled."""
    wanted = needed + needed // 4
    return capacity if wanted <= capacity else -(-max(wanted, 2 * capacity) // PANEL) * PANEL

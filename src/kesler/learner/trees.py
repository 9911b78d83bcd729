"""Trees that count rows, and the rows from which they are grown, in arrays that grow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kesler.forests import ExtraTrees
from kesler.state.capacity import enlarged, require_memory
from kesler.state.fields import (
    Arrays,
    allocated,
    array_of,
    checked,
    damaged,
    fields_of,
    put,
    shape_of,
    size_of,
)
from kesler.state.forest import FEW, Forest

PREFIX = "forest."  # of the names of arrays in a model file
FIRST_GROWTH = 4  # rows after which the first tree is grown
MOST_NUMBERS = 1 << 25  # of the rows from which trees are grown
FEWEST_KEPT = 64
FIELDS = fields_of(Forest)
OF_NODES, OF_LEAVES = ("features", "cuts", "children"), ("owners", "amounts")


class Trees:
    """The arrays of :class:`kesler.state.forest.Forest`.

    Parameters
    ----------
    rule : the number of trees, and of the rows from which they are grown.
    """

    def __init__(self, rule: ExtraTrees) -> None:
        self.rule = rule
        self.stored: Arrays = {}
        self.lengths = {"tree": rule.n_trees, "slot": 0, "node": 1, "leaf": 1}
        self.reserve(0, 0)
        turns = np.arange(rule.n_trees) / rule.n_trees
        self.stored["due"][:] = np.ceil(FIRST_GROWTH * 2.0**turns)
        self.stored["features"][:] = -1
        self.stored["n_nodes"][:] = self.stored["n_leaves"][:] = 1

    @property
    def n_rows(self) -> int:
        """Number of rows so far."""
        return int(self.stored["grown"]["n_rows"][0])

    @property
    def gain_from_all_rows(self) -> bool:
        """Whether trees that are grown now are more than a quarter of the rows ahead of others."""
        return FEW <= self.n_rows <= int(self.stored["grown"]["limit"][0])

    def means(self, n_features: int) -> npt.NDArray[np.float32]:
        """Return the means of the features of the rows in the ring, 0 where all are missing."""
        n_rows = min(self.n_rows, self.lengths["slot"])
        values = self.stored["rows"][:n_features, :n_rows].astype(np.float64)
        n_known = np.maximum(1, (~np.isnan(values)).sum(axis=1))
        return np.asarray(np.nansum(values, axis=1) / n_known, dtype=np.float32)

    # ---- capacity ---------------------------------------------------------------------------

    def reserve(self, n_classes: int, n_features: int) -> None:
        """Provide capacity for classes and features."""
        self._grow({"class": n_classes, "feature": n_features})

    def reserve_rows(self, n_rows: int, n_features: int) -> bool:
        """Provide capacity for this many more rows; return whether arrays changed."""
        grown = self.stored["grown"]
        grown["n_features"] = n_features
        if not grown["limit"][0]:
            most = max(FEWEST_KEPT, MOST_NUMBERS // max(1, n_features))
            grown["limit"] = min(self.rule.n_rows, most)
        size = int(grown["limit"][0])
        needed, capacity = min(self.n_rows + n_rows, size), self.lengths["slot"]
        if needed <= capacity:
            return False
        n = min(enlarged(capacity, needed), size)
        self._grow({"slot": n, "node": 2 * n, "leaf": n})
        return True

    def _grow(self, lengths: dict[str, int]) -> None:
        """Enlarge the arrays along these axes; the new elements are 0."""
        self.lengths |= lengths
        fields = {n: f for n, f in FIELDS.items() if n not in self.stored or {*f.axes} & {*lengths}}
        n_bytes = size_of(fields, self, self.lengths)
        require_memory(n_bytes, f"trees of {self.lengths['slot']:,} rows")
        arrays = allocated(fields, self, self.lengths)
        for name in arrays.keys() & self.stored.keys():
            put(self.stored[name], arrays[name])
        self.stored |= arrays

    def own(self) -> None:
        """Copy arrays that may be a read-only memory map."""
        self.stored = {name: array.copy() for name, array in self.stored.items()}

    # ---- saving -----------------------------------------------------------------------------

    def arrays(self, n_classes: int, n_features: int) -> Arrays:
        """Return copies of the part of the arrays that is in use, which a model file stores."""
        used = self.lengths | {
            "slot": min(self.n_rows, self.lengths["slot"]),
            "node": int(self.stored["n_nodes"].max()),
            "leaf": int(self.stored["n_leaves"].max()),
            **{"class": n_classes, "feature": n_features},
        }
        found = {}
        for name, field in FIELDS.items():
            own = tuple(map(slice, shape_of(field, self, used)))
            found[PREFIX + name] = array_of(self.stored[name][own].copy())
        for names, count in ((OF_NODES, "n_nodes"), (OF_LEAVES, "n_leaves")):
            for name in names:  # no more of trees before, which had more of them
                array = found[PREFIX + name]
                array[np.arange(array.shape[1]) >= self.stored[count][:, None]] = 0
        return found

    def restore(self, arrays: Arrays, n_classes: int, n_features: int) -> None:
        """Take over what `arrays` returned.

        Raises
        ------
        KeslerError
            If an array is missing, or the arrays are inconsistent.
        """
        codes, nodes, leaves = (arrays.get(PREFIX + n) for n in ("codes", "cuts", "owners"))
        used = self.lengths | {
            "slot": 0 if codes is None else len(codes),
            **{
                axis: 0 if a is None else a.shape[1]
                for axis, a in (("node", nodes), ("leaf", leaves))
            },
            **{"class": n_classes, "feature": n_features},
        }
        stored = checked(FIELDS, self, used, arrays, PREFIX)
        self._require_consistent(stored, used)
        slots = used["slot"]
        used |= {"node": max(2 * slots, used["node"]), "leaf": max(slots, used["leaf"])}
        self._grow({axis: max(used[axis], self.lengths[axis]) for axis in used})
        for name, array in stored.items():
            put(array, self.stored[name])

    def _require_consistent(self, stored: Arrays, used: dict[str, int]) -> None:
        """Raise unless trees are trees, and rows are as many as they say."""
        n_rows, _, n_features, size = stored["grown"].tolist()
        if n_rows and n_features != used["feature"]:
            raise damaged(f"trees are grown from {n_features} features, not {used['feature']}")
        if size > self.rule.n_rows or used["slot"] != min(n_rows, size) or (n_rows and not size):
            raise damaged(f"trees are grown from {used['slot']} of {n_rows} rows, at most {size}")
        features, children = stored["features"], stored["children"]
        if features.max(initial=-1) >= used["feature"]:
            raise damaged(f"trees compare feature {features.max()} of {used['feature']}")
        nodes = np.arange(used["node"])
        is_node = nodes < stored["n_nodes"][:, None]
        is_leaf = features < 0
        ends = np.where(is_leaf, stored["n_leaves"][:, None], stored["n_nodes"][:, None] - 1)
        runs_on = ~is_leaf & (children <= nodes)
        if (is_node & (runs_on | (children >= ends))).any():
            raise damaged("nodes of trees have no children, or leaves no counts")

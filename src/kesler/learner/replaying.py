"""Learners that learn rows again: the reservoir of earlier rows, and the order of trials."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows
from kesler.preprocessing.replay import Replay
from kesler.state.fields import (
    Arrays,
    checked,
    damaged,
    fields_of,
    require_lists,
    valid_array,
)
from kesler.state.records import LearnerRecord, SavedLists

PREFIX = "replay."
STARTS, TABLE = PREFIX + "starts", PREFIX + "rows"

Array = TypeVar("Array", bound=npt.NDArray[Any])
Doubles = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Order:
    """The order in which new rows, and rows of the reservoir, are learnt.

    Parameters
    ----------
    sources : the row of each trial: number i is new row i, and -1 - s the row in slot s of the
        reservoir before them.
    again : whether it has been learnt before.
    """

    sources: npt.NDArray[np.int64]
    again: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.sources)

    def of(self, kept: Array, new: npt.NDArray[Any]) -> Array:
        """Return the values of the rows in this order, given those of the reservoir and new ones.

        Examples
        --------
        >>> order = Order(np.array([0, -2, 1, 0]), np.array([False, True, False, True]))
        >>> order.of(np.array([7, 8]), np.array([1, 2])).tolist()
        [1, 8, 2, 1]
        """
        is_new = self.sources >= 0
        found: Any = np.empty((len(self), *kept.shape[1:]), kept.dtype)
        found[is_new] = new[self.sources[is_new]]
        found[~is_new] = kept[-1 - self.sources[~is_new]]
        return found  # type: ignore[no-any-return]

    def room_for(self, results: Array) -> Array:
        """Return an array for the results of all trials; empty if those of new rows are."""
        n = len(self) if len(results) else 0
        return np.full((n, results.shape[1]), np.nan, results.dtype)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Interleaved:
    """New rows and, after each, those that are learnt again; takes the place of `Rows`.

    Parameters
    ----------
    rows : all of them, as trials learn them.
    new : the new rows as the reservoir keeps them.
    order : the order of `rows`.
    weights : the sample weights of `rows`.
    """

    rows: Rows
    new: Rows
    order: Order
    weights: Doubles


class KeptLists:
    """The rows of a reservoir, each with its features and values, which may differ in number.

    They are those of learners without an expansion, as trials learn them.
    """

    def __init__(self) -> None:
        self._lists: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]] = []

    def put(self, slots: Numbers, rows: Rows, numbers: Numbers) -> None:
        """Put rows of these numbers into slots, in ascending order without a gap after the last."""
        bounds = rows.indptr.tolist()
        for slot, i in zip(slots.tolist(), numbers.tolist(), strict=True):
            part = slice(bounds[i], bounds[i + 1])
            self._lists[slot : slot + 1] = [(rows.indices[part].copy(), rows.values[part].copy())]

    def among(self, order: Order, new: Rows) -> Rows:
        """Return new rows and rows that are kept, in this order."""
        is_new = order.sources >= 0
        slots, places = np.unique(-1 - order.sources[~is_new], return_inverse=True)
        numbers = order.sources + len(slots)
        numbers[~is_new] = places
        kept = replace(self._rows(slots), n_features=new.n_features, dense=new.dense)
        return Rows.concatenate([kept, new]).take(numbers)

    def _rows(self, slots: Numbers) -> Rows:
        lists = [self._lists[slot] for slot in slots.tolist()]
        if not lists:
            return Rows.empty(0)
        indices, values = map(np.concatenate, zip(*lists, strict=True))
        indptr = np.cumsum([0, *(len(each) for each, _ in lists)], dtype=np.int64)
        return Rows(indptr, indices, values, 0, dense=False)

    # ---- files ------------------------------------------------------------------------------

    def arrays(self) -> Arrays:
        """Return the arrays of :class:`kesler.state.records.SavedLists`, which a file stores."""
        rows = self._rows(np.arange(len(self._lists)))
        return {
            STARTS: rows.indptr,
            PREFIX + "features": rows.indices,
            PREFIX + "values": rows.values,
        }

    def restore(self, arrays: Arrays, n_rows: int, n_features: int) -> None:
        """Restore what `arrays` returned.

        Raises
        ------
        KeslerError
            If an array is missing, or they are not rows of this number and of these features.
        """
        n_entries = np.size(arrays.get(PREFIX + "values", ()))
        lengths = {"start": n_rows + 1, "kept entry": n_entries, "feature": n_features}
        found = checked(fields_of(SavedLists), self, lengths, arrays, PREFIX)
        require_lists(STARTS, found["starts"], n_entries)
        if (np.diff(found["starts"]) > n_features).any():
            raise damaged(f"{STARTS} has a row of more entries than the {n_features} features")
        starts, features, values = (found[name] for name in SavedLists._fields)
        rows = Rows(starts, features, values, n_features, dense=False)
        self.put(np.arange(n_rows), rows, np.arange(n_rows))


class ReplayingRows:
    """The part of a learner's state that replay reads and writes: the reservoir.

    Attributes
    ----------
    kept_lists : the rows of the reservoir; None where their inputs are in a table, of `stored`.
    keeps_table : whether the reservoir is a table of the inputs of an expansion.
    """

    replay: Replay | None
    half_life: float | None
    n_inputs: int
    n_features: int
    stored: Arrays
    kept_lists: KeptLists | None = None
    keeps_table = False
    _prepare: Any

    @property
    def _replays(self) -> bool:
        """Whether rows are learnt again after the next row."""
        assert self.replay is not None
        return int(self.stored["replay.offered"]["n_rows"][0]) < self.replay.end

    @property
    def _n_kept(self) -> int:
        """Number of rows in the reservoir."""
        if self.replay is None:
            return 0
        return min(self.replay.size, int(self.stored["replay.offered"]["n_rows"][0]))

    def _arranged(self, n_new: int) -> tuple[Order, npt.NDArray[np.int64]]:
        """Return the order of trials for new rows, and what the reservoir holds after them."""
        from kesler.compiled.trial.replay import arrange

        assert self.replay is not None
        n_drawn, size = self.replay.n_rows, self.replay.size
        decay = 1.0 if self.half_life is None else 2.0 ** (-1 / self.half_life)
        places = np.empty(size, dtype=np.int64)
        sources = np.empty(n_new * (1 + n_drawn), dtype=np.int64)
        again = np.empty(len(sources), dtype=np.bool_)
        n_before = int(self.stored["replay.offered"]["n_rows"][0])
        settings = n_drawn, self.replay.end, self.replay.start, size * (1 - decay)
        n = arrange(n_new, n_before, *settings, places, sources, again)
        return Order(sources[:n], again[:n]), places

    def _interleaved(
        self, order: Order, new: Rows, weights: Doubles | None
    ) -> tuple[Rows, Doubles]:
        """Return the rows and weights of all trials, as the reservoir keeps them."""
        if self.kept_lists is not None:
            rows = self.kept_lists.among(order, new)
        else:
            table = new.values.reshape(-1, self.n_inputs)
            rows = Rows.from_dense(order.of(self.stored["replay.rows"], table))
        own = np.ones(len(new)) if weights is None else weights
        return rows, order.of(self.stored["replay.weights"], own)

    def _keep(self, rows: Interleaved, codes: npt.NDArray[np.int32], n_learnt: int) -> None:
        """Offer to the reservoir the first rows of those that were to be learnt."""
        assert self.replay is not None
        _, places = self._arranged(n_learnt)
        slots = np.flatnonzero(places >= 0)
        chosen = places[slots]
        if self.kept_lists is not None:
            self.kept_lists.put(slots, rows.new, chosen)
        else:
            table = rows.new.values.reshape(-1, self.n_inputs)
            self.stored["replay.rows"][slots] = table[chosen]
        self.stored["replay.codes"][slots] = codes[chosen]
        self.stored["replay.weights"][slots] = rows.weights[~rows.order.again][chosen]
        offered = self.stored["replay.offered"]
        offered["n_rows"] = min(self.replay.end, int(offered["n_rows"][0]) + n_learnt)

    def _restore_lists(self, arrays: Arrays, n_inputs: int) -> None:
        """Restore the rows of the reservoir if these are lists; earlier files have a table."""
        if self.kept_lists is None:
            return
        if TABLE not in arrays:
            if n_inputs:
                raise damaged(f"{TABLE} is missing, a table of {n_inputs} features")
            self.kept_lists.restore(arrays, self._n_kept, self.n_features)
            return
        field, shape = fields_of(LearnerRecord)[TABLE], (self._n_kept, n_inputs)
        rows = self._prepare(Rows.from_dense(valid_array(TABLE, arrays, field, shape, {})))
        if rows.n_features != self.n_features:
            raise damaged(f"{TABLE} has {n_inputs} features, not those of its weights")
        self.kept_lists.put(np.arange(len(rows)), rows, np.arange(len(rows)))

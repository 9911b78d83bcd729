"""Learners that learn rows again: the reservoir of earlier rows, and the order of trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.preprocessing.replay import Replay
from kesler.state.fields import Arrays

PREFIX = "replay."

Array = TypeVar("Array", bound=npt.NDArray[Any])
Doubles = npt.NDArray[np.float64]


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
    table : the new rows as they were given, of shape (n_new, n_inputs).
    order : the order of `rows`.
    weights : the sample weights of `rows`.
    """

    rows: Rows
    table: npt.NDArray[np.float32]
    order: Order
    weights: Doubles


class ReplayingRows:
    """The part of a learner's state that replay reads and writes: the reservoir."""

    replay: Replay | None
    half_life: float | None
    n_inputs: int
    stored: Arrays

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
        self, order: Order, table: npt.NDArray[np.float32], weights: Doubles | None
    ) -> tuple[Rows, Doubles]:
        """Return the given rows and weights of all trials."""
        rows = Rows.from_dense(order.of(self.stored["replay.rows"], table))
        new = np.ones(len(table)) if weights is None else weights
        return rows, order.of(self.stored["replay.weights"], new)

    def _keep(self, rows: Interleaved, codes: npt.NDArray[np.int32], n_learnt: int) -> None:
        """Offer to the reservoir the first rows of those that were to be learnt."""
        assert self.replay is not None
        _, places = self._arranged(n_learnt)
        slots = np.flatnonzero(places >= 0)
        chosen = places[slots]
        self.stored["replay.rows"][slots] = rows.table[chosen]
        self.stored["replay.codes"][slots] = codes[chosen]
        self.stored["replay.weights"][slots] = rows.weights[~rows.order.again][chosen]
        offered = self.stored["replay.offered"]
        offered["n_rows"] = min(self.replay.end, int(offered["n_rows"][0]) + n_learnt)

    def _require_whole(self, rows: Rows) -> None:
        """Raise unless rows list every feature, as the reservoir keeps them."""
        if not rows.dense:
            raise KeslerError(
                f"{self.replay!r} keeps rows that list every feature, but these are sparse: give "
                "dense rows, or replay=0"
            )

"""Learners that expand rows: the layout of the blocks of features, and the expansion of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.learner.events import NONE_AGAIN
from kesler.preprocessing import Bins, Counts, Pairs, RandomFourier, Ranges, ZScores
from kesler.preprocessing.expansion import Expansion, width_of
from kesler.preprocessing.method import Preprocessing
from kesler.state.fields import Arrays, converted
from kesler.state.records import LearnerRecord

PREFIX, OF_RELEVANCE = "expansion.", "relevance."
NO_CODES = np.empty(0, dtype=np.int32)
NO_AMOUNTS = np.empty(0)


class ExpandingRows:
    """The part of a learner's state that its expansion reads and writes.

    Attributes
    ----------
    n_inputs : number of features of the rows before their expansion, 0 before the first row.
    """

    preprocessing: Preprocessing | None
    constant: float
    half_life: float | None
    stored: Arrays
    _record: Any
    n_inputs = 0

    @cached_property
    def expansion(self) -> Expansion | None:
        """The expansion of rows, None if rows are not expanded."""
        return self.preprocessing if isinstance(self.preprocessing, Expansion) else None

    @property
    def lists_all(self) -> bool:
        """Whether it can read only rows that list every feature."""
        return self.preprocessing is not None and not self.preprocessing.zero_at_zero

    @property
    def takes_missing(self) -> bool:
        """Whether values of rows that list every feature may be missing (NaN)."""
        return self.preprocessing is not None and self.preprocessing.takes_missing

    @cached_property
    def counts_words(self) -> bool:
        """Whether counts of the words of texts are read; they have the value 1 otherwise."""
        return isinstance(self.preprocessing, Counts)

    @property
    def has_z_scores(self) -> bool:
        """Whether features are replaced by their z-scores, without an expansion."""
        return isinstance(self.preprocessing, ZScores)

    @cached_property
    def is_informed(self) -> bool:
        """Whether features, or inputs, have weights in distances that follow from the classes."""
        of_inputs = self._block(RandomFourier)
        of_features = isinstance(self.preprocessing, Ranges) and self.preprocessing.information
        return of_features or (of_inputs is not None and of_inputs.information)

    @property
    def has_informed_norms(self) -> bool:
        """Whether the squared norms of support vectors contain such weights."""
        return self.is_informed and self.expansion is None

    @property
    def has_sample(self) -> bool:
        """Whether quantiles of the inputs are computed from a sample of rows."""
        return self._block(Bins) is not None or self._block(Pairs) is not None

    def _block(self, kind: type[Any]) -> Any:
        return None if self.expansion is None else self.expansion.block(kind)

    def width_of(self, n_inputs: int) -> int:
        """Return the number of features of rows in trials, the constant one included."""
        found = self._widths.get(n_inputs)
        if found is None:
            width = n_inputs if self.expansion is None else self.expansion.width(n_inputs)
            found = self._widths[n_inputs] = width + bool(self.constant)
        return found

    @cached_property
    def _widths(self) -> dict[int, int]:
        """The results of `width_of` so far."""
        return {}

    # ---- the state --------------------------------------------------------------------------

    def _expansion_lengths(self, n_features: int) -> dict[str, int]:
        """Return the lengths of the axes of the statistics of inputs, or of so many features."""
        bins, pairs, fourier = map(self._block, (Bins, Pairs, RandomFourier))
        return {
            "input": self.n_inputs,
            "measured": n_features if self.expansion is None else self.n_inputs,
            "edge": max(0, bins.bins_of(self.n_inputs) - 1) if bins else 0,
            "pair_edge": pairs.n_bins - 1 if pairs else 0,
            "projected": fourier.n_features if fourier and self.n_inputs else 0,
        }

    @staticmethod
    def fill_with_ones(weights: npt.NDArray[np.float64]) -> None:
        """Write weights of 1."""
        weights[:] = 1.0

    def fill_projection(self, projection: npt.NDArray[np.float32]) -> None:
        """Write the random projections."""
        if projection.size:
            projection[:] = self._block(RandomFourier).draw(self.n_inputs)[0]

    def fill_phases(self, phases: npt.NDArray[np.float32]) -> None:
        """Write the phases of the random projections."""
        if phases.size:
            phases[:] = self._block(RandomFourier).draw(self.n_inputs)[1]

    def _described_expansion(self) -> dict[str, Any]:
        """Return the settings of the record of the expansion."""
        z_scores, fourier, pairs = map(self._block, (ZScores, RandomFourier, Pairs))
        found = {
            **self._starts(),
            "constant": self.constant,
            "clip": z_scores.clip if z_scores else ZScores().clip,
            "bandwidth": fourier.bandwidth_of(self.n_inputs) if fourier else 1.0,
            "decay": 1.0 if self.half_life is None else 2.0 ** (-1 / self.half_life),
            "members": pairs.pairs_of(self.n_inputs) if pairs else np.empty((0, 2)),
        }
        named = {PREFIX + name: value for name, value in found.items()}
        named[OF_RELEVANCE + "prior"] = self._given_weights(fourier)
        return converted(LearnerRecord, named)

    def _given_weights(self, fourier: RandomFourier | None) -> Sequence[float]:
        """Return the given weights of the inputs, or of the features that a kernel compares."""
        if isinstance(self.preprocessing, Ranges):
            return self.preprocessing.parameters
        return fourier.scales_of(self.n_inputs) if fourier and self.n_inputs else ()

    def _starts(self) -> dict[str, int]:
        """Return the first feature of each block that has features, -1 for all others."""
        names = {ZScores: "scores", Bins: "bins", RandomFourier: "fourier", Pairs: "pairs"}
        found, start = dict.fromkeys(names.values(), -1), int(bool(self.constant))
        for block in () if self.expansion is None else self.expansion.blocks:
            width = width_of(block, self.n_inputs)
            if width:
                found[names[type(block)]] = start
            start += width
        return found

    def _require_inputs(self, n_inputs: int) -> None:
        """Raise unless rows have as many features as the first rows."""
        if n_inputs != self.n_inputs:
            raise KeslerError(
                f"rows have {n_inputs} features, but the first rows had {self.n_inputs}: give rows "
                "with the same features"
            )

    # ---- rows -------------------------------------------------------------------------------

    def _expanded(
        self,
        rows: Rows,
        *,
        lists_zeros: bool,
        learns: bool = False,
        codes: npt.NDArray[np.int32] = NO_CODES,
        weights: npt.NDArray[np.float64] | None = None,
        again: npt.NDArray[np.bool_] = NONE_AGAIN,
    ) -> Rows:
        """Return expanded rows, with the constant feature; learn the statistics if `learns`.

        Rows that have been learnt before, `again`, are not added to the statistics. All must have
        `n_inputs` features, and list all of them. Their `codes` are needed if it `is_informed`.

        Raises
        ------
        KeslerError
            If they have another number of features.
        """
        if rows.n_features != self.n_inputs:
            self._require_inputs(rows.n_features)
        width, n_rows = self.width_of(self.n_inputs), len(rows)
        n_entries = self.n_entries_of(lists_zeros=lists_zeros)
        indices = np.empty(n_rows * n_entries, dtype=np.int32)
        values = np.empty(n_rows * n_entries, dtype=np.float32)
        table = np.ascontiguousarray(rows.values, dtype=np.float32).reshape(n_rows, self.n_inputs)
        amounts = NO_AMOUNTS if weights is None else weights
        self._expand(table, codes, amounts, again, learns, lists_zeros, indices, values, n_entries)
        indptr = np.arange(n_rows + 1, dtype=np.int64) * n_entries
        return Rows(indptr, indices, values, width, dense=True)

    def _expand(self, *task: Any) -> None:
        from kesler.compiled.trial.expansion import expand

        expand(self._record.expansion, self._record.relevance, *task)

    def expand_into(
        self,
        table: npt.NDArray[np.float32],
        indices: npt.NDArray[np.int32],
        values: npt.NDArray[np.float32],
        codes: npt.NDArray[np.int32],
        *,
        lists_zeros: bool,
    ) -> None:
        """Write the entries of expanded rows to arrays, and learn the statistics of the rows."""
        known = codes if self.is_informed else NO_CODES
        n_entries = len(indices) // len(table)
        learning = known, NO_AMOUNTS, NONE_AGAIN, True, lists_zeros
        self._expand(table, *learning, indices, values, n_entries)

    def n_entries_of(self, *, lists_zeros: bool) -> int:
        """Return the number of entries of an expanded row, with or without the zeros of bins."""
        return self.width_of(self.n_inputs) if lists_zeros else self._n_listed

    @cached_property
    def _n_listed(self) -> int:
        """Number of entries of an expanded row without the zeros of bins."""
        bins, pairs = self._block(Bins), self._block(Pairs)
        zeros = 0
        if bins is not None:
            zeros += bins.width(self.n_inputs) - bool(bins.width(self.n_inputs)) * self.n_inputs
        if pairs is not None:
            zeros += pairs.width(self.n_inputs) - len(pairs.pairs_of(self.n_inputs))
        return self.width_of(self.n_inputs) - zeros

    def _kept_statistics(self) -> Arrays:
        """Return copies of the statistics of inputs."""
        edges = ("edges", "n_edges", "pair_edges", "n_pair_edges")
        names = ("moments", "missing", "sample", *edges, "seen")
        of_relevance = [name for name in self.stored if name.startswith(OF_RELEVANCE)]
        kept = [*(PREFIX + name for name in names), *of_relevance]
        return {name: self.stored[name].copy() for name in kept}

    def _put_statistics(self, kept: Arrays) -> None:
        """Restore statistics of inputs that were kept."""
        for name, array in kept.items():
            self.stored[name][:] = array

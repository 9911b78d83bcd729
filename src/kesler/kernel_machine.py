"""The machine over a Mercer kernel: its hypotheses are sums of support vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.answers import Kind
from kesler.classes import ClassTable, Newcomers
from kesler.conditioning import Conditioning, Ranges
from kesler.costs import Costs
from kesler.errors import KeslerError
from kesler.events import task_of_rows
from kesler.geometry import EUCLIDEAN, Metric
from kesler.hypotheses import Part, Shared, takes_ratings
from kesler.kernels import MercerKernel
from kesler.links import Link
from kesler.machine import LINEAR, Machine
from kesler.recent_rows import RecentRows
from kesler.support_vectors import SupportVectors
from kesler.updates import UpdateRule

if TYPE_CHECKING:
    from types import ModuleType

ROWS_AHEAD = 64


class KernelMachine(Machine):
    """One learner over a Mercer kernel, in all else as :class:`~kesler.machine.Machine`.

    Parameters
    ----------
    parts, rule, classes, constant, answer, costs, conditioning, half_life : as in `Machine`.
    link, averaged, metric, newcomers : refused unless linear, False, Euclidean and not "virtual",
        since there are no weights.
    kernel : the inner product of views.
    dense : whether rows list every feature.
    budget : the most support vectors that a part keeps, None for any number.

    Notes
    -----
    A trial that moves adds its row to each part without a map, and to each part with one the view
    of every class that moves: 4 bytes a feature if rows are dense, else 12 a non-zero, and 12 for
    each hypothesis that moves.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        rule: UpdateRule,
        classes: ClassTable,
        constant: float = 0.0,
        *,
        answer: Kind = "class",
        link: Link = LINEAR,
        averaged: bool = False,
        costs: Costs | None = None,
        metric: Metric = EUCLIDEAN,
        newcomers: Newcomers = "wait",
        conditioning: Conditioning | None = None,
        half_life: float | None = None,
        kernel: MercerKernel,
        dense: bool,
        budget: int | None = None,
    ) -> None:
        if averaged or link != LINEAR or rule.update is not None:
            asked = f"link={link!r}" if link != LINEAR else "averaged=True"
            raise KeslerError(
                f"{asked if rule.update is None else repr(rule)} is of weights, and over a kernel "
                "there are none: leave it out, or the kernel"
            )
        if not metric.is_euclidean or rule.metric is not None:
            raise KeslerError(
                f"{rule.metric or metric!r} gives each weight a step size, and over a kernel there "
                'are no weights: choose metric="euclidean" and a rule that goes with it, or leave '
                "the kernel out"
            )
        if newcomers == "virtual":
            raise KeslerError(
                'newcomers="virtual" gives a class the weights of a virtual one, and over a kernel '
                'there are none: choose newcomers="learn" or "wait"'
            )
        if takes_ratings(parts):
            raise KeslerError(
                "ratings by sub-experts are combined by weights, and with a kernel there are none: "
                "leave the kernel out, or the sub-experts"
            )
        if any(isinstance(part, Shared) and part.begins_at for part in parts):
            raise KeslerError(
                "begins_at is of weights, and over a kernel there are none: leave it out, or the "
                "kernel"
            )
        if isinstance(conditioning, Ranges) and not goes_by_distance(kernel, parts):
            raise KeslerError(
                f"{conditioning!r} changes the units of rows that were learnt from, and neither a "
                "kernel that is given whole vectors nor a feature map can follow: choose "
                'conditioning="z-scores", or the kernel "rbf" and hypotheses without a map, '
                '"multi" for instance'
            )
        self.kernel = kernel
        self.budget = require_budget(budget)
        self.dense = dense
        super().__init__(
            parts,
            rule,
            classes,
            constant,
            answer=answer,
            costs=costs,
            newcomers=newcomers,
            conditioning=conditioning,
            half_life=half_life,
        )

    stays_dense = True  # there are no weights

    @property
    def sigma(self) -> float | None:
        """The sigma that distances have led to, None if they have none to lead to."""
        return self.kernel.share * self.recent.median or None

    @property
    def n_support_vectors(self) -> list[int]:
        """How many support vectors each part has."""
        return self.supports.in_use()

    def _run(self, task: Any) -> None:
        """Run the trials, some rows at a time, after making room for all that they may add."""
        indptr = task.arrays.rows.indptr
        n_rows, start = len(indptr) - 1, 0
        while start < n_rows:
            stop = min(n_rows, start + self._make_room_ahead(indptr, start))
            whole = stop - start == n_rows
            super()._run(task if whole else task_of_rows(task, slice(start, stop)))
            start = stop

    def _make_room_ahead(self, indptr: npt.NDArray[np.int64], start: int) -> int:
        """Make room for the support vectors of some rows from `start` on; return how many rows."""
        n_moved, n_groups = self._most_moved(), self._most_groups()
        per_trial = n_moved if self._maps else 1
        n_ahead = max(ROWS_AHEAD, max(self.supports.in_use()) // (4 * per_trial))
        lengths = np.diff(indptr[start : start + n_ahead + 1])
        n_supports = per_trial * len(lengths)
        n_values = per_trial * int(lengths.sum())
        entries = n_moved * n_groups * len(lengths)
        has_grown = self.supports.make_room(n_supports, entries, n_values)
        if self.recent.make_room(int(lengths.max())) or has_grown:
            self._bind()
        return len(lengths)

    def _most_moved(self) -> int:
        """Return how many classes a trial may move: those of one constraint, or all."""
        one_constraint = self.rule.constraints in ("predicted", "worst")
        return 2 if one_constraint else len(self.classes)

    def _most_groups(self) -> int:
        """Return how many hypotheses of one part a class may have."""
        counts = [len(groups) for classes in self.memberships for groups in classes]
        return max(1, max(counts, default=1))

    def _why_dense(self) -> tuple[str, str] | None:
        """Return what looks at zeros, and what would not; None if nothing does."""
        if self.kernel.of == "vectors":
            return (
                f"the kernel {self.kernel!r} is given whole vectors",
                "one made by mercer_kernel(of='products')",
            )
        return super()._why_dense()

    # ---- room, binding and saving -----------------------------------------------------------

    def _allocate_hypotheses(
        self, class_room: int, feature_room: int, group_room: list[int]
    ) -> None:
        """Begin without support vectors."""
        self.supports = SupportVectors(len(self.parts), feature_room, in_panels=self.dense)
        self.recent = RecentRows(self.kernel.share, feature_room, in_panel=self.dense)
        self._places = np.zeros(feature_room, dtype=np.int64)
        self._offsets = [0] * len(self.parts)

    def _own_hypotheses(self) -> None:
        self.supports.own()
        self.recent.own()
        self._places = self._places.copy()

    def _hypotheses(self, *, whole: bool) -> dict[str, npt.NDArray[Any]]:
        n_features = self._feature_room if whole else self.n_features
        return self.supports.arrays(n_features) | self.recent.arrays(n_features)

    def _put_hypotheses(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self.supports.restore(arrays)
        self.recent.restore(arrays)

    @cached_property
    def _kernels(self) -> ModuleType:
        from kesler.compiled import kernel_trial

        return kernel_trial

    @cached_property
    def _learner(self) -> Any:
        from kesler.compiled.kernels import kernel_addresses

        supports, recent = self.supports, self.recent
        parameters = [*self.kernel.parameters, 0.0, 0.0, 0.0, 0.0][:4]
        addresses = kernel_addresses(self.kernel.k, self.kernel.of)
        return self._kernels.KernelLearner(
            panels=supports.panels,
            starts=supports.starts,
            features=supports.features,
            values=supports.values,
            squared_norms=supports.squared_norms,
            entry_starts=supports.entry_starts,
            owners=supports.owners,
            coefficients=supports.coefficients,
            counts=supports.counts,
            places=self._places,
            algorithm=np.zeros(1, dtype=np.int64),
            kernel=np.array([*addresses, self.budget or 0, self.dense]),
            parameters=np.array(parameters, dtype=np.float64),
            **self._common_fields(),
            recent=recent.panel,
            recent_features=recent.features,
            recent_values=recent.values,
            recent_lengths=recent.lengths,
            recent_norms=recent.squared_norms,
            bandwidth=recent.bandwidth,
        )


def goes_by_distance(kernel: MercerKernel | None, parts: Sequence[Part]) -> bool:
    """Whether rows are only compared with rows, so that units of features may change at any time.

    What "auto" stands for in the conditioning of dense rows hangs on it.
    """
    mapped = any(part.feature_map is not None for part in parts)
    return kernel is not None and kernel.of == "products" and not mapped


def require_budget(budget: Any) -> int | None:
    """Return a budget; raises KeslerError unless it is None or a whole number above 0."""
    if budget is None:
        return None
    if not isinstance(budget, Integral) or isinstance(budget, bool) or budget < 1:
        raise KeslerError(
            f"budget={budget!r} must be a whole number from 1 on, or None: it is the most support "
            "vectors that are kept"
        )
    return int(budget)

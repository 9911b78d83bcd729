"""The learner over a Mercer kernel: its hypotheses are sums of support vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.hypotheses import Ordered, Part, Shared, takes_ratings
from kesler.interrupts import Postponed
from kesler.kernels.mercer import MercerKernel
from kesler.learner.events import task_of_rows
from kesler.learner.learner import Learner
from kesler.learner.state import LINEAR
from kesler.learner.support_vectors import Limit, SupportVectors, limit_of
from kesler.parts.user_part import UserPart, followed_by_word
from kesler.preprocessing import Ranges
from kesler.state.fields import Arrays

if TYPE_CHECKING:
    from types import ModuleType

ROWS_AHEAD = 64


@dataclass(eq=False, repr=False, kw_only=True)
class KernelLearner(Learner):
    """A learner over a Mercer kernel; otherwise as :class:`~kesler.learner.learner.Learner`.

    Parameters
    ----------
    parts, rule, classes, constant, answer, costs, preprocessing, half_life : as in `Learner`.
    link, preconditioner, on_new_class : must be linear, Euclidean and other than "inherit", since
        there are no weights.
    averaged : whether predictions use the mean of the coefficients after each trial.
    kernel : the inner product of views.
    dense : whether rows list every feature.
    budget : the maximum number of support vectors of a part, or a
        :class:`~kesler.budgets.Budget`; None for no limit.

    Notes
    -----
    A trial with an update adds its row to each part without a map, and the view of every updated
    class to each part with one: 4 bytes per feature if rows are dense, else 12 per non-zero, and 12
    per updated hypothesis.
    """

    has_weights = False

    supports: SupportVectors = field(init=False)
    kernel: MercerKernel
    dense: bool
    budget: Limit = None

    def __post_init__(self) -> None:
        self._require_no_weights()
        self.budget = limit_of(self.budget)
        if self.averaged and self.budget is not None and not projects(self.budget):
            raise KeslerError(
                f"averaged=True with budget={self.budget!r}: the means over all trials include "
                "support vectors that the budget has removed, so that these would have to be kept: "
                'choose kesler.budgets.Budget(size, "projectron"), which removes none, or leave '
                "averaged or the budget out"
            )
        if self.rule.update is not None:
            self._require_constant_norm()
        if not (self.budget is None or isinstance(self.budget, int)):
            from kesler.learner.budgets import require_fit

            require_fit(self.budget, self.rule, self.parts, self.preprocessing, self.half_life)
        super().__post_init__()

    def _require_no_weights(self) -> None:
        """Raise if a parameter requires weights."""
        rule, link, preconditioner = self.rule, self.link, self.preconditioner
        if link != LINEAR or not (rule.update is None or rule.needs_products_only):
            asked = f"{rule!r} reads and changes weights one by one"
            if link != LINEAR:
                asked = f"link={link!r} computes each weight from its own sum"
            raise KeslerError(
                f"{asked}, and over a kernel there are inner products alone: leave it or the "
                "kernel out"
            )
        if rule.preconditioner is not None:
            raise KeslerError(
                f"{rule!r} requires the variances of {rule.preconditioner!r}, and over a kernel "
                "there are no weights to have them: their covariance is a matrix of all pairs of "
                "support vectors, and a step would change the coefficients of all of them; choose "
                "a rule without variances, such as pa2, or leave the kernel out"
            )
        if not preconditioner.is_euclidean:
            raise KeslerError(
                f"{preconditioner!r} gives each weight a step size, and over a kernel there are no "
                'weights: choose preconditioner="euclidean", or leave the kernel out'
            )
        if self.replay is not None:
            raise KeslerError(
                f"{self.replay!r} would add a row to the support vectors each time it is learnt "
                "again: give replay=0, or leave the kernel out"
            )
        if self.on_new_class == "inherit":
            raise KeslerError(
                'on_new_class="inherit" copies the weights of a virtual class, and over a kernel '
                'there are none: choose on_new_class="learn" or "register"'
            )
        if takes_ratings(self.parts):
            raise KeslerError(
                "ratings by sub-experts are combined by weights, and over a kernel there are none: "
                "leave the kernel or the sub-experts out"
            )
        if any(isinstance(part, Shared) and part.begins_at for part in self.parts):
            raise KeslerError(
                "begins_at sets initial weights, and over a kernel there are none: leave it or the "
                "kernel out"
            )
        by_distance = goes_by_distance(self.kernel, self.parts)
        if isinstance(self.preprocessing, Ranges) and not by_distance:
            raise KeslerError(
                f"{self.preprocessing!r} changes the units of rows after they were learnt, which "
                "neither a kernel of whole vectors nor a feature map supports: choose "
                'preprocessing="z-scores", or the kernel "rbf" and hypotheses without a map, for '
                'example "multi"'
            )

    def _require_constant_norm(self) -> None:
        """Raise if the norm of the weights changes other than by the steps of an algorithm."""
        reasons = {
            'sigma="auto" changes all inner products from row to row: give a number as sigma': (
                self.kernel.share
            ),
            f"budget={self.budget!r} removes or projects support vectors: leave it out": (
                self.budget is not None
            ),
            f"{self.preprocessing!r} changes the units of rows after they were learnt: choose "
            'preprocessing="z-scores" or None': isinstance(self.preprocessing, Ranges),
        }
        for reason, holds in reasons.items():
            if holds:
                raise KeslerError(
                    f"{self.rule!r} computes its steps from the norm of the weights, which it sums "
                    f"up, and {reason}"
                )

    @property
    def sigma(self) -> float | None:
        """The sigma estimated from distances between rows; None if fixed, or without distances."""
        return self.kernel.share * self.supports.median or None

    @property
    def gains_from_repetition(self) -> bool:
        """Whether rows can be learnt again: no, as support vectors would be stored again."""
        return False

    @property
    def n_support_vectors(self) -> list[int]:
        """Number of support vectors of each part."""
        return self.supports.in_use()

    def _run(self, task: Any) -> None:
        """Run trials in blocks of rows, each after providing capacity for its support vectors."""
        indptr = task.arrays.rows.indptr
        n_rows, start = len(indptr) - 1, 0
        if not n_rows:  # classes that are introduced before any row
            super()._run(task)
        while start < n_rows:
            stop = min(n_rows, start + self._reserve_ahead(indptr, start))
            whole = stop - start == n_rows
            super()._run(task if whole else task_of_rows(task, slice(start, stop)))
            start = stop

    def _reserve_ahead(self, indptr: npt.NDArray[np.int64], start: int) -> int:
        """Provide capacity for the support vectors of rows from `start` on; return their number."""
        n_moved, n_groups = self._most_moved(), self._most_groups()
        per_trial = n_moved if self._maps else 1
        n_ahead = max(ROWS_AHEAD, max(self.supports.in_use()) // (4 * per_trial))
        lengths = np.diff(indptr[start : start + n_ahead + 1])
        n_supports = per_trial * len(lengths)
        n_values = per_trial * int(lengths.sum())
        entries = n_moved * n_groups * len(lengths)
        if self.supports.projects:
            from kesler.learner.budgets import projected_capacity

            in_use, widths = self.supports.in_use(), list(map(self._width, range(len(self.parts))))
            n_supports, n_all = projected_capacity(self.supports.size, in_use, widths, n_supports)
            entries = n_all - self.supports.n_entries
        with Postponed():
            if self.supports.reserve(n_supports, entries, n_values, int(lengths.max())):
                self._bind()
        return len(lengths)

    def _most_moved(self) -> int:
        """Return the maximum number of classes that a trial updates: of one constraint, or all."""
        one_constraint = self.rule.constraints in ("predicted", "worst")
        return 2 if one_constraint else len(self.classes)

    def _most_groups(self) -> int:
        """Return the maximum number of hypotheses of one part that a class has."""
        counts = [len(groups) for classes in self.memberships for groups in classes]
        return max(1, max(counts, default=1))

    def _why_dense(self) -> tuple[str, str] | None:
        """Return what reads zeros, and an alternative that does not; None if nothing does."""
        if self.kernel.of == "vectors":
            return (
                f"the kernel {self.kernel!r} is given whole vectors",
                "one made by mercer_kernel(of='products')",
            )
        return super()._why_dense()

    # ---- capacity, binding and saving -------------------------------------------------------

    def _allocate_others(self, class_capacity: int, feature_capacity: int) -> None:
        """Create the support vectors, of which there are none yet, or enlarge their capacity."""
        if "supports" in vars(self):
            self.supports.reserve_features(feature_capacity)
        else:
            self.supports = SupportVectors(
                len(self.parts),
                feature_capacity,
                in_panels=self.dense,
                share=self.kernel.share,
                budget=self.budget,
                is_averaged=self.averaged,
                is_ordered=any(isinstance(part, Ordered) for part in self.parts),
            )
        self.supports.reserve_ranks(class_capacity)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copy the arrays, those of support vectors included."""
        super().__setstate__(state)
        self.supports.own()

    def _other_arrays(self) -> Arrays:
        return self.supports.arrays(self.n_features, self.n_known)

    def _restore_others(self, arrays: Arrays) -> None:
        n_hypotheses = [
            1 if isinstance(part, Ordered) else self._width(i) for i, part in enumerate(self.parts)
        ]
        self.supports.restore(arrays, self.n_features, n_hypotheses, self.n_known)

    @cached_property
    def _kernels(self) -> ModuleType:
        from kesler.compiled.kernels import kernel_trial

        return kernel_trial

    def _described_weights(self) -> dict[str, Any]:
        from kesler.compiled.kernels.supports import kernel_addresses

        custom = isinstance(self.kernel, UserPart)
        single, double = kernel_addresses(self.kernel.k, self.kernel.of, custom=custom)
        bound = self.supports.bound(
            single=single,
            double=double,
            in_panels=self.dense,
            lists_all=self.kernel.of == "vectors" or isinstance(self.preprocessing, Ranges),
            parameters=self._kernel_parameters,
        )
        return {"weights": bound}

    @cached_property
    def _predictor(self) -> Any:
        """The learner with arrays for the means, which are computed when rows are predicted."""
        record = self._record
        means = {
            name: np.zeros_like(getattr(record.weights, name))
            for name in ("coefficients", "thresholds")
        }
        return self._write_arguments(record._replace(weights=record.weights._replace(**means)))

    def _sums_of_thresholds(self) -> npt.NDArray[np.floating[Any]]:
        """Return minus the thresholds in units of the constant, by class, summed over parts."""
        now, moved = self.supports.stored["thresholds"].sum(axis=0)
        total = now - moved / max(1, self.n_trials) if self.averaged else now * self.scale
        return np.asarray(total, dtype=np.float32)

    @cached_property
    def _kernel_parameters(self) -> npt.NDArray[np.float64]:
        return followed_by_word(self.kernel.parameters, 4)

    @property
    def _with_functions(self) -> list[Any]:
        """The parts that may be user-defined, the kernel last."""
        return [*super()._with_functions, self.kernel]

    @property
    def _function_parameters(self) -> list[npt.NDArray[Any]]:
        """The parameters that compiled code receives of each of these, and the fault words."""
        return [*super()._function_parameters, self._kernel_parameters]


def goes_by_distance(
    kernel: MercerKernel | None, parts: Sequence[Part], budget: Limit = None
) -> bool:
    """Return whether rows are only compared with rows, so that units of features may change.

    The meaning of preprocessing="scale" for dense rows depends on it.
    """
    mapped = any(part.feature_map is not None for part in parts)
    return kernel is not None and kernel.of == "products" and not mapped and not projects(budget)


def projects(budget: Limit) -> bool:
    """Return whether updates are projected onto the span of the stored support vectors."""
    return budget is not None and not isinstance(budget, int) and budget.projects

"""The learner whose hypotheses are trees, which count rows in place of weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.forests import ExtraTrees
from kesler.hypotheses import PerClass, tree_of
from kesler.interrupts import Postponed
from kesler.learner.events import no_targets, task_of
from kesler.learner.learner import Learner
from kesler.learner.state import LINEAR
from kesler.learner.trees import Trees
from kesler.preconditioners import EUCLIDEAN
from kesler.state.fields import Arrays, bind
from kesler.state.forest import Forest

if TYPE_CHECKING:
    from types import ModuleType


@dataclass(eq=False, repr=False, kw_only=True)
class ForestLearner(Learner):
    """A learner with trees; otherwise as :class:`~kesler.learner.learner.Learner`.

    Parameters
    ----------
    rule : the number and size of the trees.
    parts, classes, answer and others : as in `Learner`; what concerns weights must have no effect.
    """

    has_weights, grows_trees = False, True

    rule: ExtraTrees
    trees: Trees = field(init=False)

    def __post_init__(self) -> None:
        self._require_no_weights()
        super().__post_init__()

    def _require_no_weights(self) -> None:
        """Raise if a setting concerns weights, or targets are no single classes."""
        if self.answer != "class":
            raise KeslerError(
                f"{self.rule!r} counts rows of single classes: choose another update rule, or "
                "OnlineClassifier"
            )
        fits = {
            "tree": tree_of(self.parts) is None,
            "hypotheses": self.parts == [PerClass()],
            "intercept": not self.constant,
            "link": self.link == LINEAR,
            "averaged": not self.averaged,
            "costs": self.costs is None,
            "preconditioner": self.preconditioner == EUCLIDEAN,
            "on_new_class": self.on_new_class in ("register", "learn"),
            "preprocessing": self.preprocessing is None,
            "half_life": self.half_life is None,
            "replay": self.replay is None,
        }
        for name, holds in fits.items():
            if not holds:
                raise KeslerError(
                    f"{name} has no effect on {self.rule!r}, which counts rows in trees and has no "
                    "weights: leave it out, or choose another update rule"
                )

    @property
    def gains_from_repetition(self) -> bool:
        """Whether rows can be learnt again: no, they would be counted twice."""
        return False

    @property
    def lists_all(self) -> bool:
        """Whether it can read only rows that list every feature: a node may compare any."""
        return True

    @property
    def takes_missing(self) -> bool:
        """Whether values of rows may be missing (NaN)."""
        return True

    @property
    def _weighing(self) -> ExtraTrees | None:
        return self.rule if self.rule.weights is not None else None

    def _why_dense(self) -> tuple[str, str]:
        other = (
            "'pa1'; rows of tables are dense with columns={} if the first has a number or a date, "
            "no column is a text or a list, and at most half of them are categories"
        )
        return f"{self.rule!r} compares the values of any feature", other

    def _run(self, task: Any) -> None:
        with Postponed():
            if self.trees.reserve_rows(len(task.arrays.predictions), self.n_features):
                self._bind()
        super()._run(task)

    def end_set(self) -> None:
        """Grow all trees from all rows, unless the ring has no place for them or they are few."""
        with self.lock, Postponed():
            if self.trees.gain_from_all_rows:
                self.trees.stored["due"][:] = self.trees.n_rows
                none = Rows.from_dense(np.empty((0, self.n_features), dtype=np.float32))
                self._run(task_of(self._blocks(none), no_targets(), 0))

    # ---- capacity, binding and saving -------------------------------------------------------

    def _allocate_others(self, class_capacity: int, feature_capacity: int) -> None:
        """Create the trees, or provide capacity for more classes and features."""
        if "trees" not in vars(self):
            self.trees = Trees(self.rule)
        self.trees.reserve(class_capacity, feature_capacity)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copy the arrays, those of trees included."""
        super().__setstate__(state)
        self.trees.own()

    def _other_arrays(self) -> Arrays:
        return self.trees.arrays(self.n_known, self.n_features)

    def _restore_others(self, arrays: Arrays) -> None:
        self.trees.restore(arrays, self.n_known, self.n_features)

    @cached_property
    def _kernels(self) -> ModuleType:
        from kesler.compiled.forest import forest_trial

        return forest_trial

    def _described_weights(self) -> dict[str, Any]:
        return {"weights": bind(Forest, self.trees.stored | {"odds": self.rule.odds})}

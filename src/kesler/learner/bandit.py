"""Learners that learn only whether the class that they show is right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label
from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.exploration import Exploration, Greedy
from kesler.hypotheses import PerClass
from kesler.learner.events import Event, encoded_targets_of, no_ratings, task_of
from kesler.learner.kernel_learner import KernelLearner
from kesler.learner.learner import Learner
from kesler.learner.targets import Answers
from kesler.links.link import Linear
from kesler.preprocessing.replay import start_of

GREEDY = Greedy()
WHATEVER = 1.0  # stands for a probability that the rule of feedback does not read


@dataclass(eq=False, repr=False)
class BanditLearner(Learner):
    """A learner that shows one class for each row, and learns whether it is right.

    Parameters
    ----------
    exploration : how the class to show is drawn.
    is_weighted : whether a row counts by the inverse of the probability of the shown class.
    seed : seed of the random numbers, which depend on it and on the number of draws only.

    Raises
    ------
    KeslerError
        If the rule of feedback does not fit the hypotheses, or a part cannot learn from feedback.
    """

    explores: ClassVar[bool] = True

    _: KW_ONLY
    exploration: Exploration = GREEDY
    is_weighted: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rule.feedback:
            self._require_plain()
        super().__post_init__()
        self.stays_dense = True

    def _require_plain(self) -> None:
        """Raise unless hypotheses and geometry are those of the rules of feedback."""
        is_linear = isinstance(self.link, Linear) and self.preconditioner.is_euclidean
        if not is_linear or self.averaged or self.costs is not None or self.half_life is not None:
            raise KeslerError(
                f"{self.rule!r} is defined for the linear link and the Euclidean geometry, without "
                "averaging, costs and half-life: leave these out, or choose another rule"
            )
        if self.rule.second_moments and not self.has_weights:
            raise KeslerError(
                f"{self.rule!r} keeps second moments of features, one matrix for all weights, and "
                'over a kernel there are no weights: choose update="banditron", another rule, or '
                "leave the kernel out"
            )
        if self.rule.second_moments and self.parts != [PerClass()]:
            raise KeslerError(
                f"{self.rule!r} is defined for one weight vector of each class: choose "
                'hypotheses="multi", or another rule'
            )

    @property
    def reads_probability(self) -> bool:
        """Whether learning depends on the probability with which a class was shown."""
        return self.is_weighted or bool(self.rule.feedback)

    @cached_property
    def _kernels(self) -> ModuleType:
        from kesler.compiled.trial import bandit_trial

        return bandit_trial

    def _described_exploration(self) -> dict[str, Any]:
        return {
            "exploration.kind": self.exploration.kind,
            "exploration.feedback": self.rule.feedback,
            "exploration.is_weighted": self.is_weighted,
            "exploration.seed": start_of(self.seed),
            "exploration.parameters": self.exploration.parameters,
        }

    # ---- classes ----------------------------------------------------------------------------

    def introduce(self, labels: Sequence[Label]) -> None:
        """Make classes known before any of their rows.

        Raises
        ------
        KeslerError
            If a label is refused; no class is known then.
        """
        if all(label in self.classes for label in labels):
            return
        with self.lock:
            none = Rows.from_dense(np.empty((0, max(1, self.n_features)), dtype=np.float32))
            self._encode(
                Rows(none.indptr, none.indices, none.values, self.n_features, True), labels
            )
            self.stored["exploration.given"]["n_known"][0] = len(self.classes)
            answers = Answers.of_classes(np.empty(0, dtype=np.int32))
            encoded = encoded_targets_of(answers, None, self._class_capacity)
            rows = self._kernels.Blocks(none.indptr, none.indices, none.values, no_ratings())
            self._run(task_of(rows, encoded, 0))

    # ---- feedback ---------------------------------------------------------------------------

    def draw(self, row: Rows | Event) -> tuple[int, float]:
        """Return the class to show for a row, and its probability; wait for feedback on it."""
        from kesler.compiled.trial.exploration import draw

        with self.lock:
            arguments, chances = self._drawing(row)
            shown = int(draw(*arguments, chances))
            self.stored["exploration.draws"]["n_drawn"][0] += 1
            self.stored["exploration.pending"][shown] += 1
        return shown, float(chances[shown])

    def chances(self, row: Rows | Event) -> npt.NDArray[np.float64]:
        """Return the probability that each class would be shown for a row."""
        from kesler.compiled.trial.exploration import draw

        with self.lock:
            arguments, chances = self._drawing(row)
            draw(*arguments, chances)
        return chances

    def _drawing(self, row: Rows | Event) -> tuple[tuple[Any, ...], npt.NDArray[np.float64]]:
        """Return the arguments of a draw, and an array for the probabilities."""
        self.begin_with(row)
        scores = np.empty((1, self.n_known), dtype=np.float32)
        winner = int(self._predict(row, scores)[0])
        how = self._settings
        numbers = self.n_trials, int(self.stored["exploration.draws"]["n_drawn"][0])
        return (
            int(how["exploration.kind"]),
            how["exploration.parameters"],
            *numbers,
            int(how["exploration.seed"]),
            scores[0],
            winner,
        ), np.empty(self.n_known)

    def begin_with(self, rows: Rows | Event) -> None:
        """Let rows that are scored determine the number of inputs, if none has yet."""
        if self.expansion is not None and not self.n_inputs:
            self._admitted_with(rows, ())

    def n_pending(self, code: int) -> int:
        """Return how often a class was shown whose feedback has not come."""
        return int(self.stored["exploration.pending"][code])

    @contextmanager
    def with_probability(self, probability: float) -> Iterator[None]:
        """Learn targets as feedback on classes that were shown with this probability."""
        number = self.stored["exploration.given"]["probability"]
        number[0] = probability
        try:
            yield
        finally:
            self.stored["exploration.given"]["probability"][0] = 0.0

    @property
    def feedback_sums(self) -> tuple[float, float]:
        """The sum of m, and that of z^T A^-1 z, of SOBA."""
        draws = self.stored["exploration.draws"]
        return float(draws["margin"][0]), float(draws["spread"][0])


@dataclass(eq=False, repr=False, kw_only=True)
class KernelBanditLearner(BanditLearner, KernelLearner):
    """A learner over a Mercer kernel that shows one class for each row; see both its bases."""

    @cached_property
    def _kernels(self) -> ModuleType:
        from kesler.compiled.kernels import bandit_trial

        return bandit_trial

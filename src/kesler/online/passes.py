"""How `fit` learns its rows: in which order, and how many times.

Rows whose order says nothing are read in the order given, so that errors name the right rows, and
learnt in another random order at each pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.inputs import BLOCK_ENTRIES
from kesler.data.rows import Rows
from kesler.errors import KeslerError, integer_of, is_flag
from kesler.learner.combinations import require_epochs
from kesler.learner.ensemble import EnsembleLearner
from kesler.learner.targets import Targets
from kesler.online.contract import exclusive_trials
from kesler.online.training import Block, Trials, is_limited, names_of_learnt_rows
from kesler.settings.table import AUTO

if TYPE_CHECKING:
    from kesler.online.model import Model

# Ensembles make at most and at least so many passes, and learn about a million rows in all between.
# Each pass beyond the first costs an eighth of it.
MOST_PASSES, FEWEST_PASSES, ROWS_OF_PASSES = 10, 2, 1_000_000


@dataclass(frozen=True)
class Plan:
    """In which order rows are learnt, and how often.

    Parameters
    ----------
    shuffles : whether in a random order, another one at each pass.
    seed : the seed of these orders.
    epochs : the number of passes, or "auto".
    """

    shuffles: bool
    seed: int
    epochs: int | str

    @staticmethod
    def of(model: Model) -> Plan:
        """Return the plan that the settings of an estimator ask for.

        Raises
        ------
        KeslerError
            If one of them is invalid, or rows that are to be shuffled may not be held.
        """
        shuffles = _shuffles(model, model.shuffle)
        if shuffles and is_limited(model):
            raise KeslerError(
                "shuffle=True reads all rows before it learns the first, and memory_limit= is for "
                "rows that are learnt as they come: leave one out"
            )
        epochs: int | str = AUTO
        if not (isinstance(model.epochs, str) and model.epochs == AUTO):
            epochs = require_epochs(model.epochs, model.update)
        return Plan(shuffles, _require_seed(model.random_state), epochs)

    def n_passes(self, model: Model, n_rows: int) -> int:
        """Return the number of passes of a model that has learnt all rows once."""
        if not isinstance(self.epochs, str):
            return self.epochs
        if not (self.shuffles and isinstance(model._learner, EnsembleLearner)):
            return 1
        schema = model._input.columns.schema
        # Learners of words gain from a second pass, and lose from further ones.
        most = FEWEST_PASSES if schema is not None and schema.has_texts else MOST_PASSES
        return max(FEWEST_PASSES, min(most, ROWS_OF_PASSES // max(1, n_rows)))


def _shuffles(model: Model, shuffle: Any) -> bool:
    if is_flag(shuffle):
        return bool(shuffle)
    if not (isinstance(shuffle, str) and shuffle == AUTO):
        raise KeslerError(
            f'shuffle={shuffle!r} is unknown: choose True, False, or "auto", which learns rows in '
            "a random order unless an update rule is named"
        )
    given = model.get_params(deep=False)
    follows_order = given.get("half_life") is not None or is_limited(model)
    return model._maker.names_no_rule(given) and not follows_order


def _require_seed(seed: Any) -> int:
    return integer_of("random_state", seed, 0, why=", the seed of the order of rows")


def learn(model: Model, plan: Plan, X: Any, y: Any, sample_weight: Any) -> Trials | None:
    """Learn rows by a plan; return the trials of the first pass where the order is kept."""
    if plan.shuffles:
        _learn_shuffled(model, plan, X, y, sample_weight)
        return None
    trials: Trials = model._run_trials(X, y, sample_weight)
    with model.rows_again():
        for _ in range(plan.n_passes(model, len(trials.predictions)) - 1):
            model._run_trials(X, y, sample_weight)
    return trials


@exclusive_trials
def _learn_shuffled(model: Model, plan: Plan, X: Any, y: Any, sample_weight: Any) -> None:
    draws = np.random.default_rng(plan.seed)
    with names_of_learnt_rows(model):
        held = Held.of(model._blocks(X, y, sample_weight))
        counted = held.counted
        _learn_once(model, held.blocks(draws.permutation(counted)))
        with model.rows_again():
            for _ in range(plan.n_passes(model, len(counted)) - 1):
                _learn_once(model, held.blocks(draws.permutation(counted)))
        if model._learner is not None:
            model._learner.end_set()


def _learn_once(model: Model, blocks: Iterator[Block]) -> None:
    for block in blocks:
        model._learn(*block)


@dataclass(frozen=True)
class Held:
    """All rows of a call, of which blocks are taken in any order.

    Parameters
    ----------
    rows : rows that list non-zeros or have ratings, or an array of measurements.
    targets, weights : as in a block.
    """

    rows: Rows | npt.NDArray[np.float32]
    targets: Targets
    weights: npt.NDArray[np.float64] | None

    @staticmethod
    def of(blocks: Iterator[Block]) -> Held:
        """Hold the rows of blocks."""
        pieces: list[Any] = []
        targets: list[Targets] = []
        weights: list[Any] = []
        for rows, some, given in blocks:
            # An array takes half the memory of rows, which number their features.
            pieces.append(rows.values.reshape(len(rows), -1) if _is_array(rows) else rows)
            targets.append(some)
            weights.append(given)
        return Held(
            _concatenated(pieces),
            Targets.concatenate(targets),
            None if weights[0] is None else np.concatenate(weights),
        )

    @property
    def counted(self) -> npt.NDArray[np.int64]:
        """The numbers of the rows of a weight above 0; the others are as if they were not there."""
        if self.weights is None:
            return np.arange(len(self.rows))
        return np.flatnonzero(self.weights)

    def blocks(self, order: npt.NDArray[np.int64]) -> Iterator[Block]:
        """Yield blocks of the rows of these numbers."""
        rows = self.rows
        n_entries = len(rows.values) if isinstance(rows, Rows) else rows.size
        step = max(1, BLOCK_ENTRIES * len(rows) // max(1, n_entries))
        for start in range(0, len(order), step):
            part = order[start : start + step]
            taken = rows.take(part) if isinstance(rows, Rows) else Rows.from_dense(rows[part])
            some = None if self.weights is None else self.weights[part]
            yield taken, self.targets.take(part), some


def _is_array(rows: Rows) -> bool:
    return rows.dense and rows.ratings is None and rows.n_features > 0


def _concatenated(pieces: Sequence[Any]) -> Any:
    if len(pieces) == 1:
        return pieces[0]
    return Rows.concatenate(pieces) if isinstance(pieces[0], Rows) else np.concatenate(pieces)

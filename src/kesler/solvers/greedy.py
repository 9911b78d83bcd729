"""ShareBoost's loop: choose a candidate, solve for the weights of all chosen ones, and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.solvers.column_penalties import Penalty
from kesler.solvers.corrective import Correction, Corrective, State, lowest_along
from kesler.solvers.training_rows import SomeColumns, TrainingRows

Floats = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

# Below this share of the loss at weights 0, weights are solved for no more closely: where classes
# are apart the lowest loss is 0 and infinitely far.
FLOOR = 0.01
# A gradient below this share of the first one chosen by is rounding: there is nothing to gain.
LEAST_GRADIENT = 1e-12
# Candidates are compared at this times the tolerance.
ROUGH = 30.0


@dataclass(frozen=True)
class Round:
    """One choice, and what came of it after all weights were solved for again.

    Attributes
    ----------
    candidate : int
        The candidate, or the number of the group, that was chosen.
    n_chosen : int
        How many candidates have been chosen so far.
    loss : float
        Of the training rows, without the penalty.
    gradient_norm : float
        What it was chosen by: the sum of the absolute gradients for its columns, divided by their
        spread if they are scaled.
    seconds : float
        Since the fit began.
    validation_error : float or None
        The share of mistakes on the rows that were put aside, if any were.
    n_steps : int
        Of the search for the weights.
    """

    candidate: int
    n_chosen: int
    loss: float
    gradient_norm: float
    seconds: float
    validation_error: float | None
    n_steps: int


@dataclass(frozen=True, eq=False)
class Choice:
    """A candidate or group, its members' columns, and the gradient that it was chosen by."""

    unit: int
    members: Ints
    columns: SomeColumns
    gradient_norm: float


class Greedy:
    """The choice of candidates, and the weights of those chosen.

    Parameters
    ----------
    rows : TrainingRows
    n_classes : int
    penalty : Penalty
    rule : str
        A key of `RULES`.
    shortlist : int or None
        How many candidates of steepest gradient other rules look at, None for all.
    scaled : bool
        Whether gradients are divided by the spread of columns.
    bias : bool
    groups : int64 array of shape (n_candidates,) or None
        The group of each candidate, numbered from 0.
    tol : float
    max_iter : int
        Of a search for weights.
    """

    def __init__(
        self,
        rows: TrainingRows,
        n_classes: int,
        penalty: Penalty,
        *,
        rule: str,
        shortlist: int | None,
        scaled: bool,
        bias: bool,
        groups: Ints | None,
        tol: float,
        max_iter: int,
    ) -> None:
        self.rows, self.n_classes, self.penalty = rows, n_classes, penalty
        self._better, self._shortlist = RULES[rule], shortlist
        self._scaled, self._bias = scaled, bias
        self._groups = groups
        self.tol, self.max_iter = tol, max_iter
        n_units = rows.n_candidates if groups is None else int(groups.max()) + 1
        self._open = np.ones(n_units, dtype=bool)
        self._first_norm = 0.0
        self.support = rows.support(bias)
        self.chosen: Ints = np.empty(0, dtype=np.int64)
        self.state = self._state_at(np.zeros((self.support.n_columns, n_classes)))
        self._floor = FLOOR * self.state.loss
        self.all_converged = True
        if bias:
            self.state = self._correct(self.state).state

    @property
    def n_units(self) -> int:
        """How many candidates, or groups, there are."""
        return len(self._open)

    @property
    def weights(self) -> Floats:
        """The weights of the chosen columns as they are, and above them the bias, or 0.

        A common part of the bias changes nothing: it is taken away.
        """
        weights, n_free = self.state.weights, self.support.n_free
        own = weights[n_free:]
        bias = -self.support.means[n_free:] @ own
        bias = bias + weights[:n_free].sum(axis=0)
        return np.vstack([bias - bias.mean() * n_free, own])

    def resume(self, units: Iterable[int], weights: Floats) -> None:
        """Take up what was chosen before, and its weights as `weights` gave them."""
        for unit in units:
            self._take(unit, self.rows.columns(self._members(unit)))
        own, n_free = weights[1:], self.support.n_free
        bias = weights[:1] + self.support.means[n_free:] @ own
        self.state = self._state_at(np.vstack([bias[:n_free], own]))

    def rounds(self) -> Iterator[Round]:
        """Choose until nothing is gained; yields after each choice."""
        begun = time.perf_counter()
        while (choice := self.choose()) is not None:
            self._take(choice.unit, choice.columns)
            correction = self._correct(self._with_room())
            self.state = correction.state
            yield Round(
                choice.unit,
                len(self.chosen),
                self.state.loss,
                choice.gradient_norm,
                time.perf_counter() - begun,
                None,
                correction.n_steps,
            )

    def choose(self) -> Choice | None:
        """Return what to choose next, None if nothing is gained by any."""
        norms = self.gradient_norms()
        self._first_norm = max(self._first_norm, float(norms.max(initial=0.0)))
        norms[~self._open] = 0.0
        choices = self._worthwhile(norms)
        if self._better is None:
            return next(choices, None)
        return self._best(islice(choices, self._shortlist))

    def gradient_norms(self) -> Floats:
        """Return what each candidate or group is chosen by."""
        norms = self.rows.scores(self.state.residuals)
        if self._scaled:
            spreads = self._spreads
            norms = np.divide(norms, spreads, out=np.zeros_like(norms), where=spreads > 0)
        return norms if self._groups is None else np.bincount(self._groups, norms)

    @cached_property
    def _spreads(self) -> Floats:
        return self.rows.spreads(centred=self._bias)

    def _worthwhile(self, norms: Floats) -> Iterator[Choice]:
        """Yield what may be chosen, steepest first; what says nothing new is closed for good."""
        while norms.max(initial=0.0) > LEAST_GRADIENT * self._first_norm:
            unit = int(norms.argmax())
            members = self._members(unit)
            columns = self.rows.columns(members)
            if self.support.holds(columns):
                self._open[unit] = False
            else:
                yield Choice(unit, members, columns, float(norms[unit]))
            norms[unit] = 0.0

    def _best(self, choices: Iterable[Choice]) -> Choice | None:
        """Return the choice after which the objective is lowest, by the rule."""
        assert self._better is not None
        best, lowest = None, np.inf
        for choice in choices:
            value = self._better(self, choice.columns)
            if value < lowest:
                best, lowest = choice, value
        return best

    def _take(self, unit: int, columns: SomeColumns) -> None:
        self._open[unit] = False
        self.support.append(columns)
        self.chosen = np.concatenate([self.chosen, self._members(unit)])

    def _members(self, unit: int) -> Ints:
        if self._groups is None:
            return np.array([unit])
        return np.flatnonzero(self._groups == unit)

    def _correct(self, state: State) -> Correction:
        """Solve for all weights."""
        correction = self._corrective().minimise(state, self.tol, self._floor, self.max_iter)
        self.all_converged &= correction.converged
        return correction

    def _corrective(self) -> Corrective:
        return Corrective(self.support.sums(), self.penalty, self.support.n_free)

    def _with_room(self) -> State:
        """Return the state with weights 0 for columns that have none."""
        now = self.state
        width = self.support.n_columns - len(now.weights)
        weights = np.vstack([now.weights, np.zeros((width, self.n_classes))])
        return State(weights, now.scores, now.residuals, now.loss, now.penalty)

    def _state_at(self, weights: Floats) -> State:
        corrective = self._corrective()
        return corrective.at(weights, corrective.sums.forward(weights))

    # ---- what may come of a choice --------------------------------------------------------------

    def along_gradient(self, columns: SomeColumns) -> float:
        """Return the lowest objective over W + a g e_j', g the gradient for the columns."""
        alone, start = self._alone(columns)
        return lowest_along(alone, start, -alone.gradient(start)).value

    def along_columns(self, columns: SomeColumns) -> float:
        """Return the lowest objective over W + u e_j'."""
        alone, start = self._alone(columns)
        return self._promise(alone, start)

    def over_support(self, columns: SomeColumns) -> float:
        """Return the lowest objective over all weights for the chosen columns and these."""
        n_columns = self.support.n_columns
        self.support.append(columns)
        start = self._with_room()
        value = self._promise(self._corrective(), start)
        self.support.shorten(n_columns)
        return value

    def _promise(self, corrective: Corrective, start: State) -> float:
        """Return about the lowest objective, from a rough search that tells what it left."""
        found = corrective.minimise(start, ROUGH * self.tol, self._floor, self.max_iter)
        return found.state.value - found.excess

    def _alone(self, columns: SomeColumns) -> tuple[Corrective, State]:
        """Return the task over some columns alone, on top of the scores so far."""
        now, sums = self.state, self.rows.sums(columns)
        zeros = np.zeros((sums.n_columns, self.n_classes))
        start = State(zeros, now.scores, now.residuals, now.loss, 0.0)
        return Corrective(sums, self.penalty, 0), start


# What a choice is judged by: nothing but its gradient, or the objective that it could lead to.
RULES: dict[str, Callable[[Greedy, SomeColumns], float] | None] = {
    "gradient": None,
    "line": Greedy.along_gradient,
    "column": Greedy.along_columns,
    "full": Greedy.over_support,
}

"""Replay: the trials of a run once more, with other weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from kesler.bank_machine import BankMachine
from kesler.classes import ClassTable
from kesler.errors import KeslerError
from kesler.estimators.base import OnlineLearner
from kesler.estimators.told import Told
from kesler.hypotheses import Ordered
from kesler.kernel_machine import KernelMachine
from kesler.links import Link
from kesler.machine import LINEAR, Machine
from kesler.rows import Rows
from kesler.updates import UpdateRule

Block = tuple[Rows, Told, npt.NDArray[np.float64] | None]


class Replay:
    """Rows and answers that a learner is given from its beginning, to be gone through again.

    What a trial looks like, phi_t(x, r), depends on the classes met and on their statistics, which
    are those of the rows before it. A pass therefore begins where the run did, with no class known;
    only the weights are other ones.

    Parameters
    ----------
    learner : an unfitted estimator, whose hypotheses and answers they are.
    blocks : what it is given, a block of rows at a time.

    Raises
    ------
    KeslerError
        If there is no row, one has a weight that is neither 0 nor 1, or confusions have costs:
        theorems are of rows and confusions that count alike. If the learner forgets, has a metric,
        learns from newcomers, or has weights that begin elsewhere than at 0: none is of those.
    """

    def __init__(self, learner: OnlineLearner, blocks: Iterable[Block]) -> None:
        self._pieces = [_counted(*block) for block in blocks]
        self.n_rows = sum(len(rows) for rows, _ in self._pieces)
        if not self.n_rows:
            raise KeslerError("there is no row to bound the mistakes of")
        made = learner._prepared(dense=self._pieces[0][0].dense)
        if isinstance(made, BankMachine):
            raise KeslerError(
                "a bank has the bound of weighted majority against its best learner, and no other: "
                "ask Bank(combine='majority') for mistake_bound_"
            )
        if isinstance(made, KernelMachine):
            raise KeslerError(
                f"the competitor of a bound is looked for among weights, and over {made.kernel!r} "
                "there are none: leave the kernel out"
            )
        if any(isinstance(part, Ordered) for part in made.parts):
            raise KeslerError(
                "thresholds between ranks are given a place when a rank is met, which no theorem "
                "allows for: ask for the bound of hypotheses='multi'"
            )
        if made.costs is not None:
            raise KeslerError(
                "theorems of margins of 1 say nothing with costs of confusions: leave them out"
            )
        if made.half_life is not None:
            raise KeslerError(
                "no theorem is of learners that forget: leave half_life out to ask for a bound"
            )
        if not made.metric.is_euclidean or made.newcomers != "wait":
            raise KeslerError(
                f"no theorem is of learners in the metric {made.metric!r} with newcomers that "
                f'{made.newcomers!r}: ask with metric="euclidean" and newcomers="wait"'
            )
        if any(getattr(part, "begins_at", 0.0) for part in made.parts):
            raise KeslerError(
                "theorems are of weights that begin at 0: leave begins_at out to ask for a bound"
            )
        self.parts, self.rule, self.link = made.parts, made.rule, made.link
        self._constant, self._answer = made.constant, made.answer
        self._conditioning = made.conditioning
        self._n_virtual, self._order = made.classes.n_virtual, made.classes.declared
        self.squared_lengths = np.zeros(2)
        self.largest = 0.0

    def machine(self, rule: UpdateRule, link: Link = LINEAR) -> Machine:
        """Return a machine of the same parts that has met no class, with another rule or link."""
        classes = ClassTable(n_virtual=self._n_virtual, declared=self._order)
        machine = Machine(
            self.parts,
            rule,
            classes,
            self._constant,
            answer=self._answer,
            link=link,
            conditioning=self._conditioning,
        )
        machine.stays_dense = True  # theorems ask for every weight
        return machine

    def learn(self, machine: Machine, n_pieces: int = 1) -> Iterator[None]:
        """Let a machine go through the trials, from its weights on, and stop after each piece."""
        machine.rewind()
        step = -(-self.n_rows // n_pieces)
        for rows, told in self._pieces:
            for start in range(0, len(rows), step):
                part = slice(start, start + step)
                machine.learn(rows[part], told[part].names, None, told[part].answers)
                yield

    def measure(self, machine: Machine) -> npt.NDArray[np.float64]:
        """Return the margins of a machine's weights in the trials that compare classes.

        The machine must have met every class. `squared_lengths` becomes what
        :meth:`~kesler.machine.Machine.measure` says of the trials.
        """
        margins = self._measure(machine, self.squared_lengths, 2.0)
        compared: npt.NDArray[np.float64] = margins[np.isfinite(margins)]
        return compared

    def find_largest(self, machine: Machine) -> None:
        """Set `largest`, the largest entry of phi(x, r) - phi(x, s) that a trial compares."""
        squares = np.zeros(2)
        self._measure(machine, squares, np.inf)
        self.largest = float(np.sqrt(squares[1]))

    def _measure(
        self, machine: Machine, squared_lengths: npt.NDArray[np.float64], exponent: float
    ) -> npt.NDArray[np.float64]:
        machine.rewind()
        pieces = [
            machine.measure(rows, told.names, told.answers, squared_lengths, exponent)
            for rows, told in self._pieces
        ]
        return np.concatenate(pieces)


def _counted(rows: Rows, told: Told, weights: npt.NDArray[np.float64] | None) -> tuple[Rows, Told]:
    """Return the rows of a block that count, all alike."""
    if weights is None or (weights == 1).all():
        return rows, told
    if not np.isin(weights, (0, 1)).all():
        raise KeslerError(
            "sample_weight gives rows weights other than 0 and 1, and no theorem says how many "
            "mistakes are made then: leave it out"
        )
    kept = np.flatnonzero(weights)
    return rows.take(kept), told.take(kept)

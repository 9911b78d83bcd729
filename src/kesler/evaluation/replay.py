"""Replay: repetition of the trials of a run with other weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.hypotheses import Ordered
from kesler.learner.classes import ClassTable
from kesler.learner.ensemble import EnsembleLearner
from kesler.learner.learner import Learner
from kesler.learner.state import LINEAR
from kesler.learner.targets import Targets
from kesler.links.link import Link
from kesler.online.base import OnlineLearner
from kesler.updates.rule import UpdateRule

Block = tuple[Rows, Targets, npt.NDArray[np.float64] | None]


class Replay:
    """The rows and targets of a run from its first row, which can be repeated.

    The feature map phi_t(x, r) of a trial depends on the classes seen and on their statistics over
    the rows before it. Each pass therefore starts as the run did, with no class known; only the
    weights differ.

    Parameters
    ----------
    learner : an unfitted estimator with the hypotheses and targets of the run.
    blocks : the blocks of rows of the run, with encoded targets and sample weights.

    Raises
    ------
    KeslerError
        If there is no row, a sample weight is neither 0 nor 1, or confusions have costs: theorems
        assume equal weights and costs. Also if the learner has a half-life, a preconditioner,
        initial weights other than 0, or learns from first rows of classes: no theorem covers these.
    """

    def __init__(self, learner: OnlineLearner, blocks: Iterable[Block]) -> None:
        self._pieces = [rows_of_weight_one(*block) for block in blocks]
        self.n_rows = sum(len(rows) for rows, _ in self._pieces)
        if not self.n_rows:
            raise KeslerError("there is no row: a mistake bound needs at least one")
        made = learner._prepared(dense=self._pieces[0][0].dense)
        if isinstance(made, EnsembleLearner):
            raise KeslerError(
                "no theorem covers ensembles, except weighted majority against its best learner: "
                "use mistake_bound_ of Ensemble(combine='majority')"
            )
        require_theorem(made)
        self.parts, self.rule, self.link = made.parts, made.rule, made.link
        self._constant, self._answer = made.constant, made.answer
        self._preprocessing = made.preprocessing
        self._n_virtual, self._order = made.classes.n_virtual, made.classes.declared
        self.squared_lengths = np.zeros(2)
        self.largest = 0.0

    def learner(self, rule: UpdateRule, link: Link = LINEAR) -> Learner:
        """Return a learner with the same parts, a given rule and link, and no class seen."""
        classes = ClassTable(n_virtual=self._n_virtual, declared=self._order)
        learner = Learner(
            self.parts,
            rule,
            classes,
            self._constant,
            answer=self._answer,
            link=link,
            preprocessing=self._preprocessing,
        )
        learner.stays_dense = True  # theorems need every weight
        return learner

    def learn(self, learner: Learner, n_pieces: int = 1) -> Iterator[None]:
        """Run a learner over the trials from its current weights; yield after each piece."""
        learner.rewind()
        step = -(-self.n_rows // n_pieces)
        for rows, targets in self._pieces:
            for start in range(0, len(rows), step):
                part = slice(start, start + step)
                learner.learn(rows[part], targets[part].names, None, targets[part].answers)
                yield

    def measure(self, learner: Learner) -> npt.NDArray[np.float64]:
        """Return the margins of the weights of a learner in the trials that compare classes.

        The learner must have seen every class. `squared_lengths` is set as in
        :meth:`~kesler.learner.learner.Learner.measure`.
        """
        margins = self._measure(learner, self.squared_lengths, 2.0)
        compared: npt.NDArray[np.float64] = margins[np.isfinite(margins)]
        return compared

    def find_largest(self, learner: Learner) -> None:
        """Set `largest`, the largest entry of phi(x, r) - phi(x, s) that a trial compares."""
        squares = np.zeros(2)
        self._measure(learner, squares, np.inf)
        self.largest = float(np.sqrt(squares[1]))

    def _measure(
        self, learner: Learner, squared_lengths: npt.NDArray[np.float64], exponent: float
    ) -> npt.NDArray[np.float64]:
        learner.rewind()
        pieces = [
            learner.measure(rows, targets.names, targets.answers, squared_lengths, exponent)
            for rows, targets in self._pieces
        ]
        return np.concatenate(pieces)


def require_theorem(made: Learner) -> None:
    """Raise if no theorem covers a learner, whatever its rule."""
    if any(isinstance(part, Ordered) for part in made.parts):
        raise KeslerError(
            "no theorem covers thresholds that are initialized when a rank is first seen: "
            "evaluate the bound with hypotheses='multi'"
        )
    if made.costs is not None:
        raise KeslerError("no theorem covers costs of confusions: evaluate the bound without costs")
    if made.decision == "distance":
        raise KeslerError(
            "no theorem covers predictions of the least expected distance in a tree: evaluate the "
            "bound without tree"
        )
    if made.half_life is not None:
        raise KeslerError(
            "no theorem covers learners that forget: evaluate the bound without half_life"
        )
    if made.replay is not None:
        raise KeslerError(
            "no theorem covers rows that are learnt again: evaluate the bound with replay=0"
        )
    if not made.preconditioner.is_euclidean or made.on_new_class != "register":
        raise KeslerError(
            f"no theorem covers the preconditioner {made.preconditioner!r} with on_new_class="
            f'{made.on_new_class!r}: evaluate the bound with preconditioner="euclidean" and '
            'on_new_class="register"'
        )
    if any(part.begins_at for part in made.parts):
        raise KeslerError(
            "no theorem covers initial weights other than 0: evaluate the bound without begins_at"
        )


def rows_of_weight_one(
    rows: Rows, targets: Targets, weights: npt.NDArray[np.float64] | None
) -> tuple[Rows, Targets]:
    """Return the rows of a block of weight 1."""
    if weights is None or (weights == 1).all():
        return rows, targets
    if not np.isin(weights, (0, 1)).all():
        raise KeslerError(
            "no theorem covers sample_weight other than 0 and 1: evaluate the bound without "
            "sample_weight"
        )
    stored = np.flatnonzero(weights)
    return rows.take(stored), targets.take(stored)

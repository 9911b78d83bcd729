"""The oracle of `reference.py`, watched: where its trials hang on the last bits of a number.

What a trial does is discontinuous in the scores: a tie goes one way or the other, a constraint is
counted or not. Beyond a trial that rounding decides, two learners rightly part, so that nothing is
compared from there on. But sums of the same terms are equal in any arithmetic: where the oracle's
dot products round them apart they are made equal again, so that the rule for ties is compared too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import reference

Array = NDArray[np.float64]

CLOSE = 1e-5  # of the sum of all absolute terms of a score; float32 keeps 6e-8 of each
CLOSE_SOLVED = 3e-4  # the same, where a solver stops at 1e-6 of a margin of 1


# Steps that do not shrink with the loss: whether there is one hangs on the last bits at 0.
FIXED_STEPS = (
    "hinge",
    *(each for each in reference.UNIT_STEPS if each in reference.names_of(reference.most_violated)),
)


class Watched:
    """One run of the oracle.

    Attributes
    ----------
    predictions, mistakes, first_seen, W : as `reference_run` returns them, ties restored.
    doubtful : the first trial that rounding decides, or the number of trials.
    tolerance : how far from W rounding may lead, in the shapes of W.
    """

    def __init__(
        self, X: Array, y: Any, parts: list[reference.Part], update: str, C: float, weights: Any
    ) -> None:
        self.update = update
        self.margin = reference.margin_of(update, C)
        plain = [(part["kind"], part.get("map")) for part in parts] == [("per_class", None)]
        self._solved = update == "mira" and not plain  # not in closed form
        self.close = CLOSE_SOLVED if self._solved else CLOSE
        self.predictions = [-1]
        self._views: list[Array] = []
        self._scores = np.zeros(0)
        self._w: Any = 0.0
        self._length: Any = 0.0  # of all steps so far, in every weight
        self._one_way: Any = 0.0
        self._alpha = np.zeros(0)
        self._t = 0
        self.doubtful = len(X)
        originals = {name: getattr(reference, name) for name in ("stack", "move")}
        rule = reference.RULES[update]

        def stack(x: Array, r: int, running: Any, parts: Any, k: int) -> Array:
            if r == 0:
                self._views = []
            self._views.append(originals["stack"](x, r, running, parts, k))
            if len(self._views) == n_known(self._t):
                self._begin_trial()
            return self._views[-1]

        def n_known(t: int) -> int:
            return len(np.unique(y[: t + 1]))

        def noting_rule(*arguments: Any) -> Array:
            self._alpha = rule(*arguments)
            return self._alpha

        def move(_: str, V: Array, __: Array, answer: int, C: float, weight: float) -> Array:
            moved: Array = originals["move"](update, V, self._scores, answer, C, weight)
            self._end_trial(V, answer, moved, weight if update in reference.UNIT_STEPS else 1.0)
            return moved

        with (
            patch.multiple(reference, stack=stack, move=move),
            patch.dict(reference.RULES, {update: noting_rule}),
        ):
            run = reference.reference_run(X, y, parts, update, C, weights)
        self.first_seen, self.W = run["first_seen"], run["W"]
        known = np.isin(np.arange(len(X)), self.first_seen, invert=True)
        self.mistakes = int(((np.array(self.predictions) != y) & known).sum())
        length = self._length + np.zeros(sum(part.size for part in self.W))
        flat = self.close * (length + 0.01 * length.max()) + (1e-5 if self._solved else 0.0)
        ends = np.cumsum([part.size for part in self.W])[:-1]
        pieces = zip(np.split(flat, ends), self.W, strict=True)
        self.tolerance = [piece.reshape(part.shape) for piece, part in pieces]

    def _begin_trial(self) -> None:
        """Score the views of all known classes."""
        self._t += 1
        V = np.array(self._views)
        self._size = (abs(V) * self._length).sum(axis=1).max()
        terms, lengths = np.sort(V * self._w, axis=1), np.sort(abs(V) * self._one_way, axis=1)
        terms = np.concatenate([terms, lengths], axis=1)
        self._same = (terms[:, None] == terms).all(axis=2)
        if self._solved and self._size > 0:
            self._same = np.eye(len(V), dtype=bool)  # its solver treats equals in order
        self._scores = (V * self._w).sum(axis=1)[np.argmax(self._same, axis=1)]
        self.predictions.append(int(np.argmax(self._scores)))
        self._doubt_if_tied(self.predictions[-1], range(len(V)))

    def _end_trial(self, V: Array, y: int, moved: Array, factor: float) -> None:
        """Judge how the constraints were chosen, then take the step."""
        choose, scores = reference.CHOICES[self.update], self._scores
        chosen = choose(scores, y, self.margin)
        others = [s for s in range(len(V)) if s != y]
        if choose is reference.most_violated and chosen:
            self._doubt_if_tied(chosen[0], others)
            near = abs(self.margin - (scores[y] - scores[chosen])) <= self.close * self._size
            self._doubt_if(self.update in FIXED_STEPS and near.any())
        if choose is reference.mistaken:
            self._doubt_if_tied(y, others)
        if choose is reference.with_loss:
            losses = self.margin - (scores[y] - scores[others])
            self._doubt_if((abs(losses) <= self.close * self._size).any())
        # ||d||^2 of nearly equal views: little of it is left in float32.
        norms = ((V[y] - V[chosen]) ** 2).sum(axis=1)
        sizes = (V[y] ** 2).sum() + (V[chosen] ** 2).sum(axis=1)
        self._doubt_if(((norms > 0) & (norms < 1e-3 * sizes)).any())
        # A solver that stops at 1e-6 of a loss leaves more open in w, where ||d|| is small.
        self._doubt_if(self._solved and ((norms > 0) & (norms < 0.5)).any())
        self._w = self._w + moved
        moves = abs(V[y]) + abs(V[chosen])
        self._length = self._length + factor * self._alpha @ moves
        # There and back by the same way (a hypothesis that both classes share) from 0 is 0 again.
        self._one_way = self._one_way + factor * self._alpha @ np.where(V[y] == V[chosen], 0, moves)

    def _doubt_if_tied(self, r: int, others: Sequence[int]) -> None:
        """Classes of different terms whose scores are equal or nearly so."""
        gaps = abs(self._scores[others] - self._scores[r])
        self._doubt_if(((gaps <= self.close * self._size) & ~self._same[r][others]).any())

    def _doubt_if(self, doubt: bool | np.bool_) -> None:
        if doubt:
            self.doubtful = min(self.doubtful, self._t)

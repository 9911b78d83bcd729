"""The oracle of `reference.py`, watched: where its trials hang on the last bits of a float32.

Its answers are discontinuous in the scores: a tie goes one way or the other, a constraint is
counted or not. Beyond a trial that rounding decides, two learners rightly part, so nothing is
compared from there on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import reference
from numpy.typing import NDArray

CLOSE = 1e-5  # relative to the sum of the absolute terms of a score; float32 keeps 6e-8 of each


@dataclass
class Trial:
    """What happened in one trial: the views V^r stacked, the answer (None on a class's first)."""

    views: list[NDArray[np.float64]] = field(default_factory=list)
    answer: int | None = None
    moved: Any = 0.0


def watch(*arguments: Any, **named: Any) -> tuple[dict[str, Any], list[Trial]]:
    """Run the oracle and note its trials."""
    trials = [Trial()]  # the first row is scored against nothing
    stack, move = reference.stack, reference.move

    def noting_stack(x: Any, r: int, *rest: Any) -> Any:
        if r == 0:
            trials.append(Trial())
        trials[-1].views.append(stack(x, r, *rest))
        return trials[-1].views[-1]

    def noting_move(update: str, V: Any, scores: Any, y: int, *rest: Any) -> Any:
        trials[-1].answer, trials[-1].moved = y, move(update, V, scores, y, *rest)
        return trials[-1].moved

    with patch.object(reference, "stack", noting_stack), patch.object(reference, "move", noting_move):
        return reference.reference_run(*arguments, **named), trials


def first_doubtful(trials: list[Trial], update: str) -> int:
    """Return the first trial that rounding decides, or the number of trials."""
    w: Any = 0.0
    for t, trial in enumerate(trials[1:], start=1):
        V = np.array(trial.views)
        if _is_doubtful(V, V @ (w + np.zeros(V.shape[1])), abs(V * w).sum(axis=1).max(), trial, update):
            return t
        w = w + trial.moved
    return len(trials)


def _is_doubtful(V: Any, scores: Any, size: float, trial: Trial, update: str) -> bool:
    def close(differences: Any, *, ties_too: bool = False) -> bool:
        gaps = abs(np.asarray(differences))
        # Equal scores of equal sums (all weights zero, the same groups) are a tie for both.
        return bool(((gaps <= CLOSE * size) & (ties_too | (gaps > 0))).any())

    ranked = np.sort(scores)[::-1]
    if close(ranked[:1] - ranked[1:2]):
        return True
    y = trial.answer
    if y is None or len(scores) == 1:
        return False
    others = np.delete(scores, y)
    losses = 1.0 - (scores[y] - others)
    ranked = np.sort(others)[::-1]
    choose = reference.CHOICES[update]
    chosen = choose(scores, y)
    if choose is reference.most_violated and close(ranked[:1] - ranked[1:2]):
        return True
    if choose is reference.mistaken and close(scores[y] - others):
        return True
    if choose is reference.with_loss and close(losses, ties_too=True):
        return True
    # ||d||^2 of nearly equal views: little of it is left in float32.
    norms = ((V[y] - V[chosen]) ** 2).sum(axis=1)
    sizes = (V[y] ** 2).sum() + (V[chosen] ** 2).sum(axis=1)
    return bool(((norms > 0) & (norms < 1e-3 * sizes)).any())

"""Ways to combine learners in plain NumPy, written from the maths in `kesler.Ensemble`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def shares(losses: Array, base: float) -> Array:
    """Littlestone and Warmuth 1994, sec. 5: base^losses, made to sum to 1."""
    return np.asarray(base**losses / (base**losses).sum())


def combined(way: str, winners: Any, p: Array, y: Any, discount: float, b: float) -> list[int]:
    """What an ensemble predicts of each row: winners (members, rows), p (members, rows.

    Classes).
    """
    losses, k, found = np.zeros(len(winners)), 0, []
    for t, answer in enumerate(y):
        scores = np.zeros(k)
        if k and way == "majority":
            np.add.at(scores, winners[:, t], shares(losses, b))
        elif way == "mixture":
            scores = shares(losses, np.exp(-1)) @ p[:, t, :k]
        found.append(int(scores.argmax()) if k else -1)
        if k and way == "best":
            found[-1] = int(winners[losses.argmin(), t])
        if answer >= k:
            k = answer + 1
        elif way == "majority":
            losses = losses + (winners[:, t] != answer)
        else:
            wrong = winners[:, t] != answer
            losses = discount * losses + (wrong if way == "best" else -np.log(p[:, t, answer]))
    return found

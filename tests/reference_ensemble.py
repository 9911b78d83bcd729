"""Ways to combine learners in plain NumPy, written from the maths in `kesler.Ensemble`."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def shares(losses: Array, base: float) -> Array:
    """Littlestone and Warmuth 1994, sec. 5: base^losses, made to sum to 1."""
    return np.asarray(base**losses / (base**losses).sum())


def with_pools(p: Array, y: Any) -> Iterator[tuple[int, int, Array]]:
    """Yield each target, the number of classes known before it and the experts' probabilities.

    Genest and Zidek 1986: the product of the members' probabilities to a power each, scaled to 1;
    the powers follow the gradient of the log-loss. The last expert corrects the pool by a logistic
    regression, of whether the target is that of the row before, on the log-odds.
    """
    k, last, powers, power_squares = 0, -1, np.full(len(p), 1 / len(p)), np.ones(len(p))
    theta, squares, steps = np.array([1.0, 0.0]), np.ones(2), np.array([0.1, 0.3])
    for t, answer in enumerate(y):
        if len(p) == 1:
            yield answer, k, p[:, t]
            k = max(k, answer + 1)
            continue
        pools, before = np.zeros((2, p.shape[2])), np.ones(2)
        if k:
            logs = np.log(np.maximum(p[:, t, :k], 1e-6))
            pools[:, :k] = np.exp(powers @ logs) / np.exp(powers @ logs).sum()
        if k > 1:
            was = np.clip(pools[0, last], 1e-6, 1 - 1e-6)
            before[0] = np.log(was / (1 - was))
            again = np.clip(1 / (1 + np.exp(-theta @ before)), 1e-6, 1 - 1e-6)
            pools[1] *= (1 - again) / (1 - was)
            pools[1, last] = again
        yield answer, k, np.vstack([p[:, t], pools])
        if answer < k and k > 1:
            slope = (again - (answer == last)) * before
            squares += slope**2
            theta = theta - steps * slope / np.sqrt(squares)
        if answer < k:
            slopes = logs @ pools[0, :k] - logs[:, answer]
            power_squares += slopes**2
            powers = np.clip(powers - 0.1 * slopes / np.sqrt(power_squares), 0.0, 5.0)
        k, last = max(k, answer + 1), answer


def fixed_share(p: Array, y: Any, alpha: float) -> tuple[Array, list[float]]:
    """Herbster and Warmuth 1998, sec. 5, with log-loss: the mixtures of each row, and the losses.

    The second are the log-losses of the mixture, of rows whose target is known.
    """
    weights, mixtures, losses = None, np.zeros(p.shape[1:]), []
    for t, (answer, k, experts) in enumerate(with_pools(p, y)):
        if weights is None:
            weights = np.full(len(experts), 1 / len(experts))
        mixtures[t] = weights @ experts
        if answer >= k:
            continue
        likely = np.maximum(experts[:, answer], 1e-30)
        losses.append(-np.log(weights @ likely))
        weights = weights * likely / (weights @ likely)
        weights = (1 - alpha) * weights + alpha / len(weights)
    return mixtures, losses


def best_sequence(p: Array, y: Any, alpha: float) -> float:
    """Return the least loss of a sequence of experts, minus the log of its prior probability."""
    least, n = None, len(p) + 2 * (len(p) > 1)
    stay, switch = 1 - alpha + alpha / n, alpha / n
    for answer, k, experts in with_pools(p, y):
        if answer >= k:
            continue
        loss = -np.log(np.maximum(experts[:, answer], 1e-30))
        before = np.full(n, np.log(n)) if least is None else least
        costs = -np.log(np.where(np.eye(n, dtype=bool), stay, switch))
        least = (before[:, None] + costs).min(axis=0) + loss
    return np.log(n) if least is None else float(np.min(least))


def combined(way: str, winners: Any, p: Array, y: Any, discount: float, b: float) -> list[int]:
    """What an ensemble predicts of each row: winners (members, rows), p (members, rows, classes).

    b is the factor of a mistake for majority, and the share for fixed share.
    """
    if way == "fixed-share":
        new = np.maximum.accumulate(np.concatenate([[-1], y[:-1]]))
        mixtures, _ = fixed_share(p, y, b)
        rows = zip(mixtures, new, strict=True)
        return [int(row[: k + 1].argmax()) if k >= 0 else -1 for row, k in rows]
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

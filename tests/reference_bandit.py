"""Banditron and SOBA in NumPy, in float64 and without Kesler, with the draws of a given seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

GOLDEN = 0x9E3779B97F4A7C15
WORD = 2**64


def random_share(number: int, start: int) -> float:
    """Return a number from 0 to 1: the finaliser of SplitMix64 on a counter."""
    x = (start + number * GOLDEN) % WORD
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    x ^= x >> 31
    return (x >> 11) / 2.0**53


def start_of(seed: int) -> int:
    """Return the number that the draws of a seed start from."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 1)


@dataclass
class Uniform:
    """Draws with uniform exploration."""

    gamma: float
    seed: int
    n_drawn: int = 0

    def draw(self, scores: Array) -> tuple[int, int, float]:
        """Return the class of the highest score, the class to show, and its probability."""
        k, best = len(scores), int(scores.argmax())
        chances = np.full(k, self.gamma / k)
        chances[best] += 1 - self.gamma
        share = random_share(self.n_drawn, start_of(self.seed))
        self.n_drawn += 1
        shown = min(int(np.searchsorted(np.cumsum(chances), share, side="right")), k - 1)
        return best, shown, float(chances[shown])


@dataclass
class Banditron:
    """W += x (1[shown is right] e_shown / P(shown) - e_best)."""

    n_classes: int
    n_features: int
    W: Array = field(init=False)

    def __post_init__(self) -> None:
        self.W = np.zeros((self.n_classes, self.n_features))

    def learn(self, x: Array, best: int, shown: int, right: bool, p: float) -> None:
        """Learn from an answer."""
        update = np.zeros_like(self.W)
        update[best] -= x
        if right:
            update[shown] += x / p
        self.W += update


@dataclass
class SOBA:
    """The second-order Banditron with vectors over all pairs of class and feature."""

    n_classes: int
    n_features: int
    a: float = 1.0
    diagonal: bool = False

    def __post_init__(self) -> None:
        size = self.n_classes * self.n_features
        self.A, self.theta = self.a * np.eye(size), np.zeros(size)
        self.margin = 0.0
        self.W = np.zeros((self.n_classes, self.n_features))

    def learn(self, x: Array, best: int, shown: int, right: bool, p: float) -> None:
        """Learn from an answer."""
        if not right:
            return
        scores = self.W @ x
        scores[shown] = -np.inf
        e: Any = np.eye(self.n_classes)
        g = np.kron(e[scores.argmax()] - e[shown], x) / p
        z, w = np.sqrt(p) * g, self.W.ravel()
        m = ((z @ w) ** 2 + 2 * g @ w) / (1 + z @ np.linalg.solve(self.A, z))
        if self.margin + m < 0:
            return
        self.margin += m
        self.A += np.diag(z * z) if self.diagonal else np.outer(z, z)
        self.theta -= g
        self.W = np.linalg.solve(self.A, self.theta).reshape(self.W.shape)


def run(method: Any, X: Array, y: npt.NDArray[np.int64], gamma: float, seed: int) -> list[int]:
    """Run a method over rows; return the classes that were shown."""
    exploring, shown_classes = Uniform(gamma, seed), []
    for x, right_class in zip(X, y, strict=True):
        best, shown, p = exploring.draw(method.W @ x)
        method.learn(x, best, shown, bool(shown == right_class), p)
        shown_classes.append(shown)
    return shown_classes

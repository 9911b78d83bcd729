"""Uncertainty in plain NumPy, written from the docstring of `kesler.learner.uncertainty`.

Nothing here is taken from the compiled code. Rows are given one after another: the scores of
each member and the probabilities of the classes known before a row, then its class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

COVERAGES = np.array([0.8, 0.9, 0.95, 0.99])
STEPS = np.array([0.06, 0.06, 0.08, 0.3])
OFFSET_STEP = 0.05
RANK_PENALTY, LAST_PENALISED = 0.04, 12
HALF_LIVES = (30, 100, 300, 1000)
MEMORY = 1000


def sigmoid(x: float) -> float:
    return float(1 / (1 + np.exp(-x)))


def clipped_sigmoid(x: float) -> float:
    """The probability of a regression."""
    return float(np.clip(sigmoid(x), 1e-6, 1 - 1e-6))


def logit(p: float) -> float:
    """The logit of a probability clipped to [1e-4, 1 - 1e-4]."""
    p = float(np.clip(p, 1e-4, 1 - 1e-4))
    return float(np.log(p / (1 - p)))


# ---- parts --------------------------------------------------------------------------------------


@dataclass
class Filter:
    """Logistic regression by an extended Kalman filter (Penny and Roberts 1999)."""

    weights: Array
    covariance: Array
    drift: float = 0.0

    def logit(self, x: Array) -> float:
        return float(self.weights @ x)

    def learn(self, x: Array, y: float) -> None:
        """Add the drift; then linearise the sigmoid at the present weights."""
        covariance = self.covariance + self.drift * np.eye(len(x))
        p = clipped_sigmoid(self.logit(x))
        noise = max(p * (1 - p), 1e-4)
        gain = covariance @ x / (1 / noise + x @ covariance @ x) / noise
        self.weights = self.weights + gain * (y - p)
        self.covariance = covariance - noise * np.outer(gain, x @ covariance)


@dataclass
class Moments:
    """Mean and population variance of the numbers so far, of which z is the standard score."""

    numbers: list[float] = field(default_factory=list)

    def z(self, x: float | None) -> float:
        """Return 0 where x is not defined, or before five numbers, or without a deviation."""
        if x is None or len(self.numbers) < 5:
            return 0.0
        deviation = float(np.std(self.numbers))
        if deviation <= 0:
            return 0.0
        return float(np.clip((x - np.mean(self.numbers)) / deviation, -4, 4))

    def learn(self, x: float | None) -> None:
        if x is not None:
            self.numbers.append(x)


@dataclass
class Arrivals:
    """The Bayesian mixture of nine estimates of the probability of a new class."""

    weights: Array = field(default_factory=lambda: np.full(9, 1 / 9))
    codes: list[int] = field(default_factory=list)

    def estimates(self) -> Array:
        n = len(self.codes)
        _, counts = np.unique(self.codes, return_counts=True)
        k, once = len(counts), int((counts == 1).sum())
        fixed = [(once + 0.5) / (n + 1), (k + 0.5) / (n + 1)]
        fixed += [(1 + 0.5 * k) / (1 + n), (1 + 0.3 * k) / (1 + n), 3 / (3 + n)]
        is_first = np.array([c not in self.codes[:i] for i, c in enumerate(self.codes)], float)
        ages = np.arange(n - 1, -1, -1.0)
        for half_life in HALF_LIVES:
            discounts = 0.5 ** (ages / half_life)
            fixed.append((discounts @ is_first + 0.5) / (discounts.sum() + 1))
        return np.clip(fixed, 1e-5, 0.999)

    def prior(self) -> float:
        return float(self.weights @ self.estimates())

    def learn(self, code: int) -> None:
        estimates = self.estimates()
        likely = estimates if code not in self.codes else 1 - estimates
        self.weights = with_share(self.weights * likely, 0.002)
        self.codes.append(code)


def with_share(posterior: Array, share: float) -> Array:
    """Herbster and Warmuth 1998: a share of the weights is spread over all experts."""
    posterior = posterior / posterior.sum()
    return np.asarray((1 - share) * posterior + share / len(posterior))


class Memory:
    """The log-likelihood ratio of the distance to the nearest of the last rows."""

    def __init__(self) -> None:
        self.rows: list[Array] = []
        self.codes: list[int] = []
        self.regression = Filter(np.zeros(2), np.eye(2), 1e-5)

    def log_distance(self, x: Array, without: int | None = None) -> float | None:
        """Return the log distance to the nearest row, leaving out a class; None of no rows."""
        deviations = np.std(self.rows, axis=0) if self.rows else np.ones(len(x))
        means = np.mean(self.rows, axis=0) if self.rows else np.zeros(len(x))
        uses = deviations > np.maximum(1e-15, 1e-7 * np.abs(means))
        recent = zip(self.rows[-MEMORY:], self.codes[-MEMORY:], strict=True)
        squares = [
            float((((x - row)[uses] / deviations[uses]) ** 2).sum())
            for row, code in recent
            if code != without
        ]
        return 0.5 * float(np.log(min(squares) / len(x) + 1e-6)) if squares else None

    def evidence(self, x: Array) -> float:
        distance = self.log_distance(x)
        if distance is None or len(self.rows) < 5:
            return 0.0
        return float(np.clip(self.regression.logit(np.array([1, distance])), -6, 6))

    def learn(self, x: Array, code: int) -> None:
        if code in self.codes[-MEMORY:] and len(self.rows) >= 5:
            both, others = self.log_distance(x), self.log_distance(x, code)
            if both is not None and others is not None:
                self.regression.learn(np.array([1, both]), 0.0)
                self.regression.learn(np.array([1, others]), 1.0)
        self.rows.append(x)
        self.codes.append(code)


def measures(scores: Array) -> list[float | None]:
    """The highest score, by how many deviations it stands out, and its lead over the second."""
    top, k = float(scores.max()), len(scores)
    deviation = float(np.std(scores))
    out = (top - float(scores.mean())) / deviation if k > 2 and deviation > 0 else None
    lead = float(np.subtract(*np.sort(scores)[[-1, -2]])) if k > 1 else None
    return [top, out, lead]


# ---- classes ------------------------------------------------------------------------------------


def set_scores(q: Array) -> Array:
    """The score of each class: the mass of likelier ones, half of its own, and a penalty.

    Of equally likely ones, the class seen first is likelier, and a new class, the last, least.
    """
    found, mass = np.empty(len(q)), 0.0
    for rank, r in enumerate(np.argsort(-q, kind="stable"), 1):
        found[r] = mass + q[r] / 2 + RANK_PENALTY * max(0, min(rank, LAST_PENALISED) - 2)
        mass += q[r]
    return found


@dataclass
class Answer:
    """What is said of a row before its class is known."""

    new: float
    confidence: float
    predicted: float
    sets: NDArray[np.bool_]  # (4, k + 1), the last a new class
    sets_by_class: NDArray[np.bool_]


class Reference:
    """Estimates of uncertainty of single classes, in the order of the first rows of these.

    Parameters
    ----------
    n_members : number of learners whose scores are evidence.
    remembers : whether the last rows are remembered.
    """

    def __init__(self, n_members: int = 1, *, remembers: bool = False) -> None:
        self.arrivals, self.memory = Arrivals(), Memory() if remembers else None
        self.spread = [[Moments() for _ in range(3)] for _ in range(n_members)]
        self.initial = np.array(
            [-0.3, 1.05, -0.5, -0.2, 0.6] if remembers else [-0.3, 1.05, -0.7, -0.3, 0.0]
        )
        self.newness = Filter(self.initial, 0.01 * np.eye(5))
        self.trust = Filter(np.array([0, 1, 0.3]), 0.1 * np.eye(3), 1e-4)
        self.mixed = np.full(3, 1 / 3)
        self.thresholds, self.by_class = COVERAGES.copy(), COVERAGES.copy()
        self.means, self.means_by_class = COVERAGES.copy(), COVERAGES.copy()
        self.offsets: dict[int, Array] = {}
        self.of_new = np.zeros(4)

    @property
    def k(self) -> int:
        return len(set(self.arrivals.codes))

    def _z(self, scores: Array) -> Array:
        found = [
            [moments.z(x) for moments, x in zip(own, measures(row), strict=True)]
            for own, row in zip(self.spread, scores, strict=True)
        ]
        return np.mean(found, axis=0)

    def _experts(self, evidence: Array) -> Array:
        regressions = (float(self.initial @ evidence), self.newness.logit(evidence))
        return np.array([self.arrivals.prior(), *map(clipped_sigmoid, regressions)])

    def _evidence(self, scores: Array, x: Any) -> tuple[Array, float]:
        z_top, z_out, z_lead = self._z(scores)
        log_ratio = 0.0 if self.memory is None else self.memory.evidence(x)
        prior = logit(self.arrivals.prior())
        return np.array([1, prior, z_top, z_out, log_ratio]), z_lead

    def _decode(self, scores: Array, p: Array, predicted: int, x: Any) -> Any:
        evidence, z_lead = self._evidence(scores, x)
        experts = self._experts(evidence)
        new = float(self.mixed @ experts)
        trust = np.array([1, logit(p[predicted] * (1 - new)), z_lead])
        return evidence, experts, new, trust, set_scores(np.append((1 - new) * p, new))

    def say(self, scores: Any, p: Any, predicted: int, x: Any = None) -> Answer:
        """Return what is said of a row.

        Parameters
        ----------
        scores : (n_members, k); p : (k,); predicted : the predicted class, -1 if none is known.
        x : the row, for a memory.
        """
        if not self.k:
            everything = np.ones((4, 1), dtype=bool)
            return Answer(1.0, 0.0, 0.0, everything, everything)
        scores, p = np.asarray(scores, float), np.asarray(p, float)
        _, _, new, trust, v = self._decode(scores, p, predicted, x)
        offsets = np.array([self.offsets[r] for r in range(self.k)] + [self.of_new]).T
        return Answer(
            new,
            clipped_sigmoid(self.trust.logit(trust)),
            float(p[predicted]),
            v <= self.thresholds[:, None],
            v <= self.by_class[:, None] + offsets,
        )

    def learn(self, scores: Any, p: Any, predicted: int, code: int, x: Any = None) -> None:
        """Learn from a row, given what `say` was given."""
        if self.k:
            scores, p = np.asarray(scores, float), np.asarray(p, float)
            is_new = code >= self.k
            evidence, experts, _, trust, v = self._decode(scores, p, predicted, x)
            self.mixed = with_share(self.mixed * (experts if is_new else 1 - experts), 0.0003)
            self.newness.learn(evidence, float(is_new))
            self.trust.learn(trust, float(code == predicted))
            self._move(v[min(code, self.k)], self.of_new if is_new else self.offsets[code])
            for own, row in zip(self.spread, scores, strict=True):
                for moments, measure in zip(own, measures(row), strict=True):
                    moments.learn(measure)
        if self.memory is not None:
            self.memory.learn(x, code)
        self.offsets.setdefault(code, np.zeros(4))
        self.arrivals.learn(code)

    def _move(self, v: float, offsets: Array) -> None:
        """Move the thresholds, those of the class and its offsets, which are changed in place."""
        alpha = 1 - COVERAGES
        outside = v > self.by_class + offsets
        self.thresholds = self.thresholds + STEPS * ((v > self.thresholds) - alpha)
        self.by_class = self.by_class + STEPS * (outside - alpha)
        self.means = followed(self.means, self.thresholds)
        self.means_by_class = followed(self.means_by_class, self.by_class)
        offsets += OFFSET_STEP * (outside - alpha)


def followed(means: Array, thresholds: Array) -> Array:
    """The means of thresholds, with the last ones."""
    return 0.995 * means + 0.005 * thresholds


# ---- ranks and label sets -----------------------------------------------------------------------


def interval_scores(p: Array, predicted: int) -> Array:
    """The score of each known rank, in their order, as an interval grows around the predicted.

    It takes the likelier of its two neighbours, the lower of equal ones.
    """
    low = high = predicted
    found, mass = np.full(len(p), np.nan), 0.0
    for n in range(len(p)):
        if n == 0:
            r = predicted
        elif low == 0 or (high < len(p) - 1 and p[high + 1] > p[low - 1]):
            r = high = high + 1
        else:
            r = low = low - 1
        found[r] = mass + p[r] / 2
        mass += p[r]
    return found


class RankReference:
    """The thresholds of intervals of ranks."""

    def __init__(self) -> None:
        self.thresholds, self.means = COVERAGES.copy(), COVERAGES.copy()

    def say(self, p: Array, predicted: int) -> NDArray[np.bool_]:
        """Return which ranks, in their order, are in the interval of each coverage."""
        return np.asarray(interval_scores(p, predicted) <= self.thresholds[:, None])

    def learn(self, p: Array, predicted: int, rank: int | None) -> None:
        """Learn from a row; its rank is None if it is new."""
        if rank is not None:
            outside = interval_scores(p, predicted)[rank] > self.thresholds
            self.thresholds = self.thresholds + STEPS * (outside - (1 - COVERAGES))
            self.means = followed(self.means, self.thresholds)


class LabelReference:
    """The thresholds of the probabilities of surely relevant labels."""

    def __init__(self) -> None:
        self.thresholds, self.means = COVERAGES.copy(), COVERAGES.copy()

    def say(self, p: Array) -> NDArray[np.bool_]:
        """Return which known labels are in the set of each coverage."""
        return np.asarray(p > self.thresholds[:, None])

    def learn(self, p: Array, relevant: set[int]) -> None:
        """Learn from a row, given the probabilities of the known labels."""
        if len(p):
            irrelevant = [r for r in range(len(p)) if r not in relevant]
            outside = self.say(p)[:, irrelevant].any(axis=1)
            self.thresholds = self.thresholds + STEPS * (outside - (1 - COVERAGES))
            self.means = followed(self.means, self.thresholds)

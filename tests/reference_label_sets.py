"""Probabilities of labels and the threshold of F1 in plain float64 NumPy.

They are written from the maths in `kesler.learner.calibration`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass
class LabelCalibration:
    """What is learnt from the scores of labels above their threshold, and from label sets."""

    n_labels: int
    inverse: float = 1.0
    information: float = 0.0
    hits: float = 1.0
    named: float = 4.0
    offsets: Array = field(init=False)
    evidence: Array = field(init=False)

    def __post_init__(self) -> None:
        self.offsets, self.evidence = np.zeros(self.n_labels), np.zeros(self.n_labels)

    @property
    def threshold(self) -> float:
        """Half of the F1 so far."""
        return self.hits / self.named

    def temper(self, above: Array) -> float:
        """The inverse temperature; before the first informative row the furthest label is at 2."""
        if self.information:
            return self.inverse
        furthest = np.abs(above).max(initial=0.0)
        return 2 / furthest if furthest else 0.0

    def probabilities(self, above: Array) -> Array:
        """Probabilities of the first labels, whose scores above the threshold are given."""
        z = np.clip(self.temper(above) * above, -80, 80)
        return 1 / (1 + np.exp(-(z + self.offsets[: len(above)])))

    def learn(self, above: Array, relevant: Array) -> None:
        """Learn from one row."""
        k, p, inverse = len(above), self.probabilities(above), self.temper(above)
        predicted = p > self.threshold
        self.hits += (predicted & relevant).sum()
        self.named += predicted.sum() + relevant.sum()
        z, variances = np.clip(inverse * above, -80, 80), p * (1 - p)
        if inverse:
            before = self.information or 1.0
            self.information = 0.99 * before + (variances * z**2).sum()
            step = ((relevant - p) * z).sum() / (self.information + 1)
            self.inverse = inverse * np.exp(np.clip(step, -1, 1))
        self.evidence[:k] = 0.999 * self.evidence[:k] + variances
        self.offsets[:k] += (relevant - p) / (self.evidence[:k] + 5)


def progressive(above: Array, relevant: Array) -> tuple[Array, Array, LabelCalibration]:
    """Probabilities and predictions of each row before it is learnt, NaN and False if unknown."""
    learnt = LabelCalibration(relevant.shape[1])
    found, predicted = np.full(above.shape, np.nan), np.zeros(above.shape, dtype=bool)
    for t, row in enumerate(above):
        k = int((~np.isnan(row)).sum())
        if k:
            found[t, :k] = learnt.probabilities(row[:k])
            predicted[t, :k] = found[t, :k] > learnt.threshold
        learnt.learn(row[:k], relevant[t, :k])
    return found, predicted, learnt

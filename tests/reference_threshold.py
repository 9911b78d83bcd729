"""Linear-threshold algorithms in plain float64 NumPy, on instances z of label 1.

Written from their papers, dense, w kept as it is: Rosenblatt (1958); Littlestone (1989) for WMA, as
in Mesterharm (2001), Section 4.2; balanced Winnow (Littlestone 1989); Grove et al. (1997) for
p-norms; Li and Long (2002); Gentile (2001).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = Any


@dataclass
class Threshold:
    """An algorithm: weights, and whether it was wrong about an instance before it learnt it."""

    n: int
    memory: dict[str, Any] = field(default_factory=dict)
    w: Array = None

    def __post_init__(self) -> None:
        self.w = self.begin()

    def begin(self) -> Array:
        return np.zeros(self.n)

    def is_wrong(self, z: Array) -> bool:
        """Mesterharm 2001, sec. 2.3: label 1 is predicted where <w, z> > 0."""
        return float(self.w @ z) <= 0

    def learn(self, z: Array) -> None:
        raise NotImplementedError


class Perceptron(Threshold):
    def learn(self, z: Array) -> None:
        if self.is_wrong(z):
            self.w = self.w + z


class WMA(Threshold):
    """Mesterharm 2001, sec. 4.2, alpha = 2: weights from 1, scaled to a sum of at most 1e6."""

    def begin(self) -> Array:
        return np.ones(self.n)

    def learn(self, z: Array) -> None:
        if self.is_wrong(z):
            self.w = self.w * 2.0**z
            self.w = self.w * min(1.0, 1e6 / self.w.max())


class BalancedWinnow(Threshold):
    """Littlestone 1989: a weight for each attribute and one for its negative."""

    def begin(self) -> Array:
        self.memory = {"up": np.ones(self.n), "down": np.ones(self.n)}
        return np.zeros(self.n)

    def learn(self, z: Array) -> None:
        if self.is_wrong(z):
            up, down = self.memory["up"] * 2.0**z, self.memory["down"] * 2.0**-z
            shrink = min(1.0, 1e6 / max(up.max(), down.max()))
            self.memory = {"up": up * shrink, "down": down * shrink}
            self.w = self.memory["up"] - self.memory["down"]


class PNorm(Threshold):
    """Grove et al. 1997 with p = 8."""

    def begin(self) -> Array:
        self.memory = {"v": np.zeros(self.n)}
        return np.zeros(self.n)

    def learn(self, z: Array) -> None:
        if self.is_wrong(z):
            v = self.memory["v"] = self.memory["v"] + z
            self.w = np.sign(v) * (abs(v) / max(abs(v).max(), 1e-300)) ** 7


class ROMMA(Threshold):
    """Li and Long 2002: the shortest w with w.w_t >= ||w_t||^2 and w.z >= 1, on mistakes."""

    def learn(self, z: Array) -> None:
        if not self.is_wrong(z) or not z.any():
            return
        w = self.w
        if not w.any():
            self.w = z / (z @ z)
            return
        G = np.array([[w @ w, w @ z], [w @ z, z @ z]])
        if np.linalg.det(G) > 1e-6 * G[0, 0] * G[1, 1]:
            self.w = np.linalg.solve(G, [w @ w, 1.0]) @ np.array([w, z])


class ALMA(Threshold):
    """Gentile 2001, Fig. 1: p = 2, alpha = 0.9, B = sqrt(8) / alpha, C = sqrt(2)."""

    def learn(self, z: Array) -> None:
        k = self.memory.get("k", 1)
        if not z.any():
            return
        unit, alpha = z / np.linalg.norm(z), 0.9
        gamma = np.sqrt(8) / alpha / np.sqrt(k)
        if self.w @ unit <= (1 - alpha) * gamma:
            w = self.w + np.sqrt(2) / np.sqrt(k) * unit
            self.w = w / max(1.0, float(np.linalg.norm(w)))
            self.memory["k"] = k + 1


class ALMAp(Threshold):
    """Gentile 2001, Fig. 1: p = 8, alpha = 0.9, B = sqrt(8) / alpha, C = sqrt(2)."""

    p, alpha = 8.0, 0.9

    def learn(self, z: Array) -> None:
        k, p, q = self.memory.get("k", 1), self.p, self.p / (self.p - 1)
        if not z.any():
            return
        unit = z / np.linalg.norm(z, p)
        gamma = np.sqrt(8) / self.alpha * np.sqrt(p - 1) / np.sqrt(k)
        if self.w @ unit <= (1 - self.alpha) * gamma:
            theta = gradient(self.w, q) + np.sqrt(2) / np.sqrt(p - 1) / np.sqrt(k) * unit
            w = gradient(theta, p)
            self.w = w / max(1.0, float(np.linalg.norm(w, q)))
            self.memory["k"] = k + 1


def gradient(w: Array, q: float) -> Array:
    """The gradient of half the squared q-norm; that of its dual norm is its inverse."""
    norm = np.linalg.norm(w, q)
    return np.sign(w) * abs(w) ** (q - 1) / norm ** (q - 2) if norm > 0 else w


class Counted(Threshold):
    """The algorithm of homemade.py."""

    def begin(self) -> Array:
        self.memory = {"sizes": np.zeros(self.n)}
        return np.full(self.n, 0.25)

    def learn(self, z: Array) -> None:
        if self.is_wrong(z):
            self.memory["sizes"] = self.memory["sizes"] + abs(z)
            self.w = self.w + 0.5 * z / (1 + self.memory["sizes"])


ALGORITHMS: dict[str, Callable[[int], Threshold]] = {
    **{"perceptron": Perceptron, "wma": WMA, "winnow": BalancedWinnow, "p-norm": PNorm},
    **{"romma": ROMMA, "alma": ALMA, "alma-p": ALMAp, "counted": Counted},
}

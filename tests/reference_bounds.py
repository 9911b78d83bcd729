"""The oracle of bounds: the theorems of the papers on the oracle's own views, in plain NumPy.

Written from the papers: Fink et al. (2006), Theorem 1; Amit et al. (2006), Theorem 1 and Corollary
1; Mesterharm (2001), Section 4.1; Crammer et al. (2006), Theorems 2, 4 and 5. A competitor is one
vector u, its hypotheses end to end, as `reference.stack` lays out the views.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import reference
from reference import Array, Part


@dataclass
class Views:
    """V[t][r] = phi_t(x, r) over all hypotheses, of the classes known in trial t; y[t] is right.

    Only trials of a class that was seen before, beside another one: Fink et al. 2006, sec. 2,
    counts neither a mistake nor a loss in the others.
    """

    V: list[Array]
    y: list[int]
    n_features: int
    rho: int

    def losses(self, u: Array) -> Array:
        """Fink et al. 2006, sec. 2: (1 - h(x, y) + max_r h(x, r))_+."""
        gaps = [V[y] @ u - np.delete(V @ u, y).max() for V, y in zip(self.V, self.y, strict=True)]
        return np.maximum(0.0, 1.0 - np.array(gaps))

    def differences(self) -> Array:
        """Every phi(x, y) - phi(x, s)."""
        pairs = zip(self.V, self.y, strict=True)
        return np.concatenate([V[y] - np.delete(V, y, axis=0) for V, y in pairs])


def views_of(X: Array, y: Any, parts: list[Part]) -> Views:
    """Go through the trials as `reference_run` does, without moving."""
    k, running, V, right = int(np.max(y)) + 1, list[reference.Seen](), list[Array](), list[int]()
    everyone: list[Any] = []
    for x, r in zip(X, map(int, y), strict=True):
        if r == len(running):
            running.append(reference.Seen(everyone))
        elif len(running) > 1:
            V.append(np.array([reference.stack(x, s, p, parts, k) for s, p in enumerate(running)]))
            right.append(r)
        running[r].append((x, 1.0))
    rho = max(sum(len(reference.members(part, r)) for part in parts) for r in range(k))
    return Views(V, right, X.shape[1], rho)


def fink(views: Views, u: Array, C: float) -> float:
    """Fink et al. 2006, Theorem 1 and Eq. 8."""
    blocks = np.concatenate(views.V).reshape(-1, views.n_features)
    R = 2 * np.sqrt((blocks**2).sum(axis=1).max())
    loss, complexity = views.losses(u).sum(), views.rho * R**2 * u @ u
    return float(loss + complexity + np.sqrt(loss * complexity))


def linear_max(views: Views, u: Array, C: float) -> float:
    """Mesterharm 2001, sec. 4.1: s^2 ||u||^2 / delta^2."""
    d = views.differences()
    delta = (d @ u).min()
    return float((d**2).sum(axis=1).max() * (u @ u) / delta**2) if delta > 0 else np.inf


def amit(views: Views, u: Array, C: float) -> float:
    """Amit et al. 2006, Theorem 1 and Corollary 1; it says nothing from C = 2 / R^2 on."""
    square = (views.differences() ** 2).sum(axis=1).max()
    below = C - C**2 * square / 2
    return float((u @ u / 2 + C * views.losses(u).sum()) / below) if below > 0 else np.inf


def crammer_0(views: Views, u: Array, C: float) -> float:
    """Crammer et al. 2006, Theorem 2, with u of margin 1: R^2 ||u||^2."""
    square = (views.differences() ** 2).sum(axis=1).max()
    return float(square * u @ u) if views.losses(u).max() == 0 else np.inf


def crammer_1(views: Views, u: Array, C: float) -> float:
    """Crammer et al. 2006, Theorem 4."""
    square = (views.differences() ** 2).sum(axis=1).max()
    return float(max(square, 1 / C) * (u @ u + 2 * C * views.losses(u).sum()))


def crammer_2(views: Views, u: Array, C: float) -> float:
    """Crammer et al. 2006, Theorem 5."""
    square = (views.differences() ** 2).sum(axis=1).max()
    return float((square + 1 / (2 * C)) * (u @ u + 2 * C * (views.losses(u) ** 2).sum()))


def competitor(views: Views, C: float) -> Array:
    """Return the weights of a support vector machine on the differences, and their negatives.

    Solved to the end or not, they are a competitor.
    """
    d = views.differences()
    learner = LinearSVC(C=C, loss="hinge", fit_intercept=False, max_iter=2000, random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        learner.fit(np.concatenate([d, -d]), np.repeat([1, -1], len(d)))
    return np.asarray(learner.coef_[0], dtype=np.float64)


BOUNDS: dict[str, list[Callable[[Views, Array, float], float]]] = {
    "perceptron": [fink, linear_max],
    "simperc": [amit],
    "conproj": [amit],
    "pa": [crammer_0],
    "pa1": [crammer_1],
    "pa2": [crammer_2],
}

"""The oracle of budgets: each policy as its paper writes it, with a whole Gram matrix, no speed.

Written from Dekel et al. (2008), Sections 3 and 6; Orabona et al. (2009), Figures 2 and 3, with one
span for all classes; Wang et al. (2012), removal. Nothing is updated incrementally: every
projection solves the system of the Gram matrix of all support vectors again.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import reference
from reference import Array, Part, Past
from reference_kernels import Kernel, Support, gram_of, near, score, steps_of, view

Factors = dict[int, float]
IN_SPAN = 1e-5


@dataclass
class Kept:
    """The support vectors of a part, of which `decided` is the least doubt of any decision."""

    policy: str
    size: int
    eta: float
    K: Kernel
    held: list[Support] = field(default_factory=list)
    Q: float = 0.0
    n_updates: int = 0
    radius: float = 0.0
    margin: float = np.inf
    S: float = 0.0  # of the bounds: squared norms, errors, lost coefficients, shrinking
    errors: float = 0.0
    lost: float = 0.0
    shrunk: float = 0.0

    # ---- removal --------------------------------------------------------------------------------

    def inner(self, one: Support, others: list[Support]) -> float:
        """<v, sum of the others>, of summands of the hypotheses."""
        values = self.K(np.array([u for u, _ in others]), one[0])
        common = [sum(c * one[1].get(t, 0.0) for t, c in f.items()) for _, f in others]
        return float(np.dot(common, values))

    def append(self, u: Array, factors: Factors) -> None:
        """Perceptron update of the Forgetron, and of the others that remove."""
        self.held.append((u, dict(factors)))
        self.n_updates += 1
        square = self.inner(self.held[-1], self.held[-1:])
        self.radius, self.S = max(self.radius, square), self.S + square

    def shed(self) -> None:
        """Remove what is beyond the budget."""
        while len(self.held) > self.size:
            if self.policy == "forgetron":
                self.shrink()
                del self.held[0]
            elif self.policy == "smallest":
                sizes = [sum(c * c for c in f.values()) for _, f in self.held]
                self.margin = min(self.margin, _gap(sizes))
                del self.held[int(np.argmin(sizes))]
            else:
                del self.held[0]

    def shrink(self) -> None:
        """Dekel et al. 2008, sec. 6: the largest phi for which Psi + Q <= 15/32 M."""
        oldest = self.held[0]
        square = self.inner(oldest, [oldest]) / self.radius
        mu = self.inner(oldest, self.held) / self.radius  # sigma y f'(x)
        sigma = max(map(abs, oldest[1].values()))

        def psi(phi: float) -> float:
            return phi**2 * square + 2 * phi * sigma - 2 * phi**2 * mu

        limit = 15 / 32 * self.n_updates
        phi = 1.0
        if psi(1.0) + self.Q > limit:  # bisection: psi rises up to its first crossing
            low, high = 0.0, 1.0
            if square < 2 * mu:  # concave: the first crossing is before the top
                high = min(1.0, sigma / (2 * mu - square))
            for _ in range(100):
                middle = (low + high) / 2
                low, high = (middle, high) if psi(middle) + self.Q <= limit else (low, middle)
            phi = low
        self.held = [(u, {t: phi * c for t, c in f.items()}) for u, f in self.held]
        self.Q += psi(phi)
        self.S += phi**2 * (square - 2 * mu) * self.radius
        self.lost, self.shrunk = self.lost + phi * sigma, self.shrunk + (1 - phi) / (1 + phi)

    # ---- projection -----------------------------------------------------------------------------

    def project(self, u: Array, factors: Factors, lead: float, loss: float) -> None:
        """Orabona et al. 2009: project, or store where the projection is too far."""
        K = self.K
        own, n = float(K(u[None], u)[0]), len(self.held)
        d, distance = np.zeros(0), own
        if n:
            U = np.array([v for v, _ in self.held])
            gram = np.array([K(U, v) for v in U])
            k = K(U, u)
            d = np.linalg.solve(gram, k)
            distance = max(0.0, own - float(k @ d))
        largest, step = max(map(abs, factors.values())), 1.0
        in_span = distance <= IN_SPAN * own
        far = largest * np.sqrt(distance) > self.eta and not in_span
        if n < self.size:
            gaps = (
                largest * np.sqrt(distance) - self.eta,
                np.sqrt(distance) - np.sqrt(IN_SPAN * own),
            )
            self.margin = min(self.margin, *map(abs, gaps))
        if self.policy == "projectron++" and lead > 0:
            step = self.step(
                sum(c * c for c in factors.values()) * (own - distance), distance, loss
            )
            far = False
        total = sum(c * c for c in factors.values())
        if far and n < self.size:
            self.held.append((u, dict(factors)))
            self.S += total * own
            return
        self.S += step**2 * total * (own - distance)
        self.errors += step * np.sqrt(total * distance)
        if step < 1:
            self.S, self.lost = self.S + 2 * step * lead, self.lost - step
        for (_, f), weight in zip(self.held, d, strict=True):
            for t, c in factors.items():
                f[t] = f.get(t, 0.0) + step * c * float(weight)

    def step(self, norm: float, distance: float, loss: float) -> float:
        """Orabona et al. 2009, Fig. 3: tau, 0 if the loss is less than the distance over eta."""
        excess = loss - np.sqrt(distance) / self.eta
        self.margin = min(self.margin, abs(excess))
        return 0.0 if excess <= 0 else float(min(loss / norm, 2 * excess / norm, 1.0))


def _gap(sizes: list[float]) -> float:
    """How far the smallest is from the next one that differs."""
    ordered = np.unique(np.array(sizes))
    return float(ordered[1] - ordered[0]) if len(ordered) > 1 else np.inf


def updates_of(part: Part, phis: list[Array], c: Factors) -> list[tuple[Array, Factors]]:
    """The vectors of an update, each with its coefficient in each hypothesis."""
    if part.get("map") is None:
        total: Factors = {}
        for r, coefficient in c.items():
            for t in reference.members(part, r):
                total[t] = total.get(t, 0.0) + coefficient
        total = {t: f for t, f in total.items() if f != 0}
        return [(phis[0], total)] if total else []
    found = [(phis[r], dict.fromkeys(reference.members(part, r), a)) for r, a in c.items() if a]
    return [(u, f) for u, f in found if f]


def reference_budget_run(
    X: Array,
    y: Any,
    parts: list[Part],
    update: str,
    K: Kernel,
    budget: Any,
    C: float = 1.0,
    close: float = 1e-4,
) -> dict[str, Any]:
    """Return predictions, scores, support vectors and the first trial that rounding decides."""
    running: list[Past] = []
    kept = [Kept(budget.policy, budget.size, budget.threshold, K) for _ in parts]
    predictions, history, doubtful = [], [], len(X)
    projects = budget.policy.startswith("projectron")
    for i, (x, r) in enumerate(zip(X, map(int, y), strict=True)):
        k = len(running)
        views = [[view(part, x, running[s]) for s in range(k)] for part in parts]
        pairs = [
            [score(p, each.held, v[s], s, K) for p, each, v in zip(parts, kept, views, strict=True)]
            for s in range(k)
        ]
        scores = np.array([sum(value for value, _ in pair) for pair in pairs])
        size = max((sum(length for _, length in pair) for pair in pairs), default=0.0)
        history.append(scores)
        predictions.append(int(np.argmax(scores)) if k else -1)
        if r == k:
            running.append([])
        else:
            if near(update, scores, r, close * size, C):
                doubtful = min(doubtful, i)
            chosen, alpha = steps_of(update, scores, r, gram_of(parts, views, K), C, 1.0)
            c: Factors = {}
            for s, a in zip(chosen, alpha, strict=True):
                if a:
                    c[r] = c.get(r, 0.0) + float(a)
                    c[s] = -float(a)
            others = np.delete(scores, r)
            lead = scores[r] - others.max() if len(others) else 0.0
            for part, phis, each in zip(parts, views, kept, strict=True):
                # As ours: the coefficients of classes are added in the order in which they move.
                for u, factors in updates_of(part, phis, c):
                    if projects:
                        each.project(u, factors, lead, C - lead)
                    else:
                        each.append(u, factors)
                        if budget.policy == "forgetron":
                            each.shed()
                each.shed()
                if each.margin < close:
                    doubtful = min(doubtful, i)
        running[r].append((x, 1.0))
    found = {"predictions": predictions, "scores": history, "doubtful": doubtful}
    found["sums"] = [(each.S, each.errors, each.lost, each.shrunk) for each in kept]
    return {**found, "n_supports": [len(each.held) for each in kept]}

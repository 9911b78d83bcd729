"""The oracle over Mercer kernels: one pass of trials in plain float64 NumPy, no speed.

Written from Fink et al. (2006), Section 4 and Eq. 11: hypotheses are sums of what they took in, and
only inner products of views are ever asked for. Statistics, choices and steps are those of
`reference.py`; what is left out there is the budget of Cavallanti et al. (2007), which forgets the
oldest support vector.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import reference
from reference import Array, Part, Past

Kernel = Callable[[Array, Array], Array]  # of each row of a table with one vector
Support = tuple[Array, dict[int, float]]  # a view, and its factor in each hypothesis

SETTINGS: dict[str, dict[str, Any]] = {
    "rbf": {"sigma": 2.5},
    "polynomial": {"degree": 3, "constant": 1.0, "scale": 0.5},
}
"""The parameters with which kernels are compared, where these are not the defaults."""
KERNELS: dict[str, Kernel] = {
    # Fink et al. 2006, sec. 5: sigma is the variance; 2.5 here
    "rbf": lambda A, b: np.exp(-np.sum((A - b) ** 2, axis=1) / (2 * 2.5)),
    "polynomial": lambda A, b: (A @ b * 0.5 + 1.0) ** 3,
    "linear": lambda A, b: A @ b,
    "overlap": lambda A, b: np.minimum(np.maximum(A + 2, 0), np.maximum(b + 2, 0)).sum(axis=1),
    "cauchy": lambda A, b: 1 / (1 + np.sum((A - b) ** 2, axis=1)),
}


def view(part: Part, x: Array, running: Past) -> Array:
    """phi(x, r), of the instances of r so far."""
    m = part.get("map")
    return x if m is None else np.asarray(m["g"](x, reference.statistic(m["statistic"], running)))


def score(
    part: Part, supports: list[Support], phi: Array, r: int, K: Kernel
) -> tuple[float, float]:
    """Sum over the hypotheses of r of factor K(phi, u), and of the absolute terms."""
    if not supports:
        return 0.0, 0.0
    own = reference.members(part, r)
    factors = np.array([sum(f.get(t, 0.0) for t in own) for _, f in supports])
    terms = factors * K(np.array([u for u, _ in supports]), phi)
    return float(np.sum(terms)), float(np.sum(np.abs(terms)))


def scores_of(
    parts: list[Part], supports: list[list[Support]], views: list[list[Array]], K: Kernel
) -> Array:
    """The scores of all classes, whose views are given, by the hypotheses after some trial."""
    return np.array(
        [
            sum(score(p, u, v[s], s, K)[0] for p, u, v in zip(parts, supports, views, strict=True))
            for s in range(len(views[0]))
        ]
    )


def gram_of(parts: list[Part], views: list[list[Array]], K: Kernel) -> Array:
    """G[r, s] = sum over the hypotheses that r and s share of K(phi(x, r), phi(x, s))."""
    k = len(views[0])
    G = np.zeros((k, k))
    for part, phis in zip(parts, views, strict=True):
        own = [{*reference.members(part, r)} for r in range(k)]
        for s in range(k):
            common = np.array([len(own[r] & own[s]) for r in range(k)])
            G[:, s] += common * K(np.array(phis), phis[s])
    return G


def take_in(part: Part, phis: list[Array], c: dict[int, float], supports: list[Support]) -> None:
    """w^t += sum over r in t of c_r phi(x, r): one support if the views are all x."""
    if part.get("map") is None:
        factors: dict[int, float] = {}
        for r, coefficient in c.items():
            for t in reference.members(part, r):
                factors[t] = factors.get(t, 0.0) + coefficient
        factors = {t: f for t, f in factors.items() if f != 0}
        if factors:
            supports.append((phis[0], factors))
        return
    for r, coefficient in c.items():
        own = reference.members(part, r)
        if own and coefficient != 0:
            supports.append((phis[r], dict.fromkeys(own, coefficient)))


def steps_of(update: str, scores: Array, y: int, G: Array, C: float, weight: float) -> Any:
    """Return the constraints chosen (y, s), and alpha for each."""
    margin = reference.margin_of(update, C)
    chosen = reference.CHOICES[update](scores, y, margin)
    losses = margin - (scores[y] - scores[chosen])
    gram = G[y, y] - G[y, chosen][None] - G[chosen, y][:, None] + G[np.ix_(chosen, chosen)]
    unit = update in reference.UNIT_STEPS
    C = C if unit else C * weight
    alpha = reference.RULES[update](losses, np.diag(gram).copy(), gram, C)
    return chosen, weight * alpha if unit else alpha


def near(update: str, scores: Array, y: int, close: float, C: float) -> bool:
    """Whether a choice of the trial hangs on the last bits of a score."""
    others = np.delete(scores, y)
    gaps = np.abs([scores - scores.max(), scores - scores[y], scores - others.max(initial=-np.inf)])
    losses = reference.margin_of(update, C) - (scores[y] - others)
    by_loss = reference.CHOICES[update] is not reference.others
    tied = ((gaps > 0) & (gaps < close)).any()
    return bool(tied or (by_loss and (np.abs(losses) < close).any()))


def reference_kernel_run(
    X: Array,
    y: Any,
    parts: list[Part],
    update: str,
    kernel: Kernel | Sequence[Kernel],
    C: float = 1.0,
    weights: Any = None,
    budget: int | None = None,
    close: float = 1e-5,
    averaged: bool = False,
) -> dict[str, Any]:
    """Return predictions, mistakes, scores and the first trial that rounding decides.

    Of a list of kernels, each trial has its own, for all that was taken in. If averaged, the mean
    of the scores of the hypotheses after each trial predicts: all of them are kept.
    """
    after: list[list[list[Support]]] = []
    running: list[Past] = []
    supports: list[list[Support]] = [[] for _ in parts]
    predictions, history, mistakes, doubtful = [], [], 0, len(X)
    for i, (x, r) in enumerate(zip(X, map(int, y), strict=True)):
        K = kernel if callable(kernel) else kernel[i]
        weight, k = 1.0 if weights is None else float(weights[i]), len(running)
        views = [[view(part, x, running[s]) for s in range(k)] for part in parts]
        pairs = [
            [score(p, u, v[s], s, K) for p, u, v in zip(parts, supports, views, strict=True)]
            for s in range(k)
        ]
        scores = np.array([sum(value for value, _ in pair) for pair in pairs])
        size = max((sum(length for _, length in pair) for pair in pairs), default=0.0)
        means = scores
        if averaged and k:
            means = np.mean([scores_of(parts, held, views, K) for held in after], axis=0)
        history.append(means)
        predictions.append(int(np.argmax(means)) if k else -1)
        gaps = means.max(initial=-np.inf) - means
        if averaged and ((gaps > 0) & (gaps < close * size)).any():
            doubtful = min(doubtful, i)
        if r == k:
            running.append([])
        else:
            if near(update, scores, r, close * size, C):
                doubtful = min(doubtful, i)
            mistakes += predictions[-1] != r
            G = gram_of(parts, views, K)
            chosen, alpha = steps_of(update, scores, r, G, C, weight)
            c: dict[int, float] = {}
            for s, a in zip(chosen, alpha, strict=True):
                if a:
                    c[r] = c.get(r, 0.0) + float(a)
                    c[s] = -float(a)
            for part, phis, held in zip(parts, views, supports, strict=True):
                take_in(part, phis, c, held)
                del held[: max(0, len(held) - budget) if budget else 0]
        running[r].append((x, weight))
        after.append([list(held) for held in supports] if averaged else [])
    found = {"predictions": predictions, "mistakes": int(mistakes), "scores": history}
    return {**found, "doubtful": doubtful, "n_supports": [len(held) for held in supports]}

"""The oracle of links: one pass with weights w = scale f(v), in plain float64 NumPy.

Written from Kivinen and Warmuth (1997), Grove, Littlestone and Schuurmans (1997), Mesterharm (2001,
Section 4) and Amit et al. (2006, Section 7): sums v move, weights follow. Steps are measured in the
dual norm, as the strong convexity of each potential allows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import reference
import reference_answers
from reference import Array, Part, Past


@dataclass(frozen=True)
class Link:
    """How weights follow from sums, `seen` saying which of them count, and how d is measured."""

    weights: Callable[[Array, Array], Array]
    squared_norm: Callable[[Array], float]
    is_exact: bool = False


def linear() -> Link:
    return Link(lambda v, known: v, lambda d: float(d @ d))


def exponential(alpha: float, total: float) -> Link:
    """Kivinen and Warmuth 1997: U alpha^v_i / sum_j alpha^v_j; U ln alpha max d_i^2."""

    def weights(v: Array, known: Array) -> Array:
        top = v[known].max() if known.any() else 0.0
        powers = alpha ** (v - top)
        return np.asarray(total * powers / (powers[known].sum() if known.any() else 1.0))

    return Link(weights, lambda d: total * np.log(alpha) * float(abs(d).max()) ** 2)


def balanced(alpha: float, total: float) -> Link:
    """Kivinen and Warmuth 1997, EG+-: each feature beside its negative."""

    def weights(v: Array, known: Array) -> Array:
        top = abs(v[known]).max() if known.any() else 0.0
        up, down = alpha ** (v - top), alpha ** (-v - top)
        return np.asarray(total * (up - down) / ((up + down)[known].sum() if known.any() else 1.0))

    return Link(weights, lambda d: total * np.log(alpha) * float(abs(d).max()) ** 2)


def p_norm(p: float) -> Link:
    """Gentile 2003: sign(v_i) |v_i|^(p - 1) / ||v||_p^(p - 2); (p - 1) ||d||_p^2."""

    def weights(v: Array, known: Array) -> Array:
        length = float((abs(v) ** p).sum() ** (1 / p))
        return np.sign(v) * (abs(v) / length) ** (p - 1) * length if length > 0 else 0.0 * v

    return Link(weights, lambda d: (p - 1) * float((abs(d) ** p).sum()) ** (2 / p))


def elementwise(
    f: Callable[[Array], Array], squared_norm: Callable[[Array], float] = lambda d: np.nan
) -> Link:
    """Grove et al. 1997: w_i = f(v_i), with the norm that is declared."""
    return Link(lambda v, known: f(v), squared_norm)


RISING = elementwise(lambda v: 0.5 + v + v / (1 + abs(v)), lambda d: 2 * float(d @ d))
"""The link `homemade.rising`, whose slope is at most 2."""
STRETCHED = elementwise(lambda v: v + 0.5 * v / (1 + abs(v)), lambda d: 1.5 * float(d @ d))
"""The link `homemade.stretched`, whose slope is at most 1.5."""
LINKS = {
    "linear": linear(),
    "exponential": balanced(2.0, 1.0),
    "positive": exponential(2.0, 1.0),
    "p-norm": p_norm(8.0),
}
"""The links by the names of the registry, with their defaults."""


def reference_link_run(
    X: Array,
    answers: list[dict[int, int]],
    rest: int,
    hypotheses: list[Part],
    update: str,
    link: Link,
    C: float,
    pairs_of: Any = reference_answers.pairs_of,
) -> dict[str, Any]:
    """One pass over the rows; scores before each trial and how large their terms are.

    Answers map classes, as they appear, to levels, of which the lower must outscore the higher.
    """
    k, n = 1 + max(r for answer in answers for r in answer), X.shape[1]
    margin = reference.margin_of(update, C)
    sizes = [reference.n_hypotheses(part, k) for part in hypotheses]
    v, seen = np.zeros(n * sum(sizes)), np.zeros(n, dtype=bool)
    sees_zeros = any(p["map"] and p["map"]["g"](np.zeros(1), np.ones(1))[0] for p in hypotheses)
    running: list[Past] = []
    scores_before, terms, mistakes, doubtful = [], [], 0, len(X)
    for t, answer in enumerate(answers):
        known = np.concatenate([hypotheses_seen(p, len(running), k) for p in hypotheses])
        w = link.weights(v, (known[:, None] & seen).ravel())
        rows = [each or [(np.zeros(n), 1.0)] for each in running]
        V = np.array([reference.stack(X[t], s, each, hypotheses, k) for s, each in enumerate(rows)])
        scores = np.array([np.sort(row * w).sum() for row in V])  # same terms, same score
        scores_before.append(scores)
        terms.append(float((abs(V) @ abs(w)).max()) if len(V) else 0.0)
        seen |= (X[t] != 0) | sees_zeros
        pairs = pairs_of(answer, rest, len(running))
        if pairs:
            mistakes += any(reference_answers.is_ahead(scores, s, r) for r, s in pairs)
            if is_doubtful(update, scores, V * w, pairs, margin, terms[-1]):
                doubtful = min(doubtful, t)
            along = reference_answers.chosen(update, scores, pairs, margin)
            known = np.concatenate([hypotheses_seen(p, len(running), k) for p in hypotheses])
            counted = (known[:, None] & seen).ravel()
            v = v + step(update, V, scores, along, margin, link, C, v, counted)
        running.extend([] for _ in range(len(running), max([*answer, len(running) - 1]) + 1))
        for r, level in answer.items():
            if level == 0:
                running[r].append((X[t], 1.0))
    return {"scores": scores_before, "terms": terms, "mistakes": mistakes, "doubtful": doubtful}


def hypotheses_seen(part: Part, n_classes: int, k: int) -> Array:
    """Which hypotheses of a part the classes seen so far belong to."""
    known = np.zeros(reference.n_hypotheses(part, k), dtype=bool)
    for r in range(n_classes):
        known[reference.members(part, r)] = True
    return known if part["kind"] != "shared" else np.ones(1, dtype=bool)


def is_doubtful(
    update: str, scores: Array, terms: Array, pairs: Any, margin: float, size: float
) -> bool:
    """Whether rounding may decide which pairs are chosen: equal terms tie in any arithmetic."""
    ordered = np.sort(terms, axis=1)
    leads = np.array([scores[r] - scores[s] for r, s in pairs])
    equal = np.array([bool((ordered[r] == ordered[s]).all()) for r, s in pairs])
    close = 1e-4 * size
    last = [p for p, lead in zip(pairs, leads, strict=True) if lead < leads.min() + close]
    tied = any((ordered[[r, s]] != ordered[list(last[0])]).any() for r, s in last)
    near = (abs(leads) < close) & ~equal
    at_margin = margin > 0 and (abs(leads - margin) < close).any()
    return bool(near.any() or at_margin or tied)


def step(
    update: str,
    V: Array,
    scores: Array,
    along: Any,
    margin: float,
    link: Link,
    C: float,
    v: Any = None,
    counted: Any = None,
) -> Any:
    """Amit et al. 2006, Fig. 2: what the sums move by."""
    if not along:
        return 0.0
    d = np.array([V[r] - V[s] for r, s in along])
    losses = reference_answers.losses_of(scores, along, margin)
    norms = np.array([link.squared_norm(each) for each in d])
    if link.is_exact:
        norms = losses / np.array([projection(v, each, margin, link, counted) for each in d])
    return reference.RULES[update](losses, norms, d @ d.T, C) @ d


def projection(v: Array, d: Array, margin: float, link: Link, counted: Array) -> float:
    """Amit et al. 2006, Section 7: the step after which <w, d> is the margin, by bisection."""
    high = 1.0
    while link.weights(v + high * d, counted) @ d < margin:
        high *= 2.0
        if high > 1e6:
            return np.inf
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        is_short = link.weights(v + middle * d, counted) @ d < margin
        low, high = (middle, high) if is_short else (low, middle)
    return high

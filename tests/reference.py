"""The oracle: one pass of trials in plain float64 NumPy, dense rows, no speed.

Written from the papers alone: Fink et al. (2006), hypothesis sharing; Amit et al. (2006),
simultaneous projections; Crammer et al. (2006), passive-aggressive. Run it for its self-checks.
"""

from collections.abc import Callable
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

import reference_pooled
import reference_preconditioners
from reference_pooled import Seen

Array = NDArray[np.float64]
Part = dict[str, Any]
Past = list[tuple[Array, float]]  # the rows of one class so far, each with its weight
MAPS: dict[str, dict[str, Any]] = {  # phi(x, r) = g(x, p), where p is the statistic of class r
    # Fink et al. 2006, Eq. 4: x_i p_i; with the mean (Eq. 9) in place of the first instance
    "product_first": {"g": lambda x, p: x * p, "statistic": "first"},
    "product_mean": {"g": lambda x, p: x * p, "statistic": "mean"},
    # Fink et al. 2006, Eq. 10: 2 x_i where p_i >= 0.2, -x_i where p_i <= 0.02, else 0
    "frequency": {"g": lambda x, p: x * (2.0 * (p >= 0.2) - (p <= 0.02)), "statistic": "frequency"},
    "distance": {"g": lambda x, p: np.abs(x - p), "statistic": "mean"},  # Fink et al. 2006, sec. 5
    "difference": {"g": lambda x, p: x - p, "statistic": "mean"},  # Fink et al. 2006, Eq. 11
    **{name: {"view": view} for name, view in reference_pooled.VIEWS.items()},
}


def statistic(name: str, running: Past) -> Array:
    """Fink et al. 2006: first instance (sec. 2), mean (Eq. 9), share of rows with x_i != 0."""
    rows, w = np.array([row for row, _ in running]), np.array([weight for _, weight in running])
    if name == "first":
        return np.asarray(rows[0])
    rows = rows if name == "mean" else (rows != 0).astype(float)
    return np.asarray(w @ rows / w.sum() if w.sum() > 0 else np.zeros(rows.shape[1]))


def view(m: dict[str, Any], x: Array, running: Past) -> Array:
    """Fink et al. 2006, sec. 2: phi(x, r), of a statistic of the class or of all rows beside it."""
    made = m["view"](x, running) if "view" in m else m["g"](x, statistic(m["statistic"], running))
    return np.asarray(made)


def n_hypotheses(part: Part, n_classes: int) -> int:
    """Fink et al. 2006, sec. 4: |T| of one part."""
    groups = part.get("groups") or []
    return {"per_class": n_classes, "shared": 1, "grouped": len(groups)}[str(part["kind"])]


def members(part: Part, r: int) -> list[int]:
    """Fink et al. 2006, sec. 4: the hypotheses tau of the part with tau(r) = 1."""
    if part["kind"] == "grouped":
        return [t for t, group in enumerate(part["groups"]) if r in group]
    return [r] if part["kind"] == "per_class" else [0]


def stack(x: Array, r: int, running: Past, parts: list[Part], k: int) -> Array:
    """Fink et al. 2006, proof of Theorem 1: V^r, tau(r) phi^tau(x, r) for every tau, end to end."""
    blocks = []
    for part in parts:
        block, m = np.zeros((n_hypotheses(part, k), len(x))), part.get("map")
        phi = x if m is None else view(m, x, running)
        block[members(part, r)] = phi
        blocks.append(block.ravel())
    return np.concatenate(blocks)


def predicted(scores: Array, y: int, margin: float) -> list[int]:
    """Fink et al. 2006, Fig. 3: the argmax, ties to the lowest code, where it is not y."""
    s = int(np.argmax(scores))
    return [s] if s != y else []


def with_loss(scores: Array, y: int, margin: float) -> list[int]:
    """Amit et al. 2006, sec. 2: Gamma, all s with margin - (score_y - score_s) > 0."""
    return [s for s in others(scores, y) if margin - (scores[y] - scores[s]) > 0]


def most_violated(scores: Array, y: int, margin: float) -> list[int]:
    """Fink et al. 2006, sec. 2, hinge loss: the highest-scoring s != y, if its loss is positive."""
    return sorted(with_loss(scores, y, margin), key=lambda s: -scores[s])[:1]


def is_not_behind(scores: Array, s: int, r: int) -> bool:
    """Whether score_r - score_s <= 0, but for the order in which float64 numbers were added."""
    return bool(scores[r] - scores[s] <= 1e-12 * (abs(scores[r]) + abs(scores[s])))


def mistaken(scores: Array, y: int, margin: float) -> list[int]:
    """Amit et al. 2006, sec. 2: M, all s with score_y - score_s <= 0."""
    return [s for s in others(scores, y) if is_not_behind(scores, s, y)]


def every(scores: Array, y: int, margin: float) -> list[int]:
    """Amit et al. 2006, Eq. 1: all s != y, where any of them has a loss."""
    return others(scores, y) if with_loss(scores, y, margin) else []


def others(scores: Array, y: int, margin: float = 0.0) -> list[int]:
    """Chang 2017, multinomial logistic regression: all s != y."""
    return [s for s in range(len(scores)) if s != y]


def perceptron(losses: Array, squared_norms: Array, gram: Array, C: float) -> Array:
    """Fink et al. 2006, Fig. 3: step 1, whatever C."""
    return np.ones(len(losses))


def pa(losses: Array, squared_norms: Array, gram: Array, C: float) -> Array:
    """Crammer et al. 2006, PA: loss / n; 0 where n = 0."""
    return np.where(squared_norms > 0, pa1(losses, squared_norms, gram, np.inf), 0.0)


def pa1(losses: Array, squared_norms: Array, gram: Array, C: float) -> Array:
    """Crammer et al. 2006, PA-I, and Amit et al. 2006, Eq. 3: min(C, loss / n); C where n = 0."""
    out = np.full(len(losses), np.inf)
    return np.asarray(np.minimum(C, np.divide(losses, squared_norms, out, where=squared_norms > 0)))


def pa2(losses: Array, squared_norms: Array, gram: Array, C: float) -> Array:
    """Crammer et al. 2006, PA-II: loss / (n + 1 / (2 C)), written to allow C = 0."""
    return np.asarray(2.0 * C * losses / (2.0 * C * squared_norms + 1.0))


def simperc(losses: Array, squared_norms: Array, gram: Array, C: float) -> Array:
    """Amit et al. 2006, sec. 4: C / |M|."""
    return np.full(len(losses), C) / len(losses)


def averaged(losses: Array, squared_norms: Array, gram: Array, C: float) -> Array:
    """Amit et al. 2006, sec. 4, SimProj and ConProj: min(C, loss / n) / number of constraints."""
    return pa1(losses, squared_norms, gram, C) / len(losses)


def gradient(losses: Array, squared_norms: Array, gram: Array, C: float) -> Array:
    """Chang 2017: the step size, C here, along the subgradient of the hinge loss."""
    return np.full(len(losses), C)


def softmax(losses: Array, squared_norms: Array, gram: Array, C: float) -> Array:
    """Chang 2017: C p_s, p the softmax of the scores; losses are score_s - score_y here."""
    exponents = np.append(losses, 0.0)
    p = np.exp(exponents - exponents.max())
    return np.asarray(C * p[:-1] / p.sum())


def logistic(losses: Array, squared_norms: Array, gram: Array, C: float) -> Array:
    """Rennie and Srebro 2005: C times the derivative of ln(1 + e^z) at z = score_s - score_y."""
    return np.asarray(0.5 * C * (1.0 + np.tanh(losses / 2.0)))


def mira(losses: Array, squared_norms: Array, gram: Array, C: float) -> Array:
    """Amit et al. 2006, Eq. 2: max a.loss - a'Ga/2, a >= 0, sum a <= C (last a: the rest of C)."""
    loss, G, a = np.append(losses, 0.0), np.pad(gram, (0, 1)), np.append(0.0 * losses, C)
    for _ in range(100_000):  # an exact line search between two a, then all a > 0 together
        slope = loss - G @ a
        up, down = int(np.argmax(slope)), int(np.argmin(np.where(a > 0, slope, np.inf)))
        gain, bend = slope[up] - slope[down], G[up, up] + G[down, down] - 2.0 * G[up, down]
        if gain <= 1e-12 * (1.0 + np.max(abs(G) @ a)) or C == 0:
            return np.asarray(a[:-1])
        step = min(a[down], gain / bend) if bend > 0 else a[down]
        a[up], a[down] = a[up] + step, a[down] - step
        a = np.maximum(a + newton(loss - G @ a, G, a), 0.0)
    raise RuntimeError("mira did not converge")


def newton(slope: Array, G: Array, a: Array) -> Array:
    """Move the a > 0, their sum fixed, towards equal slopes, until the first of them is 0."""
    on, move, one = a > 0, np.zeros(len(a)), np.ones((int((a > 0).sum()), 1))
    kkt = np.block([[G[on][:, on], one], [one.T, np.zeros((1, 1))]])
    move[on] = np.linalg.lstsq(kkt, np.append(slope[on] - slope.max(), 0.0), 1e-12)[0][:-1]
    return move * np.min(a[move < 0] / -move[move < 0], initial=1.0)


RULES: dict[str, Callable[[Array, Array, Array, float], Array]] = {
    **{"perceptron": perceptron, "pa": pa, "pa1": pa1, "pa2": pa2, "mira": mira},
    **{"simperc": simperc, "conproj": averaged, "simproj": averaged},
    **{"margin-perceptron": perceptron, "hinge": gradient},
    **{"softmax": softmax, "logistic": logistic},
    **reference_preconditioners.RULES,
}
CHOICES: dict[str, Callable[[Array, int, float], list[int]]] = {
    **{"perceptron": predicted, "pa": most_violated, "pa1": most_violated, "pa2": most_violated},
    **{"simperc": mistaken, "conproj": mistaken, "simproj": with_loss, "mira": every},
    **{"margin-perceptron": most_violated, "hinge": most_violated},
    **{"softmax": others, "logistic": others},
}
UNIT_STEPS = ("perceptron", "margin-perceptron")  # do not depend on C; multiplied by the weight


def names_of(choice: Callable[[Array, int, float], list[int]]) -> tuple[str, ...]:
    """Return the rules that move along the constraints that a function chooses."""
    return tuple(name for name, each in CHOICES.items() if each is choice)


def margin_of(update: str, C: float) -> float:
    """Chang 2017: delta, C here, for the margin Perceptron; no margin in likelihoods; else 1."""
    without = ("softmax", "logistic", "ovr-logistic", "scw1", "scw2")
    return {"margin-perceptron": C, **dict.fromkeys(without, 0.0)}.get(update, 1.0)


def strength_of(update: str, C: float) -> float:
    """Crammer et al. 2009: AROW has no aggressiveness but its noise, 1; nor have least squares."""
    return 1.0 if update in ("arow", "least-squares") else C


def move(update: str, V: Array, scores: Array, y: int, C: float, weight: float) -> Array:
    """Amit et al. 2006, Fig. 2: what is added to w, sum over chosen s of alpha_s (V^y - V^s)."""
    margin = margin_of(update, C)
    chosen = CHOICES[update](scores, y, margin)
    d, losses = V[y] - V[chosen], margin - (scores[y] - scores[chosen])
    alpha = RULES[update](losses, (d * d).sum(axis=1), d @ d.T, C * weight)
    return np.asarray((weight * alpha if update in UNIT_STEPS else alpha) @ d)


def reference_run(
    X: Array, y: Any, hypotheses: list[Part], update: str, C: float = 1.0, weights: Any = None
) -> dict[str, Any]:
    """Fink et al. 2006, Fig. 3, with any rule: one pass over the rows, scores by Eq. 7."""
    k, n = int(np.max(y)) + 1, X.shape[1]
    importance = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    ends = n * np.cumsum([n_hypotheses(part, k) for part in hypotheses])
    w, scores, predictions, mistakes = np.zeros(ends[-1]), np.zeros(0), [], 0
    first_seen: list[int] = []  # the trial that each class was seen on
    running: list[Past] = []  # what each class has seen
    everyone: list[Any] = []  # what all have
    for t, (r, weight) in enumerate(zip(map(int, y), importance, strict=True)):
        V = np.array([stack(X[t], s, running[s], hypotheses, k) for s in range(len(running))])
        scores = np.array([fsum(v * w) for v in V])  # equal for equal terms in any order
        predictions.append(int(np.argmax(scores)) if len(V) else -1)
        if r == len(running):  # seen for the first time: it joins, and that is all
            first_seen.append(t)
            running.append(Seen(everyone))
        else:
            mistakes += predictions[-1] != r
            w = w + move(update, V, scores, r, C, float(weight))
        running[r].append((X[t], float(weight)))
    out = {"predictions": predictions, "mistakes": int(mistakes), "first_seen": first_seen}
    return {**out, "scores_last": scores, "W": [v.reshape(-1, n) for v in np.split(w, ends[:-1])]}


if __name__ == "__main__":
    # By hand: rows 0, 1 only join; row 2 ties 0:0, says 0; row 3 scores -1:1, says 1.
    rows4 = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    run = reference_run(rows4, [0, 1, 1, 0], [{"kind": "per_class", "map": None}], "perceptron")
    assert run["predictions"] == [-1, 0, 0, 1] and run["mistakes"] == 2, run
    assert run["first_seen"] == [0, 1] and run["scores_last"].tolist() == [-1.0, 1.0], run
    assert run["W"][0].tolist() == [[0.0, -1.0], [0.0, 1.0]], run

    rng = np.random.default_rng(0)  # KKT of Amit et al. 2006, Eq. 2, for per-class d_s
    for k in [*range(2, 10)] * 25:
        C, G = float(rng.choice([1e-3, 0.05, 10.0])), (np.eye(k - 1) + 1.0) * rng.uniform(0.5, 9.0)
        loss = rng.normal(0.5, 1.0, k - 1)
        a = mira(loss, np.diag(G), G, C)
        slope = loss - G @ a  # the losses after the move
        nu = max(0.0, float(slope.max()))  # the price of sum a <= C, and Eq. 1's slack
        assert (a >= 0).all() and a.sum() <= C + 1e-12 and nu * (C - a.sum()) < 1e-9
        assert (a * (nu - slope) < 1e-9).all()
    print("the oracle's self-checks pass")

"""Entropic projections (Amit et al. 2006, Section 7): bounded steps beside exact projections.

    python papers/entropic.py    # a minute

This needs KESLER_DATA, and writes papers/results/entropic.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from kesler import OnlineClassifier
from kesler.datasets import load
from kesler.links import Exponential
from kesler.updates import ConProj, SimProj, UpdateRule
from report import Report, table
from script_arguments import script_parser

Floats = npt.NDArray[np.float64]
KESLER: dict[str, Callable[[float], UpdateRule]] = {"SimProj": SimProj, "ConProj": ConProj}
SETS = {"pendigits": 2000, "landsat": 2000, "vowel": 528}
TOTALS = (1.0, 10.0, 100.0)
C = 1.0
N_HALVINGS = 40


def weights_of(sums: Floats, counted: npt.NDArray[np.bool_], total: float) -> Floats:
    """Return the weights that minimise the relative entropy: each feature beside its negative.

    .. math:: w_i = U (e^{v_i} - e^{-v_i}) / sum_j (e^{v_j} + e^{-v_j})
    """
    top = abs(sums).max(axis=-1, keepdims=True)
    up, down = np.exp(sums - top), np.exp(-sums - top)
    return np.asarray(total * (up - down) / ((up + down) * counted).sum(axis=-1, keepdims=True))


def bounded(
    sums: Floats, instances: Floats, losses: Floats, counted: npt.NDArray[np.bool_], total: float
) -> Floats:
    """Return the loss by the squared dual norm of each instance, at most C."""
    norms = total * abs(instances).max(axis=1) ** 2
    return np.minimum(C, losses / np.where(norms > 0, norms, np.inf))


def exact(
    sums: Floats, instances: Floats, losses: Floats, counted: npt.NDArray[np.bool_], total: float
) -> Floats:
    """Return the step in [0, C] after which each constraint alone has no loss, by bisection."""
    low, high = np.zeros(len(losses)), np.full(len(losses), C)
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        moved = weights_of(sums + middle[:, None] * instances, counted, total)
        is_short = (moved * instances).sum(axis=1) < 1
        low, high = np.where(is_short, middle, low), np.where(is_short, high, middle)
    return np.where(losses > 0, low, 0)


STEPS = {"bounded": bounded, "exact": exact}


def mistakes(X: Floats, labels: npt.NDArray[np.int64], rule: str, steps: str, total: float) -> int:
    """Return the mistakes of one pass in NumPy, with one vector per class."""
    (n_rows, n), k = X.shape, int(labels.max()) + 1
    sums, seen, known, found = np.zeros((k, n)), np.zeros(n, dtype=bool), 0, 0
    for t in range(n_rows):
        x, label = X[t], labels[t]
        if label < known:
            counted = ((np.arange(k) < known)[:, None] & seen).ravel()
            # Else weights below the least of float32 decide between classes that Kesler ties.
            weights = weights_of(sums.ravel(), counted, total).astype(np.float32)
            scores = weights.reshape(k, n)[:known].astype(np.float64) @ x
            found += int(scores.argmax() != label)
            seen |= x != 0
            counted = ((np.arange(k) < known)[:, None] & seen).ravel()
            instances, losses = instances_of(x, scores, label, k)
            is_one = losses > 0 if rule == "SimProj" else losses >= 1
            if is_one.any():
                chosen, short = instances[is_one], losses[is_one]
                each = STEPS[steps](sums.ravel(), chosen, short, counted, total)
                sums += (each @ chosen / len(each)).reshape(k, n)
        seen |= x != 0
        known = max(known, label + 1)
    return found


def instances_of(x: Floats, scores: Floats, label: int, k: int) -> tuple[Floats, Floats]:
    """Return phi(x, label) - phi(x, s) and the loss for each other class s."""
    others = [s for s in range(len(scores)) if s != label]
    instances = np.zeros((len(others), k, len(x)))
    instances[:, label] = x
    instances[np.arange(len(others)), others] = -x
    losses = np.maximum(0, 1 - (scores[label] - scores[others]))
    return instances.reshape(len(others), k * len(x)), losses


def read(name: str, n_rows: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the first rows of a set, scaled to [-1, 1], and classes by first appearance."""
    data = load(name)
    X, names = np.asarray(data.X[:n_rows], dtype=np.float64), [*data.y[:n_rows]]
    order = list(dict.fromkeys(names))
    scaled = 2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1
    return scaled.astype(np.float32).astype(np.float64), np.array([order.index(y) for y in names])


def by_kesler(X: Floats, labels: npt.NDArray[np.int64], rule: str, steps: str, total: float) -> int:
    """Return the mistakes of Kesler."""
    link = Exponential(math.e, total=total, exact=steps == "exact")
    return int(
        OnlineClassifier("multi", update=KESLER[rule](C), link=link).fit(X, labels).n_mistakes_
    )


def main() -> int:
    """Run everything, write the page and return the exit code."""
    folder = script_parser(__doc__, __file__).parse_args().results
    report = Report("entropic", "Entropic projections: bounded steps beside exact ones", folder)
    rows, equal, n = [], 0, 0
    for name, n_rows in SETS.items():
        X, labels = read(name, n_rows)
        for total in TOTALS:
            for rule in KESLER:
                row = [name, f"{total:g}", rule]
                for steps in STEPS:
                    ours = by_kesler(X, labels, rule, steps, total)
                    theirs = mistakes(X, labels, rule, steps, total)
                    equal, n = equal + (abs(ours - theirs) <= 2), n + 1
                    row += [f"{ours}", f"{theirs}"]
                rows.append(row)
                print(row, flush=True)
    report.add(
        "## Mistakes in one pass",
        f"The first {max(SETS.values()):,} rows of each set, scaled to [-1, 1]; one vector per "
        f"class, C = {C:g}. The penalty is the relative entropy of each feature beside its "
        "negative; U is the sum of their weights. The source says that the squared norm can be "
        "replaced by it, and states neither U nor how the reduced problems are solved. Bounded "
        "steps (the default) divide the loss by U times the largest squared "
        "entry, the dual norm in which the relative entropy is strongly convex; they are at most "
        "those of an exact projection. Exact steps (`Exponential(exact=True)`; in NumPy by "
        "bisection) solve each reduced problem.",
        table(
            ["set", "U", "rule", *(f"{each}{by}" for each in STEPS for by in ("", ", NumPy"))], rows
        ),
    )
    report.check(
        f"Kesler within two mistakes of the same steps in NumPy: {equal} of {n}", equal == n
    )
    return report.write()


if __name__ == "__main__":
    sys.exit(main())

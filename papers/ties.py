"""What rounding decides where scores tie: label sets under the exponential link, in float64 too.

    python papers/ties.py    # two minutes

This needs KESLER_DATA, and writes papers/results/ties.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler import OnlineMultilabelClassifier
from kesler.datasets import load
from kesler.links import Exponential
from kesler.updates import ConProj, SimPerc
from report import Report, table
from script_arguments import script_parser

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Counts = tuple[int, int]
"""Imperfect trials and mistakes."""

SETS = {"emotions": 391, "yeast": 600, "medical": 333, "enron": 300}
RULES = {"ConProj": ConProj, "SimPerc": SimPerc}
TOTALS = (1.0, 100.0)
N_RANDOM = 400
NEAR = 1e-12
"""The lead relative to the scores up to which they tie in float64: rounding leaves less."""


def read(name: str, n_rows: int) -> tuple[Floats, Numbers]:
    """Return the first rows: words as they are, measurements in [-1, 1]."""
    data = load(f"multilabel/{name}")
    X = data.X[:n_rows].toarray() if sparse.issparse(data.X) else np.asarray(data.X[:n_rows])
    if not np.isin(X, (0, 1)).all():
        spread = np.ptp(X, axis=0)
        X = 2 * (X - X.min(axis=0)) / np.where(spread > 0, spread, 1) - 1
    return X.astype(np.float32).astype(np.float64), by_appearance(np.asarray(data.y[:n_rows]))


def by_appearance(Y: Numbers) -> Numbers:
    """Return the columns of labels that occur, in the order of their first rows."""
    used = np.flatnonzero(Y.any(axis=0)).tolist()
    return Y[:, sorted(used, key=lambda label: (Y[:, label].argmax(), label))].astype(np.int64)


def weights_of(sums: Floats, seen: npt.NDArray[np.bool_], link: Exponential) -> Floats:
    """Return the weights of the link of base e: U times shares of the weights of known features."""
    top = (abs(sums) if link.balanced else sums).max(initial=0.0)
    up = np.exp(sums - top)
    down = np.exp(-sums - top) if link.balanced else 0 * up
    return np.asarray(link.total * (up - down) / max((up + down)[:, seen].sum(), 1e-300))


def in_float64(X: Floats, Y: Numbers, rule: str, link: Exponential) -> Counts:
    """Return what Sections 2 to 4 of Amit et al. (2006) count, with a threshold, label 0."""
    sums, seen, known = np.zeros((1, X.shape[1])), np.zeros(X.shape[1], dtype=bool), 0
    imperfect = mistakes = 0
    for x, y in zip(X, Y, strict=True):
        scores, seen = weights_of(sums, seen, link) @ x, seen | (x != 0)
        above = [0, *(1 + i for i in range(known) if y[i])]
        below = [0, *(1 + i for i in range(known) if not y[i])]
        pairs = np.array([(r, s) for r in above for s in below if r != s], int).reshape(-1, 2)
        r, s = pairs.T
        leads, sizes = scores[r] - scores[s], abs(scores[r]) + abs(scores[s])
        wrong, ties = leads <= NEAR * sizes, abs(leads) <= NEAR * sizes
        imperfect += int(wrong.any())
        mistakes += int((wrong & ~(ties & (r < s))).any())
        step = np.ones(len(pairs))
        if rule == "ConProj":
            step = np.minimum(1, (1 - leads) / max(link.total * abs(x).max() ** 2, 1e-300))
        for j in np.flatnonzero(wrong):
            sums[r[j]] += step[j] / wrong.sum() * x
            sums[s[j]] -= step[j] / wrong.sum() * x
        n_new = max(0, 1 + int(np.flatnonzero(y).max(initial=-1)) - known)
        sums, known = np.vstack([sums, np.zeros((n_new, X.shape[1]))]), known + n_new
    return imperfect, mistakes


def by_kesler(X: Floats, Y: Numbers, rule: str, link: Exponential) -> Counts:
    """Return the counts of Kesler, whose weights and scores are float32."""
    model = OnlineMultilabelClassifier("multi", update=RULES[rule](1.0), link=link, intercept=0)
    model.partial_fit(X, [np.flatnonzero(y).tolist() for y in Y])
    return model.n_imperfect_, model.n_mistakes_


def random_runs() -> Iterator[tuple[Floats, Numbers, str, Exponential]]:
    """Yield rows with values of a grid and labels that depend on nothing, and a learner each."""
    for seed in range(N_RANDOM):
        rng = np.random.default_rng(seed)
        n_rows, n, k = (int(rng.integers(*between)) for between in ((100, 400), (2, 9), (2, 7)))
        X = rng.choice([-1.0, 0.0, 0.5, 1.0], size=(n_rows, n))
        Y = by_appearance((rng.random((n_rows, k)) < 0.4).astype(int))
        total, rule = float(rng.choice([1, 10, 100])), str(rng.choice([*RULES]))
        yield X, Y, rule, Exponential(math.e, balanced=bool(rng.integers(2)), total=total)


def show_sets(report: Report) -> None:
    """Add the counts on real sets."""
    rows, n_equal = [], 0
    for name, n_rows in SETS.items():
        X, Y = read(name, n_rows)
        for total in TOTALS:
            for rule in RULES:
                link = Exponential(math.e, total=total)
                ours, exact = by_kesler(X, Y, rule, link), in_float64(X, Y, rule, link)
                n_equal += ours == exact
                rows.append([name, f"{len(X)}", f"{total:g}", rule, *map(str, (*ours, *exact))])
    report.add(
        "## Real sets",
        "Imperfect trials and mistakes of one pass, in Kesler and in NumPy.",
        table(
            [
                "set",
                "rows",
                "U",
                "rule",
                "imperfect",
                "mistakes",
                "imperfect, float64",
                "mistakes, float64",
            ],
            rows,
        ),
    )
    report.check(f"the counts are equal on {n_equal} of {len(rows)} runs", n_equal == len(rows))


def show_random(report: Report) -> None:
    """Add how far counts are apart where ties are frequent."""
    apart = []
    for run in random_runs():
        ours, exact = by_kesler(*run), in_float64(*run)
        apart.append(max(abs(a - b) / b for a, b in zip(ours, exact, strict=True)))
    shares = 100 * np.array(apart)
    differ = int((shares > 0).sum())
    report.add(
        "## Rows of a grid",
        f"{N_RANDOM} streams of 100 to 400 rows of 2 to 8 features, each -1, 0, 0.5 or 1, with 2 "
        "to 6 labels that depend on nothing: the same sums arise in different orders, and scores "
        "that are equal in exact arithmetic are frequent. The counts differ in "
        f"{differ} streams, by {np.median(shares[shares > 0]):.1f} % in the median of these, and "
        f"by {shares.max():.1f} % at most, in either direction. A weight in float32 has 24 bits, "
        "so that equal scores differ in the last ones, or different scores agree in all; Kesler "
        "takes leads below 2^-20 of the scores for ties when it chooses constraints. One "
        "constraint more or less in a trial changes all weights that follow: one tie is enough to "
        "change the rest of a run. Neither count is worse: the order in which equal scores are "
        "compared means nothing.",
    )
    report.check(
        f"equal counts in nine streams of ten: {N_RANDOM - differ}", differ < N_RANDOM / 10
    )


def main() -> int:
    """Run everything, write the page and return the exit code."""
    folder = script_parser(__doc__, __file__).parse_args().results
    report = Report("ties", "Ties of float32, beside float64", folder)
    show_sets(report)
    show_random(report)
    return report.write()


if __name__ == "__main__":
    sys.exit(main())

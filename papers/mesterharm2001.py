"""Mesterharm (2001): mistakes of WMA and the Perceptron with irrelevant sub-experts.

The rows are ratings by two relevant sub-experts, whose mean determines the class, and by a growing
number of irrelevant ones; all ratings are uniform in [0, 1]. Rows in which the mean of the right
class is not ahead by 0.1 are left out, so that the gap is delta = 0.1 and the bounds of Sections
4.1 and 4.2 hold: s^2 ||u||^2 / delta^2 for the Perceptron, 2 ln(n) / delta^2 for WMA with alpha =
(1 - delta)^(-1/2).

    python papers/mesterharm2001.py         # into papers/results/mesterharm2001.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.figure import Figure

from kesler import LinearMax, Ratings
from kesler.algorithms import ALMA, ROMMA, Algorithm, QuasiAdditive
from kesler.links import Exponential, PNorm
from report import LAYOUT, STYLE, Report, table
from script_arguments import script_parser

N_RELEVANT, N_CLASSES, N_ROWS, BLOCK = 2, 4, 4000, 100
IRRELEVANT = (10, 100, 1_000, 10_000)
SEEDS = range(3)
DELTA = 0.1
ALPHA = (1 - DELTA) ** -0.5
COLOURS = {
    "WMA": "#009E73",
    "Perceptron": "#D55E00",
    "balanced Winnow": "#0072B2",
    "p-norm": "#3FA7E0",
    "ROMMA": "#A63A88",
    "ALMA": "#707070",
}
BOUNDED = ("WMA", "Perceptron")

Counts = npt.NDArray[np.float64]


def algorithms(n: int) -> dict[str, Algorithm]:
    """Return the algorithms for n sub-experts."""
    return {
        "WMA": QuasiAdditive(Exponential(ALPHA, balanced=False)),
        "Perceptron": QuasiAdditive(),
        "balanced Winnow": QuasiAdditive(Exponential(ALPHA)),
        "p-norm": QuasiAdditive(PNorm(2 * np.log(n))),
        "ROMMA": ROMMA(),
        "ALMA": ALMA(),
    }


def stream(n_irrelevant: int, seed: int) -> Iterator[tuple[npt.NDArray[np.float32], Counts]]:
    """Yield blocks of ratings (rows, classes, sub-experts) and the right classes."""
    rng = np.random.default_rng([seed, n_irrelevant])
    for _ in range(N_ROWS // BLOCK):
        relevant = np.concatenate([clear_rows(rng) for _ in range(4)])[:BLOCK]
        noise = rng.random((BLOCK, N_CLASSES, n_irrelevant), dtype=np.float32)
        yield np.concatenate([relevant, noise], axis=2), relevant.mean(axis=2).argmax(axis=1)


def clear_rows(rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """Return ratings of the relevant sub-experts in which one class is ahead by the gap."""
    ratings = rng.random((BLOCK, N_CLASSES, N_RELEVANT), dtype=np.float32)
    votes = np.sort(ratings.mean(axis=2), axis=1)
    return np.asarray(ratings[votes[:, -1] - votes[:, -2] >= DELTA])


def run(n_irrelevant: int, seed: int) -> tuple[dict[str, int], float]:
    """Return the mistakes of each algorithm, and s, the largest ||x^y - x^r|| of the stream."""
    n = N_RELEVANT + n_irrelevant
    learners = {name: LinearMax(each, "sub-experts") for name, each in algorithms(n).items()}
    longest = 0.0
    for ratings, right in stream(n_irrelevant, seed):
        rows = Ratings.from_dense(ratings, labels=range(N_CLASSES))
        for learner in learners.values():
            learner.partial_fit(rows, right)
        differences = ratings[np.arange(BLOCK), right][:, None] - ratings
        longest = max(longest, float((differences**2).sum(axis=2).max()))
    return {name: learner.n_mistakes_ for name, learner in learners.items()}, longest**0.5


def bounds(n: int, s: float) -> dict[str, float]:
    """Return the bounds of Sections 4.1 and 4.2 for u = (1, ..., 1, 0, ..., 0) / N_RELEVANT."""
    return {"WMA": 2 * np.log(n) / DELTA**2, "Perceptron": s**2 / N_RELEVANT / DELTA**2}


def draw(path: Path, mistakes: dict[str, list[float]], limits: dict[str, list[float]]) -> None:
    """Draw mistakes against irrelevant sub-experts on logarithmic scales, with dashed bounds."""
    with rc_context({**STYLE, "axes.grid.axis": "both"}):
        figure = Figure(figsize=(6.4, 4.2), layout=LAYOUT)
        ax = figure.subplots()
        for name, counts in mistakes.items():
            ax.plot(IRRELEVANT, counts, "o-", ms=4, lw=1.5, color=COLOURS[name], label=name)
        for name, limit in limits.items():
            ax.plot(IRRELEVANT, limit, "--", lw=1, color=COLOURS[name], label=f"bound of {name}")
        ax.set(xscale="log", yscale="log", xlabel="irrelevant sub-experts", ylabel="mistakes")
        ax.set_title(f"{N_RELEVANT} relevant sub-experts, {N_ROWS:,} trials")
        ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
        figure.savefig(path, dpi=150)


def main() -> int:
    """Run every size and write the page."""
    folder = script_parser(__doc__, __file__).parse_args().results
    report = Report("mesterharm2001", "Mesterharm (2001): irrelevant sub-experts", folder)
    report.add(
        f"{N_RELEVANT} relevant sub-experts, whose mean rating determines the class, {N_CLASSES} "
        f"classes, {N_ROWS:,} trials, ratings uniform in [0, 1], gap {DELTA}; mean of {len(SEEDS)} "
        f"streams. alpha = {ALPHA:.3f}; the p of the p-norm is 2 ln(n). The paper has bounds but "
        "no experiment."
    )
    mistakes: dict[str, list[float]] = {name: [] for name in COLOURS}
    limits: dict[str, list[float]] = {name: [] for name in BOUNDED}
    for n_irrelevant in IRRELEVANT:
        runs = [run(n_irrelevant, seed) for seed in SEEDS]
        for name, counts in mistakes.items():
            counts.append(float(np.mean([found[name] for found, _ in runs])))
        found = [bounds(N_RELEVANT + n_irrelevant, s) for _, s in runs]
        for name, limit in limits.items():
            limit.append(min(each[name] for each in found))
            report.check(
                f"{name} makes no more mistakes than its bound, {n_irrelevant:,} irrelevant",
                all(each[0][name] <= bound[name] for each, bound in zip(runs, found, strict=True)),
            )
    rows = [
        [f"{n:,}", *(f"{counts[i]:.0f}" for counts in [*mistakes.values(), *limits.values()])]
        for i, n in enumerate(IRRELEVANT)
    ]
    headings = ["irrelevant", *mistakes, *(f"bound of {name}" for name in limits)]
    report.add("## Mistakes", table(headings, rows))
    draw(report.picture("growth", "Mistakes against irrelevant sub-experts"), mistakes, limits)
    growth = {name: counts[-1] / counts[0] for name, counts in mistakes.items()}
    report.check(
        f"WMA's mistakes grow {growth['WMA']:.2f}-fold, by less than 4, while irrelevant "
        f"sub-experts grow 1,000-fold (the Perceptron's: {growth['Perceptron']:.1f})",
        growth["WMA"] < 4,
    )
    return report.write()


if __name__ == "__main__":
    sys.exit(main())

"""Kernels within a budget: which policy keeps how much of the accuracy without one.

Dekel, Shalev-Shwartz and Singer (2008), Orabona, Keshet and Caputo (2009), Cavallanti,
Cesa-Bianchi and Gentile (2007). The Perceptron over the Gaussian kernel learns LETTER and pendigits
in one pass, with at most 100, 500 and 2,000 support vectors, and without a budget; each mistake
bound is evaluated on its run.

    python papers/few_labels_kernels.py    # into papers/results/few_labels_kernels.md; minutes
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler import OnlineClassifier
from kesler.bounds.kernels import KernelCompetition, KernelRun, least_bound
from kesler.bounds.mistakes import MistakeBound
from kesler.budgets import Budget
from kesler.updates import MarginPerceptron
from report import Report, table
from script_arguments import script_parser

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from sets import SETS as REAL_SETS

SETS = ("letter", "pendigits")
SIZES = (100, 500, 2000)
POLICIES = ("least-recent", "forgetron", "projectron", "projectron++")
CELLS = [(p, size) for size in SIZES for p in POLICIES if (p, size) != ("projectron++", 2000)]
"""Policies and sizes; Projectron++ solves a system in every trial with a loss, which is slow."""

SIGMA = 0.07  # of Fink et al. (2006) for LETTER, on features from 0 to 1
N_TIMES, LONG = 3, 8.0

Array = npt.NDArray[Any]


@dataclass
class Run:
    """The mistakes of a learner, its support vectors and its time in seconds."""

    n_mistakes: int
    n_supports: int
    seconds: float
    n_rows: int

    @property
    def accuracy(self) -> float:
        """The share of rows that were predicted rightly before they were learnt."""
        return 1 - self.n_mistakes / self.n_rows


def learner(update: Any, budget: Any) -> OnlineClassifier:
    """Return a learner over the Gaussian kernel."""
    return OnlineClassifier(
        "multi", update=update, kernel="rbf", sigma=SIGMA, preprocessing=None, budget=budget
    )


def of_policy(policy: str, size: int | None) -> OnlineClassifier:
    """Return the Perceptron within a budget, and with the margin of Projectron++ where it is."""
    rule = MarginPerceptron() if policy == "projectron++" else "perceptron"
    return learner(rule, None if size is None else Budget(size, policy))  # type: ignore[arg-type]


def rows_of(name: str) -> tuple[Array, Array]:
    """Return the rows of a set, with features from 0 to 1, and their classes."""
    stream = next(each for each in REAL_SETS if each.name == name).stream()
    X = np.asarray(stream.X, dtype=np.float32)
    return (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-9), stream.y


def in_turn(models: dict[Any, OnlineClassifier], X: Array, y: Array) -> dict[Any, Run]:
    """Let the models learn in turn, several times; return the medians of their times.

    Runs of more than `LONG` seconds are not repeated.
    """
    seconds: dict[Any, list[float]] = {key: [] for key in models}
    runs: dict[Any, Run] = {}
    for _ in range(N_TIMES):
        for key, model in models.items():
            if seconds[key] and seconds[key][0] > LONG:
                continue
            start = time.perf_counter()
            model.fit(X, y)
            seconds[key].append(time.perf_counter() - start)
            runs[key] = Run(model.n_mistakes_, sum(model.n_support_vectors_), 0.0, len(y))
    for key, run in runs.items():
        run.seconds = median(seconds[key])
    return runs


def by_policy(X: Array, y: Array) -> dict[Any, Run]:
    """Return the run of each policy and size, and of the Perceptron without a budget."""
    models: dict[Any, OnlineClassifier] = {cell: of_policy(*cell) for cell in CELLS}
    models["", None] = of_policy("", None)
    for model in models.values():
        model.fit(X[:300], y[:300])  # compiled before the first time is taken
    return in_turn(models, X, y)


def with_rules(X: Array, y: Array, size: int = 500) -> dict[Any, Run]:
    """Return the runs of other rules within a budget and without one."""
    models: dict[Any, OnlineClassifier] = {}
    for rule in ("pa1", "simproj"):
        models[rule, "no budget"] = learner(rule, None)
        for policy in ("least-recent", "smallest", "projectron"):
            models[rule, policy] = learner(rule, Budget(size, policy))
    return in_turn(models, X, y)


def bounds_of(X: Array, y: Array) -> dict[Any, MistakeBound]:
    """Return the mistake bound of each run of a policy that has one."""
    models: dict[Any, OnlineClassifier] = {("", None): of_policy("", None)}
    models |= {cell: of_policy(*cell) for cell in CELLS if cell[0] != "least-recent"}
    found: dict[Any, MistakeBound] = {}
    competitors: list[KernelCompetition] = []
    for key, model in models.items():
        blocks = list(model._blocks(X, y))
        made: Any = model._prepared(dense=True)
        competitors = competitors or list(KernelRun(made, blocks).competitors())
        found[key] = MistakeBound(*least_bound(made, blocks, None, competitors), 1)
    return found


def kept(run: Run, whole: Run) -> float:
    """Return the accuracy of a run, in % of that without a budget."""
    return 100 * run.accuracy / whole.accuracy


def tables() -> tuple[dict[str, str], list[tuple[str, bool]]]:
    """Return tables by their titles, and claims to check with whether they hold."""
    found, claims = {}, []
    for name in SETS:
        X, y = rows_of(name)
        runs, bounds = by_policy(X, y), bounds_of(X, y)
        whole = runs["", None]
        found[f"{name}: the Perceptron"] = table(
            ["policy", "budget", "mistakes", "accuracy kept", "support vectors", "time"],
            [
                [
                    policy or "no budget",
                    f"{size:,}" if size else "",
                    f"{run.n_mistakes:,} ({100 - 100 * run.accuracy:.1f} %)",
                    f"{kept(run, whole):.1f} %",
                    f"{run.n_supports:,}",
                    f"{run.seconds:.2f} s",
                ]
                for (policy, size), run in runs.items()
            ],
        )
        rules = with_rules(X, y)
        found[f"{name}: other rules, at most 500 support vectors"] = table(
            ["rule", "policy", "mistakes", "support vectors", "time"],
            [
                [rule, p, f"{r.n_mistakes:,}", f"{r.n_supports:,}", f"{r.seconds:.2f} s"]
                for (rule, p), r in rules.items()
            ],
        )
        found[f"{name}: mistake bounds"] = table(
            ["policy", "budget", "mistakes", "bound", "of trials", "theorem"],
            [
                [
                    policy or "no budget",
                    f"{size:,}" if size else "",
                    f"{bound.n_mistakes:,}",
                    f"{bound.bound:,.0f}",
                    f"{bound.n_compared:,}",
                    bound.theorem,
                ]
                for (policy, size), bound in bounds.items()
            ],
        )
        claims += _claims(name, runs, rules, bounds)
    return found, claims


def _claims(name: str, runs: Any, rules: Any, bounds: Any) -> list[tuple[str, bool]]:
    """Return the claims on one set."""
    whole = runs["", None].n_mistakes
    orders = [[runs[p, size].n_mistakes for p in POLICIES[:3]] for size in SIZES]
    return [
        (
            f"{name}: no run makes more mistakes than its bound",
            all(b.n_mistakes <= b.bound for b in bounds.values()),
        ),
        (
            f"{name}: where the budget is used up, the Projectron makes fewer mistakes than the "
            "policies that remove; elsewhere no policy makes a difference",
            all(
                projectron < min(recent, forgetron) or recent == forgetron == projectron == whole
                for recent, forgetron, projectron in orders
            ),
        ),
        (
            f"{name}: 500 projected support vectors take less than ten times the time of removal",
            runs["projectron", 500].seconds < 10 * runs["least-recent", 500].seconds,
        ),
        (
            f"{name}: PA-I with projections makes fewer mistakes than with removal",
            rules["pa1", "projectron"].n_mistakes < rules["pa1", "least-recent"].n_mistakes,
        ),
    ]


def main() -> int:
    """Write the page."""
    folder = script_parser(__doc__, __file__).parse_args().results
    report = Report("few_labels_kernels", "Kernels within a budget of support vectors", folder)
    report.add(
        f"One pass over each set, features from 0 to 1, the Gaussian kernel of sigma {SIGMA}. "
        f"Times are medians of {N_TIMES} runs of all learners in turn, or one run of more than "
        f"{LONG:.0f} s. The figures of the sources "
        "are curves on USPS, MNIST, census-income and adult, without a table to compare with."
    )
    found, claims = tables()
    for title, text in found.items():
        report.add(f"## {title}", text)
    for claim, holds in claims:
        report.check(claim, holds)
    return report.write()


if __name__ == "__main__":
    sys.exit(main())

"""Time of multinomial logistic regression to a given accuracy, compared with scikit-learn.

    python benchmarks/batch_softmax.py [r8 mnist stream] [--repeats 3]

For each solver, the script finds the loosest setting that comes within 1e-4 of the optimum. It then
times all solvers with these settings, in turn, in one process.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import sklearn
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info

from kesler import SoftmaxClassifier
from kesler.datasets import load
from text_stream import make_text_stream

sys.path.append(str(Path(__file__).parents[1] / "papers"))
from script_arguments import chosen, script_parser  # isort: skip

ACCURACY = 1e-4
TIGHT = 1e-6  # its relative excess over the optimum is about 1e-8
MOST_SLOWER = 4.0  # a peer that takes this many times our time is given up

Problem = tuple[Any, npt.NDArray[np.int64]]


def r8() -> Problem:
    """Return the news articles of R8 as tf-idf."""
    data = load("r8")
    X = TfidfVectorizer().fit_transform([record["text"] for record in data.records])
    return X, np.unique(data.y, return_inverse=True)[1]


def mnist() -> Problem:
    """Return the training digits with pixels in [0, 1]."""
    data = load("mnist")
    return np.asarray(data.X[:60_000], dtype=np.float64) / 255, np.asarray(data.y[:60_000])


def stream() -> Problem:
    """Return a stream of text-like rows of 20 classes, with int32 indices, which saga requires."""
    X, y = make_text_stream(100_000, 20)
    X.indptr, X.indices = X.indptr.astype(np.int32), X.indices.astype(np.int32)
    return X, y


PROBLEMS: dict[str, Callable[[], Problem]] = {"r8": r8, "stream": stream, "mnist": mnist}


def objective(model: Any, X: Any, y: npt.NDArray[np.int64]) -> float:
    """Return the objective that both libraries minimise, with C = 1."""
    scores = X @ model.coef_.T + model.intercept_
    losses = logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]
    return float(losses.sum() + 0.5 * (model.coef_**2).sum())


@dataclass(frozen=True)
class Solver:
    """A solver whose accuracy depends on one setting."""

    name: str
    make: Callable[[Any], Any]
    settings: tuple[Any, ...]


SOLVERS = (
    Solver(
        "kesler",
        lambda tol: SoftmaxClassifier(tol=tol),
        tuple(float(f"{tol:.0e}") for tol in np.geomspace(1e-2, 1e-6, 9)),
    ),
    Solver(
        "lbfgs",
        lambda n: LogisticRegression(solver="lbfgs", tol=1e-12, max_iter=n),
        tuple(int(n) for n in np.unique(np.geomspace(8, 800, 25).round())),
    ),
    Solver(
        "saga",
        lambda n: LogisticRegression(solver="saga", tol=1e-12, max_iter=n, random_state=0),
        tuple(int(n) for n in np.unique(np.geomspace(2, 512, 17).round())),
    ),
)


def fit(model: Any, X: Any, y: npt.NDArray[np.int64]) -> tuple[Any, float]:
    """Return the fitted model and the seconds of the fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin = time.perf_counter()
        model.fit(X, y)
        return model, time.perf_counter() - begin


@dataclass(frozen=True)
class Setting:
    """The loosest setting found, None if there is none, with its excess and its seconds."""

    value: Any
    excess: float
    seconds: float


def loosest(solver: Solver, X: Any, y: Any, best: float, limit: float) -> Setting:
    """Return the loosest setting within the accuracy, by bisection.

    The search starts from the cheapest setting, so that no run costs much more than the result.
    A solver that does not reach the accuracy within `limit` seconds has none.
    """
    low, step = -1, 1
    high, found = None, None
    while high is None or high - low > 1:
        middle = min(low + step, len(solver.settings) - 1) if high is None else (low + high) // 2
        model, seconds = fit(solver.make(solver.settings[middle]), X, y)
        excess = objective(model, X, y) / best - 1
        print(
            f"  {solver.name} {solver.settings[middle]}: {excess:.1e} in {seconds:.1f} s",
            flush=True,
        )
        if excess <= ACCURACY:
            high, found = middle, Setting(solver.settings[middle], excess, seconds)
        elif seconds > limit or middle == len(solver.settings) - 1:
            return Setting(None, excess, seconds)
        else:
            low, step = middle, 2 * step
    assert found is not None
    return found


def measure(name: str, repeats: int) -> dict[str, Any]:
    """Return the settings and the times of each solver on one problem."""
    X, y = PROBLEMS[name]()
    fit(SoftmaxClassifier(max_iter=1), X[:200], y[:200])  # compiles
    tight, seconds = fit(SoftmaxClassifier(tol=TIGHT), X, y)
    best = objective(tight, X, y)
    print(f"{name}: optimum {best:.4f} in {seconds:.1f} s", flush=True)
    ours = loosest(SOLVERS[0], X, y, best, np.inf)
    found = {"kesler": ours}
    for solver in SOLVERS[1:]:
        found[solver.name] = loosest(solver, X, y, best, MOST_SLOWER * ours.seconds)
    racing = [s for s in SOLVERS if found[s.name].value is not None]
    times: dict[str, list[float]] = {s.name: [] for s in racing}
    for _ in range(repeats):
        for solver in racing:
            times[solver.name].append(fit(solver.make(found[solver.name].value), X, y)[1])
    return {
        "rows": X.shape[0],
        "features": X.shape[1],
        "classes": len(np.unique(y)),
        "optimum": best,
        "tight_seconds": seconds,
        "settings": {each: asdict(setting) for each, setting in found.items()},
        "seconds": times,
    }


def page(results: dict[str, Any]) -> str:
    """Return the results as a table."""
    lines = [
        "# Multinomial logistic regression, seconds to within 1e-4 of the optimum",
        "",
        "Medians of the times of each solver, with its loosest setting that reaches this accuracy "
        "(kesler: `tol`, the others: `max_iter`). `>`: not reached after this time; the excess is "
        "in brackets.",
        "",
        "| problem | optimum | kesler | lbfgs | saga | best peer / kesler |",
        "|---|---|---|---|---|---|",
    ]
    for name, result in results["problems"].items():
        medians = {each: statistics.median(times) for each, times in result["seconds"].items()}
        cells = [cell(result["settings"][s.name], medians.get(s.name)) for s in SOLVERS]
        peers = [seconds for each, seconds in medians.items() if each != "kesler"]
        ratio = f"{min(peers) / medians['kesler']:.1f}" if peers else f"> {MOST_SLOWER:.0f}"
        lines.append(f"| {name} | {result['optimum']:.2f} | {' | '.join(cells)} | {ratio} |")
    return "\n".join([*lines, "", results["machine"], ""])


def cell(setting: dict[str, Any], seconds: float | None) -> str:
    """Return a solver's seconds and setting."""
    if seconds is None:
        return f"> {setting['seconds']:.1f} ({setting['excess']:.0e})"
    return f"{seconds:.2f} ({setting['value']:g})"


def main() -> None:
    """Run the requested problems, and merge their results with those of earlier runs."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("problems", nargs="*", help=f"of {', '.join(PROBLEMS)}; all by default")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    names = chosen(parser, arguments.problems, PROBLEMS)
    arguments.results.mkdir(parents=True, exist_ok=True)
    path = arguments.results / "batch_softmax.json"
    before = json.loads(path.read_text()) if path.exists() else {"problems": {}}
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    threads = max(pool["num_threads"] for pool in pools)
    results = {
        "machine": f"{os.cpu_count()} cores, {threads} for BLAS, {platform.machine()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}",
        "problems": before["problems"],
    }
    for name in names:
        results["problems"][name] = measure(name, arguments.repeats)
        path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        path.with_suffix(".md").write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()

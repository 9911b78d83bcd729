"""Time and log loss of ShareBoost and abess: path against path, and one size against one size.

    python benchmarks/shareboost.py [landsat pendigits mnist-3000 mnist r8 ...] [--shortlist 1]

Both minimise the logistic loss without a penalty. ShareBoost (by the gradient alone, or by the best
of the `--shortlist` steepest candidates) has one fit, which gives every size. abess is run twice:
for one size, and over all sizes up to it, of which a run returns only the best model. Each turn
measures the three in one process, one after another and on one thread, by the time of its
processor, which other processes hardly change; a process is stopped if one of them takes longer
than the limit by the clock. Ratios are medians over the turns. The loss of both is computed by one
function from their weights. The targets, at the largest size that abess finished: at most a fifth
of the time of its path, at most two thirds of the time of its one size, and no higher loss.

If no set is named, the script then measures the time of a round as the number of candidates or of
rows grows, and fits the exponent. It writes benchmarks/results/shareboost.md and .json, and exits
with 1 if a target is missed.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import sklearn
from scipy import sparse
from scipy.special import logsumexp
from sklearn.feature_extraction.text import TfidfVectorizer
from threadpoolctl import threadpool_limits

from kesler import ShareBoostClassifier
from kesler.datasets import load

sys.path.append(str(Path(__file__).parents[1] / "papers"))
from script_arguments import chosen, script_parser  # isort: skip

SIZES = (5, 10, 20, 50)
TIMES_FASTER = {"one": 1.5, "path": 5.0}
WAYS = {"one": "one size of", "path": "the path to"}
MOST_EXPONENT = 1.15
FEWEST_TEXTS = 30
"""The least number of texts with a term of R8; abess needs the terms as a dense table."""
CANDIDATES, ROWS = (500, 1000, 2000, 4000), (2000, 4000, 8000, 16_000)
ROUNDS = 12
CLOCK = "by the time of the processor"

Codes = npt.NDArray[np.int64]
Problem = tuple[Any, Codes]
Found = dict[str, float]


# ---- the sets -------------------------------------------------------------------------------


def pairs(name: str, n_rows: int) -> Problem:
    """Return the products of ordered pairs a <= b of features in [-1, 1]."""
    data = load(name)
    X = np.asarray(data.X, dtype=np.float64)[:n_rows]
    low, high = X.min(axis=0), X.max(axis=0)
    X = 2 * (X - low) / (high - low) - 1
    a, b = np.triu_indices(X.shape[1])
    return X[:, a] * X[:, b], codes(data.y[:n_rows])


def mnist(n_rows: int) -> Problem:
    """Return pixels in [0, 1], without those that are always 0."""
    data = load("mnist")
    X = np.asarray(data.X[:n_rows], dtype=np.float64) / 255
    return X[:, X.any(axis=0)], codes(data.y[:n_rows])


def r8() -> Problem:
    """Return the news articles of R8 as sparse tf-idf."""
    data = load("r8")
    terms = TfidfVectorizer(min_df=FEWEST_TEXTS)
    X = terms.fit_transform([record["text"] for record in data.records])
    return sparse.csr_array(X), codes(data.y)


def codes(y: Any) -> Codes:
    """Encode labels as numbers."""
    return np.asarray(np.unique(np.asarray(y), return_inverse=True)[1], dtype=np.int64)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "landsat": lambda: pairs("landsat", 4435),
    "pendigits": lambda: pairs("pendigits", 7494),
    "mnist-3000": lambda: mnist(3000),
    "mnist": lambda: mnist(10_000),
    "r8": r8,
}


# ---- contestants ----------------------------------------------------------------------------


def log_loss(X: Any, y: Codes, W: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    """Return the mean logistic loss of weights of shape (n_features, n_classes)."""
    scores = X @ W + b
    return float((logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]).mean())


def ours(
    X: Any, y: Codes, n_features: int, shortlist: int = 1
) -> tuple[ShareBoostClassifier, float]:
    """Return the fitted model and the seconds of the fit."""
    rule = {"choice": "full", "shortlist": shortlist} if shortlist > 1 else {}
    model = ShareBoostClassifier(n_features, loss="softmax", **rule)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the classes are separated: no feature reduces the loss
        begun = time.process_time()
        model.fit(X, y)
        return model, time.process_time() - begun


def our_loss(model: ShareBoostClassifier, X: Any, y: Codes, n: int) -> float:
    """Return the loss with n features, or with all if there are fewer."""
    part = model.at(min(n, len(model.path_)))
    return log_loss(X[:, part.support_], y, part.coef_.T, part.intercept_)


def theirs(X: Any, y: Codes, sizes: list[int]) -> Found:
    """Return the seconds and the loss of abess for the best of some sizes."""
    from abess import MultinomialRegression

    model = MultinomialRegression(support_size=sizes, ic_coef=0.0, ic_type="bic", thread=1)
    begun = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - begun
    return {"seconds": seconds, "loss": log_loss(X, y, model.coef_, model.intercept_)}


def take_turns(name: str, size: int, repeats: int, shortlist: int, connection: Connection) -> None:
    """Send the results of each way in turn, so often, as pairs (way, result)."""
    X, y = PROBLEMS[name]()
    dense = X.toarray() if sparse.issparse(X) else X
    with threadpool_limits(1):
        ours(X[:300], y[:300], 2)  # compiles
        for _ in range(repeats):
            model, seconds = ours(X, y, size, shortlist)
            connection.send(("ours", {"seconds": seconds, "loss": our_loss(model, X, y, size)}))
            connection.send(("one", theirs(dense, y, [size])))
            connection.send(("path", theirs(dense, y, list(range(1, size + 1)))))


def in_turns(name: str, size: int, repeats: int, shortlist: int, limit: float) -> dict[str, Any]:
    """Return the results of each way, fewer if one took longer than the limit."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(
        target=take_turns, args=(name, size, repeats, shortlist, there)
    )
    process.start()
    there.close()
    found: dict[str, list[Found]] = {way: [] for way in ("ours", "one", "path")}
    try:
        while len(found["path"]) < repeats and here.poll(limit):
            way, result = here.recv()
            found[way].append(result)
    except EOFError:
        raise SystemExit(f"abess failed on {name}; to install it, run: pip install abess") from None
    finally:
        process.terminate()
        process.join()
    return found


def measure(name: str, repeats: int, limit: float, shortlist: int) -> dict[str, Any]:
    """Return the results of both on one problem."""
    X, y = PROBLEMS[name]()
    rows = []
    for size in SIZES:
        found = in_turns(name, size, repeats, shortlist, limit)
        row = {"size": size, **summary(found["ours"], found["ours"])}
        row |= {way: summary(found[way], found["ours"]) for way in ("one", "path")}
        rows.append(row)
        print(name, row, flush=True)
        if row["path"] is None:
            break
    return {
        "rows": X.shape[0],
        "candidates": X.shape[1],
        "classes": int(y.max()) + 1,
        "sizes": rows,
        "limit": limit,
        "measured": f"{time.strftime('%Y-%m-%d')}, {CLOCK}",
    }


def summary(found: list[Found], ours: list[Found]) -> dict[str, Any] | None:
    """Return the median seconds, their median ratio to ours of the same turn, and the loss."""
    if not found:
        return None
    pairs = list(zip(found, ours, strict=False))
    return {
        "seconds": statistics.median(each["seconds"] for each in found),
        "times": statistics.median(a["seconds"] / b["seconds"] for a, b in pairs),
        "loss": found[0]["loss"],
    }


# ---- growth of the time of a round ----------------------------------------------------------


def seconds_per_round(n_rows: int, n_candidates: int) -> float:
    """Return the median time of the later rounds on random data."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n_rows, n_candidates))
    y = (X[:, :10] + generator.gumbel(size=(n_rows, 10))).argmax(axis=1)
    model, _ = ours(X, y, ROUNDS)
    ends = [each.seconds for each in model.path_]
    return float(np.median(np.diff(ends)[2:]))


def growth() -> dict[str, Any]:
    """Return the times of a round for several sizes, and their exponents."""
    times = {
        "candidates": {d: seconds_per_round(4000, d) for d in CANDIDATES},
        "rows": {m: seconds_per_round(m, 1000) for m in ROWS},
    }
    exponents = {
        name: float(np.polyfit(np.log(list(each)), np.log(list(each.values())), 1)[0])
        for name, each in times.items()
    }
    print(exponents, flush=True)
    return {"seconds": times, "exponents": exponents}


# ---- the page -------------------------------------------------------------------------------


def missed(results: dict[str, Any]) -> list[str]:
    """Return one sentence per missed target."""
    sentences = []
    for name, result in results["problems"].items():
        for way, least in TIMES_FASTER.items():
            done = [row for row in result["sizes"] if row[way] is not None]
            if not done:
                continue
            last = done[-1]
            what, found = f"{name}, {WAYS[way]} {last['size']}", last[way]
            if found["times"] < least:
                sentences.append(f"{what}: {found['times']:.1f} times faster, not {least:g}.")
            if last["loss"] > found["loss"]:
                sentences.append(f"{what}: loss {last['loss']:.4f}, abess {found['loss']:.4f}.")
    for name, exponent in results.get("growth", {}).get("exponents", {}).items():
        if exponent > MOST_EXPONENT:
            sentences.append(
                f"The time of a round grows with the {name} to the power of {exponent:.2f}."
            )
    return sentences


def page(results: dict[str, Any]) -> str:
    """Return the results as a table."""
    lines = [
        "# ShareBoost compared with abess",
        "",
        f"Medians of {results['repeats']} turns, in each of which one process fits kesler, which "
        "gives all sizes up to this one, abess for this one size, and abess for all sizes up to "
        "it. All use one thread, and abess the defaults of its search. Times are medians of the "
        "ratios of turns; the mean log loss is that of the training rows at this size, without a "
        "penalty.",
        "",
        "| set | rows x candidates, classes | features | kesler s | abess one size s | times | "
        "abess path s | times | kesler loss | abess one size | abess path |",
        "|---" * 11 + "|",
    ]
    for name, result in results["problems"].items():
        size = f"{result['rows']} x {result['candidates']}, {result['classes']}"
        lines += [f"| {name} | {size} | {cells(row, result['limit'])} |" for row in result["sizes"]]
    dates = [f"{name} {each['measured']}" for name, each in results["problems"].items()]
    lines += ["", f"Measured: {'; '.join(dates)}."]
    if "growth" in results:
        powers = ", ".join(
            f"{name} to the power of {value:.2f}"
            for name, value in results["growth"]["exponents"].items()
        )
        lines += ["", f"The time of a round grows with {powers}."]
    lines += ["", *(missed(results) or ["All targets are met."]), "", results["machine"], ""]
    return "\n".join(lines)


def cells(row: dict[str, Any], limit: float) -> str:
    """Return the cells of one size."""
    times = [time_cells(row[way], row["seconds"], limit) for way in TIMES_FASTER]
    losses = ["" if row[way] is None else f"{row[way]['loss']:.4f}" for way in TIMES_FASTER]
    return " | ".join(
        [str(row["size"]), f"{row['seconds']:.2f}", *times, f"{row['loss']:.4f}", *losses]
    )


def time_cells(found: dict[str, Any] | None, ours: float, limit: float) -> str:
    """Return the seconds of abess, and how many times ours they are."""
    if found is None:
        return f"> {limit:g} | > {limit / ours:.0f}"
    return f"{found['seconds']:.2f} | {found['times']:.1f}"


def main() -> int:
    """Run the requested problems, and merge their results with those of earlier runs."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("problems", nargs="*", help=f"of {', '.join(PROBLEMS)}; all by default")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--shortlist", type=int, default=1)
    parser.add_argument("--limit", type=float, default=900.0)
    arguments = parser.parse_args()
    names = chosen(parser, arguments.problems, PROBLEMS)
    arguments.results.mkdir(parents=True, exist_ok=True)
    path = arguments.results / "shareboost.json"
    before = json.loads(path.read_text()) if path.exists() else {"problems": {}}
    results = {
        "machine": f"{os.cpu_count()} cores, of which one is used, {platform.machine()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}",
        "repeats": arguments.repeats,
        "problems": before["problems"],
        "growth": before["growth"] if arguments.problems and "growth" in before else growth(),
    }
    for name in names:
        results["problems"][name] = measure(
            name, arguments.repeats, arguments.limit, arguments.shortlist
        )
        path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        path.with_suffix(".md").write_text(page(results), encoding="utf-8")
    return 1 if missed(results) else 0


if __name__ == "__main__":
    sys.exit(main())

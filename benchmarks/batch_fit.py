"""`fit` of all rows with nothing chosen, beside what users fit today.

    PYTHONPATH=... KESLER_DATA=... python benchmarks/batch_fit.py

LightGBM must be importable. Cross-validation with no argument on seven sets; then three quarters of
each set of `sets.py` (a random split) are fitted and the rest is asked: errors, errors of the
probabilities, and seconds, beside one pass, a random forest, LightGBM and, on texts, TF-IDF with
LinearSVC. Of sets below 6,000 rows each quarter is asked in turn, so that every row counts. Seconds
are those of fitting and asking, on average. Rows of tables are dictionaries for Kesler; the peers
are given a column for each value of a category. The script writes benchmarks/results/batch_fit.md
and exits with 1 if a target is missed.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from lightgbm import LGBMClassifier
from scipy import sparse
from sklearn import datasets
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from kesler import OnlineClassifier
from kesler.datasets import load
from refitted import listed
from sets import SETS, STREAMS, TABLES, RealSet

sys.path.append(str(Path(__file__).parents[1] / "papers"))
from report import Report, table
from script_arguments import script_parser

OURS, ONE_PASS, IN_ORDER = "fit", "one pass", "in order"
FOREST, BOOSTED, LINEAR = "random forest", "LightGBM", "TF-IDF + LinearSVC"
TEXTS, MEASUREMENTS = "texts", "measurements"
PEERS = {MEASUREMENTS: (FOREST, BOOSTED), TABLES: (FOREST, BOOSTED), TEXTS: (LINEAR,)}
"""The peers by kind of rows, with whose errors those of `fit` are compared."""

MOST = {MEASUREMENTS: 1.0, TABLES: 1.1, TEXTS: 0.9}
"""The most that the geometric mean of the ratios to the errors of each peer may be."""

LEAST_ERROR = 0.001  # is added to errors before their ratios are averaged
MOST_BOOSTED = 30_000_000  # rows x columns x classes that LightGBM is asked to learn
BINS, ROWS_OF_BIN = 10, 20
FEW_ROWS = 6000  # of sets below these, each quarter is asked
SMALL_ROWS, N_FORESTS = 600, 20
Rows = npt.NDArray[np.int64]


# ---- cross-validation ----------------------------------------------------------------------------

FOLDED: dict[str, Callable[[], Any]] = {
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "glass": lambda: (load("glass").X, load("glass").y),
    "landsat": lambda: (load("landsat").X, load("landsat").y),
    "letter": lambda: (load("letter").X, load("letter").y),
}


def of_forests(X: Any, y: Any) -> float:
    """Return the mean accuracy of random forests; of few rows, one differs from the next by .05."""
    seeds = range(N_FORESTS if len(y) < SMALL_ROWS else 1)
    forests = (RandomForestClassifier(random_state=seed) for seed in seeds)
    return float(np.mean([cross_val_score(each, X, y, cv=5).mean() for each in forests]))


def cross_validated(report: Report) -> None:
    """Add the table of `cross_val_score(cv=5)`."""
    makers = {
        "no argument": OnlineClassifier,
        IN_ORDER: lambda: OnlineClassifier(shuffle=False),
        "logistic regression": lambda: make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=1000)
        ),
    }
    rows = []
    for name, read in FOLDED.items():
        X, y = read()
        found = {each: cross_val_score(make(), X, y, cv=5).mean() for each, make in makers.items()}
        found[FOREST] = of_forests(X, y)
        rows.append([name, *(f"{score:.3f}" for score in found.values())])
        ours = found["no argument"]
        least = max(found["logistic regression"] - 0.01, 0.97 * found[FOREST])
        claim = f"{name}: {ours:.3f}, at least {least:.3f}, which is logistic regression's - .01"
        report.check(f"{claim} or .97 of a random forest's", bool(ours >= least))
    header = ["cv=5, accuracy", *makers, FOREST]
    report.add(
        "## Cross-validation",
        f"Of sets below {SMALL_ROWS} rows, the forest is the mean of {N_FORESTS}.",
        table(header, rows),
    )


# ---- three quarters ------------------------------------------------------------------------------


@dataclass
class Found:
    """The results of one set: error, error of probabilities and seconds by method."""

    name: str
    kind: str
    errors: dict[str, float] = field(default_factory=dict)
    calibration: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def kind_of(each: RealSet) -> str:
    """Return the kind of rows of a set, by which means are taken."""
    if each.kind == "text":
        return TEXTS
    return each.group if each.group in (STREAMS, TABLES) else MEASUREMENTS


def taken(X: Any, rows: Rows) -> Any:
    """Return rows of an array, of sparse rows or of a list."""
    return [X[i] for i in rows] if isinstance(X, list) else X[rows]


def calibration_error(confidence: npt.NDArray[Any], right: npt.NDArray[np.bool_]) -> float:
    """Return the mean distance of confidence and accuracy, in bins of equal numbers of rows."""
    n_bins = min(BINS, max(1, len(right) // ROWS_OF_BIN))
    bins = np.array_split(np.argsort(confidence), n_bins)
    gaps = [len(b) * abs(confidence[b].mean() - right[b].mean()) for b in bins]
    return float(sum(gaps) / len(right))


def methods(kind: str, X: Any, size: float) -> dict[str, Any]:
    """Return the estimators to compare on rows of a kind, with so many numbers for LightGBM."""
    ours = {OURS: OnlineClassifier(), ONE_PASS: OnlineClassifier(epochs=1)}
    if kind == TEXTS:
        words = TfidfVectorizer() if isinstance(X, list) else TfidfTransformer()
        linear = make_pipeline(words, FunctionTransformer(narrow), LinearSVC())
        return {**ours, IN_ORDER: OnlineClassifier(shuffle=False), LINEAR: linear}
    peers = {FOREST: RandomForestClassifier(random_state=0)}
    if size <= MOST_BOOSTED:
        peers[BOOSTED] = LGBMClassifier(random_state=0, verbose=-1, n_jobs=1)
    return {**ours, **peers}


def quarters(n_rows: int) -> list[Rows]:
    """Return the rows that are asked, of each split: all quarters of few rows, or one."""
    order = np.random.default_rng(0).permutation(n_rows)
    parts = np.split(order, [n_rows * i // 4 for i in (1, 2, 3)])
    return parts if n_rows < FEW_ROWS else parts[-1:]


def compared(each: RealSet) -> Found:
    """Fit three quarters of a set by each method, and ask the rest."""
    stream, found = each.stream(), Found(each.name, kind_of(each))
    columns = None if found.kind == TEXTS else listed(stream.X)
    size = 0 if columns is None else columns.size * stream.n_classes
    for method, model in methods(found.kind, stream.X, size).items():
        rows = columns if method in (FOREST, BOOSTED) else stream.X
        pieces, start = [], time.perf_counter()
        for asked in quarters(len(stream.y)):
            first = np.setdiff1d(np.arange(len(stream.y)), asked)
            fitted = clone(model).fit(taken(rows, first), stream.y[first])
            pieces.append(judged(fitted, taken(rows, asked), stream.y[asked]))
        found.seconds[method] = (time.perf_counter() - start) / len(pieces)
        right, confidence = map(np.concatenate, zip(*pieces, strict=True))
        found.errors[method] = 1 - float(right.mean())
        if method != LINEAR:
            found.calibration[method] = calibration_error(confidence, right)
    print(found.name, found.errors, flush=True)
    return found


def judged(model: Any, rows: Any, y: Rows) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
    """Return which answers are right, and the confidence in each, 0 without probabilities."""
    if not hasattr(model, "predict_proba"):
        return model.predict(rows) == y, np.zeros(len(y))
    chances = model.predict_proba(rows)
    return model.classes_[chances.argmax(axis=1)] == y, chances.max(axis=1)


def narrow(rows: Any) -> Any:
    """Return sparse rows with indices of 32 bits, which LinearSVC asks for."""
    rows = sparse.csr_matrix(rows)
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows


def ratio(sets: Iterable[Found], method: str, peer: str) -> float:
    """Return the geometric mean of the ratios of errors, over the sets that both have learnt."""
    pairs = [(s.errors[method], s.errors[peer]) for s in sets if peer in s.errors]
    return float(np.exp(np.mean([np.log((a + LEAST_ERROR) / (b + LEAST_ERROR)) for a, b in pairs])))


def page_of_splits(report: Report, found: list[Found]) -> None:
    """Add the tables of errors, and check the means."""
    for kind in (MEASUREMENTS, TABLES, STREAMS, TEXTS):
        sets = [each for each in found if each.kind == kind]
        peers = PEERS.get(kind, (FOREST, BOOSTED))
        shown = (OURS, ONE_PASS, *((IN_ORDER,) if kind == TEXTS else ()), *peers)
        rows = [
            [
                each.name,
                *(f"{100 * each.errors[m]:.2f}" if m in each.errors else "" for m in shown),
                *(f"{each.calibration[m]:.3f}" for m in (OURS, ONE_PASS)),
                *(f"{each.seconds[m]:.2f}" if m in each.seconds else "" for m in shown),
            ]
            for each in sets
        ]
        seconds = [f"s, {method}" for method in shown]
        header = ["% errors", *shown, "calibration", "of one pass", *seconds]
        means = [f"{peer}: {ratio(sets, OURS, peer):.3f}" for peer in shown[1:]]
        report.add(f"## {kind.capitalize()}", table(header, rows))
        report.add(f"Geometric means of the ratios of errors to those of {'; '.join(means)}.")
        gap = float(np.mean([each.calibration[OURS] for each in sets]))
        report.add(f"The error of probabilities is {gap:.3f} on average.")
        for peer in peers if kind in MOST else ():
            mean, most = ratio(sets, OURS, peer), MOST[kind]
            claim = f"{kind}: {mean:.3f} of the errors of {peer}, at most {most:.2f}"
            report.check(claim, mean <= most)


def time_of_many_rows(report: Report, n_rows: int = 1_000_000) -> None:
    """Check that a million rows take at most twice the time of one pass."""
    draws = np.random.default_rng(0)
    X = draws.normal(size=(n_rows, 20)).astype(np.float32)
    y = (X @ draws.normal(size=(20, 10))).argmax(axis=1)
    seconds = []
    for model in (OnlineClassifier(epochs=1, shuffle=False), OnlineClassifier()):
        start = time.perf_counter()
        model.fit(X, y)
        seconds.append(time.perf_counter() - start)
    report.add(
        "## A million rows",
        f"{n_rows:,} rows of 20 columns, 10 classes: {seconds[0]:.0f} s in one pass in the order "
        f"given, {seconds[1]:.0f} s with the defaults.",
    )
    report.check("a million rows take at most twice the time", seconds[1] <= 2 * seconds[0])


def main() -> int:
    """Write the page; return 1 if a target is missed."""
    warnings.simplefilter("ignore")
    folder = script_parser(__doc__, __file__).parse_args().results
    report = Report("batch_fit", "`fit` of all rows, with nothing chosen", folder)
    OnlineClassifier().fit(np.eye(3), [0, 1, 2])  # compiles
    cross_validated(report)
    page_of_splits(report, [compared(each) for each in SETS])
    time_of_many_rows(report)
    return report.write()


if __name__ == "__main__":
    sys.exit(main())

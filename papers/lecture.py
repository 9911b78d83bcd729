"""Comparison of the multiclass methods of a lecture on eight real sets.

Chang (2017), Multiclass Classification: decompositions into binary problems, Kesler's construction,
the multiclass SVM and multinomial logistic regression, compared with our online learner in one
pass. The learner of all binary problems is logistic regression; one against some and Kesler's
construction, whose problems come in blocks, use its stochastic gradient.

    python papers/lecture.py            # all, into papers/results/lecture.md; takes minutes
    python papers/lecture.py segment    # some sets, only printed
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from enron import count_words
from kesler import (
    CrammerSingerClassifier,
    ErrorCorrectingCode,
    ErrorCorrectingTournament,
    FilterTree,
    KeslerReduction,
    LabelTree,
    OneAgainstSome,
    OneVsOne,
    OneVsRest,
    OnlineClassifier,
    SoftmaxClassifier,
)
from kesler.datasets import load
from report import LAYOUT, STYLE, Report, table
from script_arguments import chosen, script_parser

Array = npt.NDArray[Any]

SETS = ("letter", "pendigits", "landsat", "mnist", "r8", "webkb", "shuttle", "segment")
TEXTS = ("r8", "webkb")
MNIST_ROWS = 10_000
MOST_BITS = 127  # of an exhaustive code: 8 classes


def binary() -> LogisticRegression:
    """Return the learner of all binary problems."""
    return LogisticRegression(max_iter=300, tol=1e-3)


def streamed(**settings: Any) -> SGDClassifier:
    """Return a learner of binary problems that come block by block."""
    return SGDClassifier(loss="log_loss", random_state=0, **settings)


METHODS: dict[str, Callable[[], Any]] = {
    "one against all": lambda: OneVsRest(binary()),
    "one against one, majority": lambda: OneVsOne(binary(), decoding="majority"),
    "one against one, tournament": lambda: OneVsOne(binary(), decoding="tournament"),
    "one against one, margins": lambda: OneVsOne(binary(), decoding="margins"),
    "code, exhaustive": lambda: ErrorCorrectingCode(binary(), code="exhaustive"),
    "code, Hadamard": lambda: ErrorCorrectingCode(binary(), code="hadamard"),
    "code, dense": lambda: ErrorCorrectingCode(binary(), code="dense", random_state=0),
    "code, sparse": lambda: ErrorCorrectingCode(binary(), code="sparse", random_state=0),
    "filter tree": lambda: FilterTree(binary()),
    "error-correcting tournament": lambda: ErrorCorrectingTournament(binary()),
    "label tree": lambda: LabelTree(binary()),
    "one against some": lambda: OneAgainstSome(streamed()),
    "Kesler's construction": lambda: KeslerReduction(streamed(fit_intercept=False)),
    "multiclass SVM": lambda: CrammerSingerClassifier(),
    "multinomial logistic": lambda: SoftmaxClassifier(),
    "Perceptron, ten passes": lambda: Passes(
        10, hypotheses="multi", update="perceptron", intercept=1.0
    ),
    "online default, one pass": lambda: Passes(1),
}


class Passes:
    """An online learner that makes several passes over the rows, each in another order."""

    def __init__(self, n_passes: int, **settings: Any) -> None:
        self.n_passes, self.settings = n_passes, settings

    def fit(self, X: Any, y: Array) -> Passes:
        """Fit the learner to the rows."""
        self.model_ = OnlineClassifier(**self.settings)
        for seed in range(self.n_passes):
            order = np.random.default_rng(seed).permutation(len(y))
            self.model_.partial_fit(X[order], y[order])
        return self

    def predict(self, X: Any) -> Array:
        """Return the predicted classes."""
        return self.model_.predict(X)


# ---- the sets -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows, scaled for linear learners."""

    X: Any
    y: Array
    X_test: Any
    y_test: Array


def read(name: str) -> Split:
    """Read a set in the split of its source, or with a random third as test rows."""
    data = load(name)
    if name in TEXTS:
        X: Any = count_words(" ".join(record.values()) for record in data.records)
    else:
        X = np.asarray(data.X, dtype=np.float64)
    y = np.asarray(data.y)
    if data.n_train is None:
        X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0)
    else:
        n = min(data.n_train, MNIST_ROWS) if name == "mnist" else data.n_train
        X, X_test, y, y_test = X[:n], X[data.n_train :], y[:n], y[data.n_train :]
    scaler = TfidfTransformer(sublinear_tf=True) if name in TEXTS else StandardScaler()
    return Split(scaler.fit_transform(X), y, scaler.transform(X_test), y_test)


# ---- the figures --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figures:
    """The results of one method on one set."""

    error: float
    fit_seconds: float
    predict_seconds: float
    n_weights: int


MEASURES: Mapping[str, Callable[[Figures], str]] = {
    "Test error, %": lambda found: f"{found.error:.2f}",
    "Time to fit, s": lambda found: f"{found.fit_seconds:.2f}",
    "Time to predict the test rows, s": lambda found: f"{found.predict_seconds:.3f}",
    "Weights": lambda found: f"{found.n_weights:,}",
}


def run(method: str, split: Split) -> Figures | None:
    """Fit and evaluate one method; None if an exhaustive code would have too many bits."""
    if "exhaustive" in method and 2 ** (len(np.unique(split.y)) - 1) - 1 > MOST_BITS:
        return None
    model = METHODS[method]()
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(split.X, split.y)
    fitted = time.perf_counter()
    wrong = model.predict(split.X_test) != split.y_test
    end = time.perf_counter()
    return Figures(100 * float(np.mean(wrong)), fitted - start, end - fitted, n_weights(model))


def n_weights(model: Any) -> int:
    """Return the number of weights of a fitted model, including those of its binary learners."""
    if isinstance(model, Passes):
        return int(model.model_._learner.n_weights)
    if hasattr(model, "coef_"):
        return int(np.size(model.coef_) + np.size(getattr(model, "intercept_", ())))
    # A binary problem with one label is solved by a constant, without weights.
    return sum(n_weights(each) for each in getattr(model, "estimators_", ()))


def show(report: Report, names: tuple[str, ...]) -> None:
    """Run all methods on some sets, and add one table per measure."""
    found: dict[str, dict[str, Figures | None]] = {}
    for name in names:
        split = read(name)
        found[name] = {}
        for method in METHODS:
            found[name][method] = run(method, split)
            print(f"{name}, {method}: {report.seconds:.0f} s", flush=True)
    for measure, format_cell in MEASURES.items():
        rows = [
            [method, *(format_cell(f) if (f := found[name][method]) else "-" for name in names)]
            for method in METHODS
        ]
        report.add(f"## {measure}", table(["", *names], rows))


# ---- the picture --------------------------------------------------------------------------------

CENTRES = np.array([[-2.2, 0.0], [0.0, 0.0], [2.2, 0.0], [0.0, 2.2], [1.2, -2.0]])
PALE = ListedColormap(["#BBD7EA", "#F3CDB0", "#B6E0D0", "#EBCFDF", "#F7E6B8"])
DARK = ("#0072B2", "#D55E00", "#009E73", "#A63A88", "#B38600")


def in_the_plane() -> tuple[Array, Array]:
    """Return five clouds, one of them between the others: no line separates it from the rest."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(len(CENTRES)), 60)
    return CENTRES[y] + 0.45 * rng.standard_normal((len(y), 2)), y


def draw_regions(path: Path) -> None:
    """Draw the predictions of each method in the plane, one panel per method."""
    X, y = in_the_plane()
    with rc_context(STYLE):
        columns = 6
        figure = Figure(figsize=(1.9 * columns, 6.2), layout=LAYOUT)
        axes = figure.subplots(-(-len(METHODS) // columns), columns)
        for ax in axes.flat:
            ax.set_axis_off()
        for ax, (method, make) in zip(axes.flat, METHODS.items(), strict=False):
            draw_region(ax, method, make(), X, y)
        figure.savefig(path, dpi=150)


def draw_region(ax: Axes, method: str, model: Any, X: Array, y: Array) -> None:
    """Draw the regions of one method, the clouds, and the share of wrong points."""
    model.fit(X, y)
    ticks = np.linspace(-3.8, 3.8, 300)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    regions = np.asarray(model.predict(grid)).reshape(len(ticks), len(ticks))
    extent = (ticks[0], ticks[-1], ticks[0], ticks[-1])
    ax.imshow(regions, origin="lower", extent=extent, cmap=PALE, vmin=0, vmax=len(CENTRES) - 1)
    for label, colour in enumerate(DARK):
        ax.plot(*X[y == label].T, "o", ms=1.6, color=colour, mew=0)
    error = 100 * float(np.mean(model.predict(X) != y))
    ax.set_title(f"{method}\n{error:.0f} % wrong", fontsize=7.5, fontweight="normal")


REGIONS = """\
The regions of the default are bounded by curves, since features of its own making are among its
features. In the corners, where there are no points, its regions mean nothing, and pockets of
another class appear."""


def main() -> int:
    """Run the given sets; write the page if these are all sets."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("sets", nargs="*", help=f"of {', '.join(SETS)}; all by default")
    options = parser.parse_args()
    names = tuple(chosen(parser, options.sets, SETS))
    title = "Chang (2017): the methods of the lecture on eight real sets"
    report = Report("lecture", title, options.results)
    report.add(
        "Test rows are those of the source, else a random third. Measurements are standardised, "
        f"words weighted by tf-idf; the first {MNIST_ROWS:,} rows of MNIST are learnt, as pixels. "
        "Binary problems are solved by scikit-learn's logistic regression with C = 1; those of one "
        "against some and of Kesler's construction, which come in blocks, by SGDClassifier. "
        "Nothing is tuned."
    )
    show(report, names)
    if names != SETS:
        return 0
    draw_regions(report.picture("regions", "Predictions of each method in the plane"))
    report.add(REGIONS)
    return report.write()


if __name__ == "__main__":
    sys.exit(main())

"""The examples and experiments of ShareBoost, except those on MNIST by templates.

Shalev-Shwartz, Wexler and Shashua (2011), ShareBoost: Efficient Multiclass Learning with Feature
Sharing: the two examples of Section 6, and Fig. 2, 3 and 7.

    python papers/shareboost2011.py                    # all, into papers/results/; takes hours
    python papers/shareboost2011.py --quick            # small settings, into a temporary folder
    python papers/shareboost2011.py --quick figure3    # some parts
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator
from sklearn.decomposition import PCA
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from kesler import JointBoostClassifier, MixedNormClassifier, ShareBoostClassifier
from kesler.datasets import load
from kesler.dictionaries import Dictionary, Pieces, Products, Stumps, Templates
from report import LAYOUT, STYLE, Report, in_line, spread, table
from script_arguments import chosen, folder_of, script_parser
from sharing_examples import (
    CHOICE,
    Array,
    along,
    code_and_unit,
    code_blocks,
    columns_of_frobenius,
    columns_of_l1,
    columns_of_mixed_norm,
    columns_of_shareboost,
    error,
)

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#A63A88")
N_FEATURES = (5, 10, 20, 50)
# Weights of the squared norm for Fig. 3, against overfitting (Section 3.3 of the source).
ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2)


@dataclass(frozen=True)
class Settings:
    """The sizes of the experiments.

    Parameters
    ----------
    classes : tuple of int
        The numbers of classes of the first example.
    block_classes, blocks : tuple of int
        The numbers of classes and of blocks of the second example.
    sets : tuple of str
        The sets of Fig. 3.
    n_alphas : int
        The number of penalties on the path of the mixed norm.
    glyph_classes : tuple of int
        The numbers of classes of Fig. 2.
    n_fonts : int
        The number of training images of each glyph.
    n_patches : int
        The number of patches of the templates of Fig. 2.
    n_glyph_rounds : int
        The largest number of features for the accuracy; in 1-vs-rest for each class.
    digits : int
        The number of training rows of Fig. 7.
    centres, n_radii, n_pieces : int
        The pool of pieces of Fig. 7, and the number of selected pieces.
    behind_kernel : float
        The largest difference from the error of the kernel, in percentage points.
    """

    classes: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024)
    block_classes: tuple[int, ...] = (16, 64)
    blocks: tuple[int, ...] = (2, 4, 8, 16, 32)
    sets: tuple[str, ...] = ("landsat", "pendigits", "isolet")
    n_alphas: int = 100
    glyph_classes: tuple[int, ...] = (2, 4, 8, 16, 24, 34)
    n_fonts: int = 508
    n_patches: int = 100
    n_glyph_rounds: int = 150
    digits: int = 60_000
    centres: int = 1500
    n_radii: int = 35
    n_pieces: int = 230
    behind_kernel: float = 1.0


QUICK = Settings(
    classes=(16, 32, 64),
    block_classes=(16,),
    blocks=(2, 8, 32),
    sets=("landsat", "pendigits"),
    n_alphas=40,
    glyph_classes=(2, 8, 34),
    n_fonts=100,
    n_patches=30,
    n_glyph_rounds=60,
    digits=5000,
    centres=200,
    n_radii=10,
    n_pieces=25,
    behind_kernel=3.0,
)


@dataclass
class Run:
    """A run of the script: its settings, its page, and the figures for the JSON file."""

    settings: Settings
    report: Report
    figures: dict[str, Any] = field(default_factory=dict)

    def log(self, done: str) -> None:
        """Print a finished step and the seconds of the run."""
        print(f"{done}: {self.report.seconds:.0f} s", flush=True)

    def write(self) -> int:
        """Write the page and the figures, and return the exit code."""
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        self.report.add(f"Peak memory: {memory:.1f} GiB.")
        code = self.report.write()
        checks = dict(self.report.checks)
        figures = {**self.figures, "checks": checks, "seconds": self.report.seconds, "GiB": memory}
        path = self.report.folder / f"{self.report.name}.json"
        path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        return code


# ---- Section 6, the first example: log2(k) shared columns, or k of one class each ----------------


def first_example(run: Run) -> None:
    """Count the columns that each method needs as the number of classes grows."""
    classes = run.settings.classes
    counts: dict[str, list[int | None]] = {"ShareBoost": [], "L1": [], "Frobenius": []}
    for k in classes:
        X, y = code_and_unit(k)
        counts["ShareBoost"].append(columns_of_shareboost(X, y, 2 * round(math.log2(k))))
        counts["L1"].append(columns_of_l1(X, y))
        counts["Frobenius"].append(columns_of_frobenius(X, y))
        run.log(f"first example, {k} classes")
    run.report.add(
        "## Section 6, first example: columns without training error",
        "The rows of a class: its number in binary as -1 and 1, then 2 ln k in a separate column.",
        table(["classes", *map(str, classes)], [[m, *map(str, n)] for m, n in counts.items()]),
    )
    few = zip(counts["ShareBoost"], classes, strict=True)
    run.report.check(
        "first example: ShareBoost needs at most 2 log2 k columns",
        all(n is not None and n <= 2 * math.log2(k) for n, k in few),
    )
    for method in ("L1", "Frobenius"):
        many = zip(counts[method], classes, strict=True)
        run.report.check(
            f"first example: {method} uses k columns or more",
            all(n is not None and n >= k for n, k in many),
        )
    run.figures["first example"] = {"classes": classes, **counts}
    lines = {method: (classes, found) for method, found in counts.items()}
    panels = [Picture("columns without training error", lines, "classes", doubling=True)]
    draw(run.report.picture("sharing", "Columns needed in the first example"), panels)


# ---- Section 6, the second example: one block of columns, or all ---------------------------------


def second_example(run: Run) -> None:
    """Count the columns that each method needs as the number of blocks grows."""
    blocks, found, rows = run.settings.blocks, {}, []
    for k in run.settings.block_classes:
        for in_turn in (True, False):
            name = f"{k} classes, {'in turn' if in_turn else 'at random'}"
            data = [code_blocks(k, n, in_turn) for n in blocks]
            greedy = [columns_of_shareboost(*rows, 4 * round(math.log2(k))) for rows in data]
            norm = [columns_of_mixed_norm(*rows) for rows in data]
            found[name] = {"ShareBoost": greedy, "inf-1 norm": norm}
            run.log(f"second example, {name}")
            run.report.check(
                f"second example, {name}: ShareBoost needs at most 4 log2 k columns",
                all(n is not None and n <= 4 * math.log2(k) for n in greedy),
            )
            if in_turn:
                run.report.check(
                    f"second example, {name}: the inf-1 norm uses the columns of all blocks",
                    all(n == b * round(math.log2(k)) for n, b in zip(norm, blocks, strict=True)),
                )
    for name, counts in found.items():
        rows += [[f"{name}: {method}", *map(str, n)] for method, n in counts.items()]
    run.report.add(
        "## Section 6, second example: columns without training error",
        "Equal blocks of log2 k columns; in half the rows one block is zero: each in turn, or one "
        "drawn at random. The norm spreads over blocks that are zero equally often; with random "
        "blocks and the largest penalty without error, it need not.",
        table(["blocks", *map(str, blocks)], rows),
    )
    run.figures["second example"] = {"blocks": blocks, **found}


# ---- Fig. 3: against the mixed norm on products, and JointBoost on stumps ------------------------


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


def read(name: str) -> Split:
    """Read a set in the split of its source, scaled to [-1, 1] by the training rows."""
    data = load(name)
    X, y, n = np.asarray(data.X, dtype=np.float64), np.asarray(data.y), data.n_train
    scaler = MinMaxScaler((-1, 1)).fit(X[:n])
    return Split(scaler.transform(X[:n]), y[:n], scaler.transform(X[n:]), y[n:])


@dataclass(frozen=True)
class Curve:
    """Test errors in % by the number of features, and the seconds of the whole path."""

    n_features: Sequence[int]
    errors: Sequence[float]
    seconds: float

    def best(self, most: int) -> float:
        """Return the least error with at most `most` features, 100 if there is none."""
        pairs = zip(self.n_features, self.errors, strict=True)
        return min((e for n, e in pairs if n <= most), default=100.0)

    def at(self, n: int) -> float:
        """Return the error with n features, or with the next smaller number."""
        return self.errors[int(np.searchsorted(self.n_features, n, side="right")) - 1]


def shareboost(split: Split, dictionary: Dictionary, n: int, **settings: Any) -> Curve:
    """Return the curve of ShareBoost."""
    start = time.perf_counter()
    model = ShareBoostClassifier(n, dictionary=dictionary, **{**CHOICE, **settings})
    model.fit(split.X, split.y)
    seconds = time.perf_counter() - start
    errors = [error(each, split.X_test, split.y_test) for each in along(model)]
    return Curve(range(1, len(errors) + 1), errors, seconds)


def validated_penalty(split: Split, dictionary: Dictionary, n: int) -> float:
    """Return the weight of the squared norm with the least error on the last fifth of the rows."""
    n_train = len(split.y) * 4 // 5
    train, valid = slice(n_train), slice(n_train, None)
    part = Split(split.X[train], split.y[train], split.X[valid], split.y[valid])
    errors = {alpha: shareboost(part, dictionary, n, alpha=alpha).at(n) for alpha in ALPHAS}
    return min(errors, key=errors.__getitem__)


def mixed_norm(split: Split, dictionary: Dictionary, n: int, n_alphas: int) -> Curve:
    """Return the curve of the inf-1 norm, one point per penalty, until n features are used."""
    model, start = MixedNormClassifier(norm="inf-1", dictionary=dictionary), time.perf_counter()
    path = model.path(split.X, split.y, n_alphas, eps=1e-3, n_features=n)
    seconds = time.perf_counter() - start
    counts = [len(each.support_) for each in path]
    return Curve(counts, [error(each, split.X_test, split.y_test) for each in path], seconds)


def jointboost(split: Split, n: int) -> Curve:
    """Return the curve of JointBoost by the number of distinct stumps."""
    model = JointBoostClassifier(2 * n).fit(split.X, split.y)
    stumps = list(zip(model.features_.tolist(), model.thresholds_.tolist(), strict=True))
    counts = [len(set(stumps[:t])) for t in range(1, len(stumps) + 1)]
    last = int(np.searchsorted(counts, n, side="right"))
    stages = islice(model.staged_predict(split.X_test), last)
    errors = [100 * float(np.mean(labels != split.y_test)) for labels in stages]
    return Curve(counts[:last], errors, model.path_[last - 1].seconds)


SHAREBOOST, MIXED, SHARED_STUMPS, JOINTBOOST = (
    "ShareBoost, products",
    "inf-1 norm, products",
    "ShareBoost, stumps",
    "JointBoost, stumps",
)


def figure3(run: Run) -> None:
    """Compare test errors at equal numbers of features."""
    most, panels = max(N_FEATURES), []
    run.report.add(
        "## Fig. 3: test error in % by the number of features",
        "Features are scaled to [-1, 1]; part 1 of ISOLET is learnt, part 5 predicted. The weight "
        "of ShareBoost's squared norm (Section 3.3) is one of "
        f"{in_line(f'{a:g}' for a in ALPHAS)}: that with the least error of {most} features on "
        "the last fifth of the training rows, fitted on the others; seconds are those of the fit "
        "on all of them. The mixed norm has the least test error of all penalties with at most "
        "this number of features. The features of JointBoost are its distinct stumps.",
    )
    for name in run.settings.sets:
        split = read(name)
        alphas = {
            SHAREBOOST: validated_penalty(split, Products(), most),
            SHARED_STUMPS: validated_penalty(split, Stumps(), most),
        }
        curves = {
            SHAREBOOST: shareboost(split, Products(), most, alpha=alphas[SHAREBOOST]),
            MIXED: mixed_norm(split, Products(), most, run.settings.n_alphas),
            SHARED_STUMPS: shareboost(split, Stumps(), most, alpha=alphas[SHARED_STUMPS]),
            JOINTBOOST: jointboost(split, most),
        }
        run.log(f"figure 3, {name}")
        panels.append(compare(run, name, curves))
        settings = in_line(f"{method} {alpha:g}" for method, alpha in alphas.items())
        run.report.add(f"Weights of the squared norm: {settings}")
    draw(run.report.picture("figure3", "Test error by the number of features"), panels)


def compare(run: Run, name: str, curves: Mapping[str, Curve]) -> Picture:
    """Add the table and the checks of a set, and return its picture."""
    errors = {
        method: [curve.best(n) if method == MIXED else curve.at(n) for n in N_FEATURES]
        for method, curve in curves.items()
    }
    rows = [
        [method, *(f"{e:.2f}" for e in errors[method]), f"{curve.seconds:.1f}"]
        for method, curve in curves.items()
    ]
    header = [name, *(f"{n} features" for n in N_FEATURES), "seconds"]
    run.report.add(table(header, rows))
    for ours, theirs in ((SHAREBOOST, MIXED), (SHARED_STUMPS, JOINTBOOST)):
        for n, left, right in zip(N_FEATURES, errors[ours], errors[theirs], strict=True):
            run.report.check(f"{name}, {n} features: {ours}, below {theirs}", left < right)
    run.figures[f"figure 3, {name}"] = {
        method: {"n": list(c.n_features), "error": list(c.errors), "seconds": c.seconds}
        for method, c in curves.items()
    }
    lines = {method: (curve.n_features, curve.errors) for method, curve in curves.items()}
    return Picture(f"{name}: test error, %", lines, "features")


# ---- Fig. 2: features for a fixed accuracy by number of classes ----------------------------------

ACCURACY = 90.0


def read_glyphs(n_fonts: int, n_patches: int) -> Split:
    """Read the computer fonts of Char74k as responses of templates, in a split by fonts."""
    data = load("char74k/fonts")
    X, y = 1 - np.asarray(data.X, dtype=np.float32) / 255, np.asarray(data.y)
    # Each class has the same fonts in the same order.
    fonts = np.empty(len(y), dtype=np.int64)
    for label in np.unique(y):
        fonts[y == label] = np.arange(np.sum(y == label))
    train, test = fonts % 2 == 0, fonts % 2 == 1
    train &= fonts < 2 * n_fonts
    templates = Templates((28, 28), n_patches, random_state=0).fit(X[train])
    # Computed once: every class of 1-vs-rest selects from the same columns.
    columns = [
        templates.columns(X[rows], np.arange(templates.n_candidates_)) for rows in (train, test)
    ]
    scaler = MinMaxScaler((-1, 1)).fit(columns[0])
    X_train, X_test = (scaler.transform(each) for each in columns)
    return Split(X_train, y[train], X_test, y[test])


def shared_features(split: Split, most: int) -> int | None:
    """Return the least number of features with which ShareBoost reaches the accuracy."""
    model = ShareBoostClassifier(most, **CHOICE).fit(split.X, split.y)
    reached = (
        n
        for n, each in enumerate(along(model), 1)
        if error(each, split.X_test, split.y_test) <= 100 - ACCURACY
    )
    return next(reached, None)


def separate_features(split: Split, most: int) -> int | None:
    """Return the number of distinct features of one-vs-rest ShareBoost that reaches the accuracy.

    All classes have equally many features.
    """
    labels = np.unique(split.y)
    models = [
        ShareBoostClassifier(most, **CHOICE).fit(split.X, split.y == label) for label in labels
    ]
    for n in range(1, most + 1):
        shortened = [model.at(min(n, len(model.path_))) for model in models]
        scores = np.column_stack([m.decision_function(split.X_test) for m in shortened])
        if np.mean(labels[scores.argmax(axis=1)] == split.y_test) >= ACCURACY / 100:
            return len(set().union(*(m.support_.tolist() for m in shortened)))
    return None


def figure2(run: Run) -> None:
    """Count the features for a fixed accuracy, shared and per class."""
    glyphs, classes = (
        read_glyphs(run.settings.n_fonts, run.settings.n_patches),
        run.settings.glyph_classes,
    )
    order = np.random.default_rng(0).permutation(np.unique(glyphs.y))
    counts: dict[str, list[int | None]] = {"ShareBoost": [], "1-vs-rest": []}
    for k in classes:
        split = of_classes(glyphs, order[:k])
        counts["ShareBoost"].append(shared_features(split, run.settings.n_glyph_rounds))
        counts["1-vs-rest"].append(separate_features(split, run.settings.n_glyph_rounds))
        run.log(f"figure 2, {k} classes")
    run.report.add(
        f"## Fig. 2: features for a test accuracy of {ACCURACY:.0f} %",
        f"Computer fonts of Char74k, {run.settings.n_fonts} for training and 508 others for "
        f"testing, with {glyphs.X.shape[1]:,} templates; classes are added in a random order.",
        table(["classes", *map(str, classes)], [[m, *map(str, n)] for m, n in counts.items()]),
    )
    growth = {m: n[-1] / n[0] if n[-1] and n[0] else math.inf for m, n in counts.items()}
    run.report.add(
        f"From {classes[0]} to {classes[-1]} classes: "
        + in_line(f"{m} {g:.1f} times" for m, g in growth.items())
    )
    run.report.check(
        "figure 2: shared features grow slower",
        growth["ShareBoost"] < growth["1-vs-rest"],
    )
    run.figures["figure 2"] = {"classes": classes, "accuracy": ACCURACY, **counts}
    lines = {method: (classes, found) for method, found in counts.items()}
    panels = [Picture(f"features for {ACCURACY:.0f} % accuracy", lines, "classes")]
    draw(run.report.picture("figure2", "Features needed by the number of classes"), panels)


def of_classes(split: Split, labels: Array) -> Split:
    """Return the rows of some classes."""
    ours, theirs = np.isin(split.y, labels), np.isin(split.y_test, labels)
    return Split(split.X[ours], split.y[ours], split.X_test[theirs], split.y_test[theirs])


# ---- Fig. 7: pieces against the Gaussian kernel --------------------------------------------------

N_COMPONENTS = 20
# Of the kernel: chosen by cross-validation on the training rows.
SVM_COST, SVM_GAMMA = 10.0, 0.03
# Each piece has 21 weights per class: without a penalty ten pieces overfit a few thousand rows.
PIECES_ALPHA = 1e-3


def read_digits(n_rows: int) -> Split:
    """Read MNIST as 20 principal components, with the first rows for training."""
    data = load("mnist")
    X, y = np.asarray(data.X, dtype=np.float32) / 255, np.asarray(data.y)
    components = PCA(N_COMPONENTS, random_state=0).fit(X[:n_rows])
    rows = components.transform(X).astype(np.float32)
    n = data.n_train
    return Split(rows[:n_rows], y[:n_rows], rows[n:], y[n:])


def figure7(run: Run) -> None:
    """Compare piecewise linear predictors of few pieces with the Gaussian kernel."""
    settings, split = run.settings, read_digits(run.settings.digits)
    start = time.perf_counter()
    kernel = SVC(C=SVM_COST, gamma=SVM_GAMMA).fit(split.X, split.y)
    kernel_error, seconds = error(kernel, split.X_test, split.y_test), time.perf_counter() - start
    run.log("figure 7, the kernel")
    pieces = Pieces(settings.centres, settings.n_radii, random_state=0)
    curve = shareboost(split, pieces, settings.n_pieces, alpha=PIECES_ALPHA)
    shown = [n for n in (1, 2, 5, 10, 20, 50, 100, 150, 230) if n < settings.n_pieces]
    rows = [[f"ShareBoost, {n} pieces", f"{curve.at(n):.2f}"] for n in [*shown, settings.n_pieces]]
    rows.append([f"SVM, {kernel.n_support_.sum():,} support vectors", f"{kernel_error:.2f}"])
    run.report.add(
        "## Fig. 7: test error in % on MNIST with 20 principal components",
        f"{settings.digits:,} training rows; {settings.centres} centres with {settings.n_radii} "
        "radii each. "
        f"ShareBoost took {curve.seconds:.0f} s, the SVM {seconds:.0f} s.",
        table(["", "test error"], rows),
    )
    least = min(curve.errors)
    run.report.check(
        f"figure 7: {settings.n_pieces} pieces within {settings.behind_kernel:g} % of the kernel",
        least <= kernel_error + settings.behind_kernel,
    )
    run.report.check(
        "figure 7: fewer pieces than a twentieth of the support vectors",
        settings.n_pieces < kernel.n_support_.sum() / 20,
    )
    run.figures["figure 7"] = {
        "ShareBoost": list(curve.errors),
        "seconds": curve.seconds,
        "SVM": kernel_error,
        "SVM seconds": seconds,
        "support vectors": int(kernel.n_support_.sum()),
    }
    whole = (curve.n_features[0], curve.n_features[-1])
    lines = {"ShareBoost": (curve.n_features, curve.errors), "SVM": (whole, [kernel_error] * 2)}
    panels = [Picture("test error, %", lines, "pieces")]
    draw(run.report.picture("figure7", "Test error by the number of pieces"), panels)


# ---- the pictures --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Picture:
    """Lines over numbers of features or classes.

    Parameters
    ----------
    title : str
    lines : mapping of method to (numbers, values)
        Values that are None are skipped.
    of : str
        The label of the horizontal axis.
    doubling : bool
        Whether both axes are logarithmic, by powers of 2.
    """

    title: str
    lines: Mapping[str, tuple[Sequence[int], Sequence[float | None]]]
    of: str
    doubling: bool = False


def draw(path: Path, panels: Sequence[Picture]) -> None:
    """Draw panels side by side."""
    with rc_context(STYLE):
        figure = Figure(figsize=(4.6 * len(panels), 3.0), layout=LAYOUT)
        for ax, panel in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            draw_panel(ax, panel)
        figure.savefig(path, dpi=150)


def draw_panel(ax: Axes, panel: Picture) -> None:
    """Draw the lines of a panel, with their names at the ends."""
    ends: dict[str, tuple[float, float]] = {}
    for colour, (name, (numbers, values)) in zip(COLOURS, panel.lines.items(), strict=False):
        points = [(n, v) for n, v in zip(numbers, values, strict=True) if v is not None]
        ax.plot(*zip(*points, strict=True), color=colour, lw=1.5)
        ends[name] = points[-1]
    ax.set(title=panel.title, xlabel=panel.of)
    if panel.doubling:
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=2)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            axis.set_minor_locator(NullLocator())
    else:
        ax.set_ylim(0, None)
    # Spread the labels in display coordinates.
    to_display = ax.transData.transform
    heights = [to_display(end)[1] for end in ends.values()]
    positions = spread(heights, 12 * ax.figure.dpi / 72)
    right = max(to_display(end)[0] for end in ends.values())
    for colour, name, position in zip(COLOURS, ends, positions, strict=False):
        x, y = ax.transAxes.inverted().transform((right, position))
        ax.annotate(
            name, (x, y), (5, 0), "axes fraction", "offset points", va="center", color=colour,
            annotation_clip=False,
        )  # fmt: skip


# ---- command line --------------------------------------------------------------------------------

PARTS: Mapping[str, Callable[[Run], None]] = {
    "first": first_example,
    "second": second_example,
    "figure2": figure2,
    "figure3": figure3,
    "figure7": figure7,
}


def main() -> int:
    """Run the given parts, and return the exit code: 1 if a check failed."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="small settings")
    options = parser.parse_args()
    parts = chosen(parser, options.parts, PARTS)
    title = "Shalev-Shwartz, Wexler and Shashua (2011): sharing features"
    folder = folder_of(parser, options, is_whole=not (options.quick or options.parts))
    report = Report("shareboost2011", title, folder)
    run = Run(QUICK if options.quick else Settings(), report)
    for name in parts:
        PARTS[name](run)
    return run.write()


if __name__ == "__main__":
    sys.exit(main())

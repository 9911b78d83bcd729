"""ShareBoost on MNIST with templates.

Shalev-Shwartz, Wexler and Shashua (2011), Section 7.4: Table 1, Fig. 4, 5 (a) and 6. The page also
shows other settings, evaluated on 10,000 held-out training images.

    python papers/shareboost_mnist.py              # 60,000 images, and other settings
    python papers/shareboost_mnist.py --expanded   # 360,000: five deformed copies of each
    python papers/shareboost_mnist.py --quick      # small settings, into a temporary folder
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from kesler import ShareBoostClassifier
from kesler.datasets import deform, load
from kesler.dictionaries import Templates
from kesler.plots import MistakenImagesDisplay, TemplatesDisplay
from report import LAYOUT, STYLE, Report, table
from script_arguments import folder_of, script_parser

Array = npt.NDArray[Any]

SHAPE = (28, 28)
SHOWN = (10, 25, 50, 75, 100, 150, 200, 266, 305)
PUBLISHED = {False: {266: 0.71}, True: {305: 0.47}}
PENALTY: Mapping[str, Any] = {"penalty": "frobenius", "alpha": 5e-5}
MOST_MINUTES, MOST_GIB = 90, 16


@dataclass(frozen=True)
class Settings:
    """The sizes of the experiments.

    Parameters
    ----------
    n_images : int
        The number of training images.
    n_patches : tuple of int
        The patches of each size, without and with deformed copies: a quarter with them, since the
        trials below found no gain in more, and the time grows with both.
    n_rounds : tuple of int
        The number of features, without and with deformed copies.
    n_copies : int
        The number of deformed copies of each image.
    n_tried, n_tried_patches, n_tried_rounds : int
        The numbers of images, patches and features in the trials of other settings.
    n_aside : int
        The number of held-out training images for these trials.
    """

    n_images: int = 60_000
    n_patches: tuple[int, int] = (500, 125)
    n_rounds: tuple[int, int] = (266, 305)
    n_copies: int = 5
    n_tried: int = 20_000
    n_tried_patches: int = 100
    n_tried_rounds: int = 75
    n_aside: int = 10_000


QUICK = Settings(
    n_images=4000,
    n_patches=(40, 40),
    n_rounds=(75, 75),
    n_copies=1,
    n_tried=2000,
    n_tried_patches=20,
    n_tried_rounds=25,
    n_aside=2000,
)


@dataclass
class Run:
    """A run of the script: settings, digits, the page, and the figures for the JSON file."""

    settings: Settings
    report: Report
    digits: Digits
    figures: dict[str, Any] = field(default_factory=dict)

    def write(self) -> int:
        """Write the page and the figures, and return the exit code."""
        code = self.report.write()
        path = self.report.folder / f"{self.report.name}.json"
        figures = {**self.figures, "checks": dict(self.report.checks)}
        path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        return code


# ---- the digits ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Digits:
    """MNIST with grey values in [0, 1], one image per row."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array

    @classmethod
    def read(cls, n_images: int) -> Digits:
        """Read the first training images, and all test images."""
        data = load("mnist")
        X, n_train = data.X, data.n_train
        train = slice(0, min(n_images, n_train))
        return cls(_grey(X[train]), data.y[train], _grey(X[n_train:]), data.y[n_train:])

    def expanded(self, n_copies: int) -> Digits:
        """Return the digits with deformed copies of the training images added."""
        n = len(self.X)
        X = np.empty(((1 + n_copies) * n, self.X.shape[1]), np.float32)
        X[:n] = self.X
        for copy in range(1, n_copies + 1):
            X[copy * n : (copy + 1) * n] = deform(self.X, SHAPE, random_state=copy)
        return Digits(X, np.tile(self.y, 1 + n_copies), self.X_test, self.y_test)


def _grey(X: Any) -> Array:
    return np.asarray(X, np.float32) / np.float32(255)


def errors_along(model: Any, X: Array, y: Array) -> Array:
    """Return the error in % after each round."""
    columns = model.dictionary_.columns(X, model.support_)
    errors = []
    for n in range(1, len(model.path_) + 1):
        short = model.at(n)
        scores = columns[:, :n] @ short.coef_.T + short.intercept_
        errors.append(100 * float((model.classes_[scores.argmax(axis=1)] != y).mean()))
    return np.array(errors)


def memory() -> float:
    """Return the peak memory so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


# ---- Table 1 and Fig. 4, 5, 6 --------------------------------------------------------------------


def templates(run: Run, *, expanded: bool) -> None:
    """Learn the digits from templates, and add the results to the page."""
    digits = run.digits.expanded(run.settings.n_copies) if expanded else run.digits
    n_rounds, n_patches = run.settings.n_rounds[expanded], run.settings.n_patches[expanded]
    store = "uint8" if expanded else "float32"
    dictionary = Templates(SHAPE, n_patches, store=store, random_state=0)
    start = time.perf_counter()
    model = ShareBoostClassifier(n_rounds, dictionary=dictionary, **PENALTY)
    model.fit(digits.X, digits.y)
    minutes, gib = (time.perf_counter() - start) / 60, memory()
    errors = errors_along(model, digits.X_test, digits.y_test)
    run.report.add(
        f"{len(digits.X):,} training images, {len(digits.X_test):,} test images, "
        f"{model.dictionary_.n_candidates_:,} templates. The fit took {minutes:.0f} minutes; peak "
        f"memory was {gib:.1f} GiB.",
        summary(model, errors, PUBLISHED[expanded]),
    )
    run.figures |= {
        "test error in %": errors.tolist(),
        "training loss": [each.loss for each in model.path_],
        "minutes": minutes,
        "GiB": gib,
    }
    pictures(run.report, model, errors, digits)
    checks(run.report, errors, minutes, gib, expanded=expanded)


def summary(model: Any, errors: Array, published: Mapping[int, float]) -> str:
    """Return the table of errors by the number of features."""
    header = (
        "features", "test error in %", "published", "training loss", "multiply-accumulates",
        "minutes",
    )  # fmt: skip
    lines = []
    for n in SHOWN:
        if n > len(errors):
            break
        each = model.path_[n - 1]
        theirs = f"{published[n]:.2f}" if n in published else ""
        cost = f"{model.at(n).cost_:,}"
        spent = f"{each.seconds / 60:.1f}"
        lines.append((str(n), f"{errors[n - 1]:.2f}", theirs, f"{each.loss:.4f}", cost, spent))
    return table(header, lines)


def checks(report: Report, errors: Array, minutes: float, gib: float, *, expanded: bool) -> None:
    """Add the checks."""
    claims = {305: 0.60} if expanded else {75: 1.0, 266: 0.75}
    for n, most in claims.items():
        if n <= len(errors):
            error = errors[n - 1]
            report.check(f"{n} features: {error:.2f} % is at most {most:.2f} %", error <= most)
    report.check(f"at most {MOST_GIB} GiB of memory", gib <= MOST_GIB)
    if not expanded:
        report.check(f"the fit takes at most {MOST_MINUTES} minutes", minutes <= MOST_MINUTES)


def pictures(report: Report, model: Any, errors: Array, digits: Digits) -> None:
    """Draw the curve, the first templates and the mistakes."""
    path = report.picture("convergence", "Test error by number of features (Fig. 4)")
    draw_errors(path, errors)
    for suffix, caption, display in (
        ("templates", "The first selected templates (Fig. 5a)", show_templates(model)),
        ("mistakes", "Mistakes: digit and prediction (Fig. 6)", show_mistakes(model, digits)),
    ):
        display.figure_.savefig(report.picture(suffix, caption), dpi=150)


def draw_errors(path: Path, errors: Array) -> None:
    """Draw the error by the number of features, on a logarithmic scale."""
    with rc_context(STYLE):
        figure = Figure(figsize=(6, 3.4), layout=LAYOUT)
        ax = figure.subplots()
        ax.plot(np.arange(1, len(errors) + 1), errors, color="#0072B2", lw=1.5)
        ax.set_yscale("log")
        ax.set(xlim=(0, len(errors)), xlabel="features", title="test error in %")
        ax.set_yticks([tick for tick in (0.5, 1, 2, 5, 10, 20, 50) if tick >= errors.min() / 1.5])
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.minorticks_off()
        end = (len(errors), errors[-1])
        ax.annotate(f"{errors[-1]:.2f} %", end, (5, 0), textcoords="offset points", va="center")
        figure.savefig(path, dpi=150)


def show_templates(model: Any) -> TemplatesDisplay:
    """Draw the first thirty templates."""
    return TemplatesDisplay.from_estimator(model, figure=Figure((8.5, 6.2), layout="constrained"))


def show_mistakes(model: Any, digits: Digits) -> MistakenImagesDisplay:
    """Draw the test images that the whole model misclassifies."""
    figure = Figure((8.5, 9.0), layout="constrained")
    return MistakenImagesDisplay.from_estimator(
        model, digits.X_test, digits.y_test, SHAPE, most=80, figure=figure
    )


# ---- other settings ------------------------------------------------------------------------------

# One change at a time to the defaults of Templates, ShareBoostClassifier and PENALTY.
TRIED: Mapping[str, Mapping[str, Any]] = {
    "as above": {},
    "other patches": {"random_state": 1},
    "patches of 5x5 only, twice as many": {"patch_sizes": (5,), "n_patches": 2},
    "patches of 7x7 only, twice as many": {"patch_sizes": (7,), "n_patches": 2},
    "patches of 7x7 and 9x9": {"patch_sizes": (7, 9)},
    "masks half as wide": {"mask_width": 0.115},
    "masks 1.5 times as wide": {"mask_width": 0.345},
    "masks on a grid of 3x3": {"n_masks": 3},
    "masks on a grid of 6x6": {"n_masks": 6},
    "responses not divided by contrast": {"fading": None},
    "a third of the fading": {"fading": 0.05},
    "three times the fading": {"fading": 0.45},
    "three times as many patches": {"n_patches": 3},
    "unscaled gradients": {"scale": None},
    "no margin in the loss": {"loss": "softmax"},
    "almost no penalty": {"alpha": 1e-7},
    "a stronger penalty": {"alpha": 1e-3},
}
OF_TEMPLATES = tuple(Templates().get_params())


def trials(run: Run) -> None:
    """Evaluate other settings on fewer images, with held-out training images."""
    settings, digits = run.settings, run.digits
    train, valid = slice(0, settings.n_tried), slice(-settings.n_aside, None)
    at = [n for n in (25, 50, 75) if n <= settings.n_tried_rounds]
    lines = []
    for name, changes in TRIED.items():
        model = tried(settings, changes).fit(digits.X[train], digits.y[train])
        errors = errors_along(model, digits.X[valid], digits.y[valid])
        lines.append((name, *(f"{errors[n - 1]:.2f}" for n in at)))
        print(*lines[-1], f"{run.report.seconds:.0f} s", flush=True)
    run.figures["tried"] = {name: list(map(float, errors)) for name, *errors in lines}
    deviation = 100 * np.sqrt(0.015 * 0.985 / settings.n_aside)
    run.report.add(
        "## Other settings",
        f"{settings.n_tried:,} training images, {settings.n_tried_patches} patches of each size, "
        f"one change at a time; error in % on {settings.n_aside:,} held-out training images. The "
        f"standard deviation of an error of 1.5 % is {deviation:.2f} %.",
        table(["change", *(f"{n} features" for n in at)], lines),
    )


def tried(settings: Settings, changes: Mapping[str, Any]) -> ShareBoostClassifier:
    """Return a classifier with some settings changed; n_patches is a factor."""
    n_patches = settings.n_tried_patches * changes.get("n_patches", 1)
    of_templates = {name: changes[name] for name in changes if name in OF_TEMPLATES}
    others = {name: changes[name] for name in changes if name not in OF_TEMPLATES}
    chosen = {"random_state": 0, **of_templates, "n_patches": n_patches}
    return ShareBoostClassifier(
        settings.n_tried_rounds, dictionary=Templates(SHAPE, **chosen), **{**PENALTY, **others}
    )


# ---- command line --------------------------------------------------------------------------------


def main() -> int:
    """Run the experiment, and return the exit code: 1 if a check failed."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("--quick", action="store_true", help="small settings")
    parser.add_argument("--expanded", action="store_true", help="with deformed copies")
    options = parser.parse_args()
    settings = QUICK if options.quick else Settings()
    folder = folder_of(parser, options, is_whole=not options.quick)
    name = "shareboost_mnist" + options.expanded * "-expanded"
    title = "Shalev-Shwartz, Wexler and Shashua (2011): MNIST by templates"
    title += options.expanded * ", with deformed copies"
    run = Run(settings, Report(name, title, folder), Digits.read(settings.n_images))
    templates(run, expanded=options.expanded)
    if not options.expanded:
        trials(run)
    return run.write()


if __name__ == "__main__":
    sys.exit(main())

"""Time of the path of a mixed norm to 50 features, compared with lightning.

    python benchmarks/mixed_norm.py [--sets landsat pendigits mnist r8] [--repeats 3] [--limit 600]

The sets are those of `shareboost.py`: products of pairs of features, pixels, terms. Both solve the
same problem: softmax without a margin and without intercepts, with the 2-1 norm, for alphas that
decrease from the one that selects no feature to one that selects 50, with warm starts. Kesler stops
at a duality gap of 1e-3. Lightning (package sklearn-contrib-lightning, CDClassifier with
penalty="l1/l2": block coordinate descent) stops by its own rule, with the largest tol of a list at
which each of its objectives is within 2e-3 of our dual objective, or with the smallest tol if there
is none. Times are seconds of processor time with one thread, the median of the repeats; lightning's
first run is that of the search for its tol. A run of lightning of more than a minute is not
repeated, and stops after the limit. The script writes benchmarks/results/mixed_norm.md, and exits
with 1 if Kesler is slower, or if the objectives differ.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from lightning.classification import CDClassifier
from scipy import sparse

from kesler import MixedNormClassifier
from shareboost import PROBLEMS, log_loss

from script_arguments import script_parser  # isort: skip
from report import Report, table  # isort: skip

N_FEATURES, STEPS, EPS, GAP = 50, 40, 3e-4, 1e-3
TOLERANCES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3)
LONG = 60.0
"""A run of lightning that takes more seconds is not repeated."""

Floats = npt.NDArray[np.float64]


@dataclass
class Race:
    """The results on a set."""

    name: str
    shape: tuple[int, int, int]
    n_alphas: int
    n_done: int
    n_features: int
    tol: float
    ours: list[float]
    theirs: list[float]
    our_gap: float
    their_gap: float

    @property
    def is_done(self) -> bool:
        """Whether lightning finished the path."""
        return self.n_done == self.n_alphas

    @property
    def ratio(self) -> float:
        """The time of lightning over ours; a lower bound if lightning did not finish."""
        return median(self.theirs) / median(self.ours)


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time and the result of a run."""
    start = time.process_time()
    found = run()
    return time.process_time() - start, found


def ours() -> MixedNormClassifier:
    """Return our estimator."""
    return MixedNormClassifier(norm="2-1", loss="softmax", fit_intercept=False, tol=GAP)


def theirs(
    X: Any, y: npt.NDArray[np.int64], alphas: list[float], tol: float, limit: float
) -> list[Floats]:
    """Return lightning's weights along the path, as far as it gets within the limit."""
    model = CDClassifier(
        loss="log", penalty="l1/l2", multiclass=True, C=1 / len(y), tol=tol, max_iter=1000,
        warm_start=True, random_state=0,
    )  # fmt: skip
    found, start = [], time.process_time()
    for alpha in alphas:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.set_params(alpha=alpha).fit(X, y)
        found.append(model.coef_.copy())
        if time.process_time() - start > limit:
            break
    return found


def whole(model: MixedNormClassifier) -> Floats:
    """Return the weights of all features, selected or not."""
    coef = np.zeros((len(model.classes_), model.n_features_in_))
    coef[:, model.support_] = model.coef_
    return coef


def objective(X: Any, y: npt.NDArray[np.int64], coef: Floats, alpha: float) -> float:
    """Return the mean loss plus the norm."""
    return log_loss(X, y, coef.T, 0.0) + alpha * float(np.linalg.norm(coef, axis=0).sum())


def race(name: str, repeats: int, limit: float) -> Race:
    """Find the tolerance that lightning needs, and run both in turn."""
    X, y = PROBLEMS[name]()
    their_X = sparse.csc_matrix(X) if sparse.issparse(X) else X
    first = ours().path(X, y, STEPS, eps=EPS, n_features=N_FEATURES)[1:]
    alphas, duals = [each.alpha for each in first], [each.dual_objective_ for each in first]

    def worst(coefs: list[Floats]) -> float:
        pairs = zip(coefs, alphas, strict=False)
        values = [objective(X, y, coef, alpha) for coef, alpha in pairs]
        return max((value - dual) / value for value, dual in zip(values, duals, strict=False))

    for tol in TOLERANCES:
        seconds, weights = timed(lambda tol=tol: theirs(their_X, y, alphas, tol, limit))
        if worst(weights) <= 2 * GAP or len(weights) < len(alphas):
            break
    gaps = worst([whole(each) for each in first]), worst(weights)
    shape = (*X.shape, int(y.max()) + 1)
    n_features = len(first[-1].support_)
    found = Race(name, shape, len(alphas), len(weights), n_features, tol, [], [seconds], *gaps)
    for again in range(repeats):
        found.ours.append(timed(lambda: ours().path(X, y, alphas))[0])
        if again and seconds < LONG:
            found.theirs.append(timed(lambda: theirs(their_X, y, alphas, tol, limit))[0])
    return found


def cells(each: Race) -> list[str]:
    """Return a row of the table."""
    shape, over = " x ".join(f"{n:,}" for n in each.shape), "" if each.is_done else "over "
    path = [f"{each.n_done} of {each.n_alphas}", str(each.n_features), f"{each.tol:g}"]
    times = [f"{median(each.ours):.2f}", f"{over}{median(each.theirs):.2f}"]
    gaps = [f"{gap:.1e}" for gap in (each.our_gap, each.their_gap)]
    return [each.name, shape, *path, *times, f"{over}{each.ratio:.1f}", *gaps]


def main() -> int:
    """Run the races and write the page."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("--sets", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600.0)
    arguments = parser.parse_args()
    title, races = "The path of a mixed norm compared with lightning", []
    page = Report("mixed_norm", title, arguments.results)
    for name in arguments.sets:
        races.append(race(name, arguments.repeats, arguments.limit))
        print(cells(races[-1]), flush=True)
    page.add(__doc__.split("\n\n", 2)[2].strip())
    page.add(f"sklearn-contrib-lightning {version('sklearn-contrib-lightning')}.")
    header = ["set", "rows, columns, classes", "alphas done", "features", "its tol", "ours, s",
              "lightning, s", "its time over ours", "our gap", "its gap"]  # fmt: skip
    page.add("## To 50 features", table(header, [cells(each) for each in races]))
    for each in races:
        page.check(f"{each.name}: faster than lightning", each.ratio > 1)
        if each.is_done:
            page.check(f"{each.name}: objectives agree", each.their_gap <= 2 * GAP)
    return page.write()


if __name__ == "__main__":
    sys.exit(main())

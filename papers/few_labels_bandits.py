"""Learning from whether the shown class is right, compared with Vowpal Wabbit, and its bounds.

Four real sets of different kinds are compared with the contextual bandits of Vowpal Wabbit, the
alternatives to the default are compared on twelve sets, and the synthetic sets of Kakade,
Shalev-Shwartz and Tewari (2008) show how the error falls with the rows.

    python papers/few_labels_bandits.py        # all, into papers/results/few_labels_bandits.md
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler import BanditClassifier, OnlineClassifier, mistake_bound, progressive_validate
from kesler.exploration import InverseGap, Uniform
from kesler.hypotheses import PerClass
from kesler.preconditioners import AdaGrad, SecondOrder
from kesler.preprocessing import Bins, Concatenated, Counts, RandomFourier, ZScores
from kesler.updates import SOBA, LeastSquares, OneVsRestHinge, SoftmaxGradient
from report import Report, table
from script_arguments import script_parser

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from peer import is_installed, prepared, write
from sets import SETS, Stream

Array = npt.NDArray[Any]

COMPARED = {
    "letter": "images",
    "pendigits": "measurements",
    "20newsgroups": "long texts",
    "banking77": "short texts",
}
"""The sets of the comparison, which were named before any of them was run."""

OTHERS_DENSE = ("landsat", "shuttle", "segment", "optdigits")
OTHERS_TEXT = ("r8", "webkb", "trec", "ag_news")
N_ROWS = 10_000
SEEDS = range(3)

EXPLORING = (
    "--epsilon 0.05",
    "--epsilon 0.02",
    "--bag 5",
    "--cover 5",
    "--squarecb --cb_explore_adf",
    "--first 2000",
)
RATES = ("", "-l 2", "-l 0.1")
COSTS = ("", "--loss0 -1 --loss1 0")
BITS = 22


# ---- the real sets ------------------------------------------------------------------------------


@cache
def stream(name: str) -> Stream:
    """Return the first rows of a set, in its order, those of texts as counts of their words."""
    found = next(each for each in SETS if each.name == name).stream()
    return found.in_numbers().head(N_ROWS)


def error_of(name: str, **arguments: Any) -> float:
    """Return the share of wrong shown classes in %, the mean over seeds."""
    data = stream(name)
    errors = []
    for seed in SEEDS:
        model = BanditClassifier(classes=range(data.n_classes), seed=seed, **arguments)
        errors.append(progressive_validate(model, data.X, data.y).error)
    return 100 * float(np.mean(errors))


def peers(name: str) -> dict[str, float]:
    """Return the error of each setting of Vowpal Wabbit in %."""
    from vowpalwabbit import Workspace

    data, found = stream(name), {}
    with tempfile.TemporaryDirectory() as folder:
        rows, shown = Path(folder) / "rows.vw", Path(folder) / "shown"
        write(rows, prepared(data.X), data.y)
        for parts in product(EXPLORING, RATES, COSTS):
            setting = " ".join(filter(None, parts))
            asked = f"--cbify {data.n_classes} -b {BITS} -d {rows} -p {shown} --quiet {setting}"
            Workspace(asked).finish()
            classes = np.loadtxt(shown, usecols=0).astype(np.int64) - 1
            found[setting] = 100 * float((classes != data.y).mean())
    return found


def full_error(name: str) -> float:
    """Return the error of the default learner that is told the right class, in %."""
    data = stream(name)
    return 100 * progressive_validate(OnlineClassifier(), data.X, data.y).error


def compare(report: Report) -> None:
    """Compare the default with Vowpal Wabbit."""
    lines, better = [], []
    for name, kind in COMPARED.items():
        found, own = peers(name), error_of(name)
        plain = {s: e for s, e in found.items() if s in EXPLORING}
        best, best_plain = min(found, key=found.__getitem__), min(plain.values())
        if own <= found[best]:
            better.append(name)
        data = stream(name)
        figures = [full_error(name), own, error_of(name, update="banditron")]
        shown = [f"{each:.1f}" for each in (*figures, best_plain, found[best])]
        counts = f"{len(data.y):,}", str(data.n_classes)
        lines.append([f"{name} ({kind})", *counts, *shown, f"`{best}`"])
    header = ["", "rows", "classes", "right class told", "ours", "Banditron"]
    report.add(
        "## Four sets",
        "Wrong shown classes in %. Ours and Banditron: `BanditClassifier` with nothing chosen and "
        f'with update="banditron", the mean of {len(SEEDS)} seeds. Vowpal Wabbit (`--cbify`): '
        f"the best of {len(EXPLORING)} explorations with its default rate and costs, and the best "
        f"of {len(EXPLORING) * len(RATES) * len(COSTS)} settings, which add rates and costs of -1 "
        "and 0. Right class told: the default `OnlineClassifier`, which sees each target and does "
        "not count first rows. All know the number of classes; rows are those of "
        f"`benchmarks/sets.py` in their order, the first {N_ROWS:,}. The four sets were named "
        "before the first run; the default was then chosen among the alternatives below, on these "
        "and eight other sets. Vowpal Wabbit has linear functions of the measurements.",
        table([*header, "Vowpal Wabbit", "tuned", "its setting"], lines),
    )
    report.check(
        f"the default makes at most the mistakes of the best of all settings of Vowpal Wabbit on "
        f"three of four sets: {len(better)} of {len(COMPARED)}",
        len(better) >= 3,
    )


# ---- alternatives -------------------------------------------------------------------------------

EXPANDED: dict[str, Any] = {
    "hypotheses": [PerClass()],
    "intercept": 1.0,
    "preprocessing": Concatenated((ZScores(), Bins(), RandomFourier())),
    "preconditioner": AdaGrad(length_free=True),
}
EXPLORATIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "greedy": {"exploration": "greedy"},
    "inverse gaps, 3": {"exploration": InverseGap(3)},
    "inverse gaps, 10": {"exploration": InverseGap(10)},
    "inverse gaps, 100": {"exploration": InverseGap(100)},
    "uniform, 0.05": {"exploration": 0.05},
    "uniform, t^(-1/3)": {"exploration": Uniform(1.0, 1 / 3)},
    "uniform, 0.05, weighted": {"exploration": 0.05, "weighted": True},
    "inverse gaps, 3, weighted": {"exploration": InverseGap(3), "weighted": True},
    "banditron": {"update": "banditron"},
    "soba, diagonal": {"update": SOBA(diagonal=True)},
}
ON_DENSE: dict[str, dict[str, Any]] = {
    "ridge regression": {
        "hypotheses": [PerClass()],
        "intercept": 1.0,
        "preprocessing": RandomFourier(seed=1),
        "update": LeastSquares(),
        "preconditioner": SecondOrder(ridge=25.0),
    },
    "hinge, one-vs-rest": {**EXPANDED, "update": OneVsRestHinge()},
    "softmax": {**EXPANDED, "update": SoftmaxGradient(1.5, invariant=True)},
    "softmax, uniform 0.05": {
        **EXPANDED,
        "update": SoftmaxGradient(1.5, invariant=True),
        "exploration": 0.05,
    },
}
ON_TEXT: dict[str, dict[str, Any]] = {
    "without shared hypotheses": {"hypotheses": [PerClass()]},
    "without information": {"preprocessing": Counts()},
    "PA-I": {"update": "pa1", "preprocessing": Counts(), "hypotheses": "multi"},
}


def study(report: Report, title: str, names: list[str], own: dict[str, dict[str, Any]]) -> None:
    """Add the table of alternatives on some sets."""
    lines = []
    for label, arguments in (EXPLORATIONS | own).items():
        errors = [error_of(name, **arguments) for name in names]
        mean = float(np.exp(np.mean(np.log(errors))))
        lines.append([label, *(f"{each:.1f}" for each in errors), f"{mean:.1f}"])
    report.add(f"## {title}", table(["", *names, "geometric mean"], lines))


# ---- the synthetic sets -------------------------------------------------------------------------

K, N_WORDS, N_KEYWORDS = 9, 400, 120
N_SYNTHETIC = 100_000
GAMMAS = {"SynSep": 0.014, "SynNonSep": 0.006}


@dataclass(frozen=True)
class Synthetic:
    """Documents of the source: the keywords of a topic, five of them left out, and 20 others.

    Parameters
    ----------
    noise : the share of labels that are drawn anew.
    """

    noise: float

    def rows(self, n: int, seed: int = 5) -> tuple[sparse.csr_array, Array]:
        """Return n documents as rows of length 1, and their topics."""
        rng = np.random.default_rng(seed)
        keywords = [rng.permutation(N_KEYWORDS)[: rng.integers(20, 41)] for _ in range(K)]
        y = rng.integers(0, K, n)
        lists = list(self._documents(rng, keywords, y))
        indptr = np.cumsum([0, *map(len, lists)])
        values = np.concatenate([np.full(len(each), len(each) ** -0.5) for each in lists])
        X = sparse.csr_array((values, np.concatenate(lists), indptr), shape=(n, N_WORDS))
        is_noise = rng.random(n) < self.noise
        return X, np.where(is_noise, rng.integers(0, K, n), y)

    @staticmethod
    def _documents(rng: np.random.Generator, keywords: list[Array], y: Array) -> Iterator[Array]:
        for topic in y:
            kept = rng.permutation(keywords[topic])[5:]
            others = rng.choice(np.arange(N_KEYWORDS, N_WORDS), 20, replace=False)
            yield np.sort(np.concatenate([kept, others]))


def synthetic(report: Report) -> None:
    """Show how the error falls with the rows on the sets of the source."""
    for name, noise in {"SynSep": 0.0, "SynNonSep": 0.05}.items():
        X, y = Synthetic(noise).rows(N_SYNTHETIC)
        gamma = GAMMAS[name]
        methods = {
            "Perceptron, told the right class": OnlineClassifier("multi", update="perceptron"),
            "Banditron": BanditClassifier(range(K), "banditron", gamma),
            "SOBA, diagonal": BanditClassifier(range(K), SOBA(diagonal=True), gamma),
            "ours, default": BanditClassifier(range(K)),
        }
        marks = [100, 1_000, 10_000, N_SYNTHETIC]
        lines, errors = [], {}
        for label, method in methods.items():
            curve = progressive_validate(method, X, y).curve
            errors[label] = np.array([curve[n - 1] / n for n in marks])
            slope = np.log10(errors[label][-1] / errors[label][-3]) / 2
            shown = [f"{100 * each:.2f}" for each in errors[label]]
            lines.append([label, *shown, f"{slope:.2f}"])
        header = ["", *(f"{n:,}" for n in marks), "slope"]
        report.add(
            f"## {name}",
            f"Wrong shown classes in % after so many rows; slope: of the logarithm of the error "
            f"over that of the rows, from {marks[-3]:,} rows on. gamma = {gamma:g}; "
            f"{noise:.0%} of the labels are random.",
            table(header, lines),
        )
        floor = (gamma + noise) * (K - 1) / K
        report.check(
            f"{name}: Banditron's error is between what gamma and noise alone cost "
            f"({100 * floor:.1f} %) and a third of its error after 1,000 rows",
            bool(floor < errors["Banditron"][-1] < errors["Banditron"][1] / 3),
        )
        report.check(
            f"{name}: the default makes fewer mistakes than Banditron",
            bool(errors["ours, default"][-1] < errors["Banditron"][-1]),
        )


# ---- bounds -------------------------------------------------------------------------------------


def bounds(report: Report) -> None:
    """Evaluate the theorems on runs over the real and the synthetic sets."""
    X, y = Synthetic(0.0).rows(20_000)
    runs: list[tuple[str, Any, Any, int]] = [("SynSep", X, y, K)]
    for name in ("pendigits", "letter"):
        data = stream(name)
        runs.append((name, sparse.csr_array(prepared(data.X)), data.y, data.n_classes))
    lines, holds = [], []
    for name, rows, right, k in runs:
        for update, gamma in product(("banditron", "soba"), (0.05, 0.2)):
            if update == "soba" and name == "SynSep":
                continue  # a matrix of 3,600 rows, updated in most of 20,000 trials
            model = BanditClassifier(range(k), update, gamma, intercept=1.0)
            found = mistake_bound(model, rows, right)
            holds.append(found.n_mistakes <= found.bound)
            figures = f"{found.n_mistakes:,}", f"{found.bound:,.0f}", f"{len(right):,}"
            lines.append([f"{name}, {update}, gamma = {gamma:g}", *figures])
    report.add(
        "## Bounds",
        "Mistakes of one run, and the bound on their expected number, for the best of the "
        "competitors found in hindsight.",
        table(["", "mistakes", "bound", "rows"], lines),
    )
    report.check(
        f"no run makes more mistakes than its bound: {sum(holds)} of {len(holds)}", all(holds)
    )


def tables(folder: Path) -> Report:
    """Run everything; return the page, which is written to a folder."""
    report = Report("few_labels_bandits", "Learning from whether the shown class is right", folder)
    if is_installed():
        compare(report)
    dense = [name for name in COMPARED if name in ("letter", "pendigits")]
    text = [name for name in COMPARED if name not in dense]
    study(report, "Alternatives on measurements", [*dense, *OTHERS_DENSE], ON_DENSE)
    study(report, "Alternatives on texts", [*text, *OTHERS_TEXT], ON_TEXT)
    synthetic(report)
    bounds(report)
    return report


def main() -> int:
    """Run everything and write the page."""
    return tables(script_parser(__doc__, __file__).parse_args().results).write()


if __name__ == "__main__":
    sys.exit(main())

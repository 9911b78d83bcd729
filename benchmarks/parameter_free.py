"""Mistakes without a step size to choose, and of AdaGrad with five step sizes.

    python benchmarks/parameter_free.py [--rows 6000]

Five sets of texts and five of measurements, each as it is ("raw") and prepared ("counts" for texts,
"z-scores" for measurements): mistakes in % of one pass of `OnlineClassifier("multi")` over the
first rows, with each rule and preconditioner "adagrad", "distance-adagrad" or "coin-betting". The
rules are those of their names, so that steps against the rest never overshoot. Ratios are those to
AdaGrad with the step size that was best on this set, which one would not know. The script writes
benchmarks/results/parameter_free.md, and exits with 1 if a check fails.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from kesler import OnlineClassifier, progressive_validate
from sets import SETS, RealSet, Stream

from script_arguments import script_parser  # isort: skip
from report import Report, table  # isort: skip

NAMES = (
    *("webkb", "trec", "r8", "cnae9", "kitchen-l"),
    *("letter", "pendigits", "landsat", "segment", "optdigits"),
)
RULES = ("softmax", "hinge", "ovr-squared", "ovr-hinge")
ETAS = (0.05, 0.15, 0.5, 1.5, 5.0)
FREE = ("distance-adagrad", "coin-betting")
PREPARED = {"text": "counts", "dense": "z-scores"}


@dataclass(frozen=True)
class Outcome:
    """The mistakes, in %, of a rule on a set, and the seconds of a pass of each preconditioner.

    Parameters
    ----------
    adagrad, free : with each step size, and without one.
    seconds : of the fastest pass with a step size, and of those without one.
    """

    name: str
    preprocessing: str
    rule: str
    adagrad: tuple[float, ...]
    free: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """All in units of the best step size of this set."""
        return [each / min(self.adagrad) for each in (*self.adagrad, *self.free)]

    @property
    def line(self) -> list[str]:
        """A row of the table."""
        figures = [*self.adagrad, *self.free, *self.ratios[len(ETAS) :]]
        name = f"{self.name}, {self.preprocessing}"
        return [name, *(f"{figure:.2f}" for figure in figures)]


def run(stream: Stream, **settings: Any) -> tuple[float, float]:
    """Return the mistakes in % and the seconds of a pass."""
    learner = OnlineClassifier("multi", **settings)
    began = time.process_time()
    result = progressive_validate(learner, stream.X, stream.y)
    return 100 * result.n_mistakes / len(stream.y), time.process_time() - began


def outcome(given: RealSet, stream: Stream, preprocessing: str, rule: str) -> Outcome:
    """Learn a set with every step size and with none."""
    settings: dict[str, Any] = {"update": rule, "preprocessing": preprocessing}
    found = [run(stream, **settings, preconditioner="adagrad", eta=eta) for eta in ETAS]
    free = [run(stream, **settings, preconditioner=name) for name in FREE]
    return Outcome(
        given.name,
        "raw" if preprocessing == "none" else preprocessing,
        rule,
        tuple(mistakes for mistakes, _ in found),
        tuple(mistakes for mistakes, _ in free),
        (min(each for _, each in found), *(each for _, each in free)),
    )


def means(outcomes: list[Outcome]) -> list[float]:
    """Return the geometric means of the ratios."""
    return [float(m) for m in np.exp(np.log([each.ratios for each in outcomes]).mean(axis=0))]


def largest(outcomes: list[Outcome]) -> list[float]:
    """Return the largest ratios."""
    return [float(m) for m in np.max([each.ratios for each in outcomes], axis=0)]


def main() -> int:
    """Run the study and write the page."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("--rows", type=int, default=6000, help="rows of each set (default: 6000)")
    options = parser.parse_args()
    page = Report("parameter_free", "Steps without a parameter", options.results)
    page.add(__doc__.split("\n\n")[2].split(" The script")[0])
    outcomes: list[Outcome] = []
    for given in SETS:
        if given.name in NAMES:
            stream = given.stream().in_numbers().head(options.rows)
            for preprocessing in ("none", PREPARED[given.kind]):
                outcomes += [outcome(given, stream, preprocessing, rule) for rule in RULES]
    write_tables(page, outcomes)
    overall, worst, n = means(outcomes), largest(outcomes), len(ETAS)
    page.add(
        f"The largest ratio of distance-adagrad is {worst[n]:.2f}, that of the constant step sizes "
        f"{min(worst[:n]):.2f} at least. Its first step size, 0.1, was chosen on sets among these."
    )
    page.check(
        f"distance-adagrad: {overall[n]:.2f} of the best of five step sizes, at most 1.06, and "
        "less than any of them on all sets",
        overall[n] <= min(1.06, *overall[:n]),
    )
    page.check(f"coin-betting: {overall[n + 1]:.2f}, at most 1.2", overall[n + 1] <= 1.2)
    return page.write()


def write_tables(page: Report, outcomes: list[Outcome]) -> None:
    """Add the tables of each rule, the geometric means and the times."""
    header = ["", *(f"eta {eta:g}" for eta in ETAS), *FREE]
    lines = []
    for rule in RULES:
        of_rule = [each for each in outcomes if each.rule == rule]
        titles = [*header, *(f"{name}, ratio" for name in FREE)]
        page.add(f"## {rule}", table(titles, [each.line for each in of_rule]))
        lines.append([rule, *(f"{each:.2f}" for each in means(of_rule))])
    for name, is_raw in (("raw", True), ("prepared", False)):
        some = [each for each in outcomes if (each.preprocessing == "raw") == is_raw]
        lines.append([name, *(f"{each:.2f}" for each in means(some))])
    lines.append(["all", *(f"{each:.2f}" for each in means(outcomes))])
    lines.append(["largest", *(f"{each:.2f}" for each in largest(outcomes))])
    page.add("## Ratios to the best step size of each set, geometric means", table(header, lines))
    for i, name in enumerate(FREE, start=1):
        times = [each.seconds[i] / each.seconds[0] for each in outcomes]
        cost = float(np.exp(np.mean(np.log(times))))
        page.add(f"A pass with {name} takes {cost:.2f} times the processor time of AdaGrad's.")


if __name__ == "__main__":
    raise SystemExit(main())

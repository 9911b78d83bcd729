"""Mistakes of coin betting, which has no parameter, and of AdaGrad with five step sizes.

    python benchmarks/parameter_free.py [--rows 6000]

Five sets of texts and five of measurements, each as it is ("raw") and prepared ("counts" for texts,
"z-scores" for measurements): mistakes in % of one pass of `OnlineClassifier("multi")` over the
first rows, with each rule and preconditioner "adagrad" or "coin-betting". The rules are those of
their names, so that the steps of those against the rest never overshoot under AdaGrad. A ratio is
that of coin betting to AdaGrad with the step size that was best on this set, which one would not
know. The script writes benchmarks/results/parameter_free.md, and exits with 1 if a check fails.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kesler import OnlineClassifier, progressive_validate
from sets import SETS, RealSet, Stream

from report import Report, table  # isort: skip

RESULTS = Path(__file__).parent / "results"
NAMES = (
    *("webkb", "trec", "r8", "cnae9", "kitchen-l"),
    *("letter", "pendigits", "landsat", "segment", "optdigits"),
)
RULES = ("softmax", "hinge", "ovr-squared", "ovr-hinge")
ETAS = (0.05, 0.15, 0.5, 1.5, 5.0)
PREPARED = {"text": "counts", "dense": "z-scores"}


@dataclass(frozen=True)
class Outcome:
    """The mistakes, in %, of a rule on a set; `seconds` of each preconditioner, for one pass."""

    name: str
    preprocessing: str
    rule: str
    adagrad: tuple[float, ...]
    bets: float
    seconds: tuple[float, float]

    @property
    def ratio(self) -> float:
        """Coin betting in units of the best step size of this set."""
        return self.bets / min(self.adagrad)

    @property
    def line(self) -> list[str]:
        """A row of the table."""
        figures = [*self.adagrad, self.bets]
        name = f"{self.name}, {self.preprocessing}"
        return [name, *(f"{figure:.2f}" for figure in figures), f"{self.ratio:.2f}"]


def run(stream: Stream, rule: str, preprocessing: str, eta: float | None) -> tuple[float, float]:
    """Return the mistakes in % and the seconds of a pass; without eta, of coin betting."""
    parameters = {} if eta is None else {"eta": eta}
    learner = OnlineClassifier(
        "multi",
        update=rule,
        preconditioner="coin-betting" if eta is None else "adagrad",
        preprocessing=preprocessing,
        **parameters,
    )
    began = time.process_time()
    result = progressive_validate(learner, stream.X, stream.y)
    return 100 * result.n_mistakes / len(stream.y), time.process_time() - began


def outcome(given: RealSet, stream: Stream, preprocessing: str, rule: str) -> Outcome:
    """Learn a set with every step size and with none."""
    found = [run(stream, rule, preprocessing, eta) for eta in ETAS]
    bets, seconds = run(stream, rule, preprocessing, None)
    return Outcome(
        given.name,
        "raw" if preprocessing == "none" else preprocessing,
        rule,
        tuple(mistakes for mistakes, _ in found),
        bets,
        (min(each for _, each in found), seconds),
    )


def mean(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(ratios))))


def against(outcomes: list[Outcome]) -> list[float]:
    """Return the geometric means over the best step size, of each step size and of coin betting."""
    fixed = [mean([each.adagrad[i] / min(each.adagrad) for each in outcomes]) for i in range(5)]
    return [*fixed, mean([each.ratio for each in outcomes])]


def worst(outcomes: list[Outcome]) -> list[float]:
    """Return the largest ratios, in the order of `against`."""
    fixed = [max(each.adagrad[i] / min(each.adagrad) for each in outcomes) for i in range(5)]
    return [*fixed, max(each.ratio for each in outcomes)]


def main() -> int:
    """Run the study and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=6000, help="rows of each set (default: 6000)")
    options = parser.parse_args()
    page = Report("parameter_free", "Steps without a parameter", RESULTS)
    page.add("\n".join(__doc__.split("\n\n")[2].splitlines()[:-2]))
    outcomes: list[Outcome] = []
    for given in SETS:
        if given.name in NAMES:
            stream = given.stream().head(options.rows)
            for preprocessing in ("none", PREPARED[given.kind]):
                outcomes += [outcome(given, stream, preprocessing, rule) for rule in RULES]
    header = ["", *(f"eta {eta:g}" for eta in ETAS), "coin-betting"]
    lines = []
    for rule in RULES:
        of_rule = [each for each in outcomes if each.rule == rule]
        page.add(f"## {rule}", table([*header, "ratio"], [each.line for each in of_rule]))
        lines.append([rule, *(f"{each:.2f}" for each in against(of_rule))])
    raw = [each for each in outcomes if each.preprocessing == "raw"]
    for name, some in (
        ("raw", raw),
        ("prepared", [each for each in outcomes if each not in raw]),
        ("all", outcomes),
    ):
        lines.append([name, *(f"{each:.2f}" for each in against(some))])
    lines.append(["largest", *(f"{each:.2f}" for each in worst(outcomes))])
    page.add("## Over the best step size of each set (geometric mean)", table(header, lines))
    cost = mean([each.seconds[1] / each.seconds[0] for each in outcomes])
    page.add(f"A pass of coin betting takes {cost:.1f} times the processor time of AdaGrad's.")
    means, largest = against(outcomes), worst(outcomes)
    page.check(
        f"over all, {means[-1]:.2f} of the best of five step sizes, at most 1.10", means[-1] <= 1.1
    )
    page.check(
        f"no step size has a smaller largest ratio ({largest[-1]:.2f})",
        largest[-1] <= min(largest[:-1]),
    )
    return page.write()


if __name__ == "__main__":
    raise SystemExit(main())

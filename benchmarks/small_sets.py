"""Sets of fewer than 600 rows, in twenty random orders.

    python benchmarks/small_sets.py [--orders 20]

In one order, one mistake more or less is 10 % of those on iris. Here each set below 600 rows of
benchmarks/defaults.py is learnt in several random orders, by the default, by Vowpal Wabbit with one
class against all others, and by logistic regression over z-scores and extra trees, both refitted
whenever the rows have doubled. Figures are sums over the orders, in % of rows; the interval is that
of the ratio of the sums, from the orders drawn again 2,000 times. The script writes
benchmarks/results/small_sets.md, and exits with 1 if a check fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import peer
from kesler import OnlineClassifier, progressive_validate
from refitted import EXTRA, LOGISTIC, PEERS, run_peer
from sets import SETS, Stream
from study import VW
from targets import MOST_OF_LINEAR, MOST_OF_PARTS, TINY_ROWS

from script_arguments import script_parser  # isort: skip
from report import Report, table  # isort: skip

DEFAULT = "default"
MOST = MOST_OF_PARTS["sets below 600 rows"]
LINEAR = (VW, LOGISTIC)
N_DRAWS, LEVELS = 2000, (2.5, 97.5)

Mistakes = npt.NDArray[np.int64]
"""The number in each order."""


@dataclass(frozen=True)
class Outcome:
    """The mistakes on a set by each learner."""

    name: str
    n_rows: int
    mistakes: Mapping[str, Mistakes]

    def ratio(self, against: str) -> float:
        """Return the mistakes of the default relative to those of a peer."""
        return float(self.mistakes[DEFAULT].sum() / self.mistakes[against].sum())

    def interval(self, against: str) -> tuple[float, float]:
        """Return the interval of the ratio, over orders."""
        ours, theirs = self.mistakes[DEFAULT], self.mistakes[against]
        drawn = np.random.default_rng(0).integers(len(ours), size=(N_DRAWS, len(ours)))
        low, high = np.percentile(ours[drawn].sum(axis=1) / theirs[drawn].sum(axis=1), LEVELS)
        return float(low), float(high)

    def line(self, against: str) -> str:
        """Return the ratio and its interval in one cell."""
        low, high = self.interval(against)
        return f"{self.ratio(against):.2f} ({low:.2f} to {high:.2f})"


def outcome(name: str, stream: Stream, n_orders: int) -> Outcome:
    """Run all learners on a set in random orders."""
    runs = [_mistakes(stream.reordered(order)) for order in range(1, n_orders + 1)]
    found = {learner: np.array([run[learner] for run in runs]) for learner in runs[0]}
    return Outcome(name, len(stream.y), found)


def _mistakes(stream: Stream) -> dict[str, int]:
    ours = progressive_validate(OnlineClassifier(), stream.X, stream.y)
    (of_vw,) = peer.run(stream, [""]).values()
    refitted = {each: run_peer(PEERS[each], stream).wrong.sum() for each in (LOGISTIC, EXTRA)}
    return {DEFAULT: int(np.sum(ours.wrong)), VW: int(of_vw.sum()), **refitted}


def write_tables(page: Report, outcomes: Sequence[Outcome]) -> None:
    """Add the errors, and the ratios with their intervals."""
    learners = list(outcomes[0].mistakes)
    page.add(
        "## Errors in % of rows",
        table(
            ["", "rows", *learners],
            (
                [
                    *(each.name, f"{each.n_rows}"),
                    *(f"{100 * n.mean() / each.n_rows:.2f}" for n in each.mistakes.values()),
                ]
                for each in outcomes
            ),
        ),
        "## Mistakes of the default relative to each peer",
        table(["", *MOST], ([each.name, *map(each.line, MOST)] for each in outcomes)),
    )


def main() -> int:
    """Run the study and write the page."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("--orders", type=int, default=20, help="random orders (default: 20)")
    options = parser.parse_args()
    page = Report("small_sets", "Sets of fewer than 600 rows", options.results)
    page.add(__doc__.split("\n\n")[2].split(" The script")[0])
    streams = [(each.name, each.stream()) for each in SETS]
    small = [(name, stream) for name, stream in streams if len(stream.y) < TINY_ROWS]
    outcomes = [outcome(name, stream, options.orders) for name, stream in small]
    write_tables(page, outcomes)
    for each, most in MOST.items():
        mean = float(np.exp(np.mean([np.log(found.ratio(each)) for found in outcomes])))
        page.check(f"geometric mean against {each}: {mean:.3f}, at most {most:g}", mean <= most)
    for each in LINEAR:
        worst = max(outcomes, key=lambda found: found.ratio(each))
        claim = f"the most against {each}: {worst.ratio(each):.3f} on {worst.name}"
        page.check(f"{claim}, at most {MOST_OF_LINEAR:g}", worst.ratio(each) <= MOST_OF_LINEAR)
    return page.write()


if __name__ == "__main__":
    raise SystemExit(main())

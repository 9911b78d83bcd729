"""Selective sampling on 23 sets: mistakes at a fifth of the labels, and the bound of MarginQuery.

Every row is predicted and counts; only rows whose label is asked for are learnt.

    python papers/few_labels_queries.py        # all, into papers/results/few_labels_queries.md

Sets are cut to 10,000 rows. Vowpal Wabbit's rows are those of `benchmarks/peer.py`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler import OnlineClassifier, mistake_bound, progressive_validate
from kesler.bounds.mistakes import MistakeBound
from kesler.evaluation.queries import QueriedResult
from kesler.queries import LabelBudget, MarginQuery, Query, RandomQuery
from kesler.queries.query import RowEstimates
from report import Report, table
from script_arguments import script_parser

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from peer import first_rows, is_installed, prepared
from sets import FIRST, RealSet, Stream

SHARE, SEEDS = 0.2, (0, 1, 2)
MOST_ROWS, ROWS_OF_STUDY, ROWS_OF_BOUND = 10_000, 4_000, 2_000
SEEDS_OF_BOUND = range(5)
# The parameter b of MarginQuery, as parts of R^2, the squared length of a difference.
PARTS = (0.5, 0.05)
BITS, N_HALVINGS = 22, 8


@dataclass(frozen=True)
class OfSet:
    """The mistakes on one set, at equal labels but for `full`.

    Parameters
    ----------
    n_rows, n_asked : numbers of rows, and of labels that the label budget asked for.
    budget, full : mistakes with the label budget, and with all labels.
    random : mistakes and labels of random sampling, for each seed.
    peer : mistakes of Vowpal Wabbit's active learner and the least number of its labels; None if it
        is not installed.
    """

    n_rows: int
    n_asked: int
    budget: int
    full: int
    random: list[tuple[int, int]]
    peer: tuple[int, float] | None

    @property
    def of_random(self) -> float:
        """Mean mistakes of random sampling."""
        return float(np.mean([n for n, _ in self.random]))


def validated(stream: Stream, rule: float | Query, **parts: Any) -> QueriedResult:
    """Return the result of a run that asks for labels."""
    found = progressive_validate(OnlineClassifier(**parts), stream.X, stream.y, label_budget=rule)
    assert isinstance(found, QueriedResult)
    return found


def run(stream: Stream) -> OfSet:
    """Return the mistakes on one set."""
    n_rows = len(stream.y)
    asks = validated(stream, SHARE)
    full = progressive_validate(OnlineClassifier(), stream.X, stream.y)
    same = asks.n_asked / n_rows
    at_random = [validated(stream, RandomQuery(same, seed=seed)) for seed in SEEDS]
    return OfSet(
        n_rows,
        asks.n_asked,
        asks.n_mistakes,
        full.n_mistakes,
        [(each.n_mistakes, each.n_asked) for each in at_random],
        peer(stream, asks.n_asked) if is_installed() else None,
    )


# ---- Vowpal Wabbit ------------------------------------------------------------------------------


def peer(stream: Stream, n_labels: int) -> tuple[int, float]:
    """Return the mistakes of Vowpal Wabbit with at least as many labels, and a number of these.

    `--cs_active` asks for the costs of classes, one by one; a label is the costs of all classes.
    The queries divided by the number of classes are therefore the least number of labels that it
    can have asked for. Its mellowness is found by halving an interval of its logarithm; the run of
    the fewest labels that are not fewer than ours counts.
    """
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "stream.vw"
        write_costs(data, prepared(stream.X), stream)
        found, low, high = simulated(data, stream, 1.0), -7.0, 0.0
        for _ in range(N_HALVINGS):
            middle = (low + high) / 2
            mistakes, labels = simulated(data, stream, 10**middle)
            if labels >= n_labels:
                found, high = (mistakes, labels), middle
            else:
                low = middle
    return found


def write_costs(path: Path, X: sparse.csr_array, stream: Stream) -> None:
    """Write rows in Vowpal Wabbit's text format, with cost 0 for the class and 1 for the others."""
    costs = [f"{code}:1" for code in range(1, stream.n_classes + 1)]
    with path.open("w") as file:
        for row, code in enumerate(stream.y.tolist()):
            entries = slice(X.indptr[row], X.indptr[row + 1])
            pairs = zip(X.indices[entries].tolist(), X.data[entries].tolist(), strict=True)
            own = [*costs[:code], f"{code + 1}:0", *costs[code + 1 :]]
            file.write(f"{' '.join(own)} | {' '.join(f'{i}:{v:g}' for i, v in pairs)}\n")


def simulated(data: Path, stream: Stream, mellowness: float) -> tuple[int, float]:
    """Return the mistakes of a simulated run, and the least number of its labels."""
    from vowpalwabbit import Workspace

    predictions, k = data.with_suffix(".out"), stream.n_classes
    workspace = Workspace(
        f"--cs_active {k} --simulation --mellowness {mellowness} --cost_max 1 --cost_min 0 "
        f"-b {BITS} -d {data} -p {predictions}",
        enable_logging=True,
    )
    workspace.finish()
    [queries] = re.findall(r"total queries = (\d+)", "".join(workspace.get_log()))
    lines = predictions.read_text().splitlines()
    wrong = np.array([int(line.split()[0]) for line in lines]) - 1 != stream.y
    wrong[first_rows(stream.y)] = False
    return int(wrong.sum()), int(queries) / k


# ---- measures of doubt --------------------------------------------------------------------------


class ByLead(LabelBudget):
    """The lead of the probabilities alone."""

    def doubt(self, estimates: RowEstimates) -> float:
        """Return 1 - (p1 - p2)."""
        return 1 - estimates.lead


class ByConfidence(LabelBudget):
    """The calibrated confidence."""

    def doubt(self, estimates: RowEstimates) -> float:
        """Return 1 - confidence."""
        return 1 - estimates.confidence


class ByNew(LabelBudget):
    """The probability of a new class."""

    def doubt(self, estimates: RowEstimates) -> float:
        """Return p_new."""
        return estimates.new


class ByBoth(LabelBudget):
    """The mean of the confidence and of the chosen measure."""

    def doubt(self, estimates: RowEstimates) -> float:
        """Return the mean of both doubts."""
        return (2 - estimates.confidence - estimates.lead * (1 - estimates.new)) / 2


MEASURES: dict[str, Query] = {
    "(p1 - p2)(1 - p_new), the rule": LabelBudget(SHARE),
    "p1 - p2": ByLead(SHARE),
    "confidence": ByConfidence(SHARE),
    "confidence and the rule": ByBoth(SHARE),
    "p_new": ByNew(SHARE),
}


def study(streams: Mapping[str, Stream]) -> dict[str, float]:
    """Return the geometric mean over sets of mistakes by random sampling's, for each measure."""
    ratios: dict[str, list[float]] = {name: [] for name in MEASURES}
    for stream in streams.values():
        some = stream.head(ROWS_OF_STUDY)
        found = {name: validated(some, rule) for name, rule in MEASURES.items()}
        share = found[next(iter(MEASURES))].n_asked / len(some.y)
        at_random = [validated(some, RandomQuery(share, seed=seed)).n_mistakes for seed in SEEDS]
        for name, each in found.items():
            ratios[name].append(each.n_mistakes / float(np.mean(at_random)))
    return {name: geometric_mean(each) for name, each in ratios.items()}


# ---- the bound ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class OfBound:
    """Runs of the Perceptron with MarginQuery on one set, with one b.

    Parameters
    ----------
    mistakes, asked : for each seed, mistakes on rows of known classes, and labels.
    bound : of the theorem.
    """

    mistakes: list[int]
    asked: list[int]
    bound: MistakeBound


def bounded(stream: Stream, part: float) -> OfBound:
    """Run the Perceptron with b a part of R^2, for several seeds."""
    some = stream.head(ROWS_OF_BOUND)
    b = part * 2 * longest(some.X)  # two rows per difference, of the right and the wrong class
    runs = [
        validated(some, MarginQuery(b, seed=seed), hypotheses="multi", update="perceptron")
        for seed in SEEDS_OF_BOUND
    ]
    return OfBound(
        [each.n_mistakes_of_known for each in runs],
        [each.n_asked for each in runs],
        mistake_bound(runs[0]),
    )


def longest(X: Any) -> float:
    """Return the largest squared length of a row."""
    squares = X.multiply(X) if sparse.issparse(X) else np.square(X, dtype=np.float64)
    return float(np.asarray(squares.sum(axis=1)).max())


# ---- the page -----------------------------------------------------------------------------------


def geometric_mean(ratios: npt.ArrayLike) -> float:
    """Return the geometric mean.

    Examples
    --------
    >>> round(geometric_mean([0.5, 2.0]), 12)
    1.0
    """
    return float(np.exp(np.mean(np.log(ratios))))


def ratios(found: Mapping[str, OfSet]) -> dict[str, float]:
    """Return geometric means over sets of the mistakes with the budget by those of the others."""
    of = {
        "random": [each.budget / each.of_random for each in found.values()],
        "all labels": [each.budget / max(1, each.full) for each in found.values()],
    }
    peers = [(each.budget, each.peer[0]) for each in found.values() if each.peer]
    if peers:
        of["Vowpal Wabbit"] = [ours / theirs for ours, theirs in peers]
    return {name: geometric_mean(each) for name, each in of.items()}


def lines_of(found: Mapping[str, OfSet]) -> Iterator[list[str]]:
    """Yield the line of each set."""
    for name, each in found.items():
        peers = "-" if each.peer is None else f"{each.peer[0]:,}"
        labels = "-" if each.peer is None else f"{100 * each.peer[1] / each.n_rows:.1f}"
        yield [
            name,
            f"{each.n_rows:,}",
            f"{100 * each.n_asked / each.n_rows:.1f}",
            f"{each.budget:,}",
            f"{each.of_random:,.0f}",
            f"{each.budget / each.of_random:.2f}",
            peers,
            labels,
            f"{each.full:,}",
        ]


def tables(sets: tuple[RealSet, ...] = FIRST) -> tuple[list[str], list[tuple[str, bool]]]:
    """Run everything; return blocks of Markdown, and the claims with whether they hold."""
    streams = {each.name: each.stream().in_numbers().head(MOST_ROWS) for each in sets}
    found = {name: run(stream) for name, stream in streams.items()}
    of_bound = {
        (name, part): bounded(stream, part) for name, stream in streams.items() for part in PARTS
    }
    means, measures = ratios(found), study(streams)
    header = ["set", "rows", "labels %", "budget", "random", "ratio", "vw", "vw labels %", "all"]
    blocks = [
        f"Mistakes of the default learner with `label_budget={SHARE}`, of random sampling with as "
        f"many labels (mean of {len(SEEDS)} seeds) and of Vowpal Wabbit's `--cs_active` with at "
        "least as many, and with all labels. Every row is predicted and counts; the first row of a "
        f"class in the stream is no mistake. Sets are cut to {MOST_ROWS:,} rows.",
        table(header, lines_of(found)),
        "Geometric means of the mistakes with the budget by those of "
        + ", ".join(f"{name}: {mean:.3f}" for name, mean in means.items())
        + ".",
        f"Measures of doubt on the first {ROWS_OF_STUDY:,} rows: geometric means of mistakes by "
        "those of random sampling.",
        table(["doubt by", "ratio"], [[name, f"{mean:.3f}"] for name, mean in measures.items()]),
        f"The Perceptron with `MarginQuery(b)` on the first {ROWS_OF_BOUND:,} rows, b a part of "
        f"R^2: mistakes on rows of known classes, mean and most of {len(SEEDS_OF_BOUND)} seeds, "
        "and the bound on their expectation.",
        table(
            ["set, b / R^2", "labels %", "mean", "most", "bound"],
            [
                line_of_bound(name, part, streams[name], of_bound[name, part])
                for name, part in of_bound
            ],
        ),
    ]
    held = all(max(each.mistakes) <= each.bound.bound for each in of_bound.values())
    ahead = all(-1 <= each.n_asked - SHARE * each.n_rows <= 22 for each in found.values())
    checks = [
        (
            "at most 0.80 of the mistakes of random sampling, in geometric mean",
            means["random"] <= 0.8,
        ),
        (
            "fewer mistakes than random sampling on every set",
            all(each.budget < each.of_random for each in found.values()),
        ),
        ("no more than 22 labels beyond the share", ahead),
        ("the bound of MarginQuery held on every run", held),
    ]
    peers = [each for each in found.values() if each.peer is not None]
    if peers:
        fewer = sum(each.budget < each.peer[0] for each in peers if each.peer)
        claim = "fewer mistakes than Vowpal Wabbit"
        checks.append((f"{claim}, in geometric mean", means["Vowpal Wabbit"] < 1))
        checks.append((f"{claim} on every set ({fewer} of {len(peers)})", fewer == len(peers)))
    return blocks, checks


def line_of_bound(name: str, part: float, stream: Stream, of: OfBound) -> list[str]:
    """Return the line of the runs with one b on one set."""
    n_rows = min(ROWS_OF_BOUND, len(stream.y))
    return [
        f"{name}, {part:g}",
        f"{100 * np.mean(of.asked) / n_rows:.1f}",
        f"{np.mean(of.mistakes):,.0f}",
        f"{max(of.mistakes):,}",
        f"{of.bound.bound:,.0f}",
    ]


def main() -> int:
    """Run everything and write the page."""
    folder = script_parser(__doc__, __file__).parse_args().results
    report = Report("few_labels_queries", "Selective sampling: a fifth of the labels", folder)
    blocks, checks = tables()
    report.add(*blocks)
    for claim, holds in checks:
        report.check(claim, holds)
    return report.write()


if __name__ == "__main__":
    sys.exit(main())

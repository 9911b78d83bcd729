"""How far to trust the default: new classes, confidence, and prediction sets.

    python benchmarks/trust.py [--quick]

Everything is said before a row is learnt, in one pass over each stream: the 23 sets of
`defaults.py` in their order ("in order"), and re-ordered so that each class starts at a random time
in the first 80 % of the stream ("late"); seven Enron users, and all of them together (10,000
messages, interleaved). The formulas are in the docstring of `kesler.learner.uncertainty`; their
constants were chosen on these streams, and not on those of `first_rows.py`, of which at least 15 %
of the rows are the first of their class. The script writes benchmarks/results/trust.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from first_rows import FIRST_ROWS
from kesler import OnlineClassifier, progressive_validate
from kesler.datasets import load
from kesler.evaluation.uncertainty import UncertaintyTrace
from sets import FIRST, SHOWN, RealSet, Stream, by_appearance
from trust_peers import add_peers

sys.path.append(str(Path(__file__).parents[1] / "papers"))
from enron import ARRIVING, USERS, count_words
from report import Report, table
from script_arguments import folder_of, script_parser

MERGED, MERGED_ROWS, WINDOW, LATEST_START = "all users", 10_000, 500, 0.8
TWO_CLASSES = ("elec2", "magic")
COVERAGES = (0.8, 0.9, 0.95, 0.99)
TOLERANCE = {0.8: 0.01, 0.9: 0.01, 0.95: 0.01, 0.99: 0.006}
Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Run:
    """One pass over a stream."""

    name: str
    y: npt.NDArray[np.int64]
    said: UncertaintyTrace
    own: Doubles
    right: Flags

    @property
    def is_new(self) -> Flags:
        """Whether the class of each row had not been seen."""
        found = np.zeros(len(self.y), dtype=np.bool_)
        found[np.unique(self.y, return_index=True)[1]] = True
        return found


# ---- streams --------------------------------------------------------------------------------


def late(stream: Stream, seed: int = 1) -> Stream:
    """Return the stream with each class starting at a random time in its first 80 %."""
    rng, y = np.random.default_rng(seed), stream.y
    start = rng.uniform(0, LATEST_START, stream.n_classes)[y]
    order = np.argsort(start + (1 - start) * rng.uniform(size=len(y)), kind="stable")
    X = [stream.X[i] for i in order] if isinstance(stream.X, list) else stream.X[order]
    return Stream(X, by_appearance(y[order]))


def merged() -> Stream:
    """Return the messages of all users, interleaved; a class is a folder of a user."""
    found = []
    for user in USERS:
        data = load(f"enron/{user}")
        for i, (record, folder) in enumerate(zip(data.records, data.y, strict=True)):
            text = " ".join(record[field] for field in ARRIVING)
            found.append((i / len(data.y), text, f"{user}/{folder}"))
    found.sort(key=lambda message: message[0])
    rows = found[:MERGED_ROWS]
    return Stream(count_words([r[1] for r in rows]), by_appearance(np.array([r[2] for r in rows])))


def named(name: str) -> RealSet:
    """Return a set by its name."""
    return next(each for each in SHOWN if each.name == name)


@cache
def stream_of(name: str) -> Stream:
    """Return a stream by its name; "late NAME" is the re-ordered one."""
    if name == MERGED:
        return merged()
    if name.startswith("late "):
        return late(stream_of(name.removeprefix("late ")))
    return named(name).stream()


@cache
def run_of(name: str, use: Any = True) -> Run:
    """Run the default over a stream."""
    if name in FIRST_ROWS:
        stream, given = FIRST_ROWS[name]()
    else:
        stream, given = stream_of(name), {}
    model = OnlineClassifier(uncertainty=use, **given)
    result = progressive_validate(model, stream.X, stream.y.tolist())
    assert result.uncertainty is not None
    right = result.predictions == result.targets
    return Run(name, stream.y, result.uncertainty, result.uncertainty.predicted, right)


# ---- new classes ----------------------------------------------------------------------------


def prior_of(y: npt.NDArray[np.int64], share: float = 0.002) -> Doubles:
    """Return the probability of a new class from arrivals alone, before each row."""
    decay, n_classes, weights = 0.5 ** (1 / np.array([30.0, 100, 300, 1000])), 0, np.full(9, 1 / 9)
    found, recent, counts, once = np.ones(len(y)), np.zeros((4, 2)), np.zeros(y.max() + 1), 0
    for n, label in enumerate(y.tolist()):
        k = n_classes
        fixed = [(once + 0.5) / (n + 1), (k + 0.5) / (n + 1), (1 + 0.5 * k) / (1 + n)]
        fixed += [(1 + 0.3 * k) / (1 + n), 3 / (3 + n)]
        estimates = np.clip([*fixed, *((recent[:, 0] + 0.5) / (recent[:, 1] + 1))], 1e-5, 0.999)
        found[n] = np.clip(weights @ estimates, 1e-5, 0.999)
        is_new = label >= k
        weights *= estimates if is_new else 1 - estimates
        weights = (1 - share) * weights / weights.sum() + share / 9
        recent = recent * decay[:, None] + [is_new, 1]
        n_classes += is_new
        once += int(counts[label] == 0) - int(counts[label] == 1)
        counts[label] += 1
    return found


def log_loss(p: Doubles, happened: Flags) -> float:
    """Return the mean of -ln of the probability of what happened."""
    chance = np.where(happened, p, 1 - p)
    return float(-np.log(np.clip(chance, 1e-6, 1)).mean())


def figures_of_new(run: Run) -> tuple[float, ...]:
    """Return AUROC, recall at 5 % false alarms, log-loss relative to the prior's, and calibration.

    The first row of a stream is left out. The last figure is the AUROC of the prior.
    """
    new, is_new, prior = run.said.new[1:], run.is_new[1:], prior_of(run.y)[1:]
    alarm = np.quantile(new[~is_new], 0.95)
    return (
        float(roc_auc_score(is_new, new)),
        float((new[is_new] > alarm).mean()),
        log_loss(new, is_new) / log_loss(prior, is_new),
        binned_error(new, is_new),
        float(roc_auc_score(is_new, prior)),
    )


def binned_error(p: Doubles, happened: Flags, n_bins: int = 15) -> float:
    """Return the expected calibration error of probabilities in bins of equal width."""
    bins = np.minimum((p * n_bins).astype(int), n_bins - 1)
    gaps = [abs((p - happened)[bins == i].sum()) for i in range(n_bins)]
    return float(sum(gaps) / len(p))


def add_new(page: Report, groups: dict[str, tuple[Sequence[str], Any]]) -> None:
    """Add the tables of new classes, and what they are to show."""
    head = ["", "AUROC", "least", "recall", "log-loss", "most", "calibration", "prior's AUROC"]
    rows, means = [], {}
    for group, (names, use) in groups.items():
        found = np.array([figures_of_new(run_of(name, use)) for name in names])
        mean, least, most = found.mean(axis=0), found.min(axis=0), found.max(axis=0)
        means[group] = mean, least, most
        figures = (mean[0], least[0], mean[1], mean[2], most[2], mean[3], mean[4])
        rows.append([f"{group} ({len(names)})", *(f"{value:.3f}" for value in figures)])
    page.add("## Is the class of this row new?", NEW_CLASSES, table(head, rows))
    mean, least, most = means["Enron users"]
    page.check(f"Enron users: AUROC {mean[0]:.3f}, at least .83", mean[0] >= 0.83)
    page.check(f"AUROC on each {least[0]:.3f}, at least .72", least[0] >= 0.72)
    page.check(f"log-loss {mean[2]:.3f} of the prior's, at most .91", mean[2] <= 0.91)
    page.check(f"on each {most[2]:.3f}, at most 1.01", most[2] <= 1.01)
    page.check(f"recall {mean[1]:.2f} of first rows, at least .45", mean[1] >= 0.45)
    scores, full = means["late dense"][0], means["late dense, full"][0]
    page.check(f"late dense sets: AUROC {scores[0]:.3f}, at least .80", scores[0] >= 0.80)
    page.check(f"with all rows remembered {full[0]:.3f}, at least .89", full[0] >= 0.89)
    page.check(f"and log-loss {full[2]:.3f}, at most .83", full[2] <= 0.83)
    worst = max(float(found[0][3]) for found in means.values())
    page.check(f"calibration error {worst:.4f} in the worst group, at most .01", worst <= 0.01)


NEW_CLASSES = """\
Before the target is given. "least" and "most" are the values of the worst stream; recall is that of
the first rows of classes where 5 % of the other rows are false alarms; log-loss is relative to that
of the prior of arrivals alone. Two sets of two classes have one late class each, so that no AUROC
can be measured; they are left out."""


# ---- confidence -----------------------------------------------------------------------------


def risk_area(confidence: Doubles, right: Flags) -> float:
    """Return the area under the risk-coverage curve; rows of equal confidence are taken as one."""
    order = np.argsort(-confidence, kind="stable")
    wrong, values = (~right[order]).astype(float), confidence[order]
    ends = np.flatnonzero(np.append(np.diff(values) != 0, True)) + 1
    starts = np.append(0, ends[:-1])
    done, area = 0.0, 0.0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        share = wrong[start:end].mean()
        area += sum((done + share * i) / (start + i) for i in range(1, end - start + 1))
        done += share * (end - start)
    return area / len(right)


def add_confidence(page: Report, groups: dict[str, Sequence[str]]) -> None:
    """Add the table of confidence, and what it is to show."""
    rows, all_errors, all_areas, errors_by_group = [], [], [], {}
    for group, names in groups.items():
        errors, plain, areas = [], [], []
        for name in names:
            run = run_of(name)
            p, right = run.said.confidence[1:], run.right[1:]
            errors.append(binned_error(p, right))
            plain.append(binned_error(run.own[1:], right))
            areas.append(risk_area(p, right) / risk_area(run.own[1:], right))
        figures = [f"{np.mean(errors):.4f}", f"{np.mean(plain):.4f}", f"{np.mean(areas):.3f}"]
        rows.append([f"{group} ({len(names)})", *figures])
        errors_by_group[group] = float(np.mean(errors))
        all_errors += errors
        all_areas += areas
    head = ["", "calibration error", "of the probability", "area, relative"]
    page.add("## Is the prediction right?", CONFIDENCE, table(head, rows))
    error, area = float(np.mean(all_errors)), float(np.mean(all_areas))
    page.check(f"calibration error of confidence {error:.4f}, at most .02", error <= 0.02)
    enron = errors_by_group["Enron users"]
    page.check(f"of the Enron users {enron:.4f}, at most .025", enron <= 0.025)
    page.check(f"area under the risk-coverage curve {area:.3f}, at most .87", area <= 0.87)


CONFIDENCE = """\
First rows of classes count as wrong. The area is that under the risk-coverage curve, relative to
that of the probability of the predicted class, and its calibration error stands beside."""


# ---- prediction sets ------------------------------------------------------------------------


def worst_window(covered: Flags) -> float:
    """Return the least share of covered rows in a window of 500 rows."""
    sums = np.cumsum(np.append(0, covered))
    if len(covered) < WINDOW:
        return float(covered.mean())
    return float((sums[WINDOW:] - sums[:-WINDOW]).min() / WINDOW)


def add_sets(page: Report, streams: Sequence[str], priced: Sequence[str]) -> None:
    """Add the tables of prediction sets, and what they are to show."""
    rows = []
    for coverage in COVERAGES:
        runs = [run_of(name).said for name in streams]
        shares = np.array([said.covered(coverage).mean() for said in runs])
        worst = min(worst_window(said.covered(coverage)) for said in runs)
        sizes = np.mean([run_of(name).said.sizes(coverage).mean() for name in priced])
        empty = np.mean([(said.sizes(coverage) == 0).mean() for said in runs])
        figures = (shares.min(), shares.max(), worst, sizes, empty)
        rows.append([f"{coverage:.0%}", *(f"{value:.4f}" for value in figures)])
        gap = float(np.abs(shares - coverage).max())
        claim = f"sets at {coverage:.0%}: coverage within {gap:.4f}"
        page.check(f"{claim}, at most {TOLERANCE[coverage]}", gap <= TOLERANCE[coverage])
        if coverage == 0.9:
            page.check(f"windows of 500 rows at least {worst:.3f}, asked .87", worst >= 0.87)
            page.check(f"mean size {sizes:.2f}, at most 2.2", sizes <= 2.2)
    head = ["", "least coverage", "most", "worst window", "mean size", "empty"]
    page.add("## Sets that contain the class", SETS_TEXT.format(len(streams), len(priced)))
    page.add(table(head, rows))
    add_sets_by_class(page, priced)


def add_sets_by_class(page: Report, names: Sequence[str]) -> None:
    """Add what sets with a threshold for each class cover."""
    least, sizes = [], []
    for name in names:
        run = run_of(name)
        covered = run.said.covered(0.9, by_class=True)
        counts = np.bincount(run.y)
        least += [covered[run.y == c].mean() for c in np.flatnonzero(counts >= 50)]
        sizes.append(run.said.sizes(0.9, by_class=True).mean())
    worst, size = float(min(least)), float(np.mean(sizes))
    page.add(
        f"With `by_class=True` at 90 %, the {len(least)} classes of 50 rows or more have a coverage"
        f" of at least {worst:.3f}, with a mean size of {size:.2f}."
    )
    page.check(f"by class, no class of 50 rows below {worst:.3f}, asked .80", worst >= 0.80)
    page.check(f"at a mean size of {size:.2f}, at most 2.5", size <= 2.5)


SETS_TEXT = """\
Over {} streams, a new class counted as a class of its own; sizes over the {} streams for which they
are asked: the users, all users, and the late orders of the others."""


# ---- many first rows ------------------------------------------------------------------------


def add_first_rows(page: Report) -> None:
    """Add the table of the streams of many first rows, and what it is to show."""
    rows, found = [], []
    for name in FIRST_ROWS:
        run = run_of(name)
        figures = figures_of_first_rows(run)
        sizes = [f"{len(run.y):,}", f"{run.is_new.sum():,}", f"{run.said.sizes(0.9).mean():.1f}"]
        rows.append([name, *sizes, *(f"{value:.4f}" for value in figures)])
        found.append(figures)
    head = ["", "rows", "classes", "mean size", "of the classes", "first rows", "coverage"]
    head += ["worst window", "calibration error", "of a new class"]
    page.add("## Streams of many first rows", FIRST_ROWS_TEXT, table(head, rows))
    parts, first, shares, windows, confidence, new = map(np.array, zip(*found, strict=True))
    least, most, on_each = shares.min(), shares.max(), f"on each of {len(found)} streams"
    page.check(
        f"first rows: {first.min():.3f} of the rows {on_each}, at least .15", min(first) >= 0.15
    )
    page.check(
        f"sets at 90%: {least:.4f} to {most:.4f}, asked .89 to .91", 0.89 <= least <= most <= 0.91
    )
    page.check(f"windows of 500 rows at least {windows.min():.3f}, asked .86", min(windows) >= 0.86)
    page.check(f"mean size {parts.max():.4f} of the classes known, at most .1", max(parts) <= 0.1)
    error, mean = confidence.max(), new.mean()
    page.check(f"calibration error of confidence {error:.4f} {on_each}, at most .03", error <= 0.03)
    page.check(
        f"of the probability of a new class {mean:.4f} on average, at most .03", mean <= 0.03
    )


def figures_of_first_rows(run: Run) -> tuple[float, ...]:
    """Return what sets at 90 % hold and how large they are, and two calibration errors.

    In the order of the table: mean size relative to the classes known by then, share of first rows,
    coverage, its worst window, calibration error of confidence, and of the probability of a new
    class.
    """
    covered, sizes = run.said.covered(0.9), run.said.sizes(0.9)
    known = np.cumsum(run.is_new) - run.is_new
    return (
        float(sizes.mean() / known.mean()),
        float(run.is_new.mean()),
        float(covered.mean()),
        worst_window(covered),
        binned_error(run.said.confidence[1:], run.right[1:]),
        binned_error(run.said.new[1:], run.is_new[1:]),
    )


FIRST_ROWS_TEXT = """\
Sets at 90 %, a new class counted as a class of its own, and the calibration errors of confidence
and of the probability of a new class. Mean sizes are relative to the classes known by then, on
average."""


# ---- costs ----------------------------------------------------------------------------------


def add_costs(page: Report, n_pairs: int) -> None:
    """Add what the estimates cost the default, in alternating pairs."""
    rows = []
    for name in ("20newsgroups", MERGED, "letter", "landsat"):
        is_dense = isinstance(stream_of(name).X, np.ndarray)
        for use in ("auto", "full") if is_dense else ("auto",):
            mean, upper = ratio(partial(learn, name, use), partial(learn, name, False), n_pairs)
            rows.append([f"{name}, {use}", f"{mean:.3f}", f"{upper:.3f}"])
            if use == "auto":
                page.check(f"time of the default on {name}: {mean:.3f}, at most 1.15", mean <= 1.15)
    page.add(
        "## Costs",
        "Processor time with estimates, relative to `uncertainty=False`: mean and upper 95 % limit "
        f"of {n_pairs} alternating pairs.",
        table(["", "mean", "upper limit"], rows),
    )


def learn(name: str, use: Any) -> None:
    """Learn a stream in batches of 1,000 rows."""
    X, y, model = stream_of(name).X, stream_of(name).y.tolist(), OnlineClassifier(uncertainty=use)
    for start in range(0, len(y), 1000):
        model.partial_fit(X[start : start + 1000], y[start : start + 1000])


def ratio(one: Callable[[], None], other: Callable[[], None], n_pairs: int) -> tuple[float, float]:
    """Return the mean ratio of the times of two calls, and its upper 95 % limit."""
    one()
    ratios = []
    for i in range(n_pairs):
        pair = (one, other) if i % 2 else (other, one)
        times = {call: seconds(call) for call in pair}  # the two are different objects
        ratios.append(times[one] / times[other])
    spread = np.std(ratios, ddof=1) / np.sqrt(n_pairs)
    return float(np.mean(ratios)), float(np.mean(ratios) + 1.96 * spread)


def seconds(call: Callable[[], None]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def main(arguments: Iterable[str] | None = None) -> int:
    """Run the study and write its page."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("--quick", action="store_true", help="four pairs for costs, no peers")
    options = parser.parse_args(None if arguments is None else list(arguments))
    folder = folder_of(parser, options, is_whole=not options.quick)
    page = Report("trust", "How far to trust the default", folder)
    users, first = list(USERS), [each.name for each in FIRST]
    others = [name for name in first if name not in users]
    texts = [each.name for each in SHOWN if each.kind == "text" and each.name not in users]
    dense = [e.name for e in SHOWN if e.kind == "dense" and e.name not in TWO_CLASSES]
    add_new(
        page,
        {
            "Enron users": (users, True),
            "all users": ([MERGED], True),
            "late text": ([f"late {name}" for name in texts], True),
            "late dense": ([f"late {name}" for name in dense], True),
            "late dense, full": ([f"late {name}" for name in dense], "full"),
        },
    )
    add_confidence(
        page,
        {
            "Enron users": users,
            "text": texts,
            "late text": [f"late {name}" for name in texts],
            "dense": dense,
            "late dense": [f"late {name}" for name in dense],
        },
    )
    ordered = [*first, *(f"late {name}" for name in first), MERGED]
    add_sets(page, ordered, [*users, MERGED, *(f"late {name}" for name in others)])
    add_first_rows(page)
    if not options.quick:
        add_peers(page, stream_of)
    add_costs(page, 4 if options.quick else 20)
    return page.write()


if __name__ == "__main__":
    sys.exit(main())

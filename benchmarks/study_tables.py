"""The tables of the page of the study of defaults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from candidates import CANDIDATES, DEFAULT, JUDGED, base_and_part, is_ensemble
from groups import Gain, chosen_without, gain_of, mean_over
from refitted import PEERS
from report import Report, table
from sets import GROUPS, RealSet
from study import KERNEL, TUNED, VW, Study, grouped, kinds, mean_of_both, names_of, scopes


def add_tables(
    page: Report, study: Study, sets: Sequence[RealSet], drifts: Sequence[RealSet]
) -> None:
    """Add every table to the page."""
    page.add("## Mistakes in % of rows", errors_table(study, sets))
    page.add("## Means against Vowpal Wabbit", means_table(study, sets))
    page.add("## Stronger peers: mistakes in %, and processor seconds", *peers_tables(study, sets))
    page.add("## Gain of each part", GAINS, gains_table(study, sets))
    page.add("## Learner chosen with a group left out", CHOICE, choice_table(study, sets))
    page.add("## Cost: processor time by kind of rows", costs_table(study, sets))
    if study.spread:
        page.add("## Random orders: mean and standard deviation", spread_table(study, sets))
    page.add("## Probabilities", PROBABILITIES, probabilities_table(study, sets))
    if study.guarantees:
        page.add("## Guarantees of ensembles", GUARANTEES, guarantees_table(study))
    if drifts:
        page.add("## Streams that drift by construction", DRIFT, drifts_table(study, drifts))


GAINS = """\
Geometric mean of the errors with the part, relative to those without it; below 1, the part gains.
In the column "left out", each group has the part only if it gains on the other groups."""

CHOICE = """\
Among all candidates but ensembles, the one with the smallest mean error on the other groups of the
same kind of rows, and its errors on the group, relative to Vowpal Wabbit's default and to ours."""

PROBABILITIES = """\
The expected calibration error (15 bins) and the mean log-loss, over rows of classes seen before.
Vowpal Wabbit's probabilities are those of `--loss_function logistic --probabilities`."""

GUARANTEES = """\
Mistakes and the sums of log-losses of the ensemble and of its best member, and the most that fixed
share allows on any rows (benchmarks/guarantees.py), in the order of each set."""

DRIFT = """\
river's generators (benchmarks/drifting.py), 10,000 rows each; in none of the means above."""


def cell(value: float | None, digits: int = 2) -> str:
    """Return a value as the cell of a table."""
    return "-" if value is None else f"{value:.{digits}f}"


# ---- errors and means -----------------------------------------------------------------------


def errors_table(study: Study, sets: Iterable[RealSet]) -> str:
    """Return the mistakes by set, with the p of McNemar's test against Vowpal Wabbit's default."""
    learners = [VW, TUNED, *JUDGED, KERNEL]
    header = ["set", "group", *learners, "published VW", "its best", "D3", "p"]
    rows = []
    for each in sets:
        figures = [cell(study.errors.get(learner, {}).get(each.name)) for learner in learners]
        known = each.published
        published = [known.default, known.tuned, known.fixed] if known else [None] * 3
        p = f"{study.p_values[each.name]:.1g}"
        rows.append([each.name, each.group, *figures, *map(cell, published), p])
    return table(header, rows)


def means_table(study: Study, sets: Sequence[RealSet]) -> str:
    """Return geometric means relative to Vowpal Wabbit's default and best, over both scopes."""
    header, parts = ["learner"], []
    for scope, within in scopes(sets).items():
        for kind, part in kinds(within).items():
            header.append(f"{kind}, {scope}")
            parts.append((VW, part))
        header.append(f"against its best, {scope}")
        parts.append((TUNED, within))
    learners = [*dict.fromkeys(name for found in CANDIDATES.values() for name in found), TUNED]
    rows = [
        [name, *(cell(study.mean(name, reference, part)) for reference, part in parts)]
        for name in learners
    ]
    return table(header, rows)


def spread_table(study: Study, sets: Iterable[RealSet]) -> str:
    """Return the mean and the standard deviation over random orders."""
    rows = [
        [each.name, *(around(found.get(each.name, [])) for found in study.spread.values())]
        for each in sets
    ]
    return table(["set", *study.spread], rows)


def around(values: Sequence[float]) -> str:
    """Return the mean and the standard deviation as a cell.

    Examples
    --------
    >>> around([1.0, 3.0]), around([])
    ('2.00 ± 1.00', '-')
    """
    return f"{np.mean(values):.2f} ± {np.std(values):.2f}" if values else "-"


# ---- stronger peers -------------------------------------------------------------------------


def peers_tables(study: Study, sets: Sequence[RealSet]) -> tuple[str, str]:
    """Return the mistakes and seconds of the stronger peers by set, and our means against them."""
    who = [*JUDGED, *PEERS]
    header = ["set", *who, *(f"{name}, s" for name in [DEFAULT, *PEERS])]
    rows = []
    for each in sets:
        errors = [cell(study.errors.get(name, {}).get(each.name)) for name in who]
        seconds = [study.seconds.get(name, {}).get(each.name) for name in [DEFAULT, *PEERS]]
        rows.append([each.name, *errors, *(cell(value, 3) for value in seconds)])
    means = []
    for peer in PEERS:
        for scope, within in scopes(sets).items():
            if part := study.run_by(peer, within):
                errors = [cell(study.mean(learner, peer, part), 3) for learner in JUDGED]
                lower = [str(study.n_lower(learner, peer, part)) for learner in JUDGED]
                times = [cell(study.ratio_of_times(learner, peer, part), 4) for learner in JUDGED]
                means.append([peer, f"{len(part)} of {scope}", *errors, *lower, *times])
    heading = [*JUDGED, *(f"{name}, fewer on" for name in JUDGED)]
    heading += [f"{name}, processor time" for name in JUDGED]
    return table(header, rows), table(["relative to", "sets", *heading], means)


# ---- parts and choices ----------------------------------------------------------------------


def gains(study: Study, sets: Sequence[RealSet]) -> list[tuple[str, str, str, Gain]]:
    """Return kind, part, name without it, and gain, of every part that is switched off."""
    found = []
    for kind, candidates in CANDIDATES.items():
        groups = grouped(each for each in sets if each.kind == kind)
        for name in candidates if groups else ():
            if pair := base_and_part(name):
                gain = gain_of(study.errors[pair[0]], study.errors[name], groups)
                found.append((kind, f"{pair[1]} of the {pair[0]}", name, gain))
    return found


def gains_table(study: Study, sets: Sequence[RealSet]) -> str:
    """Return the gain of each part over all sets of its kind, by group and where it is least."""
    header = ["part", "rows", "all", *GROUPS, "worst group", "left out", "us a row"]
    rows = []
    for kind, part, name, gain in gains(study, sets):
        within = [each for each in sets if each.kind == kind]
        base = study.microseconds(name.partition(" without ")[0], within)
        rest = study.microseconds(name, within)
        cost = None if base is None or rest is None else base - rest
        groups = [cell(gain.by_group.get(group), 3) for group in GROUPS]
        worst = f"{gain.worst} {gain.by_group[gain.worst]:.3f}"
        found = [cell(gain.overall, 3), *groups, worst, cell(gain.left_out, 3), cell(cost, 1)]
        rows.append([part, kind, *found])
    return table(header, rows)


def choice_table(study: Study, sets: Sequence[RealSet]) -> str:
    """Return for each group the learner chosen on the other groups, and its errors there."""
    rows = []
    for kind, candidates in CANDIDATES.items():
        groups = grouped(each for each in sets if each.kind == kind)
        among = {n: study.errors[n] for n in candidates if groups and not is_ensemble(n)}
        for group, chosen in chosen_without(among, groups).items():
            against = [
                mean_over(among[chosen], groups[group], study.errors[reference])
                for reference in (VW, DEFAULT)
            ]
            rows.append([group, kind, chosen, *(cell(value, 3) for value in against)])
    return table(["group left out", "rows", "chosen", "against VW", "against ours"], rows)


def costs_table(study: Study, sets: Sequence[RealSet]) -> str:
    """Return the processor seconds and microseconds a row of each candidate, by kind of rows."""
    parts = {kind: [each for each in sets if each.kind == kind] for kind in CANDIDATES}
    parts = {kind: part for kind, part in parts.items() if part}
    header = ["learner", *(f"{kind}, {unit}" for kind in parts for unit in ("s", "us a row"))]
    learners = [*dict.fromkeys(name for found in CANDIDATES.values() for name in found), *PEERS]
    rows = []
    for learner in learners:
        found = []
        for part in parts.values():
            seconds = study.seconds.get(learner, {})
            known = [seconds[name] for name in names_of(part) if name in seconds]
            found += [cell(sum(known), 2) if known else "-"]
            found += [cell(study.microseconds(learner, part), 1)]
        rows.append([learner, *found])
    return table(header, rows)


# ---- probabilities and drift ----------------------------------------------------------------


def probabilities_table(study: Study, sets: Sequence[RealSet]) -> str:
    """Return calibration errors and log-losses by set, and the mean log-loss against theirs."""
    learners = [*JUDGED, KERNEL, VW]
    header = ["set", *(f"{name}, calibration" for name in learners)]
    header += [f"{name}, log-loss" for name in learners]
    rows = []
    for each in sets:
        found = [
            cell(figures.get(learner, {}).get(each.name), 3)
            for figures in (study.calibration, study.log_loss)
            for learner in learners
        ]
        rows.append([each.name, *found])
    for scope, part in scopes(sets).items():
        names = names_of(part)
        ratios = [mean_of_both(study.log_loss, learner, VW, names) for learner in learners]
        rows.append([f"against VW, {scope}", *["-"] * len(learners), *(cell(r, 3) for r in ratios)])
    return table(header, rows)


def guarantees_table(study: Study) -> str:
    """Return the mistakes and log-losses of ensembles, and the most that is guaranteed."""
    header = ["run", "mistakes", "best member", "at most", "log-loss", "best member", "at most"]
    rows = [
        [
            each.run,
            *map(str, (each.mistakes, each.mistakes_of_best)),
            *map(cell, (each.most_mistakes, each.loss, each.loss_of_best, each.most_loss)),
        ]
        for each in study.guarantees
        if each.order == 0
    ]
    return table(header, rows)


def drifts_table(study: Study, drifts: Iterable[RealSet]) -> str:
    """Return the mistakes on streams that drift by construction."""
    drifts = list(drifts)
    who = [*JUDGED, *(peer for peer in PEERS if study.run_by(peer, drifts))]
    rows = [
        [each.name, *(cell(study.errors[name].get(each.name)) for name in who)] for each in drifts
    ]
    return table(["stream", *who], rows)

"""What candidates for the default gain on the sets of the study: a command for choosing.

    python benchmarks/choosing.py --settings "with RBF" ... [--groups tiny ...]
                                  [--sets iris ...] [--orders 3] [--rows 5000]

Each candidate of benchmarks/candidates.py learns the first rows of each set in the set's own order
and in random ones; streams that drift keep their order. Printed are the mistakes of the default in
% of rows, and the mistakes of each candidate relative to the default: on each set, and as geometric
means by group and over all sets. In the row "left out", each group has the candidate only if it
gains on the other groups; the last lines name the learner that the other groups would choose. Sets
that a candidate refuses or is not for have "-".
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from candidates import CHOICES, DEFAULT, Make
from groups import chosen_without, gain_of
from judging import Errors
from kesler import KeslerError, progressive_validate
from sets import GROUPS, SETS, STREAMS, RealSet, Stream
from study import grouped

LEAST_MISTAKES = 0.5
"""Counted in place of none, whose ratios have no logarithm."""


def main() -> None:
    """Run the candidates and print what they gain."""
    arguments = parse()
    errors: dict[str, dict[str, float]] = {name: {} for name in (DEFAULT, *arguments.settings)}
    print(row_of("set", ["default", *arguments.settings]))
    sets = asked_for(arguments)
    for each in sets:
        run_set(errors, each, arguments.orders, arguments.rows)
    print_gains(errors, grouped(sets))


def parse() -> argparse.Namespace:
    """Read the command line."""
    names = sorted({name for found in CHOICES.values() for name in found} - {DEFAULT})
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", nargs="+", required=True, choices=names, metavar="NAME")
    parser.add_argument("--sets", nargs="+", choices=[s.name for s in SETS], help="only these")
    parser.add_argument("--groups", nargs="+", choices=GROUPS, help="only sets of these groups")
    parser.add_argument("--orders", type=int, default=3, help="random orders (default 3)")
    parser.add_argument("--rows", type=int, default=5000, help="rows of a set (default 5000)")
    return parser.parse_args()


def asked_for(arguments: argparse.Namespace) -> list[RealSet]:
    """Return the sets that were asked for and have one of the candidates."""
    return [
        each
        for each in SETS
        if not arguments.sets or each.name in arguments.sets
        if not arguments.groups or each.group in arguments.groups
        if not CHOICES[each.kind].keys().isdisjoint(arguments.settings)
    ]


def run_set(errors: dict[str, dict[str, float]], each: RealSet, orders: int, n_rows: int) -> None:
    """Run the candidates for the kind of a set, and print their mistakes."""
    stream = each.stream()
    reordered = range(1, 1 + orders if each.group != STREAMS else 1)
    streams = [stream.head(n_rows), *(stream.reordered(i).head(n_rows) for i in reordered)]
    for name in errors:
        if make := CHOICES[each.kind].get(name):
            try:
                errors[name][each.name] = float(np.mean([error_of(make, rows) for rows in streams]))
            except KeslerError as error:
                print(f"{name!r} refuses {each.name}: {error}")
    default = errors[DEFAULT][each.name]
    ratios = [ratio_of(found.get(each.name), default) for found in errors.values()]
    print(row_of(each.name, [f"{default:.2f}", *ratios[1:]]), flush=True)


def error_of(make: Make, rows: Stream) -> float:
    """Return the mistakes of a candidate in % of rows."""
    n_wrong = np.count_nonzero(progressive_validate(make(), rows.X, rows.y).wrong)
    return 100 * max(LEAST_MISTAKES, int(n_wrong)) / len(rows.y)


def ratio_of(error: float | None, default: float) -> str:
    """Return an error relative to that of the default, or "-" if there is none."""
    return "-" if error is None else f"{error / default:.3f}"


def print_gains(errors: dict[str, dict[str, float]], groups: dict[str, list[str]]) -> None:
    """Print the geometric means, and the choice with each group left out."""
    gains = [gain_of(found, errors[DEFAULT], groups) for found in errors.values()]
    for group in groups:
        print(row_of(group, [mean_of(gain.by_group.get(group)) for gain in gains]))
    print(row_of("all", [mean_of(gain.overall) for gain in gains]))
    print(row_of("left out", [mean_of(gain.left_out) for gain in gains]))
    for group, chosen in chosen_without(on_all_sets(errors), groups).items():
        print(f"without {group}: {chosen}")


def on_all_sets(errors: dict[str, dict[str, float]]) -> dict[str, Errors]:
    """Return the errors of the learners that ran on every set; others cannot be chosen."""
    return {name: found for name, found in errors.items() if len(found) == len(errors[DEFAULT])}


def mean_of(gain: float | None) -> str:
    """Return a geometric mean, or "-" if there is none."""
    return "-" if gain is None else f"{gain:.3f}"


def row_of(name: str, cells: Sequence[str]) -> str:
    """Return a line of the table."""
    return " | ".join([f"{name:24}", *(f"{cell:>8}" for cell in cells)])


if __name__ == "__main__":
    main()

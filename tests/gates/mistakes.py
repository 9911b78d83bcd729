"""The accuracy gate: mistakes on the first rows of 23 real sets, held in `mistakes.tsv`.

    python tests/gates/mistakes.py                   # prints what changed, exits 1 if anything did
    python tests/gates/mistakes.py --write "why"     # writes the figures and the reason

Runs are equal bit for bit, so that figures are compared exactly. A figure that changes needs a line
that says why: the last of these lines bears the digest of the figures, which `--write` computes,
so that a figure edited by hand, or without a reason, is found out.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path

from learners import LEARNERS, N_ROWS, NAMES, rows_of, run

FILE = Path(__file__).parent / "mistakes.tsv"
HEADING = f"""\
# Mistakes in progressive validation of the first {N_ROWS:,} rows of FIRST in benchmarks/sets.py,
# in the order in which the benchmark learns them. The first row of a class is no mistake.
# Made by `python tests/gates/mistakes.py --write "why"`, which adds a line to the reasons below."""
WHY = "why"
SHORTEST_REASON = 10

Figures = dict[str, dict[str, int]]
"""Mistakes by set and learner."""


@dataclass(frozen=True)
class Gate:
    """What the file holds.

    Parameters
    ----------
    figures : mapping of set to mistakes by learner
    n_rows : mapping of set to rows
    reasons : list of (digest of the figures that it led to, sentence)
    """

    figures: Figures
    n_rows: dict[str, int]
    reasons: list[tuple[str, str]]


def read() -> Gate:
    """Read the file; a line that is not understood is an error."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    cells = [line.split("\t") for line in lines if line and not line.startswith("#")]
    reasons = [(digest, sentence) for _, digest, sentence in (c for c in cells if c[0] == WHY)]
    heading, *rows = [c for c in cells if c[0] != WHY]
    figures = {
        name: dict(zip(heading[2:], map(int, found), strict=True)) for name, _, *found in rows
    }
    return Gate(figures, {name: int(n) for name, n, *_ in rows}, reasons)


def digest(figures: Figures) -> str:
    """Return what the last reason must bear."""
    lines = [f"{name} {learner} {n}" for name in figures for learner, n in figures[name].items()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def measured(name: str) -> dict[str, int]:
    """Return the mistakes of each learner on a set."""
    return {learner: int(run(name, learner)[1].n_mistakes) for learner in LEARNERS}


def changes(now: Figures, before: Figures) -> list[str]:
    """Return a phrase for each figure that is not as before."""
    return [
        f"{name} {learner} {before.get(name, {}).get(learner, 'none')} to {n}"
        for name in now
        for learner, n in now[name].items()
        if before.get(name, {}).get(learner) != n
    ]


def write(now: Figures, reason: str) -> None:
    """Write the figures, and after the reasons so far one more."""
    before = read() if FILE.exists() else Gate({}, {}, [])
    changed = changes(now, before.figures)
    if not changed:
        print("no figure changed, so there is nothing to write")
        return
    what = f"{', '.join(changed)}: " if before.figures and len(changed) <= len(LEARNERS) else ""
    heading = "\t".join(["set", "rows", *LEARNERS])
    rows = [
        "\t".join([name, str(len(rows_of(name).y)), *map(str, found.values())])
        for name, found in now.items()
    ]
    reasons = [*before.reasons, (digest(now), f"{what}{reason}")]
    whys = ["\t".join([WHY, *each]) for each in reasons]
    FILE.write_text("\n".join([HEADING, heading, *rows, *whys]) + "\n", encoding="utf-8")


def main() -> int:
    """Compare, or write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", metavar="WHY", help="write the figures, and why they changed")
    reason = parser.parse_args().write
    if reason is not None and len(reason) < SHORTEST_REASON:
        parser.error("say in a sentence why the figures changed")
    now = {name: measured(name) for name in NAMES}
    if reason is not None:
        write(now, reason)
        return 0
    changed = changes(now, read().figures)
    print("\n".join(changed) or "no figure changed")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Mistakes, time and memory of one pass with up to 350,000 classes, compared with the peers.

    KESLER_DATA=... python benchmarks/many_classes.py [--quick] [--sets wordnet places ...]

Texts are learnt one by one, in calls of 250, each predicted before. Errors are the share in % of
all rows that are predicted wrongly though their class had a row before. Kesler has nothing chosen
and does not know the classes beforehand: beyond 128 classes, a row is compared with 64 candidates;
"candidates" is the share in % of the rows of known classes whose class was one of them. "All
classes" compares every row with all of them, with hundreds of classes on the first 3,000 rows only,
where it takes gigabytes already; PA-I moves the weights of two classes for a row.

Vowpal Wabbit and scikit-learn know the number of classes. Vowpal Wabbit reads words, with their
runs of 3 and 4 characters but on WordNet and languages; one-against-all has the squared loss, on
WordNet the hinge loss. Of words, words with pairs of words (WordNet), words with runs, and both
losses, these make the fewest mistakes on the first 6,000 to 15,000 rows. Its table has 2^28 places,
with one-against-all 2^30, since on all of WordNet collisions make 55.9 % of mistakes with 2^28 and
54.7 % with 2^29; memory shows the places that were used. `--recall_tree` and `--plt` have their
usual settings, and the time does not count that its file is written from the texts. The naive Bayes
of scikit-learn (`MultinomialNB`, alpha 0.01) learns words hashed to 2^14 columns, 100 rows at a
time, since each call computes all of its table anew; with thousands of classes it is run on 3,000
rows only. fastText and napkinXC are not run: neither learns from a stream.

Zipf's rows are synthetic: 20 words out of 2^18, 8 of them from the 30 words of the class, with 7
classes for every 20 rows, whose frequencies are inverse to their ranks.

Each pass is in a process of its own, on one thread, after an untimed one over 1,000 rows where
loops are compiled; times are of the processor. MB is the peak memory of the process with its rows,
which has grown by what the next column says. A row's time is measured while 1,500 to 2,500 and
19,500 to 20,500 classes are known; the ratio is that of the last to the median of all passes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median

import many_classes_learners
from many_classes_learners import (
    ALL_CLASSES,
    KESLER,
    NAIVE_BAYES,
    OAA,
    PA1,
    PACKAGES,
    PLT,
    RECALL_TREE,
    Found,
)
from many_classes_streams import SOURCES, ZIPF, is_available
from racing import Race, command_line, installed_version, table

VW = (OAA, PLT, RECALL_TREE)
ALL = 0
RUNS: dict[str, dict[int, tuple[str, ...]]] = {
    "wordnet": {
        3_000: (KESLER, ALL_CLASSES, NAIVE_BAYES),
        12_000: (KESLER, PA1, *VW),
        30_000: (KESLER, PA1, *VW),
        ALL: (KESLER, PA1, *VW),
    },
    "places": {ALL: (KESLER, PA1, *VW)},
    "clinc150": {ALL: (KESLER, ALL_CLASSES, *VW, NAIVE_BAYES)},
    "banking77": {ALL: (KESLER, *VW, NAIVE_BAYES)},
    "udhr": {3_000: (KESLER, ALL_CLASSES), ALL: (KESLER, *VW, NAIVE_BAYES)},
    ZIPF: {1_000_000: (KESLER,)},
}
"""The learners by set and number of rows."""
QUICK, QUICK_ZIPF = 3_000, 30_000

MOST_AT_12_000, MOST_OF_PEERS = 31.5, 0.93
FEWEST_ROWS, MEGABYTES = 5_000, {"wordnet": 400, "places": 1_000}
MOST_GROWTH = 1.5
ZIPF_MEGABYTES, ZIPF_ROWS = 4_000, 3_000
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def main() -> int:
    """Run all passes and write the results."""
    arguments = parse()
    missing = [name for name in arguments.sets if not is_available(name)]
    if missing and not arguments.quick:
        sys.exit(f"KESLER_DATA must name a folder with the sets {', '.join(missing)}")
    race = Race("many_classes", "Many classes", __doc__, arguments)
    race.clock = "processor"
    if missing:
        race.add(f"Without KESLER_DATA, these are skipped: {', '.join(missing)}.")
    found = {
        name: run_set(race, name, arguments.kept) for name in arguments.sets if name not in missing
    }
    check(race, found)
    return race.write()


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = command_line(__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(RUNS), default=list(RUNS), help="these")
    parser.add_argument("--kept", type=Path, help="folder of finished passes, not run again")
    return parser.parse_args()


# ---- all passes ---------------------------------------------------------------------------------


def run_set(race: Race, name: str, kept: Path | None) -> dict[tuple[int, str], Found]:
    """Run the passes over a set, and add a table of them."""
    sizes: Mapping[int, Iterable[str]] = RUNS[name]
    if race.is_quick:
        sizes = {QUICK_ZIPF if name == ZIPF else QUICK: [*sizes.values()][-1]}
    found = {}
    for n_rows, learners in sizes.items():
        for learner in learners:
            if is_installed(race, learner):
                each, is_kept = run_apart(name, n_rows, learner, kept)
                race.start -= is_kept * each["wall"]
                found[n_rows, learner] = each
    race.runs[name] = {f"{n}: {learner}": each for (n, learner), each in found.items()}
    title = "Zipf's rows" if name == ZIPF else SOURCES[name].title
    race.add(f"### {title}", table_of(found))
    return found


def is_installed(race: Race, learner: str) -> bool:
    """Return whether the package of a learner is installed; store its version."""
    package = PACKAGES.get(learner)
    if package is None:
        return True
    version = installed_version(package)
    race.peers[package] = version or "not installed"
    return version is not None


def run_apart(name: str, n_rows: int, learner: str, kept: Path | None) -> tuple[Found, bool]:
    """Make one pass in a separate process; return its figures, and whether they were kept."""
    file = kept and kept / f"{name}-{n_rows}-{learner.replace(' ', '')}.json"
    if file and file.exists():
        return dict(json.loads(file.read_text(encoding="utf-8"))), True
    run = subprocess.run(
        [sys.executable, many_classes_learners.__file__, name, str(n_rows), learner],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | ONE_THREAD,
    )
    if run.returncode:
        sys.exit(f"{name}, {n_rows:,} rows, {learner}: {run.stderr}")
    text = run.stdout.splitlines()[-1]
    print(name, n_rows, learner, text, flush=True)
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return dict(json.loads(text)), False


def table_of(found: Mapping[tuple[int, str], Found]) -> str:
    """Return the table of the passes over a set."""
    header = [
        *("learner", "rows", "classes", "processor, s", "rows/s", "MB", "grown by", "error %"),
        *("errors / kesler's", "candidates %", "us a row, 2,000 classes", "20,000 classes"),
    ]
    rows = []
    for (n_rows, learner), each in found.items():
        near, recall = each.get("near", {}), each.get("recall")
        rows.append(
            [
                *(learner, f"{each['rows']:,}", f"{each['classes']:,}", f"{each['processor']:.3g}"),
                f"{each['rows'] / each['processor']:,.0f}",
                *(f"{each['megabytes']:,.0f}", f"{each['grown']:,.0f}", f"{each['error']:.2f}"),
                f"{each['error'] / found[n_rows, KESLER]['error']:.3f}",
                "-" if recall is None else f"{recall:.1f}",
                *(f"{near[n]:.0f}" if n in near else "-" for n in ("2000", "20000")),
            ]
        )
    return table(header, rows)


def check(race: Race, found: Mapping[str, Mapping[tuple[int, str], Found]]) -> None:
    """Check the targets of the sets that have run whole."""
    if race.is_quick:
        return
    for name, most in MEGABYTES.items():
        if name in found:
            ours = found[name][ALL, KESLER]
            race.at_least(f"{name}: rows/s", rate(ours), FEWEST_ROWS)
            race.at_most(f"{name}: MB", ours["megabytes"], most)
            peers = [found[name][ALL, each]["error"] for each in VW if (ALL, each) in found[name]]
            if peers:
                claim = f"{name}: errors relative to those of the best peer"
                race.at_most(claim, ours["error"] / min(peers), MOST_OF_PEERS)
    if "wordnet" in found:
        few, ours = found["wordnet"][12_000, KESLER], found["wordnet"][ALL, KESLER]
        race.at_most("wordnet, 12,000 rows: error %", few["error"], MOST_AT_12_000)
        # All passes learn the same first rows: one pass alone would vary by a tenth.
        few_classes = [
            each["near"]["2000"]
            for (_, learner), each in found["wordnet"].items()
            if learner == KESLER
        ]
        growth = ours["near"]["20000"] / median(few_classes)
        race.at_most("wordnet: time of a row, 20,000 / 2,000 classes", growth, MOST_GROWTH)
    if ZIPF in found:
        ours = next(iter(found[ZIPF].values()))
        race.at_most("Zipf's rows: MB", ours["megabytes"], ZIPF_MEGABYTES)
        race.at_least("Zipf's rows: rows/s", rate(ours), ZIPF_ROWS)


def rate(found: Found) -> float:
    """Return the rows per second of processor time."""
    return float(found["rows"] / found["processor"])


if __name__ == "__main__":
    sys.exit(main())

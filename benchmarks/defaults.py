"""Mistakes of the default learner on 61 real sets, compared with Vowpal Wabbit and other peers.

    python benchmarks/defaults.py [--sets beck-s letter ...] [--orders 5] [--results FOLDER]

Each learner makes one pass over each set and predicts each row before it learns it. Errors are the
share in % of wrong predictions among all rows; the first row of a class is not counted. Kesler has
no prior knowledge of the classes or their number. It is given texts as strings, and tables as
dictionaries of numbers and strings; the peers are given counts or TF-IDF of the same texts, and one
column for each category. Means are geometric, over the 23 sets that the first defaults were chosen
on, the 30 sets of the first studies, and all sets; measurements include tables. The runs of Vowpal
Wabbit are stored in benchmarks/results/vw.json, and those of the refitted models and the forest in
peers.json (benchmarks/refitted.py), so that neither a new run nor the packages are needed.
Processor times are of one thread or of the threads of an ensemble together, without loading the
compiled code; those of the stored runs were taken on a busy machine of the same kind, and can be
off by a factor of 1.5. The script writes benchmarks/results/defaults.md and .json, or those of
another folder, and exits with 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from candidates import CANDIDATES, DEFAULT, JUDGED, Make
from drifting import DRIFTS
from guarantees import guarantee_of
from judging import mcnemar
from kesler import KeslerError, OnlineClassifier, progressive_validate
from kesler.evaluation.results import ProgressiveResult
from peer import DEFAULT as UNTUNED
from peer import SETTINGS, KeptRuns
from refitted import PEERS, KeptPeers
from report import Report
from script_arguments import script_parser
from sets import SETS, RealSet, Stream
from study import KERNEL, TUNED, VW, Study
from study_tables import add_tables
from targets import KERNEL_TARGETS, all_targets

RESULTS = Path(__file__).parent / "results"
N_ORDERS = 5
KERNEL_ROWS = 10_000
"""The rows of MNIST for the kernel."""

WARM_ROWS = 300
"""The rows that a learner learns beforehand, to load the compiled code."""

SHORT, REPEATS = 0.25, 3
"""Runs of less than this many seconds are repeated, and the shortest one counts."""


def main() -> int:
    """Run the study and write the page."""
    arguments = parse()
    if "KESLER_DATA" not in os.environ:
        print("KESLER_DATA is not set: sets that are not available without it are skipped.")
    sets = [each for each in SETS if not arguments.sets or each.name in arguments.sets]
    drifts = [] if arguments.sets else list(DRIFTS)
    page = Report("defaults", "The default learner on real sets", arguments.results)
    study, runs = Study(), KeptRuns(RESULTS / "vw.json")
    read = [each for each in sets if run_set(study, each, runs, arguments.orders)]
    drifted = [each for each in drifts if run_drift(study, each)]
    return write(page, study, read, drifted, runs) if read else 1


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument(
        "--sets", nargs="+", choices=[each.name for each in SETS], help="only these"
    )
    parser.add_argument("--orders", type=int, default=N_ORDERS, help="random orders (default 5)")
    return parser.parse_args()


# ---- runs -----------------------------------------------------------------------------------


def run_set(study: Study, each: RealSet, runs: KeptRuns, n_orders: int) -> bool:
    """Run every learner on a set, in its order and in random ones; False if it is skipped."""
    try:
        stream = each.stream()
    except KeslerError as error:
        print(f"{each.name} is skipped: {error}")
        return False
    theirs = runs.get(each.name, stream, 0, SETTINGS)
    if theirs is None:
        print(f"{each.name} is skipped: Vowpal Wabbit has no stored runs, and is not installed")
        return False
    for learner, make in CANDIDATES[each.kind].items():
        result = run_ours(study, learner, make, each.name, stream)
        if learner == DEFAULT:
            study.p_values[each.name] = mcnemar(np.asarray(result.wrong), theirs[UNTUNED])
    best = min(theirs, key=lambda setting: theirs[setting].sum())
    study.note(VW, each.name, theirs[UNTUNED])
    study.note(TUNED, each.name, theirs[best])
    if found := runs.probabilities(each.name, stream):
        study.note_probabilities(VW, each.name, **found)
    reorder(study, each, stream, runs, best, n_orders)
    note_peers(study, each.name, len(stream.y))
    if each.name in KERNEL_TARGETS:
        rows = stream.head(KERNEL_ROWS) if each.name == "mnist" else stream
        run_ours(study, KERNEL, lambda: OnlineClassifier(kernel="rbf"), each.name, rows)
    show(study, each.name)
    return True


def reorder(
    study: Study, each: RealSet, stream: Stream, runs: KeptRuns, best: str, n_orders: int
) -> None:
    """Run the judged learners in random orders, beside Vowpal Wabbit."""
    for order in range(1, n_orders + 1):
        rows = stream.reordered(order)
        for learner in JUDGED:
            model = CANDIDATES[each.kind][learner]()
            result = progressive_validate(model, rows.X, rows.y)
            study.note(learner, each.name, np.asarray(result.wrong), order)
            note_guarantee(study, learner, each.name, order, model, result)
        peers = runs.get(each.name, rows, order, dict.fromkeys([UNTUNED, best]))
        if peers:
            study.note(VW, each.name, peers[UNTUNED], order)
            study.note(TUNED, each.name, peers[best], order)


def run_drift(study: Study, each: RealSet) -> bool:
    """Run the judged learners on a stream that drifts by construction; False if it is skipped."""
    try:
        stream = each.stream()
    except KeslerError as error:
        print(f"{each.name} is skipped: {error}")
        return False
    for learner in JUDGED:
        run_ours(study, learner, CANDIDATES[each.kind][learner], each.name, stream)
    note_peers(study, each.name, len(stream.y))
    show(study, each.name)
    return True


def run_ours(
    study: Study, learner: str, make: Make, name: str, stream: Stream
) -> ProgressiveResult:
    """Run one of our learners and store its errors and its processor time."""
    warm = stream.head(WARM_ROWS)
    progressive_validate(make(), warm.X, warm.y)
    model = make()
    result, seconds = timed(model, stream)
    if seconds < SHORT:
        seconds = min(seconds, *(timed(make(), stream)[1] for _ in range(REPEATS - 1)))
    study.note_result(learner, name, result, seconds)
    note_guarantee(study, learner, name, 0, model, result)
    return result


def note_guarantee(
    study: Study,
    learner: str,
    name: str,
    order: int,
    model: OnlineClassifier,
    result: ProgressiveResult,
) -> None:
    """Store what is guaranteed of a run, if it is one of an ensemble."""
    if found := guarantee_of(learner, name, order, model, result):
        study.guarantees.append(found)


def timed(model: OnlineClassifier, stream: Stream) -> tuple[ProgressiveResult, float]:
    """Run one of our learners; return the result and the processor time."""
    gc.disable()  # the collector would go through the objects of earlier runs
    start = time.process_time()
    result = progressive_validate(model, stream.X, stream.y)
    seconds = time.process_time() - start
    gc.enable()
    return result, seconds


def note_peers(study: Study, name: str, n_rows: int) -> None:
    """Add the stored runs of the stronger peers."""
    kept = KeptPeers()
    for peer in PEERS:
        if run := kept.get(peer, name, n_rows):
            study.note(peer, name, run.wrong)
            study.note_seconds(peer, name, run.seconds)


def show(study: Study, name: str) -> None:
    """Print the errors on a set."""
    found = {who: errors[name] for who, errors in study.errors.items() if name in errors}
    print(name, {who: round(error, 2) for who, error in found.items()}, flush=True)


# ---- the page -------------------------------------------------------------------------------


def write(
    page: Report,
    study: Study,
    sets: Sequence[RealSet],
    drifts: Sequence[RealSet],
    runs: KeptRuns,
) -> int:
    """Write the page and the figures; return the exit code."""
    page.add(__doc__.split("\n\n", 2)[2].strip())
    versions = ", ".join([f"Vowpal Wabbit {runs.version}", *KeptPeers().versions])
    page.add(f"Stored runs: {versions}. Vowpal Wabbit was run with {len(SETTINGS)} settings.")
    add_tables(page, study, sets, drifts)
    for claim, holds in all_targets(study, sets):
        page.check(claim, holds)
    page.folder.mkdir(exist_ok=True)
    figures = json.dumps(study.stored(), indent=1) + "\n"
    (page.folder / "defaults.json").write_text(figures, encoding="utf-8")
    return page.write()


if __name__ == "__main__":
    sys.exit(main())

"""Time and memory of one pass with many classes, where a table of weights would not fit.

    python benchmarks/many_classes.py [--quick] [--sizes ...]

PA-I with one hypothesis per class, without prior knowledge of the classes or their number, runs on
text-like rows of about 80 words out of 2^18. Nearly every row updates the weights, since with five
rows per class few can be predicted. Each size runs in a separate process, which reports by how much
its memory grew beyond that of the rows, the number of nonzero weights, and its time. A table takes
4 bytes per feature and class, and Vowpal Wabbit's `--oaa` at least as many: 19.5 GiB at 20,000
classes, 342 GiB at 350,000; it is not run. At 2,000 classes a table fits: the same rows are also
learnt with one, and every prediction must be the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import zlib
from contextlib import suppress
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

from kesler.online.blocks import learn_rows

sys.path.append(str(Path(__file__).parents[1] / "papers"))

BLOCK = 4096
FEATURES = 1 << 18
MEGABYTE = 1e6
# Classes, rows, the most megabytes, the fewest rows per second.
TARGETS = {20_000: (100_000, 200, 5000), 350_000: (1_000_000, 4000, 0)}
BOTH_FIT = (2_000, 100_000)
GROWTH = (1_000, 4_000, 16_000, 64_000)
GROWTH_ROWS = 20_000


def main() -> int:
    """Run every size and write the results."""
    arguments = parse()
    if arguments.child:
        print(json.dumps(learn(arguments.classes, arguments.rows, whole=arguments.whole)))
        return 0
    return compare(arguments)


def parse() -> argparse.Namespace:
    """Read the command line."""
    from racing import command_line

    parser = command_line(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of classes to run")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--classes", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--whole", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


# ---- one size, in a separate process ------------------------------------------------------------


def learn(n_classes: int, n_rows: int, *, whole: bool) -> dict[str, Any]:
    """Learn a stream once; return its time, memory and mistakes."""
    from kesler import OnlineClassifier
    from kesler.data.rows import Rows
    from kesler.learner import state
    from text_stream import make_text_stream

    X, y = make_text_stream(n_rows, n_classes)
    rows, labels = Rows.from_sparse(X), y.tolist()
    most = state.LARGEST_TABLE
    for state.LARGEST_TABLE in (0, 1 << 62):  # compiles, or loads from the cache, both
        learn_rows(OnlineClassifier("multi", update="pa1"), rows[:200], labels[:200])
    if not whole:
        state.LARGEST_TABLE = most
    model, checksum, wrong = OnlineClassifier("multi", update="pa1"), 0, 0
    before, wall, start = memory_now(), time.perf_counter(), time.process_time()
    for first in range(0, n_rows, BLOCK):
        some = slice(first, first + BLOCK)
        predicted, codes = learn_rows(model, rows[some], labels[some])
        checksum = zlib.crc32(predicted.tobytes(), checksum)
        wrong += int((predicted != codes).sum())
    return {
        "wall": time.perf_counter() - wall,
        "processor": time.process_time() - start,
        "megabytes": peak_memory() - before,
        "weights": n_weights(model),
        "error": wrong / n_rows,
        "classes": model.n_known_,
        "sparse": model.keeps_sparse_rows_,
        "predictions": checksum,
    }


def memory_now() -> float:
    """Return the memory of this process in megabytes, and reset the record of its peak."""
    with suppress(OSError):  # Linux only; elsewhere an earlier peak may hide later ones
        Path("/proc/self/clear_refs").write_text("5")
        return status_entry("VmRSS")
    return peak_memory()


def peak_memory() -> float:
    """Return the peak memory of this process in megabytes."""
    with suppress(OSError):
        return status_entry("VmHWM")
    return getrusage(RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE


def status_entry(entry: str) -> float:
    """Return an entry of the status of this process in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith(f"{entry}:"))
    return int(kilobytes) * 1024 / MEGABYTE


def n_weights(model: Any) -> int:
    """Return the number of nonzero weights, 0 for a table."""
    return int(model._learner.hypothesis_weights()[0].nnz) if model.keeps_sparse_rows_ else 0


# ---- all sizes ----------------------------------------------------------------------------------


def compare(arguments: argparse.Namespace) -> int:
    """Run the sizes, each in a process, and check the targets."""
    from racing import Race
    from report import table

    race = Race("many_classes", "Many classes", __doc__, arguments)
    chosen = arguments.sizes or ([20_000] if arguments.quick else list(TARGETS))
    lines = []
    for n_classes in chosen:
        n_rows, most, fewest = TARGETS[n_classes]
        n_rows = n_rows // 5 if arguments.quick else n_rows
        found = run_apart(n_classes, n_rows)
        race.runs[f"{n_classes}"] = found
        lines.append(line_of(n_classes, n_rows, found))
        name = f"{n_classes:,} classes, {n_rows:,} rows"
        race.at_most(f"{name}: megabytes", found["megabytes"], most)
        if fewest:
            race.at_least(f"{name}: rows/s", n_rows / found[arguments.clock], fewest)
    n_classes, n_rows = BOTH_FIT[0], BOTH_FIT[1] // (5 if arguments.quick else 1)
    ours, table_ = run_apart(n_classes, n_rows), run_apart(n_classes, n_rows, whole=True)
    race.runs["both fit"] = {"sparse": ours, "table": table_}
    lines += [line_of(n_classes, n_rows, ours), line_of(n_classes, n_rows, table_)]
    same = ours["sparse"] and not table_["sparse"] and ours["predictions"] == table_["predictions"]
    race.check(f"{n_classes:,} classes: the predictions equal those with a table", bool(same))
    header = ["classes", "rows", "stored in", "weights", "MB", "MB as table", "wall, s", "rows/s"]
    race.add(table([*header, "rows/s of processor time", "error %"], lines))
    if not arguments.quick:
        grow(race, arguments.clock)
    return race.write()


def grow(race: Any, clock: str) -> None:
    """Show how the time grows with the classes."""
    from racing import exponent
    from report import table

    seconds = [run_apart(n_classes, GROWTH_ROWS)[clock] for n_classes in GROWTH]
    cells = [f"{n:,}: {second:.3g}" for n, second in zip(GROWTH, seconds, strict=True)]
    found = exponent(GROWTH, seconds)
    header = ["what grows", *(f"size {i + 1}: s" for i in range(len(GROWTH))), "exponent"]
    race.add(f"### {GROWTH_ROWS:,} rows", table(header, [["classes", *cells, f"{found:.2f}"]]))


def run_apart(n_classes: int, n_rows: int, *, whole: bool = False) -> dict[str, Any]:
    """Run one size in a separate process."""
    command = [sys.executable, __file__, "--child", f"--classes={n_classes}", f"--rows={n_rows}"]
    run = subprocess.run(
        [*command, *["--whole"] * whole], capture_output=True, text=True, check=False
    )
    if run.returncode:
        sys.exit(f"{n_classes:,} classes: {run.stderr}")
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def line_of(n_classes: int, n_rows: int, found: dict[str, Any]) -> list[str]:
    """Return a row of the table of sizes."""
    return [
        f"{n_classes:,}",
        f"{n_rows:,}",
        "sparse rows" if found["sparse"] else "a table",
        f"{found['weights']:,}" if found["sparse"] else "-",
        f"{found['megabytes']:,.0f}",
        f"{4 * FEATURES * found['classes'] / MEGABYTE:,.0f}",
        f"{found['wall']:.3g}",
        f"{n_rows / found['wall']:,.0f}",
        f"{n_rows / found['processor']:,.0f}",
        f"{100 * found['error']:.2f}",
    ]


if __name__ == "__main__":
    sys.exit(main())

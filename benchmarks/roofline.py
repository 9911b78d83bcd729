"""Time of PA-I, compared with the same algorithm in C++ and with the limits of the machine.

    python benchmarks/roofline.py [--quick] [--cpu haswell]

The trials of PA-I run with one hypothesis per class on rows in memory: in our kernel, and in
`benchmarks/pa1.cpp`, which is compiled with g++ -O3 for the same processor. Both have the same
float32 weights by feature, and make the same mistakes. Both calibrate their scores as probabilities
on each row, to the same temperature; a third contestant, in C++, does not, and shows the cost of
the calibration. The pages of the weights are touched beforehand. The trial of a row reads the
weights of all classes for each of its words, and writes those of two classes; it multiplies and
adds once per weight read. The limits of the machine are measured in the same run: the bandwidth of
a triad a = b + s c over arrays larger than all caches, the bandwidth of rows of the same width
gathered at random from a table of the same size, and the rate of multiplications and additions on
data in the cache of a core. At 2,000 classes our learner stores nonzero weights instead of the
table that C++ has: a row then moves far less than the table shows.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from kesler.data.rows import Rows
from kesler.hypotheses import PerClass
from kesler.learner.classes import ClassTable
from kesler.learner.learner import Learner
from kesler.state.capacity import aligned_zeros
from kesler.state.records import UNCALIBRATED
from kesler.updates import PassiveAggressive
from racing import Laps, Race, command_line, table, timed
from text_stream import make_text_stream

SOURCE = Path(__file__).with_name("pa1.cpp")
MOST = {20: 1.10, 200: 1.0, 2000: 1.0}
"""The largest time, relative to C++, for each number of classes."""
SIZES = {20: 100_000, 200: 50_000, 2000: 10_000}
"""The number of rows for each number of classes."""
OURS, THEIRS, BARE = "kesler's kernel", "C++", "C++, without probabilities"
TRIAD = 1 << 25
"""The length of each array of the triad: 128 MiB."""
GATHERED = 200_000
"""The number of words whose rows of weights are read."""

Floats = npt.NDArray[np.float32]
Predictions = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to learn, and their classes, encoded in the order of first appearance."""

    rows: Rows
    y: npt.NDArray[np.int32]
    n_classes: int

    @staticmethod
    def of(n_rows: int, n_classes: int) -> Problem:
        """Return a problem of text-like rows."""
        X, y = make_text_stream(n_rows, n_classes)
        first, codes = np.unique(y, return_index=True, return_inverse=True)[1:]
        ranks = np.argsort(np.argsort(first))
        return Problem(Rows.from_sparse(X), ranks[codes].astype(np.int32), len(first))

    @property
    def words(self) -> float:
        """The average number of words per row."""
        return len(self.rows.indices) / len(self.rows)

    @property
    def width(self) -> int:
        """The length of a row of the table of weights, in whole cache lines."""
        return -(-self.n_classes // 16) * 16


class Prepared(Learner):
    """A learner whose `run` runs the kernel alone, on the rows given to `learn`."""

    task: Any

    def _run(self, task: Any) -> None:
        self.task = task

    def run(self) -> None:
        """Learn the rows given to `learn`, which only allocated memory for them."""
        super()._run(self.task)


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass of a new learner: its predictions, its calibration and its weights."""

    run: Callable[[], None]
    predictions: Predictions
    calibration: Callable[[], npt.NDArray[np.float64] | None]
    weights: Floats


def prepare_ours(problem: Problem) -> Pass:
    """Return a pass of our kernel."""
    learner = Prepared([PerClass()], PassiveAggressive(), ClassTable())
    predictions, _ = learner.learn(problem.rows, problem.y.tolist())
    return Pass(
        learner.run,
        predictions,
        lambda: learner.arrays()["calibration"],
        learner.stored["weights.values"],
    )


def prepare_theirs(library: Any, problem: Problem, *, calibrates: bool) -> Pass:
    """Return a pass of the algorithm in C++."""
    calibration = np.array(UNCALIBRATED) if calibrates else None
    rows, predictions = problem.rows, np.empty(len(problem.rows), dtype=np.int32)
    weights = aligned_zeros(rows.n_features + 1, problem.width)
    scores = np.zeros(problem.width, dtype=np.float32)
    arrays = [rows.indptr, rows.indices, rows.values, problem.y]

    def run() -> None:
        library.pa1(
            *map(address, arrays),
            ctypes.c_int64(len(rows)),
            address(weights),
            ctypes.c_int64(problem.width),
            ctypes.c_double(1.0),
            address(scores),
            address(predictions),
            None if calibration is None else address(calibration),
        )

    return Pass(run, predictions, lambda: calibration, weights)


def touch(weights: Floats) -> None:
    """Write to every page of a table of zeros, so that no pass waits for memory from the system."""
    weights.reshape(-1)[::1024] = 0


def address(array: npt.NDArray[Any]) -> ctypes.c_void_p:
    """Return the address of an array."""
    return ctypes.c_void_p(array.ctypes.data)


def build(folder: Path, cpu: str) -> Any:
    """Return the algorithm in C++ as a library, None if there is no compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    library = folder / "pa1.so"
    flags = ["-O3", f"-march={cpu}", "-ffp-contract=off", "-fopenmp-simd"]
    subprocess.run([compiler, *flags, "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    return ctypes.CDLL(str(library))


def race_of(problem: Problem, library: Any, repeats: int) -> dict[str, Laps]:
    """Time all in turn, each with a new learner, and check that they learn the same."""
    makers = {
        OURS: partial(prepare_ours, problem),
        THEIRS: partial(prepare_theirs, library, problem, calibrates=True),
        BARE: partial(prepare_theirs, library, problem, calibrates=False),
    }
    laps = {name: Laps(len(problem.rows)) for name in makers}
    for _ in range(repeats):
        passes = {name: make() for name, make in makers.items()}
        for name, each in passes.items():
            touch(each.weights)
            wall, processor, _ = timed(each.run)
            laps[name].wall.append(wall)
            laps[name].processor.append(processor)
            laps[name].figures = {"error %": 100 * float(np.mean(each.predictions != problem.y))}
        require_same(*passes.values())
    return laps


def require_same(first: Pass, *others: Pass) -> None:
    """Raise if predictions or temperatures differ from those of the first pass."""
    for other in others:
        if not np.array_equal(other.predictions, first.predictions):
            raise AssertionError("the predictions of C++ differ from those of Kesler")
        found = other.calibration()
        if found is not None:
            np.testing.assert_allclose(found, first.calibration(), rtol=1e-3)


# ---- limits of the machine -----------------------------------------------------------------------


@njit(nogil=True)
def triad(a: Floats, b: Floats, c: Floats) -> None:
    """Set a to b + 3 c (McCalpin 1995)."""
    for i in range(a.shape[0]):
        a[i] = b[i] + np.float32(3) * c[i]


@njit(nogil=True)
def gather(table: Floats, rows: npt.NDArray[np.int32], out: Floats) -> None:
    """Add rows of a table to `out`."""
    for i in range(rows.shape[0]):
        row = rows[i]
        for r in range(out.shape[0]):
            out[r] += table[row, r]


@njit(nogil=True)
def multiply(a: Floats, n: int) -> None:
    """Set a to 0.5 a + 1, n times, on 128 numbers, which fit into the cache of a core."""
    half, one = np.float32(0.5), np.float32(1)
    for _ in range(n):
        for i in range(128):
            a[i] = a[i] * half + one


def best_seconds(run: Callable[[], Any], repeats: int = 5) -> float:
    """Return the shortest time of a run, after a first run that compiles."""
    run()
    return min(timed(run)[1] for _ in range(repeats))


def triad_bandwidth() -> float:
    """Return the bytes read and written per second."""
    a, b, c = (np.ones(TRIAD, dtype=np.float32) for _ in range(3))
    return 3 * a.nbytes / best_seconds(lambda: triad(a, b, c))


def gather_bandwidth(problem: Problem) -> float:
    """Return the bytes read per second of rows of weights, in the order of the words."""
    weights = aligned_zeros(problem.rows.n_features, problem.width)
    weights += 1
    words = problem.rows.indices[:GATHERED]
    out = np.zeros(problem.width, dtype=np.float32)
    return len(words) * 4 * problem.width / best_seconds(lambda: gather(weights, words, out))


def peak() -> float:
    """Return the multiplications and additions per second."""
    a = np.ones(128, dtype=np.float32)
    return 2 * 128 * 200_000 / best_seconds(lambda: multiply(a, 200_000))


# ---- the race ------------------------------------------------------------------------------------


def roof(problem: Problem, laps: Laps, bandwidth: float, flops: float, clock: str) -> list[str]:
    """Return a row of the table: the data and the work per row, and the share of the limit."""
    n_bytes, n_operations = 4 * problem.words * problem.width, 2 * problem.words * problem.width
    gathered, seconds = gather_bandwidth(problem), laps.each(clock)
    least = max(n_bytes / gathered, n_operations / flops)
    return [
        f"{problem.n_classes:,}",
        f"{n_bytes / 1e3:,.1f}",
        f"{n_operations / 1e3:,.1f}",
        f"{n_bytes / seconds / 1e9:.1f}",
        f"{gathered / 1e9:.1f}",
        f"{bandwidth / 1e9:.1f}",
        f"{n_operations / seconds / 1e9:.1f}",
        f"{flops / 1e9:.1f}",
        f"{least / seconds:.2f}",
    ]


HEADER = [
    "classes",
    "kB per row",
    "1,000 flops per row",
    "GB/s reached",
    "random rows, GB/s",
    "triad, GB/s",
    "Gflop/s reached",
    "peak Gflop/s",
    "least time / ours",
]


def main() -> int:
    """Run the races and measure the limits of the machine."""
    arguments = command_line(__doc__).parse_args()
    race = Race(
        "roofline", "The kernel compared with C++ and the limits of the machine", __doc__, arguments
    )
    lines, bandwidth, flops = [], triad_bandwidth(), peak()
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder), race.cpu)
        if library is None:
            race.add("The race is skipped: g++ is not installed.")
        for n_classes, n_rows in SIZES.items():
            problem = Problem.of(n_rows // (2 if race.is_quick else 1), n_classes)
            if library is not None:
                laps = race_of(problem, library, 3 * race.repeats)
                race.show(f"{n_classes:,} classes", laps)
                ratio = laps[OURS].seconds(race.clock) / laps[THEIRS].seconds(race.clock)
                claim = f"the kernel at {n_classes:,} classes, relative to C++"
                race.at_most(claim, ratio, MOST[n_classes])
                lines.append(roof(problem, laps[OURS], bandwidth, flops, race.clock))
    if lines:
        race.add("### Share of the limits", table(HEADER, lines))
    return race.write()


if __name__ == "__main__":
    sys.exit(main())

"""Time of whole commands, from a text file to a model, compared with Vowpal Wabbit.

    python benchmarks/files.py [--quick] [--cpu haswell] [--rows 1000000]

`kesler learn` and `vw --oaa 20` run as separate processes, timed from start to end, on the same
file: rows of about 80 words out of 2^18 in 20 classes, one row in ten with the words of another
class. Kesler runs its default learner, and PassiveAggressive (PA-I) with one hypothesis per class,
without prior knowledge of the classes or their number. Vowpal Wabbit reads without a cache, with a
table large enough that weights do not collide. Both predict rows before they learn them, and both
errors count every row. A second file has the same rows with words of 3 to 12 letters in a
namespace. Further tables compare the readers alone, for svmlight with scikit-learn and
for tables with pandas, and show how the time of the command grows with the file. The peak memory of
the process should not grow.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from string import ascii_lowercase

import numpy as np

from kesler.readers import open_stream
from racing import Contestant, Figures, Growth, Race, command_line, times_faster
from text_stream import N_FEATURES, make_text_stream

N_CLASSES, BITS = 20, 23
N_COLUMNS = 20
"""Columns of a table, without that of the class."""
TARGET, WORDS_TARGET = 4, 3
"""The least ratio of the rows per second of the whole command to Vowpal Wabbit's: for the numbers
of words as names, and for words of letters."""
MOST_INFLATING = 1.15
"""The largest ratio of the time for compressed text to that for plain text."""
MOST_MEMORY = 1.15
"""The largest ratio of the memory for all rows to that for a tenth of them."""
PIECE = 100_000
"""The number of rows drawn at a time."""
PA1 = ("--hypotheses", "multi", "--update", "pa1")
OURS, THEIRS = "kesler learn, PA-I, VW text", "vw --oaa, VW text"
PACKED = f"{OURS}.gz"

VOWPAL_WABBIT = f"""
import sys
from vowpalwabbit import Workspace
workspace = Workspace(f"--oaa {N_CLASSES} -b {BITS} -d {{sys.argv[1]}} --quiet")
print(workspace.get_sum_loss())
workspace.finish()
"""


class Files:
    """The same rows as files of two formats, and with words of letters as names."""

    def __init__(self, folder: Path, n_rows: int) -> None:
        self.n_rows = n_rows
        self.vw, self.svmlight = folder / f"{n_rows}.vw", folder / f"{n_rows}.svm"
        self.words = folder / f"{n_rows}-words.vw"
        # In another process: memory of this one would count as that of the commands that it starts.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            pool.submit(write_rows, self, n_rows).result()

    @staticmethod
    def compressed(path: Path) -> Path:
        """Return a compressed copy of a file."""
        packed = path.with_name(path.name + ".gz")
        with path.open("rb") as plain, gzip.open(packed, "wb", compresslevel=6) as file:
            shutil.copyfileobj(plain, file, 1 << 20)
        return packed


def write_rows(files: Files, n_rows: int) -> None:
    """Write rows in both formats, and with words of letters."""
    spelled = np.array(words_of_letters())
    with (
        files.vw.open("w") as vw,
        files.svmlight.open("w") as svmlight,
        files.words.open("w") as of_letters,
    ):
        for start in range(0, n_rows, PIECE):
            X, y = make_text_stream(min(PIECE, n_rows - start), N_CLASSES, start)
            numbers, words = X.indices.astype(str).tolist(), spelled[X.indices].tolist()
            for row, label in enumerate(y.tolist()):
                own = slice(X.indptr[row], X.indptr[row + 1])
                vw.write(f"{label + 1} | {' '.join(numbers[own])}\n")
                svmlight.write(f"{label + 1} {':1 '.join(numbers[own])}:1\n")
                of_letters.write(f"{label + 1} |t {' '.join(words[own])}\n")


def words_of_letters() -> list[str]:
    """Return a word of 3 to 12 letters for each feature, all different."""
    generator, letters = np.random.default_rng(0), np.array([*ascii_lowercase])
    words = dict[str, None]()
    while len(words) < N_FEATURES:
        lengths = generator.integers(3, 13, N_FEATURES)
        drawn = "".join(generator.choice(letters, lengths.sum()))
        ends = np.cumsum(lengths)
        starts = ends - lengths
        words |= dict.fromkeys(drawn[a:b] for a, b in zip(starts, ends, strict=True))
    return [*words][:N_FEATURES]


def finished(command: list[str]) -> tuple[str, float]:
    """Run a process; return its output and its peak memory in megabytes."""
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(command, stdout=printed)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} failed with exit code {process.returncode}")
        printed.seek(0)
        return printed.read(), usage.ru_maxrss / 1024


def kesler(path: Path, *options: str) -> Figures:
    """Learn a file with the command line."""
    with tempfile.TemporaryDirectory() as folder:
        model, results = Path(folder) / "model", Path(folder) / "results.json"
        command = [sys.executable, "-m", "kesler", "learn", str(model), str(path), *options]
        _, megabytes = finished([*command, "--json", str(results)])
        (result,) = json.loads(results.read_text())["methods"].values()
    wrong = result["mistakes"] + result["first_seen"]
    return {"error %": 100 * wrong / result["trials"], "peak MB": megabytes}


def vowpal_wabbit(path: Path, n_rows: int) -> Figures:
    """Learn a file with Vowpal Wabbit."""
    loss, megabytes = finished([sys.executable, "-c", VOWPAL_WABBIT, str(path)])
    return {"error %": 100 * float(loss) / n_rows, "peak MB": megabytes}


def commands(files: Files) -> list[Contestant]:
    """Return the commands of the race."""
    packed = {path: files.compressed(path) for path in (files.vw, files.svmlight)}
    ours = {
        OURS: (files.vw, *PA1),
        "kesler learn, PA-I, svmlight": (files.svmlight, *PA1),
        PACKED: (packed[files.vw], *PA1),
        "kesler learn, PA-I, svmlight.gz": (packed[files.svmlight], *PA1),
        "kesler learn, default, VW text": (files.vw,),
    }
    theirs = {THEIRS: files.vw, "vw --oaa, VW text.gz": packed[files.vw]}
    kesler(files.vw, *PA1)  # compile the loops before the race
    return [
        *(Contestant(name, partial(kesler, *each), files.n_rows) for name, each in ours.items()),
        *(
            Contestant(
                name, partial(vowpal_wabbit, path, files.n_rows), files.n_rows, "vowpalwabbit"
            )
            for name, path in theirs.items()
        ),
    ]


def read(path: Path) -> Figures:
    """Read a file as arrays, a block at a time."""
    for _ in open_stream(path):
        pass
    return {"MB": path.stat().st_size / 1e6}


def read_by_scikit_learn(path: Path) -> Figures:
    """Read a file as one sparse matrix."""
    from sklearn.datasets import load_svmlight_file

    load_svmlight_file(path)
    return {"MB": path.stat().st_size / 1e6}


def main() -> int:
    """Run the races; return the exit code."""
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, help="rows of the file (default 1,000,000)")
    arguments = parser.parse_args()
    n_rows = arguments.rows or (50_000 if arguments.quick else 1_000_000)
    race = Race("files", "From a file to a model", __doc__, arguments)
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder), n_rows)
        laps = race.run(f"{n_rows:,} rows, {N_CLASSES} classes, whole commands", commands(files))
        claim = "times the rows per second of vw --oaa without a cache, whole command, VW text"
        if race.is_quick:  # the start of the process dominates a short run
            race.check(f"{claim}: at least {TARGET}", None)
        else:
            race.at_least(claim, times_faster(laps, OURS, THEIRS, race.clock), TARGET)
            found = laps[PACKED].seconds(race.clock) / laps[OURS].seconds(race.clock)
            race.at_most("times the time of the command, compressed", found, MOST_INFLATING)
        run_words(race, files)
        tenth = Files(Path(folder), n_rows // 10)
        memory = kesler(tenth.vw, *PA1)["peak MB"]
        found = laps[OURS].figures["peak MB"] / memory
        race.at_most("times the memory for a tenth of the rows", found, MOST_MEMORY)
        run_reading(race, files if race.is_quick else tenth)
        run_tables(race, Path(folder), n_rows // 4)
        sizes = [n_rows // 10 * times for times in (1, 2, 4, 8)]
        race.grow("Time by the size of the file", [Growth("rows", sizes, partial(longer, files))])
    return race.write()


def run_words(race: Race, files: Files) -> None:
    """Time the commands on words of letters."""
    theirs = partial(vowpal_wabbit, files.words, files.n_rows)
    laps = race.run(
        f"{files.n_rows:,} rows of words of 3 to 12 letters in a namespace, whole commands",
        [
            Contestant(OURS, partial(kesler, files.words, *PA1), files.n_rows),
            Contestant(
                "kesler learn, default, VW text", partial(kesler, files.words), files.n_rows
            ),
            Contestant(THEIRS, theirs, files.n_rows, "vowpalwabbit"),
        ],
    )
    if not race.is_quick:
        claim = "times the rows per second of vw --oaa, whole command, words of letters"
        race.at_least(claim, times_faster(laps, OURS, THEIRS, race.clock), WORDS_TARGET)


def run_reading(race: Race, files: Files) -> None:
    """Time readers on their own."""
    race.run(
        f"Reading {files.n_rows:,} rows as arrays",
        [
            Contestant("kesler, svmlight", partial(read, files.svmlight), files.n_rows),
            Contestant("kesler, VW text", partial(read, files.vw), files.n_rows),
            Contestant(
                "scikit-learn, svmlight",
                partial(read_by_scikit_learn, files.svmlight),
                files.n_rows,
                "scikit-learn",
            ),
        ],
    )


def write_tables(folder: Path, n_rows: int) -> tuple[Path, Path]:
    """Write a table of numbers and text labels as CSV and, with pyarrow, as Parquet."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n_rows, N_COLUMNS)).round(4)
    y = [f"class {k}" for k in generator.integers(0, N_CLASSES, n_rows)]
    names = [f"x{column}" for column in range(N_COLUMNS)]
    with (folder / "table.csv").open("w") as file:
        file.write(",".join(["y", *names]) + "\n")
        for label, row in zip(y, X.tolist(), strict=True):
            file.write(",".join([label, *map(str, row)]) + "\n")
    try:
        from pyarrow import parquet, table
    except ImportError:
        pass
    else:
        columns = dict(zip(names, X.T, strict=True))
        parquet.write_table(table({"y": y, **columns}), folder / "table.parquet")
    return folder / "table.csv", folder / "table.parquet"


def read_table(path: Path) -> Figures:
    """Read a table as arrays, a block at a time."""
    for _ in open_stream(path, label="y"):
        pass
    return {"MB": path.stat().st_size / 1e6}


def read_by_pandas(path: Path) -> Figures:
    """Read a table as data frames of the size of our blocks."""
    import pandas

    with pandas.read_csv(path, chunksize=1024) as frames:
        for _ in frames:
            pass
    return {"MB": path.stat().st_size / 1e6}


def run_tables(race: Race, folder: Path, n_rows: int) -> None:
    """Time readers of tables on their own."""
    csv, parquet = write_tables(folder, n_rows)
    race.run(
        f"Reading {n_rows:,} rows of {N_COLUMNS} columns as arrays",
        [
            Contestant("kesler, CSV", partial(read_table, csv), n_rows),
            Contestant("kesler, Parquet", partial(read_table, parquet), n_rows, "pyarrow"),
            Contestant("pandas, CSV", partial(read_by_pandas, csv), n_rows, "pandas"),
        ],
    )


def longer(files: Files, n_rows: int) -> Callable[[], Figures]:
    """Return the command on the first `n_rows` rows."""
    path = files.vw.with_name(f"first-{n_rows}.vw")
    with files.vw.open() as all_rows, path.open("w") as first:
        first.writelines(row for row, _ in zip(all_rows, range(n_rows), strict=False))
    return partial(kesler, path, *PA1)


if __name__ == "__main__":
    sys.exit(main())

"""Time of rows in the forms that users have: texts, tickets, arrays, tables, short rows of files.

    python benchmarks/forms.py [--quick] [--clock processor] [--rows 200000]

The default learner predicts or learns one row at a time: texts of 80 words, tickets as dictionaries
of a title, a body of 60 words, a category, a number and a date, and arrays of 16 numbers. It learns
data frames of a title of 8 words, a number and a category by `partial_fit`, 10,000 rows at a time,
and the same rows as CSV by `kesler learn`. Half of the words are drawn from 60 of the class, the
others from all 500; there are 10 classes. Short rows are 8 numbers in 40 classes as text in Vowpal
Wabbit's format: `kesler learn` with PassiveAggressive (PA-I) and `vw --oaa 40` run as processes,
whose start is measured with 1,000 rows.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from files import PA1, finished, kesler
from kesler import OnlineClassifier
from racing import Contestant, Figures, Race, command_line, times_faster

N_CLASSES, N_SHORT_CLASSES, N_NUMBERS, N_FEATURES = 10, 40, 16, 8
N_BEFORE, N_TIMED = 800, 200
"""Rows learnt before any is timed, more than those that the default learns again; rows of a run."""
MOST_TICKET = 150
"""The most microseconds of a prediction of a ticket."""
LEAST_ROWS = 50_000
"""The least rows per second of a table with a short text."""
LEAST_SHORT = 1.5
"""The least ratio of the rows per second of short rows to Vowpal Wabbit's, starts left out."""
OURS, THEIRS, START = "kesler learn, PA-I", "vw --oaa", "1,000 rows"

VOWPAL_WABBIT = f"""
import sys
from vowpalwabbit import Workspace
workspace = Workspace(f"--oaa {N_SHORT_CLASSES} -b 18 -d {{sys.argv[1]}} --quiet")
print(workspace.get_sum_loss())
workspace.finish()
"""

SYLLABLES = "ba ke lo mi nu ra se to vi za".split()
ENDINGS = "ber don fel gan hol kin lam mer nos pat".split()
STEMS = [one + other for one in SYLLABLES for other in ENDINGS]
WORDS = STEMS + [stem + ending for stem in STEMS for ending in ("s", "ing", "er", "ed")]

Row = Any
Making = Callable[[Random, int], Row]


# ---- rows -------------------------------------------------------------------------------------


def text(rng: Random, label: int, n_words: int = 80) -> str:
    """Return a text, half of whose words are of the class."""
    own = WORDS[40 * label : 40 * label + 60]
    return " ".join(rng.choice(own if rng.random() < 0.5 else WORDS) for _ in range(n_words))


def ticket(rng: Random, label: int) -> dict[str, Any]:
    """Return a row of five kinds of columns."""
    return {
        "title": text(rng, label, 8),
        "body": text(rng, label, 60),
        "category": rng.choice(("network", "disk", "mail", "printer")),
        "hours": round(100 * rng.random(), 2),
        "opened": str(date(2020, 1, 1) + timedelta(days=rng.randrange(1500))),
    }


def numbers(rng: Random, label: int) -> Any:
    """Return an array."""
    return np.array([label + rng.gauss(0, 4) for _ in range(N_NUMBERS)])


def titled(rng: Random, label: int) -> dict[str, Any]:
    """Return a row of a title, a number and a category."""
    return {
        "title": text(rng, label, 8),
        "hours": round(rng.gauss(label, 9), 3),
        "kind": rng.choice("abcd"),
    }


def labelled(make: Making, n_rows: int) -> tuple[list[Row], list[int]]:
    """Return rows and their classes."""
    rng = Random(0)
    labels = [rng.randrange(N_CLASSES) for _ in range(n_rows)]
    return [make(rng, label) for label in labels], labels


def write_csv(path: Path, n_rows: int) -> None:
    """Write rows of titles with the class."""
    rows, labels = labelled(titled, n_rows)
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, [*rows[0], "label"])
        table.writeheader()
        table.writerows({**row, "label": k} for row, k in zip(rows, labels, strict=True))


def write_short(path: Path, n_rows: int) -> None:
    """Write rows of a few numbers in Vowpal Wabbit's format."""
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.normal(size=(N_SHORT_CLASSES, N_FEATURES))
    labels = rng.integers(0, N_SHORT_CLASSES, n_rows)
    X = (centres[labels] + rng.normal(size=(n_rows, N_FEATURES))).round(4)
    with path.open("w") as file:
        for label, row in zip(labels.tolist(), X.tolist(), strict=True):
            cells = " ".join(f"f{i}:{value}" for i, value in enumerate(row))
            file.write(f"{label + 1} | {cells}\n")


# ---- contestants ------------------------------------------------------------------------------


class Rows:
    """Rows of one form, and a default learner that has learnt the first of them."""

    def __init__(self, make: Making) -> None:
        self.rows, self.labels = labelled(make, 2 * N_BEFORE)
        self.pairs = cycle(zip(self.rows[N_BEFORE:], self.labels[N_BEFORE:], strict=True))

    def prepare(self) -> None:
        """Learn rows together, and some alone."""
        rows = self.rows[:N_BEFORE]
        given = np.array(rows) if isinstance(rows[0], np.ndarray) else rows
        self.model = OnlineClassifier().partial_fit(given, self.labels[:N_BEFORE])
        self.learn()

    def learn(self) -> None:
        """Learn some rows, one by one."""
        for row, label in islice(self.pairs, N_TIMED):
            self.model.learn_one(row, label)

    def predict(self) -> None:
        """Predict some rows, one by one."""
        for row, _ in islice(self.pairs, N_TIMED):
            self.model.predict_one(row)


def alone() -> Iterator[Contestant]:
    """Yield predictions and learning of rows of each form."""
    for name, make in {"text": text, "ticket": ticket, "array": numbers}.items():
        rows = Rows(make)
        yield Contestant(f"predict_one, {name}", rows.predict, N_TIMED, prepare=rows.prepare)
        yield Contestant(f"learn_one, {name}", rows.learn, N_TIMED)


class Frames:
    """Data frames of titles, each learnt once."""

    def __init__(self, n_rows: int, repeats: int) -> None:
        import pandas

        rows, self.labels = labelled(titled, N_BEFORE + n_rows * repeats)
        self.frame, self.n_rows, self.start = pandas.DataFrame(rows), n_rows, N_BEFORE

    def prepare(self) -> None:
        """Learn the first rows."""
        first = slice(0, N_BEFORE)
        self.model = OnlineClassifier().partial_fit(self.frame[first], self.labels[first])

    def learn(self) -> None:
        """Learn the next rows."""
        part = slice(self.start, self.start + self.n_rows)
        self.start = part.stop
        self.model.partial_fit(self.frame[part], self.labels[part])


def vowpal_wabbit(path: Path, n_rows: int) -> Figures:
    """Learn short rows with Vowpal Wabbit."""
    loss, _ = finished([sys.executable, "-c", VOWPAL_WABBIT, str(path)])
    return {"error %": 100 * float(loss) / n_rows}


def learnt(path: Path, *options: str) -> Figures:
    """Learn a file with the command line."""
    return {"error %": kesler(path, *options)["error %"]}


def short_rows(folder: Path, n_rows: int) -> Iterator[Contestant]:
    """Yield the commands on all short rows, and on a few, for the time of their start."""
    for n, name in ((n_rows, ""), (1000, f", {START}")):
        path = folder / f"{n}.vw"
        write_short(path, n)
        yield Contestant(f"{OURS}{name}", partial(learnt, path, *PA1), n)
        theirs = partial(vowpal_wabbit, path, n)
        yield Contestant(f"{THEIRS}{name}", theirs, n, "vowpalwabbit")


def main() -> int:
    """Run the races; return the exit code."""
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, help="short rows of the file (default 1,000,000)")
    arguments = parser.parse_args()
    race = Race("forms", "Rows in the forms that users have", __doc__, arguments)
    n_rows = arguments.rows or (20_000 if race.is_quick else 1_000_000)
    laps = race.run("One row, the default learner", alone())
    microseconds = 1e6 * laps["predict_one, ticket"].each(race.clock)
    race.at_most("microseconds of a prediction of a ticket", microseconds, MOST_TICKET)
    with tempfile.TemporaryDirectory() as name:
        run_tables(race, Path(name), 2000 if race.is_quick else 10_000)
        run_short(race, Path(name), n_rows)
    return race.write()


def run_tables(race: Race, folder: Path, n_rows: int) -> None:
    """Time tables with a short text."""
    frames, path = Frames(n_rows, race.repeats), folder / "titles.csv"
    write_csv(path, 10 * n_rows)
    command = partial(learnt, path, "--label", "label")
    laps = race.run(
        "A table of a title, a number and a category, the default learner",
        [
            Contestant("partial_fit, data frame", frames.learn, n_rows, prepare=frames.prepare),
            Contestant("kesler learn, CSV", command, 10 * n_rows),
        ],
    )
    found = 1 / laps["partial_fit, data frame"].each(race.clock)
    race.at_least("rows per second of a table with a short text", found, LEAST_ROWS)


def run_short(race: Race, folder: Path, n_rows: int) -> None:
    """Time short rows of a file."""
    laps = race.run(
        f"{n_rows:,} rows of {N_FEATURES} numbers and {N_SHORT_CLASSES} classes, whole commands",
        short_rows(folder, n_rows),
    )
    if THEIRS not in laps or race.is_quick:  # the start of the process dominates a short run
        race.check(f"times Vowpal Wabbit's rows per second: at least {LEAST_SHORT}", None)
        return
    race.add(
        f"Whole commands, the start included: {times_faster(laps, OURS, THEIRS, race.clock):.2f} "
        "times Vowpal Wabbit's rows per second."
    )
    ours, theirs = (
        laps[name].seconds(race.clock) - laps[f"{name}, {START}"].seconds(race.clock)
        for name in (OURS, THEIRS)
    )
    claim = "times Vowpal Wabbit's rows per second, short rows of a file, starts left out"
    race.at_least(claim, theirs / ours, LEAST_SHORT)


if __name__ == "__main__":
    sys.exit(main())

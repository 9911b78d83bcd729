"""A journal: exact undo on real sets, the time of taking back, durable answers, kills, full disks.

    python benchmarks/durable.py [--quick]

Random sequences of learn, undo, relabel, rename, merge and forget are run by a model and by a plain
list of rows (tests/histories.py); after each sequence, the model file must equal that of a learner
that meets the remaining list. Times are those of the default learner on rows of 80 words in 20
classes, from a vocabulary of 100,000 words by Zipf's law. Killed processes write alone; at each
fourth kill, the journal is copied by the backup API before, while it is written to.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from kesler import Ensemble, OnlineClassifier, OnlineMultilabelClassifier
from kesler.data.texts import counted
from kesler.datasets import RecordDataset, load
from kesler.durable import Journal, replica

sys.path.append(str(Path(__file__).parents[1] / "papers"))
sys.path.append(str(Path(__file__).parents[1] / "tests"))
from histories import Walk, file_of, learnt_anew
from report import Report, table
from script_arguments import folder_of, script_parser

HERE = Path(__file__).parent
SETS = ("enron/farmer-d", "banking77", "20newsgroups", "pendigits", "letter", "landsat")
N_HEAD, N_STEPS = 300, 40
N_WORDS, N_CLASSES, VOCABULARY = 80, 20, 100_000
LEAST_ANSWERS = 500  # durable answers a second that are asked for

Make = Callable[[], Any]
Row = tuple[Any, Any]


def two_members() -> list[OnlineClassifier]:
    """Return the members of an ensemble."""
    return [OnlineClassifier("multi", update="pa1"), OnlineClassifier("single", update="mira")]


def by_kernel() -> OnlineClassifier:
    """Return a learner of at most 20 support vectors."""
    return OnlineClassifier("hybrid", update="perceptron", kernel="rbf", sigma=1.0, budget=20)


ESTIMATORS: dict[str, Make] = {
    "default": OnlineClassifier,
    "PA-I hybrid": lambda: OnlineClassifier("hybrid", update="pa1"),
    "ensemble": lambda: Ensemble(two_members()),
    "kernel, budget": by_kernel,
    "multilabel": OnlineMultilabelClassifier,
}


# ---- exact undo ---------------------------------------------------------------------------------


def head_of(name: str) -> list[Row]:
    """Return the first rows of a set: words of messages, texts or measurements; labels are text."""
    data = load(name)
    if isinstance(data, RecordDataset):
        rows: list[Any] = [" ".join(record.values()) for record in data.records[:N_HEAD]]
    else:
        rows = [*np.asarray(data.X[:N_HEAD], dtype=np.float64)]
    if name.startswith("enron"):
        rows = [counted([text]) for text in rows]
    labels = [str(label) for label in np.asarray(data.y[:N_HEAD]).tolist()]
    return [*zip(rows, labels, strict=True)]


def drawing(rows: list[Row], *, sets: bool) -> Callable[[np.random.Generator], Row]:
    """Return a function that draws a row, now and then with the label of another."""

    def draw(rng: np.random.Generator) -> Row:
        (x, y), (_, other) = rows[rng.integers(len(rows))], rows[rng.integers(len(rows))]
        if sets:
            return x, sorted({y, other})
        return x, other if rng.random() < 0.1 else y

    return draw


def differences(make: Make, rows: list[Row], n: int, *, sets: bool) -> int:
    """Run random sequences; return after how many the model differs from the plain history."""
    n_wrong = 0
    for seed in range(n):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with Journal(folder / "desk.db") as journal:
                draw = drawing(rows, sets=sets)
                walk = Walk(journal.open("m", make()), draw, np.random.default_rng(seed))
                for _ in range(N_STEPS):
                    walk.step()
                anew = learnt_anew(make, walk.plain.remaining())
                n_wrong += file_of(walk.model, folder) != file_of(anew, folder)
    return n_wrong


def add_exactness(page: Report, n: int) -> None:
    """Add the table of sequences after which a model differs."""
    lines, total, wrong = [], 0, 0
    for name in SETS:
        rows = head_of(name)
        found = [
            differences(make, rows, n, sets=label == "multilabel")
            for label, make in ESTIMATORS.items()
        ]
        total, wrong = total + n * len(found), wrong + sum(found)
        lines.append([name, *(f"{n - each} of {n}" for each in found)])
    page.add(
        "## Exact undo",
        f"Sequences of {N_STEPS} random calls after which the model file equals, byte for byte, "
        "that of the remaining history. Copies are made every few events, so that they are used.",
        table(["", *ESTIMATORS], lines),
    )
    page.check(f"in {total:,} sequences, {wrong} models differ from their histories", wrong == 0)


# ---- times --------------------------------------------------------------------------------------


def texts(n: int, seed: int) -> Iterator[Row]:
    """Yield mappings of 80 words, and their classes."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, VOCABULARY + 1) ** 0.9
    words = np.array([f"word{i}" for i in range(VOCABULARY)])
    for start in range(0, n, 1000):
        size = min(1000, n - start)
        drawn = rng.choice(VOCABULARY, (size, N_WORDS), p=shares / shares.sum())
        for row, label in zip(drawn, rng.integers(0, N_CLASSES, size), strict=True):
            yield dict.fromkeys(words[row].tolist(), 1.0), f"class{label}"


def seconds(call: Callable[[], Any]) -> float:
    """Return the time that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def spread(times: list[float], unit: float, digits: int) -> list[str]:
    """Return the median, the 90th percentile and the largest of times."""
    found = [median(times), float(np.quantile(times, 0.9)), max(times)]
    return [f"{unit * each:.{digits}f}" for each in found]


def add_times(page: Report, n_events: int) -> None:
    """Add the times of learning and of taking back."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        path = Path(folder) / "desk.db"
        with Journal(path) as journal:
            mail = journal.open("mail", OnlineClassifier())
            rows = ((x, y, f"m{i}", None) for i, (x, y) in enumerate(texts(n_events, 1)))
            many = n_events / seconds(partial(mail.learn_many, rows))
            one = [
                seconds(lambda x=x, y=y, i=i: mail.learn_one(x, y, id=f"n{i}"))
                for i, (x, y) in enumerate(texts(2000, 2))
            ]
            recent = [
                seconds(lambda i=i: mail.undo(f"n{i}"))
                for i in (1000 + rng.choice(1000, 40, replace=False)).tolist()
            ]
            any_of = [
                seconds(lambda i=i: mail.undo(f"m{i}"))
                for i in rng.choice(n_events, 9, replace=False).tolist()
            ]
            renamed = [seconds(lambda i=i: mail.rename(f"class{i}", f"other{i}")) for i in range(5)]
            forgotten = [seconds(lambda i=i: mail.forget(f"n{i}")) for i in range(3)]
        size = path.stat().st_size / 1e6
        with Journal(path) as journal:
            opened = seconds(lambda: journal.open("mail"))
            mail = journal.open("mail")
            cold = [seconds(lambda i=i: mail.undo(f"m{i}")) for i in (n_events // 2, 10)]
            wrong = journal.check()
    lines = [
        ["undo of one of the last 1,000, ms", *spread(recent, 1e3, 0)],
        [f"undo of any of {n_events:,}, s", *spread(any_of, 1, 2)],
        ["the same, right after opening, s", *spread(cold, 1, 2)],
        ["rename, ms", *spread(renamed, 1e3, 0)],
        ["forget, s", *spread(forgotten, 1, 2)],
        ["learn_one, on disk, ms", *spread(one, 1e3, 2)],
    ]
    page.add(
        "## Times",
        f"The default learner on {n_events:,} rows of {N_WORDS} words. `learn_many` learns "
        f"{many:,.0f} rows a second, `learn_one` {len(one) / sum(one):,.0f}; the file has "
        f"{size:,.0f} MB, and opening the model takes {opened:.2f} s.",
        table(["", "median", "90 %", "most"], lines),
    )
    page.check("undo of one of the last 1,000 events takes under 100 ms", median(recent) < 0.1)
    page.check(f"undo of any of {n_events:,} events takes under 5 s", median(any_of) < 5)
    answers = len(one) / sum(one)
    page.check(f"at least {LEAST_ANSWERS} durable answers a second", answers >= LEAST_ANSWERS)
    page.check(f"the model equals a replay after all of it {wrong}", not wrong)


# ---- kills and full disks -----------------------------------------------------------------------

WRITER = """
import sys
from kesler import OnlineClassifier
from kesler.durable import Journal

journal = Journal(sys.argv[1])
mail = journal.open("mail", OnlineClassifier())
n = int(sys.argv[2])
while True:
    n += 1
    mail.learn_one({f"w{n % 97}": 1, f"v{n % 31}": 2}, "abcd"[n % 4], id=f"m{n}")
    print("learn", n, flush=True)
    if n % 5 == 0:
        mail.undo(f"m{n - 3}", event=f"u{n}")
        print("undo", n - 3, flush=True)
    if n % 53 == 0:
        mail.merge("d", "a", event=f"g{n}")
        mail.undo(f"g{n}", event=f"h{n}")
"""


def wrongs_of(path: Path, said: set[tuple[str, int]]) -> tuple[list[str], int]:
    """Return what is wrong with a journal after a kill, and the number of the last row."""
    with Journal(path) as journal:
        mail, wrong = journal.open("mail"), journal.check()
        events = mail.history(None)
        ids, gone = [each.id for each in events], {each.id for each in events if each.taken_back}
        lost = [n for kind, n in said if f"m{n}" not in (gone if kind == "undo" else set(ids))]
        wrong += [f"{len(lost)} acknowledged are lost"] if lost else []
        wrong += ["an id is there twice"] if len(set(ids)) < len(ids) else []
        anew = learnt_anew(OnlineClassifier, [(e.row, e.current) for e in mail.remaining()])
        differs = file_of(anew, path.parent) != file_of(mail, path.parent)
        wrong += ["the model differs from its history"] if differs else []
        return wrong, max(int(each.id[1:]) for each in events if each.kind == "learn")


def killed(path: Path, first: int, rng: np.random.Generator, copy: Path | None) -> Any:
    """Kill a process that writes; return what it had acknowledged at the copy and at the end."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, path, str(first)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    lines = [writer.stdout.readline()]
    timer = threading.Timer(rng.uniform(0.01, 0.6), writer.send_signal, [signal.SIGKILL])
    timer.start()
    n_copied = 0
    if copy is not None:
        n_copied = len(lines)
        with Journal(path) as journal:
            journal.backup(copy)
    lines += writer.stdout.readlines()
    writer.wait()
    timer.join()
    whole = [line.split() for line in lines if line.endswith("\n")]
    said = [(kind, int(n)) for kind, n in whole]
    return said[:n_copied], said


def add_kills(page: Report, n: int) -> None:
    """Add the results of killing a process that writes."""
    rng, said, wrong, first, n_copies = np.random.default_rng(0), set[Any](), [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "desk.db"
        for i in range(n):
            copy = Path(folder) / f"copy{i}.db" if i % 4 == 3 else None
            copied, found = killed(path, first, rng, copy)
            if copy is not None:
                wrong += wrongs_of(copy, said | set(copied))[0]
                n_copies += 1
            said |= set(found)
            found_wrong, first = wrongs_of(path, said)
            wrong += found_wrong
    page.add(
        "## Kills",
        f"{n} processes were killed at random moments while they wrote to one journal, which "
        f"acknowledged {len(said):,} changes; {n_copies} copies were made by the backup API while "
        f"others wrote. After each, the journal and the copy were compared with their replay.",
    )
    page.check(f"after {n} kills and in {n_copies} copies, nothing is wrong {wrong[:3]}", not wrong)


FILLER = """
import resource, signal, sys
from kesler import KeslerError, OnlineClassifier
from kesler.durable import Journal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(sys.argv[1])
mail = journal.open("mail", OnlineClassifier())
mail.learn_one({"w": 1}, "a")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
n, refused = 0, False
while not refused:
    try:
        mail.learn_one({f"w{n}-{i}": 1 for i in range(40)}, "ab"[n % 2], id=f"m{n}")
        n += 1
        if n % 20 == 0:
            mail.undo(f"m{n - 10}")
            mail.undo(mail.history(1)[0].id)
    except KeslerError as error:
        refused = True
        learnt = mail.n_trials_
unlimited = resource.RLIM_INFINITY
resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited))
rows = len([*mail.remaining()])
assert learnt == rows, (learnt, rows)
assert mail.learn_one({"w": 1}, "a").changed
print(journal.check())
"""


def add_full_disks(page: Report, n: int) -> None:
    """Add the results of a disk that is full at several moments."""
    wrong = []
    for i in range(n):
        with tempfile.TemporaryDirectory() as folder:
            limit = str(200_000 + 50_000 * i)
            command = [sys.executable, "-c", FILLER, Path(folder) / "desk.db", limit]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.stdout.strip() != "[]":
            wrong.append(done.stdout + done.stderr[-300:])
    page.add(
        "## Full disks",
        f"{n} processes wrote until the system refused larger files, continued when it no longer "
        "did, and were compared with their replay.",
    )
    page.check(f"after {n} full disks, nothing is wrong {wrong[:1]}", not wrong)


def main(arguments: Iterable[str] | None = None) -> int:
    """Run all parts and write the page."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    options = parser.parse_args(None if arguments is None else list(arguments))
    share = 10 if options.quick else 1
    folder = folder_of(parser, options, is_whole=not options.quick)
    page = Report("durable", "Journals", folder)
    add_times(page, 100_000 // share)
    add_kills(page, max(4, 60 // share))
    add_full_disks(page, max(2, 10 // share))
    replica.LEAST_SPACING, replica.FEW_ROWS, replica.COPIED, replica.WRITTEN = (
        4,
        8,
        1 << 40,
        1 << 40,
    )
    add_exactness(page, max(2, 34 // share))
    return page.write()


if __name__ == "__main__":
    sys.exit(main())

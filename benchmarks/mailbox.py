"""A large mailbox: the time and the memory in which `kesler mail learn` learns it.

    python benchmarks/mailbox.py            # 20,000 and 100,000 messages
    python benchmarks/mailbox.py 5000

Messages are drawn at random: 40 folders, of which the k-th has 1/k times the messages of the first;
by Zipf's law 15 to 2,000 words of an endless list, a quarter of them words of the folder; 2,000
senders. A Dovecot of its own serves them on 127.0.0.1, which reads the folders for the first time.

The script writes benchmarks/results/mailbox.md. Processor time is that of each process alone; the
time on the clock is also that of others on the machine.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "papers"))
sys.path.append(str(Path(__file__).parents[1] / "tests"))
from script_arguments import folder_of, script_parser  # isort: skip
from report import Report, table  # isort: skip
from mailserver import PASSWORD, Dovecot  # isort: skip

SIZES = [20_000, 100_000]
N_FOLDERS, N_SENDERS, N_WORDS = 40, 2_000, 3_000_000
MOST_SECONDS, MOST_MB = 600, 500


class Cost(NamedTuple):
    """What learning a mailbox takes: seconds of the processor and on the clock, and megabytes."""

    own: float
    server: float
    clock: float
    memory: float
    database: float


def main() -> int:
    """Measure, and write the page of the results."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("sizes", type=int, nargs="*", default=SIZES, metavar="N")
    given = parser.parse_args()
    folder = folder_of(parser, given, is_whole=given.sizes == SIZES)
    report = Report("mailbox", "A large mailbox", folder)
    costs = {n: measured(n) for n in given.sizes}
    lines = [
        [f"{n:,}", f"{c.own:.0f}", f"{c.server:.0f}", f"{c.clock:.0f}", f"{c.memory:.0f}",
         f"{c.database:.0f}", f"{1000 * c.own / n:.2f}"]
        for n, c in costs.items()
    ]  # fmt: skip
    names = [
        "messages",
        "processor, s",
        "Dovecot, s",
        "clock, s",
        "most memory, MB",
        "database, MB",
    ]
    about = (
        f"`kesler mail learn` of {N_FOLDERS} folders, with other programs on the same cores: each "
        "message is predicted, and learnt in the order of dates."
    )
    report.add(about, table([*names, "processor, ms each"], lines))
    last = costs[given.sizes[-1]]
    report.check(f"the last takes at most {MOST_MB} MB", last.memory <= MOST_MB)
    is_fast = last.own + last.server <= MOST_SECONDS
    report.check(f"and {MOST_SECONDS} s of the processor", is_fast)
    return report.write()


def measured(n: int) -> Cost:
    """Return what it takes to learn a mailbox of n messages."""
    with tempfile.TemporaryDirectory(prefix="mb") as name:
        root = Path(name)
        fill(root / "mail" / "ann", n)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with Dovecot(root) as server:
            settings = server.settings(root / "mail.toml", "ann")
            start = time.monotonic()
            used = learnt(settings)
            clock = time.monotonic() - start
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        database = (root / "ann.db").stat().st_size / 1e6
    own = used.ru_utime + used.ru_stime
    every = children.ru_utime + children.ru_stime - before.ru_utime - before.ru_stime
    return Cost(own, every - own, clock, used.ru_maxrss / 1e3, database)


def learnt(settings: Path) -> resource.struct_rusage:
    """Return what a process has used that learns a mailbox."""
    command = [sys.executable, "-m", "kesler", "mail", "learn", str(settings)]
    environment = os.environ | {"MAIL_PASSWORD": PASSWORD}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"kesler mail learn has ended with {process.returncode}")
    return used


# ---- messages -------------------------------------------------------------------------------


def fill(root: Path, n: int) -> None:
    """Write a Maildir of n messages."""
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, N_FOLDERS + 1)
    names = [f"Folder {k}" for k in range(N_FOLDERS)]
    for name in ("", *(f".{each}" for each in names)):
        for part in ("cur", "new", "tmp"):
            (root / name / part).mkdir(parents=True)
    for number, k in enumerate(rng.choice(N_FOLDERS, n, p=shares / shares.sum()).tolist()):
        path = root / f".{names[k]}" / "cur" / f"{1_200_000_000 + number}.M{number}.x:2,S"
        path.write_bytes(b"\r\n".join(message(rng, number, k)) + b"\r\n")
    for path in (root, *root.rglob("*")):
        shutil.chown(path, "mail", "mail")


def message(rng: np.random.Generator, number: int, k: int) -> Iterator[bytes]:
    """Yield the lines of a message of a folder."""
    n_words = int(np.clip(rng.lognormal(4.6, 0.9), 15, 2000))
    body = [*words(rng, n_words - n_words // 4, "w"), *words(rng, n_words // 4, f"t{k}x")]
    rng.shuffle(body)
    subject = " ".join([*words(rng, 3, "w"), *words(rng, 2, f"t{k}x")])
    sender = int(rng.zipf(1.5)) % N_SENDERS
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(1.2e9 + 600 * number))
    headers = {
        "Message-ID": f"<{number}.{sender}@d{sender % 300}.example>",
        "Date": date,
        "From": f"User {sender} <u{sender}@d{sender % 300}.example>",
        "To": "ann@home.example",
        "Subject": subject,
        "Content-Type": "text/plain; charset=utf-8",
    }
    yield from (f"{name}: {value}".encode() for name, value in headers.items())
    yield b""
    for start in range(0, len(body), 12):
        yield " ".join(body[start : start + 12]).encode()


def words(rng: np.random.Generator, n: int, prefix: str) -> list[str]:
    """Return words of an endless list."""
    drawn = rng.zipf(1.35, n)
    rare = rng.integers(1, N_WORDS, n)
    return [f"{prefix}{each:x}" for each in np.where(drawn > N_WORDS, rare, drawn).tolist()]


if __name__ == "__main__":
    sys.exit(main())

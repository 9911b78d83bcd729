"""Time, memory and model file of `kesler learn` on long tables of ever new words.

    KESLER_DATA=... python benchmarks/long_tables.py N_ROWS [MEMORY_LIMIT]

The table is CSV with a text of 8 to 20 consecutive words of the posts of 20 newsgroups, of which
3 % have a wrong letter, a category, a number that is missing in a tenth of the rows, and a date;
the class is the group. Words and pairs of words are features, and new ones come with each row.
Memory is what the process holds, at twelve times of the stream and at most; 2,000,000 rows take 260
MB of disk and two and a half minutes of processor time.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from kesler.datasets import load

AS_IT_IS = argparse.RawDescriptionHelpFormatter
CHANNELS = ["mail", "phone", "web", "shop", "app", "letter", "chat", "fax"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TYPOS, MISSING = 0.03, 0.1
PAGE = os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    """Write the table, learn it in another process, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=AS_IT_IS)
    parser.add_argument("n_rows", type=int, help="the number of rows")
    parser.add_argument("memory_limit", nargs="?", help="such as 200MB")
    given = parser.parse_args()
    limit = [] if given.memory_limit is None else [f"--memory-limit={given.memory_limit}"]
    with tempfile.TemporaryDirectory() as folder:
        path, model = Path(folder, "rows.csv"), Path(folder, "model.kesler")
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(table(given.n_rows))
        command = [sys.executable, "-m", "kesler", "learn", str(model), str(path)]
        megabytes = watched([*command, "--label", "team", *limit])
        used = getrusage(RUSAGE_CHILDREN)
        print(f"processor: {used.ru_utime + used.ru_stime:.1f} s")
        print("MB over time:", *(f"{each:.0f}" for each in megabytes[:: len(megabytes) // 12 or 1]))
        print(f"at most: {used.ru_maxrss * 1024 / 1e6:,.0f} MB")
        print(f"model file: {model.stat().st_size / 1e6:,.0f} MB")
    return 0


def watched(command: list[str]) -> list[float]:
    """Run a command; return the memory of its process in megabytes, twice a second."""
    found = []
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            pages = Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()
            found.append(int(pages[1]) * PAGE / 1e6 if len(pages) > 1 else 0.0)
            time.sleep(0.5)
    if process.returncode:
        sys.exit(process.returncode)
    return found


def table(n_rows: int) -> Iterator[list[str]]:
    """Yield the names of the columns, and rows."""
    drawn, posts = random.Random(0), load("20newsgroups")
    texts: dict[str, list[list[str]]] = {}
    for record, group in zip(posts.records[: posts.n_train], posts.y, strict=False):
        words = re.findall(r"[A-Za-z][A-Za-z']+[.,]?", record["text"].split("\n\n", 1)[-1])
        if len(words) > 30:
            texts.setdefault(group, []).append(words)
    groups = sorted(texts)
    yield ["body", "channel", "amount", "received", "team"]
    for number in range(n_rows):
        group = drawn.randrange(len(groups))
        body = window(drawn.choice(texts[groups[group]]), drawn)
        channel = CHANNELS[(group + drawn.choice((0, 0, 0, 1, 2, 5))) % len(CHANNELS)]
        is_missing = drawn.random() < MISSING
        amount = "" if is_missing else f"{drawn.lognormvariate(2 + group / 10, 1):.2f}"
        day = datetime(2024, 1, 1) + timedelta(minutes=number // 2)
        yield [body, channel, amount, f"{day:%Y-%m-%d %H:%M:%S}", groups[group]]


def window(words: list[str], drawn: random.Random) -> str:
    """Return consecutive words, some with a wrong letter."""
    start = drawn.randrange(len(words) - 20)
    some = words[start : start + drawn.randint(8, 20)]
    return " ".join(wrong(word, drawn) if drawn.random() < TYPOS else word for word in some)


def wrong(word: str, drawn: random.Random) -> str:
    """Return a word with another letter at a place."""
    place = drawn.randrange(len(word))
    return word[:place] + drawn.choice(LETTERS) + word[place + 1 :]


if __name__ == "__main__":
    sys.exit(main())

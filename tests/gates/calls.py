"""How many Python functions each path of a warm learner calls, against the limits in `calls.tsv`.

    python tests/gates/calls.py            # what is called now, beside the limits
    python tests/gates/calls.py --write    # lower the limits to what is called now

Calls within NumPy, pandas and narwhals count as well, and differ a little between their versions.
A limit goes down with `--write`; who needs a higher one edits the line, and says why in the commit.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

FILE = Path(__file__).parent / "calls.tsv"
HEADER = """\
# Most calls of Python functions by each path, and the files that define them.
# `python tests/gates/calls.py --write` lowers the limits to what is called.
"""


def counted(call: Callable[[], Any]) -> tuple[int, int]:
    """Return the number of Python functions that run, and of the files that define them."""
    files: list[str] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            files.append(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(files), len(set(files))


def paths(folder: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name of each path, and a call of it that has run before."""
    from kesler import OnlineClassifier
    from kesler.durable import Journal

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 16)), rng.integers(0, 4, 500).tolist()
    model = OnlineClassifier().fit(X, y)
    yield "learn_one of an array", lambda: model.learn_one(X[30], y[30])
    yield "partial_fit of 100 rows of an array", lambda: model.partial_fit(X[:100], y[:100])
    kinds = ["one" if value > 0 else "two" for value in X[:40, 2]]
    frame = pd.DataFrame({"a": X[:40, 0], "b": X[:40, 1], "c": kinds})
    table = OnlineClassifier().fit(frame, y[:40])
    yield "partial_fit of a frame of 40 x 3", lambda: table.partial_fit(frame, y[:40])
    with Journal(Path(folder) / "journal.db") as journal:
        kept, row = journal.open("kept", OnlineClassifier()), X[0].tolist()
        yield "learn_one of a journal", lambda: kept.learn_one(row, y[0])


def called() -> dict[str, tuple[int, int]]:
    """Return the calls and the files of each path, after some runs of it."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, call in paths(folder):
            for _ in range(40):
                call()
            found[name] = min(counted(call) for _ in range(5))
    return found


def limits() -> dict[str, tuple[int, int]]:
    """Return the limits of the paths."""
    lines = [line.split("\t") for line in FILE.read_text().splitlines() if line[0] != "#"]
    return {name: (int(n_calls), int(n_files)) for name, n_calls, n_files in lines}


def main() -> None:
    """Print what is called beside the limits, and lower these if that is asked for."""
    now, known = called(), limits() if FILE.exists() else {}
    for name, (n_calls, n_files) in now.items():
        print(f"{name}\t{n_calls} calls\t{n_files} files\tof {known.get(name)}")
    if "--write" in sys.argv:
        lower = {name: min(now[name], known.get(name, now[name])) for name in now}
        lines = [f"{name}\t{calls}\t{files}\n" for name, (calls, files) in lower.items()]
        FILE.write_text(HEADER + "".join(lines))


if __name__ == "__main__":
    main()

"""Whether rows take more time than in another commit: the last release, or one that is given.

    python tests/gates/speed.py COMMIT [--pairs 12] [--tree FOLDER]

The other commit is checked out in a temporary folder. Pairs of processes, one of each version, run
one after another, in an order that alternates, so that what else the machine does slows both.
Each process learns the same rows several times and reports the least processor time. The gate fails
where, for a learner, the geometric mean of the ratios is 1.05 or more, and its lower 95 % limit is
above 1: an increase that is large, and no accident.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 1.05
"""The ratio at which a learner is too slow."""

LETTERS = "data = load('letter'); X, y = data.X, data.y"
TEXTS = "data = load('banking77/stream'); X, y = [each['text'] for each in data.records], data.y"
LEARNERS = {
    "default": ("OnlineClassifier()", LETTERS, 3000),
    "pa1": ("OnlineClassifier('multi', update='pa1')", LETTERS, 20000),
    "texts": ("OnlineClassifier()", TEXTS, 3000),
}
"""Learners by name, their rows and how many."""

MEASURE = """
import time
from kesler import OnlineClassifier
from kesler.datasets import load
{rows}
X, y = X[:{n}], y[:{n}]
times = []
for _ in range({runs} + 1):  # the first loads what was compiled
    model = {learner}
    start = time.process_time()
    model.partial_fit(X, y)
    times.append(time.process_time() - start)
print(min(times[1:]))
"""
RUNS = 7
FEWEST_PAIRS = 5
SHIPPED = "src/kesler/compiled/shipped"

# Two-sided 95 % quantiles of Student's t, by degrees of freedom.
QUANTILES = {4: 2.776, 5: 2.571, 7: 2.365, 9: 2.262, 11: 2.201, 15: 2.131, 19: 2.093, 29: 2.045}


def limits(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean of five ratios or more, and its 95 % limits, lower and upper."""
    logs = [math.log(ratio) for ratio in ratios]
    n = len(logs)
    mean = sum(logs) / n
    error = math.sqrt(sum((each - mean) ** 2 for each in logs) / (n - 1) / n)
    width = QUANTILES[max(each for each in QUANTILES if each <= n - 1)] * error
    return math.exp(mean), math.exp(mean - width), math.exp(mean + width)


def is_slower(ratios: Sequence[float]) -> bool:
    """Return whether the ratios show that rows take 5 % more time, or more than that."""
    ratio, low, _ = limits(ratios)
    return ratio >= MOST and low > 1


def seconds(tree: Path, name: str) -> float:
    """Return the processor time of a learner of one version, in a process of its own."""
    learner, rows, n_rows = LEARNERS[name]
    code = MEASURE.format(learner=learner, rows=rows, n=n_rows, runs=RUNS)
    environment = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "OMP_NUM_THREADS": "1",
        "KESLER_COMPILE": "foreground",
    }
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, cwd=tree, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name} cannot be measured in {tree}:\n{done.stderr}")
    return float(done.stdout)


def ratios_of(name: str, now: Path, before: Path, n_pairs: int) -> list[float]:
    """Return the time of this version over that of the other, for each pair of processes."""
    seconds(now, name), seconds(before, name)  # compiles what is not compiled yet
    ratios = []
    for i in range(n_pairs):
        order = (now, before) if i % 2 else (before, now)
        times = {tree: seconds(tree, name) for tree in order}
        ratios.append(times[now] / times[before])
    return ratios


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Check a commit out in a temporary folder."""
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "before")
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def compared(now: Path, before: Path, n_pairs: int) -> int:
    """Print the ratio of each learner; return 1 if one is too slow."""
    failed = 0
    for name in LEARNERS:
        ratios = ratios_of(name, now, before, n_pairs)
        ratio, low, high = limits(ratios)
        slower = is_slower(ratios)
        failed |= slower
        said = "TOO SLOW" if slower else "passes"
        print(f"{name}: {ratio:.3f} times the time ({low:.3f} to {high:.3f}), {said}", flush=True)
    return int(failed)


def main() -> int:
    """Compare this tree, or another, with a commit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("commit", help="the last release, or any commit")
    parser.add_argument("--pairs", type=int, default=12, help="pairs of processes (12)")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the tree that is judged (this)")
    arguments = parser.parse_args()
    if not arguments.commit or arguments.pairs < FEWEST_PAIRS:
        parser.error(f"name a commit (make speed AGAINST=...), and {FEWEST_PAIRS} pairs or more")
    if (arguments.tree / SHIPPED).exists():
        parser.error(f"{SHIPPED} holds loops of a wheel, which are other code: make clean")
    with checked_out(arguments.commit) as before:
        return compared(arguments.tree.resolve(), before, arguments.pairs)


if __name__ == "__main__":
    sys.exit(main())

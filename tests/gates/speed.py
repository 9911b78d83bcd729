"""Whether rows take more time than in another commit: the last release, or one that is given.

    python tests/gates/speed.py v0.1.0 [--pairs 12] [--tree FOLDER]

The other commit is checked out in a temporary folder. Pairs of processes, one of each version, run
one after the other, in an order that alternates, so that what else the machine does slows both.
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

LEARNERS = {
    "default": "OnlineClassifier()",
    "pa1": "OnlineClassifier('multi', update='pa1')",
}
"""Learners on rows of letters, by name."""

MEASURE = """
import time
from kesler import OnlineClassifier
from kesler.datasets import load_letter
data = load_letter()
X, y = data.X[:{n}], data.y[:{n}]
times = []
for _ in range({runs} + 1):  # the first loads what was compiled
    model = {learner}
    start = time.process_time()
    model.partial_fit(X, y)
    times.append(time.process_time() - start)
print(min(times[1:]))
"""
N_ROWS = {"default": 3000, "pa1": 20000}
RUNS = 7

# Two-sided 95 % quantiles of Student's t, by degrees of freedom.
QUANTILES = {4: 2.776, 5: 2.571, 7: 2.365, 9: 2.262, 11: 2.201, 15: 2.131, 19: 2.093, 29: 2.045}


def limits(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean of ratios and its 95 % limits, lower and upper."""
    logs = [math.log(ratio) for ratio in ratios]
    n = len(logs)
    mean = sum(logs) / n
    error = math.sqrt(sum((each - mean) ** 2 for each in logs) / (n - 1) / n)
    known = [degrees for degrees in QUANTILES if degrees <= n - 1]
    width = QUANTILES[max(known)] * error if known else math.inf
    return math.exp(mean), math.exp(mean - width), math.exp(mean + width)


def is_slower(ratios: Sequence[float]) -> bool:
    """Return whether the ratios show that rows take 5 % more time, or more than that."""
    ratio, low, _ = limits(ratios)
    return ratio >= MOST and low > 1


def seconds(tree: Path, name: str) -> float:
    """Return the processor time of a learner of one version, in a process of its own."""
    code = MEASURE.format(learner=LEARNERS[name], n=N_ROWS[name], runs=RUNS)
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env=environment, cwd=tree, check=True, capture_output=True, text=True
    )
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
    with checked_out(arguments.commit) as before:
        return compared(arguments.tree.resolve(), before, arguments.pairs)


if __name__ == "__main__":
    sys.exit(main())

"""Rows per second of one pass over a text-like stream, beside Vowpal Wabbit's in the same run.

    python benchmarks/stream.py [--runs 3] [--rows 100000] [--classes 20 200 2000]

Kesler runs PassiveAggressive (PA-I) on one hypothesis a class, told neither the classes nor their
number; of the smallest number of classes also PA-I on hybrid hypotheses, and the default learner.
Vowpal Wabbit runs `--oaa K` from a warm cache, with a table large enough that weights do not
collide; it is left out, by name, where the package vowpalwabbit is not installed. Both predict each
row before they learn it, and both errors count every row. Runs alternate; medians are printed.
Since the larger races take Vowpal Wabbit minutes, it is timed on 40,000,000 / K rows at most.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from scipy import sparse

from kesler import OnlineClassifier, progressive_validate
from text_stream import make_text_stream

TARGETS = {20: 5, 200: 8, 2000: 10}


def main() -> None:
    """Run the races and print a table."""
    arguments = parse()
    has_peer = importlib.util.find_spec("vowpalwabbit") is not None
    if not has_peer:
        print("vowpalwabbit is not installed: left out (pip install vowpalwabbit)")
    print(f"{'K':>6} {'learner':<22} {'rows':>8} {'rows/s':>10} {'error %':>8} {'ratio':>7}")
    reached = True
    for n_classes in arguments.classes:
        X, y = make_text_stream(arguments.rows, n_classes)
        reached &= race(X, y, n_classes, arguments.runs, has_peer)
    sys.exit(0 if reached else 1)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each (default 3)")
    parser.add_argument("--rows", type=int, default=100_000, help="rows (default 100,000)")
    parser.add_argument("--classes", type=int, nargs="+", default=[20, 200, 2000])
    return parser.parse_args()


def race(X: sparse.csr_array, y: np.ndarray, n_classes: int, runs: int, has_peer: bool) -> bool:
    """Time both learners in turn and print their rows; return whether the target is reached."""
    run_kesler(X[:100], y[:100])  # compiles, or loads what was compiled
    ours, theirs = [], []
    others = {"kesler PA-I, hybrid": "pa1", "kesler default": "default"} if n_classes <= 20 else {}
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in others}
    with tempfile.TemporaryDirectory() as folder:
        peer = PeerRace(Path(folder), X, y, n_classes) if has_peer else None
        for _ in range(runs):
            ours.append(run_kesler(X, y))
            for name, update in others.items():
                rates[name].append(run_kesler(X, y, "default", update))
            if peer:
                theirs.append(peer.run())
    rate = median(r for r, _ in ours)
    show(n_classes, "kesler PA-I", X.shape[0], rate, ours[0][1])
    for name, found in rates.items():
        other = median(r for r, _ in found)
        cost = f"{rate / other:.1f} times the time of PA-I"
        show(n_classes, name, X.shape[0], other, found[0][1], cost)
    if not peer:
        return True
    peer_rate = median(r for r, _ in theirs)
    target = TARGETS.get(n_classes, 1)
    ratio = f"{rate / peer_rate:.1f} (at least {target})"
    show(n_classes, "vw --oaa, warm cache", peer.n_rows, peer_rate, theirs[0][1], ratio)
    return rate >= target * peer_rate


def run_kesler(
    X: sparse.csr_array, y: np.ndarray, hypotheses: str = "multi", update: str = "pa1"
) -> tuple[float, float]:
    """Return rows per second and the share of rows predicted wrongly."""
    model = OnlineClassifier(hypotheses, update=update)
    start = time.perf_counter()
    result = progressive_validate(model, X, y)
    seconds = time.perf_counter() - start
    return X.shape[0] / seconds, (result.n_mistakes + result.n_first_seen) / X.shape[0]


class PeerRace:
    """Vowpal Wabbit on the same rows, from a cache that a first pass has written."""

    def __init__(self, folder: Path, X: sparse.csr_array, y: np.ndarray, n_classes: int) -> None:
        self.n_rows = min(X.shape[0], 40_000_000 // n_classes)
        bits = 18 + int(np.ceil(np.log2(n_classes)))
        data = folder / "stream.vw"
        write_vw(data, X[: self.n_rows], y)
        self.arguments = (
            f"--oaa {n_classes} -b {bits} -d {data} --cache_file {folder / 'cache'} --quiet"
        )
        self.run()

    def run(self) -> tuple[float, float]:
        """Return rows per second and the share of rows predicted wrongly."""
        from vowpalwabbit import Workspace

        start = time.perf_counter()
        workspace = Workspace(self.arguments)
        wrong = workspace.get_sum_loss()
        workspace.finish()
        return self.n_rows / (time.perf_counter() - start), wrong / self.n_rows


def write_vw(path: Path, X: sparse.csr_array, y: np.ndarray) -> None:
    """Write rows as Vowpal Wabbit's text, classes from 1."""
    with path.open("w") as file:
        for row in range(X.shape[0]):
            words = X.indices[X.indptr[row] : X.indptr[row + 1]]
            file.write(f"{y[row] + 1} | {' '.join(map(str, words))}\n")


def show(
    n_classes: int, name: str, n_rows: int, rate: float, error: float, ratio: str = ""
) -> None:
    """Print one row of the table."""
    cells = f"{n_classes:>6} {name:<22} {n_rows:>8,} {rate:>10,.0f} {100 * error:>8.2f}"
    print(f"{cells}   {ratio}", flush=True)


if __name__ == "__main__":
    main()

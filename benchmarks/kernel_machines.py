"""Rows per second of online kernel machines on LETTER, compared with Vowpal Wabbit.

    python benchmarks/kernel_machines.py [--quick] [--peer-rows 2000]

Each learner makes one pass over the 20,000 rows, with 16 features scaled to [0, 1] and 26 classes.
Kesler runs the RBF kernel Perceptron with one hypothesis per class, and stores every support
vector. Vowpal Wabbit runs `--oaa 26 --ksvm --kernel rbf` with the same kernel, on the first rows
only, since it takes minutes on all; this is in its favour, since the time per row grows with the
support vectors. Kesler also runs on these rows, to compare the mistakes. All predict rows before
they learn them.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler import OnlineClassifier, progressive_validate
from kesler.datasets import load
from peer import write
from racing import Contestant, Figures, Race, command_line, times_faster

SIGMA = 0.07
"""Of exp(-||x - z||^2 / (2 sigma)), for features in [0, 1]; Vowpal Wabbit's bandwidth is
1 / (2 sigma)."""
TARGET = 500
OURS, SAME_ROWS, VW = "kesler, RBF Perceptron", "kesler, the peer's rows", "vw --oaa --ksvm"

Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]


def letter() -> tuple[Floats, Codes]:
    """Return LETTER with features in [0, 1] and encoded classes."""
    data = load("letter")
    X = np.asarray(data.X, dtype=np.float32)
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    return X, np.unique(np.asarray(data.y), return_inverse=True)[1]


def kesler(X: Floats, y: Codes) -> Figures:
    """Make one pass with the kernel Perceptron."""
    model = OnlineClassifier("multi", update="perceptron", kernel="rbf", sigma=SIGMA)
    result = progressive_validate(model, X, y)
    return {"error %": 100 * (result.n_mistakes + result.n_first_seen) / len(y)}


class VowpalWabbit:
    """Vowpal Wabbit on a file of rows."""

    def __init__(self, path: Path, X: Floats, y: Codes) -> None:
        self.path, self.X, self.y = path, X, y

    def prepare(self) -> None:
        """Write the rows."""
        write(self.path, sparse.csr_array(self.X), self.y)

    def run(self) -> Figures:
        """Make one pass."""
        from vowpalwabbit import Workspace

        bandwidth = 1 / (2 * SIGMA)
        workspace = Workspace(
            f"--oaa 26 --ksvm --kernel rbf --bandwidth {bandwidth} -d {self.path} --quiet"
        )
        wrong = workspace.get_sum_loss()
        workspace.finish()
        return {"error %": 100 * wrong / len(self.y)}


def main() -> int:
    """Run the race."""
    parser = command_line(__doc__)
    parser.add_argument("--peer-rows", type=int, help="rows of the peer (2,000, or 200 if --quick)")
    arguments = parser.parse_args()
    race = Race("kernel_machines", "Kernel machines on LETTER", __doc__, arguments)
    X, y = letter()
    n = arguments.peer_rows or (200 if race.is_quick else 2000)
    compile_first = partial(kesler, X[:100], y[:100])
    with tempfile.TemporaryDirectory() as folder:
        peer = VowpalWabbit(Path(folder) / "letter.vw", X[:n], y[:n])
        entries = [
            Contestant(OURS, partial(kesler, X, y), len(y), prepare=compile_first),
            Contestant(SAME_ROWS, partial(kesler, X[:n], y[:n]), n),
            Contestant(VW, peer.run, n, "vowpalwabbit", most=1, prepare=peer.prepare),
        ]
        laps = race.run("LETTER, 26 classes", entries)
    faster = times_faster(laps, OURS, VW, race.clock)
    race.at_least("the kernel Perceptron, times Vowpal Wabbit's rows per second", faster, TARGET)
    return race.write()


if __name__ == "__main__":
    sys.exit(main())

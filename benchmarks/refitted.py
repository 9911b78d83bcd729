"""Stronger peers on the sets of the study: refitted models and a random forest, with stored runs.

    nice python benchmarks/refitted.py [--sets vowel ...] [--peers LightGBM ...]

Every peer predicts each row before it learns it; the first row of a class is not counted. Models of
scikit-learn and LightGBM are fitted again on all rows so far whenever their number has doubled:
TF-IDF with LinearSVC on words, the others on measurements and categories, which have one column for
each value. Logistic regression takes z-scores, and means in place of missing numbers. river's
adaptive random forest learns row by row, on measurements of at most 20,000 rows and 30 columns. All
have their default settings. Which rows were wrong, and the processor time, are stored in
benchmarks/results/peers.json after each run, and stored runs are not repeated.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse

from drifting import DRIFTS
from kesler import progressive_validate
from peer import Wrong, packed, unpacked
from sets import SETS, RealSet, Stream, numbers

RESULTS = Path(__file__).parent / "results"
FOREST_ROWS, FOREST_COLUMNS = 20_000, 30
"""The most rows and columns of the sets that the forest runs on."""

BOOSTING, LINEAR, FOREST = "LightGBM", "TF-IDF + LinearSVC", "adaptive random forest"
EXTRA, RANDOM, LOGISTIC = "extra trees", "random forest", "logistic regression"


@dataclass(frozen=True)
class Peer:
    """A peer of the study.

    Parameters
    ----------
    package : str
        Its package.
    make : callable
        Returns the model.
    rows : callable
        Returns the rows that it takes, given those of a stream.
    suits : callable
        Returns whether it runs on a set, given the set and its stream.
    refit : "doubling" or None
        When the model is fitted again.
    """

    package: str
    make: Callable[[], Any]
    rows: Callable[[Any], Any]
    suits: Callable[[RealSet, Stream], bool]
    refit: Literal["doubling"] | None = None


@dataclass(frozen=True)
class PeerRun:
    """A run of a peer: which rows were wrong, and the processor time in seconds."""

    wrong: Wrong
    seconds: float


def boosting() -> Any:
    """Return gradient boosting with its default settings, on one thread."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbose=-1)


def linear() -> Any:
    """Return TF-IDF of words followed by a linear support vector machine."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    return make_pipeline(TfidfTransformer(), LinearSVC())


def extra_trees() -> Any:
    """Return extremely randomised trees with their default settings, on one thread."""
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(random_state=0)


def random_forest() -> Any:
    """Return a random forest with its default settings, on one thread."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=0)


def logistic() -> Any:
    """Return logistic regression over z-scores, with the mean in place of a missing number."""
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    mean = SimpleImputer(keep_empty_features=True)
    return make_pipeline(mean, StandardScaler(), LogisticRegression())


def forest() -> Any:
    """Return river's adaptive random forest with its default settings."""
    from river.forest import ARFClassifier

    return ARFClassifier(seed=0)


def counted(X: Any) -> Any:
    """Return rows as counts, with the indices of 32 bits that scikit-learn's model needs."""
    X = sparse.csr_array(numbers(X))
    indices, ends = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sparse.csr_array((X.data, indices, ends), shape=X.shape)


def listed(X: Any) -> Any:
    """Return rows as an array that lists every feature."""
    X = numbers(X)
    return X.toarray() if sparse.issparse(X) else X


def is_tabular(each: RealSet, _: Stream) -> bool:
    """Return whether rows are measurements or those of a table."""
    return each.kind != "text"


def is_narrow(each: RealSet, stream: Stream) -> bool:
    """Return whether a set is small enough for the forest."""
    if each.kind == "text" or isinstance(stream.X, list):
        return False
    n_rows, n_columns = stream.X.shape
    return n_rows <= FOREST_ROWS and n_columns <= FOREST_COLUMNS


PEERS = {
    LINEAR: Peer(
        "scikit-learn", linear, counted, lambda each, _: each.kind == "text", refit="doubling"
    ),
    FOREST: Peer("river", forest, lambda X: X, is_narrow),
    BOOSTING: Peer("lightgbm", boosting, listed, is_tabular, refit="doubling"),
    EXTRA: Peer("scikit-learn", extra_trees, listed, is_tabular, refit="doubling"),
    RANDOM: Peer("scikit-learn", random_forest, listed, is_tabular, refit="doubling"),
    LOGISTIC: Peer("scikit-learn", logistic, listed, is_tabular, refit="doubling"),
}


@dataclass
class KeptPeers:
    """The stored runs of the peers, in a JSON file.

    Parameters
    ----------
    path : Path
        The file.
    """

    path: Path = RESULTS / "peers.json"

    def __post_init__(self) -> None:
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else "{}"
        self._runs: dict[str, Any] = json.loads(text)

    def get(self, peer: str, name: str, n_rows: int) -> PeerRun | None:
        """Return the run of a peer on a set of so many rows; None if there is none."""
        found = self._runs.get(self.key(peer, name, n_rows))
        return found and PeerRun(unpacked(found["wrong"], n_rows), found["seconds"])

    def keep(self, peer: str, name: str, run: PeerRun) -> None:
        """Store a run."""
        package = PEERS[peer].package
        self._runs[self.key(peer, name, len(run.wrong))] = {
            "mistakes": int(run.wrong.sum()),
            "seconds": round(run.seconds, 2),
            "version": f"{package} {version(package)}",
            "wrong": packed(run.wrong),
        }
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(self._runs, indent=0) + "\n", encoding="utf-8")

    @property
    def versions(self) -> list[str]:
        """The packages of the runs and their versions."""
        return sorted({run["version"] for run in self._runs.values()})

    @staticmethod
    def key(peer: str, name: str, n_rows: int) -> str:
        """Return the key of a run."""
        return f"{peer} | {name} | {n_rows} rows"


def run_peer(peer: Peer, stream: Stream) -> PeerRun:
    """Run a peer on a stream."""
    X = peer.rows(stream.X)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models that are fitted on the first few rows
        result = progressive_validate(peer.make(), X, stream.y, refit=peer.refit)
    return PeerRun(np.asarray(result.wrong), time.process_time() - start)


def main() -> None:
    """Run the peers on the sets that are asked for, the smallest first."""
    arguments = parse()
    kept = KeptPeers()
    for peer in arguments.peers:
        for each, stream in smallest_first(arguments.sets):
            if PEERS[peer].suits(each, stream) and not kept.get(peer, each.name, len(stream.y)):
                run = run_peer(PEERS[peer], stream)
                kept.keep(peer, each.name, run)
                error = 100 * run.wrong.mean()
                print(f"{peer}, {each.name}: {error:.2f} % in {run.seconds:.1f} s", flush=True)


def smallest_first(names: Iterable[str]) -> list[tuple[RealSet, Stream]]:
    """Return sets and their rows, ordered by the number of values."""
    pairs = [(each, each.stream()) for each in (*SETS, *DRIFTS) if each.name in names]
    return sorted(pairs, key=lambda pair: np.prod(getattr(pair[1].X, "shape", len(pair[1].y))))


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [each.name for each in (*SETS, *DRIFTS)]
    parser.add_argument("--sets", nargs="+", choices=names, default=names, help="only these")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS), help="only these")
    return parser.parse_args()


if __name__ == "__main__":
    main()

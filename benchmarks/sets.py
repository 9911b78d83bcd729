"""The 23 real sets for choosing defaults: how each is read, and its published errors.

Classes are encoded in the order of first appearance, so that the codes carry no information.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.decomposition import PCA

from kesler.datasets import load

sys.path.append(str(Path(__file__).parents[1] / "papers"))
from enron import count_words, read_mail

SHUFFLE_SEED = 0
N_PERSONS, N_COMPONENTS = 30, 60
MNIST_ROWS = 20_000

Features = npt.NDArray[np.float32] | sparse.csr_array
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in the order of learning, and their classes, encoded by first appearance."""

    X: Features
    y: Codes

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.y.max()) + 1

    def reordered(self, seed: int) -> Stream:
        """Return the same rows in a random order."""
        order = np.random.default_rng(seed).permutation(len(self.y))
        return Stream(self.X[order], by_appearance(self.y[order]))

    def head(self, n_rows: int) -> Stream:
        """Return the first rows."""
        return Stream(self.X[:n_rows], self.y[:n_rows])


@dataclass(frozen=True)
class Published:
    """Errors measured beforehand (../shared/design/accuracy.md), in %.

    Parameters
    ----------
    default, tuned : float
        Vowpal Wabbit's default, and the best of nine settings.
    fixed : float
        Column D3: the prototype with one fixed setting.
    """

    default: float
    tuned: float
    fixed: float


@dataclass(frozen=True)
class RealSet:
    """One set of the study.

    Parameters
    ----------
    name : str
        The name in the tables.
    kind : "text" or "dense"
        Counts of words, or measurements.
    read : callable
        Returns rows and labels in the order of their source.
    published : Published
    shuffled : bool
        Whether to shuffle the rows, since the source is sorted by class.
    """

    name: str
    kind: Literal["text", "dense"]
    read: Callable[[], tuple[Features, Any]]
    published: Published
    shuffled: bool = False

    def stream(self) -> Stream:
        """Read the set as a stream."""
        X, labels = self.read()
        stream = Stream(X, by_appearance(np.asarray(labels)))
        return stream.reordered(SHUFFLE_SEED) if self.shuffled else stream


def by_appearance(labels: npt.NDArray[Any]) -> Codes:
    """Encode the labels as numbers from 0, in the order of first appearance.

    Examples
    --------
    >>> by_appearance(np.array(["b", "a", "b", "c"])).tolist()
    [0, 1, 0, 2]
    """
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[codes], dtype=np.int64)


# ---- readers --------------------------------------------------------------------------------


def mail(user: str) -> tuple[Features, Any]:
    """Read one user's messages as counts of words."""
    messages = read_mail(user)
    return messages.counts, messages.folders


def texts(name: str) -> tuple[Features, Any]:
    """Read a set of texts as counts of words."""
    data = load(name)
    return count_words(" ".join(record.values()) for record in data.records), data.y


def counts(name: str) -> tuple[Features, Any]:
    """Read a table of counts."""
    data = load(name)
    return sparse.csr_array(data.X), data.y


def measurements(name: str) -> tuple[Features, Any]:
    """Read a table of measurements."""
    data = load(name)
    return np.asarray(data.X, dtype=np.float32), data.y


def faces() -> tuple[Features, Any]:
    """Read the faces of the first 30 persons, as 60 principal components."""
    X, y = measurements("yaleb")
    chosen = np.isin(y, np.unique(y)[:N_PERSONS])
    components = PCA(N_COMPONENTS, svd_solver="full").fit_transform(X[chosen] / 255)
    return components.astype(np.float32), y[chosen]


def digits() -> tuple[Features, Any]:
    """Read the first 20,000 rows of MNIST."""
    X, y = measurements("mnist")
    return X[:MNIST_ROWS], y[:MNIST_ROWS]


# ---- the table ------------------------------------------------------------------------------


def _mail(user: str, *figures: float) -> RealSet:
    return RealSet(user, "text", lambda: mail(user), Published(*figures))


def _texts(name: str, *figures: float, shuffled: bool = False) -> RealSet:
    return RealSet(name, "text", lambda: texts(name), Published(*figures), shuffled)


def _table(name: str, *figures: float, shuffled: bool = False) -> RealSet:
    return RealSet(name, "dense", lambda: measurements(name), Published(*figures), shuffled)


SETS = (
    _mail("beck-s", 40.44, 37.95, 35.06),
    _mail("farmer-d", 18.41, 18.11, 16.50),
    _mail("kaminski-v", 34.84, 33.73, 31.18),
    _mail("kitchen-l", 34.32, 32.23, 30.83),
    _mail("lokay-m", 14.62, 14.62, 13.42),
    _mail("sanders-r", 18.52, 17.76, 12.79),
    _mail("williams-w3", 2.85, 2.85, 2.46),
    _texts("20newsgroups", 14.11, 12.72, 12.22, shuffled=True),
    _texts("r8", 4.65, 4.55, 3.86),
    _texts("webkb", 9.19, 9.19, 9.00),
    _texts("trec", 22.11, 21.59, 21.61),
    _texts("ag_news", 15.14, 14.92, 14.55),
    RealSet("cnae9", "text", lambda: counts("cnae9"), Published(7.96, 7.96, 7.87)),
    _table("letter", 37.59, 35.48, 25.43),
    _table("pendigits", 12.24, 10.73, 6.95),
    _table("landsat", 19.25, 18.62, 15.37, shuffled=True),
    _table("shuttle", 9.20, 8.11, 0.91),
    _table("segment", 18.48, 16.41, 10.17),
    _table("vowel", 56.97, 54.04, 34.34),
    _table("optdigits", 5.43, 5.43, 4.89),
    _table("isolet", 20.17, 19.14, 9.88, shuffled=True),
    RealSet("yaleb", "dense", faces, Published(23.02, 23.02, 16.88), shuffled=True),
    RealSet("mnist", "dense", digits, Published(10.79, 10.60, 10.26)),
)

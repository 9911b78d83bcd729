"""The 61 real sets for choosing defaults: how each is read, its group, and its published errors.

Rows are what a user has: texts are strings, and rows of tables are dictionaries.
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

from kesler.datasets import load, load_enron

sys.path.append(str(Path(__file__).parents[1] / "papers"))
from enron import ARRIVING, count_words
from fresh import Record, fresh_measurements, fresh_table, fresh_texts, one_hot

SHUFFLE_SEED = 0
N_PERSONS, N_COMPONENTS = 30, 60
MNIST_ROWS = 20_000

Features = npt.NDArray[Any] | sparse.csr_array | list[str] | list[Record]
"""Measurements (float32), text categories (object), counts of words, texts, or rows of a table."""

Codes = npt.NDArray[np.int64]
Kind = Literal["text", "dense", "table"]

LONG, SHORT = "text long", "text short"
IMAGES, PHYSICAL = "images", "physical measurements"
TABLES, STREAMS = "tables with categories", "streams with drift"
TINY, FEW = "tiny", "few rows a class"
GROUPS = (LONG, SHORT, IMAGES, PHYSICAL, TABLES, STREAMS, TINY, FEW)
"""Groups of sets, which the study leaves out in turn.

Texts are short if their median is under 50 words; images are pixels, or measures of a picture; the
order of streams is that of time. Tiny sets have below 600 rows, all of them measurements."""


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
        X = [self.X[i] for i in order] if isinstance(self.X, list) else self.X[order]
        return Stream(X, by_appearance(self.y[order]))

    def in_numbers(self) -> Stream:
        """Return the rows as numbers: counts of the words of texts, columns of categories."""
        return Stream(numbers(self.X), self.y)

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
    kind : "text", "dense" or "table"
        Words, measurements or text categories.
    group : str
        One of `GROUPS`.
    read : callable
        Returns rows and labels in the order of their source.
    published : Published or None
        None for the sets that were added later.
    shuffled : bool
        Whether to shuffle the rows, since the source is sorted by class.
    """

    name: str
    kind: Kind
    group: str
    read: Callable[[], tuple[Features, Any]]
    published: Published | None = None
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


def numbers(X: Features) -> npt.NDArray[np.float32] | sparse.csr_array:
    """Return rows as numbers, for peers that take nothing else.

    Texts become counts of their words, and categories one column for each value; missing numbers
    are NaN.

    Examples
    --------
    >>> numbers(np.array([["a", "x"], ["b", "x"]], dtype=object)).toarray().tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """
    if isinstance(X, list):
        return count_words(X) if isinstance(X[0], str) else one_hot(X)[0]
    if sparse.issparse(X) or X.dtype != object:
        return X
    columns = [np.unique(column, return_inverse=True) for column in X.T.astype(str)]
    starts = np.cumsum([0, *(len(values) for values, _ in columns)])
    codes = np.stack([codes for _, codes in columns], axis=1) + starts[:-1]
    ends = X.shape[1] * np.arange(len(X) + 1)
    ones = np.ones(codes.size, dtype=np.float32)
    return sparse.csr_array((ones, codes.ravel(), ends), shape=(len(X), starts[-1]))


# ---- readers --------------------------------------------------------------------------------


def mail(user: str) -> tuple[Features, Any]:
    """Read one user's messages, each of them the text of the fields that it arrives with."""
    messages = load_enron(user)
    texts = [" ".join(record[field] for field in ARRIVING) for record in messages.records]
    return texts, messages.y


def texts(name: str) -> tuple[Features, Any]:
    """Read a set of texts."""
    data = load(name)
    return [" ".join(record.values()) for record in data.records], data.y


def intents(name: str) -> tuple[Features, Any]:
    """Read the training part of a set of short texts, as it is."""
    data = load(name)
    return [record["text"] for record in data.records[: data.n_train]], data.y[: data.n_train]


def counts(name: str) -> tuple[Features, Any]:
    """Read a table of counts."""
    data = load(name)
    return sparse.csr_array(data.X), data.y


def measurements(name: str) -> tuple[Features, Any]:
    """Read a table of measurements."""
    data = load(name)
    return np.asarray(data.X, dtype=np.float32), data.y


def categories(name: str) -> tuple[Features, Any]:
    """Read a table of text categories."""
    data = load(name)
    return data.X, data.y


def faces() -> tuple[Features, Any]:
    """Read the faces of the first 30 persons, as 60 principal components.

    They are rounded, since trees that compare them would differ by the last digits of a machine.
    """
    X, y = measurements("yaleb")
    chosen = np.isin(y, np.unique(y)[:N_PERSONS])
    components = PCA(N_COMPONENTS, svd_solver="full").fit_transform(X[chosen].astype(float) / 255)
    return components.round(4).astype(np.float32), y[chosen]


def digits() -> tuple[Features, Any]:
    """Read the first 20,000 rows of MNIST."""
    X, y = measurements("mnist")
    return X[:MNIST_ROWS], y[:MNIST_ROWS]


# ---- the table ------------------------------------------------------------------------------


def _mail(user: str, *figures: float) -> RealSet:
    return RealSet(user, "text", LONG, lambda: mail(user), Published(*figures))


def _texts(name: str, group: str, *figures: float, shuffled: bool = False) -> RealSet:
    return RealSet(name, "text", group, lambda: texts(name), Published(*figures), shuffled)


def _intents(name: str) -> RealSet:
    return RealSet(name, "text", SHORT, lambda: intents(name), shuffled=True)


def _measured(name: str, group: str, *figures: float, shuffled: bool = False) -> RealSet:
    published = Published(*figures) if figures else None
    return RealSet(name, "dense", group, lambda: measurements(name), published, shuffled)


def _new(name: str, group: str) -> RealSet:
    return RealSet(name, "dense", group, lambda: fresh_measurements(name))


def _new_table(name: str, kind: Kind = "table") -> RealSet:
    return RealSet(name, kind, TABLES, lambda: fresh_table(name))


def _new_texts(name: str, group: str) -> RealSet:
    return RealSet(name, "text", group, lambda: fresh_texts(name))


SHOWN = (
    _mail("beck-s", 40.44, 37.95, 35.06),
    _mail("farmer-d", 18.41, 18.11, 16.50),
    _mail("kaminski-v", 34.84, 33.73, 31.18),
    _mail("kitchen-l", 34.32, 32.23, 30.83),
    _mail("lokay-m", 14.62, 14.62, 13.42),
    _mail("sanders-r", 18.52, 17.76, 12.79),
    _mail("williams-w3", 2.85, 2.85, 2.46),
    _texts("20newsgroups", LONG, 14.11, 12.72, 12.22, shuffled=True),
    _texts("r8", LONG, 4.65, 4.55, 3.86),
    _texts("webkb", LONG, 9.19, 9.19, 9.00),
    _texts("trec", SHORT, 22.11, 21.59, 21.61),
    _texts("ag_news", SHORT, 15.14, 14.92, 14.55),
    RealSet("cnae9", "text", SHORT, lambda: counts("cnae9"), Published(7.96, 7.96, 7.87)),
    _measured("letter", IMAGES, 37.59, 35.48, 25.43),
    _measured("pendigits", PHYSICAL, 12.24, 10.73, 6.95),
    _measured("landsat", IMAGES, 19.25, 18.62, 15.37, shuffled=True),
    _measured("shuttle", PHYSICAL, 9.20, 8.11, 0.91),
    _measured("segment", IMAGES, 18.48, 16.41, 10.17),
    _measured("vowel", PHYSICAL, 56.97, 54.04, 34.34),
    _measured("optdigits", IMAGES, 5.43, 5.43, 4.89),
    _measured("isolet", PHYSICAL, 20.17, 19.14, 9.88, shuffled=True),
    RealSet("yaleb", "dense", IMAGES, faces, Published(23.02, 23.02, 16.88), shuffled=True),
    RealSet("mnist", "dense", IMAGES, digits, Published(10.79, 10.60, 10.26)),
    _measured("elec2", STREAMS),
    _measured("outdoor", STREAMS),
    RealSet("nursery", "table", TABLES, lambda: categories("nursery"), shuffled=True),
    _measured("magic", PHYSICAL, shuffled=True),
    _measured("texture", IMAGES, shuffled=True),
    _intents("clinc150"),
    _intents("banking77"),
)
"""The 30 sets of the first studies."""

FRESH = (
    *map(_new_table, ("kr-vs-kp", "credit-g", "mushroom", "sick", "car", "hpc_data")),
    *map(_new_table, ("mlc_churn", "penguins")),
    _new_table("cmc", kind="dense"),  # its categories are numbers in the file
    _new("phoneme", PHYSICAL),
    _new("waveform-5000", PHYSICAL),
    _new("mfeat-zernike", IMAGES),
    _new("semeion", IMAGES),
    _new("plants-texture", FEW),
    _new("yeast", PHYSICAL),
    _new("mammography", IMAGES),
    _new("wineq-red", PHYSICAL),
    _new("banana", PHYSICAL),
    _new("twonorm", PHYSICAL),
    *(_new(name, TINY) for name in ("iris", "sonar", "heart", "wine", "hayes-roth", "tae")),
    _new("chessboard", STREAMS),
    _new("sea", STREAMS),
    _new_texts("sms-spam", SHORT),
    _new_texts("medabs", LONG),
    _new_texts("snips", SHORT),
    _new_texts("surnames", SHORT),
)
"""The 31 sets that were added last."""

SETS = (*SHOWN, *FRESH)
FIRST = tuple(each for each in SETS if each.published)
"""The 23 sets with published errors."""

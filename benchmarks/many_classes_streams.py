"""Streams of many classes: texts from KESLER_DATA, and rows whose words follow Zipf's law."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy import sparse

Codes = npt.NDArray[np.int64]

ZIPF = "zipf"
N_WORDS, COMMON, OWN, OF_CLASS = 1 << 18, 12, 8, 30
"""Words of the Zipf rows: how many there are, those of a row from all and from its class, and how
many a class has."""


@dataclass(frozen=True)
class Source:
    """A file of rows with labels.

    Parameters
    ----------
    title : str
    file : str
        The file in KESLER_DATA, without suffix.
    text, label : str
        The fields of a row.
    shuffled : bool
        Whether rows must be shuffled, since those of a class follow each other.
    """

    title: str
    file: str
    text: str = "text"
    label: str = "label"
    shuffled: bool = False


SOURCES = {
    "wordnet": Source("Hypernyms of WordNet's glosses", "many_classes/wordnet_hypernyms"),
    "places": Source("Regions of places by their names", "many_classes/geonames_places", "name"),
    "clinc150": Source("Intents, clinc150", "short_text/clinc150", shuffled=True),
    "banking77": Source("Intents, banking77", "short_text/banking77", shuffled=True),
    "udhr": Source("Languages", "languages/udhr", label="language", shuffled=True),
}


def is_available(name: str) -> bool:
    """Return whether the rows of a stream are here."""
    folder = os.environ.get("KESLER_DATA")
    return name == ZIPF or bool(folder and path_of(SOURCES[name]).exists())


def path_of(source: Source) -> Path:
    """Return the path of a file of rows."""
    return Path(os.environ["KESLER_DATA"]) / f"{source.file}.jsonl.gz"


def stream(name: str, most: int) -> tuple[Any, list[Any]]:
    """Return the first rows of a stream, texts or counts of words, and their labels."""
    if name == ZIPF:
        return zipf_rows(most)
    source = SOURCES[name]
    with gzip.open(path_of(source), "rt", encoding="utf-8") as lines:
        records = (each for each in map(json.loads, lines) if each.get("split", "train") == "train")
        first = None if source.shuffled else most or None
        pairs = [(each[source.text], each[source.label]) for each in islice(records, first)]
    if source.shuffled:
        order = np.random.default_rng(0).permutation(len(pairs))
        pairs = [pairs[i] for i in order[: most or None]]
    texts, labels = zip(*pairs, strict=True)
    return [*texts], [*labels]


def zipf_rows(n_rows: int, random_state: int = 0) -> tuple[sparse.csr_array, list[int]]:
    """Return rows of 20 words, and their classes, of which there are 0.35 for each row.

    A class has a row at least; the frequency of a class in the others, and of a word in all or in
    its class, is inverse to its rank.
    """
    from scipy import sparse  # not counted in the memory of other streams

    generator = np.random.default_rng(random_state)
    n_classes = n_rows * 7 // 20
    others = by_rank(generator, n_rows - n_classes, n_classes)
    y = generator.permutation(np.concatenate([np.arange(n_classes), others]))
    common = by_rank(generator, (n_rows, COMMON), N_WORDS)
    own = by_rank(generator, (n_rows, OWN), OF_CLASS)
    own = (own * 7919 + y[:, None] * 104729 + own * y[:, None]) % N_WORDS
    words = np.concatenate([common, own], axis=1).astype(np.int32)
    indptr = np.arange(n_rows + 1) * words.shape[1]
    counts = np.ones(words.size, dtype=np.float32)
    rows = sparse.csr_array((counts, words.reshape(-1), indptr), shape=(n_rows, N_WORDS))
    rows.sum_duplicates()
    return rows, y.tolist()


def by_rank(generator: np.random.Generator, shape: Any, n: int) -> Codes:
    """Return numbers below n whose frequency is inverse to their rank."""
    shares = np.cumsum(1 / np.arange(1, n + 1))
    return np.searchsorted(shares / shares[-1], generator.random(shape))


def by_first_row(labels: list[Any]) -> Codes:
    """Return labels by number in order of their first rows.

    Examples
    --------
    >>> by_first_row(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)


def n_mistakes(predicted: Codes, targets: Codes) -> int:
    """Return the number of wrong predictions on rows of classes that had a row before.

    Examples
    --------
    >>> n_mistakes(np.array([-1, 0, 0, 0]), np.array([0, 1, 1, 0]))
    1
    """
    wrong = predicted != targets
    wrong[np.unique(targets, return_index=True)[1]] = False
    return int(wrong.sum())

"""Word vectors of a file, and the vectors of texts that follow from them."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.schema.measurements import Vectors
from kesler.data.texts import folded, tokenize
from kesler.errors import KeslerError

Floats = npt.NDArray[np.float32]
FORMS = (
    "give a file of lines of a word and its numbers (.vec, .txt, compressed or not), a file.npz of "
    "the arrays words and vectors, a file.npy beside a file.txt of a word in each line, or a "
    "function from a list of texts to an array of a row for each"
)


class WordVectors:
    """Vectors of words; the vector of a text is the mean of those of its words, of length 1.

    Parameters
    ----------
    words : sequence of str
        The words. They are compared in the form in which texts are read, without case; of several
        with the same form, the first counts.
    vectors : array of shape (n_words, length)
        The vector of each.

    Raises
    ------
    KeslerError
        If there is no word, or not one vector of finite numbers for each.

    Examples
    --------
    >>> vectors = WordVectors(["win", "lunch"], [[1.0, 0.0], [0.0, 1.0]])
    >>> vectors(["Win, win!", "a free lunch", "none"])
    array([[ 1.,  0.],
           [ 0.,  1.],
           [nan, nan]], dtype=float32)
    """

    def __init__(self, words: Sequence[str], vectors: Any) -> None:
        self.vectors = np.asarray(vectors)
        if self.vectors.ndim != 2 or len(self.vectors) != len(words) or not self.vectors.size:
            raise KeslerError(
                f"{len(words):,} words and vectors of shape {self.vectors.shape}: give a row of "
                "numbers for each word"
            )
        if not np.isfinite(self.vectors).all():
            raise KeslerError("some vectors of words are not finite: leave these words out")
        self.rows = dict[str, int]()
        for row, word in enumerate(words):
            self.rows.setdefault(folded(word), row)

    def __call__(self, texts: list[str]) -> Floats:
        """Return the vectors of texts, of shape (n_texts, length), NaN where no word is known."""
        found = np.full((len(texts), self.vectors.shape[1]), np.nan, dtype=np.float32)
        for i, text in enumerate(texts):
            rows = [row for word in tokenize(text) if (row := self.rows.get(word)) is not None]
            if rows:
                mean = self.vectors[rows].astype(np.float64).mean(axis=0)
                found[i] = mean / (np.linalg.norm(mean) or 1.0)
        return found


def vectors_of(given: Any) -> Vectors:
    """Return the function that the parameter `vectors` stands for.

    Raises
    ------
    KeslerError
        If it is neither a function nor a file of word vectors.
    """
    if callable(given):
        function: Vectors = given
        return function
    if not isinstance(given, (str, os.PathLike)):
        raise KeslerError(f"vectors={given!r:.60}: {FORMS}")
    path = Path(given)
    try:
        written = path.stat()
        return _read(path, written.st_mtime_ns, written.st_size)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, KeslerError) as error:
        raise KeslerError(f"vectors={str(given)!r} cannot be read ({error}): {FORMS}") from error


@lru_cache(maxsize=4)
def _read(path: Path, modified: int, n_bytes: int) -> WordVectors:
    """Return the word vectors of a file, which is read again if it has changed."""
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return WordVectors(arrays["words"].tolist(), arrays["vectors"])
    if path.suffix == ".npy":
        words = path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
        return WordVectors(words, np.load(path, mmap_mode="r"))
    lines = [*_lines(path)]
    return WordVectors([word for word, _ in lines], np.array([values for _, values in lines]))


def _lines(path: Path) -> Iterator[tuple[str, Floats]]:
    """Yield the words and the vectors of a file of lines; the first may hold their numbers."""
    from kesler.readers.compression import unpacked

    length = 0
    with unpacked(str(path)) as (file, _):
        for number, line in enumerate(file, start=1):
            # A word may have spaces within it, and bytes that are no text, which no text has.
            cells = line.decode("utf-8", "replace").rstrip().split(" ")
            if number == 1 and len(cells) == 2 and cells[1].isdecimal():
                length = int(cells[1])
                continue
            length = length or len(cells) - 1
            try:
                yield " ".join(cells[:-length]), np.array(cells[-length:], dtype=np.float32)
            except ValueError as error:
                raise KeslerError(f"line {number}: {error}") from error

"""The features of a text, with repetitions, and the hashes of their names."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.texts import TextLengths, marked, runs, spaced, tokenize

if TYPE_CHECKING:
    from kesler.data.schema.schema import Column

Hashes = npt.NDArray[np.uint32]
Range = tuple[int, int]

MIXED = np.uint32(0x9E3779B1)
"""An odd number whose product has the influence of all bits of a CRC in its upper ones."""
NO_RUNS: Range = (1, 0)
"""The lengths of runs of characters where these are no features."""


@dataclass(frozen=True)
class Words:
    """The features of texts as strings: see :mod:`kesler.data.texts`.

    Parameters
    ----------
    lengths : TextLengths or None
        Of the texts learnt, which say whether a text is short; None if features are words alone.

    Examples
    --------
    >>> Words(None).names_of("to be, to")
    ['to', 'be', 'to']
    """

    lengths: TextLengths | None

    def is_short(self, text: str) -> bool:
        """Return whether each feature of a text counts once."""
        return self.lengths is not None and self.lengths.is_short(text)

    def names_of(self, text: str) -> list[str]:
        """Return the names of the features of a text, each as often as it occurs."""
        tokens, line, capitals = spaced(text)
        names = tokens.split()
        if self.lengths is None:
            return names
        if not self.is_short(text):
            return [*names, *marked(self.lengths.beginning(text))]
        least, most = self.lengths.runs(text)
        pairs = map(" ".join, pairwise(line.split()))
        return [*names, *pairs, *runs(capitals, range(least, most + 1))]


@dataclass(frozen=True)
class Terms:
    """The features of the texts of a column: its words, runs of words and runs of characters.

    Parameters
    ----------
    column : str
        What the names of features begin with.
    ngrams : int from 0 to 3
        The most words of a run.
    chars, subwords : pairs of int
        The least and the most characters of runs across and within words; `NO_RUNS` for none.
    beginning : bool
        Whether the words of the beginning are features of their own.

    Examples
    --------
    >>> Terms("text", 2, NO_RUNS, (4, 4)).names_of("To be")
    ['text:to', 'text:be', 'text:to be', 'text< to ', 'text< be ']
    """

    column: str
    ngrams: int
    chars: Range
    subwords: Range
    beginning: bool = False

    @staticmethod
    def of(column: Column) -> Terms:
        """Return the features of a column of texts."""
        from kesler.data.schema.features import escaped

        chars, subwords = (column.options.get(each, NO_RUNS) for each in ("chars", "subwords"))
        ngrams, beginning = column.options.get("ngrams", 1), column.options.get("beginning", False)
        return Terms(escaped(column.name), ngrams, (*chars,), (*subwords,), beginning)

    def is_short(self, text: str) -> bool:
        """Return False: features count as often as they occur."""
        return False

    def names_of(self, text: str) -> list[str]:
        """Return the names of the features of a text, each as often as it occurs."""
        from kesler.data.schema.terms import names_of

        options: dict[str, Any] = {"ngrams": self.ngrams, "chars": self.chars}
        options |= {"subwords": self.subwords, "beginning": self.beginning}
        return names_of(self.column, text, tokenize(text), options)


def hashes_of(names: Iterable[str]) -> Hashes:
    """Return a hash of 32 bits for each name, the mixed CRC-32 of its UTF-8.

    Examples
    --------
    >>> hashes_of(["a", "b"]).tolist()
    [4200413011, 552573993]
    """
    found = [zlib.crc32(name.encode("utf-8", "surrogatepass")) for name in names]
    return np.array(found, dtype=np.uint32) * MIXED


def keys_of(hashes: Hashes, n_bits: int) -> npt.NDArray[np.int64]:
    """Return the upper bits of hashes, by which a file knows features.

    Examples
    --------
    >>> keys_of(hashes_of(["a", "b"]), 10).tolist()
    [1001, 131]
    """
    return hashes.astype(np.int64) >> (32 - n_bits)

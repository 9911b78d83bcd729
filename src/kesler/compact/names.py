"""The features of a text, with repetitions, and the hashes of their names."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kesler.data.texts import RUN_LENGTH, TextLengths, spaced

Hashes = npt.NDArray[np.uint32]

MIXED = np.uint32(0x9E3779B1)
"""An odd number whose product has the influence of all bits of a CRC in its upper ones."""


def names_of(text: str, lengths: TextLengths | None) -> list[str]:
    """Return the names of the features of a text, each as often as it occurs.

    Parameters
    ----------
    text : the text.
    lengths : of the texts learnt; None if the features of texts are words alone.

    Examples
    --------
    >>> names_of("to be, to", None)
    ['to', 'be', 'to']
    """
    tokens, line, capitals = spaced(text)
    names = tokens.split()
    if lengths is None or not lengths.is_short(text):
        return names
    names += map(" ".join, pairwise(line.split()))
    names += [capitals[i : i + RUN_LENGTH] for i in range(len(capitals) - RUN_LENGTH + 1)]
    return names


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

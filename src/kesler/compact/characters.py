"""Properties of characters that the reading of texts depends on, as tables for C.

They are asked of this Python and of `regex`, so that a predictor in C reads texts as they do.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.texts import FIRST, LATER, MARK, MODIFIER, NOT_PLAIN, SYMBOL, patterns

Numbers = npt.NDArray[np.int64]

N_CODES = 0x110000
BLOCK_BITS = 7
CLUSTERS = ("OTHER EXTEND LINKER ZWJ SPACING PREPEND L V T LV LVT CONSONANT").split()
"""How a character goes on a cluster, or is gone on (UAX 29)."""
OF_CLUSTERS = {
    "EXTEND": r"\p{GCB=Extend}",
    "ZWJ": r"\p{GCB=ZWJ}",
    "SPACING": r"\p{GCB=SpacingMark}",
    "PREPEND": r"\p{GCB=Prepend}",
    **{name: rf"\p{{GCB={name}}}" for name in ("L", "V", "T", "LV", "LVT")},
}
OF_CONJUNCTS = {
    "CONSONANT": r"[\p{InCB=Consonant}&&\p{GCB=Other}]",
    "LINKER": r"[\p{InCB=Linker}&&\p{GCB=Extend}]",
}
"""Consonants that are joined by a sign between them, in versions of `regex` that know it."""
CONJUNCT = "\u0915\u094d\u0915"
HANGUL = range(0xAC00, 0xD7A4)  # syllables, which are composed by a rule


@dataclass(frozen=True)
class Map:
    """Characters, each with those that take its place."""

    keys: list[int]
    starts: list[int]
    values: list[int]

    @staticmethod
    def of(changed: Callable[[str], str], characters: str) -> Map:
        """Return the map of a function, over the characters that it changes."""
        found = {each: changed(each) for each in characters}
        found = {each: to for each, to in found.items() if to != each}
        lengths = [len(to) for to in found.values()]
        values = [ord(c) for to in found.values() for c in to]
        return Map([*map(ord, found)], [0, *np.cumsum(lengths).tolist()], values)


@dataclass(frozen=True)
class Characters:
    """The tables.

    Attributes
    ----------
    kinds : list of str
        The names of kinds, each of a bit.
    blocks, classes : arrays of int
        The block of each 128 characters, and the class of each character of the blocks.
    kinds_of, clusters_of, ranks_of : arrays of int
        The kinds, the part in clusters and the canonical class of each class.
    folds, uppers, parts : Map
        Case folding, capitals, and full compatibility decomposition without syllables.
    pairs : list
        Two characters, and the one that they compose.
    """

    kinds: list[str]
    blocks: Numbers
    classes: Numbers
    kinds_of: Numbers
    clusters_of: Numbers
    ranks_of: Numbers
    folds: Map
    uppers: Map
    parts: Map
    pairs: list[tuple[int, int, int]]


@cache
def characters() -> Characters:
    """Return the tables, which takes some seconds."""
    codes = [c for c in range(N_CODES) if not 0xD800 <= c < 0xE000]
    all_of, kinds = "".join(map(chr, codes)), _kinds()
    flags, clusters, ranks = (np.zeros(N_CODES, np.int64) for _ in range(3))
    for bit, pattern in enumerate(kinds.values()):
        flags[_codes(pattern, all_of)] |= 1 << bit
    joins = len(patterns().cluster.findall(CONJUNCT)) == 1
    for name, pattern in (OF_CLUSTERS | (OF_CONJUNCTS if joins else {})).items():
        clusters[_codes(_compiled(pattern), all_of)] = CLUSTERS.index(name)
    for c in codes:
        ranks[c] = unicodedata.combining(chr(c))
    columns = np.column_stack([flags, clusters, ranks])
    found, classes = np.unique(columns, axis=0, return_inverse=True)
    table = classes.reshape(-1, 1 << BLOCK_BITS)
    kept, blocks = np.unique(table, axis=0, return_inverse=True)
    others = "".join(c for c in all_of if ord(c) not in HANGUL)
    return Characters(
        [*kinds],
        blocks.ravel(),
        kept,
        found[:, 0],
        found[:, 1],
        found[:, 2],
        Map.of(str.casefold, all_of[128:]),
        Map.of(str.upper, all_of[128:]),
        Map.of(lambda c: unicodedata.normalize("NFKD", c), others),
        _pairs(others),
    )


def _kinds() -> dict[str, Any]:
    """Return the patterns of the kinds of characters, of one character each."""
    known = patterns()
    found = {
        "APOSTROPHE": "'",
        "FIRST": FIRST,
        "LATER": LATER,
        "MARK": MARK,
        "SYMBOL": SYMBOL,
        "MODIFIER": MODIFIER,
        "ALPHABETIC": r"\p{L}",
        "HEBREW": r"\p{Hebrew}",
        "BEFORE_QUOTE": r"[\p{Hebrew}\p{M}]",
        "WORD": r"[^\W_]",
    }
    compiled = {name: _compiled(pattern) for name, pattern in found.items()}
    return compiled | {
        "UNSPACED": known.unspaced,
        "SYLLABIC": known.syllabic,
        "VOWEL": known.vowels,
        "INVISIBLE": known.invisible,
        "OTHER": NOT_PLAIN,
        "PLAIN": _Where(str.isalnum),
        "SPACE": _Where(str.isspace),
    }


class _Where:
    """The characters that a function is true of, found as by a pattern."""

    def __init__(self, is_true: Callable[[str], bool]) -> None:
        self._is_true = is_true

    def findall(self, text: str) -> list[str]:
        return [c for c in text if self._is_true(c)]


def _compiled(pattern: str) -> Any:
    import regex

    return regex.compile(pattern, regex.VERSION1)


def _codes(pattern: Any, all_of: str) -> Numbers:
    return np.array([*map(ord, pattern.findall(all_of))], dtype=np.int64)


def _pairs(others: str) -> list[tuple[int, int, int]]:
    """Return the pairs of characters that compose one, in order."""
    found = []
    for c in others:
        parts = unicodedata.decomposition(c)
        if parts and not parts.startswith("<") and unicodedata.normalize("NFC", c) == c:
            first, *second = (int(part, 16) for part in parts.split())
            found += [(first, each, ord(c)) for each in second]
    return sorted(found)

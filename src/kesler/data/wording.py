"""Wording: the words of a text that each of its features is made of, and where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from kesler.data.texts import (
    BEGINNING,
    BEGINS,
    FIRST_CUT,
    GRAMS,
    SPACES,
    cut,
    folded,
    letters_of,
    patterns,
    units,
)

Pieces = tuple[int, ...]
"""The numbers of pieces, for each letter that is meant."""

MOST_ALONE = 2
"""The most words in a feature of a text that is no cell of a column."""


class Piece(NamedTuple):
    """A word of a text, or a character of a script without spaces.

    Parameters
    ----------
    text : str
        In the form in which it is read.
    start, end : int
        Where it stands in the text as it was given; equal if that is not known.
    unit : int
        The number of the word, or of the run of characters, that it belongs to.
    is_word : bool
        Whether it is a word.
    """

    text: str
    start: int
    end: int
    unit: int
    is_word: bool


class Wording:
    """The words of a text, and which of them each feature of the text is made of.

    Parameters
    ----------
    text : str
        A text.
    of_column : bool
        Whether it is the cell of a column, whose pairs and runs are those of its tokens, and not a
        text alone, whose pairs are those of its words and whose runs are in capitals.

    Attributes
    ----------
    pieces : list of Piece
        Its words, and the characters of scripts without spaces, in their order.

    Examples
    --------
    >>> wording = Wording("Top up?", of_column=False)
    >>> wording.shares("OP U"), wording.shares("top up")
    ([('top', 0.66...), ('up', 0.33...)], [('top up', 1.0)])
    """

    def __init__(self, text: str, *, of_column: bool) -> None:
        self.text = text
        found = units(text)
        self.pieces = [*_pieces(text, found)]
        placed = self._tokens = [*_placed(found, self.pieces)]
        if max(found, default="") >= FIRST_CUT:
            self._tokens = [token for unit, pieces in placed for token in _cut(unit, pieces)]
        self._phrases = self._tokens if of_column else placed
        self._capitals = not of_column
        self._line, self._owners = self._lined()
        self._of_words: dict[int, dict[str, list[int]]] = {}
        self._of_runs: dict[int, dict[str, list[int]]] = {}

    def _lined(self) -> tuple[str, list[int]]:
        """Return the line of which runs are parts, and the piece of each letter, -1 of spaces."""
        line, owners = [" "], [-1]
        for phrase, pieces in self._phrases:
            letters = phrase.upper() if self._capitals else phrase
            of_letters = [p for p in pieces for _ in self.pieces[p].text][: len(letters)]
            owners += [*of_letters, *[pieces[-1]] * (len(letters) - len(of_letters)), -1]
            line += [letters, " "]
        return "".join(line), owners

    # ---- features ---------------------------------------------------------------------------

    def shares(self, feature: str, *, is_run: bool | None = None) -> list[tuple[str, float]]:
        """Return the words and pairs that a feature belongs to, with the share of each.

        A run of characters is divided among the words that it stands in by its letters in them; of
        scripts without spaces, among its own characters in each.

        Parameters
        ----------
        feature : str
            A word, words with spaces between, a run of characters, or a word of the beginning.
        is_run : bool or None, default None
            Whether it is a run of characters; None for a text alone, whose features say so.

        Returns
        -------
        List of pairs of a name and a share; the shares sum to 1. Empty if the feature is none of
        the text.
        """
        found = self._occurrences(feature, is_run)
        if not found or self._is_pair(feature, is_run):
            return [(feature, 1.0)] if found else []
        weights: dict[str, float] = {}
        for pieces in found:
            for name, n_letters in self._named(pieces):
                weights[name] = weights.get(name, 0.0) + n_letters
        total = sum(weights.values())
        return [(name, weight / total) for name, weight in weights.items()]

    def places(self, feature: str, *, is_run: bool | None = None) -> Pieces:
        """Return the piece of each letter of a feature, wherever it stands in the text."""
        return tuple(p for pieces in self._occurrences(feature, is_run) for p in pieces)

    def _is_pair(self, feature: str, is_run: bool | None) -> bool:
        return not is_run and " " in feature and feature in self._words(feature.count(" ") + 1)

    def _occurrences(self, feature: str, is_run: bool | None) -> list[Pieces]:
        """Return the pieces of the letters of a feature, for each place where it stands."""
        n = feature.count(" ") + 1
        may_be_words = not is_run if is_run is not None else n <= MOST_ALONE
        starts = self._words(n).get(feature, ()) if may_be_words else ()
        if starts:
            words = self._words_of(n)
            return [tuple(p for _, at in words[i : i + n] for p in at) for i in starts]
        n = len(feature)
        owned = () if is_run is False else self._runs(n).get(feature, ())
        found = [pieces for i in owned if (pieces := self._owned(i, i + n))]
        is_first = not found and not is_run and feature.startswith(BEGINS)
        return self._first_of(feature.removeprefix(BEGINS)) if is_first else found

    def _first_of(self, word: str) -> list[Pieces]:
        """Return the pieces of a word of the beginning, for each place where it stands in it."""
        end = len(self.text) - len(self.text.lstrip(SPACES)) + BEGINNING
        found = [self._words_of(1)[i][1] for i in self._words(1).get(word, ())]
        return [pieces for pieces in found if self.pieces[pieces[0]].start < end]

    def _words_of(self, n: int) -> list[tuple[str, Pieces]]:
        """Return the words that are features alone, or those of which n together are one."""
        return self._tokens if n == 1 else self._phrases

    def _words(self, n: int) -> dict[str, list[int]]:
        """Return at which words each n consecutive words begin."""
        if n not in self._of_words:
            words = [word for word, _ in self._words_of(n)]
            starts = range(len(words) - n + 1)
            self._of_words[n] = _listed(" ".join(words[i : i + n]) for i in starts)
        return self._of_words[n]

    def _runs(self, n: int) -> dict[str, list[int]]:
        """Return at which characters of the line each run of n characters begins."""
        if n not in self._of_runs:
            starts = range(len(self._line) - n + 1)
            self._of_runs[n] = _listed(self._line[i : i + n] for i in starts)
        return self._of_runs[n]

    def _owned(self, start: int, end: int) -> Pieces:
        """Return the pieces of the letters of a part of the line; of spaces, of those beside."""
        found = tuple(p for p in self._owners[start:end] if p >= 0)
        beside = self._owners[max(0, start - 1) : end + 1]
        return found or tuple(p for p in beside if p >= 0)

    def _named(self, pieces: Pieces) -> Iterator[tuple[str, int]]:
        """Yield the words and runs of characters that letters stand in, and how many letters."""
        first = self.pieces[pieces[0]]
        if pieces[0] == pieces[-1] and first.is_word:  # most runs are of one word
            yield first.text, len(pieces)
            return
        run, last = "", -1
        for piece, group in groupby(pieces):
            text, _, _, unit, is_word = self.pieces[piece]
            follows = piece == last + 1 and run and self.pieces[last].unit == unit
            if run and (is_word or not follows):
                yield run, len(run)
                run = ""
            if is_word:
                yield text, len([*group])
            else:
                run += text
            last = piece
        if run:
            yield run, len(run)


def _listed(names: Iterable[str]) -> dict[str, list[int]]:
    """Return the places of each name among all."""
    found: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        found.setdefault(name, []).append(i)
    return found


def _placed(found: Sequence[str], pieces: Sequence[Piece]) -> Iterator[tuple[str, Pieces]]:
    """Yield the units of a text with the pieces that they are made of."""
    if len(found) == len(pieces):
        yield from ((unit, (i,)) for i, unit in enumerate(found))
        return
    for unit, group in groupby(range(len(pieces)), lambda i: pieces[i].unit):
        yield found[unit], tuple(group)


def _cut(unit: str, pieces: Pieces) -> Iterator[tuple[str, Pieces]]:
    """Yield the tokens of a unit with the pieces that they are made of."""
    tokens = [*cut(unit)]
    if len(pieces) == 1:
        yield from ((token, pieces) for token in tokens)
        return
    runs = (pieces[i : i + n] for n in range(1, GRAMS + 1) for i in range(len(pieces) - n + 1))
    yield from zip(tokens, runs, strict=True)


# ---- places --------------------------------------------------------------------------------------


def _pieces(text: str, found: Sequence[str]) -> Iterator[Piece]:
    """Yield the pieces of the units of a text."""
    line, origins = _origins(text)
    at = 0
    for i, unit in enumerate(found):
        start = line.find(unit, at)
        at = at if start < 0 else start
        letters = letters_of(unit) if unit >= FIRST_CUT else []
        for part in letters or [unit]:
            ends = (0, 0) if start < 0 else (origins[at], origins[at + len(part)])
            yield Piece(part, *ends, i, not letters)
            at += 0 if start < 0 else len(part)


def _origins(text: str) -> tuple[str, Sequence[int]]:
    """Return a text as it is read, and where each character of it, and its end, stood before.

    The text is empty where that cannot be told, because characters beside each other were joined.

    Examples
    --------
    >>> _origins("ﬁt")
    ('fit', [0, 0, 1, 2])
    """
    line = folded(text)
    if text.isascii():
        return line, range(len(text) + 1)
    origins, parts, at = list[int](), list[str](), 0
    for cluster in patterns().cluster.findall(text):
        part = folded(cluster)
        origins += [at] * len(part)
        parts.append(part)
        at += len(cluster)
    is_same = _straight("".join(parts)) == _straight(line)
    return (line, [*origins, at]) if is_same else ("", [])


def _straight(text: str) -> str:
    """Return a text with plain apostrophes, which depend on the letters around them."""
    return text.replace("’", "'").replace("ʼ", "'")

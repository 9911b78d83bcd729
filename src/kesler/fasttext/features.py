"""The rows of fastText's input matrix that a text has: words, parts of words and runs of words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from kesler.fasttext.binary import Arguments, Dictionary
from kesler.readers.fasttext import PREFIX, WORD

END = "</s>"
"""The word that stands for the end of a line."""

OFFSET, PRIME, MASK = 2166136261, 16777619, (1 << 32) - 1  # FNV-1a
RUN_PRIME, LONG_MASK = 116049371, (1 << 64) - 1


class Features:
    """The rows of texts.

    Parameters
    ----------
    arguments : Arguments
        The lengths of runs, and the number of hashes.
    dictionary : Dictionary
        The words, and the hashes that are kept.

    Notes
    -----
    The hash of a part is FNV-1a of its bytes, extended with their sign; that of a run of words is
    computed from the hashes of its words (Bojanowski et al. 2017; Joulin et al. 2017).
    """

    def __init__(self, arguments: Arguments, dictionary: Dictionary) -> None:
        self._arguments = arguments
        self._kept = dictionary.kept
        self._numbers = {word: number for number, word in enumerate(dictionary.words)}
        self._labels = dictionary.labels
        self.of_word = lru_cache(1 << 16)(self._of_word)

    def of_text(self, text: str) -> list[int]:
        """Return the rows of a line of text."""
        words = [word for word in _words(text) if not self._is_label(word)]
        rows = [row for word in words for row in self.of_word(word)]
        if self._arguments.word_ngrams > 1:
            rows.extend(self._of_runs([_signed(fnv(word)) for word in words]))
        return rows

    def _is_label(self, word: str) -> bool:
        return word in self._labels or (word not in self._numbers and word.startswith(PREFIX))

    def _of_word(self, word: str) -> tuple[int, ...]:
        """Return the row of a known word, and those of its parts."""
        number = self._numbers.get(word)
        own = () if number is None else (number,)
        if word == END or self._arguments.maxn <= 0:
            return own
        return *own, *self._rows(hash for hash in self._of_parts(f"<{word}>"))

    def _of_parts(self, word: str) -> Iterator[int]:
        """Yield the hashes of the runs of characters of a word between angle brackets."""
        letters = [letter.encode(errors="surrogateescape") for letter in word]
        minn, maxn = self._arguments.minn, self._arguments.maxn
        for start in range(len(letters)):
            found = OFFSET
            for n, letter in enumerate(letters[start : start + maxn], start=1):
                found = _fnv(letter, found)
                is_bracket = n == 1 and start in (0, len(letters) - 1)
                if n >= minn and not is_bracket:
                    yield found % self._arguments.bucket

    def _of_runs(self, hashes: list[int]) -> list[int]:
        found = list[int]()
        for start, first in enumerate(hashes):
            run = first & LONG_MASK
            for each in hashes[start + 1 : start + self._arguments.word_ngrams]:
                run = (run * RUN_PRIME + each) & LONG_MASK
                found.append(run % self._arguments.bucket)
        return self._rows(iter(found))

    def _rows(self, hashes: Iterator[int]) -> list[int]:
        n_words, kept = len(self._numbers), self._kept
        if kept is None:
            return [n_words + each for each in hashes]
        return [n_words + kept[each] for each in hashes if each in kept]


def fnv(word: str) -> int:
    """Return the hash of a word.

    Examples
    --------
    >>> fnv("a")
    3826002220
    """
    return _fnv(word.encode(errors="surrogateescape"), OFFSET)


def _fnv(content: bytes, found: int) -> int:
    for byte in content:
        # Bytes from 128 on are negative numbers, whose sign fills the upper bits.
        found = ((found ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * PRIME) & MASK
    return found


def _signed(hash: int) -> int:
    return hash - (1 << 32) if hash >= 1 << 31 else hash


def _words(text: str) -> Iterator[str]:
    """Yield the words of a line up to its end, which a word may stand for."""
    for word in [*WORD.findall(text), END]:
        yield word
        if word == END:
            return

"""Texts as rows: their words, and runs of characters and pairs of words where texts are short."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from kesler.data.inputs import tokenize

SHORT = 160
"""The mean number of characters up to which texts count as short."""

LENGTH = 4
"""The length of the runs of characters."""


@dataclass(frozen=True, slots=True)
class TextLengths:
    """The number of the texts learnt so far, and their characters.

    Parameters
    ----------
    n_texts, n_characters : int

    Examples
    --------
    >>> TextLengths().is_short("what is up"), TextLengths(1, 1000).is_short("what is up")
    (True, False)
    """

    n_texts: int = 0
    n_characters: int = 0

    def and_text(self, length: int) -> TextLengths:
        """Return the lengths with those of one more text of this many characters."""
        return TextLengths(self.n_texts + 1, self.n_characters + length)

    def is_short(self, text: str) -> bool:
        """Return whether the texts so far are short, on average, with this one included."""
        return self.n_characters + len(text) <= SHORT * (self.n_texts + 1)


def with_runs(text: str) -> dict[str, float]:
    """Return the words of a text, its pairs of words and its runs of characters, each of value 1.

    Runs are in upper case, so that they are other features than words.

    Examples
    --------
    >>> list(with_runs("Top up!"))
    ['top', 'up', 'top up', ' TOP', 'TOP ', 'OP U', 'P UP', ' UP ']
    """
    line, capitals = spaced(text)
    words = line.split(" ") if line else []
    names = [*words, *(f"{a} {b}" for a, b in pairwise(words))]
    names += [capitals[i : i + LENGTH] for i in range(len(capitals) - LENGTH + 1)]
    return dict.fromkeys(names, 1.0)


def spaced(text: str) -> tuple[str, str]:
    """Return the words of a text with a space between them, and in upper case also around them.

    Examples
    --------
    >>> spaced("Top up!")
    ('top up', ' TOP UP ')
    """
    line = " ".join(tokenize(text))
    return line, f" {line.upper()} "

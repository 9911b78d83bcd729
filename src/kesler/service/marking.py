"""Marking: which words of a text speak for the class that is suggested."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kesler.learner.explanations import Contribution

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
MARKED = 0.15  # the least share of the largest contribution that is marked
MOST_REASONS = 5


class Piece(NamedTuple):
    """A part of a text: how strongly it speaks for the class, from -2 to 2; 0 is not marked."""

    text: str
    strength: int


class Marked(NamedTuple):
    """A text in pieces, and the words that speak for the class and against it."""

    pieces: list[Piece]
    pro: list[str]
    contra: list[str]


def marked(text: str, contributions: Iterable[Contribution]) -> Marked:
    """Return a text with its words marked by what they contribute.

    Features of a text are words, pairs of words and runs of letters; what a pair or a run
    contributes is divided among its words.

    Parameters
    ----------
    text : str
        A text as it was learnt or is to be predicted.
    contributions : iterable of Contribution
        Those of its explanation.

    Returns
    -------
    Marked, whose pieces joined are the text.

    Examples
    --------
    >>> parts = [Contribution("cash", 1.0, 0.5, 0.0, -0.5), Contribution("the", 1.0, -0.2, 0, 0.1)]
    >>> found = marked("Win the cash!", parts)
    >>> [piece.text for piece in found.pieces if piece.strength], found.pro, found.contra
    (['the', 'cash'], ['cash'], ['the'])
    """
    places = [match.span() for match in _WORD.finditer(text)]
    words = [text[start:end].lower() for start, end in places]
    shares = _shares(words, contributions)
    most = max(map(abs, shares), default=0.0)
    strengths = [_strength(share / most) if most > 0 else 0 for share in shares]
    pieces, at = list[Piece](), 0
    for (start, end), strength in zip(places, strengths, strict=True):
        if strength:
            pieces += [Piece(text[at:start], 0), Piece(text[start:end], strength)]
            at = end
    pieces.append(Piece(text[at:], 0))
    return Marked([p for p in pieces if p.text], *_named(words, shares, strengths))


def _strength(share: float) -> int:
    size = 0 if abs(share) < MARKED else 1 if abs(share) < 0.5 else 2
    return size if share > 0 else -size


def _shares(words: Sequence[str], contributions: Iterable[Contribution]) -> list[float]:
    """Return the sum of what is contributed by each word."""
    shares = [0.0] * len(words)
    line = f" {' '.join(words)} "
    owners = [-1]
    for i, word in enumerate(words):
        owners += [i] * len(word) + [-1]
    for each in contributions:
        found = _places(str(each.feature), line, owners)
        for i in found:
            shares[i] += each.margin / len(found)
    return shares


def _places(feature: str, line: str, owners: Sequence[int]) -> list[int]:
    """Return the words of every letter where a feature stands; runs are upper-case."""
    is_run = feature != feature.lower()
    wanted = feature.lower() if is_run else f" {feature} "
    found, at = list[int](), line.find(wanted)
    while at >= 0:
        found += [i for i in owners[at : at + len(wanted)] if i >= 0]
        at = line.find(wanted, at + 1)
    return found


def _named(
    words: Sequence[str], shares: Sequence[float], strengths: Sequence[int]
) -> tuple[list[str], list[str]]:
    """Return the marked words for and against, those that contribute most first, each once."""
    order = sorted(range(len(words)), key=lambda i: -abs(shares[i]))
    pro = dict.fromkeys(words[i] for i in order if strengths[i] > 0)
    contra = dict.fromkeys(words[i] for i in order if strengths[i] < 0)
    return [*pro][:MOST_REASONS], [*contra][:MOST_REASONS]

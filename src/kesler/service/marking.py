"""Marking: which words of a text speak for the class that is suggested, and which cells do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kesler.learner.explanations import Contribution, Explanation, MarkedText, Span
from kesler.service.rows_in import SURROGATE, UNSHOWN

MARKED = 0.15  # the least share of the largest contribution that is marked
MOST_REASONS = 5
LONGEST = 2000  # characters of an item that are shown
SHORT = 160  # of a name
NOT_SHOWN = re.compile(rf"(?![\n\r\t]){UNSHOWN.pattern}|{SURROGATE.pattern}")
"""Characters of texts in whose place a sign is shown."""
CUT = "…"
"""What ends a text of which only the beginning is shown."""


class Piece(NamedTuple):
    """A part of a text: how strongly it speaks for the class, from -2 to 2; 0 is not marked."""

    text: str
    strength: int


class Marked(NamedTuple):
    """A text in pieces, and the words and cells that speak for the class and against it."""

    pieces: list[Piece]
    pro: list[str]
    contra: list[str]


def marked(text: str, why: Explanation, starts: Mapping[str | None, int]) -> Marked:
    """Return a text with its words marked by what they contribute, all occurrences together.

    Parameters
    ----------
    text : str
        The text that is shown; a word that it cuts off is not marked.
    why : Explanation
    starts : mapping
        Where texts of the row begin in the text, by column; None for a row that is a text.

    Returns
    -------
    Marked, whose pieces joined are the text.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> model = OnlineClassifier().fit(["win cash", "team lunch"] * 9, ["spam", "work"] * 9)
    >>> found = marked("Win the cash!", model.explain_one("Win the cash!", "spam"), {None: 0})
    >>> [piece.text for piece in found.pieces if piece.strength > 0], found.pro
    (['Win', 'cash'], ['cash', 'win'])
    """
    shown = [each for each in why.texts if each.column in starts]
    spans = [span for each in shown for span in _by_word(each, starts[each.column])]
    margins = [each.margin for each in why.contributions] + [each.margin for each in spans]
    most = max(map(abs, margins), default=0.0) or 1.0
    return Marked(
        _pieces(text, spans, most),
        _named(each for each in why.contributions if each.margin >= MARKED * most),
        _named(each for each in why.contributions if each.margin <= -MARKED * most),
    )


def clipped(text: str, most: int = LONGEST) -> str:
    """Return the beginning of a text; characters that cannot be shown become signs."""
    text = text if len(text) <= most else text[:most] + CUT
    return NOT_SHOWN.sub("�", text)


def _by_word(marks: MarkedText, start: int) -> list[Span]:
    """Return the words of a text that begins at `start`, each with what it contributes in all."""
    words = [marks.text[span.start : span.end].casefold() for span in marks.spans]
    sums = dict.fromkeys(words, 0.0)
    for word, span in zip(words, marks.spans, strict=True):
        sums[word] += span.margin
    placed = zip(words, marks.spans, strict=True)
    return [Span(start + s.start, start + s.end, sums[word]) for word, s in placed]


def _pieces(text: str, spans: Iterable[Span], most: float) -> list[Piece]:
    """Return a text cut where its marks begin and end."""
    n_shown = len(text.removesuffix(CUT))
    pieces, at = list[Piece](), 0
    for start, end, margin in sorted(spans):  # columns may stand in another order
        strength = _strength(margin / most)
        if strength and end <= n_shown:
            pieces += [Piece(text[at:start], 0), Piece(text[start:end], strength)]
            at = end
    pieces.append(Piece(text[at:], 0))
    return [each for each in pieces if each.text]


def _strength(share: float) -> int:
    size = 0 if abs(share) < MARKED else 1 if abs(share) < 0.5 else 2
    return size if share > 0 else -size


def _named(contributions: Iterable[Contribution]) -> list[str]:
    """Return the names of contributions, with the numbers in cells."""
    names = (f"{clipped(each.label, SHORT)} {each.written}".strip() for each in contributions)
    return [*names][:MOST_REASONS]

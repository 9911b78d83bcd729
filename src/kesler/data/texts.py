"""Texts: their words in any script, and the features that are counted from them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

SHORT_TEXT = 200
"""The mean number of characters up to which texts count as short: their pairs of words and runs of
characters are features.

Of ten sets of long texts cut to their first 120, 200, 300, 450 and 800 characters, runs and pairs
made .96, .96, .97, .97 and 1.00 times the mistakes of the words alone, at 2 to 4 times the time;
with a limit of 300, news of 235 characters take 3.5 times as long for 4 % fewer mistakes."""

NAME = 12
"""The mean number of characters up to which texts are names, whose shorter runs are features.

Of surnames (7 characters) and of places (10) these made .84 and .99 times the mistakes; of the
first words of news and questions (4 to 14 characters) 1.00 to 1.02 times."""

BEGINNING = 250
"""The number of characters in which words of long texts are features of their own as well.

On eleven sets of long texts (seven users of Enron without the headers of its export, r8, webkb,
20 newsgroups, medical abstracts) these made .955 times the mistakes, from .85 to 1.01 times, and
the same log-loss, at 1.2 times the time. Without an intercept, as in columns, they made .94 times,
and those of the first 100, 160, 400 and 600 characters .95, .96, .95 and .97 times."""

RUNS = (4, 4)
RUNS_OF_NAMES = (1, RUNS[1])
"""The least and the greatest length of the runs of characters of short texts, and of names."""

BEGINS = "^"
"""What the names of features of the beginning begin with."""

CHARACTERS_OF_WORD = 3.0
"""The characters that count as a word in scripts without spaces."""

GRAMS = 3
"""The most characters in a run that stands for words in scripts without spaces."""

FACE = r"[)(\[\]{}|/\\*@$dpox3]"
SIGN = (
    r"[!?]{2,}"
    rf"|[:;=]'?[-^]{FACE}++(?![^\W_])"  # a face with a nose, also after a word
    rf"|(?<![^\W_])(?<!')[:;=]'?(?:[)(\[\]]+|{FACE}(?!/|[^\W_]))"
    r"|<3(?![^\W_])|[-^>][_.][-^<](?!-)"
)
"""Signs that are features, such as :-( and ???; they are of ASCII, and the compiled reader of
texts, :mod:`kesler.compiled.trial.signs`, has the same."""
ENDS = r"(?:(?<=[a-z0-9])(?:\+\+(?![+#])|[+#](?![+#]|[^\W_])))?"
"""What belongs to a word that ends so, as in C++ and C#."""

WORD = re.compile(r"(?:[^\W_]|')+")
WORD_OR_SIGN = re.compile(rf"{WORD.pattern}{ENDS}|{SIGN}")
MAY_BE_SIGN = re.compile(
    r"[!?:;=<>^+#-](?:(?<=[!?])[!?]|(?<=[:;=])['^-]|(?<![^\W_].)(?<!'.)(?<=[:;=])[)(\[\]{}|/\\*@$dpoxDPOX3]"
    r"|(?<=<)3|(?<=[>^-])[_.]|(?<=\w[+#])(?![^\W_]))"
)
"""Where a sign may be, by two characters and whether a letter is before them: in a tenth of the
time of the signs themselves."""
WORDS_OF_ASCII = bytes(
    code if chr(code) in "'0123456789abcdefghijklmnopqrstuvwxyz" else ord(" ")
    for code in bytes(range(256)).lower()
)
"""The translation of ASCII to words with spaces between."""
NOT_PLAIN = re.compile(
    r"[^\x00-\x7f£§°¿¡«»À-ÖØ-öø-ıĴ-ľŁ-ňŊ-ž–—‘’“”„€]"  # German, French, Polish, Turkish are plain
)
APOSTROPHE = re.compile(r"[’ʼ](?<=\S.)(?=\w)")


FIRST_CUT, FIRST_UNSPACED = "\u0590", "\u0e00"
"""Words that may have other tokens beside themselves begin here, with Hebrew; scripts without
spaces, with Thai."""

# Patterns of `regex`, of one character each.
UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Line_Break=Complex_Context}ー]"
"""Letters of scripts without spaces; of Southeast Asia, those whose line breaks need a dictionary
(UAX 14)."""
MARK = r"[\p{M}\u200c\u200d]"
FIRST = rf"[['\p{{L}}\p{{N}}]--{UNSPACED}]"
LATER = rf"[['\p{{L}}\p{{N}}]{MARK}--{UNSPACED}]"
"""The first and the later characters of the words of other scripts."""
SYMBOL = r"[[\p{So}\p{Extended_Pictographic}]--[\x00-\xff\ufffc\ufffd]]"
MODIFIER = r"[\p{M}\p{Emoji_Modifier}\U000e0020-\U000e007f]"
"""A picture, such as an emoji, and what changes it."""


class Patterns(NamedTuple):
    """Regular expressions that know the properties of characters."""

    word: Any
    unspaced: Any
    syllabic: Any
    vowels: Any
    invisible: Any
    cluster: Any


@cache
def patterns() -> Patterns:
    """Return the regular expressions; importing and compiling them takes 30 ms."""
    import regex

    # Punctuation between two letters (UAX 29), as in col·lecció and צה״ל.
    joint = r"[·׳״](?=\p{L})|(?<=[\p{Hebrew}\p{M}])\"(?=\p{Hebrew})"
    run, unspaced, mark = f"{FIRST}{LATER}*", UNSPACED, MARK
    picture = f"{SYMBOL}{MODIFIER}*"
    flag = r"[\U0001f1e6-\U0001f1ff]{2}"
    found = (
        rf"{run}(?:(?:{joint}){run})*{ENDS}|{unspaced}(?:{unspaced}|{mark})*"
        rf"|(?!\s)(?:{flag}|{picture}(?:\u200d{picture})*|{SIGN})",
        unspaced,
        r"[\p{Hangul}\p{Ethiopic}\p{Cherokee}]",
        # Vowels of Arabic and Hebrew.
        r"[\u0640\u064b-\u0652\u0670\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]",
        # Soft hyphens, marks of direction, selectors of variants.
        r"[\xad\u061c\u180e\u200e\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]",
        r"\X",
    )
    return Patterns(*(regex.compile(each, regex.VERSION1) for each in found))


def folded(text: str) -> str:
    """Return a text in the form in which it is read: NFKC, without case, with plain apostrophes.

    Examples
    --------
    >>> folded("ＳＴＲＡẞＥ"), folded("Don’t"), folded("İzmir")
    ('strasse', "don't", 'izmir')
    """
    if text.isascii():
        return text.lower()
    line = text.casefold().replace("i̇", "i")
    if NOT_PLAIN.search(line):
        line = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        line = patterns().invisible.sub("", line.replace("i̇", "i"))
    return APOSTROPHE.sub("'", line)


def plain(text: str) -> str | None:
    """Return the folded text, None if it has letters beyond Latin ones.

    Unless it has signs, its words are its runs of letters, digits and apostrophes.

    Examples
    --------
    >>> plain("Straße 7"), plain("улица")
    ('strasse 7', None)
    """
    line = folded(text)
    return line if line.isascii() or NOT_PLAIN.search(line) is None else None


def units(text: str) -> list[str]:
    """Return the words and signs of a text; a run of a script without spaces is one of them.

    A text without any has its other signs instead.

    Examples
    --------
    >>> units("C++: 我想退款 :-("), units("...")
    (['c++', '我想退款', ':-('], ['...'])
    """
    if text.isascii() and not MAY_BE_SIGN.search(text):
        return text.encode().translate(WORDS_OF_ASCII).decode().split() or text.split()
    line = plain(text)
    if line is None:
        line = folded(text)
        found = patterns().word.findall(line)
    else:
        found = _plain_units(line)
    return found or line.split()


def _plain_units(text: str) -> list[str]:
    """Return the units of a plain text; signs are looked for in the lines that may have some."""
    found = list[str]()
    for line in text.split("\n"):
        if MAY_BE_SIGN.search(line):
            found += WORD_OR_SIGN.findall(line)
        elif line.isascii():
            found += line.encode().translate(WORDS_OF_ASCII).decode().split()
        else:
            found += WORD.findall(line)
    return found


def n_words(found: Sequence[str]) -> float:
    """Return the number of words of units; of scripts without spaces, 3 characters count as one.

    Examples
    --------
    >>> round(n_words(units("我想退款 now")), 1), n_words(units("北京"))
    (2.3, 1.0)
    """
    if max(found, default="") < FIRST_UNSPACED:
        return len(found)
    return sum(max(1.0, len(letters_of(unit)) / CHARACTERS_OF_WORD) for unit in found)


def tokenize(text: str) -> list[str]:
    """Split a text into tokens: words of any script without case, emoji and signs.

    Words are runs of letters, marks, digits and apostrophes. Where a script has no spaces between
    words (Chinese, Japanese, Thai, Khmer, Burmese, Lao), tokens are its characters and the runs of
    2 and 3 characters. Words of syllables (Korean, Amharic, Cherokee) are tokens with their pairs
    of syllables, and words with Arabic or Hebrew vowels with the same words without them.
    Punctuation marks are no tokens, unless a text has nothing else.

    Examples
    --------
    >>> tokenize("Don't panic: 42!")
    ["don't", 'panic', '42']
    >>> tokenize("Ärger, C++ 👍🏽 ???")
    ['ärger', 'c++', '👍🏽', '???']
    >>> tokenize("退款吗")
    ['退', '款', '吗', '退款', '款吗', '退款吗']
    >>> tokenize("카드를")
    ['카드를', '카드', '드를']
    """
    found = units(text)
    return found if text.isascii() else _tokens_of(found)


def _tokens_of(found: list[str]) -> list[str]:
    """Return the tokens of units: those of some scripts are cut."""
    if max(found, default="") < FIRST_CUT:
        return found
    return [token for unit in found for token in cut(unit)]


def cut(unit: str) -> Iterable[str]:
    """Return a word, or the characters of a run of them and the runs of up to `GRAMS`.

    A word in letters of a syllable each also has its pairs of letters, which its stem and its
    endings have in common with other words; a word with vowels that most texts leave out, the word
    without them.
    """
    letters = letters_of(unit)
    if letters:
        return runs(letters, range(1, GRAMS + 1))
    if len(unit) > 2 and patterns().syllabic.match(unit):
        return (unit, *runs(patterns().cluster.findall(unit), (2,)))
    without_vowels = patterns().vowels.sub("", unit)
    return (unit, without_vowels) if without_vowels not in ("", unit) else (unit,)


def runs(letters: Sequence[str], lengths: Iterable[int]) -> Iterator[str]:
    """Return the runs of each length in turn.

    Examples
    --------
    >>> [*runs("cash", (2, 3))]
    ['ca', 'as', 'sh', 'cas', 'ash']
    """
    return ("".join(letters[i : i + n]) for n in lengths for i in range(len(letters) - n + 1))


def letters_of(unit: str) -> list[str]:
    """Return the characters of a run of a script without spaces; nothing of another word."""
    return patterns().cluster.findall(unit) if patterns().unspaced.match(unit) else []


def counted(texts: Iterable[str]) -> dict[str, float]:
    """Return how often each token is in several texts together.

    Examples
    --------
    >>> counted(["To be", "or not to be"])
    {'to': 2.0, 'be': 2.0, 'or': 1.0, 'not': 1.0}
    """
    found: dict[str, float] = {}
    for token in tokenize(" ".join(texts)):
        found[token] = found.get(token, 0.0) + 1.0
    return found


class Limits(NamedTuple):
    """The most characters, on average, of names and of short texts, and those of a beginning."""

    name: int
    short: int
    beginning: int


LIMITS = {1: Limits(-1, 160, 0), 2: Limits(NAME, SHORT_TEXT, BEGINNING)}
"""The limits of each version of the features of texts; models keep the version they began with."""

EARLIEST, LATEST = min(LIMITS), max(LIMITS)


@dataclass(frozen=True, slots=True)
class TextLengths:
    """The number of the texts learnt so far, and their characters.

    Parameters
    ----------
    n_texts, n_characters : int
    version : int, default `LATEST`
        Of the features, a key of `LIMITS`.

    Examples
    --------
    >>> TextLengths().is_short("what is up"), TextLengths(1, 1000).is_short("what is up")
    (True, False)
    """

    n_texts: int = 0
    n_characters: int = 0
    version: int = LATEST

    def and_text(self, length: int) -> TextLengths:
        """Return the lengths with those of one more text of this many characters."""
        return TextLengths(self.n_texts + 1, self.n_characters + length, self.version)

    @property
    def limits(self) -> Limits:
        """The limits that decide which features texts have."""
        return LIMITS[self.version]

    def is_short(self, text: str) -> bool:
        """Return whether the texts so far are short, on average, with this one included."""
        return self._are_within(self.limits.short, text)

    def runs(self, text: str) -> tuple[int, int]:
        """Return the lengths of the runs of characters of a short text.

        Examples
        --------
        >>> TextLengths().runs("Kowalski"), TextLengths().runs("how do I top up my card?")
        ((1, 4), (4, 4))
        """
        return RUNS_OF_NAMES if self._are_within(self.limits.name, text) else RUNS

    def _are_within(self, limit: int, text: str) -> bool:
        return self.n_characters + len(text) <= limit * (self.n_texts + 1)

    def beginning(self, text: str) -> str:
        """Return the beginning of a long text, up to the end of a word.

        Examples
        --------
        >>> TextLengths().beginning("word " * 100) == "word " * 49 + "word"
        True
        """
        return beginning_of(text, self.limits.beginning)


SPACES = " \n\t\r"
"""The characters before which the beginning of a text may end, and after which it begins."""


def beginning_of(text: str, most: int = BEGINNING) -> str:
    r"""Return the first characters of a text, without space before, up to the end of a word.

    It ends within a word that is longer.

    Examples
    --------
    >>> beginning_of("\n\n to be or not", 8), beginning_of("incomprehensible", 8)
    ('to be or', 'incompre')
    """
    text = text.lstrip(SPACES)
    if len(text) <= most:
        return text
    end = max(text.rfind(each, 0, most + 1) for each in SPACES)
    return text[: end if end > 0 else most]


def with_runs(text: str, lengths: tuple[int, int] = RUNS) -> dict[str, float]:
    """Return the tokens of a text, its pairs of words and its runs of characters, each of value 1.

    Runs are in upper case, so that they are other features than words; `lengths` are the least and
    the greatest number of their characters.

    Examples
    --------
    >>> list(with_runs("Top up!"))
    ['top', 'up', 'top up', ' TOP', 'TOP ', 'OP U', 'P UP', ' UP ']
    """
    tokens, line, capitals = spaced(text)
    names = [*tokens.split(), *map(" ".join, pairwise(line.split()))]
    least, most = lengths
    return dict.fromkeys([*names, *runs(capitals, range(least, most + 1))], 1.0)


def with_beginning(text: str, beginning: str) -> dict[str, float]:
    """Return how often each token is in a text, and in its beginning, as features of their own.

    Examples
    --------
    >>> with_beginning("to be or not to be", "to be")
    {'to': 2.0, 'be': 2.0, 'or': 1.0, 'not': 1.0, '^to': 1.0, '^be': 1.0}
    """
    found = counted([text])
    for token in marked(beginning):
        found[token] = found.get(token, 0.0) + 1.0
    return found


def marked(beginning: str) -> list[str]:
    """Return the tokens of a beginning as names of features.

    Examples
    --------
    >>> marked("To be!")
    ['^to', '^be']
    """
    return [BEGINS + token for token in tokenize(beginning)]


def spaced(text: str) -> tuple[str, str, str]:
    """Return what :func:`with_runs` reads, with spaces between: tokens, words, words in capitals.

    Runs of scripts without spaces are one of the words. There are also spaces around capitals.

    Examples
    --------
    >>> spaced("Top up!"), spaced("退款")
    (('top up', 'top up', ' TOP UP '), ('退 款 退款', '退款', ' 退款 '))
    """
    found = units(text)
    tokens, line = _tokens_of(found), " ".join(found)
    capitals = f" {line.upper()} " if line else ""
    return line if tokens is found else " ".join(tokens), line, capitals

"""Features of texts: words, runs of words, characters and parts of words, counted all at once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.schema.entries import Doubles, Entries, Integers, positions, scale_to, starts_of
from kesler.data.texts import BEGINS, beginning_of, tokenize

LENGTH = 0.75
MANY_WORDS, LEAST_SHARE = 14, 0.13  # different words of a text of full length; the least length
SHARES = np.array([max(LEAST_SHARE, (n / MANY_WORDS) ** 0.7) for n in range(MANY_WORDS + 1)])
"""The share of the full length that a text of so many different words has."""
LENGTHS = (SHARES * LENGTH).tolist()

SPACE = ord(" ")
Spans = tuple[Integers, Integers, Integers]
"""Where terms begin and end, and how many each text has."""


def entries_of_texts(name: str, texts: Sequence[str | None], options: Mapping[str, Any]) -> Entries:
    """Return damped counts of the terms of texts, of less length if they have few words.

    Examples
    --------
    >>> list(entries_of_texts("body", ["to be", None], {"ngrams": 2})[0])
    ['body:to', 'body:be', 'body:to be']
    """
    different = list(dict.fromkeys(text for text in texts if text is not None))
    # Lists of words that are kept until all texts are read would let Python look for garbage.
    parts = _parts(name, different, options)
    learnt = parts if options.get("ngrams", 1) else parts[1:]
    if options.get("beginning"):
        learnt += _parts(name, [*map(beginning_of, different)], {}, of_words=f":{BEGINS}")
    found = Entries.interleaved(learnt, len(different))
    scales = _scales(found, parts[0].counts)
    scaled = replace(found, values=scales.repeat(found.counts) * found.values)
    if len(different) == len(texts):
        return scaled
    place: dict[str | None, int] = {text: i for i, text in enumerate(different)}
    return scaled.take(np.array([place.get(text, -1) for text in texts], dtype=np.int64))


def _parts(
    name: str, texts: Iterable[str], options: Mapping[str, Any], of_words: str = ":"
) -> list[Entries]:
    """Return the terms of each length, the words first, with a sign before their names."""
    lines = [f" {' '.join(tokenize(text))} " for text in texts]
    joined, n_letters = "".join(lines), np.array([*map(len, lines)], dtype=np.int64)
    letters = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).copy()
    return [
        counted(name + (of_words if sign == ":" else sign), joined, letters, spans)
        for sign, spans in _spans(letters, n_letters, options)
    ]


def terms_of(name: str, text: str, options: Mapping[str, Any]) -> dict[str, float]:
    """Return the terms of one text, which takes a tenth of the time of arrays.

    Examples
    --------
    >>> terms_of("body", "to be", {}) == next(iter(entries_of_texts("body", ["to be"], {})))
    True
    """
    words = tokenize(text)
    names, length = names_of(name, text, words, options), LENGTHS[min(MANY_WORDS, len({*words}))]
    if len({*names}) == len(names):
        return dict.fromkeys(names, scale_to(length, [1.0] * len(names)))
    counts = Counter(names)
    values = [1.0 if count == 1 else 1 + math.log(count) for count in counts.values()]
    scale = scale_to(length, values)
    return {term: scale * value for term, value in zip(counts, values, strict=True)}


def names_of(name: str, text: str, words: list[str], options: Mapping[str, Any]) -> list[str]:
    """Return the names of the terms of a text, those that it has several times as often.

    Examples
    --------
    >>> names_of("body", "to be", ["to", "be"], {"ngrams": 2, "subwords": (3, 3)})
    ['body:to', 'body:be', 'body:to be', 'body< to', 'body<to ', 'body< be', 'body<be ']
    >>> names_of("body", "to be", ["to", "be"], {"beginning": True})
    ['body:to', 'body:be', 'body:^to', 'body:^be']
    """
    line, n_words = f" {' '.join(words)} ", options.get("ngrams", 1)
    begin = f"{name}:"
    names = [begin + word for word in words] if n_words else []
    for n in range(2, n_words + 1):
        names += [begin + " ".join(words[i : i + n]) for i in range(len(words) - n + 1)]
    shortest, longest = options.get("chars", (1, 0))
    begin = f"{name}~"
    for n in range(shortest, longest + 1):
        names += [begin + line[i : i + n] for i in range(len(line) - n + 1)]
    shortest, longest = options.get("subwords", (1, 0))
    for n in range(shortest, longest + 1):
        names += [f"{name}<{run}" for word in words for run in _runs_in(word, n)]
    if options.get("beginning"):
        names += [f"{name}:{BEGINS}{word}" for word in tokenize(beginning_of(text))]
    return names


def _runs_in(word: str, n: int) -> list[str]:
    """Return the runs of n characters of a word with the spaces around it; no space alone."""
    padded = word if n == 1 else f" {word} "
    return [padded[i : i + n] for i in range(len(padded) - n + 1)]


def _scales(found: Entries, n_words: Integers) -> Doubles:
    """Return the factors by which the values of texts of so many words have their length."""
    scales, start = list[float](), 0
    ends, words = found.counts.cumsum().tolist(), np.minimum(MANY_WORDS, n_words).tolist()
    for end, n in zip(ends, words, strict=True):
        scales.append(scale_to(LENGTHS[n], found.values[start:end].tolist()))
        start = end
    return np.array(scales)


def _spans(
    letters: npt.NDArray[np.uint32],
    n_letters: Integers,
    options: Mapping[str, Any],
) -> Iterator[tuple[str, Spans]]:
    """Yield the words, runs of words and runs of characters, with the signs before their names."""
    spaces = np.flatnonzero(letters == SPACE)
    starts, ends = spaces[:-1] + 1, spaces[1:]
    is_word = ends > starts  # between two texts are two spaces
    starts, ends = starts[is_word], ends[is_word]
    first_words = np.searchsorted(starts, starts_of(n_letters))
    n_words = np.diff(first_words, append=len(starts))
    for n in range(1, max(1, options.get("ngrams", 1)) + 1):
        n_terms = np.maximum(0, n_words - n + 1)
        at = positions(first_words, n_terms)
        yield ":", (starts[at], ends[at + n - 1], n_terms)
    shortest, longest = options.get("chars", (1, 0))
    for n in range(shortest, longest + 1):
        n_terms = np.maximum(0, n_letters - n + 1)
        at = positions(starts_of(n_letters), n_terms)
        yield "~", (at, at + n, n_terms)
    shortest, longest = options.get("subwords", (1, 0))
    for n in range(shortest, longest + 1):
        yield "<", _within_words(starts, ends, n_words, n)


def _within_words(starts: Integers, ends: Integers, n_words: Integers, n: int) -> Spans:
    """Return the runs of n characters of words with the spaces around them; no space alone."""
    around = 0 if n == 1 else 1
    starts, ends = starts - around, ends + around
    n_runs = np.maximum(0, ends - starts - n + 1)
    at = positions(starts, n_runs)
    return at, at + n, np.diff(np.cumsum([0, *n_runs])[np.cumsum([0, *n_words])])


def counted(prefix: str, joined: str, letters: npt.NDArray[np.uint32], spans: Spans) -> Entries:
    """Return the damped counts of the terms of each text, by their names."""
    from kesler.compiled.readers.terms import count_terms

    (starts, ends, n_terms), n = spans, len(spans[0])
    table = np.zeros(1 << n.bit_length() + 1, dtype=np.int64)
    places, firsts = np.full(n, -1), np.empty(n, dtype=np.int64)
    codes, counts = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    sizes = np.zeros(len(n_terms), dtype=np.int64)
    filled = table, places, firsts, codes, counts, sizes
    n_codes = count_terms(letters, starts, ends, n_terms, *filled)
    firsts, n_found = firsts[:n_codes], int(sizes.sum())
    pairs = zip(starts[firsts].tolist(), ends[firsts].tolist(), strict=True)
    names = [prefix + joined[start:end] for start, end in pairs]
    return Entries(sizes, codes[:n_found], _damped(counts[:n_found]), names)


def _damped(counts: Integers) -> Doubles:
    """Return the values of words that a text has so many times."""
    values = [1.0, 1.0, *(1 + math.log(n) for n in range(2, int(counts.max(initial=1)) + 1))]
    found: Doubles = np.array(values)[counts]
    return found

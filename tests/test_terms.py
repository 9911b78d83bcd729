"""Features of texts of tables: those of a reference that counts them one text after another."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesler.data.schema.entries import Entries, positions
from kesler.data.schema.terms import entries_of_texts
from kesler.data.texts import tokenize

OPTIONS: list[dict[str, Any]] = [
    {},
    {"ngrams": 1},
    {"ngrams": 3},
    {"chars": (1, 8)},
    {"ngrams": 2, "chars": (4, 4)},
    {"ngrams": 0, "chars": (1, 4)},
    {"subwords": (3, 6)},
    {"ngrams": 0, "subwords": (1, 8)},
    {"ngrams": 2, "chars": (2, 3), "subwords": (2, 3)},
]


def reference(name: str, text: str, options: dict[str, Any]) -> dict[str, float]:
    """Return damped counts of words, runs of words and runs of characters, of length 0.75."""
    words = tokenize(text)
    names = [f"{name}:{word}" for word in words] if options.get("ngrams", 1) else []
    for n in range(2, options.get("ngrams", 1) + 1):
        names += [f"{name}:{' '.join(words[i : i + n])}" for i in range(len(words) - n + 1)]
    if "chars" in options:
        shortest, longest = options["chars"]
        letters = f" {' '.join(words)} "
        for n in range(shortest, longest + 1):
            names += [f"{name}~{letters[i : i + n]}" for i in range(len(letters) - n + 1)]
    shortest, longest = options.get("subwords", (1, 0))
    for n in range(shortest, longest + 1):
        for word in (f" {word} " for word in words):
            runs = [word[i : i + n] for i in range(len(word) - n + 1)]
            names += [f"{name}<{run}" for run in runs if run != " "]
    counts = {word: 1 + math.log(n) if n > 1 else 1.0 for word, n in Counter(names).items()}
    share = min(1.0, max(0.13, (len(set(words)) / 14) ** 0.7))
    scale = share * 0.75 / math.hypot(*counts.values()) if counts else 0.0
    return {word: scale * value for word, value in counts.items()}


@pytest.mark.parametrize("options", OPTIONS)
def test_terms_are_those_of_the_reference(options: dict[str, Any]) -> None:
    texts = [
        "To be, or not to be: that is the question",
        "我想退款 and ไทย too 👍🏽 C++ :-(",
        "",
        "...",
        "a",
        "To be, or not to be: that is the question",
        "la la la la la la",
        "don't don't",
        "x" * 300,
    ]
    found = entries_of_texts("t", [None, *texts, None], options)
    assert found[0] == found[len(texts) + 1] == {}
    for row, text in enumerate(texts, start=1):
        assert list(found[row].items()) == list(reference("t", text, options).items())


@given(st.lists(st.text(max_size=40) | st.none(), max_size=8), st.sampled_from(OPTIONS))
@settings(deadline=None)
def test_any_texts_have_the_terms_of_the_reference(
    texts: list[str | None], options: dict[str, Any]
) -> None:
    found = entries_of_texts("t", texts, options)
    expected = [{} if text is None else reference("t", text, options) for text in texts]
    assert list(found) == expected


def test_many_different_terms_have_a_code_each() -> None:
    words = [f"w{i}" for i in range(5000)]
    (row,) = entries_of_texts("t", [" ".join(words)], {})
    assert list(row) == [f"t:{word}" for word in words]


@given(st.lists(st.lists(st.floats(0.5, 2), max_size=4), max_size=5), st.data())
def test_rows_are_taken_and_joined(rows: list[list[float]], data: Any) -> None:
    entries = entries_of(rows)
    places = data.draw(st.lists(st.integers(-1, len(rows) - 1), max_size=6))
    taken = entries.take(np.array(places, dtype=np.int64))
    assert list(taken) == [{} if place < 0 else entries[place] for place in places]
    both = Entries.interleaved([entries, renamed(entries)], len(rows))
    assert list(both) == [
        {**entries[i], **{f"other {name}": value for name, value in entries[i].items()}}
        for i in range(len(rows))
    ]


def entries_of(rows: list[list[float]]) -> Entries:
    counts = np.array([len(row) for row in rows], dtype=np.int64)
    codes = positions(np.zeros(len(rows), dtype=np.int64), counts)
    values = np.array([value for row in rows for value in row], dtype=float)
    return Entries(counts, codes, values, ["a", "b", "c", "d"])


def renamed(entries: Entries) -> Entries:
    names = [f"other {name}" for name in entries.names]
    return Entries(entries.counts, entries.codes, entries.values, names)

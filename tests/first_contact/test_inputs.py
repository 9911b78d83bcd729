"""Files that people bring are learnt about as well as their rows in a data frame."""

from __future__ import annotations

import json
import re
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from first_contact.inputs import (
    ENCODINGS,
    INPUTS,
    LANGUAGES,
    N_ROWS,
    OF_WORDS,
    PAGE,
    REFUSED,
    Input,
    messages,
    rows_of,
    sentences,
    text_of_page,
    written,
)
from kesler import OnlineClassifier, progressive_validate
from kesler.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::kesler.errors.ReadingWarning")


@cache
def wanted(language: str = "English", told_by: str = "message", gaps_from: int = N_ROWS) -> int:
    """Return the mistakes of the rows as a data frame of texts, numbers and times."""
    frame = pd.DataFrame(rows_of(language, told_by))
    frame.loc[(frame.index >= gaps_from) & (frame.index % 8 == 5), "amount"] = float("nan")
    X, y = frame.drop(columns="team"), list(frame["team"])
    return progressive_validate(OnlineClassifier(), X, y).n_mistakes


@cache
def wanted_of_words(format: str) -> int:
    """Return the mistakes of the words of the texts, for mail with those of its headers."""
    rows = rows_of()
    texts = [row["message"] for row in rows]
    if format == "mail":
        lines = [message.decode().splitlines() for _, message in messages(rows)]
        texts = [" ".join(line.partition(": ")[2] or line for line in each) for each in lines]
    words = [dict.fromkeys(re.findall(r"[a-z0-9]+", text.lower()), 1.0) for text in texts]
    return progressive_validate(OnlineClassifier(), words, [row["team"] for row in rows]).n_mistakes


def mistakes(source: Path, capsys: Any, *options: str) -> int:
    """Return the mistakes that `kesler compare` counts, of all rows."""
    result = source.parent / "result.json"
    arguments = ["compare", str(source), "--methods", "default", "--json", str(result), *options]
    assert main(arguments) == 0, capsys.readouterr().err
    (found,) = json.loads(result.read_text())["methods"].values()
    return int(found["mistakes"])


def assert_near(found: int, expected: int) -> None:
    assert found <= expected + max(3, 0.03 * N_ROWS), (found, expected)


@pytest.mark.parametrize("each", INPUTS, ids=lambda each: f"{each.format}, {each.variant}")
def test_a_file_is_learnt_as_its_owner_means_it(each: Input, tmp_path, capsys):
    rows = rows_of(told_by=each.told_by)
    source = each.write(tmp_path / f"rows{each.suffix}", each.cells(rows))
    has_gaps = "missing" in each.variant or each.variant == "nulls"
    if each.format in OF_WORDS:
        assert_near(mistakes(source, capsys, *each.options), wanted_of_words(each.format))
        return
    gaps_from = 61 if "from row 60" in each.variant else 0 if has_gaps else N_ROWS
    assert_near(mistakes(source, capsys, *each.options), wanted("English", each.told_by, gaps_from))


@pytest.mark.parametrize("each", REFUSED, ids=", ".join)
def test_what_cannot_be_read_is_refused_with_a_sentence(each, tmp_path, capsys):
    name, content, sentence = REFUSED[each]
    (tmp_path / name).write_bytes(content)
    assert main(["compare", str(tmp_path / name), "--label", "team"]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("name", ENCODINGS)
def test_an_encoding_is_found(name, tmp_path, capsys):
    encoding, language = ENCODINGS[name]
    rows = [{**row, "day": row["day"].isoformat(" ")} for row in rows_of(language)]
    source = partial(written, encoding=encoding)(tmp_path / "rows.csv", rows)
    assert_near(mistakes(source, capsys, "--label", "team"), wanted(language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_of_a_language_are_learnt(language, tmp_path, capsys):
    texts, labels = sentences(language)
    lines = [json.dumps({"text": t, "label": y}) for t, y in zip(texts, labels, strict=True)]
    source = tmp_path / "rows.jsonl"
    source.write_text("\n".join(lines))
    english = mistakes_of(*sentences("English"))
    assert_near(mistakes(source, capsys), max(english, mistakes_of(texts, labels)))
    assert_near(mistakes_of(texts, labels), english)


@cache
def _counted(texts: tuple[str, ...], labels: tuple[str, ...]) -> int:
    return progressive_validate(OnlineClassifier(), list(texts), list(labels)).n_mistakes


def mistakes_of(texts: list[str], labels: list[str]) -> int:
    return _counted(tuple(texts), tuple(labels))


def test_the_page_says_how_each_file_is_read():
    assert PAGE.read_text(encoding="utf-8") == text_of_page()
    assert len(INPUTS) + len(ENCODINGS) + len(LANGUAGES) >= 100

"""Reasons in words: the words, pairs and cells that contributions of features are summed into."""

from __future__ import annotations

import re
import tracemalloc
import unicodedata
from collections import Counter
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesler import KeslerError, OnlineClassifier
from kesler.data.wording import Wording

ALL = 10**6
TEXTS = [
    ("win cash now, win a prize", "spam"),
    ("team lunch today", "work"),
    ("cash prize for the winner", "spam"),
    ("lunch agenda of the team", "work"),
    ("kids at school don't win", "home"),
] * 4
LABELS = [label for _, label in TEXTS]
ASKED = [
    "Win the cash!",
    "the team's lunch: the winners win cash",
    "don't",
    "a b c",
    "win win win win",
    "schoolkids' prizewinner",
]


def margins_of(why: Any) -> dict[str, float]:
    assert why.remainder.n_features == 0
    return {str(each.feature): each.margin for each in why.contributions}


def by_letters(run: str, line: str, owners: list[str | None]) -> Counter[str]:
    """What a run is of: letters are counted one by one wherever it stands in a line.

    A space is of the words beside it.
    """
    found: Counter[str] = Counter()
    for i in range(len(line)):
        if line.startswith(run, i):
            around = (i, i + len(run)) if run.strip() else (max(0, i - 1), i + len(run) + 1)
            found.update(owner for owner in owners[slice(*around)] if owner)
    return found


def reference(text: str, features: dict[str, float], before: str = "") -> dict[str, float]:
    """The contributions of words and pairs of a text of ASCII letters, from those of features.

    Features of a text alone have no sign; those of a column have one after `before`.
    """
    words = re.findall(r"[a-z']+", text.lower())
    line = " " + "".join(word + " " for word in words)
    owners: list[str | None] = [None]
    for word in words:
        owners += [*[word] * len(word), None]
    sums: Counter[str] = Counter()
    for name, margin in features.items():
        part, is_run = name, name not in words and " ".join(words).find(name) < 0
        if before:
            sign, part = name[len(before)], name[len(before) + 1 :]
            is_run = sign != ":"
        if not is_run:
            sums[part] += margin
            continue
        letters = by_letters(part.lower(), line, owners)
        for word, n in letters.items():
            sums[word] += margin * n / letters.total()
    return dict(sums)


def assert_equal(found: dict[str, float], expected: dict[str, float]) -> None:
    assert found.keys() == expected.keys()
    for name, margin in expected.items():
        assert found[name] == pytest.approx(margin, abs=1e-9), name


def of_texts(**options: Any) -> OnlineClassifier:
    return OnlineClassifier(**options).partial_fit([text for text, _ in TEXTS], LABELS)


def in_columns(*texts: str, **cells: Any) -> dict[str, Any]:
    return {**{f"text {i}": text for i, text in enumerate(texts)}, **cells}


# ---- oracles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ASKED)
@pytest.mark.parametrize("update", ["auto", "ensemble"])
def test_words_of_a_text_have_the_runs_of_their_letters(text, update):
    model = of_texts(update=update)
    features = margins_of(model.explain_one(text, "spam", "work", ALL, features=True))
    found = margins_of(model.explain_one(text, "spam", "work", ALL))
    assert_equal(found, reference(text, features))
    assert any(name.upper() == name for name in features)
    assert not any(name.upper() == name for name in found)


@pytest.mark.parametrize("text", ASKED)
@pytest.mark.parametrize(
    "options",
    [{"ngrams": 2, "chars": (4, 4)}, {"chars": (1, 3)}, {"subwords": (3, 5)}, {"ngrams": 3}],
    ids=str,
)
def test_words_of_a_column_have_the_runs_of_their_letters(text, options):
    columns = {"body": {"kind": "text", **options}}
    model = OnlineClassifier(columns=columns).fit([{"body": text} for text, _ in TEXTS], LABELS)
    asked = {"body": text}, "spam", "work", ALL
    features = margins_of(model.explain_one(*asked, features=True))
    if "subwords" in options:
        assert any(name.startswith("body<") for name in features)
    assert_equal(margins_of(model.explain_one(*asked)), reference(text, features, "body"))


def test_of_several_columns_each_has_its_own_words():
    rows = [in_columns(text, text[::-1]) for text, _ in TEXTS]
    columns = {name: {"kind": "text", "ngrams": 2, "chars": (4, 4)} for name in rows[0]}
    model = OnlineClassifier(columns=columns).fit(rows, LABELS)
    asked = in_columns("win the cash", "lunch win"), "spam", "work", ALL
    features = margins_of(model.explain_one(*asked, features=True))
    expected = {}
    for column, text in asked[0].items():
        own = {name: margin for name, margin in features.items() if name.startswith(column)}
        words = reference(text, own, column)
        expected |= {f"{column}: {word}": margin for word, margin in words.items()}
    assert_equal(margins_of(model.explain_one(*asked)), expected)


# ---- laws ----------------------------------------------------------------------------------------

SCRIPTS = [
    "退款吗 please 我想退款",
    "카드를 잃어버렸어요",
    "קָרְאוּ עוד צה״ל",
    "كَتَبَ الولد",
    "ขอเงินคืน now",
    "ﬁne Straße İzmir naïve café Ａ１",
    "Cafe\u0301 don’t l’été",
    "C++ :-( ??? 👍🏽 2024 20242024",
    "... !",
    "",
]


def tables() -> list[dict[str, Any]]:
    rng = np.random.default_rng(5)
    return [
        {
            "subject": text[:9],
            "body": text,
            "amount": float(rng.normal(100 + 50 * (label == "spam"), 10)),
            "kind": ["card", "House, flat"][i % 2],
            "when": f"2026-0{1 + i % 9}-1{i % 10}",
            "tags": [["new", "old"][i % 2], "all"],
        }
        for i, (text, label) in enumerate(TEXTS * 3)
    ]


@pytest.fixture(scope="module")
def of_table() -> OnlineClassifier:
    columns = {
        "subject": {"kind": "text", "subwords": (2, 4)},
        "body": {"kind": "text", "ngrams": 2, "chars": (4, 4)},
        "tags": "tags",
    }
    return OnlineClassifier(columns=columns).fit(tables(), LABELS * 3)


@pytest.fixture(scope="module")
def of_scripts() -> OnlineClassifier:
    texts = [*[text for text, _ in TEXTS], *SCRIPTS[:8]]
    return OnlineClassifier().partial_fit(texts, [*LABELS, *["a", "b"] * 4])


def assert_adds_up(model: Any, row: Any, n: int) -> Any:
    """What is shown and the rest sum to the margin, and marks to the words and pairs of texts."""
    why, whole = model.explain_one(row, n=n), model.explain_one(row, n=ALL)
    features = model.explain_one(row, n=ALL, features=True)
    scale = 1 + sum(abs(each.margin) for each in features.contributions)
    assert abs(sum(each.margin for each in why.summands) - why.margin) < 1e-5 * scale
    assert abs(sum(each.score for each in why.summands) - why.score) < 1e-5 * scale
    assert whole.contributions[:n] == why.contributions
    assert len(whole.contributions) == len(why.contributions) + why.remainder.n_features
    assert why.intercept == features.intercept
    names = [each.feature for each in whole.contributions]
    assert len(names) == len(set(names)) <= len(features.contributions)
    for each in why.texts:
        ends = [0, *(place for span in each.spans for place in span[:2])]
        assert ends == sorted(ends) and ends[-1] <= len(each.text)
    return why


def marked_sum(why: Any) -> float:
    return sum(span.margin for each in why.texts for span in each.spans)


@settings(max_examples=60)
@given(
    text=st.one_of(
        st.text(max_size=30),
        st.lists(st.sampled_from(" ".join(SCRIPTS).split()), max_size=9).map(" ".join),
        st.lists(st.sampled_from("win cash lunch don't team".split()), max_size=9).map(" ".join),
    ),
    n=st.integers(1, 20),
)
def test_what_is_shown_of_texts_and_the_rest_are_the_margin(of_scripts, text, n):
    why = assert_adds_up(of_scripts, text, n)
    (marks,) = why.texts
    assert marks.text == text and marks.column is None
    if unicodedata.normalize("NFKC", text) == text and len(marks.spans):
        expected = why.margin - why.intercept.margin
        assert marked_sum(why) == pytest.approx(expected, abs=1e-4)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30))
def test_what_is_shown_of_tables_and_the_rest_are_the_margin(of_table, seed, n):
    rng = np.random.default_rng(seed)
    rows = tables()
    row = {name: rows[rng.integers(len(rows))][name] for name in rows[0] if rng.random() < 0.8}
    row["body"] = " ".join(rng.choice(" ".join(SCRIPTS[:8]).split(), 4))
    why = assert_adds_up(of_table, row, n)
    whole = margins_of(of_table.explain_one(row, n=ALL))
    features = margins_of(of_table.explain_one(row, n=ALL, features=True))
    for column in row:
        parts = [margin for name, margin in features.items() if name.startswith(column)]
        own = [margin for name, margin in whole.items() if name.startswith(column)]
        assert sum(own) == pytest.approx(sum(parts), abs=1e-9)
    of_texts = [m for name, m in whole.items() if name.startswith(("subject: ", "body: "))]
    assert marked_sum(why) == pytest.approx(sum(of_texts), abs=1e-9)


def test_explaining_many_classes_needs_little_memory():
    rows = [f"word{i} shared{i % 40}" for i in range(20_000)]
    model = OnlineClassifier().partial_fit(rows, [f"class {i}" for i in range(20_000)])
    why = assert_adds_up(model, rows[7], 5)
    assert why.label == "class 7" and why.contributions[0].feature in ("word7", "word7 shared7")
    tracemalloc.start()
    model.explain_one(rows[7])
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


# ---- names and places ----------------------------------------------------------------------------


def test_words_are_found_in_the_text_as_it_was_given():
    text = "Win the ﬁne CASH, don’t: Cafe\u0301"
    why = of_texts().explain_one(text, "spam", "work")
    spans = why.texts[0].spans
    shown = [text[span.start : span.end] for span in spans]
    assert shown == ["Win", "the", "ﬁne", "CASH", "don’t", "Cafe\u0301"]
    assert max(spans, key=lambda span: span.margin).start in (0, text.index("CASH"))


def test_a_word_that_comes_twice_is_marked_twice():
    why = of_texts().explain_one("cash or cash", "spam", "work", ALL)
    spans = why.texts[0].spans
    assert [span.start for span in spans] == [0, 5, 8]
    found = margins_of(why)
    pairs = found["cash or"] + found["or cash"]
    assert spans[0].margin + spans[2].margin == pytest.approx(found["cash"] + pairs / 2)


@pytest.mark.parametrize("of_column", [False, True])
def test_scripts_without_spaces_have_runs_of_characters(of_column):
    wording = Wording("退款吗 now", of_column=of_column)
    assert [piece.text for piece in wording.pieces] == ["退", "款", "吗", "now"]
    assert wording.shares("退款") == [("退款", 1.0)]
    run = "款 吗 " if of_column else "款吗 N"
    shares = wording.shares(run, is_run=True if of_column else None)
    expected = [("款吗", 1.0)] if of_column else [("款吗", 2 / 3), ("now", 1 / 3)]
    assert shares == [(name, pytest.approx(share)) for name, share in expected]
    if of_column:  # the tokens are 退 款 吗 退款 款吗 退款吗
        assert wording.shares("吗 退", is_run=True) == [("吗", 0.5), ("退", 0.5)]
    assert wording.shares("zebra") == [] and wording.places("zebra") == ()


def test_parts_of_words_are_of_their_word():
    korean = Wording("카드를 카드", of_column=True)
    assert korean.shares("드를") == [("카드를", 1.0)]
    assert dict(korean.shares("카드")) == {"카드를": 0.5, "카드": 0.5}
    arabic = Wording("كَتَبَ", of_column=False)
    assert arabic.shares("كتب") == [("كَتَبَ", 1.0)]


def test_cells_have_the_names_of_their_columns_and_what_is_in_them(of_table):
    row = tables()[1]
    why = of_table.explain_one(row, n=ALL)
    cells = {str(each.feature): each for each in why.contributions if ": " not in str(each.feature)}
    assert cells.keys() == {
        "amount", "kind=House, flat", f"when={datetime.fromisoformat(row['when'])}",
        "tags=old", "tags=all",
    }  # fmt: skip
    amount = cells["amount"]
    assert amount.value == row["amount"]
    assert amount.mean == pytest.approx(np.mean([each["amount"] for each in tables()]))
    assert amount.written == f"{amount.value:.4g} (mean {amount.mean:.4g})"
    assert all(each.value is None is each.mean for name, each in cells.items() if name != "amount")
    assert amount.written in str(why) and [each.column for each in why.texts] == ["subject", "body"]


def test_pairs_of_categories_vectors_and_sequences_are_named():
    rows = [{"a": "xy"[i % 2], "b": "uvw"[i % 3], "point": [i % 2, 1.0]} for i in range(60)]
    columns = {"point": "vector"}
    model = OnlineClassifier("multi", update="pa1", columns=columns).fit(rows, ["1", "2", "3"] * 20)
    found = margins_of(model.explain_one(rows[4], n=ALL))
    features = margins_of(model.explain_one(rows[4], n=ALL, features=True))
    assert found.keys() == {"a=x", "b=v", "a=x & b=v", "point"}
    assert found["a=x & b=v"] == features["a&b=x&v"]
    assert found["point"] == pytest.approx(features["point[1]"])
    rows = [{"dna": "ACGT"[i % 4] * 9, "size": i % 7 + 0.5} for i in range(60)]
    columns = {"dna": {"kind": "sequence", "k": 3}}
    model = OnlineClassifier(columns=columns).fit(rows, ["1", "2"] * 30)
    assert margins_of(model.explain_one(rows[4], n=ALL)).keys() == {"dna: AAA", "size"}


def test_columns_with_signs_in_their_names_are_told_apart():
    rows = [{"a": text, "a<b": text, "a:b=": float(len(text))} for text, _ in TEXTS]
    columns = {name: {"kind": "text", "subwords": (3, 3)} for name in ("a", "a<b")}
    model = OnlineClassifier(columns=columns).fit(rows, LABELS)
    found = margins_of(model.explain_one({"a": "win", "a<b": "cash", "a:b=": 9.0}, n=ALL))
    assert found.keys() == {"a: win", "a<b: cash", "a:b="}


def test_runs_of_letters_that_go_on_as_the_name_of_a_longer_column_are_told_apart():
    rows = [{"a": f"bee {text}", "a<b": text[::-1]} for text, _ in TEXTS]
    columns = {name: {"kind": "text", "subwords": (3, 3)} for name in ("a", "a<b")}
    model = OnlineClassifier(columns=columns).fit(rows, LABELS)
    row = {"a": "bee", "a<b": "hcnul"}
    features = margins_of(model.explain_one(row, n=ALL, features=True))
    assert any(name.startswith("a<be") for name in features)
    assert margins_of(model.explain_one(row, n=ALL)).keys() == {"a: bee", "a<b: hcnul"}


def test_numbers_beside_measurements_say_their_mean():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"size": rng.normal(5, 1, 60), "kind": ["a", "b", "c"] * 20})
    model = OnlineClassifier().fit(frame, ["x", "y"] * 30)
    why = model.explain_one({"size": 7.0, "kind": "a"})
    found = {each.feature: each for each in why.contributions}
    assert found.keys() == {"size", "kind=a"} and why.texts == ()
    assert found["size"].mean == pytest.approx(frame["size"].mean())


def test_numbers_that_no_row_had_have_no_mean():
    rows = [{"note": text, "size": "n/a"} for text, _ in TEXTS]
    columns = {"note": "text", "size": "number"}
    model = OnlineClassifier(columns=columns).fit(rows, LABELS)
    why = model.explain_one({"note": "win", "size": 3.0}, n=ALL)
    assert {each.mean for each in why.contributions} == {None}


def test_values_of_single_features_are_not_compared_with_means_of_numbers():
    rows = [{"note": text, "size": 100.0 + i} for i, (text, _) in enumerate(TEXTS)]
    columns = {"note": "text", "size": "number"}
    model = OnlineClassifier(columns=columns).fit(rows, LABELS)
    why = model.explain_one(rows[0], n=ALL, features=True)
    assert {str(each.feature) for each in why.contributions} > {"size", "note:win"}
    assert {each.mean for each in why.contributions} == {None} and "mean" not in str(why)


def test_a_word_and_a_cell_of_equal_names_are_told_apart():
    rows = [
        {"note": "size" if i % 2 else "cash", "note: size": 5.0 + i, "size": "ab"[i % 2]}
        for i in range(40)
    ]
    columns = {"note": "text", "note: size": "number"}
    model = OnlineClassifier(columns=columns).fit(rows, ["x", "y"] * 20)
    asked = {"note": "size", "note: size": 9.0, "size": "a"}
    features = margins_of(model.explain_one(asked, "x", n=ALL, features=True))
    why = model.explain_one(asked, "x", n=ALL)
    word, number = sorted(
        (each for each in why.contributions if each.feature == "note: size"),
        key=lambda each: each.value is not None,
    )
    assert (word.value, word.mean) == (None, None)
    assert (number.value, number.mean) == (9.0, pytest.approx(24.5))
    of_word = [
        each for name, each in features.items() if name.startswith("note") and name[4] in ":~"
    ]
    of_number = [each for name, each in features.items() if name.startswith("note%3A size")]
    assert word.margin == pytest.approx(sum(of_word)) and len(of_number) > 1
    assert number.margin == pytest.approx(sum(of_number))


def test_single_features_are_listed_on_request():
    why = of_texts().explain_one("win cash", "spam", "work", 3, features=True)
    assert str(why).splitlines()[1].split() == [
        "feature", "value", "own", "shared", "rival", "margin"
    ]  # fmt: skip
    assert str(of_texts().explain_one("win cash")).splitlines()[1].split() == [
        "reason", "contribution"
    ]  # fmt: skip
    with pytest.raises(KeslerError, match="features='yes' must be True"):
        of_texts().explain_one("win", features="yes")


@pytest.mark.parametrize("n_classes", [1, 4, 5, 6, 7])
def test_a_class_that_is_unknown_is_refused_by_the_first_five_known(n_classes):
    known = [*"gfedcba"][:n_classes]
    model = OnlineClassifier("multi", update="pa1").partial_fit(np.eye(n_classes), known)
    some = ", ".join(map(repr, known[:5])) + (", ..." if n_classes > 5 else "")
    for call in (partial(model.explain_one, np.ones(n_classes)), model.top_features):
        with pytest.raises(KeslerError) as raised:
            call("z")
        sentence = f"label='z' is not a class that has been learnt: choose of {some}"
        assert str(raised.value) == sentence


def test_rows_without_texts_have_the_same_features_either_way():
    for model, row in [
        (OnlineClassifier().fit(np.eye(4), [0, 1, 0, 1]), np.eye(4)[0]),
        (OnlineClassifier().fit([{"a": 1.0}, {"b": 2.0}] * 9, [0, 1] * 9), {"a": 1.0}),
        (of_texts(kernel="linear"), "win cash"),
    ]:
        one, other = model.explain_one(row, n=ALL), model.explain_one(row, n=ALL, features=True)
        assert one.contributions == other.contributions and one.texts == ()

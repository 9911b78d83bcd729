"""The marks and reasons of items on the page, and the one figure of confidence beside them."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesler import NEW, OnlineClassifier
from kesler.durable.items import Item
from kesler.learner.explanations import Contribution, MarkedText, Span
from kesler.service.marking import LONGEST, SHORT, clipped, marked
from kesler.service.views import percent, row_text, shares_of_classes, shown

TEXTS = ["win cash now", "team lunch today", "cash prize for you", "lunch agenda"] * 8
LABELS = ["spam", "work"] * 16


@pytest.fixture(scope="module")
def of_texts():
    return OnlineClassifier().partial_fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def of_table():
    rows = [
        {"subject": text[:8], "body": text, "amount": 100.0 * (i % 2) + i % 7, "kind": "ab"[i % 2]}
        for i, text in enumerate(TEXTS)
    ]
    return OnlineClassifier(columns={"subject": "text", "body": "text"}).fit(rows, LABELS)


def marks_of(found):
    return [piece.text for piece in found.pieces if piece.strength]


def text_of(found):
    return "".join(piece.text for piece in found.pieces)


def test_words_of_a_text_are_marked_and_named(of_texts):
    found = shown(of_texts, Item("1", "Cash?\x07 At LUNCH"))
    assert text_of(found) == "Cash?� At LUNCH"
    strengths = {piece.text: piece.strength for piece in found.pieces}
    why = of_texts.explain_one("Cash?\x07 At LUNCH")
    assert found.label == why.label and {*marks_of(found)} <= {"Cash", "At", "LUNCH"}
    for word in ("Cash", "LUNCH"):
        margin = sum(span.margin for span in why.texts[0].spans
                     if why.texts[0].text[span.start : span.end] == word)  # fmt: skip
        assert np.sign(strengths[word]) == np.sign(margin)
    names = {each.feature: each.margin for each in why.contributions}
    assert found.pro and all(names[name] > 0 for name in found.pro)
    assert found.contra and all(names[name] < 0 for name in found.contra)
    assert [*map(names.get, found.pro)] == sorted(map(names.get, found.pro), reverse=True)


def test_texts_of_a_table_are_marked_where_they_stand(of_table):
    row = {"kind": "a", "subject": "win cash", "amount": 3, "body": "lunch: win cash"}
    found = shown(of_table, Item("1", row))
    assert text_of(found) == row_text(row)
    at, places = 0, []
    for piece in found.pieces:
        places += [at] if piece.strength else []
        at += len(piece.text)
    first, second = row_text(row).index("win cash"), row_text(row).index("lunch")
    inside = [*range(first, first + 8), *range(second, second + 15)]
    assert places and {*places} <= {*inside}
    named = [*found.pro, *found.contra]
    assert any(name.startswith("subject: ") for name in named)
    assert not any("~" in name for name in named)


def test_texts_are_marked_whatever_the_order_of_their_columns(of_table):
    row = {"subject": "win cash", "body": "lunch: win cash", "kind": "a"}
    turned = {"kind": "a", "body": row["body"], "subject": row["subject"]}
    found, other = (shown(of_table, Item("1", each)) for each in (row, turned))
    assert text_of(other) == row_text(turned)
    assert Counter(marks_of(other)) == Counter(marks_of(found))
    assert marks_of(found).count("cash") == 2  # one in each text


def test_names_of_reasons_are_short_and_without_control_characters():
    long, bell = "x" * 10_000, "bell\x07"
    model = OnlineClassifier().fit([{long: 1.0}, {bell: 1.0}] * 9, ["spam", "work"] * 9)
    assert shown(model, Item("1", {long: 1.0})).pro == ["x" * SHORT + "… 1"]
    assert shown(model, Item("1", {bell: 1.0})).pro == ["bell� 1"]


def test_texts_that_are_shown_otherwise_are_not_marked(of_table):
    found = shown(of_table, Item("1", {"body": ["win", "cash"], "kind": "a"}))
    assert text_of(found) == 'body: ["win", "cash"]\nkind: a'
    assert found.pro and not marks_of(found)


def test_numbers_are_named_with_their_mean():
    rows = [{"amount": 100.0 * (i % 2) + i % 7, "note": f"word{i}"} for i in range(60)]
    model = OnlineClassifier(columns={"note": "text"}).fit(rows, ["low", "high"] * 30)
    found = shown(model, Item("1", {"amount": 714.0, "note": "word"}))
    mean = np.mean([row["amount"] for row in rows])
    assert found.label == "high" and f"amount 714 (mean {mean:.4g})" in found.pro


def test_marks_end_where_the_text_is_cut(of_texts):
    text = "cash " * LONGEST
    found = shown(of_texts, Item("1", text))
    assert text_of(found) == text[:LONGEST] + "…"
    assert marks_of(found) == ["cash"] * (LONGEST // 5)
    middle = "x" * (LONGEST - 2) + " cash"
    cut = shown(of_texts, Item("1", middle))
    assert text_of(cut) == middle[:LONGEST] + "…" and not marks_of(cut)


def test_an_item_without_a_title_tells_nothing_of_its_row(of_texts):
    found = shown(of_texts, Item("m7", "win cash", title=""))
    assert text_of(found) == "m7" and not (found.pro or found.contra or marks_of(found))
    titled = shown(of_texts, Item("m7", "win cash", title="Prizes\ncash@example.org"))
    assert text_of(titled) == "Prizes\ncash@example.org"
    assert titled.pro and not marks_of(titled)


@pytest.mark.parametrize("text", ["win lunch", "cash", "zebra", "team prize for you", ""])
def test_the_confidence_is_the_figure_of_the_suggestion(of_texts, text):
    found = shown(of_texts, Item("1", text))
    assert found.label == of_texts.predict_one(text)
    confidence = percent(of_texts.confidence_one(text))
    assert found.confidence == found.choices[0].share == confidence


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=9),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_shares_of_classes_and_of_a_new_one_sum_to_one(weights, confidence, new):
    total = sum(weights)
    probabilities = [each / total for each in weights] if total > 1e-3 else [1.0]
    first, *others = found = shares_of_classes(probabilities, confidence, new)
    assert len(found) == len(probabilities) and first == confidence
    assert all(0 <= each <= 1 for each in found) and sum(found) <= 1 + 1e-9
    if (1 - new) * probabilities[0] < 0.999:
        scale = (1 - confidence) / (1 - (1 - new) * probabilities[0])
        assert others == [pytest.approx(scale * (1 - new) * p) for p in probabilities[1:]]
        assert sum(found) + scale * new == pytest.approx(1)


def test_shares_of_probabilities_that_are_rounded_sum_to_one():
    assert sum(shares_of_classes([1.0, 0.01, 0.01], 0.5, 0.0)) == pytest.approx(1)


def test_shares_of_a_model_leave_room_for_a_new_class(of_texts):
    p = of_texts.predict_proba_one("zebra", new=True)
    assert p[NEW] > 0.05
    shares = [float(each.share.split()[0]) for each in shown(of_texts, Item("1", "zebra")).choices]
    assert sum(shares) < 100


# ---- what is shown of margins and of probabilities ----------------------------------------------

MARGINS = {
    "most": 4.0, "half": 2.0, "less": 1.99, "least": 0.6, "none": 0.59, "zero": 0.0,
    "against": -4.0, "minus": -2.0, "rather": -1.99, "hardly": -0.6, "not": -0.59,
}  # fmt: skip
STRENGTHS = [2, 2, 1, 1, 0, 0, -2, -2, -1, -1, 0]


def explained(margins, n_others=0):
    """An explanation of a text of these words, and of as many other cells."""
    text, at, spans = " ".join(margins), 0, []
    for word, margin in margins.items():
        spans.append(Span(at, at + len(word), margin))
        at += len(word) + 1
    pairs = [*margins.items(), *((f"cell {i}", 1.0) for i in range(n_others))]
    contributions = tuple(Contribution(word, None, own, 0.0, 0.0) for word, own in pairs)
    texts = (MarkedText(None, text, tuple(spans)),)
    return text, SimpleNamespace(texts=texts, contributions=contributions)


def test_words_are_marked_from_15_percent_of_the_largest_margin_and_strongly_from_half():
    text, why = explained(MARGINS)
    found = marked(text, why, {None: 0})
    strengths = {piece.text: piece.strength for piece in found.pieces}
    assert [strengths.get(word, 0) for word in MARGINS] == STRENGTHS and text_of(found) == text
    assert found.pro == ["most", "half", "less", "least"]
    assert found.contra == ["against", "minus", "rather", "hardly"]
    text, why = explained(MARGINS, n_others=9)
    assert marked(text, why, {None: 0}).pro == ["most", "half", "less", "least", "cell 0"]
    text, why = explained(dict.fromkeys(MARGINS, 0.0))
    assert marked(text, why, {None: 0}) == ([(text, 0)], [], [])


def test_a_word_that_is_cut_is_not_marked_and_a_text_of_the_length_is_not_cut():
    text, why = explained(MARGINS)
    for n in range(1, len(text)):
        found = marked(clipped(text, n), why, {None: 0})
        assert text_of(found) == text[:n] + "…"
        whole = [word for word in MARGINS if text.index(word) + len(word) <= n]
        assert marks_of(found) == [word for word, strength in zip(MARGINS, STRENGTHS, strict=True)
                                   if strength and word in whole]  # fmt: skip
    assert clipped(text, len(text)) == clipped(text, len(text) + 1) == text


def test_choices_are_at_most_nine_and_beyond_five_probable_or_in_the_set():
    rng, sizes = np.random.default_rng(0), set()
    rows = [(f"word{i % 12} shared{i % 2}", f"class {i % 12:02d}") for i in range(36)]
    rows += [("word0 shared0", "class 00")] * 200 + [("word1 shared1", "class 01")] * 100
    model = OnlineClassifier()
    for i in rng.permutation(len(rows)):
        model.learn_one(*rows[i])
    for text in ("word0 shared0", "shared1", "word7", "word3 word4 word5", "nothing"):
        found = shown(model, Item("1", text))
        top = model.predict_top_one(text, 9)
        covered = {*model.predict_set_one(text, 0.9)} - {NEW}
        p = model.predict_proba_one(text, new=True)
        confidence, label = model.confidence_one(text), model.predict_one(text)
        first = p[label]
        shares = {each.label: p[each.label] * (1 - confidence) / (1 - first) for each in top}
        expected = [
            each.label for i, each in enumerate(top)
            if i < 5 or shares[each.label] >= 0.01 or each.label in covered
        ]  # fmt: skip
        assert [each.label for each in found.choices] == expected and expected[0] == label
        assert {each.label for each in found.choices if each.is_in_set} == {label, *covered} & {
            *expected
        }
        sizes.add(len(expected))
    assert len(sizes) > 1

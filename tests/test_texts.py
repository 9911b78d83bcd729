"""Texts as rows: their words, runs of characters where they are short, and the lengths so far."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone

from kesler import Ensemble, KeslerError, OnlineClassifier, load
from kesler.compiled.trial.events import READS_MAPPINGS
from kesler.data.model_file import load as read_file
from kesler.data.model_file import save as write_file
from kesler.data.rows import Vocabulary
from kesler.data.texts import (
    BEGINNING,
    EARLIEST,
    NAME,
    SHORT_TEXT,
    TextLengths,
    counted,
    tokenize,
    with_beginning,
    with_runs,
)
from kesler.learner.events import Event
from kesler.settings.table import FormerAuto

reads_mappings = pytest.mark.skipif(not READS_MAPPINGS, reason="Python code reads texts")
CHOOSING_NOTHING: list[Any] = [
    *(OnlineClassifier(), OnlineClassifier(update="ensemble"), Ensemble()),
]
WORDS = "pay bill card lost top up money transfer fee why is my the 42 can't Ärger 日本語 ß".split()


def stream(seed: int, n_rows: int, longest: int = 12) -> tuple[list[str], list[str]]:
    """Return texts of up to so many words, and their labels, of which their words are typical."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n_rows)
    texts = [
        " ".join(rng.choice(WORDS[4 * r : 4 * r + 8], size=rng.integers(longest))) for r in labels
    ]
    return texts, [f"class {r}" for r in labels]


def state(model: Any) -> dict[str, Any]:
    """Return all that a model has learnt."""
    return {
        **model._learner.arrays(),
        "names": np.array(model.vocabulary_.names),
        "texts": np.array(astuple(model._reader.texts)),
    }


def assert_same(one: Any, other: Any) -> None:
    """Raise unless two models have learnt the same, bit for bit."""
    mine, theirs = state(one), state(other)
    assert mine.keys() == theirs.keys()
    for name, array in mine.items():
        assert_array_equal(array, theirs[name], err_msg=name)


def assert_read_alike(steps: Iterable[tuple[Any, dict[str, float], bool]]) -> None:
    """Raise unless functions that read texts into an event find the same as the mappings."""
    texts, mappings = Event(), Event()
    ours, theirs = Vocabulary(), Vocabulary()
    for read, entry, joins in steps:
        assert read(texts, ours)
        assert mappings.read_mapping(entry, theirs, joins=joins)
        assert_array_equal(texts.indices, mappings.indices)
        assert_array_equal(texts.values, mappings.values)
        assert ours.names == theirs.names
        assert not texts._met.any()


# ---- features -----------------------------------------------------------------------------------


def test_a_short_text_is_its_words_pairs_and_runs():
    entry = with_runs("To be, to be!")
    line = " TO BE TO BE "
    runs = dict.fromkeys(line[i : i + 4] for i in range(len(line) - 3))
    assert list(entry) == ["to", "be", "to be", "be to", *runs]
    assert set(entry.values()) == {1.0}
    assert with_runs("") == with_runs(" \n ") == with_runs("", (1, 4)) == {}
    assert list(with_runs("a")) == ["a"]
    assert list(with_runs("a", (1, 3))) == ["a", " ", "A", " A", "A ", " A "]


def test_a_long_text_has_the_words_of_its_beginning_twice():
    text = "To be " + "or not " * 50 + "to be"
    n_of_beginning = (BEGINNING - len("To be")) // len(" or not")
    counts = {"to": 2.0, "be": 2.0, "or": 50.0, "not": 50.0}
    first = {"^to": 1.0, "^be": 1.0, "^or": n_of_beginning, "^not": n_of_beginning}
    lengths = TextLengths()
    assert with_beginning(text, lengths.beginning(text)) == counts | first
    assert OnlineClassifier().fit([text], ["a"]).vocabulary_.names == [*counts, *first]
    assert lengths.beginning("x" * 400) == "x" * BEGINNING
    assert lengths.beginning("x" * 10 + "\n" + "y" * 400) == "x" * 10
    for n in (BEGINNING - 1, BEGINNING, BEGINNING + 1):
        assert lengths.beginning("x" * n + " " + "y" * 400) == "x" * min(n, BEGINNING)
        assert lengths.beginning("y " * 100 + "x" * n) == ("y " * 100 + "x" * n)[:199]
    assert lengths.beginning("short") == "short" and lengths.beginning("") == ""
    assert lengths.beginning("\r\n\t " * 100 + "y " * 200) == ("y " * 125)[:-1]
    assert lengths.beginning(" " * 400) == ""


@reads_mappings
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(
                st.text("aAb'ßİǄé日𐐀 ._", max_size=60),
                st.text("aD'3 :-^(!?+#<é日本hไทย’", max_size=30),
            ),
            st.integers(0, 40),
            st.booleans(),
        ),
        max_size=6,
    )
)
def test_beginnings_are_read_as_python_reads_them(steps):
    assert_read_alike(
        (
            lambda event, names, text=text, end=end, joins=joins: event.read_text(
                text, names, text[:end], joins=joins
            ),
            with_beginning(text, text[:end]),
            joins,
        )
        for text, end, joins in steps
    )


@reads_mappings
@pytest.mark.parametrize("beginning", ["", "to be"])
def test_buffers_of_letters_are_kept_from_text_to_text(beginning):
    event, names = Event(), Vocabulary()
    assert event.read_text("to be or not", names, beginning, joins=True)
    arguments = event._kernel_arguments
    assert event.read_text("to be or not", names, beginning, joins=True)
    assert event._kernel_arguments is arguments


@reads_mappings
@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(
                st.text("aAb'ßİǄé日𐐀 ._", max_size=60),
                st.text("aD'3 :-^(!?+#<é日本हिไทย’", max_size=30),
                st.lists(st.text("ab", min_size=1, max_size=20), max_size=40).map(" ".join),
            ),
            st.sampled_from([(4, 4), (1, 4)]),
            st.booleans(),
        ),
        max_size=6,
    )
)
def test_short_texts_are_read_as_python_reads_them(steps):
    assert_read_alike(
        (
            lambda event, names, text=text, lengths=lengths, joins=joins: event.read_short_text(
                text, lengths, names, joins=joins
            ),
            with_runs(text, lengths),
            joins,
        )
        for text, lengths, joins in steps
    )


@reads_mappings
def test_short_texts_with_rare_letters_are_left_to_python():
    event, names = Event(), Vocabulary()
    for text in ("one two \U00020000", "one \U0010ffff two \U00020000"):
        assert not event.read_short_text(text, (4, 4), names, joins=True)
        assert not event._met.any() and not len(names)
    texts = [
        "one two and three more",
        "one \U00020000 and three more",
        "two \U00020000 and three more",
    ]
    model = OnlineClassifier().learn_one(texts[0], "a").learn_one(texts[1], "b")
    model.partial_fit(texts[2:], ["a"])
    expected = dict.fromkeys(name for text in texts for name in with_runs(text))
    assert model.vocabulary_.names == list(expected)


# ---- which texts are short ----------------------------------------------------------------------


def test_texts_are_short_by_their_mean_length_so_far():
    assert TextLengths().is_short("x" * SHORT_TEXT) and not TextLengths().is_short(
        "x" * (SHORT_TEXT + 1)
    )
    long, short, name = "word " * SHORT_TEXT, "a few words of a text", "x" * NAME
    model = OnlineClassifier().partial_fit([short, long, short], ["a", "b", "a"])
    assert list(model.vocabulary_.names) == [
        *with_runs(short),
        *("word", "^word", "^a", "^few", "^words", "^of", "^text"),
    ]
    assert OnlineClassifier().partial_fit([long, short], ["a", "b"]).vocabulary_.names == [
        *("word", "^word", *counted([short])),
        *dict.fromkeys("^" + token for token in tokenize(short)),
    ]
    assert model._reader.texts == TextLengths(3, len(long) + 2 * len(short))
    model = OnlineClassifier().partial_fit([name, name + "y"], ["a", "b"])
    expected = dict.fromkeys([*with_runs(name, (1, 4)), *with_runs(name + "y")])
    assert model.vocabulary_.names == [*expected]


def test_models_of_before_go_on_with_the_features_that_they_have(tmp_path):
    texts = ["Kowalski", "word " * 40, "word " * 100, "Smith"]
    model = OnlineClassifier(columns=FormerAuto("auto")).partial_fit(texts[:3], ["a", "b", "c"])
    names = dict.fromkeys([*with_runs(texts[0]), *with_runs(texts[1]), *counted(texts[2:3])])
    assert model.vocabulary_.names == [*names]
    model.save(tmp_path / "model")
    arrays, metadata = read_file(tmp_path / "model")
    assert metadata["texts"] == [3, 708, EARLIEST]
    write_file(tmp_path / "model", arrays, {**metadata, "texts": [3, 708]})
    again = load(tmp_path / "model")
    assert again._reader.texts == TextLengths(3, 708, EARLIEST)
    assert_same(model.partial_fit(texts, [*"abcd"]), again.partial_fit(texts, [*"abcd"]))
    assert not {"K", "^word"} & {*again.vocabulary_.names}


@pytest.mark.parametrize(
    "model",
    [
        *(OnlineClassifier(update="pa1"), OnlineClassifier(update=[OnlineClassifier()])),
        *(Ensemble([OnlineClassifier()]), OnlineClassifier().learn_one({"is": 1.0}, "b")),
    ],
    ids=["named", "listed", "ensemble", "mappings"],
)
def test_where_something_is_chosen_or_learnt_before_texts_are_words(model):
    model = model.learn_one("who is it", "a").partial_fit(["it is me"], ["b"])
    assert set(model.vocabulary_.names) == {"who", "is", "it", "me"}
    assert "_texts" not in vars(model)


# ---- laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("longest", [12, 180])
@pytest.mark.parametrize("unfitted", CHOOSING_NOTHING, ids=repr)
def test_texts_in_any_split_and_as_events_are_learnt_alike(unfitted, longest):
    texts, labels = stream(3, 60, longest)
    texts[0] = "pay my bill"
    whole, split, one = (clone(unfitted) for _ in range(3))
    whole.partial_fit(texts, labels)
    for part in (slice(0, 1), slice(1, 20), slice(20, 21), slice(21, 60)):
        split.partial_fit(texts[part], labels[part])
    for text, label in zip(texts, labels, strict=True):
        one.learn_one(text, label)
    assert_same(whole, split)
    assert_same(whole, one)
    runs = any(name.startswith(" ") for name in whole.vocabulary_.names)
    assert runs and (whole._reader.texts.n_characters > SHORT_TEXT * 60) == (longest == 180)


@pytest.mark.parametrize("unfitted", CHOOSING_NOTHING, ids=repr)
def test_a_saved_model_continues_as_if_it_had_not_stopped(unfitted, tmp_path):
    texts, labels = stream(4, 40, 50)
    model = clone(unfitted).partial_fit(texts[:15], labels[:15])
    model.save(tmp_path / "model")
    again, copy = load(tmp_path / "model"), pickle.loads(pickle.dumps(model))
    for each in (model, again, copy):
        each.partial_fit(texts[15:30], labels[15:30])
        for text, label in zip(texts[30:], labels[30:], strict=True):
            each.learn_one(text, label)
    assert_same(model, again)
    assert_same(model, copy)


@pytest.mark.parametrize("unfitted", CHOOSING_NOTHING, ids=repr)
def test_predictions_change_nothing_and_are_those_of_events(unfitted):
    texts, labels = stream(5, 40)
    model = clone(unfitted).partial_fit(texts, labels)
    before = state(model)
    others = [*stream(6, 20, 60)[0], "unknown words", "", "\U00020000 card"]
    together = model.predict(others)
    alone = [model.predict_one(text) for text in others]
    assert together.tolist() == alone
    for name, array in state(model).items():
        assert_array_equal(array, before[name])


def test_texts_of_weight_zero_do_not_count():
    texts, labels = stream(7, 30)
    weights = np.ones(30)
    weights[::3] = 0
    model = OnlineClassifier().partial_fit(texts, labels, sample_weight=weights)
    counted = [text for text, weight in zip(texts, weights, strict=True) if weight]
    assert model._reader.texts == TextLengths(20, sum(map(len, counted)))


def test_texts_that_were_learnt_before_an_interrupt_count(monkeypatch):
    texts, labels = stream(9, 40)
    model = OnlineClassifier().partial_fit(texts[:10], labels[:10])
    kind = type(model._learner)
    learn = kind.learn_observed

    def interrupted(learner, *given):
        if learner.n_trials > 10:
            raise KeyboardInterrupt
        return learn(learner, *given)

    monkeypatch.setattr("kesler.online.training.first_rows", lambda: 8)
    monkeypatch.setattr(kind, "learn_observed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(texts[10:], labels[10:])
    assert model.n_trials_ == 18
    assert model._reader.texts == TextLengths(18, sum(map(len, texts[:18])))


def test_refused_texts_do_not_count():
    texts, labels = stream(8, 10)
    model = OnlineClassifier().partial_fit(texts, labels)
    before = state(model)
    with pytest.raises(KeslerError):
        model.learn_one("pay my bill", 3)
    with pytest.raises(KeslerError):
        model.partial_fit(["pay", "bill"], ["class 1", 3])
    with pytest.raises(KeslerError):
        model.partial_fit(["pay", 4], ["class 1", "class 2"])
    for name, array in state(model).items():
        assert_array_equal(array, before[name])
    assert "_texts_to_count" not in vars(model)
    model.fit([{"pay": 1.0}], ["a"])
    assert "_texts" not in vars(model)


@pytest.mark.parametrize(
    "lengths",
    [[1], [1, -2], [1.5, 2], "12", [True, 2], [2, 2**63], [1, 2, 0], [1, 2, 3], [1, 2, 2, 2]],
)
def test_damaged_lengths_are_refused(lengths: Iterable[Any], tmp_path):
    OnlineClassifier().learn_one("pay", "a").save(tmp_path / "model")
    arrays, metadata = read_file(tmp_path / "model")
    write_file(tmp_path / "model", arrays, {**metadata, "texts": lengths})
    with pytest.raises(KeslerError, match="texts is"):
        load(tmp_path / "model")
    write_file(tmp_path / "model", arrays, {k: v for k, v in metadata.items() if k != "texts"})
    with pytest.raises(KeslerError, match="no texts"):
        load(tmp_path / "model")

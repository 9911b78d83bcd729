"""Texts in any form have the features of a dictionary of their counts, long ones of two."""

import json
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kesler import OnlineClassifier, OnlineMultilabelClassifier, load, progressive_validate
from kesler.cli import main
from kesler.evaluation.comparison import Comparison
from kesler.preprocessing import Counts
from kesler.readers import open_stream
from kesler.updates import AROW

WORDS = [f"word{first}{second}" for first in "abcdefghijklmnopqrstuvwxyz" for second in "abc"]
LABELS = ["a", "b", "c"]
COUNTING = {
    "default": {},
    "ensemble": {"update": "ensemble"},
    "kernel": {"kernel": "rbf"},
    "scaled": {"update": "pa1", "preprocessing": "scale"},
    "named rule": {"update": "pa1", "preprocessing": Counts(idf=True)},
}
CHOOSING_NO_UPDATE = ("default", "ensemble", "kernel")
NOT_COUNTING = {
    "pa1": {"update": "pa1"},
    "softmax": {"update": "softmax", "hypotheses": "multi"},
}


def texts_of(seed, n=80):
    """Return long texts that repeat words, in which classes differ, and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    chances = rng.dirichlet(np.full(len(WORDS), 0.3), size=3)
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(60, 90), p=chances[c])) for c in y]
    return texts, [LABELS[c] for c in y]


def counts_of(texts):
    """Return how often each text has each word, computed apart from the library."""
    return [{word: float(n) for word, n in Counter(text.split()).items()} for text in texts]


def with_beginnings(texts):
    """Return the counts of each text, and those of the words in its first 250 characters."""
    firsts = counts_of(text[:250].rpartition(" ")[0] for text in texts)
    return [
        row | {f"^{word}": n for word, n in first.items()}
        for row, first in zip(counts_of(texts), firsts, strict=True)
    ]


def learnt_by(how, model, rows, y):
    """Learn rows at once, in two calls, or one by one."""
    if how == "fit":
        return model.fit(rows, y)
    if how == "partial_fit":
        return model.partial_fit(rows[:7], y[:7]).partial_fit(rows[7:], y[7:])
    for row, label in zip(rows, y, strict=True):
        model.learn_one(row, label)
    return model


@pytest.mark.parametrize("how", ["fit", "partial_fit", "learn_one"])
@pytest.mark.parametrize("name", COUNTING)
def test_strings_are_learnt_as_their_counts(name, how):
    texts, y = texts_of(seed=len(name))
    rows = with_beginnings(texts) if name in CHOOSING_NO_UPDATE else counts_of(texts)
    of_texts, of_counts = (
        learnt_by(how, OnlineClassifier(**COUNTING[name]), each[:60], y[:60])
        for each in (texts, rows)
    )
    expected = of_counts.decision_function(rows)
    for given in (texts, rows):
        assert_array_equal(of_texts.decision_function(given), expected)
    words = learnt_by(how, OnlineClassifier(**COUNTING[name]), counts_of(texts)[:60], y[:60])
    of_words = words.decision_function(counts_of(texts))
    assert_array_equal(words.decision_function(texts), of_words)
    one_by_one = [of_texts.predict_one(text) for text in texts]
    assert one_by_one == of_counts.predict(rows).tolist()
    ones = [dict.fromkeys(row, 1.0) for row in rows]
    assert np.abs(of_texts.decision_function(ones) - expected).max() > 1e-3


@pytest.mark.parametrize("how", ["fit", "learn_one"])
@pytest.mark.parametrize("name", NOT_COUNTING)
def test_learners_that_do_not_damp_counts_learn_which_words_there_are(name, how):
    texts, y = texts_of(seed=len(name))
    rows = [dict.fromkeys(row, 1.0) for row in counts_of(texts)]
    of_texts, of_words = (
        learnt_by(how, OnlineClassifier(**NOT_COUNTING[name]), each[:60], y[:60])
        for each in (texts, rows)
    )
    assert_array_equal(of_texts.decision_function(texts), of_words.decision_function(rows))
    assert [of_texts.predict_one(t) for t in texts] == of_words.predict(rows).tolist()


def test_each_member_of_an_ensemble_reads_texts_in_its_own_way():
    texts, y = texts_of(seed=3)
    members = [OnlineClassifier(), OnlineClassifier(update=AROW())]
    words = [dict.fromkeys(row, 1.0) for row in counts_of(texts)]
    for how in ("partial_fit", "learn_one"):
        both = learnt_by(how, OnlineClassifier(update=members), texts, y)
        alone = [
            learnt_by(how, OnlineClassifier(), counts_of(texts), y),
            learnt_by(how, OnlineClassifier(update=AROW()), words, y),
        ]
        for member, own in zip(both._learner.members, alone, strict=True):
            assert_array_equal(weights_of(member), weights_of(own._learner))


def weights_of(learner):
    """Return all weights of a learner as one array."""
    stored = learner.arrays()
    names = sorted(name for name in stored if name.startswith("weights"))
    assert names
    return np.concatenate([stored[name].ravel() for name in names])


def test_columns_of_a_text_are_learnt_as_the_texts():
    texts, y = texts_of(seed=11)
    of_texts, frame = OnlineClassifier().fit(texts, y), pd.DataFrame({"body": texts})
    of_frame = OnlineClassifier().fit(frame, y)
    scores = of_texts.decision_function(texts)
    assert_allclose(of_frame.decision_function(frame), scores, rtol=1e-3, atol=1e-3)


def test_label_sets_of_texts_are_learnt_from_counts():
    texts, y = texts_of(seed=12)
    sets = [[label] if i % 3 else [label, "d"] for i, label in enumerate(y)]
    of_texts = OnlineMultilabelClassifier().fit(texts, sets)
    rows = with_beginnings(texts)
    of_counts = OnlineMultilabelClassifier().fit(rows, sets)
    assert_array_equal(of_texts.decision_function(texts), of_counts.decision_function(rows))


def lines_of_json(path, texts, y):
    rows = [{"text": text, "label": label} for text, label in zip(texts, y, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return counts_of(texts)


def mail_of(path, texts, y):
    """Write a message into the folder of each label; the words of its header count as well."""
    for i, (text, label) in enumerate(zip(texts, y, strict=True)):
        date = f"Mon, 1 Jan 2024 10:{i // 60:02}:{i % 60:02} +0000"
        (path / label).mkdir(parents=True, exist_ok=True)
        (path / label / f"{i}.eml").write_text(f"Date: {date}\nSubject: Worda\n\n{text}\n")
        texts[i] = f"{re.sub('[^a-z0-9]', ' ', date.lower())} worda {text}"
    return counts_of(texts)


@pytest.mark.parametrize("rule", ["default", "pa1"])
def test_mail_is_learnt_as_its_counts(rule, tmp_path, monkeypatch):
    texts, y = texts_of(seed=len(rule))
    monkeypatch.chdir(tmp_path)
    rows = mail_of(tmp_path / "rows.jsonl", texts, y)
    chosen = [] if rule == "default" else ["--update", rule]
    assert main(["learn", "model.kesler", "rows.jsonl", *chosen]) == 0
    model = load("model.kesler")
    if rule == "default":
        expected = OnlineClassifier().partial_fit(rows, y)
    else:
        rows = [dict.fromkeys(row, 1.0) for row in rows]
        expected = OnlineClassifier(update=rule).partial_fit(rows, y)
    assert_array_equal(model.decision_function(rows), expected.decision_function(rows))


@pytest.mark.parametrize("rule", ["auto", "pa1"])
def test_files_of_texts_are_learnt_as_frames_of_them(rule, tmp_path, monkeypatch):
    texts, y = texts_of(seed=len(rule))
    monkeypatch.chdir(tmp_path)
    lines_of_json(tmp_path / "rows.jsonl", texts, y)
    assert main(["learn", "model.kesler", "rows.jsonl", "--update", rule]) == 0
    frame = pd.DataFrame({"text": texts})
    expected = OnlineClassifier(update=rule).partial_fit(frame, y)
    model = load("model.kesler")
    assert_array_equal(model.decision_function(frame), expected.decision_function(frame))


@pytest.mark.parametrize("update", ["auto", "pa1"])
def test_blocks_of_a_stream_are_compared_as_their_texts(update, tmp_path):
    """Each method of a comparison reads the same rows in its own way."""
    texts, y = texts_of(seed=9)
    lines_of_json(tmp_path / "rows.jsonl", texts, y)
    comparison = Comparison({"it": OnlineClassifier(update=update)})
    list(comparison.run(open_stream(tmp_path / "rows.jsonl")))
    of_texts = progressive_validate(OnlineClassifier(update=update), texts, y)
    assert comparison.results()["it"].n_mistakes == of_texts.n_mistakes

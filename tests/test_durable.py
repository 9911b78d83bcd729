"""Journals: after any calls, a model equals a learner that has met the remaining history."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from functools import partial
from inspect import getdoc, signature
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from histories import Walk, file_of, learnt_anew
from kesler import (
    Ensemble,
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
)
from kesler.data.rows import Vocabulary
from kesler.durable import Journal, JournalError, Model, numbered, replica, storage
from kesler.durable.storage import Learnt

WORDS = [f"w{i}" for i in range(30)]
LABELS = ["a", "b", "c", "d"]


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Make copies and snapshots every few events, in parts, and learn again in small blocks."""
    monkeypatch.setattr(storage, "PART", 1000)
    monkeypatch.setattr(replica, "LEAST_SPACING", 3)
    monkeypatch.setattr(replica, "COPIED", 1 << 40)
    monkeypatch.setattr(replica, "WRITTEN", 1 << 40)
    monkeypatch.setattr(replica, "BLOCK", 5)
    monkeypatch.setattr(replica, "FEW_ROWS", 4)
    monkeypatch.setattr(replica, "ROWS_OF_A_SNAPSHOT", 2)


def words(rng: np.random.Generator) -> dict[str, float]:
    chosen = rng.choice(WORDS, rng.integers(0, 6), replace=False).tolist()
    values = 1 if rng.random() < 0.5 else None
    return {word: values or int(rng.integers(1, 4)) for word in chosen}


def named(rng):
    return words(rng), str(rng.choice(LABELS))


def text(rng):
    return " ".join(words(rng)), str(rng.choice(LABELS))


def mixed(rng):
    return (words(rng) if rng.random() < 0.5 else " ".join(words(rng))), str(rng.choice(LABELS))


def numbers(rng):
    return rng.normal(size=4).round(3), str(rng.choice(LABELS))


def gaps(rng):
    x, y = numbers(rng)
    x[rng.random(4) < 0.3] = np.nan
    return [x, x.tolist(), np.ma.masked_invalid(x)][rng.integers(3)], y


def cells(rng):
    row = {
        "body": " ".join(words(rng)),
        "hours": int(rng.integers(9)),
        "kind": "xyz"[rng.integers(3)],
    }
    return (row if rng.random() < 0.8 else row | {"hours": None}), str(rng.choice(LABELS))


def sets(rng):
    return words(rng), sorted(rng.choice(LABELS, rng.integers(0, 3), replace=False).tolist())


def rankings(rng):
    return words(rng), rng.choice(LABELS, 3, replace=False).tolist()


PA1 = partial(OnlineClassifier, "hybrid", update="pa1")
MEMBERS = [OnlineClassifier("multi", update="pa1"), OnlineClassifier("single", update="mira")]
MODELS: dict[str, tuple[Any, Any]] = {
    "default": (OnlineClassifier, named),
    "hybrid": (PA1, mixed),
    "ensemble": (lambda: Ensemble([*MEMBERS]), named),
    "kernel": (
        lambda: OnlineClassifier("hybrid", update="perceptron", kernel="rbf", sigma=1.0, budget=5),
        named,
    ),
    "means of a kernel": (lambda: PA1(kernel="rbf", sigma=1.0, averaged=True), named),
    "ranks of a kernel": (lambda: OnlineOrdinalClassifier("single", kernel="rbf"), named),
    "romma of a kernel": (lambda: LinearMax("romma", kernel="polynomial"), named),
    "multilabel": (OnlineMultilabelClassifier, sets),
    "texts": (OnlineClassifier, text),
    "dense": (OnlineClassifier, numbers),
    "dense, with gaps": (OnlineClassifier, gaps),
    "table": (OnlineClassifier, cells),
    "ranks": (OnlineOrdinalClassifier, named),
    "rankings": (lambda: OnlineLabelRanker("multi"), rankings),
    "costs": (lambda: OnlineClassifier(update="hinge", costs={("q", "r"): 3.0}), named),
}


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32 - 1))
def test_equals_learner_of_remaining_history(name, seed, tmp_path_factory):
    make, rows = MODELS[name]
    folder = tmp_path_factory.mktemp("journal")
    rng = np.random.default_rng(seed)
    with Journal(folder / "desk.db") as journal, Journal(folder / "desk.db") as other:
        walk = Walk(journal.open("m", make()), rows, rng)
        reader = other.open("m", make())
        for i in range(30):
            walk.step()
            if i % 5 == 4:
                anew = learnt_anew(make, walk.plain.remaining())
                assert file_of(walk.model, folder) == file_of(anew, folder)
                assert walk.model.classes_.tolist() == sorted(walk.plain.classes())
            if i % 7 == 6:
                assert file_of(reader, folder) == file_of(walk.model, folder)
        assert journal.check() == []
    with Journal(folder / "desk.db") as journal:
        reopened = journal.open("m")
        assert file_of(reopened, folder) == file_of(anew, folder)
        walk.model = reopened
        for _ in range(10):
            walk.step()
        anew = learnt_anew(make, walk.plain.remaining())
        assert file_of(reopened, folder) == file_of(anew, folder)


def test_names_that_a_limit_has_dropped_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(numbered, "MOST_NAMES", 1000)
    make = partial(OnlineClassifier, memory_limit="400 KB")
    given = [({f"new{i} {j}": 1 for j in range(5)}, LABELS[i % 4]) for i in range(2600)]
    with Journal(tmp_path / "desk.db") as journal:
        model = journal.open("m", make())
        model.learn_many((*row, f"m{i}", None) for i, row in enumerate(given))
        model.undo("m3")
        n_names = len(model.estimator.vocabulary_)
        assert model.estimator.n_dropped_ > 10_000 and n_names < 2000
        most = max(1000, 2 * n_names) + 5 * 5  # with those of a block
        assert 0 < len(model._replica._numbering.codes) <= most < 13_000
        anew = learnt_anew(make, given[:3] + given[4:])
        assert file_of(model, tmp_path) == file_of(anew, tmp_path)


def test_numbers_of_names_are_kept_while_half_of_these_are_in_the_vocabulary(monkeypatch):
    """Or while they are few; a model that has learnt nothing has no vocabulary."""
    monkeypatch.setattr(numbered, "MOST_NAMES", 3)
    for n_numbered in range(12):
        numbering = numbered.Numbering()
        numbering.codes.update((f"w{i}", i) for i in range(n_numbered))
        for n_known in range(12):
            vocabulary = Vocabulary.of(f"w{i}" for i in range(n_known)) if n_known else None
            is_too_much = n_numbered > 3 and n_known / max(n_numbered, 1) < 1 / 2
            assert numbering.has_too_many(vocabulary) == is_too_much, (n_numbered, n_known)


@pytest.mark.parametrize("n_left", range(6))
def test_names_after_a_cut_are_new_again(n_left):
    """Those of a vocabulary before them keep their numbers."""
    names = [*"edcba"]
    block = [Learnt(i, '"a"', "mapping", f'[["{name}"],1]') for i, name in enumerate(names)]
    numbering, vocabulary = numbered.Numbering(), Vocabulary()
    translation = numbered.Translation(numbering, vocabulary)
    for left in (vocabulary, Vocabulary.of(names[:n_left])):
        translation.cut(left)
        known = len(left)
        rows, new = translation.translated(numbering.rows(block))
        assert rows.indices.tolist() == [*range(5)] and new == names[known:]
        left.extend(new)
        translation.added(new)
    again, new = translation.translated(numbering.rows(block))
    assert again.indices.tolist() == [*range(5)] and new == []


def test_names_that_come_again_after_a_limit_has_dropped_them(tmp_path, monkeypatch):
    """Their numbers of before are those of other names by then."""
    make = partial(OnlineClassifier, memory_limit="400 KB")
    firsts = [*(i * 20 % 9973 for i in range(650)), *(i * 7 % 9973 for i in range(150))]
    rows = [{"all": 1, **{f"n{first + j}": 1 for j in range(20)}} for first in firsts]
    given = [(row, LABELS[i % 4]) for i, row in enumerate(rows)]
    monkeypatch.setattr(replica, "BLOCK", 100)
    with Journal(tmp_path / "desk.db") as journal:
        model = journal.open("m", make())
        model.learn_many((*row, f"m{i}", None) for i, row in enumerate(given))
        assert model.estimator.n_dropped_ > 1000
        model.undo("m3")
        anew = learnt_anew(make, given[:3] + given[4:])
        assert file_of(model, tmp_path) == file_of(anew, tmp_path)


def test_rows_that_keep_other_labels_than_the_forgotten_are_learnt_again(tmp_path):
    """Also where all later rows stay as they are, and a copy has met the first ones."""
    given = [({f"w{i}": 1, "all": 1}, ["a", "gone"] if i < 4 else ["b"]) for i in range(9)]
    left = [(x, [label for label in y if label != "gone"]) for x, y in given]
    with Journal(tmp_path / "desk.db") as journal:
        for n in (4, 9):
            tags = journal.open(f"of {n} rows", OnlineMultilabelClassifier())
            for i, (x, y) in enumerate(given[:n]):
                tags.learn_one(x, y, id=f"m{i}")
            assert tags.forget_class("gone")[2:] == (True, 0, ())
            assert [(each.row, each.current) for each in tags.remaining()] == left[:n]
            anew = learnt_anew(OnlineMultilabelClassifier, left[:n])
            assert file_of(tags, tmp_path) == file_of(anew, tmp_path)


def test_receipts_say_how_many_rows_an_event_is_about(tmp_path):
    with Journal(tmp_path / "desk.db") as journal:
        mail = journal.open("m", OnlineClassifier())
        for i in range(6):
            subject = "ann" if i < 2 else None
            mail.learn_one({f"w{i}": 1}, LABELS[i % 3], id=f"m{i}", subject=subject)
        calls = [
            (lambda: mail.learn_one({"w": 1}, "a", id="e7"), 1),
            (lambda: mail.relabel("m3", "b", event="e8"), 1),
            (lambda: mail.rename("c", "z", event="e9"), 0),
            (lambda: mail.merge("z", "b", event="e10"), 0),
            (lambda: mail.undo("m4", event="e11"), 0),
        ]
        for number, (call, n_rows) in enumerate(calls, start=7):
            first = call()
            assert first == (number, f"e{number}", True, n_rows, ())
            assert call() == first._replace(changed=False)
        assert mail.relabel("m3", "b") == (4, "m3", False, 1, ())
        assert mail.undo("m4") == (11, "e11", False, 0, ())
        assert mail.forget_subject("nobody")[2:] == (False, 0, ())
        assert mail.forget_subject("ann")[2:] == (True, 2, ())
        assert mail.forget("m4")[2:] == (True, 1, ())
        assert mail.forget_class("b")[2:] == (True, 3, ())
        said = [json.loads(line).get("content", "{}") for line in journal.export("m")][1:]
        counts = [json.loads(each.partition("\n")[0]).get("n_rows") for each in said]
        assert counts[6:] == [1, *[None] * 4, 0, 2, 1, 3]


def test_an_id_is_that_of_one_event(tmp_path):
    """Whatever kind the other is of, and whatever form the other row has."""
    with Journal(tmp_path / "desk.db") as journal:
        mail, table = (journal.open(name, OnlineClassifier()) for name in ("mail", "table"))
        mail.learn_many([({}, "a", "m1", None), ({"w": 1}, "b", "m2", None)])
        mail.relabel("m1", "b", event="e1")
        mail.rename("b", "c", event="e2")
        mail.undo("e2", event="e3")
        mail.relabel("m2", "a", event="e4")
        table.learn_one({"hours": "3", "kind": "x"}, "a", id="m1")
        no_features = np.array([], dtype=np.int64), np.array([])
        for call in (
            lambda: mail.learn_one({}, "b", id="e1"),
            lambda: mail.learn_one(no_features, "a", id="m1"),
            lambda: table.learn_one({"hours": 3, "kind": 1}, "a", id="m1"),
            lambda: mail.relabel("m1", "b", event="e3"),
            lambda: mail.relabel("m2", "b", event="e1"),
            lambda: mail.relabel("m1", "a", event="e1"),
            lambda: mail.rename("b", "d", event="e2"),
            lambda: mail.rename("a", "c", event="e2"),
            lambda: mail.merge("b", "c", event="e2"),
            lambda: mail.undo("m2", event="e3"),
            lambda: mail.undo("e2", event="m1"),
        ):
            before = repr([model.history(None) for model in (mail, table)])
            with pytest.raises(JournalError, match="is that of another event") as refused:
                call()
            assert refused.value.reason == "conflict"
            assert repr([model.history(None) for model in (mail, table)]) == before


def test_rows_of_a_batch_are_pairs_or_have_an_id_and_a_subject(tmp_path):
    with Journal(tmp_path / "desk.db") as journal:
        mail = journal.open("m", OnlineClassifier())
        for row in ("ab", 3, ("w",), ("w", "a", "m1"), ("w", "a", "m1", None, "more")):
            with pytest.raises(KeslerError, match="is no row: give"):
                mail.learn_many([("w", "a"), row])
            assert mail.history() == []
        assert len(mail.learn_many([("w", "a"), ["v", "b"], ("u", "c", "m3", "ann")])) == 3
        assert (mail.find("m3").subject, mail.n_trials_) == ("ann", 3)


def test_a_model_answers_as_its_estimator(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(words(rng), f"class {i % 9}") for i in range(90)]
    with Journal(tmp_path / "desk.db") as journal:
        mail = journal.open("m", OnlineClassifier())
        mail.learn_many(rows)
        for x, _ in rows[:5]:
            for name in ("predict", "predict_proba", "predict_top", "predict_set", "confidence"):
                ask = f"{name}_one"
                assert getattr(mail, ask)(x) == getattr(mail.estimator, ask)(x)
            assert len(mail.predict_top_one(x)) == 5 and len(mail.predict_top_one(x, 7)) == 7
            same = mail.estimator.explain_one(x, n=2)
            assert mail.explain_one(x, n=2).to_dict() == same.to_dict()


DEFAULT = re.compile(r"^(\w+(?:, \w+)*) : .*\bdefault (\S+)$", re.MULTILINE)


@pytest.mark.parametrize("kind", [Journal, Model])
def test_defaults_are_those_that_are_documented(kind):
    n = 0
    for name, call in {"": kind, **vars(kind)}.items():
        if name.startswith("_") or not callable(call):
            continue
        given = signature(call).parameters
        for names, said in DEFAULT.findall(getdoc(call) or ""):
            for each in names.split(", "):
                assert given[each].default == literal_eval(said), (name, each)
                n += 1
    assert n >= 2

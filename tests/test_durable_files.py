"""Journals as files: retries, refusals, forgetting, other processes, kills, and full disks."""

from __future__ import annotations

import enum
import logging
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from histories import WITHOUT_DIGESTS, file_of, learnt_anew
from homemade import part_way
from kesler import (
    BanditClassifier,
    CostSensitiveClassifier,
    KeslerError,
    OnlineClassifier,
    OnlineOrdinalClassifier,
    load,
)
from kesler.durable import Journal, replica, snapshots, storage

SOURCE = str(Path(sys.modules["kesler"].__file__ or "").parents[1])
make = OnlineClassifier


@pytest.fixture
def desk(tmp_path):
    with Journal(tmp_path / "desk.db", wait=0.2) as journal:
        yield journal


@pytest.fixture
def mail(desk):
    model = desk.open("mail", make())
    for i in range(9):
        words = {f"w{i % 4}": 1, "all": 2.5}
        model.learn_one(words, "abc"[i % 3], id=f"m{i}", subject="ann" if i % 4 == 1 else None)
    return model


def state_of(model):
    return repr(model.history(None)), model.n_trials_, model.classes_.tolist()


# ---- retries and refusals -----------------------------------------------------------------------


def test_repeated_calls_change_nothing(mail):
    calls = [
        lambda: mail.learn_one({"all": 2.5, "w1": 1}, "b", id="m1", subject="ann"),
        lambda: mail.relabel("m0", "c", event="r1"),
        lambda: mail.rename("a", "z", event="r2"),
        lambda: mail.merge("b", "c", event="r3"),
        lambda: mail.undo("m2", event="r4"),
    ]
    for call in calls:
        first = call()
        before = state_of(mail)
        again = call()
        assert (again.number, again.id, again.changed) == (first.number, first.id, False)
        assert state_of(mail) == before
    reordered = {"w1": 1, "all": 2.5}
    assert mail.learn_one(reordered, "b", id="m1", subject="ann").changed is False
    assert mail.relabel("m0", "c").changed is False
    assert mail.undo("m2").changed is False


def _first(mail, row, answer="b"):
    """Learn a row under the id of one with the subject of that, and its answer or another."""
    return mail.learn_one(row, answer, id="m1", subject="ann")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda m: m.learn_one({"w1": 1}, "b", id="m1"), "of another event"),
        (lambda m: m.learn_one({"w1": 1, "all": 2.5}, "b", id="m1"), "of another event"),
        (lambda m: _first(m, {"all": 2.5, "w2": 1}), "of another event"),
        (lambda m: _first(m, {"all": 2.5, "w1": 2}), "of another event"),
        (lambda m: _first(m, {"all": 2.5, "w1": "1"}), "of another event"),
        (lambda m: _first(m, {"all": 2.5, "w1": 1}, "a"), "of another event"),
        (lambda m: m.rename("a", "z", event="m1"), "of another event"),
        (lambda m: m.undo("nobody"), "no event 'nobody'"),
        (lambda m: m.relabel("nobody", "a"), "no event"),
        (lambda m: m.forget("nobody"), "no event"),
        (lambda m: m.rename("nobody", "a"), "no class 'nobody'"),
        (lambda m: m.rename("a", "b"), "merge the two"),
        (lambda m: m.merge("a", "a"), "into itself"),
        (lambda m: m.merge("a", "nobody"), "no class"),
        (lambda m: m.forget_class("nobody"), "no class"),
        (lambda m: m.learn_one({"w1": 1}, 3), "cannot be ordered"),
        (lambda m: m.learn_one({"w1": 1}, ("a", 1)), "cannot be ordered|not hashable"),
        (lambda m: m.learn_one({"w1": 1}, None), "cannot be kept"),
        (lambda m: m.learn_one({"w1": float("nan")}, "a"), "cannot be kept|is NaN"),
        (lambda m: m.learn_one({1: 1.0}, "a"), "is not text"),
        (lambda m: m.learn_one(7, "a"), "cannot be kept"),
        (
            lambda m: m.learn_one(np.full((3, 3), 1.0), "a"),
            r"the row array\(\[\[1\., 1\., 1\.\], \[1",
        ),
        (lambda m: m.undo_many("m1"), "'m1' is a text: give a list"),
        (lambda m: m.learn_one("half \ud800", "a"), "surrogate"),
        (lambda m: m.learn_one({"w": 1}, "half \ud800"), "surrogate"),
        (lambda m: m.learn_one({"w1": 1}, "a", id=""), "1 to 500"),
        (lambda m: m.learn_one({"w1": 1}, "a", id="x" * 501), "1 to 500"),
        (lambda m: m.learn_one({"w1": 1}, "a", subject=3), "1 to 500"),
        (lambda m: m.learn_one({"w1": 1}, "a", by="a\0b"), "1 to 500"),
        (lambda m: m.learn_many([({"w1": 1}, "a"), ({"w1": 1e99}, "b")]), "too large"),
        (lambda m: m.learn_many([({"w1": 1}, "a", "id")]), "is no row"),
        (lambda m: m.relabel("m1", 3), "cannot be ordered"),
        (lambda m: m.rename("a", 3), "cannot be ordered"),
    ],
)
def test_refused_calls_change_nothing(mail, call, why):
    before = state_of(mail)
    with pytest.raises(KeslerError, match=why) as refused:
        call(mail)
    sent = pickle.loads(pickle.dumps(refused.value))  # as processes hand errors on
    assert type(sent) is type(refused.value)
    assert (str(sent), vars(sent)) == (str(refused.value), vars(refused.value))
    assert state_of(mail) == before
    rows = [(each.row, each.current) for each in mail.remaining()]
    mail.learn_one({"w1": 1}, "a")
    anew = learnt_anew(make, [*rows, ({"w1": 1}, "a")])
    folder = mail._storage.path.parent
    assert file_of(mail, folder) == file_of(anew, folder)


def test_what_is_forgotten_cannot_be_undone(mail):
    gone = mail.forget("m3")
    with pytest.raises(KeslerError, match="cannot be brought back"):
        mail.undo(gone.id)
    with pytest.raises(KeslerError, match="is a rename"):
        mail.forget(mail.rename("a", "z").id)
    mail.undo("m1")
    with pytest.raises(KeslerError, match="taken back"):
        mail.relabel("m1", "c")


def test_first_row_refused_leaves_nothing(desk, tmp_path):
    model = desk.open("new", make())
    with pytest.raises(KeslerError, match="learnt nothing"):
        model.predict_one("anything")
    with pytest.raises(KeslerError):
        model.learn_one({"w": [1]}, ("a", 1))
    model.learn_one(np.array([1.0, 2.0]), "a")
    assert file_of(model, tmp_path) == file_of(
        learnt_anew(make, [(np.array([1.0, 2.0]), "a")]), tmp_path
    )


def test_models_by_name(desk, mail):
    assert desk.open("mail") is mail
    with pytest.raises(KeslerError, match="other settings"):
        desk.open("mail", OnlineClassifier("multi", update="pa1"))
    with pytest.raises(KeslerError, match="no model 'post'"):
        desk.open("post")
    with pytest.raises(KeslerError, match="no model"):
        desk.delete("post")
    desk.open("grades", OnlineOrdinalClassifier(order=["low", "high"])).learn_one({"w": 1}, "low")
    with pytest.raises(KeslerError, match="settings of the model name"):
        desk.open("grades").rename("low", "none")
    assert desk.models() == ["mail", "grades"]
    desk.delete("mail")
    assert desk.models() == ["grades"]
    with pytest.raises(KeslerError, match="deleted"):
        mail.learn_one({"w": 1}, "a")
    assert desk.open("mail", make()).history() == []


@pytest.mark.parametrize(
    ("estimator", "why"),
    [
        (OnlineClassifier().learn_one({"w": 1}, "a"), "learnt already"),
        (OnlineClassifier(update=part_way), "stores no code"),
        (OnlineClassifier(costs=lambda y, r: 1.0), "stores no code"),
        (OnlineClassifier("sub-experts"), "ratings"),
        (OnlineClassifier(label_budget=0.2), "label budget"),
        (BanditClassifier(["a", "b"]), "give one of"),
        (CostSensitiveClassifier(), "give one of"),
        (object(), "give one of"),
    ],
)
def test_estimators_that_cannot_be_kept(desk, estimator, why):
    with pytest.raises(KeslerError, match=why):
        desk.open("m", estimator)
    assert desk.models() == []


# ---- files --------------------------------------------------------------------------------------


def test_wrong_files(tmp_path):
    (tmp_path / "text").write_text("no database at all, but long enough to be one" * 50)
    with pytest.raises(KeslerError, match="not a journal"):
        Journal(tmp_path / "text")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(KeslerError, match="not a journal"):
        Journal(tmp_path / "other.db")
    for path in (tmp_path, tmp_path / "none" / "desk.db"):
        with pytest.raises(KeslerError, match="cannot be opened"):
            Journal(path)
    for path in (None, 3, "", ":memory:"):
        with pytest.raises(KeslerError, match="path of a file"):
            Journal(path)
    with Journal(tmp_path / "new.db") as journal:
        journal._storage._connection.execute("PRAGMA user_version = 99")
    with pytest.raises(KeslerError, match="newer Kesler"):
        Journal(tmp_path / "new.db")


def test_commits_wait_for_the_disk(desk):
    (mode,), (level,) = (desk._storage._one(f"PRAGMA {o}") for o in ("journal_mode", "synchronous"))
    assert (mode, level) == ("wal", 2)


def test_closed_journal(tmp_path):
    journal = Journal(tmp_path / "desk.db")
    model = journal.open("mail", make())
    model.learn_one("win cash", "spam")
    journal.close()
    journal.close()
    for call in (journal.models, lambda: model.learn_one("w", "a"), lambda: model.history()):
        with pytest.raises(KeslerError, match="closed"):
            call()


def test_damaged_file_is_found(tmp_path):
    path = tmp_path / "desk.db"
    with Journal(path) as journal:
        model = journal.open("mail", make())
        model.learn_many([({f"w{i}": i, "all": 1.5}, "abc"[i % 3]) for i in range(300)])
    contents = bytearray(path.read_bytes())
    contents[len(contents) // 2 :: 97] = b"\xff" * len(contents[len(contents) // 2 :: 97])
    path.write_bytes(contents)
    try:
        with Journal(path) as journal:
            assert journal.check()
    except KeslerError:
        pass


def test_what_no_journal_has_written(desk, mail, tmp_path):
    for change in (
        "UPDATE models SET settings = '{'",
        """UPDATE models SET settings = '{"name": "eval", "parameters": {}}'""",
        """UPDATE models SET settings = '{"name": "OnlineClassifier", "parameters": {"update":
        {"part": {"module": "os", "name": "system", "fields": {}}}}}'""",
        "UPDATE events SET answer = 'x' WHERE id = 'm3'",
        "UPDATE rows SET row = '[1]' WHERE number = 2",
        "UPDATE rows SET form = 'cells' WHERE number = 2",
    ):
        path = tmp_path / "forged.db"
        desk.backup(path)
        database = sqlite3.connect(path)
        with database:
            database.execute(change)
        database.close()
        with Journal(path) as journal, pytest.raises(KeslerError):
            journal.open("mail")
        path.unlink()


def test_undo_of_undo_at_length(mail, tmp_path):
    contents = {0: file_of(mail, tmp_path)}
    event = "m2"
    for i in range(60):
        event = mail.undo(event).id
        state = contents.setdefault((i + 1) % 2, file_of(mail, tmp_path))
        assert file_of(mail, tmp_path) == state
    assert contents[0] != contents[1]


def test_events_that_are_taken_back_together_leave_what_single_ones_leave(desk, mail, tmp_path):
    ids = ["m7", mail.relabel("m4", "c").id, "m1", mail.rename("a", "z").id, "m0"]
    ids.append(mail.undo("m2").id)
    desk.backup(tmp_path / "copy.db")
    with pytest.raises(KeslerError, match="no event 'nobody'"):
        mail.undo_many([*ids, "nobody"])
    assert not any(each.taken_back for each in mail.history(None) if each.id in ids)
    receipts = mail.undo_many([*ids, "m1"], by="eve")
    assert [each.changed for each in receipts] == [True] * 6 + [False]
    with Journal(tmp_path / "copy.db") as copy:
        other = copy.open("mail")
        assert [other.undo(id).changed for id in ids] == [True] * 6
        assert file_of(other, tmp_path) == file_of(mail, tmp_path)
    assert [each.by for each in mail.history(6)] == ["eve"] * 6 and desk.check() == []


def test_labels_of_derived_types_are_those_of_their_values(desk, tmp_path):
    class Team(enum.StrEnum):
        POST = "post"

    class Name(str):
        pass

    class Rank(int):
        pass

    given = ((Team.POST, "post"), (Name("post"), "post"), (Rank(3), 3))
    for i, (label, value) in enumerate(given):
        model = desk.open(f"model {i}", make())
        model.learn_one({"a": 1.0}, label)
        (event,) = model.history(None)
        assert event.answer == value and type(event.answer) is type(value)
        assert model.predict_one({"a": 1.0}) == value


def test_a_backup_that_cannot_be_written_is_a_sentence(desk, mail, tmp_path):
    with pytest.raises(KeslerError, match=r"none.copy\.db|unable to open"):
        desk.backup(tmp_path / "none" / "copy.db")
    assert not (tmp_path / "none").exists()


def test_backup_and_check(desk, mail, tmp_path):
    desk.backup(tmp_path / "copy.db")
    with pytest.raises(KeslerError, match="exists already"):
        desk.backup(tmp_path / "copy.db")
    with Journal(tmp_path / "copy.db") as copy:
        assert copy.check() == []
        assert repr(copy) == f"Journal({str(tmp_path / 'copy.db')!r})"
        assert repr(copy.open("mail").history(None)) == repr(mail.history(None))
    snapshots.rename_classes(mail._replica.learner, ["a", "b", "z"])
    assert "differs from one" in desk.check()[0]
    snapshots.rename_classes(mail._replica.learner, ["a", "b", "c"])
    assert desk.check() == []
    mail._replica.learner.learn_one({"w1": 1}, "a")
    assert "differs from one" in desk.check()[0]


def test_a_snapshot_that_cannot_be_written_is_not_tried_again_at_once(
    tmp_path, monkeypatch, caplog
):
    """A database refuses contents of a gigabyte; making them takes seconds."""
    tried = []

    def refuse(self, key, snapshot, contents):
        tried.append(snapshot.at)
        raise KeslerError("string or blob too big")

    monkeypatch.setattr(replica, "LEAST_SPACING", 10)
    with Journal(tmp_path / "desk.db") as journal:
        monkeypatch.setattr(type(journal._storage), "add_snapshot", refuse)
        model = journal.open("mail", make())
        for i in range(60):
            model.learn_one({f"w{i % 4}": 1}, "ab"[i % 2])
        assert 1 <= len(tried) <= 6 and min(np.diff([0, *tried])) >= 10
        assert len([each for each in caplog.records if "no snapshot" in each.message]) == len(tried)
    with Journal(tmp_path / "desk.db") as journal:
        assert journal.check() == []


def files_of(folder):
    return b"".join(each.read_bytes() for each in sorted(folder.iterdir()) if each.is_file())


@pytest.mark.parametrize("way", ["forget", "forget_subject", "forget_class", "delete"])
@pytest.mark.parametrize("taken_back", [False, True])
def test_what_is_forgotten_is_in_no_file(tmp_path, monkeypatch, way, taken_back):
    monkeypatch.setattr(replica, "LEAST_SPACING", 3)
    planted = b"plantedword", b"plantedid", b"plantedsubject"
    label = "plantedclass" if way in ("forget_class", "delete") else "a"
    with Journal(tmp_path / "desk.db") as journal:
        mail, post = journal.open("mail", make()), journal.open("post", make())
        post.learn_one("other model", "b")
        for i in range(40):
            mail.learn_one({f"filler{i}": 1, "all": 2}, "abc"[i % 3])
        row = {"plantedword": 1, "all": 2}
        mail.learn_one(row, label, id="plantedid", subject="plantedsubject")
        if way == "forget_class":
            mail.rename("c", "d")
            mail.relabel("plantedid", "b")
            mail.undo(mail.relabel("plantedid", "d").id)
            mail.relabel("plantedid", label)
        for i in range(40):
            mail.learn_one({f"later{i}": 1, "all": 2}, "ab"[i % 2])
        journal.close()
        journal = Journal(tmp_path / "desk.db")
        mail = journal.open("mail")
        assert all(each in files_of(tmp_path) for each in planted)
        if taken_back and way != "forget_class":
            mail.undo("plantedid")
        calls = {
            "forget": lambda: mail.forget("plantedid"),
            "forget_subject": lambda: mail.forget_subject("plantedsubject"),
            "forget_class": lambda: mail.forget_class(label),
            "delete": lambda: journal.delete("mail"),
        }
        calls[way]()
        assert not any(each in files_of(tmp_path) for each in (*planted, b"plantedclass"))
        if way != "delete":
            assert "plantedword" not in mail.copy().vocabulary_.names
            assert mail.n_trials_ == 80
        journal.close()
    assert not any(each in files_of(tmp_path) for each in (*planted, b"plantedclass"))


def test_purge_waits_for_readers(tmp_path):
    with Journal(tmp_path / "desk.db", wait=0.1) as journal:
        mail = journal.open("mail", make())
        mail.learn_one("plantedword here", "a", id="m1")
        mail.learn_one("another", "b")
        reader = sqlite3.connect(tmp_path / "desk.db")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()
        with pytest.raises(KeslerError, match="call purge"):
            mail.forget("m1")
        assert mail.n_trials_ == 1
        reader.close()
        journal.purge()
        assert b"plantedword" not in files_of(tmp_path)


# ---- other processes and threads ----------------------------------------------------------------


def test_second_writer_is_told(desk, mail):
    other = sqlite3.connect(desk._storage.path)
    other.execute("BEGIN IMMEDIATE")
    before = state_of(mail)
    with pytest.raises(KeslerError, match="another process is writing"):
        mail.learn_one("w", "a")
    other.close()
    assert state_of(mail) == before
    assert mail.learn_one("w", "a").changed


def test_two_writers_take_turns(tmp_path):
    with Journal(tmp_path / "desk.db") as one, Journal(tmp_path / "desk.db") as two:
        models = one.open("m", make()), two.open("m", make())
        for i in range(20):
            models[i % 2].learn_one({f"w{i % 5}": 1}, "abc"[i % 3], id=f"m{i}")
        models[0].undo("m3")
        models[1].rename("a", "z")
        assert file_of(models[0], tmp_path) == file_of(models[1], tmp_path)
        assert models[0].n_trials_ == 19
        one.delete("m")
        with pytest.raises(KeslerError, match="deleted"):
            models[1].predict_one({"w1": 1})


def test_threads(mail, tmp_path):
    errors = []

    def teach(k):
        try:
            for i in range(15):
                mail.learn_one({f"w{i}": 1}, "abc"[i % 3], id=f"t{k}-{i}")
                mail.predict_one({f"w{i}": 1})
                if i % 5 == 4:
                    mail.undo(f"t{k}-{i - 2}")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=teach, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    anew = learnt_anew(make, [(each.row, each.current) for each in mail.remaining()])
    assert file_of(mail, tmp_path) == file_of(anew, tmp_path)
    assert mail.n_trials_ == 9 + 4 * 12


WRITER = """
import sys
from kesler import OnlineClassifier
from kesler.durable import Journal, replica

replica.LEAST_SPACING = 5
journal = Journal(sys.argv[1])
mail = journal.open("mail", OnlineClassifier())
n = int(sys.argv[2])
while True:
    n += 1
    mail.learn_one({f"w{n % 7}": 1, "all": 2}, "abc"[n % 3], id=f"m{n}")
    print("learnt", n, flush=True)
    if n % 4 == 0:
        mail.undo(f"m{n - 2}", event=f"u{n}")
        print("undone", n - 2, flush=True)
"""


def test_kills_lose_nothing_and_repeat_nothing(tmp_path):
    path, n, rng = tmp_path / "desk.db", 0, np.random.default_rng(0)
    learnt, undone = set(), set()
    for _ in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(n)],
            env=os.environ | {"PYTHONPATH": SOURCE},
            stdout=subprocess.PIPE,
            text=True,
        )
        lines = [writer.stdout.readline()]
        threading.Timer(rng.uniform(0.02, 0.3), writer.send_signal, [signal.SIGKILL]).start()
        lines += writer.stdout.readlines()
        writer.wait()
        writer.stdout.close()
        for line in filter(lambda line: line.endswith("\n"), lines):
            word, number = line.split()
            (learnt if word == "learnt" else undone).add(int(number))
        with Journal(path) as journal:
            mail = journal.open("mail")
            assert journal.check() == []
            events = mail.history(None)
            ids = [each.id for each in events]
            assert len(set(ids)) == len(ids)
            assert {f"m{i}" for i in learnt} <= set(ids)
            assert {f"m{i}" for i in undone} <= {e.id for e in events if e.taken_back}
            anew = learnt_anew(make, [(each.row, each.current) for each in mail.remaining()])
            assert file_of(mail, tmp_path) == file_of(anew, tmp_path)
            n = max(int(each.id[1:]) for each in events if each.kind == "learn")


FILLER = """
import resource, signal, sys
from kesler import KeslerError, OnlineClassifier
from kesler.durable import Journal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(sys.argv[1])
mail = journal.open("mail", OnlineClassifier())
mail.learn_one({"w": 1}, "a")
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
n = 0
try:
    while True:
        mail.learn_one({f"w{n}-{i}": 1 for i in range(40)}, "ab"[n % 2], id=f"m{n}")
        n += 1
except KeslerError as error:
    print(error)
before = mail.n_trials_
assert before == n + 1, (before, n)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert mail.learn_one({"w": 1}, "a").changed and mail.n_trials_ == n + 2
assert journal.check() == []
print(n)
"""


def test_full_disk(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FILLER, tmp_path / "desk.db"],
        env=os.environ | {"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said, n = done.stdout.strip().splitlines()
    assert "nothing was changed" in said
    with Journal(tmp_path / "desk.db") as journal:
        assert journal.open("mail").n_trials_ == int(n) + 2


def test_failed_commit_leaves_the_model_as_it_was(mail, monkeypatch, tmp_path):
    before, contents = state_of(mail), file_of(mail, tmp_path)
    for call in (
        lambda: mail.learn_one({"new": 1}, "d"),
        lambda: mail.undo("m2"),
        lambda: mail.rename("a", "z"),
        lambda: mail.merge("a", "b"),
        lambda: mail.forget_class("c"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(mail._storage, "_commit", _full)
            with pytest.raises(KeslerError, match="disk is full"):
                call()
        assert state_of(mail) == before
        assert file_of(mail, tmp_path) == contents


def _full():
    raise KeslerError("the disk is full")


# ---- versions and processors --------------------------------------------------------------------


def test_other_makers(tmp_path, monkeypatch, caplog):
    path = tmp_path / "desk.db"
    with Journal(path) as journal:
        mail = journal.open("mail", make())
        for i in range(100):
            mail.learn_one({f"w{i % 7}": 1}, "abc"[i % 3])
        contents = file_of(mail, tmp_path)
    for damaged in (False, True):
        monkeypatch.setattr(replica, "maker", partial("another processor {}".format, damaged))
        if damaged:
            database = sqlite3.connect(path)
            with database:
                database.execute("UPDATE snapshots SET digest = 'other bits'")
            database.close()
        with caplog.at_level(logging.WARNING, "kesler"), Journal(path) as journal:
            mail = journal.open("mail")
            assert file_of(mail, tmp_path) == contents
            (note,) = journal.notes
            assert ("differ in their last bits" if damaged else "equal") in note
            assert note in caplog.text
            for i in range(100):
                mail.learn_one({f"w{i % 7}": 1}, "abc"[i % 3])
            contents = file_of(mail, tmp_path)


_UNDIVIDED = f"""
ALTER TABLE snapshots RENAME TO parts;
CREATE TABLE snapshots (
    model INTEGER NOT NULL,
    at INTEGER NOT NULL,
    digest TEXT NOT NULL,
    maker TEXT NOT NULL,
    contents BLOB NOT NULL,
    PRIMARY KEY (model, at)
);
INSERT INTO snapshots SELECT model, at, digest, maker, contents FROM parts;
DROP TABLE parts;
PRAGMA user_version = 1;
{WITHOUT_DIGESTS}"""  # what a journal of the first version had


@pytest.mark.parametrize("part", [100, 1 << 20], ids=["parts", "whole"])
@pytest.mark.parametrize("version", [1, storage.VERSION])
def test_snapshots_are_used(tmp_path, monkeypatch, part, version):
    monkeypatch.setattr(storage, "PART", part if version > 1 else 1 << 20)
    path = tmp_path / "desk.db"
    with Journal(path) as journal:
        mail = journal.open("mail", make())
        mail.learn_many([({f"w{i % 7}": 1}, "abc"[i % 3]) for i in range(500)])
        contents = file_of(mail, tmp_path)
    if version == 1:
        database = sqlite3.connect(path)
        database.executescript(_UNDIVIDED)
        database.close()
    read = []
    original = snapshots.learner_of
    monkeypatch.setattr(replica, "learner_of", lambda b: read.append(1) or original(b))
    for _ in range(2):
        with Journal(path) as journal:
            mail = journal.open("mail")
            assert file_of(mail, tmp_path) == contents
            assert not journal.check()
    assert len(read) == min(version, 2)  # those of the first version are made again


def test_tables_of_no_version_are_refused(tmp_path):
    path = tmp_path / "desk.db"
    Journal(path).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 0")
    database.close()
    with pytest.raises(KeslerError, match="not a journal"):
        Journal(path)


def test_exported_model_continues(mail, tmp_path):
    mail.save(tmp_path / "mail.kesler", source="desk")
    assert load(tmp_path / "mail.kesler").notes_ == {"source": "desk"}
    alone = mail.copy()
    alone.learn_one({"w1": 1}, "a")
    assert mail.n_trials_ == 9

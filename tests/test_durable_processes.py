"""Journals that others write to meanwhile, that are interrupted, and that are opened again."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing, contextmanager
from functools import partial
from itertools import pairwise, permutations

import numpy as np
import pytest

from histories import file_of, learnt_anew
from kesler import (
    KeslerError,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
)
from kesler.durable import Journal, JournalError, replica, storage
from kesler.durable.failures import sentence_of
from kesler.durable.snapshots import size_of
from kesler.durable.storage import Storage

make = OnlineClassifier
PA1 = partial(OnlineClassifier, "multi", update="pa1")  # which numbers names
ROWS = [({f"w{i % 7}": 1, "all": 2.5}, "abc"[i % 3]) for i in range(40)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "desk.db"


@pytest.fixture
def often(monkeypatch):
    """Copies and snapshots after every few events."""
    monkeypatch.setattr(replica, "LEAST_SPACING", 5)


def given(model):
    return [(each.row, each.current) for each in model.remaining()]


def is_as_anew(model, folder, make=make):
    return file_of(model, folder) == file_of(learnt_anew(make, given(model)), folder)


def do(path, *statements):
    with closing(sqlite3.connect(path)) as database, database:
        return [database.execute(each).fetchall() for each in statements][-1]


# ---- opening ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", [-1, -0.5, float("nan"), "1", None])
def test_a_wait_is_a_number_of_seconds(path, wait):
    with pytest.raises(KeslerError, match=f"wait={wait!r}: give a number of seconds, 0 or more"):
        Journal(path, wait=wait)
    assert not path.exists()


@pytest.mark.parametrize("name", [b"desk.db", "a\0b", "", ":memory:", None, 3, ["desk.db"]])
def test_a_journal_has_the_path_of_a_file(name):
    with pytest.raises(KeslerError, match="give the path of a file"):
        Journal(name)


@pytest.mark.parametrize("name", ["", "a" * 501, "a\0b", b"mail", None, 3])
def test_a_model_has_a_name_of_1_to_500_characters(path, name):
    with Journal(path) as journal:
        for call in (
            lambda: journal.open(name, make()),
            lambda: journal.open(name),
            lambda: journal.delete(name),
            lambda: next(journal.export(name)),
        ):
            with pytest.raises(KeslerError, match=r"^name=.*: give a text of 1 to 500 characters"):
                call()
        assert journal.models() == []
        assert journal.open("é" * 500, make()).name == journal.models()[0] == "é" * 500


def test_a_journal_is_opened_and_read_while_another_process_writes(path):
    with Journal(path, wait=0) as journal:
        journal.open("mail", make()).learn_many(ROWS[:5])
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with Journal(path, wait=0) as journal:
            mail = journal.open("mail", make())
            assert mail.n_trials_ == 5 and mail.predict_one(ROWS[0][0]) in "abc"
            with pytest.raises(JournalError, match="another process is writing") as refused:
                mail.learn_one(*ROWS[0])
            assert refused.value.reason == "busy"
        writer.execute("ROLLBACK")


def test_a_database_is_written_and_read_with_care(path):
    """To the disk, and without trust in what others may have put into the file."""
    options = {"synchronous": 2, "cell_size_check": 1, "trusted_schema": 0, "secure_delete": 0}
    with Journal(path) as journal:
        found = {name: journal._storage._one(f"PRAGMA {name}")[0] for name in options}
    assert found == options


def test_two_processes_that_make_a_journal_at_once_make_one(path, monkeypatch):
    create = Storage._create

    def later(self):
        monkeypatch.setattr(Storage, "_create", create)
        with Journal(path) as faster:
            faster.open("mail", make()).learn_one(*ROWS[0])
        create(self)

    monkeypatch.setattr(Storage, "_create", later)
    with Journal(path) as journal:
        assert journal.models() == ["mail"] and journal.open("mail").n_trials_ == 1


def test_two_processes_that_make_a_model_at_once_make_one(path, monkeypatch):
    with Journal(path) as journal, Journal(path) as faster:
        writing = journal._storage.writing

        def later():
            monkeypatch.setattr(journal._storage, "writing", writing)
            faster.open("other", make())
            faster.open("mail", make()).learn_one(*ROWS[0])
            return writing()

        monkeypatch.setattr(journal._storage, "writing", later)
        mail = journal.open("mail", make())
        assert mail.n_trials_ == 1 and journal.models() == ["other", "mail"]


def test_a_model_that_another_process_has_made_anew_is_another(path):
    with Journal(path) as journal, Journal(path) as other:
        before = other.open("mail", make())
        before.learn_many(ROWS)
        journal.delete("mail")
        journal.open("mail", make()).learn_one({"new": 1}, "z", id="m1")
        mail = other.open("mail")
        assert mail is not before and [*mail.classes_] == ["z"] and mail.n_trials_ == 1
        assert mail.find("m1").current == "z" and other.open("mail") is mail
        with pytest.raises(JournalError, match="deleted"):
            before.predict_one({"new": 1})
        assert other.check() == []


def test_what_is_not_there_is_said_with_the_first_five_that_are(path):
    with Journal(path) as journal:
        with pytest.raises(JournalError, match=r"those in it are none yet$"):
            journal.open("post")
        models = [journal.open(f"m{i}", make()) for i in range(7)]
        with pytest.raises(JournalError, match=r"in it are 'm0', 'm1', 'm2', 'm3', 'm4'$"):
            journal.open("post")
        for call in (models[0].rename, models[0].merge):
            with pytest.raises(JournalError, match=r"no class 'x' .*: known are none yet$"):
                call("x", "y")
        models[0].learn_many(({"w": 1}, label) for label in "gfedcba")
        with pytest.raises(JournalError, match=r"known are 'g', 'f', 'e', 'd', 'c'$") as refused:
            models[0].rename("x", "y")
        assert refused.value.reason == "not found"


# ---- snapshots ----------------------------------------------------------------------------------


@contextmanager
def lengths_of_blocks(monkeypatch):
    """Yield a list that gets the number of rows of each block that is learnt."""
    lengths, learn_block = [], replica.Replica._learn_block

    def count(self, learner, block, answers):
        lengths.append(len(block))
        learn_block(self, learner, block, answers)

    with monkeypatch.context() as patch:
        patch.setattr(replica.Replica, "_learn_block", count)
        yield lengths


def learnt_on_opening(path, monkeypatch):
    """Return how many rows are learnt when a journal is opened, and its notes."""
    with lengths_of_blocks(monkeypatch) as lengths, Journal(path) as journal:
        journal.open("mail")
        return sum(lengths), journal.notes


def test_a_journal_that_was_closed_is_opened_without_learning(path, monkeypatch):
    """Also where changes come too often for snapshots while it is open."""
    monkeypatch.setattr(replica, "WRITTEN", 1)
    with Journal(path) as journal:
        mail = journal.open("mail", make())
        for i in range(80):
            mail.learn_one(*ROWS[i % 40], id=f"m{i}")
        mail.undo("m70")
    assert learnt_on_opening(path, monkeypatch) == (0, [])


def test_snapshots_of_another_version_are_replaced(path, monkeypatch, often):
    with Journal(path) as journal:
        journal.open("mail", make()).learn_many(ROWS)
    monkeypatch.setattr(replica, "maker", lambda: "another version")
    n, (note,) = learnt_on_opening(path, monkeypatch)
    assert n == 40 and "another version" in note
    assert learnt_on_opening(path, monkeypatch) == (0, [])
    assert {maker for (maker,) in do(path, "SELECT maker FROM snapshots")} == {"another version"}


def test_a_snapshot_that_cannot_be_read_is_made_again(path, monkeypatch, often, caplog, tmp_path):
    with Journal(path) as journal:
        journal.open("mail", make()).learn_many(ROWS)
    do(path, "UPDATE snapshots SET contents = x'00'")
    n, notes = learnt_on_opening(path, monkeypatch)
    assert (n, notes) == (40, []) and "rows of 'mail' are learnt again" in caplog.text
    with Journal(path) as journal:
        assert is_as_anew(journal.open("mail"), tmp_path)


@pytest.mark.parametrize("make", [OnlineClassifier, PA1])
def test_a_journal_without_snapshots_is_learnt_block_by_block(make, path, tmp_path, monkeypatch):
    monkeypatch.setattr(replica, "BLOCK", 5)
    with Journal(path) as journal:
        journal.open("mail", make()).learn_many(ROWS)
    do(path, "DELETE FROM snapshots")
    with lengths_of_blocks(monkeypatch) as lengths, Journal(path) as journal:
        assert is_as_anew(journal.open("mail"), tmp_path, make) and lengths == [5] * 8


def test_a_learner_that_others_have_overtaken_is_not_written(path, tmp_path, often):
    other = Journal(path)
    with Journal(path) as journal:
        journal.open("mail", make()).learn_many((*row, f"m{i}", None) for i, row in enumerate(ROWS))
        other.open("mail")
        journal.open("mail").undo("m3")
    do(path, "DELETE FROM snapshots")
    other.close()
    with Journal(path) as journal:
        assert is_as_anew(journal.open("mail"), tmp_path) and journal.check() == []


def test_a_learner_of_rows_that_were_not_written_is_not_written(path, monkeypatch):
    """Another process gives the number of the event that failed to one of its own."""
    monkeypatch.setattr(replica, "LEAST_SPACING", 1)
    with Journal(path) as other:
        journal = Journal(path)
        mail = journal.open("mail", make())
        mail.learn_many(ROWS)
        with monkeypatch.context() as patch, pytest.raises(KeslerError, match="disk"):
            patch.setattr(mail._storage, "_commit", _fail)
            mail.learn_one({"never": 1}, "z")
        do(path, "DELETE FROM snapshots")
        other.open("mail").learn_one(*ROWS[0])
        journal.close()
    with Journal(path) as journal:
        assert [*journal.open("mail").classes_] == ["a", "b", "c"] and journal.check() == []


def _fail():
    raise KeslerError("the disk is full")


@pytest.mark.parametrize(("least", "n_bytes"), [(2, 7), (7, 0)])
@pytest.mark.parametrize("is_undone", [False, True])
@pytest.mark.parametrize("n", [29, 30])
def test_snapshots_are_as_many_events_apart_as_the_learner_is_large(
    path, monkeypatch, least, n_bytes, is_undone, n
):
    """Also where changes make them invalid; the last one is written when the journal is closed."""
    monkeypatch.setattr(replica, "LEAST_SPACING", least)
    monkeypatch.setattr(replica, "size_of", lambda learner: n_bytes * replica.WRITTEN)
    written, add = [], Storage.add_snapshot

    def noted(self, key, snapshot, contents):
        written.append(snapshot.at)
        add(self, key, snapshot, contents)

    monkeypatch.setattr(Storage, "add_snapshot", noted)
    with Journal(path) as journal:
        mail = journal.open("mail", PA1())
        event = mail.learn_one(*ROWS[0]).id
        mail.learn_one(*ROWS[1])
        for row in ROWS[2:n]:
            if is_undone:
                event = mail.undo(event).id
            else:
                mail.learn_one(*row)
        assert written == [7, 14, 21, 28]
    assert written[4:] == ([n] if is_undone or n - 28 >= least else [])


def test_after_any_undo_later_ones_begin_with_copies_from_before_it(path, tmp_path, monkeypatch):
    monkeypatch.setattr(replica, "LEAST_SPACING", 1)
    monkeypatch.setattr(replica, "COPIED", 1 << 40)
    with Journal(path) as journal:
        for first, second in permutations(range(4), 2):
            mail = journal.open(f"{first} then {second}", PA1())
            for k in range(4):
                mail.learn_one({f"w{k}": 1, "all": 2.5}, "abc"[k % 3], id=f"m{k}")
            mail.undo(f"m{first}")
            mail.learn_one({"later": 1, "all": 2.5}, "b")
            mail.undo(f"m{second}")
            assert is_as_anew(mail, tmp_path, PA1), (first, second)


def test_events_that_leave_no_row_are_followed(path, tmp_path, monkeypatch):
    monkeypatch.setattr(replica, "LEAST_SPACING", 2)
    with Journal(path) as journal:
        mail = journal.open("mail", make())
        for _ in range(5):
            assert not mail.forget_subject("nobody").changed
            assert mail.n_trials_ == 0 and mail.classes_.tolist() == []
        event = mail.learn_one({"w": 1}, "a", id="m1").id
        for n in range(1, 8):
            event = mail.undo(event).id
            assert mail.n_trials_ == 1 - n % 2 and mail.classes_.tolist() == ["a"][: 1 - n % 2]
        assert journal.check() == []


# ---- copies in memory ---------------------------------------------------------------------------


def test_undos_after_a_long_replay_begin_with_copies_that_it_made(
    path, tmp_path, monkeypatch, often
):
    """They are of when a half of its rows were left, and an eighth."""
    monkeypatch.setattr(replica, "FEW_ROWS", 20)
    monkeypatch.setattr(replica, "COPIED", 1 << 40)
    with Journal(path) as journal:
        mail = journal.open("mail", PA1())
        mail.learn_many((*row, f"m{i}", None) for i, row in enumerate(ROWS * 4))
        mail.undo("m0")
        for id, most in (("m150", 160 / 8), ("m100", 160 / 2)):
            with lengths_of_blocks(monkeypatch) as lengths:
                mail.undo(id)
            assert 0 < sum(lengths) <= most
        assert is_as_anew(mail, tmp_path, PA1)


@pytest.mark.parametrize(("few", "spacing"), [(20, 5), (4, 10)])
@pytest.mark.parametrize("n", [20, 21])
def test_a_short_replay_makes_no_copies(few, spacing, n, path, monkeypatch):
    """Of at most so few rows, or of two distances between copies."""
    monkeypatch.setattr(replica, "FEW_ROWS", few)
    monkeypatch.setattr(replica, "LEAST_SPACING", spacing)
    monkeypatch.setattr(replica, "COPIED", 1 << 40)
    with Journal(path) as journal:
        mail = journal.open("mail", PA1())
        mail.learn_many((*row, f"m{i}", None) for i, row in enumerate(ROWS[: n + 1]))
        mail.undo("m0")
        assert len(mail._replica._copies.numbers) == (0 if n == 20 else 2)


def test_copies_are_as_many_events_apart_as_the_learner_is_large(path, monkeypatch):
    monkeypatch.setattr(replica, "LEAST_SPACING", 2)
    monkeypatch.setattr(replica, "size_of", lambda learner: 7 * replica.COPIED)
    with Journal(path) as journal:
        mail, newest = journal.open("mail", PA1()), []
        for row in ROWS[:30]:
            mail.learn_one(*row)
            newest += mail._replica._copies.numbers[-1:]
        assert [*dict.fromkeys(newest)] == [7, 14, 21, 28]


def test_three_copies_are_kept_however_much_memory_they_take(path, monkeypatch):
    monkeypatch.setattr(replica, "LEAST_SPACING", 1)
    monkeypatch.setattr(replica, "COPIED", 1 << 40)
    monkeypatch.setattr(replica, "MOST_MEMORY", 0)
    with Journal(path) as journal:
        mail, n_copies = journal.open("mail", PA1()), []
        for row in ROWS:
            mail.learn_one(*row)
            n_copies.append(len(mail._replica._copies.numbers))
        assert n_copies == [1, 2] + [3] * 38


def test_memory_is_returned_when_arrays_have_been_outgrown(path, monkeypatch):
    """By each block of 64 rows after which the learner is larger, even without copies of it."""
    monkeypatch.setattr(replica, "COPIED", 1)
    monkeypatch.setattr(replica, "WRITTEN", 1)
    sizes, returned = [0], []
    monkeypatch.setattr(replica, "_return_memory", lambda: returned.append(len(sizes)))
    with Journal(path) as journal:
        mail = journal.open("mail", PA1())
        for n in (64, 64, 3000, 3000, 9000):
            rows = [{f"w{j}": 1 for j in range(i, n, 64)} for i in range(64)]
            mail.learn_many((row, "ab"[i % 2]) for i, row in enumerate(rows))
            sizes.append(size_of(mail.estimator))
        assert returned == [i for i in range(1, 6) if sizes[i] > sizes[i - 1]] == [1, 3, 5]


# ---- refusals and interrupts --------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("make", [OnlineClassifier, PA1])
def test_rows_that_are_refused_leave_nothing_to_those_that_get_their_numbers(
    make, at_once, path, tmp_path, monkeypatch
):
    """Neither their names nor, where rows are learnt again, their features."""
    monkeypatch.setattr(replica, "LEAST_SPACING", 1)
    monkeypatch.setattr(replica, "COPIED", 1 << 40)
    rows = [({"p": 1}, "a"), ({"q": 2}, "b")]
    more = [({"other": 1, "q": 1}, "b"), ({"new": 3}, "a"), ({"newer": 1}, "a")]
    with Journal(path) as journal:
        mail = journal.open("mail", make())
        mail.learn_many(rows)
        with pytest.raises(KeslerError):
            mail.learn_many([({"new": 1}, "a"), ({"newer": 1}, ("a", 1))])
        for block in [more] if at_once else [[row] for row in more]:
            mail.learn_many(block)
        assert given(mail) == rows + more and is_as_anew(mail, tmp_path, make)
        mail.undo(mail.history(None)[2].id)
        assert given(mail) == rows + more[1:] and is_as_anew(mail, tmp_path, make)
        assert journal.check() == []


def test_rows_before_one_of_another_form_are_not_learnt_with_it(path, tmp_path):
    with Journal(path) as journal:
        mail = journal.open("mail", make())
        mail.learn_many(ROWS[:5])
        with pytest.raises(KeslerError):
            mail.learn_many([*ROWS[5:9], (np.array([1.0, 2.0]), "a")])
        mail.learn_one(*ROWS[9])
        assert given(mail) == [*ROWS[:5], ROWS[9]] and is_as_anew(mail, tmp_path)


FORMS = {
    "names": {"w": 1.0},
    "text": "win cash",
    "array": np.array([1.0, 2.0]),
    "pair": (np.array([0, 3]), np.array([1.0, 2.0])),
    "cells": {"kind": "red", "n": 3},
}


@pytest.mark.parametrize("make", [OnlineMultilabelClassifier, partial(OnlineLabelRanker, "multi")])
@pytest.mark.parametrize(("first", "then"), [*pairwise([*FORMS, "names"])])
def test_rows_without_labels_before_one_that_is_refused_are_not_learnt(
    make, first, then, path, tmp_path
):
    """Although the model has learnt from them, it knows no label yet."""
    with Journal(path) as journal:
        model = journal.open("m", make())
        with pytest.raises(KeslerError):
            model.learn_many([(FORMS[first], []), (FORMS[then], ["a", 1])])
        model.learn_one(FORMS[then], ["b", "a"])
        assert is_as_anew(model, tmp_path, make)


def test_the_thousands_before_a_row_that_is_refused_are_learnt(path):
    rows = [*ROWS * 25, ({"w": 1}, None)]
    for n, at in [(0, 999), (1000, 1000)]:
        with Journal(path) as journal:
            mail = journal.open(f"refused at {at}", make())
            with pytest.raises(KeslerError, match="the label None"):
                mail.learn_many(iter([*rows[:at], rows[-1]]))
            assert mail.n_trials_ == n == len(mail.history(None))


def test_rows_of_a_call_that_is_interrupted_are_not_learnt(path, tmp_path, monkeypatch):
    learn_block = replica.Replica._learn_block

    def interrupted(self, *given):
        learn_block(self, *given)
        raise KeyboardInterrupt

    with Journal(path) as journal:
        mail = journal.open("mail", make())
        mail.learn_many(ROWS[:5])
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(replica.Replica, "_learn_block", interrupted)
            mail.learn_one({"never": 1}, "z")
        assert mail.n_trials_ == 5 and [*mail.classes_] == ["a", "b", "c"]
        mail.learn_one(*ROWS[5])
        assert is_as_anew(mail, tmp_path)


def test_a_replay_that_is_interrupted_leaves_no_copies(path, tmp_path, monkeypatch, often):
    """They would lack a row that has not been taken back."""
    monkeypatch.setattr(replica, "FEW_ROWS", 4)
    monkeypatch.setattr(replica, "COPIED", 1 << 40)
    learn_block, n_before = replica.Replica._learn_block, iter([2, 1, 0])

    def interrupted(self, *given):
        if not next(n_before):
            raise KeyboardInterrupt
        learn_block(self, *given)

    with Journal(path) as journal:
        mail = journal.open("mail", PA1())
        mail.learn_many((*row, f"m{i}", None) for i, row in enumerate(ROWS))
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(replica.Replica, "_learn_block", interrupted)
            mail.undo("m3")
        mail.learn_one(*ROWS[0])
        mail.undo("m39")
        assert len(given(mail)) == 40 and is_as_anew(mail, tmp_path, PA1)


# ---- other threads ------------------------------------------------------------------------------


def test_predictions_do_not_wait_for_a_thread_that_writes(path):
    with Journal(path) as journal:
        mail = journal.open("mail", make())
        mail.learn_many(ROWS)
        said = []
        with journal._lock:
            reader = threading.Thread(target=lambda: said.append(mail.predict_one(ROWS[0][0])))
            reader.start()
            reader.join(5)
            assert said == [mail.predict_one(ROWS[0][0])]
        reader.join()


# ---- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "reason", "said"),
    [
        (sqlite3.SQLITE_BUSY, "busy", "another process is writing"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "busy", "another process is writing"),
        (sqlite3.SQLITE_LOCKED_SHAREDCACHE, "busy", "the journal is locked"),
        (sqlite3.SQLITE_FULL, "full", "the disk is full"),
        (sqlite3.SQLITE_IOERR_FSYNC, "unusable", "the disk does not read or write"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "unusable", "cannot be written to"),
        (sqlite3.SQLITE_CORRUPT_INDEX, "unusable", "not a journal, or one that is damaged"),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, "unusable", "cannot be read, or is damaged"),
        (None, "unusable", "cannot be read, or is damaged"),
    ],
)
def test_an_error_of_the_database_says_what_to_do(code, reason, said):
    """Extended codes have the kind of error in their last byte."""
    error = sqlite3.ProgrammingError("the cause")
    if code is not None:
        error.sqlite_errorcode = code
    found = sentence_of(error, "desk.db")
    assert found.reason == reason and str(found).startswith("desk.db: ")
    assert said in str(found) and "(the cause)" in str(found)


def files_of(folder):
    return b"".join(each.read_bytes() for each in sorted(folder.iterdir()) if each.is_file())


def test_what_an_interrupted_process_has_left_is_purged_when_it_is_opened(path, monkeypatch):
    journal = Journal(path)
    mail = journal.open("mail", make())
    mail.learn_many([({"plantedword": 1}, "a", "m1", None), *ROWS])
    with monkeypatch.context() as patch, pytest.raises(KeslerError, match="disk"):
        patch.setattr(journal._storage, "purge", _fail)
        mail.forget("m1")
    journal.close()
    assert b"plantedword" in files_of(path.parent) and do(path, "SELECT * FROM state") == [(1,)]
    Journal(path).close()
    assert b"plantedword" not in files_of(path.parent) and do(path, "SELECT * FROM state") == [(0,)]


def test_rows_that_were_taken_back_are_forgotten_with_their_class(path):
    with Journal(path) as journal:
        mail = journal.open("mail", make())
        mail.learn_many([*ROWS[:6], ({"plantedword": 1}, "plantedclass", "m1", None)])
        mail.learn_one({"w": 1}, "plantedclass", id="m2")
        mail.undo("m1")
        assert mail.forget_class("plantedclass").n_rows == 2
        assert mail.find("m1") is None and b"planted" not in files_of(path.parent)


def test_a_backup_that_fails_leaves_no_file(path, tmp_path):
    class Failing:
        """A connection whose disk becomes full while it is copied."""

        def __init__(self, connection):
            self.connection = connection

        def __getattr__(self, name):
            return getattr(self.connection, name)

        def backup(self, copy):
            copy.execute("CREATE TABLE half (x)")
            raise sqlite3.OperationalError("the disk is full")

    with Journal(path) as journal:
        journal._storage._connection = Failing(journal._storage._connection)
        with pytest.raises(JournalError, match="the disk is full"):
            journal.backup(tmp_path / "copy.db")
        assert not (tmp_path / "copy.db").exists()


def test_events_of_an_export_are_numbered_at_random_and_in_order(path):
    """Seals begin with 128 random bits, and ids that nobody gave have 64."""
    with Journal(path) as journal:
        mail = journal.open("mail", make())
        mail.learn_many(ROWS)
        _, *events = map(json.loads, journal.export("mail"))
        nonces, ids = {each["nonce"] for each in events}, {e.id for e in mail.history(None)}
        assert len(nonces) == len(ids) == 40
        assert {len(bytes.fromhex(each)) for each in nonces} == {16}
        assert {len(bytes.fromhex(each)) for each in ids} == {8}


def test_parts_of_a_snapshot_are_joined(path, monkeypatch):
    monkeypatch.setattr(storage, "PART", 7)
    with Journal(path) as journal:
        key = journal.open("mail", make())._key
        for n in (1, 6, 7, 8, 14, 15):
            contents = bytes(range(n))
            journal._storage.add_snapshot(key, storage.Snapshot(n, "digest", "maker"), contents)
            assert journal._storage.contents(key, n) == contents

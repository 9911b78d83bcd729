"""Several changes of a journal at once, and values that are kept beside its history."""

import random
import sqlite3
from ast import literal_eval
from functools import partial

import pytest
from sklearn.base import clone

from kesler import KeslerError, OnlineClassifier
from kesler.durable import Journal
from kesler.durable.storage import VERSION

PA1 = partial(OnlineClassifier, "multi", update="pa1")  # which numbers classes and names
ROWS = [({f"w{i % 7}": 1.0, f"v{i % 3}": 1.0}, "abc"[i % 3]) for i in range(40)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "desk.db"


@pytest.mark.parametrize("make", [OnlineClassifier, PA1])
def test_a_block_is_as_its_changes_one_by_one(make, path, tmp_path, monkeypatch):
    """Random changes in blocks, of which some fail, against the same changes without blocks."""
    monkeypatch.setattr("kesler.durable.replica.LEAST_SPACING", 2)
    monkeypatch.setattr("kesler.durable.replica.COPIED", 1 << 40)
    rng = random.Random(0)
    with Journal(path) as journal, Journal(tmp_path / "one.db") as other:
        mail, plain = (each.open("mail", make()) for each in (journal, other))
        n = 0
        for i in range(24):
            rows = [(*rng.choice(ROWS), f"m{n + i}") for i in range(rng.randint(1, 5))]
            fails, back, renames = (rng.random() < share for share in (0.3, 0.4, 0.4))
            n += 0 if fails else len(rows)

            def change(model, rows=rows, back=back, new=f"new {i}" if renames else ""):
                for x, y, id in rows:
                    model.learn_one(x, y, id=id)
                if back:
                    model.undo(rows[0][2])
                if new and model.n_trials_:
                    model.rename(model.classes_[0], new)
                model.keep("count", len(rows))
                return model.predict_proba_one(rows[0][0]) if model.n_trials_ else None

            if fails:
                with pytest.raises(KeslerError, match="to the winds"), mail.together():
                    change(mail)
                    raise KeslerError("to the winds")
            else:
                with mail.together():
                    found = change(mail)
                assert found == change(plain)
            assert [*mail.classes_] == [*plain.classes_]
            assert mail.n_trials_ == plain.n_trials_ and mail.kept() == plain.kept()
        assert not journal.check() and not other.check()
        if mail.n_trials_:
            assert mail.predict_proba_one(ROWS[0][0]) == plain.predict_proba_one(ROWS[0][0])


def test_a_refused_row_takes_all_of_a_block_back(path):
    with Journal(path) as journal:
        mail = journal.open("mail", OnlineClassifier())
        mail.learn_one({"a": 1.0}, "x", id="first")
        with pytest.raises(KeslerError), mail.together():
            mail.learn_one({"b": 1.0}, "y", id="second")
            mail.keep("seen", 2)
            mail.learn_one([1.0, 2.0], "z", id="third")
        assert mail.n_trials_ == 1 and mail.find("second") is None and mail.kept() == {}
        assert not journal.check()


@pytest.mark.parametrize("named", ["relabel", "merge"])
def test_others_follow_changes_of_names_that_are_removed_with_a_class(path, named, monkeypatch):
    """They go on from a copy of the time before the first row that has changed."""
    monkeypatch.setattr("kesler.durable.replica.LEAST_SPACING", 20)
    rows = [each for each in ROWS * 4 if each[1] != "c"]
    plain = OnlineClassifier("multi", update="pa1")
    expected = clone(plain)
    for i, (x, y) in enumerate(rows):
        expected.learn_one(x, "b" if named == "merge" or i == 0 else y)
    with Journal(path) as journal, Journal(path) as other:
        mail, same = journal.open("mail", plain), other.open("mail", plain)
        for i, (x, y) in enumerate(rows):
            same.learn_one(x, y, id=f"m{i}")
        for x, _ in ROWS[:5]:
            mail.learn_one(x, "c")
        assert [*same.classes_] == ["a", "b", "c"]
        if named == "relabel":
            mail.relabel("m0", "b")
        else:
            mail.merge("a", "b")
        mail.forget_class("c")
        for model in (same, mail):
            assert [*model.classes_] == [*expected.classes_]
            for x, _ in ROWS[:7]:
                assert model.predict_proba_one(x) == expected.predict_proba_one(x)
        assert not other.check()


def test_find_and_predictions_see_the_block_so_far(path):
    with Journal(path) as journal:
        mail = journal.open("mail", OnlineClassifier())
        with mail.together():
            mail.learn_one({"a": 1.0}, "x", id="first")
            assert mail.find("first").answer == "x" and mail.predict_one({"a": 1.0}) == "x"
            mail.relabel("first", "y")
            assert mail.find("first").current == "y" and mail.predict_one({"a": 1.0}) == "y"


def test_a_block_cannot_forget(path):
    with Journal(path) as journal:
        mail = journal.open("mail", OnlineClassifier())
        mail.learn_one({"a": 1.0}, "x", id="first")
        with pytest.raises(KeslerError, match="cannot forget"), mail.together():
            mail.forget("first")
        assert mail.n_trials_ == 1


def test_what_the_learner_refuses_is_refused_at_once(path):
    """Whoever writes a block learns which of its calls was wrong."""
    with Journal(path) as journal:
        mail = journal.open("mail", OnlineClassifier())
        mail.learn_one({"a": 1.0}, "x")
        with pytest.raises(KeslerError, match="which call"), mail.together():
            with pytest.raises(KeslerError):
                mail.learn_one({"b": 1.0}, 3)
            raise KeslerError("which call")
        assert mail.n_trials_ == 1 and [*mail.classes_] == ["x"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_block_follows_what_others_have_written_before_it(path, fails):
    with Journal(path) as journal, Journal(path) as other:
        mail, same = (each.open("mail", OnlineClassifier()) for each in (journal, other))
        for x, y in ROWS[:6]:
            mail.learn_one(x, y)
        same.learn_one({"new": 1.0}, "new")
        try:
            with mail.together():
                mail.merge("new", "a")
                mail.learn_one({"never": 1.0}, "never")
                assert "never" in mail.predict_proba_one(ROWS[0][0])
                if fails:
                    raise KeslerError("to the winds")
        except KeslerError as error:
            assert str(error) == "to the winds"
        assert [*mail.classes_] == (["a", "b", "c", "new"] if fails else ["a", "b", "c", "never"])
        assert mail.n_trials_ == same.n_trials_ == 8 - fails
        assert not journal.check() and not other.check()


def test_values_are_kept_by_name(path):
    with Journal(path) as journal:
        mail, desk = (journal.open(name, OnlineClassifier()) for name in ("mail", "desk"))
        for name in ("a/1", "a/2", "a", "b", "a%", "ä"):
            mail.keep(name, {"name": name, "list": [1, None, 2.5]})
        desk.keep("a/1", "other")
        mail.keep("a/2", None)
        mail.keep("b", "new")
    with Journal(path) as journal:
        mail = journal.open("mail")
        assert mail.kept("a/") == {"a/1": {"name": "a/1", "list": [1, None, 2.5]}}
        assert mail.kept("b") == {"b": "new"} and len(mail.kept()) == 5
        journal.delete("mail")
        assert journal.open("desk").kept() == {"a/1": "other"}
        with pytest.raises(KeslerError, match="cannot be kept"):
            journal.open("desk").keep("x", {1, 2})


def test_a_journal_of_the_version_before_is_upgraded(path):
    with Journal(path) as journal:
        journal.open("mail", OnlineClassifier()).learn_one({"a": 1.0}, "x")
        digests = journal.digests()
    database = sqlite3.connect(path)
    database.executescript("DROP TABLE kept; PRAGMA user_version = 3;")
    database.close()
    with Journal(path) as journal:
        assert journal.digests() == digests and not journal.check()
        journal.open("mail").keep("a", 1)
        assert journal.open("mail").kept() == {"a": 1}
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (VERSION,)


def test_what_others_have_done_since_an_event(tmp_path):
    path = tmp_path / "desk.db"
    with Journal(path) as journal, Journal(path) as second:
        assert journal.path == str(path)
        mail, other = (each.open("mail", OnlineClassifier()) for each in (journal, second))
        assert mail.since(0) == []
        first = mail.learn_one("win cash", "spam", id="a", by="ann")
        other.learn_one("team lunch", "work", id="b")
        other.undo("a", event="c", by="bob")
        everything = mail.history(None)[::-1]
        assert mail.since(0) == everything and [e.id for e in everything] == ["a", "b", "c"]
        for number in range(first.number - 1, everything[-1].number + 1):
            for by in ("ann", "bob", "carl", None):
                expected = [e for e in everything if e.number > number and (not by or e.by != by)]
                assert mail.since(number, but_by=by) == expected


class Watched:
    """The lock of a journal, which knows how often it is held."""

    def __init__(self, lock):
        self.lock, self.depth = lock, 0

    def acquire(self, blocking=True):
        is_held = self.lock.acquire(blocking)
        self.depth += is_held
        return is_held

    def release(self):
        self.depth -= 1
        self.lock.release()

    def __enter__(self):
        self.acquire()

    def __exit__(self, *error):
        self.release()


class Guarded:
    """The connection of a journal, which is to be used under its lock."""

    def __init__(self, connection, lock):
        vars(self).update(connection=connection, lock=lock)

    def __getattr__(self, name):
        assert self.lock.depth, f"{name} is used without the lock"
        return getattr(self.connection, name)

    def __setattr__(self, name, value):
        assert self.lock.depth, f"{name} is set without the lock"
        setattr(self.connection, name, value)


def test_the_database_is_used_by_one_thread_at_a_time(path, tmp_path):
    with Journal(path) as journal:
        journal._lock = Watched(journal._lock)
        journal._storage._connection = Guarded(journal._storage._connection, journal._lock)
        mail, gone = (journal.open(name, OnlineClassifier()) for name in ("mail", "gone"))
        gone.learn_one({"a": 1.0}, "x")
        for i, row in enumerate(ROWS):
            mail.learn_one(*row, id=f"m{i}", subject="ann" if i % 9 == 1 else None)
        mail.undo("m3")
        mail.undo_many(["m4", "m5"])
        mail.relabel("m6", "b")
        mail.rename("c", "d")
        mail.merge("d", "b")
        mail.keep("seen", 1)
        with mail.together():
            mail.learn_one({"b": 1.0}, "a")
        mail.forget("m7")
        mail.forget_subject("ann")
        mail.forget_class("b")
        assert mail.predict_one({"a": 1.0}) == "a" and mail.n_trials_ > 5
        assert len(mail.history()) == 18 and [*mail.remaining()] and mail.find("m0").id == "m0"
        assert mail.kept() == {"seen": 1} and len([*journal.export("mail")]) > 20
        journal.delete("gone")
        journal.purge()
        journal.backup(tmp_path / "copy.db")
        assert journal.models() == [*journal.digests()] == ["mail"]
        assert journal.check() == journal.verify() == []
        mail.copy()
        mail.save(tmp_path / "model")


def test_a_row_is_taken_back_with_its_relabels(path):
    with Journal(path) as journal:
        mail = journal.open("mail", OnlineClassifier(update="pa1"))
        for number, answer in enumerate(("spam", "work")):
            mail.learn_one(f"row {number}", answer, id=f"row{number}")
        changed = mail.relabel("row0", "work", event="changed")
        gone = mail.undo("row0")
        holds = {each.id: not each.taken_back for each in mail.history(3)}
        assert holds == {gone.id: True, "changed": False, "row1": True}
        assert mail.find("changed").taken_back and mail.since(changed.number - 1)[0].taken_back
        again = mail.undo("changed")
        assert (again.id, again.changed) == (gone.id, False)
        mail.undo(gone.id)
        assert not mail.find("changed").taken_back and mail.find("row0").current == "work"
        mail.undo("changed")
        assert mail.find("row0").current == "spam"


# ---- kinds of columns ---------------------------------------------------------------------------


def tickets(n):
    """Yield tickets whose bodies are short texts but for the last, by which their mean is long."""
    for number in range(n - 1):
        body = " ".join([f"printer {number} has no ink"] * 10)
        yield {"title": f"printer {number} prints no pages", "body": body[:198]}
    yield {"title": "cannot log in since today", "body": ("I tried it from home " * 20)[:400]}


@pytest.mark.parametrize("n", [20, 49, 51])
@pytest.mark.parametrize("way", ["undo", "undo_many", "forget", "forget_subject", "together"])
def test_a_correction_says_which_columns_are_of_another_kind(tmp_path, n, way):
    rows = [*tickets(n)]
    given = [(row, "ab"[i % 2], f"t{i}", f"s{i}") for i, row in enumerate([rows[-1], *rows[:-1]])]
    with Journal(tmp_path / "desk.db") as journal:
        desk = journal.open("desk", OnlineClassifier(update="pa1"))
        assert not any(receipt.kinds for receipt in desk.learn_many(given))
        body, scores = desk.estimator.schema_["body"], desk.estimator.decision_function(rows)
        assert desk.relabel("t1", "a").kinds == () == desk.undo("t2").kinds
        if way == "together":
            with desk.together():
                receipt = desk.undo("t0")
        else:
            ids = {"undo_many": ["t0"], "forget_subject": "s0"}
            found = getattr(desk, way)(ids.get(way, "t0"))
            receipt = found[0] if way == "undo_many" else found
        remaining = [(each.row, each.current) for each in desk.remaining()]
        anew = OnlineClassifier(update="pa1").partial_fit(*map(list, zip(*remaining, strict=True)))
        now = anew.schema_["body"]
        assert (body.options, dict(now.options)) == (
            {"beginning": True},
            {"ngrams": 2, "chars": (4, 4)},
        )
        (said,) = receipt.kinds
        assert (
            "'body' is text (ngrams=2, chars=(4, 4)) now, no longer text (beginning=True)," in said
        )
        advised = literal_eval(said.partition(": columns=")[2])
        kept = journal.open("kept", OnlineClassifier(update="pa1", columns=advised))
        kept.learn_many(given)
        assert (kept.estimator.decision_function(rows) == scores).all()
        assert kept.undo("t0").kinds == ()


def test_a_sign_of_decimals_is_kept_by_the_advice(path):
    """The row taken back is the only one that tells a sign of decimals from one of thousands."""
    cells = ["1234.5", *["1.234", "7", "3.567", "8"] * 6]
    given = [({"size": cell, "place": "abc"[i % 3]}, "xy"[i % 2], f"r{i}", None)
             for i, cell in enumerate(cells)]  # fmt: skip
    with Journal(path) as journal:
        desk = journal.open("desk", OnlineClassifier(update="pa1"))
        desk.learn_many(given)
        scores = desk.estimator.decision_function([row for row, *_ in given])
        (said,) = desk.undo("r0").kinds
        assert said.startswith("column 'size' is number (decimal=,) now, no longer number,")
        advised = literal_eval(said.partition(": columns=")[2])
        kept = journal.open("kept", OnlineClassifier(update="pa1", columns=advised))
        kept.learn_many(given)
        assert (kept.estimator.decision_function([row for row, *_ in given]) == scores).all()
        assert kept.undo("r0").kinds == ()


def test_a_column_that_only_the_row_had_is_said_to_be_gone(path):
    rows = [{"body": "in the office " * 20, "size": i % 5} for i in range(60)]
    rows[2] |= {"note": "blue", "key": "blue"}
    rows[58] |= {"late": "red"}
    with Journal(path) as journal:
        columns = {"key": "ignore"}
        desk = journal.open("desk", OnlineClassifier(update="pa1", columns=columns))
        desk.learn_many([(row, "ab"[i % 2], f"r{i}", None) for i, row in enumerate(rows)])
        first, late = desk.undo("r2"), desk.undo("r58")
        (said,) = first.kinds
        assert said == "column 'note' is not learnt any more, since no row has a cell in it now"
        assert late.kinds == (said.replace("note", "late"),)
        assert desk.undo("r3").kinds == desk.undo(late.id).kinds == ()


def test_a_table_without_rows_has_no_kinds_of_columns(path):
    with Journal(path) as journal:
        desk = journal.open("desk", OnlineClassifier())
        desk.learn_one({"size": 3, "place": "home"}, "x", id="r0")
        gone = desk.undo("r0")
        assert gone.changed and gone.kinds == () and desk.n_trials_ == 0
        back = desk.undo(gone.id)
        assert back.changed and back.kinds == () and desk.n_trials_ == 1

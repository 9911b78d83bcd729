"""kesler undo: answers of a journal are taken back, and listed."""

from __future__ import annotations

import itertools

import pytest

from commands import kesler, refused, write_journal
from kesler import OnlineClassifier
from kesler.durable import Journal


@pytest.fixture
def database(tmp_path):
    return write_journal(tmp_path / "desk.db")


def test_answers_are_taken_back_and_valid_again(database, capsys):
    done = kesler(capsys, "undo", database, "m2")
    assert done.lines == ["taken back: m2, which was learnt as 'work'"]
    assert kesler(capsys, "undo", database, "m2").lines == ["had been taken back before: m2"]
    with Journal(database) as journal:
        assert journal.open("mail").classes_.tolist() == ["spam"]
        undo = journal.open("mail").history(1)[0].id
    kesler(capsys, "undo", database, undo, "--model", "mail")
    with Journal(database) as journal:
        assert journal.open("mail").classes_.tolist() == ["spam", "work"]


def test_options_may_be_anywhere(database, capsys):
    orders = itertools.permutations(["m1", "m2", ("--model", "mail"), ("-n", "3")])
    for order in orders:
        given = [word for each in order for word in ([each] if isinstance(each, str) else each)]
        done = kesler(capsys, "undo", database, *given)
        assert [line.split(",")[0].split(": ")[1] for line in done.lines] == [
            each for each in order if isinstance(each, str)
        ]
    assert "no event '--model'" in kesler(capsys, "undo", database, "--", "--model").err
    assert "no event '--model'" in kesler(capsys, "undo", "--", database, "--model").err


def test_the_answer_that_a_row_had_is_said(database, capsys):
    with Journal(database) as journal:
        journal.open("mail").relabel("m2", "spam")
    done = kesler(capsys, "undo", database, "m2")
    assert done.lines == ["taken back: m2, which was learnt as 'spam'"]


def test_what_an_event_did_is_said(database, capsys):
    with Journal(database) as journal:
        mail = journal.open("mail")
        mail.relabel("m2", "spam", event="e1")
        mail.undo("e1", event="e2")
        mail.rename("work", "team", event="e3")
        mail.merge("team", "spam", event="e4")
    assert kesler(capsys, "undo", database, "e4", "e3", "e2", "e1").lines == [
        "taken back: e4, which merged 'team' into 'spam'",
        "taken back: e3, which renamed 'work' to 'team'",
        "taken back: e2, which took back e1",
        "taken back: e1, which changed the answer of m2 to 'spam'",
    ]


def test_columns_of_another_kind_are_said(tmp_path, capsys):
    """Without the long body, the mean of the others is that of short texts."""
    bodies = ["I tried it from home " * 100] + [f"printer {i} has no ink " * 6 for i in range(20)]
    rows = [
        ({"body": body, "hours": 3}, "ab"[i % 2], f"m{i}", None) for i, body in enumerate(bodies)
    ]
    with Journal(tmp_path / "desk.db") as journal:
        journal.open("desk", OnlineClassifier(update="pa1")).learn_many(rows)
    assert not kesler(capsys, "undo", tmp_path / "desk.db", "m3").err
    done = kesler(capsys, "undo", tmp_path / "desk.db", "m0")
    assert done.err.startswith("kesler: column 'body' is text (ngrams=2, chars=(4, 4)) now")
    assert "columns={'body': {'kind': 'text', 'beginning': True}}" in done.err


def test_the_last_events_are_listed(database, capsys):
    kesler(capsys, "undo", database, "m1")
    cells = [line.split("\t") for line in kesler(capsys, "undo", database).lines]
    assert [each[1] for each in cells] == ["undo", "learn", "learn"]
    assert cells[2][2:] == ["m1", "'spam'", "'win cash'", "taken back"]
    assert cells[0][4] == "took back m1"
    assert len(kesler(capsys, "undo", database, "-n", "1").lines) == 1


def test_what_cannot_be_taken_back_is_a_sentence(database, capsys, tmp_path):
    refused(kesler(capsys, "undo", database, "m9"), "m9", "without an ID, the last events", "-n")
    refused(kesler(capsys, "undo", tmp_path / "nowhere.db"), "nowhere.db")
    empty, other = tmp_path / "empty.db", tmp_path / "other.db"
    empty.touch()
    refused(kesler(capsys, "undo", empty), "empty.db is empty: give the file of a journal")
    assert empty.stat().st_size == 0
    other.write_text("no database")
    assert "check()" not in kesler(capsys, "undo", other).err
    with Journal(database) as journal:
        journal.open("desk", OnlineClassifier())
    refused(kesler(capsys, "undo", database), "desk, mail", "--model")

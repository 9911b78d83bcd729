"""kesler journal: chains are verified and exported."""

import json
import sqlite3
from contextlib import closing

import pytest

from commands import kesler, refused, write_journal
from kesler import OnlineClassifier
from kesler.durable import Journal


@pytest.fixture
def database(tmp_path):
    return write_journal(tmp_path / "desk.db")


def test_chains_that_fit_are_listed_with_their_digests(database, capsys):
    with Journal(database) as journal:
        journal.open("desk", OnlineClassifier())
        digests = journal.digests()
    lines = kesler(capsys, "journal", "verify", database).lines
    assert lines == [f"{n}: all events fit; the last digest is {d}" for n, d in digests.items()]


def test_an_event_that_does_not_fit_is_an_error(database, capsys):
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE rows SET row = '\"win\"' WHERE number = 1")
    refused(kesler(capsys, "journal", "verify", database), "'mail'", "event 1 (learn 'm1')")


def test_the_export_is_that_of_the_journal(database, capsys):
    lines = kesler(capsys, "journal", "export", database).lines
    with Journal(database) as journal:
        assert lines == [*journal.export("mail")]
        journal.open("desk", OnlineClassifier())
    said, row = json.loads(lines[2])["content"].split("\n")
    assert (json.loads(said)["id"], json.loads(row)) == ("m2", "team lünch")
    refused(kesler(capsys, "journal", "export", database), "desk, mail", "--model")
    assert kesler(capsys, "journal", "export", database, "--model", "mail").lines == lines
    refused(kesler(capsys, "journal", "export", database, "--model", "post"), "desk, mail")


def test_what_is_no_journal_is_a_sentence(capsys, tmp_path):
    (tmp_path / "empty.db").touch()
    refused(kesler(capsys, "journal", "verify", tmp_path / "nowhere.db"), "is no file")
    refused(kesler(capsys, "journal", "verify", tmp_path / "empty.db"), "is empty")

"""What is known of a mailbox, and kept beside the history of its model."""

import random
from email import message_from_string

import pytest

from kesler import KeslerError, OnlineClassifier
from kesler.durable import Journal
from kesler.mail.known import LATEST, MOST_FILED, ChangedError, Known, Status
from kesler.mail.state import Folder, Record
from kesler.mail.threads import MOST_KEYS, Threads, keys_of


@pytest.fixture
def model(tmp_path):
    with Journal(tmp_path / "mail.db") as journal:
        yield journal.open("ann", OnlineClassifier())


def keys(number, subject):
    return keys_of(
        message_from_string(f"Message-ID: <{number}@a>\nFrom: {number}@b\nSubject: {subject}\n\n")
    )


def test_threads_are_kept_with_the_order_in_which_they_were_filed(model):
    known, expected = Known(model), Threads()
    for number, folder in enumerate(["Bills", "Team", "Bills", "Work"] * 5):
        known.file(keys(number % 7, f"subject {number % 3}"), folder)
        expected.learn(keys(number % 7, f"subject {number % 3}"), folder)
    again = Known(model)
    # Keys of one message have no order among themselves.
    assert again.threads.folders == known.threads.folders == expected.folders
    again.threads = Threads(again.threads.folders, most=2)
    again.file(keys(9, "new"), "Team")
    assert Known(model).threads.folders == again.threads.folders
    assert len(again.threads.folders) == 2 < MOST_KEYS


def test_threads_follow_folders_that_are_renamed_or_forgotten(model):
    known = Known(model)
    known.file(keys(1, "invoice"), "Bills")
    known.file(keys(2, "lunch"), "Team")
    before = {"Bills": Folder(1, {1: "<1@a>"}), "Team": Folder(2, {1: "<2@a>"})}
    known.observe(before, dict.fromkeys(before, Status(1)), predict=False)
    after = {"Invoices": before["Bills"], "Team": before["Team"]}
    statuses = dict.fromkeys(after, Status(1))
    assert known.observe(after, statuses, predict=False) == {"Bills": "Invoices"}
    for each in (known, Known(model)):
        assert each.threads.found(keys(3, "Re: invoice")) == {"thread": "Invoices"}
    known.forget("Invoices")
    for each in (known, Known(model)):
        assert each.threads.found(keys(3, "Re: invoice")) == {}
        assert each.threads.found(keys(3, "Re: lunch")) == {"thread": "Team"}


def test_what_is_kept_of_threads_holds_no_word_of_a_message(model, tmp_path):
    Known(model).file(keys(1, "plantedword"), "Bills")
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"thread/" in stored and b"plantedword" not in stored and b"1@b" not in stored


@pytest.mark.parametrize("seed", range(4))
def test_what_is_taken_back_of_threads_was_never_there(model, seed, monkeypatch):
    """Against threads that learn what is left anew: filed, filed again elsewhere, taken back."""
    monkeypatch.setattr("kesler.mail.known.MOST_FILED", 100)
    rng, known = random.Random(seed), Known(model)
    left: dict[int, tuple[int, str]] = {}  # the number of each message, and its folder, in order
    filed = dict.fromkeys(range(8), 0)
    for _ in range(60):
        number = rng.randrange(8)
        if filed[number] and rng.random() < 0.4:
            known.take_back([f"message {number}"])
            filed[number] = 0
            del left[number]
        else:
            folder = rng.choice(["Bills", "Team", "Work"])
            filed[number] = known.file(keys(number, f"s{number % 3}"), folder, filed[number])
            known.update({f"message {number}": Record(filed=filed[number])})
            left.pop(number, None)
            left[number] = (number, folder)
        expected = Threads()
        for each, folder in left.values():
            expected.learn(keys(each, f"s{each % 3}"), folder)
        assert known.threads.folders == expected.folders
        if rng.random() < 0.2:
            known = Known(model)
            assert known.threads.folders == expected.folders


def test_few_messages_of_each_thread_are_kept(model):
    known = Known(model)
    for n in range(MOST_FILED + 2):
        known.update({f"{n}": Record(filed=known.file(keys(n, "lunch"), f"folder {n}"))})
    for n in reversed(range(2, MOST_FILED + 2)):
        assert known.threads.found(keys(99, "lunch"))["thread"] == f"folder {n}"
        known.take_back([f"{n}"])
    assert known.threads.found(keys(99, "lunch")) == {}
    assert not [each for each in model.kept("thread/").values() if len(each) > 2 * MOST_FILED]


def test_what_was_kept_of_threads_before_there_were_several_is_read(model):
    known = Known(model)
    known.file(keys(1, "lunch"), "Team")
    assert {len(value) for value in model.kept("thread/").values()} == {2}  # as it was then


def test_what_a_later_version_has_written_is_refused(model):
    """Also by a process that runs while the program is updated."""
    running, updated = Known(model), Known(model)
    assert model.kept("format") == {}  # nothing is written before there is a change
    updated.file(keys(1, "lunch"), "Team")
    assert model.kept("format") == {"format": LATEST}
    Known(model).file(keys(2, "invoice"), "Bills")
    assert {*Known(model).threads.folders.values()} == {"Team", "Bills"}
    model.keep("format", LATEST + 1)
    with pytest.raises(ChangedError):
        running.file(keys(3, "lunch"), "Team")
    with pytest.raises(KeslerError, match=rf"newer Kesler \(form {LATEST + 1}.*update Kesler"):
        Known(model)


def test_what_an_earlier_version_has_written_is_read(model):
    """Records were shorter, and there was no number of the form."""
    model.keep("message/<1@a>", ["Team", False, None, "<1@a>", 1, "Bills", 0.5, "Team"])
    model.keep("status/Team", [1, 2, 1, 0])
    model.keep("place/Team/1", "<1@a>")
    known = Known(model)
    assert known.records["<1@a>"].answer == "Team" and known.records["<1@a>"].filed == 0
    assert known.mailbox == {"Team": Folder(1, {1: "<1@a>"})}

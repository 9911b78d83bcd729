"""A sorter of mail and a second make of server: the laws of `test_mail_sorter.py` against Cyrus."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

pytest.importorskip("imapclient", reason="needs the extra mail")

import test_mail_sorter
from cyrus import Cyrus, needs_cyrus
from mailserver import PASSWORD

AGAIN = (
    "test_a_move_at_the_same_moment_is_the_person_s",
    "test_copies_duplicates_and_expunges_are_learnt_once",
    "test_each_move_is_learnt_and_mistakes_are_those_of_progressive_validation",
    "test_folders_are_learnt_in_the_order_of_dates",
    "test_moves_to_folders_that_are_never_touched_are_no_answer",
    "test_new_renamed_and_deleted_folders",
    "test_nothing_is_changed_by_default",
    "test_sure_messages_are_moved_which_is_no_answer",
    "test_sure_messages_get_a_keyword",
    "test_the_mail_of_enron_is_filed_as_by_progressive_validation",
    "test_what_changes_in_the_folder_that_is_open_is_noticed",
    "test_what_has_changed_is_found_as_by_a_search",
    "test_what_was_moved_is_moved_back",
)
globals().update({name: getattr(test_mail_sorter, name) for name in ("mailbox", *AGAIN)})

pytestmark = needs_cyrus


@pytest.fixture(params=["imap"])
def kind(request):
    """How the sorter sees the mailbox: Cyrus keeps none as a Maildir."""
    return request.param


@pytest.fixture(scope="module")
def dovecot():
    """The server, under the name that the tests know."""
    with TemporaryDirectory(prefix="cy") as folder, Cyrus(Path(folder)) as server:
        yield server


@pytest.fixture(autouse=True)
def password(monkeypatch):
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)


def test_it_offers_what_it_is_tested_for(mailbox):
    """Its extensions are its own: those that are used are on here."""
    client = mailbox.server._client
    assert all(map(client.has_capability, ("MOVE", "UIDPLUS", "CONDSTORE", "IDLE")))
    assert mailbox.server._can_resync and "Cyrus" in client.welcome.decode()

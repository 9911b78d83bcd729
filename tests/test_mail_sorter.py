"""A sorter of mail and a real server: what a person does is learnt, and what is new is filed."""

import os
import random
import tarfile
from email import message_from_bytes
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from kesler import OnlineClassifier, progressive_validate
from kesler.durable import Journal
from kesler.readers.mail.index import timestamp_of
from mailserver import PASSWORD, Dovecot, Person, message, needs_dovecot

pytest.importorskip("imapclient", reason="needs the extra mail")

from kesler.cli.mail import connected
from kesler.mail.imap import LoginError, Server
from kesler.mail.messages import row_of
from kesler.mail.server import ServerError
from kesler.mail.settings import MailSettings, read_settings
from kesler.mail.sorter import Sorter
from kesler.mail.state import Folder
from kesler.mail.threads import Threads, keys_of

WORDS = {
    "Bills": ["invoice", "payment", "due", "account", "euro"],
    "Team": ["lunch", "meeting", "agenda", "minutes", "room"],
    "Work": ["report", "draft", "review", "deadline", "figures"],
}


pytestmark = needs_dovecot


@pytest.fixture(scope="module")
def dovecot():
    with TemporaryDirectory(prefix="dc") as folder, Dovecot(Path(folder)) as server:
        yield server


@pytest.fixture(autouse=True)
def password(monkeypatch):
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)


@pytest.fixture(params=["imap", "maildir"])
def kind(request):
    """How the sorter sees the mailbox; the person uses the server in any case."""
    return request.param


only_imap = pytest.mark.parametrize("kind", ["imap"], indirect=True)


@pytest.fixture
def mailbox(dovecot, tmp_path, request, kind):
    """A person with three folders, and a sorter that has looked at them."""
    user = f"u{abs(hash(request.node.name)) % 10**9}"
    given = getattr(request, "param", {})
    settings = read_settings(str(dovecot.settings(tmp_path / "mail.toml", user, **given)))
    with Person(dovecot, user) as person:
        person.create(*WORDS)
        if kind == "maildir":
            for name in ("Trash", "Ablage"):
                person.numbers(name)  # which makes their directories
            own = {"maildir": str(dovecot.root / "mail" / user), "never": ["Trash", "Ablage"]}
            settings = MailSettings(given | own)
        with Journal(tmp_path / "mail.db") as journal:
            sorter = Sorter(journal, settings)
            with connected(settings) as server:
                yield Mailbox(dovecot, user, person, sorter, server, journal)


class Mailbox:
    def __init__(self, dovecot, user, person, sorter, server, journal):
        self.dovecot, self.user, self.person = dovecot, user, person
        self.sorter, self.server, self.journal = sorter, server, journal

    def deliver(self, number, words, **options):
        self.dovecot.deliver(self.user, message(number, words, **options))
        return options.get("id") or f"<{number}@example.org>"

    def look(self, **options):
        return [(each.what, each.identity, each.folder)
                for each in self.sorter.look(self.server, **options)]  # fmt: skip

    def answers(self):
        return [(event.id, event.current) for event in self.sorter.model.remaining()]

    def teach(self, n=40, seed=0):
        """Put messages into folders, and learn them."""
        for number, folder, words in stream(n, seed):
            self.person.append(folder, message(1000 + number, words))
        self.look(predict=False)


def stream(n, seed=0):
    rng = random.Random(seed)
    for number in range(n):
        folder = rng.choice([*WORDS])
        yield number, folder, " ".join(rng.choices(WORDS[folder], k=4))


def test_each_move_is_learnt_and_mistakes_are_those_of_progressive_validation(mailbox):
    mailbox.look(predict=False)
    rows, folders, guesses, threads = [], [], [], Threads()
    for number, folder, words in stream(30):
        identity = mailbox.deliver(number, words)
        found = mailbox.look()
        guesses += [each[2] for each in found if each[0] == "suggested"] or [None]
        (body,) = mailbox.person.bodies("INBOX")
        rows.append(row_of(body, threads))
        threads.learn(keys_of(message_from_bytes(body)), folder)
        folders.append(folder)
        mailbox.person.move(identity, "INBOX", folder, in_two_steps=number % 2 == 0)
        assert mailbox.look() == [("learnt", identity, folder)]
        assert mailbox.look() == []
    wrong = np.array([guess != folder for guess, folder in zip(guesses, folders, strict=True)])
    result = progressive_validate(OnlineClassifier(), rows, folders)
    first = {folder: folders.index(folder) for folder in WORDS}
    wrong[[*first.values()]] = False  # the first message of a class is no mistake
    assert wrong.sum() == result.n_mistakes
    assert mailbox.answers() == [(f"<{i}@example.org>", f) for i, f in enumerate(folders)]


@only_imap
@pytest.mark.data
@pytest.mark.skipif("KESLER_DATA" not in os.environ, reason="needs the mail of KESLER_DATA")
@pytest.mark.parametrize("user", ["sanders-r", "williams-w3"])
def test_the_mail_of_enron_is_filed_as_by_progressive_validation(mailbox, user):
    """KESLER_MAIL messages of each user, 60 if it is not set, are delivered and moved."""
    mails = enron(user)[: int(os.environ.get("KESLER_MAIL", "60"))]
    for folder in sorted({folder for folder, _ in mails}):
        mailbox.person.create(f"of {folder}")
    mailbox.look(predict=False)
    rows, guesses, sent, threads = [], [], [], Threads()
    for folder, body in mails:
        mailbox.dovecot.deliver(mailbox.user, body)
        found = mailbox.look()
        guesses += [each[2] for each in found if each[0] == "suggested"] or [None]
        sent += mailbox.person.bodies("INBOX")
        rows.append(row_of(sent[-1], threads))
        threads.learn(keys_of(message_from_bytes(sent[-1])), f"of {folder}")
        (number,) = mailbox.person.numbers("INBOX")
        mailbox.person._do("uid", "MOVE", number, f'"of {folder}"')
        assert [each[0] for each in mailbox.look()] == ["learnt"]
    folders = [f"of {folder}" for folder, _ in mails]
    result = progressive_validate(OnlineClassifier(), rows, folders)
    seen = [folder in folders[:i] for i, folder in enumerate(folders)]
    pairs = zip(guesses, folders, seen, strict=True)
    n_mistakes = sum(guess != folder for guess, folder, is_known in pairs if is_known)
    assert n_mistakes == result.n_mistakes
    print(f"{user}: {n_mistakes} mistakes in {len(mails)} messages")
    kept = [body for name in {*folders} for body in mailbox.person.bodies(name)]
    assert sorted(kept) == sorted(sent) and mailbox.person.numbers("INBOX") == []


def enron(user):
    """Return the folders and the messages of a user in the order of dates."""
    found = []
    with tarfile.open(Path(os.environ["KESLER_DATA"], "enron_raw", f"{user}.tar.gz")) as archive:
        for each in archive:
            if each.isfile():
                body = archive.extractfile(each).read()
                date = timestamp_of(body.partition(b"\r\n\r\n")[0], undated=0)
                found.append((date, each.name, each.name.split("/")[-2], body))
    return [(folder, body) for _, _, folder, body in sorted(found)]


def test_folders_are_learnt_in_the_order_of_dates(mailbox):
    given = [*stream(40)]
    random.Random(1).shuffle(given)
    for number, folder, words in given:
        mailbox.person.append(folder, message(number, words))
    mailbox.deliver(99, "in the inbox before")
    found = mailbox.look(predict=False)
    assert [identity for _, identity, _ in found] == [f"<{i}@example.org>" for i in range(40)]
    assert mailbox.look() == [] and len(mailbox.answers()) == 40


@pytest.mark.parametrize("mailbox", [{"action": "move", "error": 0.1}], indirect=True)
def test_sure_messages_are_moved_which_is_no_answer(mailbox):
    mailbox.teach(60)
    assert isfinite(mailbox.sorter.filing.threshold)
    n = len(mailbox.answers())
    identity = mailbox.deliver(1, "invoice payment due euro account")
    assert mailbox.look() == [("suggested", identity, "Bills"), ("moved", identity, "Bills")]
    assert mailbox.look() == [] and len(mailbox.answers()) == n
    assert mailbox.person.numbers("INBOX") == []
    mailbox.person.move(identity, "Bills", "Team")  # a correction
    assert mailbox.look() == [("learnt", identity, "Team")]
    mailbox.person.move(identity, "Team", "INBOX")
    assert mailbox.look() == []  # it is not filed again
    mailbox.person.move(identity, "INBOX", "Work")
    assert mailbox.look() == [("learnt", identity, "Work")]
    assert mailbox.answers()[n:] == [(identity, "Work")]


@pytest.mark.parametrize("mailbox", [{"action": "move", "error": 0.1}], indirect=True)
def test_a_move_at_the_same_moment_is_the_person_s(mailbox):
    """Some servers then have a message in both folders."""
    mailbox.teach(60)
    identity = mailbox.deliver(1, "invoice payment due euro account")
    mailbox.person.copy(identity, "INBOX", "Trash")
    mailbox.look()
    mailbox.person.move(identity, "Trash", "Team")
    assert mailbox.look() == [("learnt", identity, "Team")]


@pytest.mark.parametrize("mailbox", [{"action": "move", "error": 0.1}], indirect=True)
def test_a_dry_run_does_not_move_what_was_due(mailbox):
    mailbox.teach(60)
    identity = mailbox.deliver(1, "invoice payment due euro account")
    looked = mailbox.sorter.look(mailbox.server)
    assert next(looked)[:2] == ("suggested", identity)
    assert mailbox.sorter.known.records[identity].due == "move"
    values = mailbox.sorter.settings.values | {"action": "nothing"}
    mailbox.sorter.settings = MailSettings(values, mailbox.sorter.settings.folder)
    assert mailbox.look() == [] and len(mailbox.person.numbers("INBOX")) == 1
    mailbox.person.move(identity, "INBOX", "Bills")
    assert mailbox.look() == [("learnt", identity, "Bills")]


@pytest.mark.parametrize("mailbox", [{"action": "move", "error": 0.1}], indirect=True)
def test_what_was_moved_is_moved_back(mailbox):
    mailbox.teach(60)
    identity = mailbox.deliver(1, "invoice payment due euro account")
    mailbox.look()
    mailbox.look()
    mailbox.sorter.undo(identity)
    assert mailbox.look() == [("taken back", identity, "INBOX")]
    assert mailbox.look() == [] and len(mailbox.person.numbers("INBOX")) == 1
    mailbox.person.move(identity, "INBOX", "Bills")
    assert mailbox.look() == [("learnt", identity, "Bills")]
    n = len(mailbox.answers())
    mailbox.sorter.undo(identity)
    assert mailbox.look() == [] and len(mailbox.answers()) == n - 1
    assert not mailbox.journal.check()


@only_imap
@pytest.mark.parametrize("mailbox", [{"action": "keyword", "error": 0.1}], indirect=True)
def test_sure_messages_get_a_keyword(mailbox):
    mailbox.teach(60)
    identity = mailbox.deliver(1, "invoice payment due euro account")
    assert ("marked", identity, "Bills") in mailbox.look()
    assert "kesler:Bills" in mailbox.person.flags(identity, "INBOX")
    assert mailbox.look() == []


def test_nothing_is_changed_by_default(mailbox):
    mailbox.teach(60)
    identity = mailbox.deliver(1, "invoice payment due euro account")
    assert mailbox.look() == [("suggested", identity, "Bills")]
    assert mailbox.look() == [] and mailbox.person.flags(identity, "INBOX").count("kesler") == 0


def test_moves_to_folders_that_are_never_touched_are_no_answer(mailbox):
    one = mailbox.deliver(1, "lunch")
    mailbox.look()
    mailbox.person.move(one, "INBOX", "Trash")
    assert mailbox.look() == []
    mailbox.person.rename("Ablage", "Altes")  # still never touched
    mailbox.person.append("Altes", message(2, "old"))
    assert mailbox.look() == []
    mailbox.person.move(one, "Trash", "Team")
    assert mailbox.look() == [("learnt", one, "Team")]


def test_new_renamed_and_deleted_folders(mailbox):
    mailbox.teach(9)
    n = len(mailbox.answers())
    mailbox.person.create("Größe &- [x]".encode("ascii", "ignore").decode() + "&AOQ-/Sub")
    one = mailbox.deliver(1, "new things")
    mailbox.look()
    mailbox.person.move(one, "INBOX", "Gre &- [x]&AOQ-/Sub")
    assert mailbox.look() == [("learnt", one, "Gre & [x]ä/Sub")]
    mailbox.person.rename("Gre &- [x]&AOQ-/Sub", "Plain")
    assert mailbox.look() == []
    assert dict(mailbox.answers())[one] == "Plain" and len(mailbox.answers()) == n + 1
    mailbox.person.delete("Work")
    assert mailbox.look() == []
    assert "Work" in mailbox.sorter.model.classes_ and "Work" not in mailbox.sorter.known.classes


@pytest.mark.parametrize("mailbox", [{"deleted": "forget"}], indirect=True)
def test_a_deleted_folder_is_forgotten_if_that_is_wanted(mailbox):
    mailbox.teach(20)
    mailbox.person.delete("Work")
    assert mailbox.look() == []
    assert mailbox.sorter.model.classes_.tolist() == ["Bills", "Team"]
    assert not mailbox.journal.check()


def test_copies_duplicates_and_expunges_are_learnt_once(mailbox):
    one = mailbox.deliver(1, "lunch")
    mailbox.look()
    mailbox.person.copy(one, "INBOX", "Team")
    assert mailbox.look() == [("learnt", one, "Team")]
    mailbox.person.copy(one, "Team", "Work")
    mailbox.deliver(1, "lunch")  # the same message again
    assert mailbox.look() == []
    mailbox.person.expunge(one, "INBOX")
    assert mailbox.look() == []
    mailbox.person.expunge(one, "Team")
    assert mailbox.look() == [("learnt", one, "Work")]
    mailbox.person.expunge(one, "Work")
    assert mailbox.look() == [] and mailbox.answers() == [(one, "Work")]


def test_messages_without_an_identity_of_their_own(mailbox):
    mailbox.look(predict=False)
    for number, words in enumerate(["lunch", "invoice", "lunch"]):
        body = message(number, words).partition(b"\n")[2]
        mailbox.person.append("INBOX", body)
    mailbox.look()
    for number in mailbox.person.numbers("INBOX"):
        mailbox.person._do("uid", "MOVE", number, '"Team"')
    found = mailbox.look()
    assert len({identity for _, identity, _ in found}) == 3
    assert all(identity.startswith("sha256:") for _, identity, _ in found)


@only_imap
def test_new_numbers_of_all_messages_change_nothing(mailbox):
    mailbox.teach(12)
    answers = mailbox.answers()
    for name in ("INBOX", *WORDS):
        folder = (
            mailbox.dovecot.root / "mail" / mailbox.user / ("" if name == "INBOX" else f".{name}")
        )
        (folder / "dovecot-uidlist").unlink()
        for each in folder.glob("dovecot.index*"):
            each.unlink()
    with Server(mailbox.sorter.settings, PASSWORD) as server:
        before = mailbox.sorter.known.mailbox["Team"].validity
        assert [*mailbox.sorter.look(server)] == []
        assert mailbox.sorter.known.mailbox["Team"].validity != before
    assert mailbox.answers() == answers


def test_what_changes_in_the_folder_that_is_open_is_noticed(mailbox):
    """Dovecot says of it what it was, until it is asked for news."""
    mailbox.look(predict=False)
    for number in range(4):  # the folder was the last that was read
        mailbox.person.append("Team", message(number, "lunch"))
        assert mailbox.look() == [("learnt", f"<{number}@example.org>", "Team")]


@only_imap
@pytest.mark.parametrize("seed", range(3))
def test_what_has_changed_is_found_as_by_a_search(mailbox, seed, monkeypatch):
    """QRESYNC, against a connection that searches all messages each time."""
    rng, person, server = random.Random(seed), mailbox.person, mailbox.server
    names, n_searches, search = ["INBOX", *WORDS], 0, server._searched

    def counted():
        nonlocal n_searches
        n_searches += 1
        return search()

    monkeypatch.setattr(server, "_searched", counted)
    for number, folder, words in stream(20, seed):
        person.append(folder, message(number, words))
    known = dict.fromkeys(names, (Folder(0), 0))
    with Server(mailbox.sorter.settings, PASSWORD) as searching:
        for step in range(30):
            change(person, rng, step, names)
            for name in names:
                status, (former, since) = server.status(name), known[name]
                found = server.reopen(name, former, since)
                assert found == searching.open(name), (step, name)
                known[name] = (
                    Folder(found.validity, dict.fromkeys(found.numbers, "")),
                    status.modseq,
                )
    assert n_searches < 30 * len(names) / 2


def change(person, rng, step, names):
    """Do something in a folder: add, move, remove, or change flags."""
    source, target = rng.sample(names, 2)
    numbers = person.numbers(source)
    act = rng.choice(["append", "move", "copy", "flag", "delete", "keep", "expunge", "anew"])
    if act == "append" or not numbers:
        person.append(source, message(100 + step, "more"))
    elif act in ("move", "copy"):
        chosen = rng.sample(numbers, rng.randint(1, len(numbers)))
        person._do("uid", act.upper(), ",".join(chosen), f'"{target}"')
    elif act == "expunge":
        person._do("expunge")
    elif act == "anew" and source != "INBOX":
        person._do("close")
        person.delete(source)
        person.create(source)
    elif act != "anew":
        sign, flag = ("-" if act == "keep" else "+"), ("\\Seen" if act == "flag" else "\\Deleted")
        person._do("uid", "STORE", rng.choice(numbers), f"{sign}FLAGS.SILENT", f"({flag})")


def test_what_is_done_without_a_sorter_is_found_later(mailbox, tmp_path):
    mailbox.teach(9)
    one, two = mailbox.deliver(1, "lunch"), mailbox.deliver(2, "report")
    mailbox.person.move(one, "INBOX", "Team")
    assert {each[:2] for each in mailbox.look()} == {("learnt", one), ("suggested", two)}
    again = Sorter(mailbox.journal, mailbox.sorter.settings)
    assert [*again.look(mailbox.server)] == []


@only_imap
def test_certificates_and_passwords_are_checked(mailbox, dovecot):
    settings = mailbox.sorter.settings
    for values, wrong in (
        ({"ca_file": ""}, "not trusted"),
        ({"server": "127.0.0.2"}, "failed|trusted"),
        ({"port": dovecot.lmtp}, "has failed"),
        ({"security": "starttls", "port": dovecot.tls}, "has"),
    ):
        bad = type(settings)({**settings.values, **values}, settings.folder)
        with pytest.raises(ServerError, match=wrong):
            Server(bad, PASSWORD, seconds=3)
    with pytest.raises(LoginError, match="refuses the user"):
        Server(settings, "wrong")
    for security, port in (("starttls", dovecot.plain), ("plain", dovecot.plain)):
        fine = type(settings)({**settings.values, "security": security, "port": port})
        with Server(fine, PASSWORD) as server:
            assert "INBOX" in [each.name for each in server.folders()]

"""kesler mail watch as a process: killed, without its server, and with thousands of messages."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kesler.durable import Journal
from mailserver import PASSWORD, Dovecot, Person, message, needs_dovecot

pytest.importorskip("imapclient", reason="needs the extra mail")

from kesler.cli.mail import connected
from kesler.mail.settings import read_settings
from kesler.mail.sorter import Sorter

pytestmark = needs_dovecot

WORDS = {
    "Bills": ["invoice", "payment", "due", "account", "euro"],
    "Team": ["lunch", "meeting", "agenda", "minutes", "room"],
    "Work": ["report", "draft", "review", "deadline", "figures"],
}


MOVED = b"moved\t"  # what the sorter prints of a message


class Watching:
    """A process of kesler mail watch, which can be killed."""

    def __init__(self, settings: Path) -> None:
        self._command = [sys.executable, "-W", "error", "-m", "kesler", "mail", "watch"]
        self._command += [str(settings), "--action"]
        self._path = settings.with_suffix(".log")
        self._log = self._path.open("ab")
        self._begin = 0  # of what the process that runs has printed
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, action: str) -> None:
        self._begin = len(self.log)
        env = os.environ | {"MAIL_PASSWORD": PASSWORD}
        self._process = subprocess.Popen(
            [*self._command, action], stdout=self._log, stderr=self._log, env=env
        )

    def wait(self, n: int = 1) -> None:
        """Wait until the process has connected `n` times, as long as the machine takes for it."""
        while self.log[self._begin :].count(b"connected") < n:
            assert self._process is not None and self._process.poll() is None
            time.sleep(0.01)

    @property
    def log(self) -> bytes:
        return self._path.read_bytes()

    def kill(self) -> None:
        assert self._process is not None and self._process.poll() is None
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self._log.close()


class Office:
    """A person who delivers messages and files them, beside a sorter that does so as well."""

    def __init__(self, dovecot: Dovecot, user: str, seed: int) -> None:
        self.dovecot, self.user, self.rng = dovecot, user, random.Random(seed)
        self.sent: dict[str, str] = {}  # the right folder of each message

    def deliver(self, person: Person) -> None:
        folder = self.rng.choice([*WORDS])
        number = len(self.sent)
        # Some messages say something else than their folder: they are filed wrongly at first.
        words = WORDS[folder if self.rng.random() < 0.8 else self.rng.choice([*WORDS])]
        self.dovecot.deliver(self.user, message(number, " ".join(self.rng.choices(words, k=4))))
        self.sent[f"<{number}@example.org>"] = folder

    def file(self, person: Person, share: float, *sources: str) -> None:
        """Put some of the messages where they belong that are in one of the folders."""
        for source in sources:
            for identity, folder in self.sent.items():
                if folder != source and self.rng.random() < share:
                    in_two_steps = self.rng.random() < 0.5
                    if person.numbers(source, identity):
                        with suppress(AssertionError, ValueError):  # the sorter has been faster
                            person.move(identity, source, folder, in_two_steps=in_two_steps)


def settled(settings: Path) -> tuple[Sorter, Journal]:
    read = read_settings(str(settings))
    journal = Journal(read.path("database"))
    sorter = Sorter(journal, read)
    for _ in range(3):
        with connected(read) as server:
            list(sorter.look(server))
    return sorter, journal


def settings_of(dovecot: Dovecot, path: Path, kind: str) -> Path:
    """Write the settings of a sorter that asks the server, or reads its Maildir."""
    if kind == "imap":
        return dovecot.settings(path, "ann", error=0.2)
    directory = dovecot.root / "mail" / "ann"
    never = '["Trash", "Ablage"]'
    path.write_text(f'maildir = "{directory}"\nerror = 0.2\nevery = 1\nnever = {never}\n')
    return path


def require_true_end(office: Office, settings: Path) -> None:
    """All that the person did is learnt once, and each message is there once, unchanged."""
    with Person(office.dovecot, office.user) as person:
        office.file(person, 1.0, "INBOX", *WORDS)
        sorter, journal = settled(settings)
        with journal:
            assert not journal.check()
            events = {event.id: event.current for event in sorter.model.remaining()}
            known = sorter.known.records
            for identity, folder in office.sent.items():
                assert known[identity].folder == folder
                if identity in events:  # once, as ids are not used twice
                    assert events[identity] == known[identity].answer == folder
                else:
                    assert known[identity].is_ours
            assert set(events) <= set(office.sent)
        found = Counter(body for name in ("INBOX", *WORDS) for body in person.bodies(name))
    identities = [body.split(b"Message-ID: ")[1].split(b"\r\n")[0] for body in found]
    assert sorted(identities) == sorted(each.encode() for each in office.sent)
    assert set(found.values()) == {1}


@pytest.mark.parametrize("kind", ["imap", "maildir"])
@pytest.mark.parametrize("n_kills", [int(os.environ.get("KESLER_KILLS", "8"))])
def test_kills_change_nothing(tmp_path, monkeypatch, n_kills, kind):
    """What a person did is learnt once, and no message is lost, doubled or changed.

    While the sorter moves messages, the person leaves those in the inbox: Dovecot doubles a message
    that two programs move at the same moment.
    """
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    rng = random.Random(5)
    with TemporaryDirectory(prefix="dc") as folder, Dovecot(Path(folder)) as dovecot:
        settings = settings_of(dovecot, tmp_path / "mail.toml", kind)
        office, watching = Office(dovecot, "ann", 1), Watching(settings)
        with Person(dovecot, "ann") as person:
            person.create(*WORDS)
        settled(settings)[1].close()
        try:
            for kill in range(n_kills):
                is_last = kill == n_kills - 1
                action = "move" if is_last else rng.choice(["move", "move", "nothing"])
                sources = [*WORDS, "INBOX"] if action == "nothing" else [*WORDS]
                watching.start(action)
                if is_last or rng.random() < 0.7:
                    watching.wait()
                end = time.monotonic() + rng.uniform(0.0, 3.0)
                with Person(dovecot, "ann") as person:
                    while time.monotonic() < end or (is_last and b"moved" not in watching.log):
                        office.deliver(person)
                        time.sleep(rng.uniform(0, 0.3))
                        office.file(person, 0.3, *sources)
                watching.kill()
                with Person(dovecot, "ann") as person:
                    office.file(person, 0.3, "INBOX")
                if kill % 5 == 4:
                    dovecot.stop()
                    dovecot.start()
        finally:
            watching.close()
        monkeypatch.setattr("kesler.mail.sorter.decided", lambda record, *_: record)
        require_true_end(office, settings)


@pytest.mark.parametrize("n_restarts", [int(os.environ.get("KESLER_RESTARTS", "3"))])
def test_restarts_of_the_server_change_nothing(tmp_path, monkeypatch, n_restarts):
    """The sorter runs on, and the server ends while it has messages to move."""
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    rng = random.Random(6)
    with TemporaryDirectory(prefix="dc") as folder, Dovecot(Path(folder)) as dovecot:
        settings = settings_of(dovecot, tmp_path / "mail.toml", "imap")
        office, watching = Office(dovecot, "ann", 2), Watching(settings)
        with Person(dovecot, "ann") as person:
            person.create(*WORDS)
            for _ in range(80):  # enough for moves
                office.deliver(person)
            office.file(person, 1.0, "INBOX")
        settled(settings)[1].close()
        try:
            watching.start("move")
            for n in range(1, n_restarts + 1):
                watching.wait(n)
                n_moved = watching.log.count(MOVED) + rng.randint(1, 4)
                with Person(dovecot, "ann") as person:
                    while watching.log.count(MOVED) < n_moved:
                        office.deliver(person)
                        office.file(person, 0.1, *WORDS)
                    for _ in range(rng.randint(0, 4)):
                        office.deliver(person)
                dovecot.stop()
                dovecot.start()
            watching.wait(n_restarts + 1)
        finally:
            watching.close()
        assert watching.log.count(b"next attempt in") >= n_restarts
        monkeypatch.setattr("kesler.mail.sorter.decided", lambda record, *_: record)
        require_true_end(office, settings)

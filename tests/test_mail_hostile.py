"""Servers that lie, send nonsense, are silent or end: sentences in place of crashes and of harm."""

import logging
import random
import re
import socket
import sys
import threading
import time
from contextlib import nullcontext, suppress
from math import isfinite

import pytest

from kesler import KeslerError
from kesler.cli import mail_watch
from kesler.durable import Journal

pytest.importorskip("imapclient", reason="needs the extra mail")

from kesler.mail import imap
from kesler.mail.imap import RefusedError, Server, ServerError
from kesler.mail.server import LoginError
from kesler.mail.settings import MailSettings
from kesler.mail.sorter import Sorter
from kesler.mail.state import Folder
from kesler.mail.watching import watch

MESSAGES = {
    "INBOX": {1: b"Message-ID: <1@a>\r\nSubject: lunch agenda\r\n\r\nlunch\r\n"},
    "Team": {
        n: b"Message-ID: <%d@a>\r\nSubject: lunch agenda %d\r\n\r\nlunch\r\n" % (n, n)
        for n in range(2, 9)
    },
    "Bills": {
        n: b"Message-ID: <%d@a>\r\nSubject: invoice due %d\r\n\r\npay\r\n" % (n, n)
        for n in [*range(20, 26), *range(200, 250)]
    },
}


class Fake:
    """A server on a socket that answers as IMAP wants, but for what a test replaces.

    Parameters
    ----------
    lies : answers by the beginning of a command: bytes, in which TAG stands for its tag, or a
        function of the tag and the arguments.
    greeting : the first line.
    """

    def __init__(self, lies=None, greeting=b"* OK hello\r\n"):
        self.lies, self.greeting = dict(lies or {}), greeting
        self.folders = {name: dict(found) for name, found in MESSAGES.items()}
        self.commands, self.modseq = [], 5
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._open = []

    def __enter__(self):
        self._threads[0].start()
        return self

    def __exit__(self, *_):
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _accept(self):
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self._open.append(connection)
                self._threads.append(
                    threading.Thread(target=self._serve, args=(connection,), daemon=True)
                )
                self._threads[-1].start()

    def _serve(self, connection):
        selected = "INBOX"
        with suppress(OSError), connection, connection.makefile("rb") as lines:
            connection.sendall(self.greeting)
            for line in lines:
                tag, _, command = line.strip().partition(b" ")
                self.commands.append(command)
                lie = next(
                    (a for c, a in self.lies.items() if command.startswith(c.encode())), None
                )
                if lie is not None:
                    answer = lie(tag, command) if callable(lie) else lie.replace(b"TAG", tag)
                    if answer is None:
                        return
                    connection.sendall(answer)
                    continue
                if command.startswith((b"EXAMINE", b"SELECT")):
                    selected = command.split(b'"')[1].decode()
                connection.sendall(self._answer(command, selected) + tag + b" OK done\r\n")

    def _answer(self, command, selected):
        words = command.upper()
        messages = self.folders.get(selected, {})
        if words.startswith(b"CAPABILITY"):
            return b"* CAPABILITY IMAP4rev1 MOVE UIDPLUS\r\n"
        if words.startswith(b"LIST"):
            return b"".join(b'* LIST () "/" "%s"\r\n' % n.encode() for n in self.folders)
        if words.startswith(b"STATUS"):
            name = command.split(b'"')[1].decode()
            found = self.folders[name]
            numbers = (max(found, default=0) + 1, len(found))
            return b'* STATUS "%s" (UIDVALIDITY 7 UIDNEXT %d MESSAGES %d)\r\n' % (
                name.encode(), *numbers
            )  # fmt: skip
        if words.startswith((b"EXAMINE", b"SELECT")):
            states = b"* OK [UIDVALIDITY 7] valid\r\n* OK [HIGHESTMODSEQ %d] last\r\n" % self.modseq
            return b"* %d EXISTS\r\n" % len(messages) + states
        if words.startswith(b"UID SEARCH"):
            return b"* SEARCH %s\r\n" % b" ".join(b"%d" % n for n in messages)
        if words.startswith(b"UID FETCH"):
            return self._fetched(command, messages)
        return b""

    def _fetched(self, command, messages):
        numbers = [int(each) for each in command.split()[2].split(b",")]
        found = b""
        for place, number in enumerate(numbers, 1):
            if number not in messages:
                continue
            body = messages[number]
            if b"HEADER.FIELDS" in command:
                key, value = b"BODY[HEADER.FIELDS (MESSAGE-ID)]", body.partition(b"\r\n")[0]
            elif b"RFC822.SIZE" in command:
                found += b"* %d FETCH (UID %d RFC822.SIZE %d)\r\n" % (place, number, len(body))
                continue
            else:
                key = b"BODY[HEADER]<0>" if b"BODY.PEEK[HEADER]" in command else b"BODY[]<0>"
                value = body
            found += b"* %d FETCH (UID %d %s {%d}\r\n%s)\r\n" % (
                place, number, key, len(value), value
            )  # fmt: skip
        return found

    def settings(self, **values):
        given = {"server": "127.0.0.1", "port": self.port, "user": "ann", "security": "plain"}
        return MailSettings(given | {"every": 1} | values)

    def server(self, **values):
        return Server(self.settings(**values), "secret", seconds=0.5)


@pytest.fixture
def journal(tmp_path):
    with Journal(tmp_path / "mail.db") as journal:
        yield journal


def look(fake, journal, **values):
    sorter = Sorter(journal, fake.settings(**values))
    with fake.server(**values) as server:
        return sorter, [*sorter.look(server)]


def test_the_fake_is_understood(journal):
    with Fake() as fake:
        sorter, done = look(fake, journal)
        assert [each.what for each in done] == ["learnt"] * 63 + ["suggested"]
        assert sorter.known.classes == ["Team", "Bills"]


LIES = {
    "a literal of terabytes": {"UID FETCH": b"* 1 FETCH (UID 2 BODY[]<0> {999999999999}\r\nabc"},
    "a number that is none": {"UID SEARCH": b"* SEARCH 1 two -3\r\nTAG OK done\r\n"},
    "numbers beyond all": {"UID SEARCH": b"* SEARCH 99999999999999999999999\r\nTAG OK done\r\n"},
    "no UIDVALIDITY": {"EXAMINE": b"* 3 EXISTS\r\nTAG OK done\r\n"},
    "a UIDVALIDITY that is none": {
        "STATUS": b'* STATUS "x" (UIDVALIDITY lunch)\r\nTAG OK done\r\n'
    },
    "a status of nothing": {"STATUS": b"TAG OK done\r\n"},
    "half a list": {"LIST": b'* LIST (\\HasNoChildren "/" "IN\r\nTAG OK done\r\n'},
    "nested lists": {"LIST": b"* LIST " + b"(" * 20_000 + b"\r\nTAG OK done\r\n"},
    "nonsense": {"UID FETCH": bytes(range(256)) * 9 + b"\r\n"},
    "a line without end": {"STATUS": b"* " + b"x" * 1_100_000},
    "another tag": {"STATUS": b"A999 OK\r\n"},
    "silence": {"UID FETCH": b""},
    "the end": {"UID SEARCH": lambda *_: None},
    "farewell": {"STATUS": b"* BYE\r\n"},
}


@pytest.mark.parametrize("lie", LIES)
def test_nonsense_is_a_sentence_and_changes_nothing(journal, lie):
    with Fake() as fake:
        sorter, _ = look(fake, journal)
        before = [event.id for event in sorter.model.remaining()]
        fake.folders["Team"][50] = MESSAGES["Team"][2].replace(b"<2@a>", b"<50@a>")
        fake.lies = LIES[lie]
        try:
            _, done = look(fake, journal)
        except ServerError as error:
            assert re.match(r"127\.0\.0\.1:\d+ has|the connection to 127", str(error)), error
            done = []
        assert done == [] and [event.id for event in sorter.model.remaining()] == before
        fake.lies = {}
        _, done = look(fake, journal)
        assert [(each.what, each.identity) for each in done] == [("learnt", "<50@a>")]


@pytest.mark.parametrize("seed", range(16))
def test_random_nonsense(journal, seed):
    """Answers are cut, doubled and changed at random bytes: nothing but sentences is raised."""
    rng = random.Random(seed)
    with Fake() as fake:

        def lie(tag, command):
            answer = fake._answer(command, rng.choice([*fake.folders])) + tag + b" OK done\r\n"
            kind, at = rng.randrange(4), rng.randrange(len(answer))
            if kind == 0:
                return answer[:at] + b"\r\n"
            if kind == 1:
                return answer[:at] + bytes([rng.randrange(256)]) + answer[at + 1 :]
            return answer[:at] + answer if kind == 2 else answer

        command = rng.choice(["CAPABILITY", "LIST", "STATUS", "EXAMINE", "UID SEARCH", "UID FETCH"])
        fake.lies = {command: lie}
        with suppress(KeslerError):
            look(fake, journal)
        assert not journal.check()


def test_a_folder_that_is_refused_is_as_it_was(journal, caplog):
    with Fake() as fake:
        sorter, _ = look(fake, journal)
        fake.lies = {'STATUS "Team"': b"TAG NO not now\r\n"}
        with caplog.at_level(logging.WARNING, "kesler"):
            sorter, done = look(fake, journal)
        assert done == [] and "cannot be read" in caplog.text
        assert len(sorter.known.mailbox["Team"].messages) == 7


def test_folders_that_vanish_for_a_moment_are_not_forgotten(journal):
    with Fake() as fake:
        look(fake, journal, deleted="forget")

        def half(tag, command):
            one = b'"Team"' in command  # asked for by itself
            return b'* LIST () "/" "%s"\r\n%s OK done\r\n' % (b"Team" if one else b"INBOX", tag)

        fake.lies = {"LIST": half}
        sorter, _ = look(fake, journal, deleted="forget")
        assert sorter.model.classes_.tolist() == ["Team"]  # Bills is really gone
        fake.lies = {}
        sorter, done = look(fake, journal, deleted="forget")
        assert {each.folder for each in done if each.what == "learnt"} == {"Bills"}


def test_messages_that_are_not_what_they_were_are_not_moved(journal):
    """The number of a message is that of another when it is to be moved."""
    with Fake() as fake:
        look(fake, journal, action="move", error=0.4)
        fake.folders["INBOX"][2] = MESSAGES["Team"][3].replace(b"<3@a>", b"<99@a>")

        def swapped(tag, command):
            fake.folders["INBOX"][2] = MESSAGES["Bills"][20].replace(b"<20@a>", b"<77@a>")
            return b"* OK [UIDVALIDITY 7] valid\r\n%s OK [READ-WRITE] done\r\n" % tag

        sorter = Sorter(journal, fake.settings(action="move", error=0.4))
        assert isfinite(sorter.filing.threshold)
        fake.lies = {"SELECT": swapped}
        with fake.server(action="move", error=0.4) as server:
            done = [*sorter.look(server)]
        assert ("suggested", "<99@a>") in [each[:2] for each in done]
        assert ("moved", "<99@a>") not in [each[:2] for each in done]
        assert not any(command.startswith(b"UID MOVE 2 ") for command in fake.commands)


def test_a_refused_move_leaves_the_message_in_the_inbox(journal, caplog):
    with Fake() as fake:
        look(fake, journal, action="move", error=0.4)
        fake.folders["INBOX"][2] = MESSAGES["Team"][3].replace(b"<3@a>", b"<99@a>")
        fake.lies = {"UID MOVE": b"TAG NO [OVERQUOTA] full\r\n"}
        with caplog.at_level(logging.WARNING, "kesler"):
            sorter, _ = look(fake, journal, action="move", error=0.4)
        assert "stays where it is" in caplog.text
        assert sorter.known.records["<99@a>"].folder is None and not sorter.known.due("move")


def test_names_that_cannot_be_sent_back_are_left_out(journal, caplog):
    names = [b'"Gr&APY-n"', b'"b\xc3\xbccher"', b'"&bad"', b'"2021"', b"{4}\r\na\x01bc", b'"a\\"b"',
             b'"' + b"x" * 900 + b'"', b"NIL"]  # fmt: skip
    listed = b"".join(b'* LIST () "/" %s\r\n' % name for name in names)
    status = b"* STATUS x (MESSAGES 1)\r\nTAG OK done\r\n"
    lies = {"LIST": listed + b"TAG OK done\r\n", "STATUS": status}
    with Fake(lies) as fake, fake.server() as server:
        with caplog.at_level(logging.WARNING, "kesler"):
            found = [each.name for each in server.folders()]
        assert found[:3] == ["Grön", "&bad", "2021"] and 'a"b' in found
        assert "folders are left out" in caplog.text
        server.status("Grön")
        assert fake.commands[-1].startswith(b'STATUS "Gr&APY-n"')


@pytest.mark.parametrize(
    "greeting", [b"", b"* BYE full\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x01\0\2"]
)
def test_what_is_no_server_of_mail_is_a_sentence(greeting):
    with Fake(greeting=greeting) as fake, pytest.raises(ServerError, match=r"127\.0\.0\.1"):
        fake.server()


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_a_server_without_protection_is_refused(security):
    with Fake({"STARTTLS": b"TAG BAD what\r\n"}) as fake:
        with pytest.raises(ServerError):
            fake.server(security=security)
        assert not any(command.startswith(b"LOGIN") for command in fake.commands)


def test_a_server_without_moves_is_refused_to_move(monkeypatch, journal):
    lies = {"CAPABILITY": b"* CAPABILITY IMAP4rev1\r\nTAG OK done\r\n"}
    with Fake(lies) as fake:
        look(fake, journal)
        fake.folders["INBOX"][2] = MESSAGES["Team"][3].replace(b"<3@a>", b"<99@a>")
        with pytest.raises(KeslerError, match="neither MOVE nor UIDPLUS"):
            look(fake, journal, action="move", error=0.4)
        assert not any(b"COPY" in command or b"STORE" in command for command in fake.commands)


def test_pauses_grow_while_a_server_fails(journal):
    pauses = []

    class Enough(Exception):
        pass

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 4:
            fake.lies = {}
        if len(pauses) == 7:
            raise Enough

    broken = {"LIST": b"TAG NO broken\r\n"}
    with Fake(broken) as fake:
        with pytest.raises(Enough):
            for _ in watch(fake.server, Sorter(journal, fake.settings()), pause=pause):
                pass
        assert pauses == [1, 2, 4, 8, 1, 1, 1]  # then those between two looks
        pauses[:] = [0] * 4
        fake.lies = broken | {"EXAMINE": b"TAG NO broken\r\n"}
        with pytest.raises(Enough):
            for _ in watch(fake.server, Sorter(journal, fake.settings()), pause=pause):
                pass


class Enough(Exception):
    """Ends a watch."""


def pauses_of(fake, journal, n, change=lambda n: None, **values):
    """Return the first pauses of a watch; `change` is called before each."""
    pauses = []

    def pause(seconds):
        change(len(pauses))
        pauses.append(seconds)
        if len(pauses) == n:
            raise Enough

    def connect():
        return fake.server(**values)

    with pytest.raises(Enough):
        for _ in watch(connect, Sorter(journal, fake.settings(**values)), pause=pause):
            pass
    return pauses


REFUSED = {"LOGIN": b"TAG NO [AUTHENTICATIONFAILED] wrong\r\n"}


def test_a_refused_password_is_said_once_and_tried_ever_more_rarely(journal, caplog):
    with Fake(REFUSED) as fake:
        assert pauses_of(fake, journal, 8) == [120, 240, 480, 960, 1920, 3600, 3600, 3600]
        said = [each.getMessage() for each in caplog.records]
        assert len(said) == 1 and "refuses the user ann or the password" in said[0]
        assert "next attempt in 120 s, and then after ever longer pauses, up to an hour" in said[0]
        assert sum(command.startswith(b"LOGIN") for command in fake.commands) == 8


def test_failures_and_refusals_are_counted_each_on_their_own(journal, caplog):
    broken = {"LIST": b"TAG NO broken\r\n"}
    kinds = [REFUSED, broken, REFUSED, {}, REFUSED | broken, REFUSED, REFUSED]

    def change(n):
        fake.lies = kinds[n + 1]

    with Fake(kinds[0]) as fake:
        # The fourth is the pause between two looks, after which both are counted anew.
        assert pauses_of(fake, journal, 6, change) == [120, 1, 240, 1, 1, 120]
    assert sum("refuses the user" in each.getMessage() for each in caplog.records) == 2


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_refused_password_ends_a_watch_on_a_terminal_alone(is_terminal, monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: is_terminal, raising=False)
    with Fake(REFUSED) as fake:
        with pytest.raises(LoginError) if is_terminal else nullcontext():
            mail_watch._try(fake.server)
    with Fake({"LIST": b"TAG NO broken\r\n"}) as fake:
        mail_watch._try(fake.server)
    with pytest.raises(ServerError, match="has failed"):
        mail_watch._try(fake.server)  # which has ended


def test_a_server_that_cannot_check_passwords_refuses_none(journal, caplog):
    with Fake({"LOGIN": b"TAG NO [UNAVAILABLE] Temporary failure\r\n"}) as fake:
        assert pauses_of(fake, journal, 3) == [1, 2, 4]
    assert all("cannot check users for now" in each.getMessage() for each in caplog.records)


@pytest.mark.parametrize("lies", [REFUSED, {"LIST": b"TAG NO broken\r\n"}], ids=str)
def test_outages_of_months_end_no_watch(lies, journal, monkeypatch):
    error = LoginError("refused") if lies is REFUSED else ServerError("broken")

    def fail(*_, **given):
        raise error

    with Fake(lies) as fake:
        monkeypatch.setattr(fake, "server", fail)
        longest = 3600 if lies is REFUSED else 300
        assert pauses_of(fake, journal, 1100)[20:] == [longest] * 1080


def test_messages_are_read_up_to_a_limit(journal, monkeypatch):
    monkeypatch.setattr(imap, "LARGEST_LITERAL", 1000)
    with Fake() as fake:
        fake.folders["Team"][50] = b"Message-ID: <50@a>\r\n\r\n" + b"x" * 5000
        with pytest.raises(ServerError, match="more than were asked for"):
            look(fake, journal)
        assert any(b"BODY.PEEK[]<0.262144>" in command for command in fake.commands)


def test_the_next_messages_are_asked_for_while_some_are_read(monkeypatch):
    monkeypatch.setattr(imap, "WHOLE_AT_ONCE", 20)
    with Fake() as fake, fake.server() as server:
        numbers = server.open("Bills").numbers
        arriving = server.messages(numbers)
        first = next(arriving)
        end = time.monotonic() + 30
        while len(asked := [each for each in fake.commands if b"BODY.PEEK[]" in each]) < 2:
            assert time.monotonic() < end
        assert len(asked) == 2  # and no more than these are held
        assert [first, *arriving] == sorted(MESSAGES["Bills"].items())
        next(leaving := server.messages(numbers))
        leaving.close()
        assert [each.name for each in server.folders()] == [*MESSAGES]


VANISHED = {
    "of all": b"* VANISHED (EARLIER) 1:4294967295\r\n",
    "of nothing": b"",
    "of one that is there": b"* VANISHED (EARLIER) 20\r\n",
    "of nonsense": b"* VANISHED (EARLIER) a:b\r\n",
    "of messages that are none": b"* 8 FETCH (UID 98 FLAGS ())\r\n* 9 FETCH (UID 99 FLAGS ())\r\n",
}


@pytest.mark.parametrize("lie", VANISHED)
def test_lies_about_what_has_vanished_are_found_out(journal, lie):
    """The number of messages is another then: a search says which are there."""
    with Fake() as fake:
        sorter, _ = look(fake, journal)
        before = dict(sorter.known.mailbox["Bills"].messages)
        names = b"IMAP4rev1 MOVE UIDPLUS ENABLE CONDSTORE QRESYNC"
        fake.lies = {
            "CAPABILITY": b"* CAPABILITY %s\r\nTAG OK done\r\n" % names,
            "ENABLE": b"* ENABLED QRESYNC\r\nTAG OK done\r\n",
            "UID FETCH 1:*": VANISHED[lie] + b"TAG OK done\r\n",
        }
        with fake.server() as server:
            assert server._can_resync
            fake.folders["Bills"][60] = MESSAGES["Bills"][20].replace(b"<20@a>", b"<60@a>")
            with suppress(ServerError):
                found = server.reopen("Bills", Folder(7, before), 5)
                assert found.numbers == sorted(fake.folders["Bills"])
            assert any(b"(CHANGEDSINCE 5 VANISHED)" in each for each in fake.commands)


def test_changes_are_not_counted_from_a_number_that_is_yet_to_come(journal):
    """A server whose index was made anew counts from the beginning: nothing has changed since."""
    with Fake() as fake:
        sorter, _ = look(fake, journal)
        before = Folder(7, dict(sorter.known.mailbox["Bills"].messages))
        names = b"IMAP4rev1 MOVE UIDPLUS ENABLE CONDSTORE QRESYNC"
        fake.lies = {
            "CAPABILITY": b"* CAPABILITY %s\r\nTAG OK done\r\n" % names,
            "ENABLE": b"* ENABLED QRESYNC\r\nTAG OK done\r\n",
            "UID FETCH 1:*": b"TAG OK done\r\n",
        }
        with fake.server() as server:
            fake.folders["Bills"][60] = fake.folders["Bills"].pop(20)
            assert server.reopen("Bills", before, 5).numbers == sorted(before.messages)
            assert server.reopen("Bills", before, 6).numbers == sorted(fake.folders["Bills"])


def test_refusals_and_failures_differ():
    lies = {"STATUS": b"TAG NO no such folder\r\n"}
    with Fake(lies) as fake, fake.server() as server:
        with pytest.raises(RefusedError, match="no such folder"):
            server.status("x")
        assert server.folders()

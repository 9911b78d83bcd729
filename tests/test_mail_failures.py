"""A sorter whose server fails, whose learner refuses, and beside which another one works.

The server is one in memory, without a protocol.
"""

from email.message import EmailMessage
from itertools import count

import pytest

pytest.importorskip("imapclient", reason="needs the extra mail")

from kesler import KeslerError
from kesler.durable import Journal
from kesler.mail.folders import Listed
from kesler.mail.identities import identity_of
from kesler.mail.imap import Opened, RefusedError, ServerError
from kesler.mail.known import ChangedError, Known, Status
from kesler.mail.messages import read
from kesler.mail.settings import MailSettings
from kesler.mail.sorter import Sorter
from kesler.mail.watching import watch

WORDS = {"Bills": "invoice payment due account euro", "Team": "lunch meeting agenda minutes room"}


class InMemory:
    """A server: the messages of each folder by their numbers."""

    can_idle = False

    def __init__(self):
        self.boxes = {name: {} for name in ("INBOX", *WORDS)}
        self.numbers = count(1)
        self.fails = self.lies = False
        self.refused = set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def put(self, folder, message):
        self.boxes[folder][next(self.numbers)] = message

    def file(self, identity, source, target):
        """Do as a person who moves a message, or deletes it."""
        box = self.boxes[source]
        number = next(n for n, each in box.items() if identity_of(each) == identity)
        message = box.pop(number)
        if target is not None:
            self.put(target, message)

    def folders(self):
        return [Listed(name) for name in self.boxes]

    def exists(self, name):
        return name in self.boxes

    def status(self, name):
        return Status(1, max(self.boxes[name], default=0) + 1, len(self.boxes[name]))

    def open(self, name, to_write=False):
        if name in self.refused:
            raise RefusedError(f"{name}: permission denied")
        self.opened = name
        return Opened(1, sorted(self.boxes[name]))

    def identities(self, numbers):
        return {number: identity_of(self.boxes[self.opened][number]) for number in numbers}

    def messages(self, numbers):
        yield from ((n, self.boxes[self.opened][n]) for n in numbers)

    def move(self, source, number, identity, target):
        if self.fails:
            raise ServerError("the connection has failed")
        if not self.lies:
            self.put(target, self.boxes[source].pop(number))
        return True


def message(number, folder):
    made = EmailMessage()
    made["From"], made["Subject"] = "ann@example.org", f"note {number}"
    made["Message-ID"] = f"<{number}@x>"
    made["Date"] = f"Thu, 01 Jan 2026 00:{number // 60 % 60:02}:{number % 60:02} +0000"
    made.set_content(WORDS[folder])
    return made.as_bytes()


@pytest.fixture
def server():
    """A server with 200 messages in two folders."""
    found = InMemory()
    for number in range(200):
        folder = [*WORDS][number % 2]
        found.put(folder, message(number, folder))
    return found


@pytest.fixture
def journal(tmp_path):
    with Journal(tmp_path / "mail.db") as found:
        yield found


def sorter_of(journal, action="move"):
    values = {"server": "h", "user": "u", "action": action, "error": 0.3}
    return Sorter(journal, MailSettings(values))


@pytest.fixture
def sorter(journal, server):
    found = sorter_of(journal)
    assert len([*found.look(server, predict=False)]) == 200
    return found


def looked(sorter, server):
    return [tuple(each)[:3] for each in sorter.look(server)]


def fail(sorter, server):
    """Let the connection end when a message is to be moved."""
    server.fails = True
    with pytest.raises(ServerError):
        [*sorter.look(server)]
    server.fails = False


def test_a_move_that_was_taken_back_before_it_was_made_is_forgotten(sorter, server):
    server.put("INBOX", message(500, "Bills"))
    fail(sorter, server)
    sorter.undo("<500@x>")
    assert looked(sorter, server) == []
    server.file("<500@x>", "INBOX", "Bills")
    assert looked(sorter, server) == [("learnt", "<500@x>", "Bills")]


def test_only_a_move_that_the_server_was_asked_for_may_be_ours(sorter, server, journal):
    """Of two that were due, the connection ended with the first; a person makes both."""
    for number in (500, 501):
        server.put("INBOX", message(number, "Bills"))
    fail(sorter, server)
    for number in (500, 501):
        server.file(f"<{number}@x>", "INBOX", "Bills")
    again = sorter_of(journal)  # another process
    assert looked(again, server) == [("learnt", "<501@x>", "Bills")]
    assert again.known.records["<500@x>"].is_ours


def test_a_move_that_a_person_makes_just_before_is_the_person_s(sorter, server, monkeypatch):
    server.put("INBOX", message(500, "Bills"))

    def move(source, number, identity, target):
        server.file(identity, source, target)
        return False  # as the message is there no more

    monkeypatch.setattr(server, "move", move)
    assert looked(sorter, server) == [("suggested", "<500@x>", "Bills")]
    assert looked(sorter, server) == [("learnt", "<500@x>", "Bills")]


def test_an_answer_that_was_seen_is_learnt_after_an_undo(sorter, server):
    server.file("<0@x>", "Bills", "Team")
    server.refused = {"Team"}
    assert looked(sorter, server) == []
    sorter.undo("<0@x>")
    server.refused = set()
    server.put("Team", message(501, "Team"))
    assert {*looked(sorter, server)} == {
        ("learnt", "<0@x>", "Team"), ("learnt", "<501@x>", "Team"),
    }  # fmt: skip


def test_an_undo_takes_back_where_the_thread_was(sorter, server, journal):
    """Also after a correction, which replaces what was remembered of the message."""
    asks = message(500, "Bills").replace(b"ann@example.org", b"bob@example.org")
    server.put("Bills", asks)
    answer = asks.replace(b"<500@x>", b"<501@x>\nIn-Reply-To: <500@x>")
    keys = read(answer.replace(b"note 500", b"other")).keys
    looked(sorter, server)
    assert {*sorter.known.threads.found(keys).values()} == {"Bills"}
    server.file("<500@x>", "Bills", "Team")
    looked(sorter, server)
    assert {*sorter.known.threads.found(keys).values()} == {"Team"}
    sorter.undo("<500@x>")
    for each in (sorter, sorter_of(journal)):
        assert each.known.threads.found(keys) == {}
        assert each.known.records["<500@x>"].filed == 0


def test_a_message_that_is_gone_before_its_move_was_not_filed(sorter, server):
    n = len([each for each in sorter.known.records.values() if each.is_right is not None])
    server.put("INBOX", message(500, "Bills"))
    fail(sorter, server)
    server.file("<500@x>", "INBOX", None)
    looked(sorter, server)
    assert sorter.known.records["<500@x>"].is_right is None
    assert len(sorter._learnt) == n


def test_two_sorters_learn_each_message_once(sorter, server, journal):
    other = sorter_of(journal)
    for number in range(600, 620):
        server.put("Bills", message(number, "Bills"))
        one, two = (sorter, other) if number % 2 else (other, sorter)
        assert looked(one, server) == [("learnt", f"<{number}@x>", "Bills")]
        assert looked(two, server) == []
    ids = [each.id for each in sorter.model.remaining()]
    assert len(ids) == len({*ids}) == 220 and not any(" " in each for each in ids)


def test_what_another_process_has_changed_is_noticed(sorter, journal):
    other = Known(sorter.model)
    other.update({"<0@x>": other.records["<0@x>"]})
    with pytest.raises(ChangedError, match="another process has changed"):
        sorter.known.update({})
    with pytest.raises(ChangedError):
        sorter.undo("<1@x>")
    assert sorter.model.find("<1@x>").taken_back is False


def test_a_refused_message_leaves_no_trace_in_others(sorter, server, journal, monkeypatch):
    rows, learn_one = [], sorter.model.learn_one

    def refusing(row, folder, *, id, by):
        if id == "<711@x>":
            raise KeslerError("this row is refused")
        rows.append((id, {name for name in row if " in:" in name}))
        return learn_one(row, folder, id=id, by=by)

    monkeypatch.setattr(sorter.model, "learn_one", refusing)
    for number in (710, 711, 712):
        made = message(number, "Bills").replace(b"ann@example.org", b"new%d@x" % number)
        server.put("Bills", made)
    assert [each[1] for each in looked(sorter, server)] == ["<710@x>", "<712@x>"]
    assert [each for each in rows if each[0] == "<710@x>"] == [("<710@x>", set())] * 2
    assert sorter.known.threads.folders == Known(sorter.model).threads.folders
    assert sorter.filing._wrong == sorter_of(journal).filing._wrong


def test_corrections_reach_what_chooses_the_messages_that_are_filed(sorter, server, journal):
    assert sum(sorter.filing._wrong) == sum(sorter_of(journal).filing._wrong)
    server.file("<150@x>", "Bills", "Team")
    looked(sorter, server)
    again = sorter_of(journal).filing
    assert sorter.filing._wrong == again._wrong
    assert sorter.filing.threshold == again.threshold


def test_a_folder_that_is_refused_stops_no_other(sorter, server):
    server.refused = {"Team"}
    server.file("<0@x>", "Bills", "Team")
    server.put("INBOX", message(500, "Bills"))
    assert ("moved", "<500@x>", "Bills") in looked(sorter, server)


def test_a_server_that_says_that_it_moves_is_asked_with_pauses(sorter, server):
    server.put("INBOX", message(500, "Bills"))
    server.lies = True
    pauses = []

    class Enough(Exception):
        pass

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            raise Enough

    done = []
    with pytest.raises(Enough):
        for each in watch(lambda: server, sorter, pause=pause):
            done.append(each.what)
            assert done.count("moved") <= 6
    assert done.count("moved") == 6


def test_accounts_in_one_database_know_nothing_of_each_other(journal):
    """The same messages are in other folders of the second, and in other ones of its own."""
    servers, sorters = {}, {}
    for account, folders in (("ann", ["Bills", "Team"]), ("bob", ["Team", "Bills"])):
        server = servers[account] = InMemory()
        for number in range(60):
            server.put(folders[number % 2], message(number, [*WORDS][number % 2]))
        values = {"server": "h", "user": account, "account": account}
        sorters[account] = Sorter(journal, MailSettings(values))
    for account, sorter in sorters.items():  # a block of one, and of the other
        assert len([*sorter.look(servers[account], predict=False)]) == 60
    row = read(message(99, "Bills")).row()
    guesses = {account: sorter.model.predict_one(row) for account, sorter in sorters.items()}
    assert guesses == {"ann": "Bills", "bob": "Team"}
    before = answers(sorters["bob"])
    sorters["ann"].undo("<0@x>")
    servers["ann"].file("<2@x>", "Bills", "Team")
    assert looked(sorters["ann"], servers["ann"]) == [("learnt", "<2@x>", "Team")]
    assert looked(sorters["bob"], servers["bob"]) == [] and answers(sorters["bob"]) == before
    assert len(answers(sorters["ann"])) == 59 and answers(sorters["ann"])["<2@x>"] == "Team"
    for account, sorter in sorters.items():
        again = Known(sorter.model)
        assert again.records == sorter.known.records, account
        assert again.threads.folders == sorter.known.threads.folders
    assert not journal.check()


def answers(sorter):
    return {event.id: event.current for event in sorter.model.remaining()}


def test_the_value_of_a_password_is_not_shown(capsys, tmp_path):
    from commands import kesler

    with pytest.raises(KeslerError) as error:
        MailSettings({"server": "h", "user": "u", "password": "hunter2"})
    assert "hunter2" not in str(error.value) and "keyring" in str(error.value)
    given = ("mail", "setup", tmp_path / "s.toml", "--server", "h", "--user", "u")
    done = kesler(capsys, *given, "--password", "hunter2")
    assert done.code == 2 and "hunter2" not in done.err and "keyring" in done.err

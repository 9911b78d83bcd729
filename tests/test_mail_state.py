"""What has happened in a mailbox between two looks, against a mailbox that a person works in."""

import random

import pytest

from kesler import OnlineClassifier
from kesler.durable import Journal
from kesler.mail.decisions import decided
from kesler.mail.folders import Listed
from kesler.mail.identities import digest_of, identity_of
from kesler.mail.known import Known, Status
from kesler.mail.state import Folder, Record, renamed, settle

CLASSES = ["Bills", "Team", "Work"]


class Person:
    """A mailbox in which a person, and we, move messages; it knows which answers were given.

    It follows each act on its own, and never compares two states.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folders = {name: {} for name in ["INBOX", *CLASSES]}
        self.validity = dict.fromkeys(self.folders, 1)
        self.next = dict.fromkeys(self.folders, 1)
        self.outside = []  # messages in the trash and in other folders that nobody looks at
        self.answers = {}  # the answer of each message that has one
        self.class_of = {}  # the class to which each message belongs by the last act
        self.ours = set()  # messages that are where we have filed them
        self.log = []  # (message, answer) in order
        self.n = 0

    def put(self, message, folder):
        self.folders[folder][self.next[folder]] = message
        self.next[folder] += 1

    def take(self, folder):
        number = self.rng.choice(sorted(self.folders[folder]))
        return self.folders[folder].pop(number)

    def held(self, message):
        return [f for f in self.folders if f != "INBOX" and message in self.folders[f].values()]

    def filled(self, *but):
        return [name for name, found in self.folders.items() if found and name not in but]

    def answer(self, message, folder):
        self.ours.discard(message)
        self.class_of[message] = folder
        self.answers[message] = folder
        self.log.append((message, folder))

    # ---- acts --------------------------------------------------------------------------------

    def arrive(self):
        self.n += 1
        self.put(f"m{self.n}", "INBOX")

    def deliver_to_a_class(self):
        """A rule of the server's files a message."""
        self.n += 1
        folder = self.rng.choice(sorted({*self.folders} - {"INBOX"}))
        self.put(f"m{self.n}", folder)
        self.answer(f"m{self.n}", folder)

    def move(self):
        source = self.rng.choice(self.filled())
        target = self.rng.choice([name for name in self.folders if name != source])
        message = self.take(source)
        self.put(message, target)
        self._moved(message, target)

    def _moved(self, message, target):
        left = self.held(message)
        if message in self.ours:  # where a person has put it counts more
            left = [folder for folder in left if folder != self.class_of[message]] or left
        if self.class_of.get(message) in left:
            return  # a copy was moved, and the first is where it was
        if left:
            self.answer(message, min(left))
        elif target == "INBOX" or message in self.folders["INBOX"].values():
            self.class_of.pop(message, None)
            self.ours.discard(message)

    def copy(self):
        source = self.rng.choice(self.filled())
        message = self.rng.choice(sorted(self.folders[source].values()))
        target = self.rng.choice(sorted({*self.folders} - {source, "INBOX"}))
        self.put(message, target)
        self._moved(message, target)

    def throw_away(self):
        message = self.take(self.rng.choice(self.filled()))
        self.outside.append(message)
        self._moved(message, "outside")

    def bring_back(self):
        if self.outside:
            message = self.outside.pop(self.rng.randrange(len(self.outside)))
            target = self.rng.choice(sorted(self.folders))
            self.put(message, target)
            self._moved(message, target)

    def new_folder(self):
        name = f"New {len(self.validity)}"
        self.folders[name], self.next[name], self.validity[name] = {}, 1, 1

    def rename(self):
        old = self.rng.choice(self.filled("INBOX"))
        new = f"Named {len(self.validity)}"
        for each in (self.folders, self.next, self.validity):
            each[new] = each.pop(old)
        self.validity[old] = 0  # so that names are not used twice
        for known in (self.class_of, self.answers):
            known.update({m: new for m, folder in known.items() if folder == old})
        self.log = [(m, new if folder == old else folder) for m, folder in self.log]

    def begin_anew(self):
        """The server gives all messages of a folder new numbers."""
        name = self.rng.choice([*self.folders])
        self.validity[name] += 1
        messages = [*self.folders[name].values()]
        self.rng.shuffle(messages)
        self.folders[name], self.next[name] = {}, 1
        for message in messages:
            self.put(message, name)

    def file(self, known):
        """We move a message, which is no answer."""
        waiting = [
            m
            for m in sorted(self.folders["INBOX"].values())
            if m not in self.class_of and not self.held(m) and m in known.records
            and known.records[m].folder is None
        ]  # fmt: skip
        if not waiting:
            return
        message, target = self.rng.choice(waiting), self.rng.choice(known.classes)
        record = Record(**{**_as_dict(known.records[message]), "guess": target, "confidence": 1.0})
        known.update({message: decided(record, "move", 0.5, known.classes)})
        assert known.records[message].due == "move"
        if self.rng.random() < 0.7:  # otherwise the connection ends before
            known.update({message: _with(known.records[message], due="moving")})
            number = next(n for n, m in self.folders["INBOX"].items() if m == message)
            self.put(self.folders["INBOX"].pop(number), target)
            self.class_of[message] = target
            self.ours.add(message)

    @property
    def mailbox(self):
        return {name: Folder(self.validity[name], dict(f)) for name, f in self.folders.items()}

    @property
    def statuses(self):
        return {
            name: Status(self.validity[name], self.next[name], len(f), 0)
            for name, f in self.folders.items()
        }


def _as_dict(record):
    return {name: getattr(record, name) for name in Record.__slots__}


ACTS = ["arrive"] * 4 + ["move"] * 6 + [
    "deliver_to_a_class", "copy", "throw_away", "bring_back", "new_folder", "rename", "begin_anew",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_each_answer_of_a_person_is_learnt_once(tmp_path, seed):
    person = Person(seed)
    learnt = []
    with Journal(tmp_path / "mail.db") as journal:
        model = journal.open("mail", OnlineClassifier())
        known = Known(model)
        for step in range(150):
            if known.due("move"):  # what was due when the connection ended is done, or done again
                for identity in known.due("move"):
                    number = known.where(identity, "INBOX")
                    target = known.records[identity].folder
                    if number in person.folders["INBOX"] and target in person.folders:
                        known.update({identity: _with(known.records[identity], due="moving")})
                        person.put(person.folders["INBOX"].pop(number), target)
                        person.class_of[identity] = target
                        person.ours.add(identity)
            elif person.filled("INBOX") and person.rng.random() < 0.15 and known.records:
                person.file(known)
            else:
                act = person.rng.choice(ACTS) if person.filled("INBOX") else "deliver_to_a_class"
                getattr(person, act)()
            names = known.observe(person.mailbox, person.statuses, predict=True)
            learnt = [(identity, names.get(folder, folder)) for identity, folder in learnt]
            answers = [(i, known.records[i].folder) for i in known.due("learn")]
            learnt += answers
            known.update({i: _with(known.records[i], due=None, answer=f) for i, f in answers})
            assert learnt == person.log, (seed, step)
            if person.rng.random() < 0.2:
                known = Known(model)  # the process begins anew
                assert known.mailbox == person.mailbox
    found = {identity: each.answer for identity, each in known.records.items() if each.answer}
    assert found == person.answers and len(learnt) > 20


def _with(record, **values):
    return Record(**{**_as_dict(record), **values})


def test_a_move_that_is_seen_halfway_is_learnt_when_it_has_ended():
    record = settle(Record("Work", answer="Work"), ["Bills", "Work"], False)  # COPY
    assert record == Record("Work", answer="Work")
    assert settle(record, ["Bills"], False) == Record("Bills", due="learn", answer="Work")


def test_a_message_that_is_nowhere_for_a_moment_keeps_its_record():
    ours = Record("Work", is_ours=True, guess="Work")
    assert settle(settle(ours, [], False), ["Work"], False) == ours
    assert settle(ours, [], True) == Record(guess="Work")
    asked = Record("Work", is_ours=True, due="moving")
    assert settle(asked, [], True) == settle(asked, [], False) == asked
    assert settle(asked, ["Work"], True) == Record("Work", is_ours=True)
    assert settle(settle(ours, [], True), ["Work"], False).due == "learn"


def test_a_move_that_no_server_was_asked_for_is_the_person_s():
    due = Record("Work", is_ours=True, due="move", guess="Work")
    assert settle(due, [], True) == settle(due, [], False) == due
    assert settle(due, ["Work"], False) == Record("Work", due="learn", guess="Work")


def test_a_folder_is_renamed_if_most_of_its_messages_are_in_a_new_one():
    before = {"A": Folder(1, {1: "a", 2: "b", 3: "c"}), "B": Folder(1, {1: "d"}), "C": Folder(1)}
    assert renamed(before, {"X": Folder(9, {7: "a", 8: "b"}), "Y": Folder(2, {1: "d"})}) == {
        "A": "X",
        "B": "Y",
    }
    assert renamed(before, {"X": Folder(9, {7: "a"}), "B": before["B"]}) == {}
    assert renamed({"C": Folder(1)}, {"X": Folder(1), "Y": Folder(2)}) == {"C": "X"}
    assert renamed({"C": Folder(1)}, {"X": Folder(1), "Y": Folder(1)}) == {}
    assert renamed({"C": Folder(1)}, {"X": Folder(2)}) == {}


@pytest.mark.parametrize(
    ("guess", "action", "is_sure", "due"),
    [
        ("Work", "move", True, "move"),
        ("Work", "move", False, None),
        ("Gone", "move", True, None),
        (None, "move", True, None),
        ("Work", "nothing", True, None),
        ("Work", "keyword", True, "keyword"),
    ],
)
def test_what_is_done_depends_on_how_sure_it_is_and_on_the_folder(guess, action, is_sure, due):
    found = decided(Record(due="predict", guess=guess), action, is_sure, ["Work"])
    assert found.due == due and found.is_ours == (due == "move")
    assert found.folder == ("Work" if due == "move" else None)


@pytest.mark.parametrize(
    ("folder", "is_special"),
    [
        (Listed("Team", frozenset({"\\trash"})), True),
        (Listed("Trash"), True),
        (Listed("INBOX.Gesendete Objekte", delimiter="."), True),
        (Listed("[Gmail]/All Mail"), True),
        (Listed("Work/Sent to Ann"), False),
        (Listed("Trash/2024"), False),
        (Listed("Spammers", frozenset({"\\hasnochildren"})), False),
    ],
)
def test_folders_of_special_use_are_known_by_flags_and_names(folder, is_special):
    assert folder.has_special_use == is_special


def test_identities():
    assert identity_of(b"Message-Id:\r\n <1@a>\r\nSubject: x\r\n\r\n") == "<1@a>"
    assert identity_of(b"Subject: x\nMESSAGE-ID: <1@a>\n") == "<1@a>"
    long = b"Message-ID: <" + b"a" * 300 + b">"
    for odd in (b"", b"Message-ID: ", long, b"Message-ID: a b"):
        assert identity_of(odd) is None
    assert digest_of(b"a", 1) != digest_of(b"a", 2) != digest_of(b"b", 2)

"""What is known of a mailbox, and what has happened to its messages between two looks at it.

Nothing here asks a server. A message is known by its identity, the same in every folder; its number
in a folder (UID) says where to find it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder as it was seen.

    Parameters
    ----------
    validity : the UIDVALIDITY, with which the numbers of messages lose their meaning.
    messages : the identities of messages by their numbers, without those marked as deleted.
    """

    validity: int
    messages: Mapping[int, str] = field(default_factory=dict)


MOVES = ("move", "moving")
"""What is due with a message until it is seen where it is to be moved."""

Mailbox = Mapping[str, Folder]
"""The folders that are watched by name: the inbox and the classes."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a message.

    Parameters
    ----------
    folder : the class in which it was seen last, or into which it is to be moved; None if none.
    is_ours : whether it is there because it was filed, so that this is no answer.
    due : what is still to be done with it: "learn" that it is of the class `folder`,
        "predict" its class, read what was given as its "answer" elsewhere, "move" it to
        `folder`, see whether the server, which was asked to, was "moving" it there, mark it with a
        "keyword" or move it "back" to the inbox; None if nothing.
    event : the id of the event of the journal from which it was learnt, None if it was not.
    n_events : the number of events so far, those taken back included.
    guess, confidence : the prediction before its answer was known, None if there was none.
    answer : the class that was learnt.
    sureness : how sure the prediction was, see :class:`~kesler.mail.filing.Filing`.
    number : its place in the order of predictions, from 1.
    is_shown : whether it was put on the page of the service.
    filed : the number under which its thread, its people and its sender are remembered, from 1; 0
        if they are not.
    """

    folder: str | None = None
    is_ours: bool = False
    due: str | None = None
    event: str | None = None
    n_events: int = 0
    guess: str | None = None
    confidence: float | None = None
    answer: str | None = None
    sureness: float | None = None
    number: int = 0
    filed: int = 0
    is_shown: bool = False

    @property
    def is_right(self) -> bool | None:
        """Whether the prediction was right; None if that is not known.

        A message that was filed and left there was filed rightly.
        """
        if self.sureness is None:
            return None
        if self.answer is not None:
            return self.guess == self.answer
        return True if self.is_ours and self.due is None else None


def settle(record: Record, held: Collection[str], in_inbox: bool) -> Record:
    """Return what is known of a message after a look at the folders that hold it.

    A message that is in another class than before has been moved there by a person, unless it was
    moved by us: it is due to be learnt, even if we were to move it there, but had not asked the
    server to. In a class and a copy of it in another, it is of the first until it is gone there;
    but if it was filed in the first, a person has put it into the other.

    Parameters
    ----------
    record : what was known.
    held : the classes that hold the message now.
    in_inbox : whether the inbox holds it.

    Examples
    --------
    >>> settle(Record(), ["Work"], False).due
    'learn'
    >>> settle(Record("Work"), ["Copies", "Work"], False) == Record("Work")
    True
    >>> settle(Record("Work", is_ours=True), ["Bills"], False).folder
    'Bills'
    """
    others = [name for name in held if name != record.folder]
    if record.folder in held and not (record.is_ours and others):
        return _arrived(record)
    if others:
        return replace(record, folder=min(others), is_ours=False, due="learn")
    if not in_inbox:
        # It may be on its way: a look at one folder after the other is not of one moment. That it
        # was moved is known when it is seen where it was to be moved.
        return record if record.due in MOVES else replace(record, due=None)
    if record.due in MOVES or record.folder is None:
        return record
    # A person has put it back. It is not filed again, and where it is put next is an answer.
    return replace(record, folder=None, is_ours=False, due=None)


def _arrived(record: Record) -> Record:
    """Return the record of a message that is in its class."""
    if record.due == "move":
        return replace(record, is_ours=False, due="learn")
    return replace(record, due=None) if record.due == "moving" else record


def taken_back(record: Record) -> Record:
    """Return the record of a message whose answer is taken back.

    If it was moved, it is due to be moved back; an answer that was seen since is still due.
    """
    waiting = "learn" if record.due == "learn" else None
    due = "back" if record.is_ours else waiting
    return replace(record, event=None, answer=None, due=due, filed=0, is_shown=False)


def places(mailbox: Mailbox, among: Collection[str] | None = None) -> dict[str, set[str]]:
    """Return the folders that hold each message, of those whose identities are asked for."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, folder in mailbox.items():
        for identity in folder.messages.values():
            if among is None or identity in among:
                found[identity].add(name)
    return dict(found)


def changed(before: Mailbox, after: Mailbox) -> set[str]:
    """Return the messages that are in other folders after than before."""
    found: set[str] = set()
    for name in {*before, *after}:
        old, new = before.get(name), after.get(name)
        if old is not new:
            found |= _identities(old) ^ _identities(new)
    return found


def _identities(folder: Folder | None) -> set[str]:
    return set() if folder is None else {*folder.messages.values()}


def renamed(before: Mailbox, after: Mailbox) -> dict[str, str]:
    """Return the new names of folders that have been renamed, by their former names.

    A folder that is gone was renamed if most of its messages are in a new one, whether its server
    moved them or a person did; an empty one if one new folder alone has its UIDVALIDITY.

    Examples
    --------
    >>> before = {"Work": Folder(1, {1: "a", 2: "b"}), "Old": Folder(2, {1: "c"})}
    >>> renamed(before, {"Office": Folder(1, {1: "a", 2: "b"})})
    {'Work': 'Office'}
    """
    gone = [name for name in before if name not in after]
    new = {name: _identities(after[name]) for name in after if name not in before}
    found: dict[str, str] = {}
    for name in sorted(gone, key=lambda each: (-len(before[each].messages), each)):
        own = _identities(before[name])
        if not own:
            same = [each for each in new if after[each].validity == before[name].validity]
            if len(same) == 1:
                found[name] = same[0]
                del new[same[0]]
            continue
        shared = {each: len(own & new[each]) for each in sorted(new)}
        best = max(shared, key=lambda each: shared[each], default=None)
        if best is not None and 2 * shared[best] > len(own):
            found[name] = best
            del new[best]
    return found


def rename_folders(mailbox: Mailbox, names: Mapping[str, str]) -> dict[str, Folder]:
    """Return a mailbox in which folders have new names."""
    return {names.get(name, name): folder for name, folder in mailbox.items()}


def rename_record(record: Record, names: Mapping[str, str]) -> Record:
    """Return a record in which classes have new names."""
    given = (record.folder, record.guess, record.answer)
    folder, guess, answer = (each and names.get(each, each) for each in given)
    if (folder, guess, answer) == given:
        return record
    return replace(record, folder=folder, guess=guess, answer=answer)


def without(record: Record, gone: Iterable[str]) -> Record:
    """Return a record without what was learnt of classes that have been forgotten."""
    lost = {*gone}
    if record.folder in lost:
        record = replace(record, folder=None, is_ours=False, due=None)
    if record.answer in lost:
        record = replace(record, answer=None, event=None, filed=0)
    return replace(record, guess=None, confidence=None) if record.guess in lost else record

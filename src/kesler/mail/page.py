"""The page of `kesler serve`: which messages wait there, and what people have answered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from email.parser import BytesHeaderParser
from types import TracebackType
from typing import TYPE_CHECKING

from kesler.durable.items import ANSWERS, Item, Items
from kesler.mail.messages import read
from kesler.mail.state import Record
from kesler.mail.summary import open_to_answers
from kesler.mail.threads import header

if TYPE_CHECKING:
    from kesler.durable import Event, Model
    from kesler.mail.known import Known

HEARD = "heard"
"""The name of the last event that was heard of."""
LONGEST = 300  # characters of a subject or a sender that are kept

Description = tuple[str | None, str | None]


# ---- answers ------------------------------------------------------------------------------------


def hear(known: Known, by: str) -> None:
    """Note the answers that others have given, changed or taken back in the journal.

    What follows from an answer is due with its message, with which nothing else is due then, unless
    a person has moved it as well.

    Parameters
    ----------
    known : what is known of the mailbox.
    by : whose events are no news.
    """
    model = known.model
    heard, last = model.kept(HEARD).get(HEARD, 0), model.history(1)
    if not last or last[0].number == heard:
        return
    rows = {row.id: row for each in model.since(heard, but_by=by) if (row := _row_of(model, each))}
    found = {message_of(id): row for id, row in rows.items() if message_of(id) in known.records}
    gone = [i for i, row in found.items() if row.taken_back and known.records[i].event == row.id]
    with known.together():
        known.take_back(gone)
        held = [(i, row) for i, row in found.items() if not row.taken_back]
        known.update({identity: _after(known.records[identity], row) for identity, row in held})
        model.keep(HEARD, last[0].number)


def _row_of(model: Model, event: Event) -> Event | None:
    """Return the row that an event is about, as it is now; None if it is about none."""
    about: Event | None = event
    while about is not None and about.kind in ("undo", "relabel"):
        about = model.find(str(about.target))
    return about if about is not None and about.kind == "learn" else None


def _after(record: Record, event: Event) -> Record:
    """Return the record of a message whose row others have taught or relabelled."""
    answer = str(event.current)
    if (record.event, record.answer) == (event.id, answer):
        return record
    due = "learn" if record.due == "learn" else "answer"
    return replace(record, event=event.id, answer=answer, due=due)


# ---- ids ----------------------------------------------------------------------------------------


def new_id(model: Model, identity: str, n: int) -> tuple[str, int]:
    """Return an id for the next event of a message of which n have been written, and its number."""
    n += 1
    while (found := model.find(_id(identity, n))) is not None and found.taken_back:
        n += 1
    return _id(identity, n), n


def _id(identity: str, n: int) -> str:
    return identity if n == 1 else f"{identity} {n}"


def message_of(id: str) -> str:
    """Return the identity of the message of an event, which has no spaces."""
    return id.partition(" ")[0]


# ---- what waits ---------------------------------------------------------------------------------


class Page:
    """The messages that wait for an answer on the page.

    Parameters
    ----------
    known : what is known of the mailbox.
    path : the database of the journal.
    kept : "nothing", "folders" or "subjects", as the setting `page`.
    """

    def __init__(self, known: Known, path: str, kept: str) -> None:
        self._known, self._kept = known, kept
        self._wanted = {} if kept == "nothing" else open_to_answers(known.records)
        self._items = Items(path)

    def __enter__(self) -> Page:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._items.close()

    @property
    def _name(self) -> str:
        return self._known.model.name

    def _descriptions(self) -> dict[str, Description]:
        """Return the titles and the notes of the items that are messages; others may be added."""
        found = self._items.descriptions(self._name).items()
        return {id: each for id, each in found if message_of(id) in self._known.records}

    def tidy(self) -> None:
        """Remove what does not wait any more, and say of the others where they are now."""
        described = self._descriptions()
        gone = [id for id in described if message_of(id) not in self._wanted]
        self._items.remove(self._name, gone)
        self._mark(map(message_of, gone), is_shown=False)
        now = {
            id: ("" if self._kept == "folders" else title, _note(self._wanted[message_of(id)]))
            for id, (title, _) in described.items()
            if message_of(id) in self._wanted
        }
        changed = {id: each for id, each in now.items() if each != described[id]}
        if changed:
            self._items.describe(self._name, changed)

    def missing(self) -> list[str]:
        """Return the messages that have to be read, to be added or to be called by their subjects.

        Those that were added once and discarded on the page are not added again.
        """
        titles = {message_of(id): title for id, (title, _) in self._descriptions().items()}
        records = self._known.records
        new = [i for i in self._wanted if i not in titles and not records[i].is_shown]
        untitled = [i for i, title in titles.items() if self._kept == "subjects" and not title]
        return [*new, *untitled]

    def add(self, messages: Iterable[tuple[str, bytes]]) -> None:
        """Add messages, or the titles of those that wait already."""
        waiting = {message_of(id): id for id in self._descriptions()}
        new, titles = list[Item](), dict[str, Description]()
        for identity, message in messages:
            title = title_of(message) if self._kept == "subjects" else ""
            note = _note(self._wanted[identity])
            if identity in waiting:
                titles[waiting[identity]] = title, note
            else:
                new.append(self._item(identity, message, title, note))
        self._items.add(self._name, new)
        self._items.describe(self._name, titles)
        self._mark((message_of(each.id) for each in new), is_shown=True)

    def _mark(self, identities: Iterable[str], *, is_shown: bool) -> None:
        """Keep whether messages are on the page."""
        records = self._known.records
        self._known.update({i: replace(records[i], is_shown=is_shown) for i in identities})

    def _item(self, identity: str, message: bytes, title: str, note: str | None) -> Item:
        known = self._known
        id, _ = new_id(known.model, identity, known.records[identity].n_events)
        return Item(id, read(message).row(known.threads), title=title, note=note)

    def done(self) -> None:
        """Keep which answers can be used."""
        model = self._known.model
        answers = None if self._kept == "nothing" else sorted(self._known.classes)
        if model.kept(ANSWERS).get(ANSWERS) != answers:
            model.keep(ANSWERS, answers)


def is_used(model: Model, kept: str) -> bool:
    """Return whether the page shows messages, or has shown some before."""
    return kept != "nothing" or ANSWERS in model.kept(ANSWERS)


def title_of(message: bytes) -> str:
    r"""Return the subject and the sender of a message.

    Examples
    --------
    >>> title_of(b"From: Ann <ann@a.org>\nSubject: Lunch\n\nAt one")
    'Lunch\nAnn <ann@a.org>'
    """
    parsed = BytesHeaderParser().parsebytes(message[: 1 << 16])
    subject, sender = header(parsed, "subject"), header(parsed, "from")
    return f"{subject[:LONGEST] or '(no subject)'}\n{sender[:LONGEST]}".strip()


def _note(folder: str | None) -> str | None:
    return None if folder is None else f"moved to {folder}"

"""A sorter: it learns what a person does in a mailbox, and files what is new in the inbox."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from kesler.errors import KeslerError
from kesler.mail.accounts import require_own
from kesler.mail.decisions import ACTIONS, answered, decided
from kesler.mail.filing import Filing
from kesler.mail.folders import is_inbox
from kesler.mail.known import ChangedError, Known
from kesler.mail.messages import Read, read
from kesler.mail.page import Page, hear, is_used, new_id
from kesler.mail.rows import Spool
from kesler.mail.scanning import gone_classes, scan
from kesler.mail.server import RefusedError, Server, ServerError
from kesler.mail.settings import MailSettings
from kesler.mail.state import MOVES, Record, renamed, without
from kesler.progress import LOGGER

if TYPE_CHECKING:
    from kesler.durable import Journal, Model

BLOCK = 200  # messages that are learnt in one transaction
MEMORY = "48 MB"
"""The memory of a model: some 30,000 words where there are 40 folders. On the mail of three users
of Enron, no more mistakes are made than without a limit, in 2,000 to 4,500 messages each."""
BY = "kesler mail"
TRIES = 5
"""Looks that are begun anew, as other processes have changed something, before the next pause."""


class Done(NamedTuple):
    """What was done with a message: "learnt", "suggested", "marked", "moved" or "taken back"."""

    what: str
    identity: str
    folder: str | None
    confidence: float | None = None


class Sorter:
    """The sorter of a mailbox.

    Parameters
    ----------
    journal : where its model is, and what is known of the mailbox.
    settings : the settings of the mailbox.

    Raises
    ------
    KeslerError
        If the account has learnt another mailbox, or a later version of Kesler has written it.
    """

    def __init__(self, journal: Journal, settings: MailSettings) -> None:
        self.model = model_of(journal, settings.account)
        require_own(self.model, settings)
        self._path = journal.path
        self.settings = settings
        self._read()

    def _read(self) -> None:
        """Read what is known of the mailbox, as another process may have changed it."""
        self.known = Known(self.model)
        self._filing = Filing(self.settings.error)
        self._learnt = list[tuple[float, str, bool]]()
        self._n_predicted = max((each.number for each in self.known.records.values()), default=0)

    @property
    def filing(self) -> Filing:
        """What chooses the messages that are filed, from all predictions whose outcome is known."""
        known = [each for each in self.known.records.values() if each.is_right is not None]
        known.sort(key=lambda each: each.number)
        found = [_outcome(each, bool(each.is_right)) for each in known]
        if found != self._learnt or self._filing.error != self.settings.error:
            self._filing, self._learnt = Filing(self.settings.error), []
            for each in found:
                self._learn_outcome(each)
        return self._filing

    def _learn_outcome(self, outcome: tuple[float, str, bool]) -> None:
        self._filing.learn(*outcome)
        self._learnt.append(outcome)

    def look(
        self, server: Server, *, predict: bool = True, only: str | None = None
    ) -> Iterator[Done]:
        """Look at the mailbox, learn what has been done in it, and do what is due.

        Parameters
        ----------
        server : a connection.
        predict : whether messages that are new in the inbox are predicted.
        only : the only message that is moved or marked; None for all with which that is due.

        Yields
        ------
        What was done, when it is on disk.

        Raises
        ------
        ServerError
            If the connection fails. What was due is done with the next look.
        """
        for _ in range(TRIES):
            try:
                yield from self._look(server, predict, only)
                return
            except ChangedError:
                self._read()

    def _look(self, server: Server, predict: bool, only: str | None) -> Iterator[Done]:
        after, statuses = scan(server, self.known, self.settings.never)
        self._forget(server, gone_classes(self.known, after, renamed(self.known.mailbox, after)))
        self.known.observe(after, statuses, predict=predict)
        hear(self.known, BY)
        yield from self._learn(server)
        yield from self._answered(server)
        yield from self._predict(server)
        self._show(server)
        yield from self._act(server, only)

    def _forget(self, server: Server, gone: list[str]) -> None:
        """Forget classes whose folders are gone, if that is wanted."""
        if self.settings.deleted != "forget":
            return
        lost = [name for name in gone if not server.exists(name)]
        for name in lost:
            if name in self.model.classes_:
                self.model.forget_class(name, by=BY)
            self.known.forget(name)
        if lost:
            records = self.known.records.items()
            found = {identity: (each, without(each, lost)) for identity, each in records}
            self.known.update({i: new for i, (old, new) in found.items() if new is not old})

    # ---- learning ---------------------------------------------------------------------------

    def _learn(self, server: Server) -> Iterator[Done]:
        """Learn the messages that are due in the order of their dates."""
        identities = self.known.due("learn")
        if not identities:
            return
        self._filing = self.filing  # with what was known before this process began
        with Spool() as spool:
            for identity, folder, message in self._messages(server, identities):
                spool.add(identity, folder, message)
            rows = iter(spool)
            while block := [*islice(rows, BLOCK)]:
                yield from self._learn_block(block)

    def _messages(
        self, server: Server, identities: Iterable[str], folder: str | None = None
    ) -> Iterator[tuple[str, str, bytes]]:
        """Yield messages of a folder, or each of the folder it is in, with that."""
        wanted = [(folder or str(self.known.records[i].folder), i) for i in identities]
        for name, group in groupby(sorted(wanted), key=lambda each: each[0]):
            asked = {identity for _, identity in group}
            try:
                yield from self._messages_of(server, name, asked)
            except RefusedError as error:
                LOGGER.warning("a folder cannot be read: %s", error)

    def _messages_of(
        self, server: Server, name: str, asked: set[str]
    ) -> Iterator[tuple[str, str, bytes]]:
        seen = self.known.mailbox.get(name)
        if seen is None or server.open(name).validity != seen.validity:
            return  # the next look says more
        found = {i: n for n, i in seen.messages.items() if i in asked}
        by_number = {number: identity for identity, number in found.items()}
        for number, message in server.messages(sorted(by_number)):
            if number in by_number:
                yield by_number.pop(number), name, message

    def _learn_block(self, block: list[tuple[str, str, Read]]) -> list[Done]:
        try:
            with self.known.together():
                taught = [self._taught(*each) for each in block]
                self.known.update(dict(taught))
        except KeslerError as error:
            if isinstance(error, ServerError | ChangedError):
                raise
            self._filing = self.filing  # without what the block has learnt
            if len(block) > 1:
                return [done for each in block for done in self._learn_block([each])]
            return self._given_up(block[0][0], error)
        return [Done("learnt", identity, record.answer) for identity, record in taught]

    def _given_up(self, identity: str, error: KeslerError) -> list[Done]:
        """Leave out a message that the learner refuses; raise if the journal does."""
        from kesler.durable import JournalError

        if isinstance(error, JournalError):
            raise error
        LOGGER.warning("a message cannot be learnt: %s", error)
        self.known.update({identity: replace(self.known.records[identity], due=None)})
        return []

    def _taught(self, identity: str, folder: str, message: Read) -> tuple[str, Record]:
        """Learn that a message is of a folder; return its record."""
        record, row = self.known.records[identity], message.row(self.known.threads)
        record = replace(record, filed=self.known.file(message.keys, folder, record.filed))
        if record.guess is None:
            record = self._predicted(record, row)
        if record.sureness is not None and record.is_right is None:
            self._learn_outcome(_outcome(record, record.guess == folder))
        event = None if record.event is None else self.model.find(record.event)
        if event is not None and not event.taken_back:
            self.model.relabel(event.id, folder, by=BY)
            return identity, replace(record, due=None, answer=folder)
        id, n = new_id(self.model, identity, record.n_events)
        if self.model.find(id):  # it has been answered on the page meanwhile
            self.model.relabel(id, folder, by=BY)
        else:
            self.model.learn_one(row, folder, id=id, by=BY)
        return identity, replace(record, due=None, answer=folder, event=id, n_events=n)

    # ---- the page of the service --------------------------------------------------------------

    def _answered(self, server: Server) -> Iterator[Done]:
        """Do what follows from answers that were given on the page, which has learnt them."""
        for identity in self.known.due("answer"):
            record, place = self.known.records[identity], self._place(identity)
            folder = str(record.answer)
            if folder not in self.known.classes:
                LOGGER.warning(
                    "the folder of an answer is none of those that are looked at, so that its "
                    "message is not filed: make it in the mail program, or correct the answer"
                )
            messages = [*self._messages(server, [identity], place)] if place else []
            with self.known.together():
                for _, _, message in messages:
                    filed = self.known.file(read(message).keys, folder, record.filed)
                    record = replace(record, filed=filed)
                left = answered(record, self.settings.action, place, self.known.classes)
                self.known.update({identity: left})
            yield Done("learnt", identity, folder)

    def _place(self, identity: str) -> str | None:
        """Return the folder that holds a message, the inbox before others."""
        folders = sorted(self.known.mailbox, key=is_inbox, reverse=True)
        return next((name for name in folders if self.known.where(identity, name)), None)

    def _show(self, server: Server) -> None:
        """Bring up to date what waits on the page."""
        if not is_used(self.model, self.settings.page):
            return
        with Page(self.known, self._path, self.settings.page) as page:
            page.tidy()
            wanted = [(self._place(each), each) for each in page.missing()]
            for place in {place for place, _ in wanted if place is not None}:
                asked = [identity for name, identity in wanted if name == place]
                found = self._messages(server, asked, place)
                page.add((identity, message) for identity, _, message in found)
            page.done()

    # ---- predictions ------------------------------------------------------------------------

    def _predicted(self, record: Record, row: Any) -> Record:
        """Return a record with the prediction for a row, if the model knows a class."""
        if not len(self.model.classes_):
            return record
        guess, confidence = str(self.model.predict_one(row)), self.model.confidence_one(row)
        self._n_predicted += 1
        return replace(
            record,
            guess=guess,
            confidence=confidence,
            sureness=self._filing.sureness(confidence, guess, row),
            number=self._n_predicted,
        )

    def _predict(self, server: Server) -> Iterator[Done]:
        """Predict the messages that are new in the inbox."""
        inbox = next(filter(is_inbox, self.known.mailbox), None)
        waiting = self.known.due("predict")
        if inbox is None or not waiting:
            return
        filing = self.filing
        for identity, _, message in self._messages(server, waiting, inbox):
            row = read(message).row(self.known.threads)
            record = self._predicted(self.known.records[identity], row)
            is_sure = record.sureness is not None and filing.files(record.sureness)
            record = decided(record, self.settings.action, is_sure, self.known.classes)
            self.known.update({identity: record})
            if record.guess is not None:
                yield Done("suggested", identity, record.guess, record.confidence)

    # ---- acts -------------------------------------------------------------------------------

    def _act(self, server: Server, only: str | None) -> Iterator[Done]:
        """Move and mark the messages that are due."""
        inbox = next(filter(is_inbox, self.known.mailbox), "INBOX")
        wanted = (*ACTIONS[self.settings.action], "back")
        for identity in self.known.due("keyword", *MOVES, "back"):
            record = self.known.records[identity]
            if only not in (None, identity):
                continue
            if record.due not in wanted:
                self._call_off(identity, record)
                continue
            source = record.folder if record.due == "back" else self._place(identity)
            number = self.known.where(identity, source or "")
            if record.due == "back" and number is None and self.known.where(identity, inbox):
                self._call_off(identity, record)  # it is where it was to be moved back
                continue
            if number is None or source is None:
                continue  # the next look says where it is
            try:
                yield from self._done(server, identity, record, source, number, inbox)
            except RefusedError as error:
                LOGGER.warning("a message stays where it is: %s", error)
                left = replace(record, due=None) if record.due == "back" else _called_off(record)
                self.known.update({identity: left})

    def _call_off(self, identity: str, record: Record) -> None:
        """Leave a message where it is."""
        self.known.update({identity: _called_off(record)})

    def _done(
        self, server: Server, identity: str, record: Record, source: str, number: int, inbox: str
    ) -> Iterator[Done]:
        """Do what is due with a message; that it was moved is known when it is seen there."""
        if record.due == "keyword":
            folder = record.answer or str(record.guess)
            if server.mark(source, number, identity, keyword_of(folder)):
                self.known.update({identity: replace(record, due=None)})
                yield Done("marked", identity, folder, record.confidence)
            return
        target = inbox if record.due == "back" else str(record.folder)
        if record.due == "move":  # its answer may not come
            self.known.update({identity: replace(record, due="moving")})
        if server.move(source, number, identity, target):
            what = "taken back" if record.due == "back" else "moved"
            yield Done(what, identity, target, record.confidence)
        else:
            self.known.update({identity: record})

    def row(self, server: Server, identity: str) -> Any:
        """Return the row of a message; None if it is in no folder that is looked at."""
        folders = [name for name in self.known.mailbox if self.known.where(identity, name)]
        for _, _, message in self._messages(server, [identity], *folders[:1]) if folders else ():
            return read(message).row(self.known.threads)
        return None

    def undo(self, identity: str) -> list[Done]:
        """Take back what was learnt of a message; if it was moved, it is due to be moved back.

        Raises
        ------
        KeslerError
            If nothing has been done with the message.
        """
        record = self.known.records.get(identity)
        if record is None or (record.event is None and not record.is_ours):
            raise KeslerError(
                f"nothing was learnt of the message {identity} and it was not moved: give a "
                "Message-ID that kesler mail watch has printed as learnt or moved"
            )
        done = []
        with self.known.together():
            if record.event is not None and self.model.undo(record.event, by=BY).changed:
                done.append(Done("taken back", identity, record.answer))
            self.known.take_back([identity])
        return done


def _outcome(record: Record, is_right: bool) -> tuple[float, str, bool]:
    """Return how sure a prediction was, what it was, and whether it was right."""
    return record.sureness or 0.0, str(record.guess), is_right


def _called_off(record: Record) -> Record:
    """Return the record of a message that stays where it is."""
    left = replace(record, due=None)
    return left if record.due == "keyword" else replace(left, folder=None, is_ours=False)


def model_of(journal: Journal, name: str) -> Model:
    """Return the model of an account, which is made if there is none."""
    from kesler.online.classifier import OnlineClassifier

    is_there = name in journal.models()
    return journal.open(name, None if is_there else OnlineClassifier(memory_limit=MEMORY))


def keyword_of(folder: str) -> str:
    """Return the keyword that suggests a folder, of the characters that IMAP allows.

    Examples
    --------
    >>> keyword_of("Work/Büro (alt)")
    'kesler:Work/B_ro__alt_'
    """
    plain = re.sub(r"[^A-Za-z0-9/._-]", "_", folder)
    return f"kesler:{plain}"

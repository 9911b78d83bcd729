"""A sorter: it learns what a person does in a mailbox, and files what is new in the inbox."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from kesler.errors import KeslerError
from kesler.mail.decisions import decided
from kesler.mail.filing import Filing
from kesler.mail.folders import is_inbox
from kesler.mail.imap import RefusedError, Server, ServerError
from kesler.mail.known import Known
from kesler.mail.messages import Read, read
from kesler.mail.rows import Spool
from kesler.mail.scanning import gone_classes, scan
from kesler.mail.settings import MailSettings
from kesler.mail.state import Record, renamed, without
from kesler.progress import LOGGER

if TYPE_CHECKING:
    from kesler.durable import Journal, Model

BLOCK = 200  # messages that are learnt in one transaction
BY = "kesler mail"


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
    """

    def __init__(self, journal: Journal, settings: MailSettings) -> None:
        self.model = model_of(journal, settings.account)
        self.settings = settings
        self.known = Known(self.model)
        self._filing, self._n_outcomes = Filing(settings.error), 0
        self._n_predicted = max((each.number for each in self.known.records.values()), default=0)

    @property
    def filing(self) -> Filing:
        """What chooses the messages that are filed, from all predictions whose outcome is known."""
        found = sorted((each for each in self._outcomes()), key=lambda each: each.number)
        if len(found) != self._n_outcomes or self._filing.error != self.settings.error:
            self._filing, self._n_outcomes = Filing(self.settings.error), len(found)
            for each in found:
                self._filing.learn(each.sureness or 0.0, str(each.guess), bool(each.is_right))
        return self._filing

    def _outcomes(self) -> Iterator[Record]:
        return (each for each in self.known.records.values() if each.is_right is not None)

    def look(self, server: Server, *, predict: bool = True) -> Iterator[Done]:
        """Look at the mailbox, learn what has been done in it, and do what is due.

        Parameters
        ----------
        server : a connection.
        predict : whether messages that are new in the inbox are predicted.

        Yields
        ------
        What was done, when it is on disk.

        Raises
        ------
        ServerError
            If the connection fails. What was due is done with the next look.
        """
        after, statuses = scan(server, self.known, self.settings.never)
        self._forget(server, gone_classes(self.known, after, renamed(self.known.mailbox, after)))
        self.known.observe(after, statuses, predict=predict)
        yield from self._learn(server)
        yield from self._predict(server)
        yield from self._act(server)

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
            seen = self.known.mailbox.get(name)
            if seen is None or server.open(name).validity != seen.validity:
                continue  # the next look says more
            found = {i: n for n, i in seen.messages.items() if i in asked}
            by_number = {number: identity for identity, number in found.items()}
            for number, message in server.messages(sorted(by_number)):
                if number in by_number:
                    yield by_number.pop(number), name, message

    def _learn_block(self, block: list[tuple[str, str, Read]]) -> list[Done]:
        try:
            with self.model.together():
                taught = [self._taught(*each) for each in block]
                self.known.update(dict(taught))
        except KeslerError as error:
            if isinstance(error, ServerError):
                raise
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
        self.known.file(message.keys, folder)
        if record.guess is None:
            record = self._predicted(record, row)
        if record.sureness is not None and record.is_right is None:
            self._filing.learn(record.sureness, str(record.guess), record.guess == folder)
            self._n_outcomes += 1
        event = None if record.event is None else self.model.find(record.event)
        if event is not None and not event.taken_back:
            self.model.relabel(event.id, folder, by=BY)
            return identity, replace(record, due=None, answer=folder)
        n = record.n_events + 1
        while self.model.find(id := identity if n == 1 else f"{identity} {n}"):
            n += 1
        self.model.learn_one(row, folder, id=id, by=BY)
        return identity, replace(record, due=None, answer=folder, event=id, n_events=n)

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

    def _act(self, server: Server) -> Iterator[Done]:
        """Move and mark the messages that are due."""
        inbox = next(filter(is_inbox, self.known.mailbox), "INBOX")
        for identity in self.known.due("move", "keyword", "back"):
            record = self.known.records[identity]
            if record.due not in (self.settings.action, "back"):
                self._call_off(identity, record)
                continue
            source = record.folder if record.due == "back" else inbox
            number = self.known.where(identity, source or "")
            if number is None or source is None:
                continue  # the next look says where it is
            try:
                yield from self._done(server, identity, record, source, number, inbox)
            except RefusedError as error:
                LOGGER.warning("a message stays where it is: %s", error)
                self._call_off(identity, record)

    def _call_off(self, identity: str, record: Record) -> None:
        """Leave a message where it is."""
        left = replace(record, due=None)
        if record.due == "move":
            left = replace(left, folder=None, is_ours=False)
        self.known.update({identity: left})

    def _done(
        self, server: Server, identity: str, record: Record, source: str, number: int, inbox: str
    ) -> Iterator[Done]:
        """Do what is due with a message; that it was moved is known when it is seen there."""
        if record.due == "keyword":
            if server.mark(source, number, identity, keyword_of(str(record.guess))):
                self.known.update({identity: replace(record, due=None)})
                yield Done("marked", identity, record.guess, record.confidence)
            return
        target = inbox if record.due == "back" else str(record.folder)
        if server.move(source, number, identity, target):
            what = "taken back" if record.due == "back" else "moved"
            yield Done(what, identity, target, record.confidence)

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
                f"nothing was learnt of the message {identity} and it was not moved: give the "
                "Message-ID of one that kesler mail report lists"
            )
        done = []
        with self.model.together():
            if record.event is not None and self.model.undo(record.event, by=BY).changed:
                done.append(Done("taken back", identity, record.answer))
            due = "back" if record.is_ours else None
            left = replace(record, event=None, answer=None, due=due)
            self.known.update({identity: left})
        return done


def model_of(journal: Journal, name: str) -> Model:
    """Return the model of an account, which is made if there is none."""
    from kesler.online.classifier import OnlineClassifier

    return journal.open(name, None if name in journal.models() else OnlineClassifier())


def keyword_of(folder: str) -> str:
    """Return the keyword that suggests a folder, of the characters that IMAP allows.

    Examples
    --------
    >>> keyword_of("Work/Büro (alt)")
    'kesler:Work/B_ro__alt_'
    """
    plain = re.sub(r"[^A-Za-z0-9/._-]", "_", folder)
    return f"kesler:{plain}"

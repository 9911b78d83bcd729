"""What is known of a mailbox as the journal of its model keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, NamedTuple

from kesler.errors import KeslerError
from kesler.mail.folders import is_inbox
from kesler.mail.state import (
    Folder,
    Mailbox,
    Record,
    changed,
    places,
    rename_folders,
    rename_record,
    renamed,
    settle,
    taken_back,
)
from kesler.mail.threads import Keys, Threads, asked_for, filed_under

if TYPE_CHECKING:
    from kesler.durable import Model

PLACE, MESSAGE, STATUS, THREAD = "place/", "message/", "status/", "thread/"
VERSION = "version"
"""The name of the number of changes, by which other processes notice them."""


FORMAT, LATEST = "format", 1
"""The name of the number of the form of all this, and that number: later forms have larger ones."""

MOST_FILED = 5
"""Messages of each thread, people and sender whose folders are kept, for those taken back."""


class ChangedError(KeslerError):
    """Another process has changed what is known of a mailbox."""


class Status(NamedTuple):
    """What a server says of a folder without its messages.

    A number that a server does not give is 0; `modseq` is the HIGHESTMODSEQ of CONDSTORE.
    """

    validity: int = 0
    next: int = 0
    n_messages: int = 0
    modseq: int = 0


class Filed(NamedTuple):
    """A message that was put into a folder: the number of the call, and the folder."""

    number: int
    folder: str


class Known:
    """What is known of a mailbox, in memory and in the journal of a model.

    Parameters
    ----------
    model : the model whose journal has it.

    Attributes
    ----------
    mailbox : the folders as they were seen last.
    statuses : what the server said of them then.
    records : what is known of each message, by its identity.
    threads : the folders of the conversations so far.

    Raises
    ------
    KeslerError
        If a later version of Kesler has written it.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._format = self._number(FORMAT)
        if self._format > LATEST:
            raise KeslerError(
                f"what is known of the mailbox was written by a newer Kesler (form {self._format}, "
                f"this one reads up to {LATEST}): update Kesler"
            )
        self.records = {
            name.removeprefix(MESSAGE): Record(*value)
            for name, value in model.kept(MESSAGE).items()
        }
        self.statuses = {
            name.removeprefix(STATUS): Status(*value) for name, value in model.kept(STATUS).items()
        }
        found: dict[str, dict[int, str]] = {name: {} for name in self.statuses}
        for name, identity in model.kept(PLACE).items():
            folder, _, number = name.removeprefix(PLACE).rpartition("/")
            found[folder][int(number)] = identity
        self.mailbox: Mailbox = {
            name: Folder(self.statuses[name].validity, messages) for name, messages in found.items()
        }
        self._version, self._is_together = self._number(VERSION), False
        self._read_threads()

    def _number(self, name: str) -> int:
        return int(self.model.kept(name).get(name, 0))

    def _read_threads(self) -> None:
        kept = self.model.kept(THREAD).items()
        last = sorted((*_filed(value)[0], name.removeprefix(THREAD)) for name, value in kept)
        self.threads = Threads({key: folder for _, folder, key in last})
        self._n_filed = last[-1][0] if last else 0

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make the changes within this context in one transaction.

        Raises
        ------
        ChangedError
            If another process has changed something since this was read: nothing is changed.
        """
        if self._is_together:
            yield
            return
        self._is_together = True
        try:
            with self.model.together():
                if self._number(VERSION) != self._version:
                    raise ChangedError(
                        "another process has changed what is known of the mailbox meanwhile: "
                        "repeat the command"
                    )
                yield
                self.model.keep(VERSION, self._version + 1)
                if self._format != LATEST:
                    self.model.keep(FORMAT, LATEST)
            self._version, self._format = self._version + 1, LATEST
        except BaseException:
            self._read_threads()
            raise
        finally:
            self._is_together = False

    @property
    def classes(self) -> list[str]:
        """The folders that are classes."""
        return [name for name in self.mailbox if not is_inbox(name)]

    def due(self, *kinds: str) -> list[str]:
        """Return the messages with which something of these kinds is to be done."""
        return [identity for identity, each in self.records.items() if each.due in kinds]

    def where(self, identity: str, folder: str) -> int | None:
        """Return the number of a message in a folder; None if it is not there."""
        messages = self.mailbox[folder].messages if folder in self.mailbox else {}
        return next((number for number, each in messages.items() if each == identity), None)

    def observe(
        self, after: Mailbox, statuses: Mapping[str, Status], *, predict: bool
    ) -> dict[str, str]:
        """Take note of a look at the mailbox, in one transaction.

        Parameters
        ----------
        after : the folders as they are now.
        statuses : what the server says of them.
        predict : whether the classes of messages that are new in the inbox are to be predicted.

        Returns
        -------
        The new names of folders that were renamed, as classes of the model are then as well.
        """
        names = renamed(self.mailbox, after)
        before = rename_folders(self.mailbox, names)
        records = {
            identity: new
            for identity, old in self.records.items()
            if names and (new := rename_record(old, names)) is not old
        }
        records |= self._settled(before, after, records, predict)
        with self.together():
            self._keep_places(after)
            self._keep_statuses(statuses)
            for identity, record in records.items():
                self._keep_record(identity, record)
            for former, name in names.items():
                rename_class(self.model, former, name)
            if names:
                self._change_filed(
                    lambda each: each._replace(folder=names.get(each.folder, each.folder))
                )
        self.mailbox, self.statuses = dict(after), dict(statuses)
        self.records |= records
        return names

    def _settled(
        self, before: Mailbox, after: Mailbox, records: Mapping[str, Record], predict: bool
    ) -> dict[str, Record]:
        """Return the records of the messages that are in other folders than before."""
        moved = changed(before, after)
        where = places(after, moved)
        found = {}
        for identity in sorted(moved):
            known = records.get(identity) or self.records.get(identity)
            folders = where.get(identity, set())
            held = [name for name in folders if not is_inbox(name)]
            is_new = known is None and not held and predict
            start = known or Record(due="predict" if is_new else None)
            found[identity] = settle(start, held, len(held) < len(folders))
        return found

    def update(self, records: Mapping[str, Record]) -> None:
        """Replace what is known of messages; within a transaction, as a part of that."""
        with self.together():
            for identity, record in records.items():
                self._keep_record(identity, record)
        self.records |= records

    def file(self, keys: Keys, folder: str, former: int = 0) -> int:
        """Remember in which folder a message was put; within a transaction, as a part of that.

        Parameters
        ----------
        keys : what connects the message with others.
        folder : where it was put.
        former : the number of an earlier call for the same message, which this one replaces.

        Returns
        -------
        The number of this call, by which `take_back` finds it in the record of the message.
        """
        with self.together():
            self._n_filed += 1
            new = Filed(self._n_filed, folder)
            known = [key for key in filed_under(keys) if key in self.threads.folders]
            before = {key: _filed(self._kept_of(key)) for key in known}
            for key, now in self.threads.learn(keys, folder).items():
                others = [each for each in before.get(key, ()) if each.number != former]
                self._keep_filed(key, [] if now is None else [new, *others])
        return self._n_filed

    def take_back(self, identities: Iterable[str]) -> None:
        """Take back the answers of messages, and forget that they were put into those folders."""
        records = {identity: self.records[identity] for identity in identities}
        numbers = {each.filed for each in records.values() if each.filed}
        with self.together():
            if numbers:
                self._change_filed(lambda each: None if each.number in numbers else each)
            self.update({identity: taken_back(each) for identity, each in records.items()})

    def forget(self, folder: str) -> None:
        """Forget the threads of a folder."""
        self._change_filed(lambda each: None if each.folder == folder else each)

    def _change_filed(self, change: Callable[[Filed], Filed | None]) -> None:
        """Change or remove what is remembered of messages that were put into folders."""
        with self.together():
            for name, value in self.model.kept(THREAD).items():
                before = _filed(value)
                after = [each for each in map(change, before) if each is not None]
                if after != before:
                    self._keep_filed(name.removeprefix(THREAD), after)
            self._read_threads()

    def _kept_of(self, key: str) -> Any:
        return self.model.kept(THREAD + key)[THREAD + key]

    def _keep_filed(self, key: str, filed: Iterable[Filed]) -> None:
        """Keep the last messages of a thread, the latest first."""
        flat = [value for each in [*filed][:MOST_FILED] for value in each]
        self.model.keep(THREAD + key, flat or None)

    def _keep_record(self, identity: str, record: Record) -> None:
        self.model.keep(MESSAGE + identity, [*astuple(record)])

    def _keep_places(self, after: Mailbox) -> None:
        for name, value in _differences(self.mailbox, after):
            self.model.keep(PLACE + name, value)

    def _keep_statuses(self, statuses: Mapping[str, Status]) -> None:
        for name in {*self.statuses, *statuses}:
            value = statuses.get(name)
            if value != self.statuses.get(name):
                self.model.keep(STATUS + name, value and [*value])


def _filed(flat: list[Any]) -> list[Filed]:
    """Return the messages that `_keep_filed` has kept, the latest first."""
    return [*map(Filed, flat[::2], flat[1::2])]


def _differences(before: Mailbox, after: Mailbox) -> Iterator[tuple[str, Any]]:
    """Yield the places that have changed, and the identity of the message there now."""
    for name in {*before, *after}:
        old, new = before.get(name), after.get(name)
        if old is new:
            continue
        known = {} if old is None else old.messages
        found = {} if new is None else new.messages
        for number in {*known, *found}:
            if known.get(number) != found.get(number):
                yield f"{name}/{number}", found.get(number)


def threads_of(model: Model, keys: Keys) -> Threads:
    """Return the threads that a model keeps, of one message: asked for by its keys, and not all."""
    kept = [model.kept(THREAD + key).get(THREAD + key) for key in asked_for(keys)]
    pairs = zip(asked_for(keys), kept, strict=True)
    return Threads({key: value[1] for key, value in pairs if value is not None})


def rename_class(model: Model, old: str, new: str) -> None:
    """Rename a class of a model, if it is known; into one that is known, it is merged."""
    classes = model.classes_.tolist()
    if old not in classes:
        return
    if new in classes:
        model.merge(old, new)
    else:
        model.rename(old, new)

"""Journal: a database of models whose answers are kept."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from threading import RLock
from types import TracebackType
from typing import Any

from kesler.durable.chain import Beginning, faults_of
from kesler.durable.contents import from_json, require_name
from kesler.durable.failures import JournalError
from kesler.durable.model import Model
from kesler.durable.settings import estimator_of, settings_of
from kesler.durable.storage import Storage
from kesler.errors import KeslerError


class Journal:
    """A database of models whose answers are kept, each of which can be taken back.

    It is one SQLite file, with a log beside it while it is open. Several processes may open it:
    one writes at a time, the others read the state of the last write. Models are learners that have
    met what is in the database, bit for bit, at any time and after any interruption.

    Parameters
    ----------
    path : path
        The database file, which is created if it does not exist.
    wait : float, 0 or more, default 10
        The seconds that a call waits while another process writes, before it raises an error.

    Raises
    ------
    KeslerError
        If the file cannot be opened, is no journal or is damaged.

    Notes
    -----
    Every change is written to disk before the call returns, which takes as long as the disk needs:
    about a millisecond on a solid-state disk.

    A journal may be used from several threads; of its writes, one runs at a time.

    Examples
    --------
    >>> import tempfile
    >>> from kesler import OnlineClassifier
    >>> from kesler.durable import Journal
    >>> path = tempfile.mkdtemp() + "/desk.db"
    >>> with Journal(path) as journal:
    ...     mail = journal.open("mail", OnlineClassifier())
    ...     for id, words, folder in [("m1", "win cash", "spam"), ("m2", "team lunch", "work")]:
    ...         receipt = mail.learn_one(words, folder, id=id, subject="ann@example.org")
    ...     renamed = mail.rename("work", "office")
    >>> with Journal(path) as journal:
    ...     mail = journal.open("mail")
    ...     mail.predict_one("lunch with the team"), journal.models()
    ('office', ['mail'])
    """

    def __init__(self, path: str | os.PathLike[str], wait: float = 10.0) -> None:
        if not (isinstance(wait, (int, float)) and wait >= 0):
            raise KeslerError(f"wait={wait!r}: give a number of seconds, 0 or more")
        self._storage = Storage(_path_of(path), wait)
        self._lock = RLock()
        self._models: dict[str, Model] = {}
        self._storage.purge_if_possible()

    @property
    def path(self) -> str:
        """The path of the database."""
        return str(self._storage.path)

    def __repr__(self) -> str:
        return f"Journal({str(self._storage.path)!r})"

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; the models can no longer be used. A second call does nothing."""
        with self._lock:
            for model in self._models.values():
                model._replica.write_snapshots(closing=True)
            self._models.clear()
            self._storage.close()

    @property
    def notes(self) -> list[str]:
        """What is worth knowing of how models were opened, such as by learning all rows again."""
        return [note for model in self._models.values() for note in model._replica.notes]

    # ---- models -----------------------------------------------------------------------------

    def open(self, name: str, estimator: Any = None) -> Model:
        """Return the model of a name as it was left; make it if there is none.

        Parameters
        ----------
        name : str of 1 to 500 characters
        estimator : estimator or None, default None
            An unfitted online estimator, whose settings a new model has. For a model that exists,
            None, or an estimator with the same settings.

        Returns
        -------
        The :class:`~kesler.durable.Model`; the same object if it is open already.

        Raises
        ------
        KeslerError
            If there is no such model and no estimator, the estimator has learnt already, has other
            settings than the model, or cannot be kept: it uses code of yours, or learns from
            ratings.
        """
        name = require_name(name, "name")
        settings = None if estimator is None else settings_of(estimator)
        with self._lock:
            key, known = self._made(name, settings)
            if settings not in (None, known, settings_of(estimator_of(known))):
                raise KeslerError(
                    f"the model {name!r} has other settings than {estimator!r:.200}: open it "
                    "without an estimator, or use another name"
                )
            model = self._models.get(name)
            if model is None or model._key != key:
                model = self._models[name] = Model(self._storage, self._lock, name, key, known)
            model._catch_up()
            return model

    def _made(self, name: str, settings: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        """Return the key and the settings of a model, which is made if there is none."""
        found = self._storage.model(name)
        if found is not None:
            return found[0], from_json(found[1])
        if settings is None:
            known = ", ".join(map(repr, self.models()[:5])) or "none yet"
            raise JournalError(
                f"there is no model {name!r} in {self._storage.path}: give an estimator to make "
                f"it; those in it are {known}",
                "not found",
            )
        with self._storage.writing():
            found = self._storage.model(name)  # another process may have been faster
            if found is not None:
                return found[0], from_json(found[1])
            return self._storage.add_model(name, json.dumps(settings)), settings

    def models(self) -> list[str]:
        """Return the names of the models, in the order of their creation."""
        with self._lock:
            return self._storage.models()

    def delete(self, name: str) -> None:
        """Remove a model and its history for good: nothing of it is left in the files.

        Raises
        ------
        KeslerError
            If there is no such model.
        """
        with self._lock:
            with self._storage.writing():
                self._storage.remove_model(self._kept(name)[0])
            self._models.pop(name, None)
            self._storage.purge()

    def _kept(self, name: str) -> tuple[int, str]:
        """Return the key and the settings of a model as stored; raise if there is none."""
        found = self._storage.model(require_name(name, "name"))
        if found is None:
            raise JournalError(f"there is no model {name!r} in {self._storage.path}", "not found")
        return found

    # ---- the database -----------------------------------------------------------------------

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the journal to a new file, while it is written to; open the copy like any journal.

        Raises
        ------
        KeslerError
            If the file exists, or cannot be written.
        """
        with self._lock:
            self._storage.backup(_path_of(path))

    def purge(self) -> None:
        """Remove from the files what has been forgotten, if other processes have prevented it."""
        with self._lock:
            self._storage.purge()

    def check(self) -> list[str]:
        """Return what is wrong with the journal, as sentences; an empty list if nothing is.

        The file is read as a whole, with the chain of each model, as `verify` does; and every model
        is compared with one that learns its remaining history from the first row.
        """
        with self._lock:
            found = [f"{self._storage.path}: {damage}" for damage in self._storage.damages()]
            found = found or self.verify()
            return found or [
                each for name in self.models() for each in self.open(name)._replica.differences()
            ]

    # ---- the chain --------------------------------------------------------------------------

    def verify(self) -> list[str]:
        """Return which events do not fit their chains, as sentences; an empty list if all fit.

        Each event has a digest of what it says, with its row, and of the event before it. An event
        that has been removed, changed, put in or moved by hand does not fit, or the one behind it.
        What has been forgotten leaves its digest, by which the others still fit. For each model the
        first event is named that does not fit, and if others show it, the first that is not as the
        events say that forget and undo.

        Notes
        -----
        About 20 microseconds for each event. Whoever can write to the file can also compute all
        digests anew: keep those of `digests` elsewhere, and look for them in a later `export`.

        Examples
        --------
        >>> import sqlite3, tempfile
        >>> from kesler import OnlineClassifier
        >>> from kesler.durable import Journal
        >>> path = tempfile.mkdtemp() + "/desk.db"
        >>> with Journal(path) as journal:
        ...     mail = journal.open("mail", OnlineClassifier())
        ...     receipts = mail.learn_many([("win cash", "spam"), ("team lunch", "work")])
        ...     journal.verify()
        []
        >>> database = sqlite3.connect(path)
        >>> changed = database.execute("UPDATE events SET answer = '2' WHERE number = 1")
        >>> database.commit(), database.close()
        (None, None)
        >>> with Journal(path) as journal:
        ...     print(journal.verify()[0])  # doctest: +ELLIPSIS
        the model 'mail': event 1 (learn '...') does not fit the one before it: it has been ...
        """
        with self._lock, self._storage.reading(), self._storage.any_bytes():
            found = self._storage.strays()
            for key, beginning, end in self._storage.chains():
                faults = faults_of(beginning, self._storage.links(key), end)
                found += [f"the model {beginning.name!r}: {fault}" for fault in faults]
            return found

    def digests(self) -> dict[str, str]:
        """Return the digest of the last event of each model, as 64 hexadecimal characters.

        It depends on all events before: a history that contains it now and later is the same up to
        there, but for what has been forgotten.
        """
        with self._lock, self._storage.reading():
            return {beginning.name: end.head for _, beginning, end in self._storage.chains()}

    def export(self, name: str) -> Iterator[str]:
        """Yield the history of a model as lines of JSON, which can be checked without Kesler.

        The page :doc:`/guides/records` says what a line is, and has a program that checks them.

        Parameters
        ----------
        name : str
            The name of the model.

        Yields
        ------
        The model and its settings, then each event in order, with its digest.

        Raises
        ------
        KeslerError
            If there is no such model.
        """
        with self._lock, self._storage.reading():
            key, settings = self._kept(name)
            links = [each.line for each in self._storage.links(key)]
        yield Beginning(name, settings).line
        yield from links


def _path_of(path: Any) -> str:
    try:
        found = os.fspath(path)
    except TypeError:
        found = None
    if not isinstance(found, str) or not found or "\0" in found or found == ":memory:":
        raise KeslerError(f"path={path!r:.60}: give the path of a file")
    return found

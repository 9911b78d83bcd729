"""Model: a learner whose history is in a journal."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.data.labels import TopLabel
from kesler.durable import changes
from kesler.durable.contents import (
    answer_from_text,
    from_json,
    require_name,
    row_from_text,
    value_to_text,
)
from kesler.durable.events import Event, Receipt
from kesler.durable.replica import Replica, naming_of
from kesler.durable.storage import Storage, Stored
from kesler.errors import KeslerError

if TYPE_CHECKING:
    from kesler.learner.explanations import Explanation
    from kesler.trees.paths import PathAnswer

Result = TypeVar("Result")

MOST_ROWS = 1000  # rows of one transaction of `learn_many`


class Model:
    """A model of a journal: a learner whose answers are kept, and can be taken back.

    :meth:`kesler.durable.Journal.open` makes one. Each method that changes the model returns when
    the change is on disk. If it raises an error, nothing has changed.

    At any time the model is the learner that has met the remaining history, bit for bit: see
    :mod:`kesler.durable` for what that is.

    Raises
    ------
    KeslerError
        By every method: if the journal is closed, the model has been deleted, another process
        writes for longer than the journal waits, or the disk is full or fails.

    Notes
    -----
    Methods may be called from several threads. Predictions use the state of the last change, and do
    not wait while another thread writes.
    """

    def __init__(
        self, storage: Storage, lock: Any, name: str, key: int, settings: dict[str, Any]
    ) -> None:
        self._storage, self._lock, self._name, self._key = storage, lock, name, key
        self._replica = Replica(storage, name, key, settings)
        self._clock: int | None = None
        self._is_together = False  # whether changes are part of a transaction of `together`

    def __repr__(self) -> str:
        return f"<Model {self._name!r} of {self._storage.path}>"

    @property
    def name(self) -> str:
        """The name of the model in its journal."""
        return self._name

    # ---- learning ---------------------------------------------------------------------------

    def learn_one(
        self,
        x: Any,
        y: Any,
        *,
        id: str | None = None,
        subject: str | None = None,
        by: str | None = None,
    ) -> Receipt:
        """Learn from one row, and keep it.

        Parameters
        ----------
        x : str, mapping, array of shape (n_features,), pair (indices, values) or sparse row
            The row, as in the `learn_one` of the estimator; ratings by sub-experts are not kept.
        y : label, or set or list of labels
            Its answer: a number or text, or a collection of these for label sets and rankings.
        id : str of at most 500 characters or None, default None
            The id of the row in this model, by which it can be taken back, changed and forgotten.
            If a row of this id, with the same content, has been learnt before, nothing changes.
            None makes a new one.
        subject : str of at most 500 characters or None, default None
            Whom the row is about, for `forget_subject`.
        by : str of at most 500 characters or None, default None
            Who teaches it, for the history.

        Returns
        -------
        A :class:`~kesler.durable.Receipt`.

        Raises
        ------
        KeslerError
            If the id is that of another event, or the learner refuses the row or the answer.

        Examples
        --------
        >>> import tempfile
        >>> from kesler import OnlineClassifier
        >>> from kesler.durable import Journal
        >>> journal = Journal(tempfile.mkdtemp() + "/desk.db")
        >>> mail = journal.open("mail", OnlineClassifier())
        >>> mail.learn_one("win cash", "spam", id="m1").changed
        True
        >>> mail.learn_one("win cash", "spam", id="m1").changed
        False
        >>> mail.learn_one("team lunch", "spam", id="m1")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        kesler.durable.failures.JournalError: the id 'm1' is that of another event: give each ...
        >>> journal.close()
        """
        return self._written(lambda: changes.learn(self._target, x, y, id, subject, by))

    def learn_many(
        self,
        rows: Iterable[tuple[Any, Any] | tuple[Any, Any, str | None, str | None]],
        *,
        by: str | None = None,
    ) -> list[Receipt]:
        """Learn from many rows in order, with one write to disk for every 1,000 rows.

        Parameters
        ----------
        rows : iterable of (x, y) or (x, y, id, subject)
            As in `learn_one`.
        by : as in `learn_one`.

        Returns
        -------
        A receipt for each row.

        Raises
        ------
        KeslerError
            As `learn_one`. The thousands of rows before the one refused have then been learnt, and
            none of its own.
        """
        receipts: list[Receipt] = []
        entries = iter(rows)
        while block := [*islice(entries, MOST_ROWS)]:
            change = partial(changes.learn_all, self._target, block, by)
            receipts += self._written(change)
        return receipts

    # ---- changes ----------------------------------------------------------------------------

    def undo(self, id: str, *, event: str | None = None, by: str | None = None) -> Receipt:
        """Take back an event; it stays in the history, as taken back.

        Parameters
        ----------
        id : str
            The id of a row learnt, which is taken back with its relabels, of a relabel, a rename or
            a merge, or of an undo: what that has taken back is then valid again.
        event : str of at most 500 characters or None, default None
            The id of this event, so that a repeated call changes nothing. None makes a new one.
        by : who does it, as in `learn_one`.

        Returns
        -------
        A :class:`~kesler.durable.Receipt`; nothing has changed if the event had been taken back.
        It says which columns of a table are then of another kind.

        Raises
        ------
        KeslerError
            If there is no event of this id, or it is one that forgets, which cannot be undone.

        Notes
        -----
        The rows from the event on are learnt again, from the nearest snapshot before it.

        Examples
        --------
        >>> import tempfile
        >>> from kesler import OnlineClassifier
        >>> from kesler.durable import Journal
        >>> journal = Journal(tempfile.mkdtemp() + "/desk.db")
        >>> mail = journal.open("mail", OnlineClassifier())
        >>> for id, words, folder in [("m1", "win cash", "spam"), ("m2", "team lunch", "work")]:
        ...     receipt = mail.learn_one(words, folder, id=id)
        >>> mail.undo("m2").changed, mail.n_trials_, mail.classes_.tolist()
        (True, 1, ['spam'])
        >>> journal.close()
        """
        return self._corrected(lambda: [changes.undo(self._target, id, event, by)])[0]

    def undo_many(self, ids: Iterable[str], *, by: str | None = None) -> list[Receipt]:
        """Take back events in order as `undo` does; the rows from the first on are learnt once.

        Parameters
        ----------
        ids : iterable of str
            The ids of the events.
        by : who does it, as in `learn_one`.

        Returns
        -------
        A receipt for each event.

        Raises
        ------
        KeslerError
            As `undo`, or if `ids` is a text; none has then been taken back.
        """
        if isinstance(ids, str):
            raise KeslerError(f"ids={ids!r:.60} is a text: give a list of ids")
        listed = [*ids]
        return self._corrected(lambda: [changes.undo(self._target, id, None, by) for id in listed])

    def relabel(
        self, id: str, y: Any, *, event: str | None = None, by: str | None = None
    ) -> Receipt:
        """Change the answer of a row that has been learnt.

        Parameters
        ----------
        id : str
            The id of the row.
        y : its new answer, as in `learn_one`.
        event, by : as in `undo`.

        Returns
        -------
        A :class:`~kesler.durable.Receipt`; nothing has changed if this is its answer already.

        Raises
        ------
        KeslerError
            If there is no such row, it has been taken back, or the learner refuses the answer.
        """
        return self._written(lambda: changes.relabel(self._target, id, y, event, by))

    def rename(
        self, old: Any, new: Any, *, event: str | None = None, by: str | None = None
    ) -> Receipt:
        """Give a class another name.

        Parameters
        ----------
        old : the label of a known class.
        new : a label that no known class has.
        event, by : as in `undo`.

        Returns
        -------
        A :class:`~kesler.durable.Receipt`.

        Raises
        ------
        KeslerError
            If `old` is not known, `new` is, or the settings of the model name one of them.

        Notes
        -----
        Nothing is learnt again where learning does not depend on the names of classes, which it
        does for ranks and grouped hypotheses.
        """
        return self._written(lambda: changes.rename(self._target, old, new, event, by))

    def merge(
        self, source: Any, into: Any, *, event: str | None = None, by: str | None = None
    ) -> Receipt:
        """Make the rows of a class rows of another.

        Parameters
        ----------
        source, into : labels of two known classes.
        event, by : as in `undo`.

        Returns
        -------
        A :class:`~kesler.durable.Receipt`.

        Raises
        ------
        KeslerError
            If one is not known, both are the same, or the settings of the model name one of them.
        """
        return self._written(lambda: changes.merge(self._target, source, into, event, by))

    # ---- several changes, and values beside them --------------------------------------------

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write the changes of a block at once: all of them, or none if it raises an error.

        Within the block, predictions and `find` use the state after its changes so far. Methods
        that forget rows cannot be called, since they write the file anew.

        Raises
        ------
        KeslerError
            As by the changes; after one that the learner refuses, the block must end.

        Examples
        --------
        >>> import tempfile
        >>> from kesler import OnlineClassifier
        >>> from kesler.durable import Journal
        >>> journal = Journal(tempfile.mkdtemp() + "/desk.db")
        >>> mail = journal.open("mail", OnlineClassifier())
        >>> with mail.together():
        ...     receipt = mail.learn_one("win cash", "spam", id="m1")
        ...     mail.keep("read/inbox", 17)
        >>> mail.n_trials_, mail.kept("read/")
        (1, {'read/inbox': 17})
        >>> journal.close()
        """
        replica = self._replica
        with self._lock:
            if self._is_together:
                yield
                replica.catch_up()
                return
            self._is_together = True
            try:
                with self._storage.writing():
                    replica.catch_up()
                    replica.settle()
                    yield
                    replica.catch_up()
            except BaseException:
                replica.give_up()
                raise
            finally:
                self._is_together = False
            replica.settle()
            replica.keep_copies()
            replica.write_snapshots()

    def keep(self, name: str, value: Any) -> None:
        """Keep a value beside the history, such as what a program has read so far.

        The model does not depend on it, and it has no part in the chain of digests.

        Parameters
        ----------
        name : str of 1 to 500 characters
        value : what JSON can hold, or None
            It replaces an earlier one; None removes it.

        Raises
        ------
        KeslerError
            If JSON cannot hold the value.
        """
        text = None if value is None else value_to_text(value)
        with self.together():
            self._storage.keep(self._key, require_name(name, "name"), text)

    def kept(self, prefix: str = "") -> dict[str, Any]:
        """Return the values of `keep` by name, of the names that begin with a text."""
        with self._reading():
            found = [*self._storage.kept(self._key, prefix)]
        return {name: from_json(value) for name, value in found}

    # ---- forgetting -------------------------------------------------------------------------

    def forget(self, id: str, *, by: str | None = None) -> Receipt:
        """Remove a row for good: from the database, its log, the snapshots and the model.

        Parameters
        ----------
        id : str
            The id of the row, which may have been taken back.
        by : who does it, as in `learn_one`.

        Returns
        -------
        A :class:`~kesler.durable.Receipt` of the event that says that a row was removed. Of the row
        its number and a digest are left, which prove that there was one and not what it said.

        Raises
        ------
        KeslerError
            If there is no row of this id, as after it has been forgotten; or if the row has been
            removed, but other processes read the journal, so that its files still contain it until
            :meth:`~kesler.durable.Journal.purge`.

        Notes
        -----
        The database is written anew, which takes about a second for 100 MB. Copies made before,
        such as backups and exported models, still contain the row.
        """
        return self._purged(lambda: changes.forget(self._target, id, by))

    def forget_subject(self, subject: str, *, by: str | None = None) -> Receipt:
        """Remove all rows about a subject for good, as `forget` does; there may be none.

        Parameters
        ----------
        subject : str
            The subject that was given when the rows were learnt.
        by : who does it, as in `learn_one`.

        Returns
        -------
        A :class:`~kesler.durable.Receipt` with the number of rows removed.
        """
        return self._purged(lambda: changes.forget_subject(self._target, subject, by))

    def forget_class(self, label: Any, *, by: str | None = None) -> Receipt:
        """Remove a class and its rows for good, as `forget` does.

        Its rows are those whose current answer it is, also if they have been taken back. From label
        sets and rankings it is removed; rows that have no other label are removed. The name of the
        class is then in no file either: relabels, renames and merges so far become final, can no
        longer be taken back, and are removed from the history.

        Parameters
        ----------
        label : the label of a known class.
        by : who does it, as in `learn_one`.

        Returns
        -------
        A :class:`~kesler.durable.Receipt` with the number of rows removed.

        Raises
        ------
        KeslerError
            If the class is not known, or the settings of the model name it.
        """
        return self._purged(lambda: changes.forget_class(self._target, label, by))

    # ---- predictions ------------------------------------------------------------------------

    def predict_one(self, x: Any, **options: Any) -> Any:
        """Return the prediction for a row, as the `predict_one` of the estimator.

        Raises
        ------
        KeslerError
            If nothing has been learnt yet, or the row cannot be scored.
        """
        return self._known().predict_one(x, **options)

    def predict_proba_one(self, x: Any, **options: Any) -> dict[Any, float]:
        """Return the probability of each class for a row, as that of the estimator."""
        found: dict[Any, float] = self._known().predict_proba_one(x, **options)
        return found

    def predict_top_one(self, x: Any, n: int = 5) -> list[TopLabel]:
        """Return the labels of highest score for a row, as those of the estimator."""
        found: list[TopLabel] = self._known().predict_top_one(x, n)
        return found

    def predict_path_one(self, x: Any, **options: Any) -> PathAnswer:
        """Return the deepest node that is sure enough, as the `predict_path_one` of the estimator.

        Raises
        ------
        KeslerError
            If the estimator has no such answers, a label is no path, nothing has been learnt yet,
            or the row cannot be scored.
        """
        from kesler.online.blocks import path_of_row

        return path_of_row(self._known(), x, **options)

    def predict_set_one(self, x: Any, **options: Any) -> list[Any]:
        """Return the classes that a row may be of, as the `predict_set_one` of the estimator."""
        found: list[Any] = self._known().predict_set_one(x, **options)
        return found

    def confidence_one(self, x: Any) -> float:
        """Return the probability that the prediction for a row is right."""
        return float(self._known().confidence_one(x))

    def explain_one(self, x: Any, *args: Any, **options: Any) -> Explanation:
        """Explain the score of a class for a row, as the `explain_one` of the estimator."""
        found: Explanation = self._known().explain_one(x, *args, **options)
        return found

    # ---- state ------------------------------------------------------------------------------

    @property
    def estimator(self) -> Any:
        """The learner as of the last change of any process; predict with it, and teach the model.

        While another thread writes, this is the learner before or after its change. It is replaced
        when history changes: ask for it again. It knows no class before the first row. What it
        learns itself is in no journal, and is gone with the next change: for that, take a `copy`.
        """
        self._catch_up()
        return self._replica.learner

    @property
    def n_trials_(self) -> int:
        """Number of rows learnt from, without those taken back and forgotten."""
        learner = self.estimator
        return int(learner.n_trials_) if learner.n_known_ else 0

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels seen so far, sorted; an empty array before the first row."""
        learner = self.estimator
        known: npt.NDArray[Any] = np.array([], dtype=object)
        if learner.n_known_:
            known = learner.classes_
        return known

    def copy(self) -> Any:
        """Return a copy of the learner, an estimator that does not follow the journal any more."""
        return copy.deepcopy(self.estimator)

    def save(self, path: str | os.PathLike[str], **notes: Any) -> None:
        """Write the model to a file that :func:`kesler.load` reads, as `save` of the estimator.

        Raises
        ------
        KeslerError
            If nothing has been learnt yet, or the file cannot be written.
        """
        self._known().save(path, **notes)

    def history(self, limit: int | None = 20, before: int | None = None) -> list[Event]:
        """Return the last events, the latest first.

        Parameters
        ----------
        limit : int, 0 or more, or None, default 20
            The maximum number of events; None for all.
        before : int or None, default None
            The number of an event: only earlier ones are listed, as for the next page.

        Returns
        -------
        List of :class:`~kesler.durable.Event`.
        """
        with self._reading():
            stored = self._storage.history(self._key, limit, before)
            naming = naming_of(self._storage, self._key)
            return [self._event_of(each, naming) for each in stored]

    def since(self, number: int, *, but_by: str | None = None) -> list[Event]:
        """Return the events after one, the first of them first: what others have done meanwhile.

        Parameters
        ----------
        number : int
            The number of an event, 0 for all.
        but_by : str or None, default None
            Whose events are left out, as passed to the calls; None leaves out none.

        Returns
        -------
        List of :class:`~kesler.durable.Event`, as they are now.

        Examples
        --------
        >>> import tempfile
        >>> from kesler import OnlineClassifier
        >>> from kesler.durable import Journal
        >>> journal = Journal(tempfile.mkdtemp() + "/desk.db")
        >>> mail = journal.open("mail", OnlineClassifier())
        >>> first = mail.learn_one("win cash", "spam", by="ann")
        >>> second = mail.relabel(first.id, "offers", by="bob")
        >>> [event.kind for event in mail.since(0, but_by="ann")], mail.since(second.number)
        (['relabel'], [])
        >>> journal.close()
        """
        with self._reading():
            stored = self._storage.since(self._key, number, but_by)
            naming = naming_of(self._storage, self._key)
            return [self._event_of(each, naming) for each in stored]

    def find(self, id: str) -> Event | None:
        """Return the event of an id; None if there is none."""
        with self._reading():
            stored = self._storage.find(self._key, require_name(id, "id"))
            if stored is None:
                return None
            return self._event_of(stored, naming_of(self._storage, self._key))

    def remaining(self) -> Iterator[Event]:
        """Yield the remaining history: the rows in the order of learning, without those taken back.

        All are of one state of the journal; their `current` answers are those that the model has
        learnt. A new learner that learns them in this order equals the model.
        """
        with self._reading():
            naming = naming_of(self._storage, self._key)
            numbers = self._storage.numbers(self._key, after=0)
            events = [self._storage.event(number) for number in numbers]
            found = [self._event_of(each, naming) for each in events]
        yield from found

    def _event_of(self, stored: Stored, naming: Any) -> Event:
        answer = None if stored.answer is None else answer_from_text(stored.answer)
        target: Any = None
        if stored.target is not None:
            target = self._storage.event(stored.target).id
        elif stored.old is not None:
            target = answer_from_text(stored.old)
        is_row = stored.kind == "learn"
        return Event(
            number=stored.number,
            kind=stored.kind,  # type: ignore[arg-type]
            id=stored.id,
            time=stored.time,
            by=stored.author,
            taken_back=changes.taken_back_by(self._storage, stored) is not None,
            target=target,
            answer=answer,
            current=naming.current(stored.number, answer) if is_row else None,
            row=row_from_text(*self._storage.row(stored.number)) if is_row else None,
            subject=stored.subject,
        )

    # ---- implementation ---------------------------------------------------------------------

    @property
    def _target(self) -> changes.Target:
        return changes.Target(self._storage, self._key, self._replica)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Read one state of the database."""
        with self._lock, self._storage.reading():
            yield

    def _written(self, change: Callable[[], Result]) -> Result:
        """Run a change in a transaction, in which the learner follows it."""
        with self.together():
            return change()

    def _corrected(self, change: Callable[[], list[Receipt]]) -> list[Receipt]:
        """Run a change of rows that have been learnt, and say which kinds of columns it changes."""
        with self.together():
            before = self._replica.learner.schema_
            receipts = change()
            self._replica.catch_up()
            after = self._replica.learner.schema_
        kinds = tuple(after.changes(before)) if before and after else ()
        return [each._replace(kinds=kinds) for each in receipts]

    def _purged(self, change: Callable[[], Receipt]) -> Receipt:
        """Run a change that removes rows, and purge the files of them."""
        with self._lock:
            if self._is_together:
                raise KeslerError("a block of together() cannot forget: do it behind the block")
            (receipt,) = self._corrected(lambda: [change()])
            self._replica.forget_names()
            self._storage.purge()
            return receipt

    def _catch_up(self) -> None:
        """Follow what has been written, unless another thread writes."""
        lock = self._lock
        if lock.acquire(blocking=False):
            try:
                if self._is_together:
                    self._replica.catch_up()
                    return
                clock = self._storage.clock()
                if clock != self._clock or self._replica.is_dirty:
                    self._follow()
                    self._clock = clock
            finally:
                lock.release()

    def _follow(self) -> None:
        """Follow what has been written; the lock of the journal must be held."""
        try:
            with self._storage.reading():
                self._replica.catch_up()
        except BaseException:
            self._replica.give_up()
            raise
        self._replica.settle()

    def _known(self) -> Any:
        """Return the learner; raise if it knows no class."""
        learner = self.estimator
        if not learner.n_known_:
            raise KeslerError(f"the model {self._name!r} has learnt nothing yet: teach it a row")
        return learner

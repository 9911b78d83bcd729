"""Served models: one thread writes to each, any number of threads read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from queue import Empty, Full, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import uuid4

from kesler.durable.items import ANSWERS, Item, Items
from kesler.errors import KeslerError
from kesler.service.answers import Wanted, answer_of
from kesler.service.names import frequent
from kesler.service.refusals import CONFLICT, NOT_FOUND, UNAVAILABLE, Refusal, refusal_of
from kesler.service.rows_in import Taught
from kesler.service.validation import Validation

if TYPE_CHECKING:
    from kesler.durable import Event, Model

MOST_WAITING = 10_000
SHORT = 2000  # characters of a text, or entries of a row
MOST_AT_ONCE = 256
"""The most answers that are written in one transaction."""

Result = TypeVar("Result")
_log = logging.getLogger("kesler.service")


class Lesson(NamedTuple):
    """Rows to learn, and who teaches them."""

    rows: Sequence[Taught]
    by: str


class _Job(NamedTuple):
    work: Lesson | Callable[[], Any]
    future: Future[Any]


class Served:
    """A model of the journal, with its inbox.

    All changes are made by one thread, in the order in which they were asked for; answers that wait
    together are written together. Predictions are made in the thread of the caller.

    Parameters
    ----------
    name : str
    model : kesler.durable.Model
    items : Items
    """

    def __init__(self, name: str, model: Model, items: Items) -> None:
        self.name, self.model, self.items = name, model, items
        self._queue: Queue[_Job | None] = Queue(MOST_WAITING)
        self.validation = Validation(model)
        self._decode = set[tuple[Any, ...]]()  # the kinds of answers that have been given
        self._is_closed = False
        self._thread = Thread(target=self._write, name=f"kesler-{name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish what waits, and end the thread."""
        self._queue.put(None)
        self._thread.join()

    @property
    def estimator(self) -> Any:
        """The learner as it is now; it is replaced as a whole when history changes."""
        return self.model.estimator

    # ---- questions ----------------------------------------------------------------------------

    @property
    def answers(self) -> list[str] | None:
        """The only answers that the program can use that adds items; None for any."""
        found: list[str] | None = self.model.kept(ANSWERS).get(ANSWERS)
        return found

    def answer(self, row: Any, wanted: Wanted) -> dict[str, Any]:
        """Return what the model says of a row."""
        estimator = self.estimator
        answer = answer_of(estimator, row, wanted)
        if estimator.n_known_:
            self._decode.add(_kind(row, wanted))
        return answer

    def answer_at_once(self, row: Any, wanted: Wanted) -> dict[str, Any] | None:
        """Return what the model says of a row, or None if that may take longer than a moment.

        That is the first time, when loops are compiled, for long rows and explanations, and while
        the learner learns. A short answer costs less than handing the row to another thread.
        """
        if (
            wanted.explain
            or wanted.separator is not None
            or len(row) > SHORT
            or _kind(row, wanted) not in self._decode
        ):
            return None
        estimator = self.estimator
        if not estimator.n_known_:
            return None
        lock = estimator._fitted().lock
        if not lock.acquire(blocking=False):
            return None
        try:
            return answer_of(estimator, row, wanted)
        finally:
            lock.release()

    def figures(self) -> dict[str, Any]:
        """Return the sizes of the model and its mistakes so far."""
        estimator = self.estimator
        found = {"name": self.name, "rows": 0, "mistakes": 0, "n_classes": 0, "classes": []}
        if estimator.n_known_:
            found["rows"] = int(estimator.n_trials_)
            found["mistakes"] = int(estimator.n_mistakes_)
            found["n_classes"] = int(estimator.n_known_)
            found["classes"] = [str(each) for each in frequent(estimator)]
        return found | {"waiting": self.items.count(self.name), "n_writes_waiting": self.depth}

    @property
    def depth(self) -> int:
        """The number of changes that wait."""
        return self._queue.qsize()

    def history(self, limit: int, before: int | None = None) -> tuple[list[Event], int | None]:
        """Return events, the last first, and the number of the last of them if others follow."""
        found = self.model.history(limit + 1, before)
        return found[:limit], found[limit - 1].number if len(found) > limit else None

    # ---- changes ------------------------------------------------------------------------------

    def learn(self, rows: Sequence[Taught], by: str) -> Future[list[dict[str, Any] | Refusal]]:
        """Learn rows; the future holds what became of each, once all are on the disk."""
        return self._add(Lesson(rows, by))

    def change(self, work: Callable[[], Result]) -> Future[Result]:
        """Call a function in the thread that writes."""
        return self._add(work)

    def undo(self, id: str, by: str) -> dict[str, Any]:
        """Take an event back; a row that was learnt waits for an answer again. Runs in `change`."""
        event = self.event(id)
        with self._following([] if event.taken_back else [self._root(event)]):
            receipt = self.model.undo(id, by=by)
        return _receipt(receipt) | {"kind": event.kind}

    def _root(self, event: Event) -> Event:
        """Return the event that undos, of which each takes back the one before, are about."""
        while event.kind == "undo":
            event = self.event(event.target)
        return event

    @contextmanager
    def _following(self, events: Iterable[Event]) -> Iterator[None]:
        """Let the rows that a block takes back wait, and those that it restores wait no more.

        They wait before the block, so that an end within it loses none; `reconcile` removes the
        others.
        """
        rows = [event for event in events if event.kind == "learn"]
        learnt = [each for each in rows if not each.taken_back]
        self.items.add(self.name, map(self._waiting, learnt))
        try:
            yield
        except BaseException:
            self.items.answer(self.name, [each.id for each in learnt])
            raise
        self.items.answer(self.name, [each.id for each in rows if each.taken_back])

    def _waiting(self, event: Event) -> Item:
        """Return a row that waits again; the program that added it says what it is called."""
        title = None if self.answers is None else ""
        return Item(event.id, plain_row(event.row), event.subject, title=title)

    def undo_several(self, ids: Sequence[str], by: str) -> list[dict[str, Any] | Refusal]:
        """Take events back; return what became of each. Runs in `change`.

        Rows that are learnt are taken back together, which learns those behind them again once.
        """
        rows = {id: event for id in ids if (event := self.answered(id))}
        together = self._undone_together(rows, by) if len(rows) > 1 else {}
        return [together.pop(id) if id in together else self._undone(id, by) for id in ids]

    def _undone_together(self, rows: Mapping[str, Event], by: str) -> dict[str, dict[str, Any]]:
        """Take back rows that are learnt; return what became of each, nothing if one is refused."""
        try:
            with self._following(rows.values()):
                receipts = self.model.undo_many(rows, by=by)
        except KeslerError:
            return {}
        found = [_receipt(each) | {"kind": "learn"} for each in receipts]
        return dict(zip(rows, found, strict=True))

    def _undone(self, id: str, by: str) -> dict[str, Any] | Refusal:
        try:
            return self.undo(id, by)
        except (Refusal, KeslerError) as error:
            return refusal_of(error)

    def relabel(self, id: str, answer: Any, by: str) -> dict[str, Any]:
        """Change the answer of a row. Runs in `change`."""
        return _receipt(self.model.relabel(id, answer, by=by))

    def rename(self, old: Any, new: Any, by: str) -> dict[str, Any]:
        """Rename a class. Runs in `change`."""
        self._require_own_classes()
        return _receipt(self.model.rename(old, new, by=by))

    def merge(self, source: Any, target: Any, by: str) -> dict[str, Any]:
        """Merge a class into another. Runs in `change`."""
        self._require_own_classes()
        return _receipt(self.model.merge(source, target, by=by))

    def _require_own_classes(self) -> None:
        """Refuse to change classes that are those of the program which adds the items."""
        if self.answers is not None:
            raise Refusal(
                CONFLICT,
                f"the classes of {self.name} are those of the program that adds its items, such as "
                "the folders of a mailbox: rename or merge them there",
            )

    def event(self, id: str) -> Event:
        """Return an event; raise a refusal with status 404 if there is none."""
        found = self.model.find(id)
        if found is None:
            raise Refusal(NOT_FOUND, f"{self.name} has no event {id!r}: look into its history")
        return found

    def answered(self, id: str) -> Event | None:
        """Return the event of a row that has an answer that holds, else None."""
        event = self.model.find(id)
        holds = event is not None and event.kind == "learn" and not event.taken_back
        return event if holds else None

    def forget(self, what: str, value: Any, by: str) -> dict[str, Any]:
        """Forget a row, a subject or a class for good. Runs in `change`."""
        if what == "id":
            self.items.remove(self.name, [value])
            if self.model.find(value) is None:
                return {"id": value, "changed": False, "n_rows": 0}
            return _receipt(self.model.forget(value, by=by))
        if what == "subject":
            self.items.remove_subject(self.name, value)
            receipt = self.model.forget_subject(value, by=by)
        else:
            receipt = self.model.forget_class(value, by=by)
        self._remove_places_of_forgotten()
        return _receipt(receipt)

    def reconcile(self) -> None:
        """Remove items that have an answer, as after an end between an answer and its removal.

        The places of rows that another program has forgotten are removed as well.
        """
        self.items.answer(
            self.name, [id for id in self.items.descriptions(self.name) if self.answered(id)]
        )
        self._remove_places_of_forgotten()

    def _remove_places_of_forgotten(self) -> None:
        gone = [id for id in self.items.answered(self.name) if self.model.find(id) is None]
        self.items.remove(self.name, gone)

    # ---- the thread that writes -----------------------------------------------------------------

    def _add(self, work: Any) -> Future[Any]:
        job = _Job(work, Future())
        try:
            self._queue.put_nowait(job)
        except Full:
            raise Refusal(
                UNAVAILABLE, f"{MOST_WAITING} changes of {self.name} wait already: try later", 1
            ) from None
        if self._is_closed and not job.future.done():  # the thread had ended before
            raise self._gone()
        return job.future

    def _write(self) -> None:
        is_open = True
        while is_open:
            jobs, is_open = self._taken()
            for lessons in _grouped(jobs):
                if isinstance(lessons[0].work, Lesson):
                    self._learn(lessons)
                else:
                    _call(lessons[0])
        self._is_closed = True
        while not self._queue.empty():
            late = self._queue.get_nowait()
            if late is not None:
                late.future.set_exception(self._gone())

    def _gone(self) -> Refusal:
        return Refusal(NOT_FOUND, f"the model {self.name} was closed or deleted meanwhile")

    def _taken(self) -> tuple[list[_Job], bool]:
        """Return the jobs that wait, and whether there may be more."""
        jobs, job = list[_Job](), self._queue.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) == MOST_AT_ONCE:
                return jobs, True
            try:
                job = self._queue.get_nowait()
            except Empty:
                return jobs, True
        return jobs, False

    def _learn(self, jobs: list[_Job]) -> None:
        """Learn the rows of several jobs in one transaction."""
        rows = [(each, job.work.by) for job in jobs for each in job.work.rows]  # type: ignore[union-attr]
        try:
            outcomes = iter(self._outcomes(rows))
        except BaseException as error:
            _log.exception("%s: rows could not be learnt", self.name)
            for job in jobs:
                job.future.set_exception(refusal_of(error))
            return
        for job in jobs:
            assert isinstance(job.work, Lesson)
            job.future.set_result([next(outcomes) for _ in job.work.rows])

    def _outcomes(self, rows: list[tuple[Taught, str]]) -> list[dict[str, Any] | Refusal]:
        """Learn rows with who teaches them; return what became of each.

        Those of one teacher keep their order. Rows of several wait at the same time, so that any
        order of the teachers is right, and each has one transaction.
        """
        rows = [(each if each.id else each._replace(id=uuid4().hex), by) for each, by in rows]
        outcomes: dict[int, dict[str, Any] | Refusal] = {}
        for by in dict.fromkeys(by for _, by in rows):
            places = [i for i, (_, other) in enumerate(rows) if other == by]
            taught = [rows[i][0] for i in places]
            outcomes |= zip(places, self._taught(taught, by), strict=True)
        learnt = [str(rows[i][0].id) for i, each in outcomes.items() if isinstance(each, dict)]
        self.items.answer(self.name, learnt)
        return [outcomes[i] for i in range(len(rows))]

    def _taught(self, rows: list[Taught], by: str) -> list[dict[str, Any] | Refusal]:
        """Learn the rows of one teacher, together if all can be learnt, else one by one."""
        try:
            receipts = self.model.learn_many(
                [(each.row, each.answer, each.id, each.subject) for each in rows], by=by
            )
        except KeslerError:
            return [self._one_taught(each, by) for each in rows]
        return [
            _receipt(receipt) if receipt.changed else self._one_taught(each, by)
            for receipt, each in zip(receipts, rows, strict=True)
        ]

    def _one_taught(self, row: Taught, by: str) -> dict[str, Any] | Refusal:
        try:
            event = self.model.find(str(row.id))
            if event is not None and event.kind == "learn" and event.taken_back:
                return self._taught_again(row, by)
            receipt = self.model.learn_one(
                row.row, row.answer, id=row.id, subject=row.subject, by=by
            )
        except KeslerError as error:
            return refusal_of(error)
        return _receipt(receipt)

    def _taught_again(self, row: Taught, by: str) -> dict[str, Any]:
        """Make a row valid that has been taken back, with the answer that it gets now."""
        id = str(row.id)
        event = self.event(id)
        if plain_row(event.row) != plain_row(row.row) or event.subject != row.subject:
            raise Refusal(CONFLICT, f"the id {id!r} is that of another row, which was taken back")
        self.model.undo(self.model.undo(id, by=by).id, by=by)
        if self.event(id).current != row.answer:
            return _receipt(self.model.relabel(id, row.answer, by=by)) | {"id": id}
        return {"id": id, "changed": True, "n_rows": 1}


def _kind(row: Any, wanted: Wanted) -> tuple[Any, ...]:
    """Return what decides which loops an answer runs."""
    return type(row), wanted.coverage is None, wanted.probabilities == 0


def _grouped(jobs: list[_Job]) -> Iterator[list[_Job]]:
    """Yield jobs in order: lessons that follow each other together, other changes alone."""
    group = list[_Job]()
    for job in jobs:
        if isinstance(job.work, Lesson):
            group.append(job)
            continue
        if group:
            yield group
            group = []
        yield [job]
    if group:
        yield group


def _call(job: _Job) -> None:
    try:
        job.future.set_result(job.work())  # type: ignore[operator]
    except BaseException as error:
        if not isinstance(error, KeslerError):
            _log.exception("a change failed")
        job.future.set_exception(refusal_of(error))


def _receipt(receipt: Any) -> dict[str, Any]:
    """Return a receipt as JSON can hold it."""
    found = {"id": receipt.id, "changed": receipt.changed, "n_rows": receipt.n_rows}
    return found | ({"kinds": [*receipt.kinds]} if receipt.kinds else {})


def plain_row(row: Any) -> Any:
    """Return a row as JSON can hold it."""
    return row.tolist() if hasattr(row, "tolist") else row

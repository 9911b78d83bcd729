"""A replica: the learner of a model in this process, which follows the history in the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from kesler.durable.contents import (
    ARRAY,
    MAPPING,
    PAIR,
    SPARSE,
    answer_from_text,
    from_json,
    row_from_text,
)
from kesler.durable.failures import JournalError
from kesler.durable.naming import Coding, Naming
from kesler.durable.numbered import (
    Numbering,
    Translation,
    has_table,
    is_by_name,
    learn_numbered,
)
from kesler.durable.settings import depends_on_names, estimator_of, labels_in
from kesler.durable.snapshots import (
    contents_of,
    learner_of,
    maker,
    rename_classes,
    size_of,
    superfluous,
)
from kesler.durable.storage import Learnt, Snapshot, Storage, Stored
from kesler.errors import KeslerError
from kesler.progress import LOGGER

if TYPE_CHECKING:
    from kesler.durable.copies import Copies

BLOCK = 2048  # rows that are learnt at a time: more would not be faster
LEAST_SPACING = 64  # events between two copies of a learner
# Bytes of a learner for each event between two copies, so that copies take a small share of the
# time: of those in memory, and of those in the database.
COPIED, WRITTEN = 50_000, 20_000
MOST_MEMORY = 64 << 20  # bytes of all copies in memory, of which there are at least three
ON_THE_WAY = (1 / 2, 1 / 8)  # where a replay makes copies: what share of its rows is left then
ROWS_OF_A_SNAPSHOT = 4000  # that are learnt again in the time of reading a snapshot of 30 MB
FEW_ROWS = 1000  # that are learnt again without copies on the way


class Replica:
    """The learner of a model, which has met its remaining history up to some event.

    Parameters
    ----------
    storage : the database.
    name, key : the name of the model, and its key in the database.
    settings : the settings of the estimator, as :func:`~kesler.durable.settings.settings_of`
        returns them.

    Attributes
    ----------
    learner : the estimator.
    applied : the number of the last event that it has followed.
    notes : what a user may want to know of how it was made.
    """

    def __init__(self, storage: Storage, name: str, key: int, settings: dict[str, Any]) -> None:
        self._storage, self._key, self._settings = storage, key, settings
        self._name = name
        self.learner: Any = estimator_of(settings)
        self.applied = 0
        self.notes: list[str] = []
        self._names_matter = depends_on_names(self.learner)
        self._settled: int | None = None  # the last event known to be written; None before any
        self.is_dirty = True  # whether the learner may have met what was not written, or nothing
        self._copies = no_copies()  # of settled learners
        self._size = 0  # of the learner when copies were last considered
        self._replayed_at = 0  # the last event when rows were learnt again
        self._made = no_copies()  # since the last settled event
        self._to_write: list[int] = []  # the numbers of those that are not in the database yet
        self._last_written: int | None = None  # the number of the last snapshot; None if unknown
        self._wrote_at = 0  # the last event when a snapshot was written, which may be gone since
        self._valid_before: int | None = None  # from which number on copies are no longer valid
        self._names: list[Any] | None = None  # of the classes, if they have changed
        self._naming: Naming | None = None  # as of the event that has been followed
        self._numbering = Numbering()
        self._translation: Translation | None = None

    # ---- properties -------------------------------------------------------------------------

    @property
    def labels(self) -> list[Any]:
        """The labels of the known classes, in the order of their first rows."""
        found: list[Any] = self.learner._known_classes().labels
        return found

    @property
    def by_name(self) -> bool:
        """Whether what is learnt depends on the names of classes.

        Learners of tables keep their first rows with their answers, and so do those of mappings.
        """
        return self._names_matter or has_table(self.learner)

    def require_unnamed(self, label: Any) -> None:
        """Raise if the settings name a class: it cannot be renamed, merged or forgotten."""
        if label in labels_in(estimator_of(self._settings)):
            raise KeslerError(
                f"the settings of the model name the class {label!r}, in order=, costs= or groups: "
                "open another model with other settings"
            )

    # ---- following --------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Learn what has been added to the history, or learn again from where it has changed.

        This is to be called in a transaction. What has been followed is kept as it is until
        `settle`, so that it can be given up.
        """
        last = self._storage.last(self._key)
        if last is None:
            raise JournalError("this model has been deleted from the journal", "not found")
        if last == self.applied and not self.is_dirty:
            return
        since = self._settled
        changes = [] if since is None else self._storage.changes(self._key, since)
        first = min((c.changed_from for c in changes if c.changed_from is not None), default=None)
        naming = self._naming
        if naming is None or changes or self.is_dirty:
            naming = self._naming = naming_of(self._storage, self._key)
        if any(self._is_of_names(change) for change in changes):
            self._names = self._labels(naming)
        if self.is_dirty or (first is not None and first <= self.applied):
            self._learn_again(first, naming)
        else:
            self._learn_more(naming)
        self.applied, self.is_dirty = last, False

    def settle(self) -> None:
        """Take note that all that has been followed is written."""
        first, self._valid_before = self._valid_before, None
        if first is not None:
            self._copies.drop([at for at in self._copies.numbers if at >= first])
            self._to_write, self._last_written = [], None
            self._replayed_at = self.applied
        if self._names is not None and not self.by_name:
            self._copies.rename(self._names)
        if self._made.numbers:
            # Those of a short replay would take longer to write than to make again.
            far = max(FEW_ROWS, size_of(self.learner) // WRITTEN)
            self._to_write += [at for at in self._made.numbers if self.applied - at >= far]
            self._copies.extend(self._made)
            self._thin_out()
        self._made, self._names = no_copies(), None
        self._settled = self.applied

    def give_up(self) -> None:
        """Discard what has been followed since the last settled event."""
        self._made, self._names, self._valid_before = no_copies(), None, None
        self._naming = self._translation = None
        self._numbering.forget_after(self._settled or 0)
        self.is_dirty = self.is_dirty or self.applied != self._settled

    def forget_names(self) -> None:
        """Discard the numbers of names, and with them names that only removed rows may have."""
        self._numbering, self._translation = Numbering(), None

    def _is_of_names(self, change: Stored) -> bool:
        """Return whether an event is a rename or a merge, or takes back or removes some."""
        while change.kind == "undo" and change.target is not None:
            change = self._storage.event(change.target)
        return change.kind in ("rename", "merge", "forget_class")

    def _labels(self, naming: Naming) -> list[Any]:
        """Return the current labels of the classes in the order of their first rows."""
        coding = Coding()
        for number, answer in first_answers(self._storage, self._key):
            coding.of(naming.current(number, answer))
        return [*coding.codes]

    def _rename(self, learner: Any) -> None:
        """Give the classes of a learner their current names."""
        if self._names is not None and not self.by_name:
            rename_classes(learner, self._names)

    # ---- learning ---------------------------------------------------------------------------

    def _learn_more(self, naming: Naming) -> None:
        """Learn the rows that have been added."""
        learner, n_before = self.learner, _n_trials(self.learner)
        self.is_dirty = True
        self._rename(learner)
        try:
            self._learn(learner, self.applied, naming)
        except KeslerError:
            # A learner that refuses a row is as it was, once it has learnt its first row.
            self.is_dirty = self._names is not None or not 0 < n_before == _n_trials(learner)
            raise

    def _learn_again(self, first: int | None, naming: Naming) -> None:
        """Learn all rows from one on again; None if only the learner has been lost."""
        learner, at = self._before(first, naming)
        self._made, self._valid_before = no_copies(), first
        self._learn(learner, at, naming, again=True)
        self.learner = learner

    def _before(self, first: int | None, naming: Naming) -> tuple[Any, int]:
        """Return the last copy from before a row, and its number.

        Snapshots in the database are valid: a change removes those that it makes invalid.
        """
        usable = [at for at in self._copies.numbers if first is None or at < first]
        in_memory = usable[-1] if usable else 0
        stored = self._storage.snapshots(self._key)
        own = next((each for each in stored if each.maker == maker()), None)
        translation, self._translation = self._translation, None
        if own is not None and own.at > in_memory + (ROWS_OF_A_SNAPSHOT if usable else 0):
            restored = self._restored(own, naming)
            if restored is not None:
                return restored, own.at
        if usable:
            learner = self._copies.restore(in_memory)
            self._rename(learner)
            if translation is not None and is_by_name(learner):
                translation.cut(learner.vocabulary_)
                self._translation = translation
            return learner, in_memory
        if stored and own is None:
            return self._compared(stored[0], naming), stored[0].at
        return estimator_of(self._settings), 0

    def _compared(self, foreign: Snapshot, naming: Naming) -> Any:
        """Return a learner that has met the rows before a snapshot which another version made.

        If its bits differ from those of the snapshot, this is noted.
        """
        learner = estimator_of(self._settings)
        self._learn(learner, 0, naming, until=foreign.at)
        self._translation = None
        found = sha256(contents_of(learner, by_name=self.by_name)).hexdigest()
        result = "equal" if found == foreign.digest else "differ in their last bits from"
        note = (
            f"{self._storage.path}: the model {self._name!r} has been learnt again from its rows, "
            f"since its snapshots were made by {foreign.maker}, and this is {maker()}: its numbers "
            f"{result} those"
        )
        self.notes.append(note)
        LOGGER.warning(note)
        return learner

    def _restored(self, stored: Snapshot, naming: Naming) -> Any:
        """Return the learner of a snapshot in the database; None if it cannot be used."""
        try:
            learner = learner_of(self._storage.contents(self._key, stored.at))
            # Snapshots of versions before 2 of model files do not hold them as they were given.
            learner.set_params(**estimator_of(self._settings).get_params(deep=False))
        except KeslerError as error:
            LOGGER.warning("rows of %r are learnt again: %s", self._name, error)
            return None
        if not (self._names_matter or has_table(learner)):
            rename_classes(learner, self._names or self._labels(naming))
        return learner

    def _learn(
        self,
        learner: Any,
        after: int,
        naming: Naming,
        *,
        until: int | None = None,
        again: bool = False,
    ) -> None:
        """Learn the rows after a number, and make copies on the way."""
        for end in [*(self._planned(after) if again else []), until]:
            for block in blocks_of(self._storage.learnt(self._key, after, end)):
                given = [(each.number, answer_from_text(each.answer)) for each in block]
                self._learn_block(learner, block, [naming.current(*pair) for pair in given])
            if end is not None and end != until:
                self._made.add(end, learner)
                after = end

    def _planned(self, after: int) -> list[int]:
        """Return after which rows a replay makes copies."""
        numbers = self._storage.numbers(self._key, after)
        n, spacing = len(numbers), self._spacing
        is_short = n <= max(FEW_ROWS, 2 * spacing)  # a copy takes as long as learning some rows
        return [] if is_short else [numbers[n - 1 - int(share * n)] for share in ON_THE_WAY]

    @property
    def _spacing(self) -> int:
        """The number of events between two copies of the learner in memory."""
        return max(LEAST_SPACING, size_of(self.learner) // COPIED)

    def _learn_block(self, learner: Any, block: list[Learnt], answers: list[Any]) -> None:
        # A single row is not numbered: this would take as long as reading it again, and memory.
        numbered = len(block) > 1 and block[0].form == MAPPING and is_by_name(learner)
        if numbered and self._numbering.has_too_many(self.learner.vocabulary_):
            self.forget_names()
        if numbered:
            rows = self._numbering.rows(block)
            if self._translation is None:
                self._translation = Translation(self._numbering, learner.vocabulary_)
            learn_numbered(learner, self._translation, rows, answers)
        else:
            learn(learner, block, answers)

    # ---- copies and snapshots ---------------------------------------------------------------

    def keep_copies(self) -> None:
        """Copy the learner if enough events have come since the last copy, and thin copies out."""
        last = max([self._replayed_at, *self._copies.numbers])
        if self.applied - last < LEAST_SPACING or not self.learner.n_known_:
            return
        size = size_of(self.learner)
        if size != self._size:  # arrays have grown: their predecessors are free
            self._size = size
            _return_memory()
        if self.applied - last >= self._spacing:
            self._copies.add(self.applied, self.learner)
            self._thin_out()

    def _thin_out(self) -> None:
        """Discard copies that others nearly serve for, and the oldest if they take much memory."""
        copies = self._copies
        copies.drop(superfluous(copies.numbers, self.applied, self._spacing, 3.0))
        while len(copies.numbers) > 3 and copies.nbytes > MOST_MEMORY:
            copies.drop(copies.numbers[:1])
        _return_memory()

    def write_snapshots(self, *, closing: bool = False) -> None:
        """Write snapshots to the database if enough events have come since the last.

        They are a cache of the history: where one cannot be written, this is only logged.

        Parameters
        ----------
        closing : whether the journal is being closed, so that it opens without learning again.
        """
        if self.is_dirty or not self.learner.n_known_:
            return
        try:
            due = self._due(closing=closing)
            if due:
                self._write(due)
                _return_memory()
        except KeslerError as error:
            LOGGER.warning("no snapshot was written: %s", error)
            self._wrote_at = self.applied  # the next attempt waits as after a success
        self._to_write = []

    def _due(self, *, closing: bool) -> list[int]:
        """Return the numbers of the learners to be written."""
        if self._last_written is None:
            stored = self._storage.snapshots(self._key)
            self._last_written = max((s.at for s in stored if s.maker == maker()), default=0)
        waiting = [at for at in self._to_write if at in self._copies.numbers]
        earlier = [self._last_written, *waiting]
        earlier += [] if closing else [self._wrote_at]
        since = self.applied - max(earlier)
        spacing = LEAST_SPACING
        if since >= spacing and not closing:
            spacing = max(spacing, size_of(self.learner) // WRITTEN)
        return [*waiting, self.applied] if since >= spacing else waiting

    def _write(self, due: list[int]) -> None:
        """Write snapshots, unless another process has changed the history meanwhile."""
        made = [(at, contents_of(self._as_of(at), by_name=self.by_name)) for at in due]
        spacing = max(LEAST_SPACING, size_of(self.learner) // WRITTEN)
        with self._storage.writing():
            if self._storage.last(self._key) != self.applied:
                return
            for at, contents in made:
                snapshot = Snapshot(at, sha256(contents).hexdigest(), maker())
                self._storage.add_snapshot(self._key, snapshot, contents)
            stored = self._storage.snapshots(self._key)
            own = sorted(each.at for each in stored if each.maker == maker())
            foreign = [each.at for each in stored if each.maker != maker()]
            gone = superfluous(own, self.applied, spacing)
            self._storage.remove_snapshots(self._key, [*foreign, *gone])
        self._last_written, self._wrote_at = made[-1][0], self.applied

    def _as_of(self, at: int) -> Any:
        """Return the learner as of an event."""
        return self.learner if at == self.applied else self._copies.restore(at)

    # ---- checks -----------------------------------------------------------------------------

    def differences(self) -> list[str]:
        """Return whether the learner differs from one that learns the history anew, in words."""
        again = estimator_of(self._settings)
        with self._storage.reading():
            naming = naming_of(self._storage, self._key)
            for block in blocks_of(self._storage.learnt(self._key, 0)):
                answers = [naming.current(b.number, answer_from_text(b.answer)) for b in block]
                learn(again, block, answers)
        if written(again) == written(self.learner):
            return []
        return [f"the model {self._name!r} differs from one that learns its history anew"]


def no_copies() -> Copies:
    """Return an empty collection of copies; its module is loaded when a model is opened."""
    from kesler.durable.copies import Copies

    return Copies()


def _return_memory() -> None:
    from kesler.state.capacity import return_memory

    return_memory()


def _n_trials(learner: Any) -> int:
    return int(learner.n_trials_) if learner.n_known_ else 0


def naming_of(storage: Storage, key: int) -> Naming:
    """Return the current answers of a model."""
    relabels = {row: (number, from_json(answer)) for row, number, answer in storage.relabels(key)}
    renames = [
        (number, from_json(old), from_json(new)) for number, old, new in storage.renames(key)
    ]
    return Naming(relabels, renames)


def first_answers(storage: Storage, key: int) -> Iterator[tuple[int, Any]]:
    """Yield the numbers and the first answers of rows that have not been taken back."""
    read: dict[str, Any] = {}  # since few answers are different
    for number, text in storage.answers(key):
        if text not in read:
            read[text] = answer_from_text(text)
        yield number, read[text]


def blocks_of(rows: Iterable[Learnt]) -> Iterator[list[Learnt]]:
    """Yield consecutive rows of one form, in blocks."""
    for _, run in groupby(rows, key=lambda row: row.form):
        while block := [*islice(run, BLOCK)]:
            yield block


def learn(learner: Any, block: list[Learnt], answers: list[Any]) -> None:
    """Learn rows of one form: in one batch where their form has batches."""
    rows = [row_from_text(each.form, each.row) for each in block]
    form = block[0].form
    if len(rows) == 1 or form in (PAIR, SPARSE):
        for row, answer in zip(rows, answers, strict=True):
            learner.learn_one(row, answer)
        return
    for X, y in _batches(rows, answers) if form == ARRAY else [(rows, answers)]:
        learner.partial_fit(X, y)


def _batches(rows: list[Any], answers: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Yield arrays of rows of the same length, with their answers."""
    pairs = zip(rows, answers, strict=True)
    for _, run in groupby(pairs, key=lambda pair: (len(pair[0]), pair[0].dtype)):
        X, y = zip(*run, strict=True)
        yield np.stack(X), list(y)


def written(learner: Any) -> bytes:
    """Return the model file of a learner; empty before its first row."""
    return contents_of(learner, by_name=True) if learner.n_known_ else b""

"""What a journal must equal: its history as a plain list, from which a learner learns anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kesler import KeslerError

WITHOUT_DIGESTS = """
ALTER TABLE models DROP COLUMN head;
ALTER TABLE events DROP COLUMN forgotten;
ALTER TABLE events DROP COLUMN nonce;
ALTER TABLE events DROP COLUMN sealed;
ALTER TABLE events DROP COLUMN digest;
DROP TABLE forgotten;
"""
"""What makes a journal one of the versions before events had digests, but for the version."""

FINAL = ("relabel", "rename", "merge")


@dataclass
class Entry:
    """An event; `target` is the entry that a relabel or an undo is about, or the old name."""

    kind: str
    id: str
    row: Any = None
    answer: Any = None
    target: Any = None
    subject: str | None = None
    valid: bool = True


@dataclass
class PlainHistory:
    """The events of a model in a list, and what follows from them by the definition alone."""

    entries: list[Entry] = field(default_factory=list)

    def entry(self, id: str) -> Entry:
        return next(each for each in self.entries if each.id == id)

    def current(self, row: Entry) -> Any:
        """The answer of a row: given last, then renamed by every valid event after that."""
        relabels = [e for e in self.entries if e.kind == "relabel" and e.valid and e.target is row]
        given = relabels[-1] if relabels else row
        answer = given.answer
        for later in self.entries[self.entries.index(given) + 1 :]:
            if later.kind in ("rename", "merge") and later.valid:
                answer = _with(answer, later.target, later.answer)
        return answer

    def remaining(self) -> list[tuple[Any, Any]]:
        rows = [each for each in self.entries if each.kind == "learn" and each.valid]
        return [(each.row, self.current(each)) for each in rows]

    def classes(self) -> list[Any]:
        found = [label for _, answer in self.remaining() for label in labels_of(answer)]
        return list(dict.fromkeys(found))

    def holds(self, entry: Entry) -> bool:
        """Whether an entry can be taken back; a relabel is taken back with its row."""
        return entry.valid and (entry.kind != "relabel" or entry.target.valid)

    def undo(self, id: str, by: str) -> None:
        target = self.entry(id)
        if not self.holds(target):
            return
        self.entries.append(Entry("undo", by, target=target))
        self._set(target, valid=False)

    def _set(self, entry: Entry, *, valid: bool) -> None:
        entry.valid = valid
        if entry.kind == "undo":
            self._set(entry.target, valid=not valid)

    def remove(self, gone: list[Entry]) -> None:
        while gone:
            self.entries = [each for each in self.entries if each not in gone]
            here = {id(each) for each in self.entries}
            gone = [
                each
                for each in self.entries
                if isinstance(each.target, Entry) and id(each.target) not in here
            ]

    def forget_class(self, label: Any) -> None:
        rows = [each for each in self.entries if each.kind == "learn"]
        answers = [self.current(row) for row in rows]
        gone = []
        for row, answer in zip(rows, answers, strict=True):
            if isinstance(answer, list):
                left = [each for each in answer if each != label]
                gone += [row] if answer and not left else []
                row.answer = left
            else:
                gone += [row] if answer == label else []
                row.answer = answer
        self.remove(gone)
        self.remove([each for each in self.entries if each.kind in FINAL])


def _with(answer: Any, old: Any, new: Any) -> Any:
    if isinstance(answer, list):
        return list(dict.fromkeys(new if each == old else each for each in answer))
    return new if answer == old else answer


def labels_of(answer: Any) -> list[Any]:
    return answer if isinstance(answer, list) else [answer]


def file_of(learner: Any, folder: Path) -> bytes:
    """Return the model file of a learner; nothing before its first class."""
    path = folder / "model.kesler"
    try:
        learner.save(path)
    except ValueError:
        return b""
    return path.read_bytes()


def learnt_anew(make: Any, rows: list[tuple[Any, Any]]) -> Any:
    learner = make()
    for row, answer in rows:
        learner.learn_one(row, answer)
    return learner


@dataclass
class Walk:
    """A random sequence of calls of a model and of the plain history."""

    model: Any
    rows: Any  # draws a row and an answer
    rng: np.random.Generator
    plain: PlainHistory = field(default_factory=PlainHistory)
    n: int = 0

    def step(self) -> str:
        kinds = "learn undo relabel rename merge forget forget_subject forget_class".split()
        shares = [0.6, 0.14, 0.06, 0.06, 0.05, 0.04, 0.02, 0.03]
        kind = str(self.rng.choice(kinds, p=shares))
        getattr(self, kind)()
        return kind

    def new_id(self) -> str:
        self.n += 1
        return f"e{self.n}"

    def any_of(self, *kinds: str) -> Entry | None:
        found = [each for each in self.plain.entries if each.kind in kinds]
        return found[self.rng.integers(len(found))] if found else None

    def any_class(self) -> Any:
        known = self.plain.classes()
        return known[self.rng.integers(len(known))] if known else None

    def learn(self) -> None:
        row, answer = self.rows(self.rng)
        id, subject = self.new_id(), [None, "ann", "bob"][self.rng.integers(3)]
        self.model.learn_one(row, answer, id=id, subject=subject)
        self.plain.entries.append(Entry("learn", id, row, answer, subject=subject))

    def undo(self) -> None:
        target, by = self.any_of("learn", "relabel", "rename", "merge", "undo"), self.new_id()
        if target is not None:
            assert self.model.undo(target.id, event=by).changed == self.plain.holds(target)
            self.plain.undo(target.id, by)

    def relabel(self) -> None:
        row, by = self.any_of("learn"), self.new_id()
        _, answer = self.rows(self.rng)
        if row is None:
            return
        if not row.valid:
            self.refused(self.model.relabel, row.id, answer)
        elif self.model.relabel(row.id, answer, event=by).changed:
            self.plain.entries.append(Entry("relabel", by, answer=answer, target=row))

    def rename(self) -> None:
        old, by = self.any_class(), self.new_id()
        new = f"z{self.rng.integers(4)}"
        if old is None or new in self.plain.classes():
            self.refused(self.model.rename, old or "none", new)
            return
        self.model.rename(old, new, event=by)
        self.plain.entries.append(Entry("rename", by, target=old, answer=new))

    def merge(self) -> None:
        source, into, by = self.any_class(), self.any_class(), self.new_id()
        if source is None or source == into:
            self.refused(self.model.merge, source or "none", into or "none")
            return
        self.model.merge(source, into, event=by)
        self.plain.entries.append(Entry("merge", by, target=source, answer=into))

    def forget(self) -> None:
        row = self.any_of("learn")
        if row is not None:
            self.model.forget(row.id)
            self.plain.remove([row])
            self.refused(self.model.forget, row.id)

    def forget_subject(self) -> None:
        gone = [each for each in self.plain.entries if each.subject == "bob"]
        assert self.model.forget_subject("bob").n_rows == len(gone)
        self.plain.remove(gone)

    def forget_class(self) -> None:
        label = self.any_class()
        if label is not None:
            self.model.forget_class(label)
            self.plain.forget_class(label)

    def refused(self, call: Any, *args: Any) -> None:
        before = repr(self.model.history(None))
        try:
            call(*args)
        except KeslerError:
            assert repr(self.model.history(None)) == before
            return
        raise AssertionError(f"{call} {args} was not refused")

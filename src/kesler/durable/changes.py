"""The changes of a history: what each writes to the database, within its transaction."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kesler.durable.contents import (
    MAPPING,
    answer_from_text,
    answer_to_text,
    label_to_text,
    require_name,
    row_from_text,
    row_to_text,
)
from kesler.durable.events import Receipt
from kesler.durable.failures import JournalError
from kesler.durable.naming import Naming, first_difference
from kesler.durable.replica import Replica, first_answers, naming_of
from kesler.durable.storage import Storage, Stored
from kesler.errors import KeslerError


class Target(NamedTuple):
    """What a change is made to."""

    storage: Storage
    key: int
    replica: Replica

    def knows(self, label: Any) -> bool:
        """Return whether a class is known."""
        return any(label == known for known in self.replica.labels)


# ---- learning -----------------------------------------------------------------------------------


def learn(
    model: Target, x: Any, y: Any, id: str | None, subject: str | None, by: str | None
) -> Receipt:
    """Append a row; one of the same id and content exists already if a call is repeated."""
    form, row = row_to_text(x)
    answer = answer_to_text(y)
    about = None if subject is None else require_name(subject, "subject")
    earlier = _earlier(model, id)
    if earlier is not None:
        is_same = earlier.kind == "learn" and (
            (earlier.subject, answer_from_text(earlier.answer or "null"))
            == (about, json.loads(answer))
            and _is_same_row(model, earlier.number, form, row)
        )
        return _repeated(earlier, is_same=is_same)
    content = {"subject": about, "answer": answer, "n_rows": 1, "form": form, "row": row}
    number, id = _append(model, "learn", id, by, **content)
    return Receipt(number, id, changed=True, n_rows=1)


def _is_same_row(model: Target, number: int, form: str, row: str) -> bool:
    """Return whether a row is that of an event; mappings may list their names in another order."""
    known_form, known_row = model.storage.row(number)
    if known_form != form:
        return False
    is_same: bool = known_row == row or (
        form == MAPPING and row_from_text(form, known_row) == row_from_text(form, row)
    )
    return is_same


def learn_all(model: Target, rows: list[Any], by: str | None) -> list[Receipt]:
    """Append several rows."""
    receipts = []
    for entry in rows:
        if not isinstance(entry, (tuple, list)) or len(entry) not in (2, 4):
            raise KeslerError(f"{entry!r:.60} is no row: give (x, y) or (x, y, id, subject)")
        x, y, id, subject = (*entry, None, None)[:4]
        receipts.append(learn(model, x, y, id, subject, by))
    return receipts


# ---- taking back --------------------------------------------------------------------------------


def undo(model: Target, id: str, event: str | None, by: str | None) -> Receipt:
    """Take an event back, or make one valid again by taking back its undo."""
    target = _require(model, id)
    earlier = _earlier(model, event)
    if earlier is not None:
        return _repeated(earlier, is_same=(earlier.kind, earlier.target) == ("undo", target.number))
    if target.kind in ("forget", "forget_class"):
        raise KeslerError(f"what the event {id!r} has forgotten cannot be brought back")
    taken_back = taken_back_by(model.storage, target)
    if taken_back is not None:
        taken_by = model.storage.event(taken_back)
        return Receipt(taken_by.number, taken_by.id, changed=False)
    first = _first_unlike(model, target, model.storage.next_number())
    number, event = _append(model, "undo", event, by, target=target.number, changed_from=first)
    return Receipt(number, event, changed=True)


def taken_back_by(storage: Storage, event: Stored) -> int | None:
    """Return the number of the undo that has taken an event back, or the row that it relabels."""
    if event.kind != "relabel" or event.taken_back is not None:
        return event.taken_back
    assert event.target is not None
    return storage.event(event.target).taken_back


def _first_unlike(model: Target, event: Stored, by: int) -> int | None:
    """Take an event back by another; return the first row that a learner then meets otherwise."""
    root = event
    while root.kind == "undo":
        assert root.target is not None
        root = model.storage.event(root.target)
    if root.kind not in ("rename", "merge"):
        _flip(model, event, by)
        return root.number if root.kind == "learn" else root.target
    before = naming_of(model.storage, model.key)
    _flip(model, event, by)
    return _first_renamed(model, before, naming_of(model.storage, model.key))


def _flip(model: Target, event: Stored, by: int | None) -> None:
    """Make an event invalid by another, or valid; what an undo has taken back is the opposite."""
    model.storage.set_taken_back(event.number, by)
    while event.kind == "undo":
        assert event.target is not None
        by = event.number if by is None else None
        event = model.storage.event(event.target)
        model.storage.set_taken_back(event.number, by)


def _first_renamed(model: Target, before: Naming, after: Naming) -> int | None:
    """Return the number of the first row that a learner meets otherwise after a change of names."""
    rows = first_answers(model.storage, model.key)
    return first_difference(rows, before, after, by_name=model.replica.by_name)


# ---- answers and classes ------------------------------------------------------------------------


def relabel(model: Target, id: str, y: Any, event: str | None, by: str | None) -> Receipt:
    """Give a row another answer."""
    row, answer = _require(model, id), answer_to_text(y)
    earlier = _earlier(model, event)
    if earlier is not None:
        same = ("relabel", row.number, json.loads(answer))
        found = earlier.kind, earlier.target, answer_from_text(earlier.answer or "null")
        return _repeated(earlier, is_same=found == same)
    if row.kind != "learn" or row.taken_back is not None:
        why = "has been taken back" if row.kind == "learn" else f"is a {row.kind}"
        raise KeslerError(f"the event {id!r} {why}: relabel a row that the model has learnt")
    current = naming_of(model.storage, model.key).current(
        row.number, answer_from_text(row.answer or "")
    )
    if current == json.loads(answer):
        return Receipt(row.number, row.id, changed=False, n_rows=1)
    values = {"target": row.number, "answer": answer, "n_rows": 1, "changed_from": row.number}
    number, event = _append(model, "relabel", event, by, **values)
    return Receipt(number, event, changed=True, n_rows=1)


def rename(model: Target, old: Any, new: Any, event: str | None, by: str | None) -> Receipt:
    """Give a class a name that no other has."""
    texts = label_to_text(old), label_to_text(new)
    earlier = _earlier(model, event)
    if earlier is not None:
        return _repeated(earlier, is_same=_is_of("rename", earlier, texts))
    _require_class(model, json.loads(texts[0]))
    if model.knows(json.loads(texts[1])):
        raise JournalError(
            f"there is a class {new!r} already: merge the two, or use another name", "conflict"
        )
    return _name(model, "rename", texts, event, by)


def merge(model: Target, source: Any, into: Any, event: str | None, by: str | None) -> Receipt:
    """Make the rows of a class rows of another."""
    texts = label_to_text(source), label_to_text(into)
    earlier = _earlier(model, event)
    if earlier is not None:
        return _repeated(earlier, is_same=_is_of("merge", earlier, texts))
    for text in texts:
        _require_class(model, json.loads(text))
    if json.loads(texts[0]) == json.loads(texts[1]):
        raise KeslerError(f"{source!r} cannot be merged into itself: name two classes")
    return _name(model, "merge", texts, event, by)


def _is_of(kind: str, earlier: Stored, texts: tuple[str, str]) -> bool:
    return (earlier.kind, earlier.old, earlier.answer) == (kind, *texts)


def _name(
    model: Target, kind: str, texts: tuple[str, str], event: str | None, by: str | None
) -> Receipt:
    """Append a rename or a merge."""
    for text in texts:
        model.replica.require_unnamed(json.loads(text))
    before = naming_of(model.storage, model.key)
    old, new = map(json.loads, texts)
    first = _first_renamed(model, before, before.renamed(model.storage.next_number(), old, new))
    values = {"old": texts[0], "answer": texts[1], "changed_from": first}
    number, id = _append(model, kind, event, by, **values)
    return Receipt(number, id, changed=True)


# ---- forgetting ---------------------------------------------------------------------------------


def forget(model: Target, id: str, by: str | None) -> Receipt:
    """Remove a row."""
    row = _require(model, id)
    if row.kind != "learn":
        raise KeslerError(f"the event {id!r} is a {row.kind}, and not a row: undo it")
    return _removed(model, "forget", [row.number], by)


def forget_subject(model: Target, subject: str, by: str | None) -> Receipt:
    """Remove the rows about a subject."""
    about = require_name(subject, "subject")
    return _removed(model, "forget", model.storage.of_subject(model.key, about), by)


def forget_class(model: Target, label: Any, by: str | None) -> Receipt:
    """Remove a class, and make all names final, so that its own is not in the history."""
    label = json.loads(label_to_text(label))
    _require_class(model, label)
    model.replica.require_unnamed(label)
    naming, storage = naming_of(model.storage, model.key), model.storage
    gone, changed, seals = [], [], {}
    for number, text in [*storage.answers(model.key, taken_back=True)]:
        current = naming.current(number, answer_from_text(text))
        left = _without(current, label)
        if left is None:
            gone.append(number)
        elif answer_to_text(left) != text:
            seals[number] = storage.set_answer(number, answer_to_text(left))
        if left != current:
            changed.append(number)
    first = storage.first_changed(model.key)
    named = storage.remove(model.key, storage.naming(model.key))
    changed += [] if first is None else [first]
    return _removed(model, "forget_class", gone, by, changed, seals | dict.fromkeys(named))


def _without(answer: Any, label: Any) -> Any:
    """Return an answer without a label; None if it had no other."""
    if not isinstance(answer, list):
        return None if answer == label else answer
    left = [each for each in answer if each != label]
    return left if left or not answer else None


def _removed(
    model: Target,
    kind: str,
    numbers: list[int],
    by: str | None,
    changed: Sequence[int] = (),
    forgotten: Mapping[int, str | None] | None = None,
) -> Receipt:
    """Remove rows; append the event that says so.

    `forgotten` is what it also says, by number: None for other events that have been removed, and
    the seals of those that have been changed.
    """
    gone = {**(forgotten or {}), **dict.fromkeys(model.storage.remove(model.key, numbers))}
    first = min([*numbers, *changed], default=None)
    values = {"n_rows": len(numbers), "changed_from": first, "forgotten": json.dumps(gone)}
    number, id = _append(model, kind, None, by, **values)
    return Receipt(number, id, changed=first is not None, n_rows=len(numbers))


# ---- ids ----------------------------------------------------------------------------------------


def _append(
    model: Target, kind: str, id: str | None, by: str | None, **values: Any
) -> tuple[int, str]:
    """Append an event; return its number and its id."""
    author = None if by is None else require_name(by, "by")
    chosen = secrets.token_hex(8) if id is None else id
    return model.storage.append(model.key, kind, chosen, author=author, **values), chosen


def _earlier(model: Target, id: str | None) -> Stored | None:
    """Return the event of an id given for a new one; None if there is none."""
    return None if id is None else model.storage.find(model.key, require_name(id, "id"))


def _repeated(earlier: Stored, *, is_same: bool) -> Receipt:
    """Return the receipt of an event that is written again; raise if it is another."""
    if not is_same:
        raise JournalError(
            f"the id {earlier.id!r} is that of another event: give each its own id", "conflict"
        )
    return Receipt(earlier.number, earlier.id, changed=False, n_rows=earlier.n_rows)


def _require(model: Target, id: str) -> Stored:
    """Return the event of an id that must exist."""
    found = model.storage.find(model.key, require_name(id, "id"))
    if found is None:
        raise JournalError(
            f"there is no event {id!r} in this model: look for its id in history(), unless it has "
            "been forgotten",
            "not found",
        )
    return found


def _require_class(model: Target, label: Any) -> None:
    if not model.knows(label):
        known = ", ".join(map(repr, model.replica.labels[:5])) or "none yet"
        sentence = f"there is no class {label!r} in this model: known are {known}"
        raise JournalError(sentence, "not found")

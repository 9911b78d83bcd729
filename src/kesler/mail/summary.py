"""What a sorter has done so far, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kesler.mail.state import Record

MOST_SHOWN = 1000
"""Messages of each kind that wait on the page of the service."""


class Row(NamedTuple):
    """The messages of a class: how many were learnt and predicted before, and how many wrongly."""

    folder: str
    n_learnt: int
    n_predicted: int
    n_wrong: int


def by_folder(records: Iterable[Record]) -> list[Row]:
    """Return a row for each class, and a last one for all."""
    learnt: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for each in records:
        if each.answer is not None:
            learnt[each.answer] += 1
            if each.guess is not None:
                predicted[each.answer] += 1
                wrong[each.answer] += each.guess != each.answer
    rows = [Row(name, learnt[name], predicted[name], wrong[name]) for name in sorted(learnt)]
    totals = (sum(found.values()) for found in (learnt, predicted, wrong))
    return [*rows, Row("all", *totals)]


def waiting(records: Mapping[str, Record]) -> list[tuple[str, Record]]:
    """Return the messages with a suggestion that nobody has answered, and that were not moved."""
    return [
        (identity, each)
        for identity, each in records.items()
        if each.guess is not None and each.answer is None and each.folder is None
    ]


def filed(records: Mapping[str, Record]) -> list[tuple[str, Record]]:
    """Return the messages that were moved and that are where they were moved."""
    found = records.items()
    return [(identity, each) for identity, each in found if each.is_ours and each.due is None]


def open_to_answers(records: Mapping[str, Record]) -> dict[str, str | None]:
    """Return the messages that the page of the service shows, with where they were moved.

    These are the last `MOST_SHOWN` that wait in the inbox, and as many that were moved, or are to
    be moved now.
    """
    found = records.items()
    moved = [(i, each) for i, each in found if each.is_ours and each.answer is None]
    last = [sorted(each, key=_number)[-MOST_SHOWN:] for each in (waiting(records), moved)]
    return {identity: each.folder for found in last for identity, each in found}


def _number(found: tuple[str, Record]) -> int:
    return found[1].number


def sure(records: Iterable[Record], threshold: float) -> tuple[int, int]:
    """Return how many predictions with an answer were so sure, and how many of these were wrong."""
    found = [
        each.guess != each.answer
        for each in records
        if each.answer is not None and each.sureness is not None and each.sureness >= threshold
    ]
    return len(found), sum(found)

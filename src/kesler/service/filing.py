"""Filing: rows of a file are learnt if they have an answer, and wait for one if not."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from kesler.durable.items import Item
from kesler.service.refusals import CONFLICT, Refusal
from kesler.service.rows_in import Taught, Upload, refusal_at
from kesler.service.served import Served, plain_row

if TYPE_CHECKING:
    from kesler.durable import Event

ROWS_AT_ONCE = 500
MOST_SENTENCES = 20


async def filed(
    served: Served, upload: Upload, by: str, thread: Callable[..., Awaitable[Any]]
) -> list[str | Refusal]:
    """File the rows of a file.

    Parameters
    ----------
    served : Served
    upload : Upload
        Its rows have ids.
    by : str
        Who files them.
    thread : async callable
        Runs a function in another thread.

    Returns
    -------
    list of what became of each row: "added", "learnt", "unchanged" or a refusal.
    """
    answered = [i for i, each in enumerate(upload.rows) if each.answer is not None]
    waiting = [i for i, each in enumerate(upload.rows) if each.answer is None]
    outcomes: dict[int, str | Refusal] = {}
    for start in range(0, len(answered), ROWS_AT_ONCE):
        group = answered[start : start + ROWS_AT_ONCE]
        found = await asyncio.wrap_future(served.learn([upload.rows[i] for i in group], by))
        outcomes |= zip(group, map(_in_a_word, found), strict=True)
    added = await thread(_added, served, [upload.rows[i] for i in waiting])
    outcomes |= zip(waiting, added, strict=True)
    return [
        refusal_at(place, outcome) if isinstance(outcome := outcomes[i], Refusal) else outcome
        for i, place in enumerate(upload.places)
    ]


def _in_a_word(outcome: dict[str, Any] | Refusal) -> str | Refusal:
    if isinstance(outcome, Refusal):
        return outcome
    return "learnt" if outcome["changed"] else "unchanged"


def _added(served: Served, rows: Sequence[Taught]) -> list[str | Refusal]:
    """Add rows to the inbox, but those that are answered or wait already."""
    known = [served.answered(str(each.id)) for each in rows]
    new = [
        Item(str(each.id), each.row, each.subject)
        for each, event in zip(rows, known, strict=True)
        if event is None
    ]
    added = iter(served.items.add(served.name, new))
    return [
        "added" if event is None and next(added) else _known(served, each, event)
        for each, event in zip(rows, known, strict=True)
    ]


def _known(served: Served, row: Taught, event: Event | None) -> str | Refusal:
    """Return what is said of a row whose id is that of a row that is answered, or waits."""
    id = str(row.id)
    other = served.items.get(served.name, id) if event is None else event
    if other is None or plain_row(other.row) == plain_row(row.row):
        return "unchanged"
    what = "waits for an answer" if event is None else "has an answer"
    return Refusal(CONFLICT, f"the id {id!r} is that of another row, which {what}")


def import_report(outcomes: Sequence[str | Refusal], upload: Upload) -> dict[str, Any]:
    """Return how many rows became what, why the first were refused, and how the file was read."""
    counts = Counter(each for each in outcomes if isinstance(each, str))
    refusals = [*upload.refused, *(each for each in outcomes if isinstance(each, Refusal))]
    return {
        "added": counts["added"],
        "learnt": counts["learnt"],
        "unchanged": counts["unchanged"],
        "refused": len(refusals),
        "sentences": [*map(str, refusals[:MOST_SENTENCES])],
        "ignored": upload.ignored,
        "notes": upload.notes,
    }

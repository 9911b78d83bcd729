"""Filing: rows of a file are learnt if they have an answer, and wait for one if not."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from kesler.service.items import Item
from kesler.service.refusals import Refusal
from kesler.service.rows_in import Taught, Upload
from kesler.service.served import Served

ROWS_AT_ONCE = 500
MOST_SENTENCES = 20


async def filed(
    served: Served, rows: Sequence[Taught], by: str, thread: Callable[..., Awaitable[Any]]
) -> list[str | Refusal]:
    """File rows; return what became of each: "added", "learnt", "unchanged" or a refusal.

    Parameters
    ----------
    served : Served
    rows : sequence of Taught
        Each with an id.
    by : str
        Who files them.
    thread : async callable
        Runs a function in another thread.
    """
    answered = [each for each in rows if each.answer is not None]
    outcomes: dict[str, str | Refusal] = {}
    for start in range(0, len(answered), ROWS_AT_ONCE):
        group = answered[start : start + ROWS_AT_ONCE]
        found = await asyncio.wrap_future(served.learn(group, by))
        for each, outcome in zip(group, found, strict=True):
            outcomes[str(each.id)] = _in_a_word(outcome)
    open_rows = [each for each in rows if each.answer is None]
    return [*outcomes.values(), *await thread(_added, served, open_rows)]


def _in_a_word(outcome: dict[str, Any] | Refusal) -> str | Refusal:
    if isinstance(outcome, Refusal):
        return outcome
    return "learnt" if outcome["changed"] else "unchanged"


def _added(served: Served, rows: Sequence[Taught]) -> list[str]:
    """Add rows to the inbox, but those that are answered or wait already."""
    new = [each for each in rows if not served.is_answered(str(each.id))]
    items = [Item(str(each.id), each.row, each.subject) for each in new]
    n_added = served.items.add(served.name, items)
    return ["added"] * n_added + ["unchanged"] * (len(rows) - n_added)


def import_report(outcomes: Sequence[str | Refusal], upload: Upload) -> dict[str, Any]:
    """Return how many rows became what, why the first were refused, and how the file was read."""
    counts = Counter(each for each in outcomes if isinstance(each, str))
    refusals = [str(each) for each in outcomes if isinstance(each, Refusal)]
    return {
        "added": counts["added"],
        "learnt": counts["learnt"],
        "unchanged": counts["unchanged"],
        "refused": len(refusals),
        "sentences": refusals[:MOST_SENTENCES],
        "ignored": upload.ignored,
        "notes": upload.notes,
    }

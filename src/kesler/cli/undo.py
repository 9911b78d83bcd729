"""kesler undo: take back events of a model of a journal, or list the last ones."""

from __future__ import annotations

import sys
from argparse import Namespace
from datetime import UTC, datetime

from kesler.cli.journal import name_of_model, require_database
from kesler.durable import Event, Journal

LONGEST = 60  # characters of a row that are printed
DONE: dict[str, str] = {
    "learn": "was learnt as {0.current!r}",
    "relabel": "changed the answer of {0.target} to {0.answer!r}",
    "rename": "renamed {0.target!r} to {0.answer!r}",
    "merge": "merged {0.target!r} into {0.answer!r}",
    "undo": "took back {0.target}",
}
"""What an event did that can be taken back."""


def run(options: Namespace) -> None:
    """Take back the events of the given ids, or print the last events."""
    require_database(options.database)
    with Journal(options.database) as journal:
        model = journal.open(name_of_model(journal, options))
        before = [model.find(id) for id in options.ids]
        receipts = model.undo_many(options.ids) if options.ids else []
        for event, receipt in zip(before, receipts, strict=True):
            assert event is not None  # `undo_many` refuses an id that there is not
            print(_said(event, receipt.changed))
        for sentence in receipts[0].kinds if receipts else ():
            print(f"kesler: {sentence}", file=sys.stderr)
        if not options.ids:
            for event in model.history(options.n):
                print("\t".join(_line(event)))


def _said(event: Event, done: bool) -> str:
    if not done:
        return f"had been taken back before: {event.id}"
    return f"taken back: {event.id}, which {DONE[event.kind].format(event)}"


def _line(event: Event) -> list[str]:
    """Return the cells of a line about an event, with its row or what it did."""
    time = datetime.fromtimestamp(event.time, UTC)
    row = repr(event.row) if event.kind == "learn" else DONE.get(event.kind, "").format(event)
    answer = "" if event.answer is None else repr(event.answer)
    taken_back = "taken back" if event.taken_back else ""
    return [f"{time:%Y-%m-%d %H:%M:%S}", event.kind, event.id, answer, row[:LONGEST], taken_back]

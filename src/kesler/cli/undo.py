"""kesler undo: take back events of a model of a journal, or list the last ones."""

from __future__ import annotations

import sys
from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from kesler.cli.journal import name_of_model, require_database
from kesler.durable import Event, Journal

LONGEST = 60  # characters of a row that are printed


def run(options: Namespace) -> None:
    """Take back the events of the given ids, or print the last events."""
    require_database(options.database)
    with Journal(options.database) as journal:
        model = journal.open(name_of_model(journal, options))
        before = [model.find(id) for id in options.ids]
        receipts = model.undo_many(options.ids) if options.ids else []
        for id, event, receipt in zip(options.ids, before, receipts, strict=True):
            print(_said(id, event, receipt.changed))
        for sentence in receipts[0].kinds if receipts else ():
            print(f"kesler: {sentence}", file=sys.stderr)
        if not options.ids:
            for event in model.history(options.n):
                print("\t".join(_line(event)))


def _said(id: str, event: Event | None, done: bool) -> str:
    what = "" if event is None else f", a {event.kind} of {_answer_of(event)!r}"
    return f"taken back: {id}{what}" if done else f"had been taken back before: {id}"


def _answer_of(event: Event) -> Any:
    """Return the answer that an event gives: that of a row with the changes since."""
    return event.current if event.kind == "learn" else event.answer


def _line(event: Event) -> list[str]:
    """Return the cells of a line about an event."""
    time = datetime.fromtimestamp(event.time, UTC)
    row = "" if event.row is None else repr(event.row)[:LONGEST]
    answer = "" if event.answer is None else repr(event.answer)
    taken_back = "taken back" if event.taken_back else ""
    return [f"{time:%Y-%m-%d %H:%M:%S}", event.kind, event.id, answer, row, taken_back]

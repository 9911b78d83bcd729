"""kesler undo: take back events of a model of a journal, or list the last ones."""

from __future__ import annotations

import os
from argparse import Namespace
from datetime import UTC, datetime

from kesler.durable import Event, Journal, Model
from kesler.errors import KeslerError

LONGEST = 60  # characters of a row that are printed


def run(options: Namespace) -> None:
    """Take back the events of the given ids, or print the last events."""
    if not os.path.isfile(options.database):
        raise KeslerError(f"{options.database} is no file: give the file of a journal")
    if not os.path.getsize(options.database):
        raise KeslerError(f"{options.database} is empty: give the file of a journal")
    with Journal(options.database) as journal:
        model = _model(journal, options)
        before = [model.find(id) for id in options.ids]
        receipts = model.undo_many(options.ids) if options.ids else []
        for id, event, receipt in zip(options.ids, before, receipts, strict=True):
            print(_said(id, event, receipt.changed))
        if not options.ids:
            for event in model.history(options.n):
                print("\t".join(_line(event)))


def _model(journal: Journal, options: Namespace) -> Model:
    """Return the model that is named, or the only one."""
    names = journal.models()
    name = options.model
    if name is None and len(names) == 1:
        (name,) = names
    if name not in names:
        known = ", ".join(sorted(names)) or "none"
        raise KeslerError(
            f"{options.database} has the models {known}: give the name of one with --model"
        )
    return journal.open(name)


def _said(id: str, event: Event | None, done: bool) -> str:
    what = "" if event is None else f", a {event.kind} of {event.answer!r}"
    return f"taken back: {id}{what}" if done else f"had been taken back before: {id}"


def _line(event: Event) -> list[str]:
    """Return the cells of a line about an event."""
    time = datetime.fromtimestamp(event.time, UTC)
    row = "" if event.row is None else repr(event.row)[:LONGEST]
    answer = "" if event.answer is None else repr(event.answer)
    taken_back = "taken back" if event.taken_back else ""
    return [f"{time:%Y-%m-%d %H:%M:%S}", event.kind, event.id, answer, row, taken_back]

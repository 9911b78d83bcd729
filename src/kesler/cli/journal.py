"""kesler journal: whether the events of a journal fit their digests, and an export of them."""

from __future__ import annotations

import os
from argparse import Namespace

from kesler.durable import Journal
from kesler.errors import KeslerError


def run(options: Namespace) -> None:
    """Verify the chains of all models, or print that of one."""
    require_database(options.database)
    with Journal(options.database) as journal:
        if options.action == "verify":
            _verify(journal)
        else:
            for line in journal.export(name_of_model(journal, options)):
                print(line)


def _verify(journal: Journal) -> None:
    faults = journal.verify()
    if faults:
        raise KeslerError("; ".join(faults))
    for name, digest in journal.digests().items():
        print(f"{name}: all events fit; the last digest is {digest}")


def require_database(path: str) -> None:
    """Raise unless a path is that of a file that may be a journal."""
    if not os.path.isfile(path):
        raise KeslerError(f"{path} is no file: give the file of a journal")
    if not os.path.getsize(path):
        raise KeslerError(f"{path} is empty: give the file of a journal")


def name_of_model(journal: Journal, options: Namespace) -> str:
    """Return the name of the model that is named, or of the only one."""
    names, name = journal.models(), options.model
    if name is None and len(names) == 1:
        (name,) = names
    if name not in names:
        known = ", ".join(sorted(names)) or "none"
        raise KeslerError(
            f"{options.database} has the models {known}: give the name of one with --model"
        )
    return str(name)

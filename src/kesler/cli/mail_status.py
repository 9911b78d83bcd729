"""kesler mail status: what is known of a mailbox, without asking its server."""

from __future__ import annotations

import time
from argparse import Namespace
from datetime import UTC, datetime

from kesler.cli.mail import sorter_of
from kesler.errors import KeslerError


def run(options: Namespace) -> None:
    """Print the numbers of folders and messages, and the suggestions that wait."""
    from kesler.mail.summary import filed, waiting
    from kesler.mail.watching import HEALTH

    with sorter_of(options) as sorter:
        if options.max_age is not None:
            _require_recent(sorter.model.kept(HEALTH).get(HEALTH), options.max_age)
        known = sorter.known
        n_messages = sum(len(each.messages) for each in known.mailbox.values())
        suggested = waiting(known.records)
        noted = sorter.model.kept(HEALTH).get(HEALTH)
        print(f"folders: {len(known.mailbox)}, of which classes: {len(known.classes)}")
        print(f"messages in them: {n_messages}")
        print(f"learnt: {sorter.model.n_trials_}")
        print(f"moved and left there: {len(filed(known.records))}")
        print(f"suggestions that wait: {len(suggested)}")
        if noted is not None:
            print(f"last look: {datetime.fromtimestamp(noted['time'], UTC):%Y-%m-%d %H:%M} UTC")
        for identity, each in suggested[: options.n]:
            print(f"{identity}\t{each.guess}\t{each.confidence:.2f}")


def _require_recent(noted: dict[str, float] | None, seconds: int) -> None:
    """Raise KeslerError if the last look at the mailbox is older."""
    age = float("inf") if noted is None else time.time() - noted["time"]
    if age > seconds:
        last = "there has been no look" if noted is None else f"the last look was {age:.0f} s ago"
        raise KeslerError(f"{last} at the mailbox: see the log of kesler mail watch")

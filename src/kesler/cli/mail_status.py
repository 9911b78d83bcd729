"""kesler mail status: what is known of a mailbox, without asking its server."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime

from kesler.cli.mail import sorter_of


def run(options: Namespace) -> None:
    """Print the numbers of folders and messages, and the suggestions that wait."""
    from kesler.mail.summary import filed, waiting
    from kesler.mail.watching import HEALTH

    with sorter_of(options) as sorter:
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

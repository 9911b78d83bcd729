"""kesler mail undo: take back what was learnt of messages, and the moves of them."""

from __future__ import annotations

from argparse import Namespace

from kesler.cli.mail import connected, line_of, message_of, sorter_of

NOTHING = "nothing is taken back, as the message is not where it was moved to"


def run(options: Namespace) -> None:
    """Take back the answer of a message; if it was moved, move it back to the inbox."""
    with sorter_of(options) as sorter:
        identity = message_of(sorter, options)
        lines = list(map(line_of, sorter.undo(identity)))
        if sorter.known.records[identity].due == "back":
            with connected(sorter.settings) as server:
                lines += map(line_of, sorter.look(server, predict=False, only=identity))
        print(*lines or [f"{NOTHING}: {identity}"], sep="\n")

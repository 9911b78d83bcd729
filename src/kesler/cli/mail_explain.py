"""kesler mail explain: why a message is predicted to be of a class."""

from __future__ import annotations

from argparse import Namespace

from kesler.cli.mail import connected, message_of, sorter_of
from kesler.errors import KeslerError


def run(options: Namespace) -> None:
    """Fetch a message, and print the words that speak for its class."""
    with sorter_of(options) as sorter:
        identity = message_of(sorter, options)
        with connected(sorter.settings) as server:
            row = sorter.row(server, identity)
        if row is None:
            raise KeslerError(
                f"the message {options.message} is in no folder that is looked at any more: look "
                "for it in the folders that are never touched"
            )
        print(sorter.model.explain_one(row, n=options.n))

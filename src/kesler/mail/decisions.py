"""What is done with a new message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kesler.mail.state import Record

ACTIONS = ("nothing", "keyword", "move")
"""What can be done with a message: nothing but a suggestion, a keyword of IMAP, or a move."""


def decided(record: Record, action: str, is_sure: bool, folders: Iterable[str]) -> Record:
    """Return the record of a message with what is due: nothing, a keyword or a move.

    A message of which the prediction is not sure enough, or whose predicted folder does not exist,
    stays where it is.

    Parameters
    ----------
    record : with the prediction.
    action : one of `ACTIONS`.
    is_sure : whether the prediction is sure enough for it.
    folders : the classes that exist.
    """
    record = replace(record, due=None)
    if action == "nothing" or record.guess is None or record.guess not in folders:
        return record
    if not is_sure:
        return record
    if action == "keyword":
        return replace(record, due="keyword")
    return replace(record, folder=record.guess, is_ours=True, due="move")

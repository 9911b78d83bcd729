"""What is done with a new message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kesler.mail.folders import is_inbox
from kesler.mail.state import MOVES, Record

ACTIONS: dict[str, tuple[str, ...]] = {"nothing": (), "keyword": ("keyword",), "move": MOVES}
"""What can be done with a message: nothing but a suggestion, a keyword of IMAP, or a move; and what
is due with it then."""


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


def answered(record: Record, action: str, place: str | None, folders: Iterable[str]) -> Record:
    """Return the record of a message that a person has answered elsewhere, with what is due.

    It is moved to the folder that is its answer, from wherever it is, or marked with it in the
    inbox. It stays where it is if there is no such folder, or nothing is to be changed.

    Parameters
    ----------
    record : with the answer.
    action : one of `ACTIONS`.
    place : the folder that holds the message, None if none does.
    folders : the classes that exist.
    """
    record, folder = replace(record, due=None), record.answer
    if folder is None or folder not in folders or folder == place or action == "nothing":
        return record
    if action == "move":
        return replace(record, folder=folder, is_ours=True, due="move")
    return replace(record, due="keyword") if place and is_inbox(place) else record

"""What is done with a new message, and from which confidence on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kesler.errors import KeslerError
from kesler.mail.state import Record

ACTIONS = ("nothing", "keyword", "move")
"""What can be done with a message: nothing but a suggestion, a keyword of IMAP, or a move."""


def decided(record: Record, action: str, threshold: float | None, folders: Iterable[str]) -> Record:
    """Return the record of a message with what is due: nothing, a keyword or a move.

    A message of which the confidence is too low, or whose predicted folder does not exist, stays
    where it is.

    Parameters
    ----------
    record : with the prediction.
    action : one of `ACTIONS`.
    threshold : the least confidence with which something is done; None if none is known.
    folders : the classes that exist.
    """
    record = replace(record, due=None)
    if action == "nothing" or record.guess is None or record.guess not in folders:
        return record
    if threshold is None or record.confidence is None or record.confidence < threshold:
        return record
    if action == "keyword":
        return replace(record, due="keyword")
    return replace(record, folder=record.guess, is_ours=True, due="move")


def threshold_of(pairs: Sequence[tuple[float, bool]], error: float) -> float | None:
    """Return the lowest confidence whose predictions had at most this share of mistakes so far.

    Parameters
    ----------
    pairs : the confidence of each prediction, and whether it was right.
    error : the largest share of mistakes, above 0 and below 1.

    Returns
    -------
    None if no confidence reaches it, or too few predictions do to show such a share: 2 / `error`.

    Examples
    --------
    >>> threshold_of([(0.9, True)] * 30 + [(0.6, False)] * 30, 0.1)
    0.9
    >>> threshold_of([(0.9, True)] * 3, 0.1)
    """
    from kesler.evaluation.confidence import RiskCoverage

    if not pairs:
        return None
    confidences, right = zip(*pairs, strict=True)
    try:
        found = RiskCoverage.of(confidences, [not each for each in right]).threshold_for(error)
    except KeslerError:
        return None
    return found.confidence if found.n_answered >= 2 / error else None


def pairs_of(records: Iterable[Record]) -> list[tuple[float, bool]]:
    """Return the confidences of predictions whose answers are known, and whether they were right.

    A message that was filed and left there was filed rightly.
    """
    return [
        (each.confidence, each.is_ours or each.guess == each.answer)
        for each in records
        if each.confidence is not None
        and (each.answer is not None or (each.is_ours and each.due is None))
    ]

"""What a journal reports: events of the history, and receipts for calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Kind = Literal["learn", "relabel", "rename", "merge", "undo", "forget", "forget_class"]
"""The kinds of events."""


class Receipt(NamedTuple):
    """What a call has changed; it is on disk when the receipt is returned.

    Attributes
    ----------
    number : int
        The number of the event in the database: later events have larger numbers.
    id : str
        The id of the event.
    changed : bool
        Whether the call has changed the history. False if the same event had been written before,
        as when a client repeats a call whose reply was lost, or if there was nothing to change.
    n_rows : int
        The number of rows that the event is about: 1 for `learn_one` and `relabel`, the number of
        rows removed for those that forget, 0 for the others.
    kinds : tuple of str
        A sentence for each column of a table whose kind differs now, with how to keep it, and for
        each in which no row has a cell now. Kinds are inferred from the first 50 rows, which are
        others without one that is taken back or forgotten. All receipts of a call say the same.

    Examples
    --------
    >>> Receipt(3, "m17", changed=True, n_rows=1).id
    'm17'
    """

    number: int
    id: str
    changed: bool
    n_rows: int = 0
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """An event of the history of a model, as :meth:`~kesler.durable.Model.history` lists it.

    Attributes
    ----------
    number : int
        Its number in the database: later events have larger numbers.
    kind : "learn", "relabel", "rename", "merge", "undo", "forget" or "forget_class"
    id : str
        Its id, unique in the model.
    time : float
        When it was written, in seconds since 1970, UTC.
    by : str or None
        Who did it, as passed to the call.
    taken_back : bool
        Whether it has been taken back; a relabel also with its row.
    target : Any
        The id of the event that a relabel or an undo is about, the class that is renamed or merged;
        None for the others.
    answer : Any
        The answer of a learn or a relabel as it was given, with sets as sorted lists; the new name
        of a class, or the class that another is merged into. None for the others.
    current : Any
        The current answer of the row of a learn: with relabels, renames and merges since. None for
        the others.
    row : Any
        The row of a learn; None for the others.
    subject : str or None
        Whom the row of a learn is about, as passed to the call.

    Examples
    --------
    >>> import tempfile
    >>> from kesler import OnlineClassifier
    >>> from kesler.durable import Journal
    >>> journal = Journal(tempfile.mkdtemp() + "/desk.db")
    >>> mail = journal.open("mail", OnlineClassifier())
    >>> receipt = mail.learn_one("win cash", "spam", id="m1", by="ann")
    >>> [(event.kind, event.row, event.answer, event.by) for event in mail.history()]
    [('learn', 'win cash', 'spam', 'ann')]
    >>> journal.close()
    """

    number: int
    kind: Kind
    id: str
    time: float
    by: str | None
    taken_back: bool
    target: Any = None
    answer: Any = None
    current: Any = None
    row: Any = None
    subject: str | None = None

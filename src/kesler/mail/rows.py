"""Messages as rows of the learner, and many of them in the order of their dates."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import Any

from kesler.readers.mail.index import timestamp_of
from kesler.readers.mail.mbox import END_OF_HEADERS
from kesler.readers.mail.message import message_tokens
from kesler.readers.reader import BadRow

IN_MEMORY = 8 << 20  # bytes of rows; more are written to a temporary file


def row_of_message(message: bytes) -> dict[str, Any]:
    r"""Return a message as the row that is learnt; one that cannot be read is empty.

    Examples
    --------
    >>> row_of_message(b"Subject: Lunch\r\n\r\nAt one")
    {'lunch': 1.0, 'at': 1.0, 'one': 1.0}
    """
    try:
        return {**message_tokens(message)}
    except BadRow:
        return {}


class Spool:
    """Rows that are given in any order, and come back in the order of their dates.

    A message without a date has that of the one before it.
    """

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY)
        self._index: list[tuple[int, int, int]] = []  # date, position in order, offset
        self._date = 0

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, identity: str, folder: str, message: bytes) -> None:
        """Add a message of a folder."""
        end = END_OF_HEADERS.search(message)
        self._date = timestamp_of(message[: end.end() if end else None], undated=self._date)
        self._index.append((self._date, len(self._index), self._file.tell()))
        pickle.dump((identity, folder, row_of_message(message)), self._file)

    def __iter__(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for _, _, offset in sorted(self._index):
            self._file.seek(offset)
            yield pickle.load(self._file)

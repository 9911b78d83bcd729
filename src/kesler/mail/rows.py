"""Messages that are read in any order, in the order of their dates."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile

from kesler.mail.messages import Read, read
from kesler.mail.threads import Keys
from kesler.readers.mail.index import timestamp_of
from kesler.readers.mail.mbox import END_OF_HEADERS

IN_MEMORY = 8 << 20  # bytes; more are written to a temporary file


class Spool:
    """Messages that are given in any order, and come back as they were read in that of their dates.

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
        features, keys = read(message)
        pickle.dump((identity, folder, features, tuple(keys)), self._file)

    def __iter__(self) -> Iterator[tuple[str, str, Read]]:
        for _, _, offset in sorted(self._index):
            self._file.seek(offset)
            identity, folder, features, keys = pickle.load(self._file)
            yield identity, folder, Read(features, Keys(*keys))

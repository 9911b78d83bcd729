"""The table by which a scanner numbers names, and its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.readers.texts import BEYOND, text_of

ROOM = 1 << 12  # of names, at first
LETTERS = 16  # of a name: room for so many


class NameTable:
    """Names and their numbers, in the order in which they are met.

    Attributes
    ----------
    arrays : NamedTuple of arrays
        As compiled loops take them: see `kesler.compiled.name_table`.

    Examples
    --------
    >>> table = NameTable()
    >>> table.numbers(["^free", "from^bob", "^free"]).tolist(), table.names()
    ([0, 1, 0], ['^free', 'from^bob'])
    """

    def __init__(self) -> None:
        from kesler.compiled import name_table

        self._compiled = name_table
        self.arrays = self._empty(ROOM, LETTERS * ROOM)
        self._names = list[str]()

    def names(self) -> list[str]:
        """Return the names by number: one list, which grows."""
        arrays, n_read = self.arrays, len(self._names)
        n_names = int(arrays.size[0])
        if n_names > n_read:
            start = arrays.ends[n_read - 1] + 1 if n_read else 0
            letters = arrays.letters[start : arrays.size[1] - 1].tobytes()
            self._names.extend(letters.decode(errors="surrogatepass").split("\n"))
        return self._names

    def numbers(self, names: list[str]) -> npt.NDArray[np.int32]:
        """Return the numbers of names, each of which holds a caret and no end of a line."""
        encoded = [name.encode(errors="surrogatepass") for name in names]
        ends = np.cumsum([len(name) + 1 for name in encoded], dtype=np.int64) - 1
        letters = text_of(b"\n".join([*encoded, b""]))
        numbers = np.empty(len(names), dtype=np.int32)
        n_done = 0
        while (n_done := self._number(letters, ends, n_done, numbers)) < len(names):
            self.grow()
        return numbers

    def grow(self) -> None:
        """Make room for twice as many names."""
        arrays, n_names = self.arrays, int(self.arrays.size[0])
        self.arrays = self._empty(2 * len(arrays.ends), 2 * (len(arrays.letters) - BEYOND))
        numbers = np.empty(n_names, dtype=np.int32)
        self._number(arrays.letters, arrays.ends, 0, numbers)

    def _number(
        self,
        letters: npt.NDArray[np.uint8],
        ends: npt.NDArray[np.int64],
        n_done: int,
        numbers: npt.NDArray[np.int32],
    ) -> int:
        done: int = self._compiled.number_names(letters, ends, n_done, numbers, self.arrays)
        return done

    def _empty(self, n_names: int, n_letters: int) -> Any:
        return self._compiled.NameTable(
            np.zeros((2 * n_names, 2), dtype=np.int64),
            np.empty(n_letters + BEYOND, dtype=np.uint8),
            np.empty(n_names, dtype=np.int64),
            np.zeros(2, dtype=np.int64),
        )

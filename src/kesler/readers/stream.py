"""The stream: rows of any format, block by block, in the order in which they stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.readers.admission import Admission
from kesler.readers.reader import Reader
from kesler.readers.runs import runs
from kesler.rows import Rows, Vocabulary


@dataclass(frozen=True, slots=True)
class Block:
    """A run of consecutive rows with their labels.

    Parameters
    ----------
    rows : Rows
        The rows.
    labels : list
        The label of each row; None where it has none.
    weights : float64 array of shape (n_rows,) or None
        The importance of each row; None if all are 1.
    """

    rows: Rows
    labels: list[Any]
    weights: npt.NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, part: slice) -> Block:
        """Return a run of consecutive rows of the block, as views."""
        weights = None if self.weights is None else self.weights[part]
        return Block(self.rows[part], self.labels[part], weights)


class Stream(Iterator[Block]):
    """The blocks of a source, read once and lazily.

    Parameters
    ----------
    reader : Reader
        The way through the source.
    source : str
        What messages call the source.
    require_labels : bool
        If True, a row without a label is a bad row.
    skip_bad : bool
        If True, bad rows are skipped and counted; if False, the first one raises.
    skip_rows : int
        How many good rows are read and thrown away first.
    block_rows : int
        Most rows in a block.

    Attributes
    ----------
    n_rows : int
        Rows yielded so far.
    n_bad : int
        Bad rows skipped so far.
    vocabulary : Vocabulary or None
        The names of the features; None if they are positions.
    source : str
        What messages call the source.

    Raises
    ------
    KeslerError
        On iteration: a bad row, a source without rows or with fewer than are to be skipped.
    """

    def __init__(
        self,
        reader: Reader,
        source: str,
        *,
        require_labels: bool,
        skip_bad: bool,
        skip_rows: int,
        block_rows: int,
    ) -> None:
        self.source = source
        self.vocabulary: Vocabulary | None = reader.vocabulary
        self.n_rows = 0
        self.n_bad = 0
        self._to_skip = skip_rows
        admission = Admission(reader, source, require_labels, skip_bad)
        self._runs = runs(admission, block_rows, skip_rows)

    def __next__(self) -> Block:
        for run in self._runs:
            self.n_bad = run.n_bad
            if not run.labels:
                continue
            rows = run.gather()
            # Skipped rows are gathered too: they number their features as when they were learnt.
            if self._to_skip:
                self._to_skip -= len(rows)
                continue
            self.n_rows += len(rows)
            return Block(rows, run.labels, run.weights)
        raise StopIteration

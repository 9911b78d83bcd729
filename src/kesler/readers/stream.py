"""The stream: rows of any format, block by block, in the order in which they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.readers.faults import BadRow
from kesler.readers.labels import require_label
from kesler.readers.reader import Example, Reader
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
        self._reader = reader
        self._require_labels = require_labels
        self._skip_bad = skip_bad
        self._skip_rows = skip_rows
        self._kind = ""
        self._blocks = self._read(block_rows)

    def __next__(self) -> Block:
        block = next(self._blocks)
        self.n_rows += len(block)
        return block

    def _read(self, block_rows: int) -> Iterator[Block]:
        examples = self._examples()
        # Skipped rows are gathered too: they number their features as when they were learnt from.
        for skipped in _runs(islice(examples, self._skip_rows), block_rows):
            self._block(skipped)
        yield from map(self._block, _runs(examples, block_rows))

    def _block(self, examples: list[Example]) -> Block:
        labels, entries, weights = zip(*examples, strict=True)
        weighted = any(weight != 1 for weight in weights)
        return Block(
            self._reader.gather(entries), list(labels), np.array(weights) if weighted else None
        )

    def _examples(self) -> Iterator[Example]:
        n_good = 0
        for place, raw in self._reader.rows:
            try:
                example = self._example(raw)
            except BadRow as fault:
                self._refuse(place, fault)
                continue
            n_good += 1
            yield example
        if n_good == 0:
            raise KeslerError(f"{self.source} holds no rows ({self.n_bad} are bad): check it")
        if n_good < self._skip_rows:
            raise KeslerError(
                f"{self.source} holds {n_good} rows, fewer than the {self._skip_rows} to skip: "
                "go on with the source that the run began with"
            )

    def _example(self, raw: Any) -> Example:
        example = self._reader.parse(raw)
        require_label(example.label, self._require_labels)
        if self._require_labels:
            self._require_same_kind(example.label)
        return example

    def _require_same_kind(self, label: Any) -> None:
        """Raise BadRow if a label is text among numbers, or a number among text."""
        kind = "text" if isinstance(label, str) else "a number"
        self._kind = self._kind or kind
        if kind != self._kind:
            raise BadRow(
                f"the label {label!r} is {kind}, but the first is {self._kind}, and classes are of "
                "one type"
            )

    def _refuse(self, place: int | str, fault: BadRow) -> None:
        if not self._skip_bad:
            raise KeslerError(
                f"{self.source}, {self._reader.unit} {place}: {fault}; "
                "mend it, or skip such rows with skip_bad=True"
            ) from None
        self.n_bad += 1


def _runs(examples: Iterable[Example], length: int) -> Iterator[list[Example]]:
    examples = iter(examples)
    while run := list(islice(examples, length)):
        yield run

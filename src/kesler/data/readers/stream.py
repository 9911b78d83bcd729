"""The stream: rows of any format, block by block, bad ones skipped or refused."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from queue import Queue
from threading import Event, Thread
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.data.readers.lines import LASTING
from kesler.data.readers.reader import (
    BadRow,
    Example,
    Pieces,
    Reader,
    Scanner,
    Scanning,
    require_label,
)
from kesler.data.rows import Rows, Vocabulary
from kesler.errors import KeslerError

TEXT, NUMBER = "text", "a number"


@dataclass(slots=True)
class Admission:
    """The one judge of rows, whichever way they are read.

    Parameters
    ----------
    reader : Reader
        Reads a row.
    source : str
        What messages call the source.
    require_labels : bool
        If True, a row without a label is a bad row.
    skip_bad : bool
        If True, bad rows are counted; if False, the first one raises.
    kind : str
        What labels are, `TEXT` or `NUMBER`, as the first says; empty before it, and if none is
        required.
    n_good, n_bad : int
        Rows so far.
    """

    reader: Reader
    source: str
    require_labels: bool
    skip_bad: bool
    kind: str = ""
    n_good: int = 0
    n_bad: int = 0

    def example(self, place: int | str, raw: Any) -> Example | None:
        """Read a row; None if it is bad and skipped."""
        try:
            example = self.reader.parse(raw)
            require_label(example.label, self.require_labels)
            if self.require_labels:
                self._require_same_kind(example.label)
        except BadRow as fault:
            self._refuse(place, fault)
            return None
        return example

    def require_rows(self, skip_rows: int) -> None:
        """Raise KeslerError, at the end of the source, if there were no rows or too few to skip."""
        if self.n_good == 0:
            raise KeslerError(f"{self.source} holds no rows ({self.n_bad} are bad): check it")
        if self.n_good < skip_rows:
            raise KeslerError(
                f"{self.source} holds {self.n_good} rows, fewer than the {skip_rows} to skip: "
                "go on with the source that the run began with"
            )

    def _require_same_kind(self, label: Any) -> None:
        """Raise BadRow if a label is text among numbers, or a number among text."""
        kind = TEXT if isinstance(label, str) else NUMBER
        self.kind = self.kind or kind
        if kind != self.kind:
            raise BadRow(
                f"the label {label!r} is {kind}, but the first is {self.kind}, and classes are of "
                "one type"
            )

    def _refuse(self, place: int | str, fault: BadRow) -> None:
        if not self.skip_bad:
            raise KeslerError(
                f"{self.source}, {self.reader.unit} {place}: {fault}; "
                "mend it, or skip such rows with skip_bad=True"
            ) from None
        self.n_bad += 1


Item = TypeVar("Item")

NAME = "kesler reads ahead"


def read_ahead(items: Iterator[Item], capacity: int) -> Generator[Item, None, None]:
    """Yield items that a second thread asks for, in their order; of those ready, `capacity` wait.

    What asking raises is raised here, in its place. The thread ends with the items, or soon after
    the iterator is closed or dropped.

    Examples
    --------
    >>> list(read_ahead(iter("abc"), 2))
    ['a', 'b', 'c']
    """
    waiting = Queue[tuple[Item] | BaseException | None](capacity)
    dropped = Event()

    def fill() -> None:
        end: BaseException | None = None
        try:
            for item in items:
                waiting.put((item,))
                if dropped.is_set():
                    return
        except BaseException as error:
            end = error
        waiting.put(end)
        end = None  # an error knows this frame: each would keep the other, and all that is here

    thread = Thread(target=fill, name=NAME, daemon=True)
    thread.start()
    try:
        while isinstance(found := waiting.get(), tuple):
            yield found[0]
        if found is not None:
            raise found
    finally:
        found = None
        dropped.set()
        # Who waits to put an item finds room for it, sees that none is wanted, and ends.
        while not waiting.empty():
            waiting.get_nowait()
        thread.join()


AHEAD = 4  # runs that wait to be learnt
PIECES_AHEAD = LASTING - 2  # that wait to be scanned, besides one that is and one that is read


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive good rows, whose features have no numbers yet.

    Parameters
    ----------
    labels : list
        The label of each row; None where it has none.
    weights : float64 array of shape (n_rows,) or None
        The importance of each row; None if all are 1.
    gather : callable () -> Rows
        Numbers the features, in the order in which runs are asked for.
    n_bad : int
        Bad rows of the source by the end of the run.
    """

    labels: list[Any]
    weights: npt.NDArray[np.float64] | None
    gather: Callable[[], Rows]
    n_bad: int


def runs(admission: Admission, block_rows: int, skip_rows: int) -> Iterator[Run]:
    """Read a source in runs of `block_rows`; the one that reaches `skip_rows` ends there.

    Raises
    ------
    KeslerError
        On iteration: a bad row, a source without rows or with fewer than are to be skipped.
    """
    lengths = _lengths(block_rows, skip_rows)
    wanted = next(lengths)
    scanning = admission.reader.scanning
    examples = list[Example]()
    for place, raw in admission.reader.rows:
        if example := admission.example(place, raw):
            examples.append(example)
        if len(examples) == wanted:
            yield _run(examples, admission)
            examples, wanted = [], next(lengths)
        is_known = bool(examples) or admission.n_good > 0  # how rows are read, of what labels
        if scanning is not None and scanning.pieces.is_long and is_known:
            rest = _scanned(scanning, admission, examples, wanted, lengths)
            yield from rest if scanning.pieces.is_piped else read_ahead(rest, AHEAD)
            break
    else:
        yield _run(examples, admission)
    admission.require_rows(skip_rows)


def _lengths(block_rows: int, skip_rows: int) -> Iterator[int]:
    """Yield how many rows each run has."""
    yield from repeat(block_rows, skip_rows // block_rows)
    if rest := skip_rows % block_rows:
        yield rest
    yield from repeat(block_rows)


def _run(examples: Sequence[Example], admission: Admission) -> Run:
    admission.n_good += len(examples)
    weights = np.array([example.weight for example in examples])
    entries = [example.entry for example in examples]
    return Run(
        [example.label for example in examples],
        None if (weights == 1).all() else weights,
        partial(admission.reader.gather, entries),
        admission.n_bad,
    )


def _scanned(
    scanning: Scanning,
    admission: Admission,
    examples: Sequence[Example],
    wanted: int,
    lengths: Iterator[int],
) -> Iterator[Run]:
    """Read the rest of a source, from a run of `wanted` rows on that begins with examples."""
    scanner = scanning.scanner()
    scanner.expect(admission.kind)
    scanner.extend(examples)
    with closing(_pieces(scanning.pieces)) as pieces:
        scanner.open(pieces)
        while not scanner.has_ended:
            refused = scanner.scan(wanted)
            if refused is not None:
                example = admission.example(refused.place, refused.row)
                scanner.extend([example] if example else [])
            if scanner.n_rows == wanted:
                yield _scanned_run(scanner, admission)
                wanted = next(lengths)
        yield _scanned_run(scanner, admission)


def _pieces(pieces: Pieces) -> Generator[tuple[int, Any], None, None]:
    """Return the pieces of a source, read ahead if they are all there."""
    chunks = pieces.chunks()
    return chunks if pieces.is_piped else read_ahead(chunks, PIECES_AHEAD)


def _scanned_run(scanner: Scanner, admission: Admission) -> Run:
    admission.n_good += scanner.n_rows
    labels, weights, gather = scanner.taken()
    return Run(labels, weights, gather, admission.n_bad)


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

"""The stream: rows of any format, block by block; bad rows are skipped or raise an error."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import repeat
from queue import Queue
from threading import Event, Thread
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.data.labels import class_of
from kesler.data.rows import Rows, Vocabulary
from kesler.errors import KeslerError, ReadingWarning, warn
from kesler.readers.losses import Losses
from kesler.readers.reader import (
    LASTING,
    BadRow,
    Example,
    Origin,
    Pieces,
    Reader,
    Scanner,
    Scanning,
    Unlabelled,
    require_label,
)

TEXT, NUMBER, COSTS = "text", "a number", "costs of classes"


def kind_of(label: Any) -> str:
    """Return the kind of a label."""
    if isinstance(label, dict):
        return COSTS
    return TEXT if isinstance(label, str) else NUMBER


@dataclass(slots=True)
class Admission:
    """The check of all rows, whether parsed or scanned.

    Parameters
    ----------
    reader : Reader
        Parses a row.
    source : str
        The name of the source in messages.
    require_labels : bool
        If True, a row without a label is left out.
    skip_bad : bool
        If True, bad rows are counted; if False, the first one raises an error.
    origins : bool
        Whether it is kept where rows come from, for which they are parsed one by one.
    label_sets : bool
        Whether a row has a list of labels.
    kind : str
        The kind of the first label, `TEXT`, `NUMBER` or `COSTS`; empty before the first row, and if
        labels are not required.
    n_good : int
        Number of good rows so far.
    losses : Losses
        The rows that are left out so far.
    """

    reader: Reader
    source: str
    require_labels: bool
    skip_bad: bool
    origins: bool = False
    label_sets: bool = False
    kind: str = ""
    n_good: int = 0
    losses: Losses = field(default_factory=Losses)

    def example(self, place: int | str, raw: Any) -> Example | None:
        """Parse a row; return None if it is left out."""
        try:
            example = self.reader.parse(raw)
            if self.label_sets:
                return example._replace(label=self._label_set(example.label))
            label = class_of(example.label)
            if label is not example.label or label == "":
                example = example._replace(label=label if label != "" else None)
            require_label(example.label, self.require_labels)
            if self.require_labels:
                self._require_same_kind(example.label)
        except Unlabelled as fault:
            self.losses.add_unlabelled(f"{self.reader.unit} {place}", fault)
            return None
        except BadRow as fault:
            self._refuse(place, fault)
            return None
        if example.misfits:
            self.losses.add_misfits(f"{self.reader.unit} {place}", example.misfits)
        return example

    def _label_set(self, labels: Any) -> tuple[Any, ...] | None:
        """Return the classes of a row; raise BadRow or Unlabelled if it has no list of them."""
        if labels is None:
            require_label(labels, self.require_labels)
            return None
        if not isinstance(labels, (list, tuple, set, frozenset, np.ndarray)):
            raise BadRow(
                f"the label is a {type(labels).__name__}, not a list of labels, which JSON and "
                "Parquet have",
                class_of(labels),
            )
        found = tuple(map(class_of, labels))
        for label in found:
            require_label(label, required=True)
            self._require_same_kind(label)
        return found

    def require_rows(self, skip_rows: int) -> None:
        """Raise KeslerError at the end of the source if it has no rows or too few to skip."""
        losses = self.losses
        if self.n_good == 0 and losses.n_unlabelled:
            raise KeslerError(
                f"{self.source}, {losses.first_unlabelled}, nor in any row "
                f"({losses.n_unlabelled} have none, {losses.n_bad} are bad): name what holds the "
                "labels with label=..., or give rows that have them"
            )
        if self.n_good == 0:
            raise KeslerError(f"{self.source} holds no rows ({losses.n_bad} are bad): check it")
        if self.n_good < skip_rows:
            raise KeslerError(
                f"{self.source} holds {self.n_good} rows, fewer than the {skip_rows} to skip: "
                "continue with the source of the interrupted run"
            )

    def _require_same_kind(self, label: Any) -> None:
        """Raise BadRow if a label is not of the kind of the first."""
        kind = kind_of(label)
        self.kind = self.kind or kind
        if kind != self.kind:
            raise BadRow(
                f"the label {label!r} is {kind}, but the first is {self.kind}, and classes are of "
                "one type",
                label,
            )

    def _refuse(self, place: int | str, fault: BadRow) -> None:
        if not self.skip_bad:
            raise KeslerError(
                f"{self.source}, {self.reader.unit} {place}: {fault}; "
                "mend it, or skip such rows with skip_bad=True"
            ) from None
        self.losses.add_bad(f"{self.reader.unit} {place}", fault)


Item = TypeVar("Item")

NAME = "kesler reads ahead"


def read_ahead(items: Iterator[Item], capacity: int) -> Generator[Item, None, None]:
    """Yield items that a second thread reads in order; at most `capacity` items wait.

    An error of the items is raised here, in its place. The thread ends with the items, or soon
    after the iterator is closed or deleted.

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
        end = None  # the error refers to this frame: breaks the reference cycle

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
        # If the thread waits to put an item, emptying the queue lets it go on, and it ends.
        while not waiting.empty():
            waiting.get_nowait()
        thread.join()


AHEAD = 4  # runs that may wait to be learnt
# Pieces that may wait to be scanned, besides the one that is scanned and the one that is read.
PIECES_AHEAD = LASTING - 2


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive good rows whose features are not numbered yet.

    Parameters
    ----------
    labels : list
        The label of each row; None where it has none.
    weights : float64 array of shape (n_rows,) or None
        The importance of each row; None if all are 1.
    gather : callable () -> Rows
        Numbers the features and returns the rows; must be called in the order of the runs.
    n_bad : int
        Number of bad rows of the source up to the end of the run.
    origins : list of Origin or None
        Where each row comes from, if it is kept.
    """

    labels: list[Any]
    weights: npt.NDArray[np.float64] | None
    gather: Callable[[], Rows]
    n_bad: int
    origins: list[Origin] | None = None


BLOCK, BLOCK_OF_SHORT = 1024, 4096  # rows
SHORT = 256  # mean bytes of a line of text


def runs(admission: Admission, block_rows: int | None, skip_rows: int) -> Iterator[Run]:
    """Read a source in runs of `block_rows` rows; a run ends where `skip_rows` is reached.

    If it is None, runs have `BLOCK` rows, and `BLOCK_OF_SHORT` once many short lines were read, of
    which a block of `BLOCK` takes less time than what is done once for each block.

    Raises
    ------
    KeslerError
        On iteration, for a bad row, or a source without rows or with too few to skip.
    """
    lengths = _lengths(block_rows or BLOCK, skip_rows)
    wanted = next(lengths)
    by_row = admission.origins or admission.label_sets
    scanning = None if by_row else admission.reader.scanning
    examples, origins = list[Example](), list[Origin]()
    for number, (place, raw) in enumerate(admission.reader.rows, 1):
        if example := admission.example(place, raw):
            examples.append(example)
            origins.append(Origin(number, place, example.id))
        if len(examples) == wanted:
            yield _run(examples, origins, admission)
            examples, origins, wanted = [], [], next(lengths)
        # The first good row determines how rows are read and the kind of labels.
        is_known = bool(examples) or admission.n_good > 0
        if scanning is not None and scanning.pieces.is_long and is_known:
            n_read = admission.n_good + len(examples)
            if block_rows is None and 0 < scanning.pieces.n_bytes <= SHORT * n_read:
                n_ahead = admission.n_good + wanted
                lengths = _lengths(BLOCK_OF_SHORT, max(0, skip_rows - n_ahead))
            places = [origin.place for origin in origins]
            rest = _scanned(scanning, admission, examples, places, wanted, lengths)
            yield from rest if scanning.pieces.is_piped else read_ahead(rest, AHEAD)
            break
    else:
        yield _run(examples, origins, admission)
    admission.require_rows(skip_rows)


def _lengths(block_rows: int, skip_rows: int) -> Iterator[int]:
    """Yield the number of rows of each run."""
    yield from repeat(block_rows, skip_rows // block_rows)
    if rest := skip_rows % block_rows:
        yield rest
    yield from repeat(block_rows)


def _run(examples: Sequence[Example], origins: list[Origin], admission: Admission) -> Run:
    admission.n_good += len(examples)
    weights = np.array([example.weight for example in examples])
    entries = [example.entry for example in examples]
    return Run(
        [example.label for example in examples],
        None if (weights == 1).all() else weights,
        partial(_gathered, admission, entries, [origin.place for origin in origins]),
        admission.losses.n_bad,
        origins if admission.origins else None,
    )


def _gathered(admission: Admission, entries: Sequence[Any], places: list[int | str]) -> Any:
    """Return entries as rows, or as a table that knows where its rows come from."""
    rows = admission.reader.gather(entries)
    if isinstance(rows, Rows):
        return rows
    from kesler.data.schema.records import Places

    return replace(rows, places=Places(admission.source, admission.reader.unit, places))


def _scanned(
    scanning: Scanning,
    admission: Admission,
    examples: Sequence[Example],
    places: Sequence[int | str],
    wanted: int,
    lengths: Iterator[int],
) -> Iterator[Run]:
    """Scan the rest of a source; the first run has `wanted` rows and begins with `examples`."""
    scanner = scanning.scanner()
    scanner.expect(admission.kind)
    scanner.extend(examples, places)
    with closing(_pieces(scanning.pieces)) as pieces:
        scanner.open(pieces)
        while not scanner.has_ended:
            refused = scanner.scan(wanted)
            if refused is not None:
                example = admission.example(refused.place, refused.row)
                if example:
                    scanner.extend([example], [refused.place])
            if scanner.n_rows == wanted:
                yield _scanned_run(scanner, admission)
                wanted = next(lengths)
        yield _scanned_run(scanner, admission)


def _pieces(pieces: Pieces) -> Generator[tuple[int, Any], None, None]:
    """Return the pieces of a source, read ahead unless it is a pipe."""
    chunks = pieces.chunks()
    return chunks if pieces.is_piped else read_ahead(chunks, PIECES_AHEAD)


def _scanned_run(scanner: Scanner, admission: Admission) -> Run:
    admission.n_good += scanner.n_rows
    labels, weights, gather = scanner.taken()
    return Run(labels, weights, gather, admission.losses.n_bad)


@dataclass(frozen=True, slots=True)
class Block:
    r"""Consecutive rows with their labels.

    Parameters
    ----------
    rows : Rows or Table
        The rows; a table of raw cells if the stream was opened with ``as_table=True``.
    labels : list
        The label of each row, or its labels as a tuple; None where it has none.
    weights : float64 array of shape (n_rows,) or None
        The importance of each row; None if all are 1.
    origins : list of Origin or None
        Where each row comes from, if the stream was opened with ``origins=True``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kesler.readers import open_stream
    >>> path = Path(tempfile.mkdtemp(), "pets.csv")
    >>> _ = path.write_text("kind,legs\ncat,4\nparrot,2\n")
    >>> block = next(open_stream(path, label="kind"))
    >>> len(block), block.labels
    (2, ['cat', 'parrot'])
    """

    rows: Rows
    labels: list[Any]
    weights: npt.NDArray[np.float64] | None = None
    origins: list[Origin] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def without(self, row: int) -> Block:
        """Return the block without one of its rows."""
        kept = np.delete(np.arange(len(self)), row)
        weights = None if self.weights is None else self.weights[kept]
        origins = None if self.origins is None else [self.origins[i] for i in kept.tolist()]
        labels = [self.labels[i] for i in kept.tolist()]
        return Block(self.rows.take(kept), labels, weights, origins)

    def __getitem__(self, part: slice) -> Block:
        """Return a slice of the block, as views."""
        weights = None if self.weights is None else self.weights[part]
        origins = None if self.origins is None else self.origins[part]
        return Block(self.rows[part], self.labels[part], weights, origins)


class Stream(Iterator[Block]):
    r"""The blocks of a source, read once and lazily.

    Parameters
    ----------
    reader : Reader
        The reader of the source.
    source : str
        The name of the source in messages.
    require_labels : bool
        If True, a row without a label is left out.
    skip_bad : bool
        If True, bad rows are skipped and counted; if False, the first one raises an error.
    skip_rows : int
        How many good rows are read and discarded first.
    origins : bool
        Whether the blocks say where their rows come from.
    label_sets : bool
        Whether a row has a list of labels.
    block_rows : int or None
        Maximum number of rows in a block; None as for `runs`.
    share : callable () -> float
        Returns how much of the source has been read, from 0 to 1; NaN if that is unknown.

    Attributes
    ----------
    n_rows : int
        Number of rows yielded so far.
    n_bad : int
        Number of bad rows skipped so far.
    losses : Losses
        The rows that are left out, complete once all blocks are read.
    vocabulary : Vocabulary or None
        The names of the features; None if they are positions.
    source : str
        The name of the source in messages.
    skip_bad : bool
        As given.

    Raises
    ------
    KeslerError
        On iteration, for a bad row, or a source without rows or with too few to skip.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kesler.readers import open_stream
    >>> path = Path(tempfile.mkdtemp(), "pets.csv")
    >>> _ = path.write_text("kind,legs\ncat,4\nparrot,2\ncat,4\n")
    >>> stream = open_stream(path, label="kind")
    >>> [label for block in stream for label in block.labels], stream.n_rows
    (['cat', 'parrot', 'cat'], 3)
    """

    def __init__(
        self,
        reader: Reader,
        source: str,
        *,
        require_labels: bool,
        skip_bad: bool,
        skip_rows: int,
        origins: bool,
        label_sets: bool,
        block_rows: int | None,
        share: Callable[[], float],
    ) -> None:
        self.source = source
        self.skip_bad = skip_bad
        self.share = share
        self.vocabulary: Vocabulary | None = reader.vocabulary
        self.n_rows = 0
        self.n_bad = 0
        self._to_skip = skip_rows
        admission = Admission(reader, source, require_labels, skip_bad, origins, label_sets)
        found = (run for run in runs(admission, block_rows, skip_rows) if run.labels)
        self._pieces = reader.filled((run, run.gather()) for run in found)
        self.losses = admission.losses

    def __next__(self) -> Block:
        for run, rows in self._pieces:
            self.n_bad = run.n_bad
            # Skipped rows are gathered too, so that features get the same numbers as in training.
            if self._to_skip:
                self._to_skip -= len(rows)
                continue
            self.n_rows += len(rows)
            if self.vocabulary is not None and isinstance(rows, Rows):
                rows = replace(rows, numbering=self.vocabulary.numbering)
            return Block(rows, run.labels, run.weights, run.origins)
        self.n_bad = self.losses.n_bad
        self._warn_of_unlabelled()
        self._warn_of_misfits()
        raise StopIteration

    def refuse(self, place: str, fault: BadRow) -> None:
        """Count a row of a block as a bad one."""
        self.n_rows -= 1
        self.losses.add_bad(place, fault)

    def _warn_of_unlabelled(self) -> None:
        n_rows = self.losses.n_unlabelled
        if n_rows:
            rows = "row without a label is" if n_rows == 1 else "rows without a label are"
            warn(
                f"{self.source}: {n_rows:,} {rows} left out; the first is "
                f"{self.losses.first_unlabelled}",
                ReadingWarning,
            )

    def _warn_of_misfits(self) -> None:
        for column, n in self.losses.n_misfits.items():
            cells = f"{n:,} cell was no number" if n == 1 else f"{n:,} cells were no numbers"
            shown = ", ".join(self.losses.misfits[column])
            warn(
                f"{self.source}, column {column!r}: {cells}, missing: {shown}"
                f"{', ...' * (n > len(self.losses.misfits[column]))}",
                ReadingWarning,
            )

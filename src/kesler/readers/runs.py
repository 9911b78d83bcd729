"""Runs: good rows as they stand, one after the other, read singly or many at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.readers.admission import Admission
from kesler.readers.ahead import read_ahead
from kesler.readers.reader import Example, Pieces, Scanner, Scanning
from kesler.readers.texts import LASTING
from kesler.rows import Rows

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

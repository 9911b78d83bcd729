"""Parquet tables: one record a row, the columns named and typed by the file."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from kesler.errors import KeslerError
from kesler.readers.batch_scanner import BatchScanner
from kesler.readers.columns import Columns
from kesler.readers.faults import readable
from kesler.readers.features import Names
from kesler.readers.reader import Reader, Scanning
from kesler.readers.records import Fields, Records

# Each of pyarrow's own errors is one of these as well.
DAMAGE = (OSError, ValueError, TypeError, KeyError, NotImplementedError)
BATCH_ROWS = 4096


def parquet_reader(path: str, fields: Fields, names: Names) -> Reader:
    """Read Parquet rows, a batch at a time; values and labels keep the types of their columns."""
    with readable(path, "Parquet", *DAMAGE):
        file = opened(path)
    header = file.schema_arrow.names
    fields.require_columns(header)
    records = Records(fields, names)
    batches = Batches(path, file)

    def scanner() -> BatchScanner:
        return BatchScanner(Columns(names, records, header, fields.label), batches.records)

    # Where text is read, most of the time goes into its tokens.
    scanning = None if fields.text else Scanning(batches, scanner)
    return Reader("row", batches, records.example, records.gather, names.vocabulary, scanning)


class Batches:
    """The rows of a Parquet file, numbered from 1, read once.

    Parameters
    ----------
    path : str
        What messages call the file.
    file : pyarrow.parquet.ParquetFile
        The file, closed at its end.

    Attributes
    ----------
    is_piped, is_long : bool
        As `Pieces` has it: there is no pipe, and nothing to load before batches are read.
    """

    is_piped = False
    is_long = True

    def __init__(self, path: str, file: Any) -> None:
        self._path = path
        self._batches = self._read(file)
        self._left: tuple[int, Any] | None = None

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """All rows as records."""
        for first_row, batch in self._batches:
            for place, record in enumerate(self.records(batch)):
                self._left = first_row + place + 1, batch.slice(place + 1)
                yield first_row + place, record

    def chunks(self) -> Generator[tuple[int, Any], None, None]:
        """All rows that have not been read yet in batches, each with the number of its first."""
        if self._left is not None:
            yield self._left
        yield from self._batches

    def records(self, batch: Any) -> list[dict[str, Any]]:
        """Return the rows of a batch as records."""
        with readable(self._path, "Parquet", *DAMAGE):
            found: list[dict[str, Any]] = batch.to_pylist()
            return found

    def _read(self, file: Any) -> Iterator[tuple[int, Any]]:
        first_row = 1
        with readable(self._path, "Parquet", *DAMAGE), file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS):
                yield first_row, batch
                first_row += len(batch)


def opened(path: str) -> Any:
    """Open a Parquet file; pyarrow is imported here, for it is needed nowhere else."""
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise KeslerError(
            f"reading {path} needs pyarrow: install it with pip install 'kesler[parquet]'"
        ) from error
    return ParquetFile(path)

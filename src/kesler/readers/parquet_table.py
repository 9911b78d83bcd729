"""Parquet tables: one record a row, the columns named and typed by the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kesler.errors import KeslerError
from kesler.readers.faults import readable
from kesler.readers.features import Names
from kesler.readers.reader import Reader
from kesler.readers.records import Fields, Records

# Each of pyarrow's own errors is one of these as well.
DAMAGE = (OSError, ValueError, TypeError, KeyError, NotImplementedError)
BATCH_ROWS = 1024


def parquet_reader(path: str, fields: Fields, names: Names) -> Reader:
    """Read Parquet rows, a batch at a time; values and labels keep the types of their columns."""
    with readable(path, "Parquet", *DAMAGE):
        file = _opened(path)
    fields.require_columns(file.schema_arrow.names)
    records = Records(fields, names)
    rows = enumerate(_records(path, file), start=1)
    return Reader("row", rows, records.example, records.gather, names.vocabulary)


def _opened(path: str) -> Any:
    """Open a Parquet file; pyarrow is imported here, for it is needed nowhere else."""
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise KeslerError(
            f"reading {path} needs pyarrow: install it with pip install 'kesler[parquet]'"
        ) from error
    return ParquetFile(path)


def _records(path: str, file: Any) -> Iterator[dict[str, Any]]:
    with readable(path, "Parquet", *DAMAGE), file:
        for batch in file.iter_batches(batch_size=BATCH_ROWS):
            yield from batch.to_pylist()

"""Row groups: the pieces in which Parquet files are written, and here read."""

from __future__ import annotations

from typing import Any

import numpy as np

from kesler.distributed.shards import Shard
from kesler.errors import KeslerError
from kesler.readers.faults import BadRow, readable
from kesler.readers.features import Names
from kesler.readers.parquet_table import DAMAGE, opened
from kesler.readers.records import Fields, Records
from kesler.rows import Vocabulary


def count_row_groups(path: str) -> int:
    """Return how many row groups a file has, by its last bytes."""
    with readable(path, "Parquet", *DAMAGE), opened(path) as file:
        return int(file.num_row_groups)


def read_row_group(path: str, group: int, label: str) -> Shard:
    """Read a row group: an array if all columns but that of the labels hold numbers.

    Raises
    ------
    KeslerError
        If the file cannot be read, has no such column, or a row is bad or without a label.
    """
    source = f"{path}, row group {group}"
    with readable(path, "Parquet", *DAMAGE), opened(path) as file:
        table = file.read_row_group(group)
    fields = Fields(source, label, (), require_labels=True)
    fields.require_columns(table.column_names)
    y = table.column(label).to_pylist()
    if None in y:
        raise KeslerError(
            f"{source}, row {y.index(None) + 1} has no label in the column {label!r}: leave such "
            "rows out"
        )
    features = table.drop_columns([label])
    if features.num_columns and all(_holds_numbers(column) for column in features.columns):
        X = np.column_stack([_numbers(column) for column in features.columns])
        return Shard(X, y, source, features.column_names)
    return _of_records(table, y, fields, source)


def _holds_numbers(column: Any) -> bool:
    """Whether every value is there, and a number."""
    from pyarrow import types

    numeric = (types.is_integer, types.is_floating, types.is_boolean)
    return not column.null_count and any(of(column.type) for of in numeric)


def _numbers(column: Any) -> Any:
    """Return a column as float32 if it is that, else as float64."""
    values = column.to_numpy()
    return values if values.dtype == np.float32 else values.astype(np.float64)


def _of_records(table: Any, y: list[Any], fields: Fields, source: str) -> Shard:
    """Return rows of which some fields are text or missing, as readers take them."""
    vocabulary = Vocabulary()
    records, entries = Records(fields, Names(vocabulary, grow=True)), []
    for number, record in enumerate(table.to_pylist(), start=1):
        try:
            entries.append(records.example(record).entry)
        except BadRow as fault:
            raise KeslerError(f"{source}, row {number}: {fault}") from None
    rows = records.gather(entries)
    if rows.dense:
        return Shard(rows.values.reshape(rows.shape), y, source, vocabulary.names)
    return Shard(rows, y, source, vocabulary.names)

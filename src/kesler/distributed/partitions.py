"""Partitions: sources of rows in pieces that workers read independently."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kesler.data.schema.records import table_of
from kesler.distributed.scattered import Scattered, stored
from kesler.distributed.shards import Shard, holds_text, placed, streamed
from kesler.errors import KeslerError
from kesler.readers.opening import has_columns, open_stream
from kesler.readers.parquet_files import DAMAGE, opened
from kesler.readers.reader import readable
from kesler.readers.records import Fields


def count_row_groups(path: str) -> int:
    """Return the number of row groups of a file, from its footer."""
    with readable(path, "Parquet", *DAMAGE), opened(path) as file:
        return int(file.num_row_groups)


def read_row_group(path: str, group: int, label: str) -> Shard:
    """Read a row group, as an array if all columns except the labels are numeric, else as a table.

    Raises
    ------
    KeslerError
        If the file cannot be read, has no such column, or a row is without a label.
    """
    source = f"{path}, row group {group}"
    with readable(path, "Parquet", *DAMAGE), opened(path) as file:
        table = file.read_row_group(group)
    fields = Fields(source, label, (), require_labels=True)
    fields.require_columns(table.column_names)
    y = table.column(label).to_pylist()
    if None in y:
        raise KeslerError(
            f"{source}, row {y.index(None) + 1} has no label in the column {label!r}: remove such "
            "rows"
        )
    features = table.drop_columns([label])
    if features.num_columns and all(_holds_numbers(column) for column in features.columns):
        X = np.column_stack([_numbers(column) for column in features.columns])
        return Shard(X, y, source, features.column_names)
    return Shard(placed(table_of(features), source), y, source)


def _holds_numbers(column: Any) -> bool:
    """Return whether a column is numeric without missing values."""
    from pyarrow import types

    numeric = (types.is_integer, types.is_floating, types.is_boolean)
    return not column.null_count and any(of(column.type) for of in numeric)


def _numbers(column: Any) -> Any:
    """Return a column as float32 if it has that type, else as float64."""
    values = column.to_numpy()
    return values if values.dtype == np.float32 else values.astype(np.float64)


class Piece(Protocol):
    """A partition that has not been read yet."""

    def placed(self, client: Any) -> Any:
        """Return the future of the partition, read by a worker."""


class Partitions:
    """Rows in pieces, each of which is read by a worker.

    Construction reads no rows. A partition is read once, and again if its worker dies.

    Parameters
    ----------
    pieces : sequence of Piece
        The partitions. Results depend on their order: classes and features are numbered in the
        order in which they are seen, one partition after the other.

    Raises
    ------
    KeslerError
        If `pieces` is empty.

    Examples
    --------
    >>> from kesler.distributed import Partitions
    >>> rows = Partitions.of([([[0.0, 1.0]], ["a"]), ([[1.0, 0.0]], ["b"])])
    >>> len(rows)
    2
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = list(pieces)
        if not self.pieces:
            raise KeslerError("there is no partition: give at least one")

    def __len__(self) -> int:
        return len(self.pieces)

    @classmethod
    def of(cls, pairs: Iterable[tuple[Any, Any]]) -> Partitions:
        """Return partitions of rows in memory, for small data, which is sent by the client.

        Parameters
        ----------
        pairs : pairs of X and y, in any form that an estimator accepts. Each may be a Dask
            `Delayed` or `Future`, which is not moved to the client.
        """
        return cls([Given(X, y, f"partition {i}") for i, (X, y) in enumerate(pairs)])

    @classmethod
    def from_dask(cls, X: Any, y: Any) -> Partitions:
        """Return the blocks of rows of a Dask array or data frame and of its labels.

        Raises
        ------
        KeslerError
            If X and y have different numbers of partitions, or X has several blocks of columns.
        """
        rows, labels = np.asarray(X.to_delayed()), np.asarray(y.to_delayed()).ravel()
        if rows.ndim == 2 and rows.shape[1] > 1:
            raise KeslerError(
                f"the Dask array X has {rows.shape[1]} blocks of columns: rechunk it so that each "
                "block holds whole rows, X.rechunk({1: -1})"
            )
        if rows.size != labels.size:
            raise KeslerError(
                f"X has {rows.size} partitions and y {labels.size}: give both the same "
                "partitions, by rechunk or repartition"
            )
        return cls.of(zip(rows.ravel().tolist(), labels.tolist(), strict=True))

    @classmethod
    def from_parquet(cls, paths: Any, *, label: str) -> Partitions:
        """Return partitions of Parquet files, one for each row group; columns are features.

        If every column except the labels is numeric and has no missing cell, rows are dense arrays
        of the type of the columns. Otherwise they are tables, whose columns have their kinds by the
        first 50 rows of all, as on one machine: texts, categories, dates and so on.

        Parameters
        ----------
        paths : path, pattern such as "rows/*.parquet", folder, or a list of these
        label : the column of the labels
        """
        groups = [
            (path, g) for path in _paths(paths, ".parquet") for g in range(count_row_groups(path))
        ]
        return cls([RowGroup(path, group, label) for path, group in groups])

    @classmethod
    def from_files(
        cls,
        paths: Any,
        *,
        format: str | None = None,
        label: str | None = None,
        text: str | Sequence[str] | None = None,
    ) -> Partitions:
        """Return partitions of files in any format that `kesler learn` reads, one for each file.

        Files with columns of texts are tables, as in `from_parquet`, unless `text` is given. The
        files are read twice then.

        Parameters
        ----------
        paths : path, pattern, folder, or a list of these
        format, label, text : as in :func:`kesler.readers.open_stream`.
        """
        return cls([File(path, format, label, text) for path in _paths(paths)])

    def read(self, client: Any) -> Scattered:
        """Read every partition on a worker, which stores it."""
        return Scattered(client, [piece.placed(client) for piece in self.pieces])


@dataclass(frozen=True, eq=False)
class Given:
    """A partition in memory, or a Dask object."""

    X: Any
    y: Any
    source: str

    def placed(self, client: Any) -> Any:
        """Return the future of the partition, checked and converted to a shard."""
        held = [_known_to_dask(client, each) for each in (self.X, self.y)]
        return client.submit(stored, Shard.of, *held, self.source, pure=False)


class OnDisk:
    """A partition that any worker can read."""

    def placed(self, client: Any) -> Any:
        """Return the future of the partition, read by a worker."""
        return client.submit(stored, _read, self, pure=False)

    def read(self) -> Shard:
        """Read the partition."""
        raise NotImplementedError


@dataclass(frozen=True)
class RowGroup(OnDisk):
    """A row group of a Parquet file."""

    path: str
    group: int
    label: str

    def read(self) -> Shard:
        """Read the columns of the row group."""
        return read_row_group(self.path, self.group, self.label)


@dataclass(frozen=True)
class File(OnDisk):
    """A file in any format."""

    path: str
    format: str | None
    label: str | None
    text: str | Sequence[str] | None

    def read(self) -> Shard:
        """Read all rows of the file, as a table if it has columns of texts."""
        shard = self._read()
        if shard.kind != "named" or self.text is not None:
            return shard
        if not has_columns(self.path, self.format):
            return shard
        table = self._read(as_table=True)
        return table if holds_text(table.X) else shard

    def _read(self, *, as_table: bool = False) -> Shard:
        stream = open_stream(
            self.path, format=self.format, label=self.label, text=self.text, as_table=as_table
        )
        return streamed(stream, self.path)


def _read(piece: OnDisk) -> Shard:
    return piece.read()


def _known_to_dask(client: Any, value: Any) -> Any:
    """Return the future of a Dask collection; return other values unchanged."""
    from dask.base import is_dask_collection

    return client.compute(value) if is_dask_collection(value) else value


def _paths(paths: Any, suffix: str = "") -> list[str]:
    """Return the files of paths, patterns and folders, sorted for each of them.

    Raises
    ------
    KeslerError
        If one of them matches no file.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = []
    for path in map(os.fsdecode, given):
        inside = sorted(map(str, Path(path).glob(f"*{suffix}"))) if os.path.isdir(path) else None
        files = sorted(glob(path)) if inside is None else inside
        if not files:
            raise KeslerError(f"{path} matches no file: check the path")
        found += files
    return found

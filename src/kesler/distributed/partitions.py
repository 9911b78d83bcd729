"""Partitions: where rows are, in pieces that workers read by themselves."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kesler.distributed.row_groups import count_row_groups, read_row_group
from kesler.distributed.scattered import Scattered, kept
from kesler.distributed.shards import Shard, streamed
from kesler.errors import KeslerError
from kesler.readers import open_stream


class Piece(Protocol):
    """A partition that has not been read."""

    def placed(self, client: Any) -> Any:
        """Return the future of it, read by a worker."""


class Partitions:
    """Rows in pieces, each to be read by the worker that holds it.

    Making one reads nothing. A partition is read once, and again if its worker dies.

    Parameters
    ----------
    pieces : sequence of Piece
        In the order that results depend on: classes and features are numbered as they are met, one
        partition after the other.

    Raises
    ------
    KeslerError
        If there is no piece.

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
            raise KeslerError("there is no partition: give one at least")

    def __len__(self) -> int:
        return len(self.pieces)

    @classmethod
    def of(cls, pairs: Iterable[tuple[Any, Any]]) -> Partitions:
        """Take partitions that are here: for sets that are small, since they go by the client.

        Parameters
        ----------
        pairs : of X and y, in any form in which an estimator takes them. Each may be a Dask
            `Delayed` or `Future`, which stays where it is.
        """
        return cls([Given(X, y, f"partition {i}") for i, (X, y) in enumerate(pairs)])

    @classmethod
    def from_dask(cls, X: Any, y: Any) -> Partitions:
        """Take the blocks of rows of a Dask array or data frame, and of its labels.

        Raises
        ------
        KeslerError
            If the two are not cut at the same rows, or rows are cut into blocks of columns.
        """
        rows, labels = np.asarray(X.to_delayed()), np.asarray(y.to_delayed()).ravel()
        if rows.ndim == 2 and rows.shape[1] > 1:
            raise KeslerError(
                f"the Dask array X has {rows.shape[1]} blocks of columns: rechunk it so that each "
                "block holds whole rows, X.rechunk({1: -1})"
            )
        if rows.size != labels.size:
            raise KeslerError(
                f"X has {rows.size} partitions and y {labels.size}: give both the same ones, by "
                "rechunk or repartition"
            )
        return cls.of(zip(rows.ravel().tolist(), labels.tolist(), strict=True))

    @classmethod
    def from_parquet(cls, paths: Any, *, label: str) -> Partitions:
        """Take Parquet files: each row group is a partition, its columns are the features.

        Where every column beside that of the labels holds numbers, rows are dense arrays of the
        columns' type; else "column=value" is a feature, as `kesler.readers` has it.

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
        """Take files in any format that `kesler learn` reads, each a partition.

        Parameters
        ----------
        paths : path, pattern, folder, or a list of these
        format, label, text : as in :func:`kesler.readers.open_stream`.
        """
        return cls([File(path, format, label, text) for path in _paths(paths)])

    def read(self, client: Any) -> Scattered:
        """Have every partition read by a worker, which keeps it."""
        return Scattered(client, [piece.placed(client) for piece in self.pieces])


@dataclass(frozen=True, eq=False)
class Given:
    """A partition that is here, or that Dask knows."""

    X: Any
    y: Any
    source: str

    def placed(self, client: Any) -> Any:
        """Return the future of it, checked and brought into one form."""
        held = [_known_to_dask(client, each) for each in (self.X, self.y)]
        return client.submit(kept, Shard.of, *held, self.source, pure=False)


class OnDisk:
    """A partition that any worker can read."""

    def placed(self, client: Any) -> Any:
        """Return the future of it, read by a worker."""
        return client.submit(kept, _read, self, pure=False)

    def read(self) -> Shard:
        """Read it."""
        raise NotImplementedError


@dataclass(frozen=True)
class RowGroup(OnDisk):
    """A row group of a Parquet file."""

    path: str
    group: int
    label: str

    def read(self) -> Shard:
        """Read its columns."""
        return read_row_group(self.path, self.group, self.label)


@dataclass(frozen=True)
class File(OnDisk):
    """A file in any format."""

    path: str
    format: str | None
    label: str | None
    text: str | Sequence[str] | None

    def read(self) -> Shard:
        """Read all of its rows."""
        stream = open_stream(self.path, format=self.format, label=self.label, text=self.text)
        return streamed(stream, self.path)


def _read(piece: OnDisk) -> Shard:
    return piece.read()


def _known_to_dask(client: Any, value: Any) -> Any:
    """Return what Dask is to compute as a future of it, and anything else as it is."""
    from dask.base import is_dask_collection

    return client.compute(value) if is_dask_collection(value) else value


def _paths(paths: Any, suffix: str = "") -> list[str]:
    """Return the files that paths, patterns and folders stand for, those of each in order.

    Raises
    ------
    KeslerError
        If one stands for none.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = []
    for path in map(os.fsdecode, given):
        inside = sorted(map(str, Path(path).glob(f"*{suffix}"))) if os.path.isdir(path) else None
        files = sorted(glob(path)) if inside is None else inside
        if not files:
            raise KeslerError(f"{path} stands for no file: check the path")
        found += files
    return found

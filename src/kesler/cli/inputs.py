"""INPUT: what the command line names, opened as a stream."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.readers import Block, Stream, open_stream
from kesler.rows import Rows


def reading(options: Namespace) -> dict[str, Any]:
    """Return what the command line says of how INPUT is to be read, without what it leaves open."""
    given = {name: getattr(options, name) for name in ("format", "label", "text")}
    return {name: value for name, value in given.items() if value is not None}


def open_input(options: Namespace, how: dict[str, Any], **more: Any) -> Stream:
    """Open INPUT, read in a way that `reading` returned; `more` is for `open_stream`."""
    return open_stream(options.input, skip_bad=options.skip_bad, **how, **more)


@dataclass(frozen=True)
class Table:
    """All rows of a stream at once.

    Parameters
    ----------
    X : float32 array or CSR array of shape (n_rows, n_features)
    y : array of shape (n_rows,)
    weights : array of shape (n_rows,) or None
    """

    X: Any
    y: npt.NDArray[Any]
    weights: npt.NDArray[np.float64] | None

    def take(self, numbers: npt.NDArray[np.int64]) -> Table:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[numbers]
        return Table(self.X[numbers], self.y[numbers], weights)


def whole(blocks: Iterable[Block]) -> Table:
    """Read all blocks and return their rows as a table.

    Raises
    ------
    KeslerError
        If sub-experts rate the classes of a row.
    """
    pieces = list(blocks)
    rows = Rows.concatenate([piece.rows for piece in pieces])
    if rows.ratings is not None:
        raise KeslerError(
            "these rows are what sub-experts say of each class, which is nothing to choose "
            "features from: give rows of features"
        )
    labels = np.array([label for piece in pieces for label in piece.labels])
    if all(piece.weights is None for piece in pieces):
        return Table(_matrix(rows), labels, None)
    weights = [np.ones(len(p)) if p.weights is None else p.weights for p in pieces]
    return Table(_matrix(rows), labels, np.concatenate(weights))


def _matrix(rows: Rows) -> Any:
    if rows.dense:
        return rows.values.reshape(rows.shape)
    from scipy import sparse

    return sparse.csr_array((rows.values, rows.indices, rows.indptr), shape=rows.shape)


def shuffled(blocks: Iterable[Block], seed: int) -> Block:
    """Read all blocks and return their rows as one, in the random order of a seed."""
    pieces = list(blocks)
    labels = [label for piece in pieces for label in piece.labels]
    weights = [np.ones(len(p)) if p.weights is None else p.weights for p in pieces]
    order = np.random.default_rng(seed).permutation(len(labels))
    return Block(
        Rows.concatenate([piece.rows for piece in pieces]).take(order),
        [labels[i] for i in order],
        np.concatenate(weights)[order],
    )

"""INPUT: what the command line names, opened as a stream."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import Any

import numpy as np

from kesler.readers import Block, Stream, open_stream
from kesler.rows import Rows


def reading(options: Namespace) -> dict[str, Any]:
    """Return what the command line says of how INPUT is to be read, without what it leaves open."""
    given = {name: getattr(options, name) for name in ("format", "label", "text")}
    return {name: value for name, value in given.items() if value is not None}


def open_input(options: Namespace, how: dict[str, Any], **more: Any) -> Stream:
    """Open INPUT, read in a way that `reading` returned; `more` is for `open_stream`."""
    return open_stream(options.input, skip_bad=options.skip_bad, **how, **more)


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

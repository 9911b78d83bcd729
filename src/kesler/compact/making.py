"""How a compact classifier is made of a trained one: which entries it keeps, and their levels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from kesler.compact.layout import (
    FRACTION,
    LARGEST_ODDS,
    WHOLE,
    Content,
    Offsets,
    Widths,
    bytes_of_features,
    bytes_of_labels,
    bytes_of_offsets,
)
from kesler.compact.names import hashes_of, keys_of
from kesler.compact.weights import Entries, Model, Odds, Trained
from kesler.errors import KeslerError

Doubles = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Size = Callable[[int, int], int]

SHARE = 0.99
"""The share of the worth of all entries that is kept where no size is asked for. It cost 0.5 points
of error on banking77, 0.1 on r8, 0.2 on clinc150, and 2.6 on udhr, of ten paragraphs of each class;
a share of 0.98 cost 4.3 on udhr."""
N_ROUNDS = 30  # in which levels move to the means of their weights


def content_of(
    model: Model,
    bits: int,
    n_features: int | None,
    max_bytes: int | None,
    prefix: str,
) -> Content:
    """Return the content of a compact file; see :class:`kesler.compact.CompactClassifier`."""
    trained = Trained.of(model)
    labels = [f"{prefix}{label}" for label in trained.labels]
    n_owners = len(labels) + trained.has_sets
    size = partial(_size, bits, n_owners, _n_bytes_of_others(trained, labels))
    entries = trained.entries.take(_kept(trained.entries, size, n_features, max_bytes))
    widths = Widths.of(n_owners, len(np.unique(entries.features)), bits)
    keys = keys_of(hashes_of(trained.names), widths.key)
    entries = _without_collisions(keys, entries)
    found, starts, order = _by_key(keys[entries.features])
    levels = levels_of(entries.weights, entries.n_scores, 1 << bits)
    unit = (float(np.abs(levels).max(initial=0.0)) or 1.0) / WHOLE
    return Content(
        labels=labels,
        prefix=prefix,
        features=trained.features,
        offsets=_offsets(trained.odds, trained.inverse * unit),
        inverse=trained.inverse * unit if trained.is_tempered else 0.0,
        lapse=trained.lapse,
        widths=widths,
        levels=np.rint(levels / unit).astype(np.int16),
        keys=found,
        starts=starts,
        classes=entries.classes[order],
        codes=nearest(levels, entries.weights)[order],
    )


def _by_key(keys: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return distinct keys, where their entries start, and the order of the entries by them."""
    found, counts = np.unique(keys, return_counts=True)
    return found, np.concatenate([[0], np.cumsum(counts)]), np.argsort(keys, kind="stable")


def _offsets(odds: Odds | None, inverse: float) -> Offsets | None:
    """Return offsets, and the odds that label sets must exceed, in units of sums of levels."""
    if odds is None:
        return None
    first = [] if odds.to_beat is None else [odds.to_beat]
    exact = np.array([*first, *odds.offsets]) * (FRACTION / inverse)
    found = np.rint(exact.clip(-LARGEST_ODDS, LARGEST_ODDS)).astype(np.int32)
    return Offsets(found[len(first) :], int(found[0]) if first else None)


# ---- what is kept ---------------------------------------------------------------------------


def _size(bits: int, n_owners: int, n_of_others: int, n_features: int, n_entries: int) -> int:
    """Return the size of a file of so many features and entries."""
    return Widths.of(n_owners, n_features, bits).n_bytes(n_features, n_entries, n_of_others)


def _n_bytes_of_others(trained: Trained, labels: list[str]) -> int:
    """Return the size of what a file holds whatever entries are kept."""
    parts = bytes_of_features(trained.features), bytes_of_offsets(_offsets(trained.odds, 1.0))
    return len(bytes_of_labels(labels)) + sum(map(len, parts))


def _kept(
    entries: Entries, size: Size, n_features: int | None, max_bytes: int | None
) -> npt.NDArray[np.bool_]:
    """Return which entries are kept: those of most worth."""
    worth = entries.worth
    if n_features is not None:
        of_features = np.bincount(entries.features, worth, len(entries.n_rows))
        best = np.argsort(-of_features, kind="stable")[:n_features]
        worth[~np.isin(entries.features, best)] = 0.0
    order = np.argsort(-worth, kind="stable")
    order = order[: np.count_nonzero(worth)]
    if max_bytes is not None:
        n = _n_that_fit(entries.features[order], size, max_bytes)
    else:
        sums = np.cumsum(worth[order])
        n = int(np.searchsorted(sums, SHARE * sums[-1])) + 1 if len(sums) else 0
    found = np.zeros(len(worth), dtype=bool)
    found[order[:n]] = True
    return found


def _n_that_fit(features: Numbers, size: Size, max_bytes: int) -> int:
    """Return how many of the first entries a file of this size can hold."""
    is_first = np.zeros(len(features), dtype=bool)
    is_first[np.unique(features, return_index=True)[1]] = True
    n_features = np.concatenate([[0], np.cumsum(is_first)]).tolist()
    if size(0, 0) > max_bytes:
        raise KeslerError(
            f"max_bytes={max_bytes!r}: the labels alone take {size(0, 0):,} bytes; give more"
        )
    least, most = 0, len(features)
    while least < most:  # sizes rise with the number of entries
        middle = (least + most + 1) // 2
        least, most = (
            (middle, most) if size(n_features[middle], middle) <= max_bytes else (least, middle - 1)
        )
    return least


def _without_collisions(keys: Numbers, entries: Entries) -> Entries:
    """Leave out the features whose key another feature of more worth has."""
    worth = np.bincount(entries.features, entries.worth, len(keys))
    features = np.unique(entries.features)
    order = features[np.argsort(-worth[features], kind="stable")]
    best = order[np.unique(keys[order], return_index=True)[1]]
    return entries.take(np.isin(entries.features, best))


# ---- levels ---------------------------------------------------------------------------------


def levels_of(weights: Doubles, counts: Doubles, n: int) -> Doubles:
    """Return levels that weights are rounded to, ascending: the means of the weights of each.

    They begin between even steps and quantiles, and reach a local minimum of the squared errors,
    those of a weight times its count (Lloyd 1982).
    """
    if not len(weights):
        return np.zeros(n)
    steps = np.linspace(weights.min(), weights.max(), n)
    levels = np.sort(0.5 * steps + 0.5 * np.quantile(weights, (np.arange(n) + 0.5) / n))
    for _ in range(N_ROUNDS):
        codes = nearest(levels, weights)
        sums, totals = (np.bincount(codes, each, n) for each in (counts * weights, counts))
        levels = np.sort(np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), levels))
    return levels


def nearest(levels: Doubles, weights: Doubles) -> Numbers:
    """Return the number of the level nearest to each weight."""
    return np.searchsorted((levels[1:] + levels[:-1]) / 2, weights)

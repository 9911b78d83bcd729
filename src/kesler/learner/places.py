"""Places: where the class of each row was among the known ones, before the row was learnt."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.metrics import places

Codes = npt.NDArray[np.int32]


def places_of_targets(
    scores: npt.NDArray[np.floating[Any]], codes: Codes, n_known: int
) -> npt.NDArray[np.integer[Any]]:
    """Return the places of targets by score, 1 for the highest, 0 for new classes.

    Parameters
    ----------
    scores : array of shape (n_rows, n_classes); only columns of known classes are read.
    codes : the number of the class of each row; classes are numbered as they come.
    n_known : number of classes known before the first row.

    Examples
    --------
    >>> rows = np.array([[1.0, np.nan], [1.0, np.nan], [0.6, 0.4]])
    >>> places_of_targets(rows, np.array([0, 1, 1], dtype=np.int32), 1).tolist()
    [1, 0, 2]
    """
    known = known_before(codes, n_known)
    n_classes = scores.shape[1]
    if len(known) and known[0] < n_classes:
        scores = np.where(np.arange(n_classes) < known[:, None], scores, -np.inf)
    found = places(scores, codes)
    found[codes >= known] = 0
    return found


def known_before(codes: Codes, n_known: int) -> npt.NDArray[np.integer[Any]]:
    """Return the number of classes known before each row, of classes numbered as they come."""
    found: npt.NDArray[np.int64] = np.append(0, np.maximum.accumulate(codes[:-1]) + 1)
    return np.maximum(found, n_known)


def places_among_candidates(said: Any, codes: Codes) -> npt.NDArray[np.integer[Any]]:
    """Return the places of targets by score, of rows that have candidates; 0 for new classes.

    The classes that are no candidates follow, in the order of their numbers.

    Parameters
    ----------
    said : what was said of rows; see :class:`kesler.state.candidates.Compared`.
    codes : the number of the class of each row.
    """
    n_rows, compared = len(codes), said.arrays
    scores, classes = compared.scores[:n_rows], compared.classes[:n_rows]
    is_candidate = np.arange(scores.shape[1]) < compared.counts[:n_rows, None]
    is_own = is_candidate & (classes == codes[:, None])
    own = np.where(is_own, scores, -np.inf).max(axis=1, keepdims=True)
    before = is_candidate & (classes < codes[:, None])
    better = is_candidate & ((scores > own) | ((scores == own) & before))
    n_others = np.where(is_own.any(axis=1), 0, codes - before.sum(axis=1))
    return np.where(codes < compared.known[:n_rows], 1 + better.sum(axis=1) + n_others, 0)

"""Which classes are taken for each other, and which groups they form by that."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from kesler.decompositions.binary import Codes, Examples, Floats, all_margins, fit_all

N_STARTS = 10
WEAKEST = 1e-6  # as a share of the strongest affinity: classes never confused go anywhere


def held_out_confusions(
    estimator: Any, examples: Examples, n_classes: int, n_folds: int, n_jobs: int | None
) -> Floats:
    """Return how often rows of class i are taken for class j by one-vs-rest learners of other rows.

    Parameters
    ----------
    estimator : binary classifier
    examples : rows, their classes and weights.
    n_classes : int
    n_folds : int, 2 or more
        Rows are dealt to so many folds, those of each class in turn; each fold is held out once.
    n_jobs : int or None

    Returns
    -------
    Array of shape (n_classes, n_classes); rows sum to 1, or to 0 for classes without rows.
    """
    folds = dealt(examples.codes, n_folds)
    counts = np.zeros((n_classes, n_classes))
    for fold in range(n_folds):
        held, rest = (
            examples[np.flatnonzero(folds == fold)],
            examples[np.flatnonzero(folds != fold)],
        )
        present = np.unique(rest.codes)
        if not len(held.codes) or not len(present):
            continue
        problems = (rest.problem(rest.codes == code) for code in present)
        learners = fit_all(estimator, problems, n_jobs)
        taken_for = present[all_margins(learners, held.X, n_jobs).argmax(axis=1)]
        weights = 1.0 if held.weights is None else held.weights
        np.add.at(counts, (held.codes, taken_for), weights)
    totals = counts.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(counts, totals, out=counts, where=totals > 0)
    return shares


def dealt(codes: Codes, n_folds: int) -> npt.NDArray[np.intp]:
    """Return the fold of each row: the rows of a class go round.

    Examples
    --------
    >>> dealt(np.array([0, 0, 1, 0, 1], dtype=np.int32), 2).tolist()
    [0, 1, 0, 0, 1]
    """
    by_class = np.argsort(codes, kind="stable")
    _, starts, counts = np.unique(codes[by_class], return_index=True, return_counts=True)
    places = np.arange(len(codes)) - np.repeat(starts, counts)
    folds = np.empty(len(codes), dtype=np.intp)
    folds[by_class] = places % n_folds
    return folds


def spectral_groups(confusions: Floats, n_groups: int) -> list[npt.NDArray[np.intp]]:
    r"""Return groups of classes such that confusions are within them (Ng, Jordan and Weiss 2002).

    The affinity is :math:`A = (C + C^\top) / 2`; k-means clusters the rows, scaled to length 1, of
    the leading eigenvectors of :math:`D^{-1/2} A D^{-1/2}`.

    Parameters
    ----------
    confusions : array of shape (n_classes, n_classes)
    n_groups : int from 2 to n_classes

    Returns
    -------
    List of 2 to `n_groups` arrays of class numbers, each sorted, by their first.

    Examples
    --------
    >>> C = np.array([[8, 0, 2, 0], [0, 7, 0, 3], [1, 0, 9, 0], [0, 4, 1, 5]]) / 10
    >>> [group.tolist() for group in spectral_groups(C, 2)]
    [[0, 2], [1, 3]]
    """
    affinity = (confusions + confusions.T) / 2
    np.fill_diagonal(affinity, 0.0)
    affinity += WEAKEST * (affinity.max() or 1.0)
    scale = 1 / np.sqrt(affinity.sum(axis=1))
    leading = np.linalg.eigh(affinity * np.outer(scale, scale))[1][:, -n_groups:]
    places = leading / np.linalg.norm(leading, axis=1, keepdims=True)
    if len(np.unique(places.round(9), axis=0)) < n_groups:
        return np.array_split(np.arange(len(places)), n_groups)
    groups = KMeans(n_groups, n_init=N_STARTS, random_state=0).fit(places).labels_
    found = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    return sorted(found, key=lambda group: int(group[0]))

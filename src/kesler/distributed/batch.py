"""Batch learners on partitions: the solvers of one machine, given sums over many."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone

from kesler.distributed.batches import numbered
from kesler.distributed.partitions import Partitions
from kesler.distributed.scattered import resolve_client
from kesler.distributed.shareboost import fit_shareboost
from kesler.distributed.softmax import fit_softmax
from kesler.errors import KeslerError
from kesler.estimators.shareboost import ShareBoostClassifier
from kesler.estimators.softmax import SoftmaxClassifier

Estimator = TypeVar("Estimator", bound=BaseEstimator)


def fit(estimator: Estimator, partitions: Partitions, *, client: Any = None) -> Estimator:
    """Fit a batch learner to rows that are spread over machines.

    The solver is that of one machine: it asks for the loss, its gradient and products with its
    Hessian, which are sums over rows, and each worker sums over its own.

    Parameters
    ----------
    estimator : SoftmaxClassifier or ShareBoostClassifier
        Its parameters; it is not changed. Softmax with hypotheses="multi"; ShareBoost with the
        dictionaries "columns" and "products", whose candidates no rows are needed to know.
    partitions : Partitions
        Rows by position, dense or sparse. In which partition a row is changes nothing but
        rounding, and neither does the number of workers.
    client : distributed.Client or None, default None
        None takes the one that was made last.

    Returns
    -------
    A new estimator of the same kind, fitted, which needs neither Dask nor the partitions.

    Raises
    ------
    KeslerError
        As the `fit` of the estimator does; and if partitions differ in kind or width, features are
        known by name, or the estimator is none of these.

    Notes
    -----
    ShareBoost does what it does on one machine, step by step: what it chooses is the same, but
    where two candidates are equal to the last digits. The softmax begins at weights 0 rather than
    with passes of dual ascent, which are not sums, and ends at the same optimum within `tol`.

    Weights, a gradient or a direction go to the workers in each step and come back summed: 8 bytes
    for each candidate (or feature) and class. Scores and chosen columns stay with the workers, who
    compute them from weights, never from what they had before: nothing that a dead worker held is
    missed for longer than that takes.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> from kesler import ShareBoostClassifier  # doctest: +SKIP
    >>> from kesler.distributed import Partitions, fit  # doctest: +SKIP
    >>> rows = Partitions.from_parquet("rows/*.parquet", label="digit")  # doctest: +SKIP
    >>> model = fit(ShareBoostClassifier(20), rows, client=Client())  # doctest: +SKIP
    """
    client = resolve_client(client)
    model: Any = clone(estimator)
    if not isinstance(model, (ShareBoostClassifier, SoftmaxClassifier)):
        raise KeslerError(
            f"{type(model).__name__} is not fitted on partitions: give a SoftmaxClassifier or a "
            "ShareBoostClassifier, or learn an online learner there"
        )
    batches = numbered(partitions.read(client), model.class_weight)
    model.n_features_in_ = batches.kind.n_features
    if batches.kind.columns is not None:
        model.feature_names_in_ = np.array(batches.kind.columns, dtype=object)
    if isinstance(model, SoftmaxClassifier):
        fit_softmax(model, batches)
    else:
        fit_shareboost(model, batches)
    return model

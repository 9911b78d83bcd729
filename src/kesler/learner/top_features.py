"""The weights of features in the score of a class, compared with those of all classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.learner.contributions import MOST_ENTRIES, contributions_of_blocks
from kesler.learner.ensemble import AnyLearner
from kesler.learner.events import no_ratings
from kesler.learner.kernel_learner import KernelLearner
from kesler.learner.learner import Learner
from kesler.maps.view import SubExperts
from kesler.preprocessing import Counts

Doubles = npt.NDArray[np.float64]

FEATURES_AT_ONCE = 1 << 12  # of learners that compare candidates
NO_METHOD = 0
UNIT = 2  # the parameter of counts that scales rows to length 1


def weights_of(learner: AnyLearner, code: int) -> Doubles:
    r"""Return the weight of each feature for a class minus the mean over all classes.

    .. math:: w_i^r + u_i \phi_i(1, r) - \frac{1}{k} \sum_s (w_i^s + u_i \phi_i(1, s))

    Parameters
    ----------
    learner : whose hypotheses are weights of the features of rows.
    code : the number of a class.

    Returns
    -------
    Array of shape (n_features,): per unit of a feature's value after preprocessing, without the
    scaling of rows to length 1. Of an ensemble, the mean over its members of these weights times
    the inverse temperature of their probabilities, so that they add to log-probabilities.

    Raises
    ------
    KeslerError
        If the learner, or a member, has no such weights.

    Notes
    -----
    O(n k) for n features and k classes, in blocks.
    """
    if isinstance(learner, Learner):
        return _weights(learner, code)
    n = learner.n_named_features
    total = np.zeros(n)
    for member in learner.members:
        inverse = float(member.stored["calibration"]["inverse"][0]) if member.is_calibrated else 1.0
        found = inverse * _weights(member, code)
        total[: len(found)] += found / len(learner.members)
    return total


def _weights(learner: Learner, code: int) -> Doubles:
    require_weights(learner)
    if learner.comparing is not None:
        return _weights_above_virtual(learner, code)
    first, n_features = learner.classes.n_virtual, learner.n_named_features
    codes = np.arange(first, len(learner.classes), dtype=np.int64)
    arguments, found = before_scaling(learner), np.empty(n_features)
    step = max(1, MOST_ENTRIES // len(codes))
    for start in range(0, n_features, step):
        features = np.arange(start, min(n_features, start + step), dtype=np.int32)
        table = contributions_of_blocks(
            learner, ones_of(learner, features), codes, arguments.address
        )[0].sum(axis=2)
        found[start : start + step] = table[:, code - first] - table.mean(axis=1)
    return found


def _weights_above_virtual(learner: Learner, code: int) -> Doubles:
    """Return the weights of a class less those of the virtual class, where rows have candidates.

    Of label sets this is the threshold, which has none.
    """
    assert learner.comparing is not None
    n_features = learner.n_named_features
    found, step = np.empty(n_features), FEATURES_AT_ONCE
    for start in range(0, n_features, step):
        features = np.arange(start, min(n_features, start + step), dtype=np.int32)
        codes = np.array([code, *range(learner.classes.n_virtual)], dtype=np.int32)
        row = ones_of(learner, features)
        shown = np.r_[np.zeros(int(bool(learner.constant)), dtype=np.int32), row.indices]
        window = learner.comparing.show(learner, shown, codes)
        ones = row._replace(indices=np.arange(len(shown), dtype=np.int32)[-len(features) :])
        arguments = before_scaling(window)
        table, _ = contributions_of_blocks(window, ones, np.arange(2), arguments.address)
        own, virtual = table.sum(axis=2).T
        found[start : start + step] = own - virtual
    return found


def ones_of(learner: Learner, features: npt.NDArray[np.int32]) -> Any:
    """Return one row of ones, as compiled code takes it."""
    indptr = np.array([0, len(features)], dtype=np.int64)
    indices = features + np.int32(bool(learner.constant))
    values = np.ones(len(features), dtype=np.float32)
    return learner._kernels.Blocks(indptr, indices, values, no_ratings())


def before_scaling(learner: Learner) -> Any:
    """Return the learner for compiled code, without what preprocessing does to a row as a whole.

    Of counts, the weight of each word is kept; z-scores and ranges are units of features.
    """
    record = learner._kernel_arguments.arrays
    settings = record.preprocessing
    if isinstance(learner.preprocessing, Counts):
        parameters = settings.parameters.copy()
        parameters[UNIT] = 0.0
        settings = settings._replace(parameters=parameters, n_constant=0)
    else:
        settings = settings._replace(method=NO_METHOD)
    return learner._write_arguments(record._replace(preprocessing=settings))


def require_weights(learner: Learner) -> None:
    """Raise unless the score of a class is a sum of weights times values of features."""
    if learner.grows_trees:
        why = f"{learner.rule!r} counts rows in trees instead"
    elif isinstance(learner, KernelLearner):
        why = f"over the kernel {learner.kernel!r} there are support vectors instead"
    elif learner.expansion is not None:
        why = f"{learner.expansion!r} replaces the columns of rows by other features"
    elif (view := next((m for m in learner._maps if not m.zero_at_zero), None)) is not None:
        why = f"the feature map {view!r} is not zero at zero, so its effect is no weight"
    elif all(isinstance(part.feature_map, SubExperts) for part in learner.parts):
        why = "all hypotheses weigh sub-experts"
    else:
        return
    raise KeslerError(
        f"top_features lists the weights of features, but {why}: explain single rows with "
        "explain_one"
    )

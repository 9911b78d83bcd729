"""Weights of linear classifiers, as scikit-learn names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.hypotheses import PerClass
from kesler.learner.ensemble import EnsembleLearner
from kesler.learner.kernel_learner import KernelLearner
from kesler.learner.learner import Learner

if TYPE_CHECKING:
    from kesler.learner.ensemble import AnyLearner


def weights_and_intercepts(learner: AnyLearner, name: str) -> tuple[npt.NDArray[Any], Any]:
    """Return the weight of each feature and class, by number, and the score of a row of zeros.

    They take the time of scoring as many rows as there are features.

    Raises
    ------
    AttributeError
        Unless the score of a class is a weighted sum of features; `name` is that of the attribute.
    """
    _require_linear(learner, name)
    n = learner.n_named_features
    none = learner.scores(Rows.empty(1))
    ones = Rows(
        np.arange(n + 1, dtype=np.int64),
        np.arange(n, dtype=np.int32),
        np.ones(n, dtype=np.float32),
        n,
        dense=False,
    )
    # The scores of a row with a single 1 are a row of weights and the intercepts.
    return learner.scores(ones) - none, none


def single(learner: AnyLearner) -> Learner:
    """Return a learner; raise if it is an ensemble.

    Raises
    ------
    KeslerError
        If it is.
    """
    if isinstance(learner, EnsembleLearner):
        raise KeslerError("an ensemble has no weights: use one of its learners")
    return learner


def _require_linear(learner: AnyLearner, name: str) -> None:
    """Raise AttributeError unless the score of a class is a weighted sum of features."""
    if isinstance(learner, EnsembleLearner):
        why = "an ensemble has several learners"
    elif learner.grows_trees:
        why = "a learner with trees has no weights"
    elif isinstance(learner, KernelLearner):
        why = "a learner with a kernel has support vectors"
    elif learner.preprocessing is not None:
        why = f"rows are preprocessed by {learner.preprocessing!r} before they are weighed"
    elif learner.parts != [PerClass()]:
        why = "classes share hypotheses over feature maps"
    else:
        return
    raise AttributeError(
        f"{name} does not exist, since {why}: it does for OnlineClassifier('multi') with a "
        "named update, such as 'pa1', or with preprocessing=None"
    )

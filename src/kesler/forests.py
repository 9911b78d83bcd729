"""Forests in place of weights: trees whose leaves count the classes of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kesler.errors import keep_integer, require_weights
from kesler.updates.rule import UpdateRule, no_steps

__all__ = ["ExtraTrees"]

MOST_TREES, LEAST_ROWS, MOST_ROWS = 1000, 16, 2**24


@dataclass(frozen=True)
class ExtraTrees(UpdateRule):
    r"""Extremely randomised trees over the last rows, of measurements and categories.

    A class r has the score

    .. math:: \log \frac1T \sum_t \frac{n_{tr}(x) + \tfrac{1}{10} \pi_r}{n_t(x) + \tfrac{1}{10}}

    where tree t of T counts n_t(x) rows in the leaf of x, of them :math:`n_{tr}(x)` of class r, and
    :math:`\pi_r` is the share of r in all rows, with one more row of each class. Sample weights are
    counted in units of their mean. Each new row is counted in its leaves.

    A tree is grown again from the last `n_rows` rows when the number of rows has doubled, below
    some 400 rows after each quarter more, and at the end of `fit` if it keeps all of them. Each
    node with rows of several classes draws :math:`\min(16, 2 \sqrt d)` of d features and a cut for
    each, evenly between the extremes of its rows, and takes the one after which the Gini impurity
    is least, judged by at most 128 of these rows. Trees are grown in turn, so that no row waits for
    all of them. Scores are calibrated as those of other rules are.

    They are no rule for weights: intercept, link, hypotheses, preprocessing and other settings of
    weights are refused beside them.

    Parameters
    ----------
    n_trees : int from 1 to 1,000, default 16
        T. Larger values make fewer mistakes, and cost in proportion; beyond some 30 they gain
        little.
    n_rows : int from 16 to 16,777,216, default 4096
        How many of the last rows trees are grown from; for rows of more than 8,192 features fewer,
        as they take at most 128 MB. Larger values follow finer structure, and follow changes later.
    weights : tuple of float, 0 or more, or None, default None
        How often each feature is drawn, in proportion. Features of larger weight are tried more
        often; one of 0 never. None for equal weights.

    Raises
    ------
    KeslerError
        If a parameter is out of its range; on first use, if rows have another number of features
        than weights, or do not list all features.

    Notes
    -----
    Measurements alone, each row with all features; missing values, NaN, go to the second child of
    each node. A row costs :math:`O(T \log n + k)` for k classes and trees of n rows, and growing
    :math:`O(T n \sqrt d \log n)` at each doubling: on `letter`, 16 features and 26 classes, some 8
    microseconds a row. The rows take 4 bytes for each feature, the trees up to 56 bytes for each
    row and tree. Each leaf counts at most four classes. The random numbers depend on the number of
    those before alone, so that the same rows give the same trees.

    References
    ----------
    Geurts, Ernst and Wehenkel (2006), "Extremely randomized trees".

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.forests import ExtraTrees
    >>> X = [[i % 2, i // 2 % 2, i % 7] for i in range(200)]
    >>> y = [int(a != b) for a, b, _ in X]
    >>> trees = OnlineClassifier(update=ExtraTrees(n_trees=8)).fit(X, y)
    >>> trees.predict([[0, 0, 3], [0, 1, 3]]).tolist()
    [0, 1]
    """

    n_trees: int = 16
    n_rows: int = 4096
    weights: tuple[float, ...] | None = None

    constraints = "predicted"
    requires = "losses"
    steps = staticmethod(no_steps)
    heeds_margin = False
    has_trees = True

    def __post_init__(self) -> None:
        keep_integer(self, "n_trees", 1, MOST_TREES)
        keep_integer(self, "n_rows", LEAST_ROWS, MOST_ROWS)
        require_weights(self)

    @property
    def odds(self) -> npt.NDArray[np.float64]:
        """The probability that one of the features up to each is drawn; empty if all are alike."""
        summed = np.cumsum(self.weights or (), dtype=float)
        return np.asarray(summed / summed[-1:])

    def as_gradient(self) -> UpdateRule | None:
        """Return None: there are no weights that a gradient could move."""
        return None

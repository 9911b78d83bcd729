"""Random Fourier features, which approximate the RBF kernel with bounded memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kesler.errors import (
    keep_integer,
    keep_number,
    require_flag,
    require_weights,
    require_width,
)
from kesler.preprocessing.expansion import Expansion
from kesler.preprocessing.method import in_mean_square

# The bandwidth for many inputs, whose distances hardly differ, and for how many inputs it is that.
NARROW, WIDE, WIDE_FROM = 0.25, 1.0, 128


@dataclass(frozen=True)
class RandomFourier(Expansion):
    r"""Cosines of random projections of the z-scores: an RBF kernel with bounded memory.

    .. math:: x'_j = \sqrt 2 \cos(\langle \omega_j, z \rangle / s + b_j), \quad
        \omega_j \sim N(0, I), \; b_j \sim U[0, 2 \pi], \quad
        s^2 = \beta \cdot 2 \, \overline{\|z\|^2}

    with z the z-scores of the row, clipped at 4, and the mean of their squared length over the rows
    so far and the row itself; twice that is the mean squared distance between two rows. The inner
    product of two rows approximates D times :math:`e^{-\|z - z'\|^2 / (2 s^2)}`, with an error of
    order :math:`1 / \sqrt D`: linear hypotheses over these features approximate kernel machines,
    whose support vectors grow with the stream.

    Parameters
    ----------
    n_features : int, 1 or more, default 400
        Number of features, D. Larger values approximate the kernel better, at a proportional cost.
    bandwidth : "auto" or float above 0, default "auto"
        :math:`\beta`, the variance of the kernel in units of the mean squared distance between
        rows. Larger values give smoother boundaries. "auto" is n / 128 for n inputs, at least 0.25
        and at most 1: distances between rows of many inputs hardly differ.
    seed : int, 0 or more, default 0
        The seed of the random numbers.
    weights : tuple of float, 0 or more, or None, default None
        The weight of each input, :math:`a_i`: with weights, :math:`\omega_j \circ a` stands for
        :math:`\omega_j`, scaled so that the mean of :math:`a_i^2` is 1. Inputs of larger weight
        have larger parts in the distances between rows. None for equal weights.
    information : bool, default False
        Whether inputs by which the classes differ have larger parts in the distances: each has
        another weight, that of :class:`Ranges` with `information`, computed from the z-scores; the
        mean of the squared products of both is 1. Weights change ever less as rows come, and the
        features of a row with them. It helps where many columns say nothing.

    Raises
    ------
    KeslerError
        If a parameter is out of its range; on first use, for sparse rows, and with `information`
        for targets other than single classes.

    Notes
    -----
    Costs n D additions and D cosines per row: about 2 us for 16 inputs and 400 features. Memory:
    4 n D bytes; with `information`, 8 n more for each class. As the bandwidth settles, the features
    of a row change, ever more slowly.

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines".

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.preprocessing import RandomFourier
    >>> X, y = [[0, 0], [1, 1], [0, 1], [1, 0]] * 20, ["even", "even", "odd", "odd"] * 20
    >>> model = OnlineClassifier("multi", update="pa1", preprocessing=RandomFourier(100))
    >>> model.fit(X, y).predict(X[:4]).tolist()
    ['even', 'even', 'odd', 'odd']
    """

    n_features: int = 400
    bandwidth: float | str = "auto"
    seed: int = 0
    weights: tuple[float, ...] | None = None
    information: bool = False

    def __post_init__(self) -> None:
        keep_integer(self, "n_features", 1)
        keep_integer(self, "seed", 0)
        require_flag(self, "information")
        require_weights(self)
        if not (isinstance(self.bandwidth, str) and self.bandwidth == "auto"):
            keep_number(self, "bandwidth", ', or "auto"', above=0)

    def width(self, n_inputs: int) -> int:
        """Return the number of features."""
        return self.n_features

    def bandwidth_of(self, n_inputs: int) -> float:
        """Return the bandwidth for this many inputs."""
        if isinstance(self.bandwidth, str):
            return min(WIDE, max(NARROW, n_inputs / WIDE_FROM))
        return self.bandwidth

    def scales_of(self, n_inputs: int) -> tuple[float, ...]:
        """Return the given weights in units of their mean square, if there are any.

        Raises
        ------
        KeslerError
            If there are others than this many.
        """
        if self.weights is None:
            return ()
        require_width(self, n_inputs)
        return in_mean_square(self.weights)

    def draw(self, n_inputs: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return the projections, of shape (n_inputs, n_features), and the phases."""
        # The numbers of this generator are the same in every version of NumPy.
        random = np.random.RandomState(self.seed % 2**32)
        phases = random.uniform(0, 2 * math.pi, self.n_features)
        projection = random.standard_normal((n_inputs, self.n_features))
        scales = self.scales_of(n_inputs)
        if scales:
            projection *= np.array(scales)[:, None]
        return projection.astype(np.float32), phases.astype(np.float32)

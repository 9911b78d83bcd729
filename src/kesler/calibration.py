r"""Calibration: the probabilities that scores stand for.

.. math:: p(r \mid x) = (1 - \epsilon) \frac{e^{\beta h(x, r)}}{\sum_s e^{\beta h(x, s)}}
    + \frac{\epsilon}{k}

over the k classes met. Both numbers are learnt from each answer y of a known class, before it moves
any weight. The inverse temperature goes against the gradient of the loss of the first term,
:math:`g = E_p z - z_y` with :math:`z_r = \beta h(x, r)`, divided by the Fisher information of log
beta (its curvature), the past discounted:

.. math:: u = \frac{\epsilon / k}{p(y \mid x)}, \quad v = \max(1 - u, 0.01), \quad
    I \leftarrow 0.99 \, I + v \operatorname{Var}_p z, \quad
    \log \beta \leftarrow \log \beta - \operatorname{clip}(v g / I, \pm 1)

and epsilon, the share of answers that scores do not explain, is the discounted mean of u: the
expectation step of EM. Since only z enters, scores of any scale do; beta begins where the first row
that has something to teach puts its highest and lowest score 2 apart. Sources: Guo, Pleiss, Sun and
Weinberger (2017) for the temperature; Amari (1998) for the step.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


def uncalibrated() -> Doubles:
    """Return what is known before the first row, as `kesler.compiled.calibration` keeps it."""
    return np.array([1.0, 0.0, 1.0, 50.0])


def probabilities(scores: npt.NDArray[np.float32], calibration: Doubles) -> Doubles:
    """Return the probability of each class, rows summing to 1.

    Parameters
    ----------
    scores : of shape (n_rows, n_classes), of at least one class.
    calibration : what a learner has learnt of them, as it is kept.

    Examples
    --------
    >>> scores = np.array([[1.0, 1.0, -1e9]], dtype=np.float32)
    >>> probabilities(scores, np.array([1.0, 9.0, 0.0, 1.0])).round(9).tolist()
    [[0.5, 0.5, 0.0]]
    """
    from kesler.compiled.calibration import tell

    told = np.empty(scores.shape)
    tell(calibration, scores, told)
    return told

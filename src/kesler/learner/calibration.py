r"""Calibration: probabilities from scores.

.. math:: p(r \mid x) = (1 - \epsilon) \frac{e^{\beta h(x, r)}}{\sum_s e^{\beta h(x, s)}}
    + \frac{\epsilon}{k}

over the k classes seen. Both parameters are learnt from each target y of a known class, before the
update of the weights. The inverse temperature takes a gradient step on the loss of the first term,
:math:`g = E_p z - z_y` with :math:`z_r = \beta h(x, r)`, divided by the discounted Fisher
information of log beta (its curvature):

.. math:: u = \frac{\epsilon / k}{p(y \mid x)}, \quad v = \max(1 - u, 0.01), \quad
    I \leftarrow 0.99 \, I + v \operatorname{Var}_p z, \quad
    \log \beta \leftarrow \log \beta - \operatorname{clip}(v g / I, \pm 1)

and epsilon, the share of targets that scores do not explain, is the discounted mean of u: the
expectation step of EM. Only z enters, so that scores may have any scale; initially, beta is such
that the highest and lowest z of the first informative row differ by 2. Sources: Guo, Pleiss, Sun
and Weinberger (2017) for the temperature; Amari (1998) for the step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


def probabilities(scores: npt.NDArray[np.float32], calibration: npt.NDArray[Any]) -> Doubles:
    """Return the probability of each class; rows sum to 1.

    Parameters
    ----------
    scores : array of shape (n_rows, n_classes), with at least one class.
    calibration : array of one record, :data:`kesler.state.records.CALIBRATION`.

    Examples
    --------
    >>> from kesler.state.records import CALIBRATION
    >>> scores = np.array([[1.0, 1.0, -1e9]], dtype=np.float32)
    >>> learnt = np.array([(1.0, 9.0, 0.0, 1.0)], dtype=CALIBRATION)
    >>> probabilities(scores, learnt).round(9).tolist()
    [[0.5, 0.5, 0.0]]
    """
    from kesler.compiled.trial.calibration import tell

    found = np.empty(scores.shape)
    tell(calibration[0], scores, found)
    return found

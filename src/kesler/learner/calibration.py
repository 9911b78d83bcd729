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

For label sets, the probability that label r is relevant is a sigmoid of its score above that of the
threshold, label 0:

.. math:: p(r \mid x) = \frac{1}{1 + e^{-(z_r + b_r)}}, \quad z_r = \beta (h(x, r) - h(x, 0))

with an inverse temperature for all labels and an offset for each, initially 0. With y_r = 1 if r is
relevant and 0 otherwise, and v_r = p_r (1 - p_r), each row takes the steps

.. math:: I \leftarrow 0.99 \, I + \sum_r v_r z_r^2, \quad
    \log \beta \leftarrow \log \beta
    + \operatorname{clip}\Big(\frac{\sum_r (y_r - p_r) z_r}{I + 1}, \pm 1\Big), \quad
    I_r \leftarrow 0.999 \, I_r + v_r, \quad b_r \leftarrow b_r + \frac{y_r - p_r}{I_r + 5}

over the labels known before. These are Platt's (1999) two parameters, learnt online; initially,
beta is such that the label furthest from the threshold has z = 2 in the first informative row.

The threshold of the best F1 follows from the rows so far: a label is predicted if

.. math:: p(r \mid x) > \frac{F}{2} = \frac{a}{b}, \quad
    a = 1 + \sum_t |Y_t \cap \hat Y_t|, \quad b = 4 + \sum_t (|Y_t| + |\hat Y_t|)

since the F1 that such a rule reaches is at its maximum if the threshold is half of it. Sources:
Busa-Fekete, Szörényi, Dembczyński and Hüllermeier (2015), the online rule; Zhao, Edakunni, Pocock
and Brown (2013), its optimality.
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

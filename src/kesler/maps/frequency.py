"""Rewards for features that are common in a class, penalties for features that are rare there."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kesler.errors import KeslerError
from kesler.maps.feature_map import FeatureMap


def frequency(x, p, q):
    """Return reward x if p >= common, penalty x if p <= rare, and 0 otherwise."""
    reward, penalty = q[2] * x, q[3] * x  # computed beforehand: the choice is then without a jump
    low = penalty if p <= q[1] else np.float32(0)
    return reward if p >= q[0] else low


@dataclass(frozen=True)
class Frequency(FeatureMap):
    r"""Thresholds on the frequency of a feature in the class so far.

    .. math::
        \phi_i(x, r) = \begin{cases} \text{reward}\; x_i & p_i^r \ge \text{common} \\
        \text{penalty}\; x_i & p_i^r \le \text{rare} \\ 0 & \text{otherwise} \end{cases}

    with :math:`p_i^r` the share of the instances of class r so far in which feature i is not zero.
    With binary rows it is the map of Fink et al., with rows of counts that of Amit et al.

    Parameters
    ----------
    common : float in (rare, 1], default 0.2
        From this share on, a feature is common. With larger values, fewer features are.
    rare : float in [0, common), default 0.02
        Up to this share, a feature is rare. With larger values, more features are.
    reward : float, default 2.0
        The factor of a common feature.
    penalty : float, default -1.0
        The factor of a rare feature.

    Raises
    ------
    KeslerError
        Unless 0 <= rare < common <= 1 and the values are finite.

    Notes
    -----
    Costs one division and two comparisons per non-zero and class. Zero at zero.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Eq. 10; Amit, Shalev-Shwartz and Singer (2006),
    Section 6.

    Examples
    --------
    >>> from kesler.maps import Frequency
    >>> Frequency(common=0.3)
    Frequency(common=0.3, rare=0.02, reward=2.0, penalty=-1.0)
    """

    common: float = 0.2
    rare: float = 0.02
    reward: float = 2.0
    penalty: float = -1.0

    statistic = "frequency"
    zero_at_zero = True
    g = staticmethod(frequency)

    def __post_init__(self) -> None:
        if not 0 <= self.rare < self.common <= 1:
            raise KeslerError(
                f"Frequency(common={self.common!r}, rare={self.rare!r}): the thresholds must "
                "be shares, 0 <= rare < common <= 1"
            )
        if not np.isfinite([self.reward, self.penalty]).all():
            raise KeslerError(
                f"Frequency(reward={self.reward!r}, penalty={self.penalty!r}): both must be finite"
            )

    @property
    def parameters(self) -> tuple[float, ...]:
        """The two thresholds and the two factors."""
        return (self.common, self.rare, self.reward, self.penalty)

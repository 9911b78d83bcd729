"""The oracle of metrics, of steps that do not overshoot, and of losses against the rest.

Written from Duchi, Hazan and Singer (2011), Section 1.3; Ross, Mineiro and Langford (2013),
Algorithms 2 and 3; Crammer, Kulesza and Dredze (2009), Figure 1; Wang, Zhao and Hoi (2012),
Equations 7 and 9; Karampatziakis and Langford (2011), Table 1; Kempka, Kotlowski and Warmuth
(2019), Algorithm 2. Steps that the papers give in closed
form are found here from what they are to satisfy.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, wrightomega
from scipy.stats import norm as gaussian

Array = NDArray[np.float64]
Rule = Callable[[Array, Array, Array, float], Array]

PHI = float(gaussian.ppf(0.9))  # of the probability that "scw1" and "scw2" ask for
R = 1.0  # the noise of "arow" and of the preconditioner "confidence"

# ---- rules --------------------------------------------------------------------------------------


def squared_flow(losses: Array, norms: Array, gram: Array, eta: float) -> Array:
    """Karampatziakis and Langford 2011, Table 1: r (1 - exp(-2 eta n)) / n, r cut to [0, 2]."""
    safe = np.where(norms > 0, norms, 1.0)
    decayed = np.where(norms > 0, -np.expm1(-2 * eta * norms) / safe, 2 * eta)
    return np.asarray(np.clip(losses, 0, 2) * decayed)


def logistic_flow(losses: Array, norms: Array, gram: Array, eta: float) -> Array:
    """Karampatziakis and Langford 2011, Table 1: z + e^z = m + e^m + eta n, with the margin m."""
    margins, safe = -losses, np.where(norms > 0, norms, 1.0)
    ends = margins + np.exp(margins) + eta * norms
    rises = wrightomega(ends)  # e^z; what it leaves of z + e^z is nothing but rounding above 1
    z = np.where(ends > 1, np.log(np.maximum(rises, 1.0)), ends - rises)
    return np.where(eta * norms > 1e-6, (z - margins) / safe, eta * expit(losses))


def hinge_flow(losses: Array, norms: Array, gram: Array, eta: float) -> Array:
    """Karampatziakis and Langford 2011, Table 1: min(eta, loss / n), where there is a loss."""
    ends = np.divide(losses, norms, out=np.full(len(losses), np.inf), where=norms > 0)
    return np.where(losses > 0, np.minimum(eta, ends), 0.0)


def softmax_flow(losses: Array, norms: Array, gram: Array, eta: float) -> Array:
    """The logistic flow of right against wrong, the wrong ones at the mean of their norms."""
    shares = np.exp(losses - np.logaddexp.reduce(losses))
    loss, norm = np.logaddexp.reduce(losses), shares @ norms
    return np.asarray(shares * logistic_flow(np.array([loss]), np.array([norm]), gram, eta))


def arow(losses: Array, norms: Array, gram: Array, weight: float) -> Array:
    """Crammer et al. 2009, Figure 1: loss / (d' S d + r), a row of weight k as k of them."""
    return np.asarray(losses / (norms + R / weight))


def least_squares(losses: Array, norms: Array, gram: Array, weight: float) -> Array:
    """Return where weight (loss - step n)^2 + n step^2 is least: loss / (n + 1 / weight)."""
    return np.asarray(weight * losses / (weight * norms + 1))


def root_of_u(alpha: float, v: float) -> float:
    """Wang et al. 2012, Proposition 1: the deviation of the margin after a step."""
    moved = alpha * v * PHI
    return float(2 * v / (np.sqrt(moved**2 + 4 * v) + moved))


def confident(margin: float, v: float, slack: float) -> float:
    """Wang et al. 2012: the alpha >= 0 with margin + alpha (v + slack) = phi sqrt(u(alpha))."""

    def lacking(alpha: float) -> float:
        return PHI * root_of_u(alpha, v) - margin - alpha * (v + slack)

    if v == 0 or lacking(0.0) <= 0:
        return 0.0
    return float(brentq(lacking, 0.0, lacking(0.0) / v, xtol=1e-14))


def scw1(losses: Array, norms: Array, gram: Array, C: float) -> Array:
    """Wang et al. 2012, Equation 7: the probability wanted, or C."""
    return np.array([min(C, confident(-z, v, 0.0)) for z, v in zip(losses, norms, strict=True)])


def scw2(losses: Array, norms: Array, gram: Array, C: float) -> Array:
    """Wang et al. 2012, Equation 9: a slack of alpha / 2C is left."""
    return np.array([confident(-z, v, 0.5 / C) for z, v in zip(losses, norms, strict=True)])


RULES: dict[str, Rule] = {
    **{"ovr-squared": squared_flow, "ovr-logistic": logistic_flow, "ovr-hinge": hinge_flow},
    **{"arow": arow, "scw1": scw1, "scw2": scw2, "least-squares": least_squares},
}
FLOWS: dict[str, Rule] = {
    **{"hinge": hinge_flow, "softmax": softmax_flow, "logistic": logistic_flow}
}
GRADIENTS: dict[str, Callable[[Array], Array]] = {  # of the loss, along each constraint
    "ovr-squared": lambda losses: 2 * np.clip(losses, 0, 2),
    "ovr-hinge": lambda losses: (losses > 0).astype(float),
    "least-squares": lambda losses: losses,
    **dict.fromkeys(["logistic", "ovr-logistic"], expit),
    "softmax": lambda losses: np.exp(losses - np.logaddexp.reduce(np.append(losses, 0.0))),
}
PLAIN: dict[str, Rule] = {  # one step along the gradient
    name: lambda losses, norms, gram, eta, name=name: eta * GRADIENTS[name](losses)  # type: ignore[misc]
    for name in ("ovr-squared", "ovr-logistic", "ovr-hinge")
}
AGAINST_REST = (*PLAIN, "least-squares")
OWN_PRECONDITIONER = {"arow": "confidence", "scw1": "soft", "scw2": "soft"}

FOLLOWS_GRADIENTS = (
    "adagrad",
    "distance-adagrad",
    "length-free-adagrad",
    "scale-free-adagrad",
    "slowing",
)

# ---- metrics ------------------------------------------------------------------------------------


def gradients_squared(V: Array, coefficients: Array, summed: NDArray[np.bool_]) -> Array:
    """Duchi et al. 2011: g_i^2, class by class; of weights of one vector over ranks, the sum's."""
    each = ((coefficients[:, None] * V) ** 2).sum(axis=0)
    return np.where(summed, (coefficients @ V) ** 2, each)


def rates(preconditioner: str, evidence: Array, scales: Array, gain: float, pace: float) -> Array:
    """Return the step size of each weight; a scale of 0 is of a feature that was never seen."""
    with np.errstate(divide="ignore"):
        steep = np.where(evidence > 0, evidence**-0.5, 0.0)
        units = np.where(scales > 0, 1 / scales, 0.0)
    return {
        "euclidean": np.ones_like(evidence),
        "adagrad": steep,  # Duchi et al. 2011
        "distance-adagrad": pace * steep,  # Ivgi et al. 2023, in the norm of Duchi et al.
        "length-free-adagrad": np.sqrt(gain) * steep,
        "slowing": np.where(evidence > 0, (0.5 + evidence) ** (-1 / 3), 0.0),  # `homemade`'s
        "scale-free": gain * units**2,  # Ross et al. 2013, Algorithm 2
        "scale-free-adagrad": np.sqrt(gain) * units * steep,  # Ross et al. 2013, Algorithm 3
        **dict.fromkeys(["confidence", "soft"], 1 / (1 + evidence)),  # Crammer et al. 2009
        "coin-betting": np.full_like(evidence, np.nan),  # has none
    }[preconditioner]


def left_behind(preconditioner: str, d: Array, alpha: Array, norms: Array, weight: float) -> Array:
    """Crammer et al. 2009: d^2 / r; Wang et al. 2012, Proposition 1: alpha phi / sqrt(u) d^2."""
    if preconditioner not in ("confidence", "soft") or not (alpha > 0).any():
        return np.zeros(d.shape[1])
    share = weight / R
    if preconditioner == "soft":
        share = alpha[0] * PHI / root_of_u(alpha[0], norms[0])
    return np.asarray(share * d[alpha > 0].sum(axis=0) ** 2)


def shrunk(preconditioner: str, x: Array, scales: Array) -> tuple[Array, Array]:
    """Ross et al. 2013: the scales after x, and what weights are multiplied by where they grow."""
    enlarged = np.maximum(scales, abs(x))
    ratio = np.divide(
        scales, enlarged, out=np.ones_like(x), where=(scales > 0) & (enlarged > scales)
    )
    power = {"scale-free": 2, "scale-free-adagrad": 1}.get(preconditioner, 0)
    return enlarged, ratio**power


# ---- coin betting -------------------------------------------------------------------------------


def wager(sums: Array, squares: Array, sizes: Array, wealth: Array) -> Array:
    """Kempka et al. 2019, Algorithm 2: sgn(theta) min(|theta|, 1) / (2 sqrt(S^2 + M^2)) eta."""
    scale = np.sqrt(squares + sizes**2)
    theta = np.divide(sums, scale, out=np.zeros_like(sums), where=scale > 0)
    share = np.divide(np.clip(theta, -1, 1), 2 * scale, out=np.zeros_like(sums), where=scale > 0)
    return np.asarray(share * wealth)


def bet_again(
    squares: Array, bets: Array, amounts: Array, sizes: Array
) -> tuple[Array, Array, Array]:
    """Return the change of the weights, S^2, and theta, eta and M, after minus the gradient.

    M takes the trial in before the coin is tossed, as in the source.
    """
    sums, wealth, running = bets
    before = wager(sums, squares, running, wealth)
    sizes = np.maximum(running, sizes)
    wealth = wealth + amounts * wager(sums, squares, sizes, wealth)
    sums, squares = sums + amounts, squares + amounts**2
    change = wager(sums, squares, sizes, wealth) - before
    return change, squares, np.array([sums, wealth, sizes])


# ---- distance over gradients --------------------------------------------------------------------


def pace_of(distances: Array, squares: Array) -> float:
    """Return where AdaGrad's bound, sum_i sqrt(G_i) (u_i^2 / 2 eta + eta), is smallest."""
    roots = np.sqrt(squares)
    return float(np.sqrt((roots @ distances**2) / (2 * roots.sum())))

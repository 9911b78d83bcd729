"""MIRA: the exact solution of the problem of a trial, with one slack variable."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kesler.updates.rule import AggressiveRule, UpdateRule


def move_together(gram, gradient, steps, spare):
    """Transfer mass along conjugate gradients until a mass is 0; return the mass of the slack.

    If constraints are nearly dependent, transfers between two of them gain very little. The mass of
    the slack, `spare`, takes part with gradient 0, so that the sum of all masses is constant.
    """
    m = steps.shape[0]
    direction, curved = np.zeros(m), np.empty(m)
    spare_direction, previous = 0.0, 0.0
    for _ in range(2 * (m + 1)):
        # Gradients are nearly equal: their differences from one of them are exact, and the rounding
        # error of the sum of the direction is small relative to the direction.
        base, count = 0.0, 0
        for i in range(m):
            if steps[i] > 0:
                base = gradient[i]
                count += 1
        if spare > 0:
            base = 0.0
            count += 1
        mean = 0.0
        for i in range(m):
            if steps[i] > 0:
                mean += (gradient[i] - base) / count
        squared = mean * mean if spare > 0 else 0.0
        for i in range(m):
            if steps[i] > 0:
                squared += (gradient[i] - base - mean) ** 2
        if squared <= 1e-20:  # all gradients are equal
            return spare
        share = squared / previous if previous > 0 else 0.0
        previous = squared
        spare_direction = share * spare_direction - mean if spare > 0 else 0.0
        for i in range(m):
            direction[i] = gradient[i] - base - mean + share * direction[i] if steps[i] > 0 else 0.0
        slope, curvature, last = 0.0, 0.0, -1
        length = spare / -spare_direction if spare_direction < 0 else np.inf
        for i in range(m):
            curved[i] = 0.0
            for j in range(m):
                curved[i] += gram[i, j] * direction[j]
            slope += gradient[i] * direction[i]
            curvature += direction[i] * curved[i]
            if direction[i] < 0 and steps[i] < length * -direction[i]:
                length, last = steps[i] / -direction[i], i
        is_limited = slope >= curvature * length
        if not is_limited:
            length = slope / curvature
        if not 0 < length < np.inf:
            return spare
        spare = 0.0 if is_limited and last < 0 else spare + length * spare_direction
        for i in range(m):
            steps[i] = (
                0.0 if is_limited and i == last else max(0.0, steps[i] + length * direction[i])
            )
            gradient[i] -= length * curved[i]
        if is_limited:
            return spare
    return spare


def mira_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Transfer mass between two constraints at a time, or the slack, until no transfer gains 1e-6.

    The steps are in the simplex alpha >= 0, sum alpha <= C; the rest of C is the mass of the slack,
    whose gradient is 0. Mass is transferred to the constraint with the largest gradient, from the
    one with the smallest among those with mass.
    """
    m = losses.shape[0]
    limit = weight * parameters[0]
    gradient = np.empty(m)
    spare = limit
    for i in range(m):
        gradient[i] = losses[i]
        for j in range(m):
            gradient[i] -= gram[i, j] * steps[j]
        spare -= steps[i]
    # Opposite constraints are raised alternately, by little each time: allow many rounds. If these
    # do not suffice, all mass moves together, and a round only adds a constraint without mass.
    for turn in range(20_000 * (m + 1)):
        if turn >= 10_000 * (m + 1):
            spare = move_together(gram, gradient, steps, spare)
        up, down = -1, -1
        highest, lowest = 0.0, np.inf
        if spare > 0:
            lowest = 0.0
        for i in range(m):
            if gradient[i] > highest:
                highest, up = gradient[i], i
            if steps[i] > 0 and gradient[i] < lowest:
                lowest, down = gradient[i], i
        if highest - lowest <= 1e-7:
            return
        available = spare if down < 0 else steps[down]
        curvature = 0.0
        if up >= 0:
            curvature += gram[up, up]
        if down >= 0:
            curvature += gram[down, down]
        if up >= 0 and down >= 0:
            curvature -= 2.0 * gram[up, down]
        mass = available
        if curvature * available > highest - lowest:
            mass = (highest - lowest) / curvature
        if up >= 0:
            steps[up] += mass
        else:
            spare += mass
        if down >= 0:
            steps[down] = 0.0 if mass == available else steps[down] - mass
        else:
            spare = 0.0 if mass == available else spare - mass
        for i in range(m):
            if up >= 0:
                gradient[i] -= gram[i, up] * mass
            if down >= 0:
                gradient[i] += gram[i, down] * mass


def mira_steps_per_class(parameters, weight, losses, squared_norms, gram, steps):
    """Compute Crammer and Singer's closed form: the excess of each loss over one level.

    With one hypothesis per class, d_s . d_s' = n (1 + [s = s']), n = ||x||^2, so that
    alpha_s = max(0, loss_s - level) / n, where the level is n sum alpha, or higher if that sum
    would exceed C. Dropping the losses below the level raises it, until none is left to drop.
    """
    n = squared_norms[0] / 2.0
    if n == 0:
        return
    limit = n * weight * parameters[0]
    level, n_times_sum, raised = -np.inf, 0.0, True
    while raised:
        total, count = 0.0, 0
        for j in range(losses.shape[0]):
            if losses[j] > level:
                total += losses[j]
                count += 1
        if count == 0:  # C is so small that the level rounds to the largest loss
            steps[np.argmax(losses)] = weight * parameters[0]
            return
        n_times_sum = total / (count + 1)
        higher = max(n_times_sum, (total - limit) / count)
        raised = higher > level
        level = higher
    rise = 0.0
    for j in range(losses.shape[0]):
        rise += max(0.0, losses[j] - level)
    # With a small C the excesses are small differences; their sum, then n C, is more accurate.
    scale = limit / rise if level > n_times_sum else 1.0
    for j in range(losses.shape[0]):
        steps[j] = scale * max(0.0, losses[j] - level) / n


@dataclass(frozen=True)
class MIRA(AggressiveRule):
    r"""The exact solution of the problem of the trial over all constraints, with one slack.

    .. math::
        \min_{w, \xi \ge 0} \tfrac12 \|w - w_t\|^2 + C \xi \quad\text{s.t.}\quad
        h_w(x, y) - h_w(x, s) \ge 1 - \xi \;\;\forall s \ne y

    Parameters
    ----------
    C : float > 0, default 1.0
        Aggressiveness: the steps of one trial sum to at most C. Larger values fit each row more
        closely. It is multiplied by the `sample_weight` of the row.

    Raises
    ------
    KeslerError
        If C is not a finite number above 0.

    Notes
    -----
    With :class:`~kesler.hypotheses.PerClass` alone and one right class per row, the solution is
    Crammer and Singer's closed form, at O(k) per sweep, of which a few suffice. Otherwise the
    quadratic program is solved to 1e-6 on a growing set of m constraints, at O(nnz k m + k m^2) per
    update.

    References
    ----------
    Crammer and Singer (2003), Section 6; Amit, Shalev-Shwartz and Singer (2006), Eqs. 1 and 2.

    Examples
    --------
    >>> from kesler.updates import MIRA
    >>> MIRA(C=0.1)
    MIRA(C=0.1)
    """

    constraints = "growing"
    requires = "gram"
    steps = staticmethod(mira_steps)

    def for_hypotheses(self, *, one_per_class: bool) -> UpdateRule:
        """Return the rule in closed form if it applies."""
        return _PerClassMIRA(self.C) if one_per_class else self


@dataclass(frozen=True)
class _PerClassMIRA(AggressiveRule):
    constraints = "violated"
    requires = "norms"
    steps = staticmethod(mira_steps_per_class)

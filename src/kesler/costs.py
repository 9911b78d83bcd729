"""Costs of predicting one class where another is right, which scale margins or longest steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label, class_of
from kesler.errors import KeslerError

if TYPE_CHECKING:
    from kesler.trees.tree import Tree

__all__ = [
    "Costs",
]

NEVER = -1e30  # a margin that any two scores keep


@dataclass(frozen=True)
class Costs:
    r"""The cost of each confusion; the margin of a constraint, or its longest step, scales with it.

    .. math:: h(x, y) \ge h(x, s) + \text{margin} \cdot \text{cost}(y, s)

    If they scale steps, all constraints have the same margin, and the step along one is at most
    C times its cost. A rule then shares out a budget in which steps have weights,

    .. math:: \sum_s \nu_s \alpha_s \le C, \quad \nu_s = 1 / \text{cost}(y, s),

    and the loss of a row is the largest of the cost times the shortfall from the margin.

    Of label sets it is the constraint of a relevant label y over an irrelevant one s. Of ranks, a
    rank s is compared with its neighbour r that is nearer to y, by the difference of their costs,

    .. math:: h(x, r) \ge h(x, s) + \text{margin} \cdot (\text{cost}(y, s) - \text{cost}(y, r))

    with :math:`\text{cost}(y, y) = 0`, whose sums are the constraints above.

    Parameters
    ----------
    given : mapping {(right, wrong): cost}, callable (right, wrong) -> cost, or Tree
        Costs are finite numbers, 0 or more. Larger costs require a larger margin; with a cost of 0
        the right class only has to score no less than the wrong one. Pairs missing from a mapping
        cost 1. A callable is called for each pair of classes when the later of them appears, for
        ranks also with each target, and must always return the same value for the same pair. The
        costs of a tree are the square roots of the distances of classes.
    scales : "margins" or "steps", default "margins"
        What costs are factors of. With "steps", for "pa1", "pa2", "simperc", "conproj" and
        "simproj" alone, a dear confusion moves weights further at once, but is not kept further
        away than others; costs are then above 0.

    Raises
    ------
    KeslerError
        If `given` is neither, a key is not a pair of labels, `scales` is unknown, or a cost is not
        a finite number of 0 or more, or above 0 where costs scale steps.

    References
    ----------
    Chang (2017), the margin :math:`\Delta(y, y')`; Crammer et al. (2006), Section 10; Lin and Li
    (2012), "Reduction from cost-sensitive ordinal ranking to weighted binary classification"; Amit,
    Shalev-Shwartz and Singer (2006), Section 7, for steps.

    Examples
    --------
    >>> Costs({("ham", "spam"): 10}).of("ham", "spam")
    10.0
    """

    given: Mapping[Any, float] | Callable[[Any, Any], float] | Tree
    scales: Literal["margins", "steps"] = "margins"

    def __post_init__(self) -> None:
        if self.scales not in ("margins", "steps"):
            raise KeslerError(f'Costs(scales={self.scales!r}): choose "margins" or "steps"')
        if isinstance(self.given, Mapping):
            checked = dict(map(_checked, self.given.items()))
            for pair, cost in checked.items():
                self._require_step(pair, cost)
            object.__setattr__(self, "given", checked)
        elif not callable(self.given) and self.tree is None:
            raise KeslerError(
                f"costs={self.given!r}: give a mapping {{(right, wrong): cost}} of labels, or a "
                "function of the two labels"
            )

    @property
    def tree(self) -> Tree | None:
        """The tree whose distances are the costs, or None."""
        if isinstance(self.given, Mapping) or callable(self.given):
            return None
        from kesler.trees.tree import Tree

        return self.given if isinstance(self.given, Tree) else None

    def of(self, right: Label, wrong: Label) -> float:
        """Return the cost of predicting `wrong` where `right` is the right class."""
        if isinstance(self.given, Mapping):
            return self.given.get((right, wrong), 1.0)
        if callable(self.given):
            cost = _cost((right, wrong), self.given(right, wrong))
            self._require_step((right, wrong), cost)
            return cost
        return self.given.margin(right, wrong)

    def _require_step(self, pair: tuple[Label, Label], cost: float) -> None:
        """Raise if no step would be taken along a constraint."""
        if self.scales == "steps" and cost == 0:
            raise KeslerError(
                f"costs: predicting {pair[1]!r} where {pair[0]!r} is right costs 0, and no step "
                "along this pair would be allowed: give a cost above 0"
            )

    def fill(
        self, table: npt.NDArray[np.float64], labels: list[Label], n_known: int, margin: float
    ) -> None:
        """Write `margin` times cost for each pair with a label from index `n_known` on."""
        for i, right in enumerate(labels):
            for j, wrong in enumerate(labels):
                if i != j and max(i, j) >= n_known:
                    table[i, j] = margin * self.of(right, wrong)

    def require_rising(self, ranks: Sequence[Label]) -> None:
        """Raise unless the cost of each rank is at least that of any rank nearer to the right one.

        ranks : all of them, in their order.
        """
        for at, right in enumerate(ranks):
            for side in _sides(ranks, at):
                for near, far in pairwise(side[1:]):
                    if self.of(right, far) < self.of(right, near):
                        raise KeslerError(
                            f"costs: predicting {far!r} where {right!r} is right costs less than "
                            f"{near!r}, which is nearer: ranks are learnt by comparing neighbours, "
                            "so costs must not fall with the distance from the right rank; pairs "
                            "missing from a mapping cost 1"
                        )

    @property
    def setting(self) -> Any:
        """The costs as a setting: what was given, unless they scale steps."""
        return self.given if self.scales == "margins" else self

    @property
    def labels(self) -> list[Label]:
        """The labels for which costs were given."""
        if self.tree is not None:
            return self.tree.nodes
        pairs = self.given if isinstance(self.given, Mapping) else {}
        return [label for pair in pairs for label in pair]

    def require_known(self, labels: list[Label], n_known: int) -> None:
        """Raise the errors of a cost function on the pairs with a label from index `n_known` on."""
        if self.tree is not None:
            for label in labels[n_known:]:
                self.tree.path(label)
        elif not isinstance(self.given, Mapping):
            capacity = np.zeros((len(labels), len(labels)))
            self.fill(capacity, labels, n_known, 1.0)


def fill_rank(
    table: npt.NDArray[np.float64], costs: npt.NDArray[np.float64], order: list[int], y: int
) -> None:
    """Write what each rank costs more than the neighbour that is nearer to rank y.

    Of all other pairs, which are not compared, a constraint is never violated.

    Parameters
    ----------
    table : array of shape (n_ranks, n_ranks) that receives the margins.
    costs : what predicting each rank costs where y is right, 0 for y.
    order : the numbers of the ranks from the lowest to the highest.
    y : the number of a rank.

    Examples
    --------
    >>> table = np.empty((3, 3))
    >>> fill_rank(table, np.array([0.0, 1.0, 4.0]), [0, 1, 2], 0)
    >>> table[0, 1], table[1, 2]
    (np.float64(1.0), np.float64(3.0))
    """
    table[:] = NEVER
    for side in _sides(order, order.index(y)):
        table[side[:-1], side[1:]] = np.diff(costs[side])


def _sides(ranks: Sequence[Any], at: int) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the ranks from one on upwards, and from it on downwards."""
    return ranks[at:], ranks[at::-1]


def _checked(item: tuple[Any, Any]) -> tuple[tuple[Label, Label], float]:
    pair, cost = item
    if not (isinstance(pair, tuple) and len(pair) == 2):
        raise KeslerError(f"costs: the key {pair!r} must be a pair of labels, (right, wrong)")
    right, wrong = class_of(pair[0]), class_of(pair[1])
    return (right, wrong), _cost((right, wrong), cost)


def _cost(pair: tuple[Label, Label], cost: Any) -> float:
    if not (isinstance(cost, Real) and math.isfinite(cost) and float(cost) >= 0):
        raise KeslerError(
            f"costs: predicting {pair[1]!r} where {pair[0]!r} is right costs {cost!r}: a cost must "
            "be a finite number, 0 or more"
        )
    return float(cost)

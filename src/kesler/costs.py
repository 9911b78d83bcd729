"""Costs: what it costs to predict one class where another is right, as the margin between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.classes import Label, plain
from kesler.errors import KeslerError
from kesler.parts import find_function, function_name


@dataclass(frozen=True)
class Costs:
    r"""The cost of each confusion; a rule demands a margin in proportion to it.

    .. math:: h(x, y) \ge h(x, s) + \text{margin} \cdot \text{cost}(y, s)

    Parameters
    ----------
    given : mapping {(right, wrong): cost} or callable (right, wrong) -> cost
        Costs are finite numbers, 0 or more: 0 demands no more than that the right class is not
        behind, larger ones that it leads by more. Pairs that a mapping leaves out cost 1. A
        callable is asked for each pair of classes when the later of them appears, and should
        always say the same.

    Raises
    ------
    KeslerError
        If `given` is neither, a key is no pair of labels, or a cost is no number of 0 or more.

    References
    ----------
    Chang (2017), the margin :math:`\Delta(y, y')`; Crammer et al. (2006), Section 10.

    Examples
    --------
    >>> Costs({("ham", "spam"): 10}).of("ham", "spam")
    10.0
    """

    given: Mapping[Any, float] | Callable[[Any, Any], float]

    def __post_init__(self) -> None:
        if isinstance(self.given, Mapping):
            object.__setattr__(self, "given", dict(map(_checked, self.given.items())))
        elif not callable(self.given):
            raise KeslerError(
                f"costs={self.given!r}: give a mapping {{(right, wrong): cost}} of labels, or a "
                "function of the two labels"
            )

    def of(self, right: Label, wrong: Label) -> float:
        """Return what it costs to predict `wrong` where `right` is the answer."""
        if isinstance(self.given, Mapping):
            return self.given.get((right, wrong), 1.0)
        return _cost((right, wrong), self.given(right, wrong))

    def fill(
        self, table: npt.NDArray[np.float64], labels: list[Label], n_known: int, margin: float
    ) -> None:
        """Write margin times cost for each pair of labels of which one is not among `n_known`."""
        for i, right in enumerate(labels):
            for j, wrong in enumerate(labels):
                if i != j and max(i, j) >= n_known:
                    table[i, j] = margin * self.of(right, wrong)

    @property
    def labels(self) -> list[Label]:
        """The labels that the costs were given for."""
        pairs = self.given if isinstance(self.given, Mapping) else {}
        return [label for pair in pairs for label in pair]

    def require_known(self, labels: list[Label], n_known: int) -> None:
        """Raise what the cost of a pair with a label from the `n_known`-th on would raise."""
        if not isinstance(self.given, Mapping):
            room = np.zeros((len(labels), len(labels)))
            self.fill(room, labels, n_known, 1.0)

    def describe(self) -> Any:
        """Return the costs as a model file keeps them: a list, or the name of the function."""
        if isinstance(self.given, Mapping):
            return [[right, wrong, cost] for (right, wrong), cost in self.given.items()]
        return function_name(self.given)


def restore_costs(described: Any, custom: Iterable[Any]) -> Costs | None:
    """Return the costs that `describe` described; a user's function is found in `custom`."""
    if described is None:
        return None
    if isinstance(described, list):
        return Costs({(right, wrong): cost for right, wrong, cost in described})
    return Costs(find_function(described, custom, "costs"))


def _checked(item: tuple[Any, Any]) -> tuple[tuple[Label, Label], float]:
    pair, cost = item
    if not (isinstance(pair, tuple) and len(pair) == 2):
        raise KeslerError(f"costs: the key {pair!r} must be a pair of labels, (right, wrong)")
    right, wrong = plain(pair[0]), plain(pair[1])
    return (right, wrong), _cost((right, wrong), cost)


def _cost(pair: tuple[Label, Label], cost: Any) -> float:
    if not (isinstance(cost, Real) and math.isfinite(cost) and float(cost) >= 0):
        raise KeslerError(
            f"costs: predicting {pair[1]!r} where {pair[0]!r} is right costs {cost!r}: a cost is a "
            "finite number, 0 or more"
        )
    return float(cost)

"""What an update rule is, and how a user makes one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

from kesler.errors import KeslerError
from kesler.parts.constraints import Requirement, Selection, requirement_code, selection_code
from kesler.parts.description import describe, describe_custom, reduce_custom, require_function
from kesler.parts.preconditioners import Preconditioner

Steps = Callable[..., None]
"""steps(parameters, weight, losses, squared_norms, gram, steps): fills the last argument."""


def no_steps(parameters, weight, losses, squared_norms, gram, steps):  # type: ignore[no-untyped-def]
    """Take none: for rules that move weights by themselves, and for watching without learning."""


@dataclass(frozen=True)
class UpdateRule:
    """How far to move along each constraint of a trial.

    The trial hands a rule some constraints "y must outscore s by a margin" and it answers with one
    step alpha_s >= 0 for each; every hypothesis then moves by

        w += sum_s alpha_s (phi(x, y) - phi(x, s)).

    A rule never sees features or labels. To write one, see :func:`update_rule`.

    Attributes
    ----------
    constraints : which constraints it is handed; see :data:`kesler.parts.constraints.Selection`.
    requires : what it requires of them; see :data:`kesler.parts.constraints.Requirement`.
    steps : the compiled part, a plain function of arrays.
    margin : by how much y must outscore s; a loss is what is missing from it.
    heeds_margin : whether another margin makes another rule.
    strength : the name of the one parameter that says how far it goes, None if it has none.
    gradient : the compiled gradient of its loss by the scores, for preconditioners that follow
    gradients: a
        plain function of parameters and losses that fills an array; None if it is 1 along each
        constraint.
    preconditioner : the preconditioner that it brings along, None if it goes with any.
    update : the compiled part of a rule that moves weights by itself, None for all others; see
        :mod:`kesler.algorithms`.
    begins_at, n_states : of such a rule, the weight of what has not been seen yet, and how many
        numbers it keeps beside each weight.
    """

    constraints: ClassVar[Selection]
    requires: ClassVar[Requirement]
    steps: ClassVar[Steps]
    margin: ClassVar[float] = 1.0
    heeds_margin: ClassVar[bool] = True
    strength: ClassVar[str | None] = None
    gradient: ClassVar[Callable[..., None] | None] = None
    update: ClassVar[Callable[..., None] | None] = None
    begins_at: ClassVar[float] = 0.0
    n_states: ClassVar[int] = 0

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers that `steps` is given."""
        return ()

    @property
    def preconditioner(self) -> Preconditioner | None:
        """The preconditioner that the rule brings along."""
        return None

    def for_hypotheses(self, *, one_per_class: bool) -> UpdateRule:
        """Return the rule to run where every class has one hypothesis of its own over x itself.

        And where an answer is one class: all constraints then share their better side.
        """
        return self

    def describe(self) -> dict[str, Any]:
        """Return the name and the parameters, as a model file keeps them."""
        return describe(self)


@dataclass(frozen=True)
class AggressiveRule(UpdateRule):
    """A rule with an aggressiveness C."""

    C: float = 1.0

    strength = "C"

    def __post_init__(self) -> None:
        if not (isinstance(self.C, Real) and math.isfinite(self.C) and self.C > 0):
            raise KeslerError(
                f"{type(self).__name__}(C={self.C!r}): C must be a finite number above 0, since it "
                "is the longest step that one trial may take"
            )
        object.__setattr__(self, "C", float(self.C))  # grids hand over NumPy's numbers

    @property
    def parameters(self) -> tuple[float, ...]:
        """The aggressiveness."""
        return (self.C,)


@dataclass(frozen=True, kw_only=True, repr=False)
class CustomRule(UpdateRule):
    """A user's own rule, made by :func:`update_rule`; pass it as ``update=``."""

    steps: Steps  # type: ignore[misc]
    constraints: Selection = "worst"  # type: ignore[misc]
    requires: Requirement = "norms"  # type: ignore[misc]
    margin: float = 1.0  # type: ignore[misc]
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        selection_code(self.constraints)
        requirement_code(self.requires)
        require_function(self.steps, "an update rule")
        if not (math.isfinite(self.margin) and self.margin >= 0):
            raise KeslerError(
                f"{self!r}: margin={self.margin!r} must be a finite number, 0 or more"
            )
        if self.constraints == "growing" and self.requires != "gram":
            raise KeslerError(
                f"{self!r}: a rule whose constraints grow must see the products of them all: "
                'declare requires="gram"'
            )

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers given by :meth:`with_parameters`."""
        return self.values

    def with_parameters(self, *values: float) -> CustomRule:
        """Return the same rule with other numbers in `parameters`."""
        return replace(self, values=tuple(float(value) for value in values))

    def describe(self) -> dict[str, Any]:
        """Return the name of the function and the parameters."""
        return describe_custom(self.steps, self.values)

    def __reduce__(self) -> Any:
        return reduce_custom(self, self.steps)

    def __repr__(self) -> str:
        return f"{self.steps.__qualname__}{self.values or ''}"


def update_rule(
    *,
    constraints: Selection = "worst",
    requires: Requirement = "norms",
    parameters: tuple[float, ...] = (),
    margin: float = 1.0,
) -> Callable[[Steps], CustomRule]:
    r"""Make an update rule of a plain Python function; it runs compiled, cached in its own file.

    The function fills `steps`, one alpha_s for each constraint that it is handed:
    :math:`w \mathrel{+}= \sum_s \alpha_s (\phi(x, y) - \phi(x, s))`.

    Parameters
    ----------
    constraints : which constraints the function is handed, "predicted", "worst", "mistaken",
        "violated", "all" or "growing"; see :data:`kesler.parts.constraints.Selection`.
    requires : "losses" (cheapest), "norms" or "gram" (dearest); what is not required is unset.
    parameters : numbers handed to the function as an array.
    margin : by how much y must outscore s, 0 or more; a loss is what is missing from it.

    Returns
    -------
    A decorator that turns ``function(parameters, weight, losses, squared_norms, gram, steps)``
    into a rule. `weight` is the row's `sample_weight` (1 unless given); the other arguments are
    float64 arrays: losses, squared_norms and steps of shape (m,), gram of shape (m, >= m).
    `steps` starts at zero, or for "growing" at the steps of the call before.

    Raises
    ------
    KeslerError
        If a name is unknown; on first use, if Numba cannot compile the function.

    Notes
    -----
    Called once a trial that has constraints; O(m) for most rules. With "norms" a trial costs
    O(nnz) more for one constraint and O(nnz k) for several, with "gram" O(nnz k m).

    Examples
    --------
    >>> from kesler import OnlineClassifier, update_rule
    >>> @update_rule(constraints="worst", requires="norms", parameters=(0.5,))
    ... def half_way(parameters, weight, losses, squared_norms, gram, steps):
    ...     steps[0] = weight * parameters[0] * losses[0] / (squared_norms[0] + 1e-12)
    >>> OnlineClassifier(update=half_way.with_parameters(0.1)).update
    half_way(0.1,)
    """

    def decorate(function: Steps) -> CustomRule:
        values = tuple(float(p) for p in parameters)
        return CustomRule(
            steps=function,
            constraints=constraints,
            requires=requires,
            margin=float(margin),
            values=values,
        )

    return decorate

"""The base class of update rules, and a decorator for user-defined ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, overload

from kesler.codes import Feedback
from kesler.errors import KeslerError, keep_number
from kesler.parts.constraints import Requirement, Selection, requirement_code, selection_code
from kesler.parts.user_part import UserPart, require_function
from kesler.preconditioners import Preconditioner

Steps = Callable[..., None]
"""steps(parameters, weight, losses, squared_norms, gram, steps): writes the last argument."""


def no_steps(parameters, weight, losses, squared_norms, gram, steps):  # type: ignore[no-untyped-def]
    """Take no step: for rules that change weights themselves, and for trials without learning."""


@dataclass(frozen=True)
class UpdateRule:
    """The length of the step along each constraint of a trial.

    A rule receives some constraints "y must outscore s by a margin" of the trial and computes one
    step alpha_s >= 0 for each; every hypothesis is then updated by

        w += sum_s alpha_s (phi(x, y) - phi(x, s)).

    A rule receives neither features nor labels. To write one, see :func:`update_rule`.

    Attributes
    ----------
    constraints : the constraints that it receives; see :data:`kesler.parts.constraints.Selection`.
    requires : the quantities of them; see :data:`kesler.parts.constraints.Requirement`.
    steps : the function that is compiled, a plain function of arrays.
    margin : the margin by which y must outscore s; a loss is the shortfall from it.
    heeds_margin : whether the rule depends on the margin.
    strength : the name of the parameter that sets the length of its steps, None if it has none.
    gradient : the function that computes the gradient of its loss by the scores, for
        preconditioners that follow gradients: a plain function of parameters and losses that writes
        an array; None if the gradient is 1 along each constraint.
    preconditioner : the preconditioner that it brings along, None if it allows any.
    update : the compiled function of a rule that changes weights itself, None for all others; see
        :mod:`kesler.algorithms`.
    begins_at, n_states, n_numbers : for such a rule, the initial weight of features not yet seen,
        the number of values stored beside each weight, and that of its own values.
    needs_products_only : whether inner products of instances determine the steps of such a rule, so
        that it also runs over a kernel.
    feedback : the number of a rule that learns from being told whether a shown class is right, in
        compiled code; 0 for rules of targets.
    second_moments : which moments of all pairs of class and feature such a rule keeps.
    has_trees : whether trees that count rows take the place of weights.
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
    n_numbers: ClassVar[int] = 8
    needs_products_only: ClassVar[bool] = False
    feedback: ClassVar[int] = Feedback.CONSTRAINTS
    second_moments: ClassVar[Literal["", "diagonal", "matrix"]] = ""
    has_trees: ClassVar[bool] = False

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers passed to `steps`."""
        return ()

    @property
    def preconditioner(self) -> Preconditioner | None:
        """The preconditioner that the rule brings along."""
        return None

    def for_hypotheses(self, *, one_per_class: bool) -> UpdateRule:
        """Return the rule to run, given whether classes have one hypothesis each, over x itself.

        Targets are then also single classes, so that all constraints share their better class, and
        the weights have no step sizes of their own.
        """
        return self

    def of_unit_strength(self) -> UpdateRule:
        """Return the rule with eta or C of 1, for steps whose size the preconditioner finds."""
        return self

    def as_gradient(self) -> UpdateRule | None:
        """Return the rule whose steps are the gradient of the loss; None if there is none."""
        return self if self.requires == "losses" else None


@dataclass(frozen=True)
class AggressiveRule(UpdateRule):
    """A rule with an aggressiveness C."""

    C: float = 1.0

    strength = "C"

    def __post_init__(self) -> None:
        keep_number(self, "C", ", since it limits the steps of one trial", above=0)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The aggressiveness."""
        return (self.C,)

    def of_unit_strength(self) -> UpdateRule:
        """Return the rule with C = 1."""
        return replace(self, C=1.0)

    def as_gradient(self) -> UpdateRule | None:
        """Return the rule with C = 1 if its steps depend on losses only."""
        return self.of_unit_strength() if self.requires == "losses" else None


@dataclass(frozen=True, kw_only=True, repr=False)
class CustomRule(UserPart, UpdateRule):
    """A user-defined rule, made by :func:`update_rule`; pass it as ``update=``."""

    steps: Steps  # type: ignore[misc]
    constraints: Selection = "worst"  # type: ignore[misc]
    requires: Requirement = "norms"  # type: ignore[misc]
    margin: float = 1.0  # type: ignore[misc]

    kind = "update rule"
    field = "steps"

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
                f"{self!r}: growing constraints require the inner products of them all: declare "
                'requires="gram"'
            )


@overload
def update_rule(function: Steps) -> CustomRule: ...
@overload
def update_rule(
    *,
    constraints: Selection = ...,
    requires: Requirement = ...,
    parameters: tuple[float, ...] = ...,
    margin: float = ...,
) -> Callable[[Steps], CustomRule]: ...
def update_rule(
    function: Steps | None = None,
    *,
    constraints: Selection = "worst",
    requires: Requirement = "norms",
    parameters: tuple[float, ...] = (),
    margin: float = 1.0,
) -> Any:
    r"""Make an update rule of a plain Python function, which is compiled and cached.

    The function writes `steps`, one alpha_s for each constraint that it receives:
    :math:`w \mathrel{+}= \sum_s \alpha_s (\phi(x, y) - \phi(x, s))`.

    Parameters
    ----------
    function : the function, if the decorator is written without parentheses.
    constraints : the constraints that the function receives, "predicted", "worst", "mistaken",
        "violated", "all" or "growing"; see :data:`kesler.parts.constraints.Selection`.
    requires : "losses" (cheapest), "norms" or "gram" (most expensive); other arrays are unset.
    parameters : numbers passed to the function as an array.
    margin : the margin by which y must outscore s, 0 or more; a loss is the shortfall from it.

    Returns
    -------
    A decorator that turns ``function(parameters, weight, losses, squared_norms, gram, steps)``
    into a rule. `weight` is the `sample_weight` of the row (default 1); the other arguments are
    float64 arrays: losses, squared_norms and steps of shape (m,), gram of shape (m, >= m).
    `steps` is initially zero, or for "growing" the result of the previous call.

    Raises
    ------
    KeslerError
        If a name is unknown; on first use, if the function fails in a trial call (see
        :mod:`kesler.parts.trial_calls`) or Numba cannot compile it; later, if it raises an error,
        uses an index out of range or writes a step that is not finite. The row is not learnt.

    Notes
    -----
    The function is called once per trial with constraints, at O(m) for most rules. With "norms" a
    trial costs O(nnz) more for one constraint and O(nnz k) for several, with "gram" O(nnz k m).

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

    return decorate if function is None else decorate(function)

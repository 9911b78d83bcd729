"""Update rules: the step sizes along the constraints of a trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from kesler.errors import KeslerError
from kesler.updates.bandit import SOBA, Banditron
from kesler.updates.confidence import AROW, SCW
from kesler.updates.gradient import HingeGradient, LogisticGradient, SoftmaxGradient
from kesler.updates.mira import MIRA
from kesler.updates.one_vs_rest import (
    LeastSquares,
    OneVsRestHinge,
    OneVsRestLogistic,
    OneVsRestSquared,
)
from kesler.updates.passive_aggressive import PassiveAggressive, PredictionBased
from kesler.updates.perceptron import MarginPerceptron, Perceptron
from kesler.updates.rule import CustomRule, UpdateRule, update_rule
from kesler.updates.simultaneous import ConProj, SimPerc, SimProj

__all__ = [
    "AROW",
    "MIRA",
    "RULES",
    "SCW",
    "SOBA",
    "Banditron",
    "ConProj",
    "CustomRule",
    "HingeGradient",
    "LeastSquares",
    "LogisticGradient",
    "MarginPerceptron",
    "OneVsRestHinge",
    "OneVsRestLogistic",
    "OneVsRestSquared",
    "PassiveAggressive",
    "Perceptron",
    "PredictionBased",
    "SimPerc",
    "SimProj",
    "SoftmaxGradient",
    "UpdateRule",
    "resolve_rule",
    "update_rule",
]

RULES: dict[str, Callable[..., UpdateRule]] = {
    "perceptron": Perceptron,
    "pa": lambda C=1.0: PassiveAggressive(C, variant=0),
    "pa1": lambda C=1.0: PassiveAggressive(C, variant=1),
    "pa2": lambda C=1.0: PassiveAggressive(C, variant=2),
    "simperc": SimPerc,
    "conproj": ConProj,
    "simproj": SimProj,
    "mira": MIRA,
    "margin-perceptron": MarginPerceptron,
    "hinge": HingeGradient,
    "softmax": SoftmaxGradient,
    "logistic": LogisticGradient,
    "ovr-squared": OneVsRestSquared,
    "ovr-logistic": OneVsRestLogistic,
    "ovr-hinge": OneVsRestHinge,
    "least-squares": LeastSquares,
    "arow": AROW,
    "scw1": lambda C=1.0, eta=0.9: SCW(C, eta, variant=1),
    "scw2": lambda C=1.0, eta=0.9: SCW(C, eta, variant=2),
}
"""The rules by their names in `OnlineClassifier` and on the command line."""


PARAMETERS = ("C", "eta", "delta", "r")
"""The parameters of rules that estimators accept beside the name of a rule."""


def resolve_rule(update: str | UpdateRule, **parameters: Any) -> UpdateRule:
    """Return the rule of this name with these parameters, or the rule itself.

    Raises
    ------
    KeslerError
        If the name is unknown, the rule has no such parameter, or parameters are given beside a
        rule object.

    Examples
    --------
    >>> resolve_rule("pa2"), resolve_rule("scw1", C=0.1, eta=0.8)
    (PassiveAggressive(C=1.0, variant=2), SCW(C=0.1, eta=0.8, variant=1))
    """
    if isinstance(update, UpdateRule):
        _require_none(update, parameters)
        if update.update is not None:
            raise KeslerError(
                f"update={update!r} is a linear-threshold algorithm, which changes weights "
                f"itself: use kesler.LinearMax({update!r})"
            )
        return update
    if isinstance(update, str) and update in RULES:
        _require_known(update, parameters)
        return RULES[update](**parameters)
    raise KeslerError(
        f"update={update!r} is not known: choose one of {', '.join(RULES)}, or in "
        "Python a rule object of kesler.updates or a function decorated with kesler.update_rule"
    )


def parameters_of(name: str) -> tuple[str, ...]:
    """Return the names of the parameters of a named rule.

    Examples
    --------
    >>> parameters_of("pa1"), parameters_of("hinge"), parameters_of("perceptron")
    (('C',), ('eta', 'invariant'), ())
    """
    return tuple(signature(RULES[name]).parameters)


def _require_none(rule: UpdateRule, parameters: Mapping[str, Any]) -> None:
    for name, value in parameters.items():
        raise KeslerError(
            f"{name}={value!r} has no effect on {rule!r}, which has its own parameters: set it "
            'there, or name a rule, such as update="pa1"'
        )


def _require_known(update: str, parameters: Mapping[str, Any]) -> None:
    known = parameters_of(update)
    for name, value in parameters.items():
        if name not in known:
            have = f"its parameters are {', '.join(known)}" if known else "it has no parameters"
            raise KeslerError(f"{name}={value!r} has no effect on update={update!r}: {have}")

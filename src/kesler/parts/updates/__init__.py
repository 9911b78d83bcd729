"""Update rules, which set the lengths of the steps: one file per family, and their names."""

from __future__ import annotations

from collections.abc import Callable

from kesler.errors import KeslerError
from kesler.parts.updates.confidence import AROW, SCW
from kesler.parts.updates.gradient import HingeGradient, LogisticGradient, SoftmaxGradient
from kesler.parts.updates.mira import MIRA
from kesler.parts.updates.one_vs_rest import OneVsRestHinge, OneVsRestLogistic, OneVsRestSquared
from kesler.parts.updates.passive_aggressive import PassiveAggressive
from kesler.parts.updates.perceptron import MarginPerceptron, Perceptron
from kesler.parts.updates.rule import UpdateRule
from kesler.parts.updates.simultaneous import ConProj, SimPerc, SimProj

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
    "arow": AROW,
    "scw1": lambda C=1.0: SCW(C, variant=1),
    "scw2": lambda C=1.0: SCW(C, variant=2),
}
"""The rules by their names in `OnlineClassifier` and on the command line."""


def resolve_rule(update: str | UpdateRule) -> UpdateRule:
    """Return the rule of this name, or the rule itself.

    Examples
    --------
    >>> resolve_rule("pa2")
    PassiveAggressive(C=1.0, variant=2)
    """
    if isinstance(update, UpdateRule):
        if update.update is not None:
            raise KeslerError(
                f"update={update!r} is a linear-threshold algorithm, which changes weights "
                f"itself: use kesler.LinearMax({update!r})"
            )
        return update
    if isinstance(update, str) and update in RULES:
        return RULES[update]()
    raise KeslerError(
        f"update={update!r} is not known: choose one of {', '.join(RULES)}, a rule object of "
        "kesler.updates, or a function decorated with kesler.update_rule"
    )

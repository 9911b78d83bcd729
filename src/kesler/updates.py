"""Update rules: the step sizes along the constraints of a trial."""

from kesler.parts.updates import RULES, resolve_rule
from kesler.parts.updates.bandit import SOBA, Banditron
from kesler.parts.updates.confidence import AROW, SCW
from kesler.parts.updates.gradient import HingeGradient, LogisticGradient, SoftmaxGradient
from kesler.parts.updates.least_squares import LeastSquares
from kesler.parts.updates.mira import MIRA
from kesler.parts.updates.one_vs_rest import OneVsRestHinge, OneVsRestLogistic, OneVsRestSquared
from kesler.parts.updates.passive_aggressive import PassiveAggressive
from kesler.parts.updates.perceptron import MarginPerceptron, Perceptron
from kesler.parts.updates.rule import CustomRule, UpdateRule, update_rule
from kesler.parts.updates.simultaneous import ConProj, SimPerc, SimProj

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
    "SimPerc",
    "SimProj",
    "SoftmaxGradient",
    "UpdateRule",
    "resolve_rule",
    "update_rule",
]

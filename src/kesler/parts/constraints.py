"""Constraints: which classes must outscore which, and the selection that a rule receives.

The target y of an instance requires score(x, y) >= score(x, s) + margin for every other known class
s. The loss of such a constraint is margin - (score(x, y) - score(x, s)). The margin is that of the
rule, 1 for most rules, times the cost of predicting s where y is right (:mod:`kesler.costs`). A
target with levels (:mod:`kesler.learner.targets`) requires the same for every pair (r, s) in which
r has the lower level: read "pair" for "class" below, and r for y.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

from kesler import codes
from kesler.codes import code_of
from kesler.errors import KeslerError

Selection = Literal[
    "predicted",
    "worst",
    "mistaken",
    "violated",
    "all",
    "growing",
    "rival",
    "one-vs-rest",
    "violated-vs-rest",
]
"""Which constraints of a trial a rule receives.

predicted : the predicted class, if it is not y (the worst pair, if s would be predicted before r).
worst : the class with the largest loss, if that loss is above 0.
mistaken : each class whose score is at least that of y, ties included.
violated : each class whose loss is above 0.
all : every other class, in every trial.
growing : first the worst; after each call the constraint that is most violated after the steps so
    far is added, until none is violated: for rules that solve the problem of the trial exactly.
rival : the class with the highest score other than y, in every trial.
one-vs-rest : y against a virtual class of score 0, the rest, and the rest against every other
    class, in every trial. With levels, the better half of the levels is above the rest, and a level
    in the middle equals that of the rest.
violated-vs-rest : the constraints of one-vs-rest whose loss is above 0.
"""

VS_REST = ("one-vs-rest", "violated-vs-rest")

Requirement = Literal["losses", "norms", "gram"]
"""Which quantities of its constraints a rule requires: "losses"; "norms", also ||d_s||^2; "gram",
also all inner products <d_s, d_s'>, with d_s = phi(x, y) - phi(x, s) over all hypotheses."""


def selection_code(name: str) -> int:
    """Return the number of a selection in compiled code."""
    return _code(codes.Selection, name, "constraints")


def requirement_code(name: str) -> int:
    """Return the number of a requirement in compiled code."""
    return _code(codes.Requirement, name, "requires")


def _code(numbers: type[IntEnum], name: str, parameter: str) -> int:
    try:
        return code_of(numbers, name)
    except (AttributeError, KeyError):
        names = ", ".join(each.name.lower().replace("_", "-") for each in numbers)
        raise KeslerError(f"{parameter}={name!r} is not known: choose one of {names}") from None

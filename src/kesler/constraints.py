"""Constraints: which class must outscore which, and which of these a rule is handed.

The answer y to an instance demands score(x, y) >= score(x, s) + margin of every other known class
s. The loss of such a constraint is margin - (score(x, y) - score(x, s)); the margin is the rule's,
1 for most, times what a confusion of y with s costs (:mod:`kesler.costs`). An answer of levels
(:mod:`kesler.answers`) demands the same of every pair (r, s) of which r has the lower level: read
"pair" for "class" below, and r for y.
"""

from __future__ import annotations

from typing import Literal, get_args

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
"""Which constraints of a trial a rule is handed.

predicted : the class predicted, if it is not y (the worst pair, if s would be predicted before r).
worst : the class of the largest loss, if that is above 0.
mistaken : each class that would be predicted before y.
violated : each class whose loss is above 0.
all : every other class, in every trial.
growing : first the worst; then, call after call, the one that the steps so far leave most violated,
    until none is: for rules that solve the trial's problem exactly.
rival : the class of highest score but y, in every trial.
one-vs-rest : y against a virtual class of score 0, the rest, and the rest against every other
    class, in every trial. Of levels, those of the better half are above the rest, and a level in
    the middle is that of the rest itself.
violated-vs-rest : those of one-vs-rest whose loss is above 0.
"""

VS_REST = ("one-vs-rest", "violated-vs-rest")

Sight = Literal["losses", "norms", "gram"]
"""What a rule sees of its constraints: losses; also ||d_s||^2; also all products <d_s, d_s'>,
with d_s = phi(x, y) - phi(x, s) over all hypotheses."""


def selection_code(name: str) -> int:
    """Return the number by which the compiled trial knows a selection."""
    return _code(name, get_args(Selection), "constraints")


def sight_code(name: str) -> int:
    """Return the number by which the compiled trial knows what a rule sees."""
    return _code(name, get_args(Sight), "sees")


def _code(name: str, names: tuple[str, ...], parameter: str) -> int:
    if name not in names:
        raise KeslerError(f"{parameter}={name!r} is not known: choose one of {', '.join(names)}")
    return names.index(name)

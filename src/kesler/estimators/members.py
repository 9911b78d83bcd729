"""Members of a bank: which learners may be in one, and the machine that they make together."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from kesler.bank_machine import BankMachine, Combination, require_combination
from kesler.errors import KeslerError
from kesler.estimators.defaults import of_bank
from kesler.machine import Machine

if TYPE_CHECKING:
    from kesler.estimators.base import OnlineLearner


def resolve_members(learners: Any, *, dense: bool) -> list[OnlineLearner]:
    """Return the learners of a bank: those given, or for "bank" and None those that are ours.

    Raises
    ------
    KeslerError
        If there is none, or one is no learner of single classes, or a bank itself.
    """
    from kesler.estimators.online import OnlineClassifier

    if learners is None or (isinstance(learners, str) and learners == "bank"):
        return [OnlineClassifier(**settings) for settings in of_bank(dense=dense)]
    if not isinstance(learners, (list, tuple)) or not learners:
        raise KeslerError(
            f"a bank of {learners!r}: give a list of learners, such as OnlineClassifier(), or "
            "None for the default ones"
        )
    for learner in learners:
        if not isinstance(learner, OnlineClassifier) or learner.answer != "class":
            raise KeslerError(
                f"{learner!r} cannot be in a bank, whose learners predict one of several classes: "
                "give OnlineClassifier and LinearMax objects"
            )
        if learner._members() is not None:
            raise KeslerError(f"{learner!r} is a bank itself: give its learners instead")
    return list(learners)


def bank_of(
    learners: list[OnlineLearner],
    *,
    dense: bool,
    combine: Combination = "mixture",
    discount: float | None = None,
    demotion: float = 0.9,
) -> BankMachine:
    """Return the machine of a bank, which learns anew whatever its learners know."""
    require_combination(combine, discount, demotion)
    machines = [unfitted(learner)._new_machine(dense=dense) for learner in learners]
    members = [each for each in machines if isinstance(each, Machine)]
    faces = [type(learner).__name__ for learner in learners]
    return BankMachine(members, faces, combine, discount, demotion)


def unfitted(learner: OnlineLearner) -> OnlineLearner:
    """Return a learner that knows nothing, of the same settings: themselves, not copies."""
    return type(learner)(**learner.get_params(deep=False))


def require_only(learner: OnlineLearner, name: str) -> None:
    """Raise if parameters of a learner are given that its bank would not look at."""
    given = learner.get_params(deep=False)
    for other, parameter in signature(type(learner)).parameters.items():
        if other != name and given[other] != parameter.default:
            raise KeslerError(
                f"{other}={given[other]!r} says nothing to a bank, whose learners have settings of "
                f"their own: leave it out, or give {name}=[...] learners that have it"
            )

"""Which parts of a learner go together, and a sentence for those that do not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, get_args

from kesler.errors import KeslerError
from kesler.learner.classes import OnNewClass
from kesler.learner.targets import Kind
from kesler.parts.constraints import VS_REST
from kesler.parts.costs import Costs
from kesler.parts.hypotheses import Ordered, Part
from kesler.parts.links.link import Linear, Link
from kesler.parts.preconditioners import Preconditioner, resolve_preconditioner
from kesler.parts.updates.rule import UpdateRule


def require_half_life(half_life: Any) -> float | None:
    """Return a half-life as a float, or None.

    Raises
    ------
    KeslerError
        Unless it is None or a finite number of rows, 1 at least.

    Examples
    --------
    >>> require_half_life(1000)
    1000.0
    """
    if half_life is None:
        return None
    is_number = isinstance(half_life, Real) and not isinstance(half_life, bool)
    if not (is_number and 1 <= float(half_life) < math.inf):
        raise KeslerError(
            f"half_life={half_life!r} must be a finite number of rows, 1 or more, after which what "
            "was learnt counts half, or None, which never forgets"
        )
    return float(half_life)


def require_forgettable(
    half_life: float | None, rule: UpdateRule, link: Link, *, averaged: bool
) -> None:
    """Raise a sentence that says why, if a learner cannot forget."""
    reasons = {
        f"under {link!r} all weights follow from sums and their scale": not isinstance(
            link, Linear
        ),
        f"{rule!r} moves weights by itself": rule.update is not None,
        "averaged=True asks for the mean over all of the past": averaged,
    }
    for reason, holds in reasons.items():
        if half_life is not None and holds:
            raise KeslerError(
                f"half_life={half_life:g}: the past is to fade, but {reason}; leave half_life out, "
                "or choose an update rule in the linear link, not averaged"
            )


def require_measurable(
    preconditioner: Preconditioner, rule: UpdateRule, link: Link, parts: Sequence[Part]
) -> None:
    """Raise a sentence that says why, if a preconditioner makes no sense with the other parts."""
    resolve_preconditioner(preconditioner, rule.preconditioner)
    if preconditioner.is_euclidean:
        return
    if not isinstance(link, Linear):
        raise KeslerError(
            f"{preconditioner!r} is a preconditioner of the linear link: under {link!r} all "
            "weights follow from "
            'sums; choose preconditioner="euclidean" or the linear link'
        )
    if rule.update is not None or rule.requires == "gram":
        why = "moves weights by itself" if rule.update is not None else "solves a quadratic program"
        raise KeslerError(
            f"{rule!r} {why}, in the Euclidean preconditioner only, not in {preconditioner!r}: "
            "choose another "
            'rule, simproj for instance, or preconditioner="euclidean"'
        )
    if preconditioner.unit == "features" and any(
        part.feature_map is not None or isinstance(part, Ordered) for part in parts
    ):
        raise KeslerError(
            f"{preconditioner!r} counts each feature in units of its largest value, but views "
            "change with "
            'their classes: use hypotheses="multi" or groups without a map, or '
            'preconditioner="adagrad"'
        )


def require_rest(rule: UpdateRule, link: Link, answer: Kind) -> None:
    """Raise if a rule asks for the rest, a class of score 0, where nothing can stand for it."""
    if rule.constraints not in VS_REST:
        return
    if answer == "rank":
        raise KeslerError(
            f"{rule!r} sets each class apart from the rest, which says nothing of the order of "
            "ranks: choose a rule of neighbours, such as simproj or logistic"
        )
    if not isinstance(link, Linear):
        raise KeslerError(
            f"{rule!r} asks for scores above and below 0, the score of the rest, which means "
            f"nothing under {link!r}: choose the linear link, or softmax"
        )


def require_conceivable(
    on_new_class: OnNewClass, rule: UpdateRule, link: Link, costs: Costs | None, answer: Kind
) -> None:
    """Raise if there cannot be a class that no instance has been seen of."""
    if on_new_class not in get_args(OnNewClass):
        raise KeslerError(
            f"on_new_class={on_new_class!r} is not known: choose one of "
            f"{', '.join(get_args(OnNewClass))}"
        )
    if on_new_class != "inherit":
        return
    reasons = {
        "an order has no place for it": answer == "rank",
        f"{link!r} lets every weight count in the sum of all": not isinstance(link, Linear),
        f"{rule!r} moves weights by itself": rule.update is not None,
        "costs do not name it": costs is not None,
    }
    for reason, holds in reasons.items():
        if holds:
            raise KeslerError(
                f'on_new_class="inherit" trains a class that no row is of, but {reason}: choose '
                'on_new_class="learn" or "register"'
            )


def require_priceable(costs: Costs | None, rule: UpdateRule) -> None:
    """Raise if a rule would not notice what confusions cost."""
    if costs is not None and not (rule.heeds_margin and rule.margin > 0):
        raise KeslerError(
            f"{rule!r} does not look at margins, so that costs would change nothing: choose a rule "
            "that does, such as pa1, margin-perceptron, hinge or simproj"
        )

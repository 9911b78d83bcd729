"""Validation of the parts of a learner: raise an error if they are incompatible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from kesler.errors import KeslerError, integer_of, is_number
from kesler.hypotheses import Ordered, Part, Shared, takes_ratings
from kesler.learner.classes import OnNewClass
from kesler.links.link import Linear
from kesler.parts.constraints import VS_REST
from kesler.preconditioners import resolve_preconditioner
from kesler.preprocessing.ranges import Ranges
from kesler.updates.passive_aggressive import PassiveAggressive
from kesler.updates.rule import UpdateRule
from kesler.updates.simultaneous import ConProj, SimPerc, SimProj


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
    if not is_number(half_life, 1):
        raise KeslerError(
            f"half_life={half_life!r} must be a finite number of rows, 1 or more, after which a "
            "row has half of its weight, or None for no decay"
        )
    return float(half_life)


def require_targets(learner: Any) -> None:
    """Raise if a rule that learns from feedback alone is given targets."""
    rule = learner.rule
    if rule.feedback and not learner.explores:
        raise KeslerError(
            f"{rule!r} learns from being told whether the class that it shows is right, not from "
            f"targets: use kesler.BanditClassifier(update={rule!r}), or choose another rule"
        )


def require_place_for_trees(learner: Any) -> None:
    """Raise if a rule whose trees take the place of weights is given to another learner."""
    if learner.rule.has_trees and not learner.grows_trees:
        raise KeslerError(
            f"{learner.rule!r} counts rows of single classes in trees, in place of weights or a "
            "kernel: use OnlineClassifier without a kernel, or choose another rule"
        )


def require_epochs(epochs: Any, update: Any = None) -> int:
    """Return a number of passes over the rows.

    Raises
    ------
    KeslerError
        Unless it is 1 or more, and 1 if trees, the given update, would count the rows again.
    """
    passes = integer_of("epochs", epochs, 1, why=": `fit` learns all rows that often")
    if passes > 1 and isinstance(update, UpdateRule) and update.has_trees:
        raise KeslerError(
            f"epochs={passes}: {update!r} would count each row {passes} times and learn nothing "
            "more: leave epochs out, or choose another update rule"
        )
    return passes


def require_forgettable(learner: Any) -> None:
    """Raise if a half-life is given and weights cannot decay; the message says why."""
    half_life, link, rule = learner.half_life, learner.link, learner.rule
    preconditioner = learner.preconditioner
    reasons = {
        f"{link!r} computes all weights from sums and their scale": not isinstance(link, Linear),
        f"{rule!r} computes its own updates": rule.update is not None,
        "averaged=True requires the mean over all trials": learner.averaged,
        f"{preconditioner!r} {preconditioner.no_decay}": preconditioner.no_decay,
    }
    for reason, holds in reasons.items():
        if half_life is not None and holds:
            raise KeslerError(
                f"half_life={half_life:g}: weights cannot decay, since {reason}; leave half_life "
                "out, or choose an update rule with the linear link, averaged=False and another "
                "preconditioner than coin-betting"
            )


def require_measurable(learner: Any) -> None:
    """Raise if a preconditioner is incompatible with the other parts; the message says why."""
    preconditioner, rule, link = learner.preconditioner, learner.rule, learner.link
    resolve_preconditioner(preconditioner, rule.preconditioner)
    if preconditioner.is_euclidean:
        return
    if not isinstance(link, Linear):
        raise KeslerError(
            f"{preconditioner!r} measures steps in a quadratic form, which is the geometry of the "
            f"linear link, but {link!r} has another geometry: choose "
            'preconditioner="euclidean" or the linear link'
        )
    if rule.update is not None:
        raise KeslerError(
            f"{rule!r} computes its own updates, with the Euclidean preconditioner only, not with "
            f"{preconditioner!r}: choose another rule, for example simproj, or "
            'preconditioner="euclidean"'
        )
    if preconditioner.has_bets and rule.as_gradient() is None:
        raise KeslerError(
            f"{rule!r} computes its steps from their norms, but {preconditioner!r} has no step "
            "sizes to measure them in: choose a rule that follows the gradient of a loss, such as "
            'hinge, softmax or ovr-squared, or preconditioner="adagrad"'
        )
    if preconditioner.of_plain_views and any(
        part.feature_map is not None or isinstance(part, Ordered) for part in learner.parts
    ):
        raise KeslerError(
            f"{preconditioner!r} {preconditioner.of_plain_views}, but views depend on the "
            'classes: use hypotheses="multi" or groups without a map, or '
            'preconditioner="adagrad"'
        )


def require_rest(learner: Any) -> None:
    """Raise if a rule requires the rest, a class of score 0, where there cannot be one."""
    rule, link = learner.rule, learner.link
    if rule.constraints not in VS_REST:
        return
    if learner.answer == "rank":
        raise KeslerError(
            f"{rule!r} separates each class from the rest, which says nothing of the order of "
            "ranks: choose a rule that compares neighbours, such as simproj or logistic"
        )
    if not link.is_odd:
        raise KeslerError(
            f"{rule!r} requires scores above and below 0, the score of the rest, alike, but "
            f"{link!r} is not odd, f(-v) = -f(v): choose the linear link, another that is odd, "
            "such as exponential or p-norm, or softmax"
        )


def require_conceivable(learner: Any) -> None:
    """Raise if `on_new_class` is unknown, or incompatible with the other parts."""
    on_new_class, parts, answer = learner.on_new_class, learner.parts, learner.answer
    link, rule = learner.link, learner.rule
    if on_new_class not in get_args(OnNewClass):
        raise KeslerError(
            f"on_new_class={on_new_class!r} is unknown: choose one of "
            f"{', '.join(get_args(OnNewClass))}"
        )
    if on_new_class == "unseen" and (answer != "class" or not _are_shared_sub_experts(parts)):
        raise KeslerError(
            'on_new_class="unseen" is the rating of unseen classes by sub-experts, which only '
            'hypotheses="sub-experts" for single classes have: choose on_new_class="learn" or '
            '"register"'
        )
    if on_new_class != "unseen" and any(
        part.feature_map is not None and getattr(part.feature_map, "unseen", None) is not None
        for part in parts
    ):
        raise KeslerError(
            'unseen= of sub-experts rates classes with on_new_class="unseen" alone: choose that, '
            "or leave unseen= out"
        )
    if on_new_class != "inherit":
        return
    reasons = {
        "it has no place in an order of ranks": answer == "rank",
        f"{link!r} sums the weights of all classes": not isinstance(link, Linear),
        f"{rule!r} computes its own updates": rule.update is not None,
        "costs do not include it": learner.margin_costs is not None or answer == "costs",
    }
    for reason, holds in reasons.items():
        if holds:
            raise KeslerError(
                f'on_new_class="inherit" trains a virtual class, but {reason}: choose '
                'on_new_class="learn" or "register"'
            )


def _are_shared_sub_experts(parts: Sequence[Part]) -> bool:
    """Return whether the only part is a weight for each sub-expert."""
    return [type(part) for part in parts] == [Shared] and takes_ratings(parts)


def require_replayable(learner: Any) -> None:
    """Raise if earlier rows are to be learnt again and cannot be; the message says why."""
    replay, averages = learner.replay, learner.has_scaled_means
    reasons = {
        "only rows of one class each are kept": learner.answer != "class",
        "ratings by sub-experts are not kept with rows": takes_ratings(learner.parts),
        "averaged=True sums the scales of this link once for each new row": averages,
    }
    for reason, holds in reasons.items():
        if replay is not None and holds:
            raise KeslerError(
                f"{replay!r}: earlier rows cannot be learnt again, since {reason}: give replay=0, "
                "or a classifier of rows of numbers without averages of a link with a scale"
            )


def require_informed(learner: Any) -> None:
    """Raise if features cannot have weights that follow from the classes; the message says why."""
    preprocessing = learner.preprocessing
    if not learner.is_informed:
        return
    if isinstance(preprocessing, Ranges):
        if learner.has_weights:
            raise KeslerError(
                f"{preprocessing!r} changes the units of features as rows come, and weights that "
                "were learnt would be wrong: choose information=False, or a kernel"
            )
    elif learner.answer != "class" or learner.explores:
        raise KeslerError(
            f"{preprocessing!r} weighs inputs by the class of each row, and these targets are not "
            "one class each: choose information=False"
        )


def require_decidable(learner: Any) -> None:
    """Raise if predictions for targets of this kind cannot follow from the scores this way."""
    of_classes = ["distance"] if learner.tree is not None else []
    more = {"rank": ["median"], "sets": ["f1"], "class": of_classes}.get(learner.answer, [])
    if learner.decision not in ["score", *more]:
        raise KeslerError(
            f"decision={learner.decision!r} is unknown: choose one of {', '.join([*more, 'score'])}"
        )


def require_priceable(learner: Any) -> None:
    """Raise if a rule ignores the costs of confusions, or those of targets."""
    costs, rule, answer = learner.margin_costs, learner.rule, learner.answer
    if costs is not None and costs.scales == "steps":
        if answer != "class":
            raise KeslerError(
                'costs that scale steps are of pairs of classes: choose Costs(..., "margins") for '
                "ranks, label sets and rankings"
            )
        if not _limits_each_step(rule):
            raise KeslerError(
                f"{rule!r} does not limit the step along each pair by C, which costs scale: "
                'choose "pa1", "pa2", "simperc", "conproj" or "simproj", or Costs(..., '
                'scales="margins")'
            )
        return
    has_costs = costs is not None or answer == "costs"
    if has_costs and not (rule.heeds_margin and rule.margin > 0):
        raise KeslerError(
            f"{rule!r} ignores margins, so that costs would have no effect: choose a rule with a "
            "margin, such as pa1, margin-perceptron, hinge or simproj"
        )


def _limits_each_step(rule: UpdateRule) -> bool:
    """Return whether a rule limits or softens the step along each constraint by C."""
    if isinstance(rule, PassiveAggressive):
        return rule.variant > 0
    return isinstance(rule, SimPerc | ConProj | SimProj)


def require_thresholds(learner: Any) -> None:
    """Raise if hypotheses have thresholds, and targets no order or rows no constant feature."""
    if not any(isinstance(part, Ordered) for part in learner.parts):
        return
    if learner.answer != "rank":
        raise KeslerError(
            "Ordered hypotheses require ordered classes: use OnlineOrdinalClassifier, "
            "or PerClass, Shared and Grouped hypotheses"
        )
    if not learner.constant:
        raise KeslerError(
            "intercept=0 leaves Ordered hypotheses without thresholds, which are the weights "
            "of the constant feature: give an intercept above 0"
        )


BEFORE = (
    require_measurable,
    require_priceable,
    require_targets,
    require_place_for_trees,
    require_rest,
    require_conceivable,
    require_forgettable,
    require_decidable,
)
"""What parts are tested for before a learner has a state, in this order."""

AFTER = (require_replayable, require_informed, require_thresholds)
"""What they are tested for with a state."""

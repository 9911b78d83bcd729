"""Combinations: which parts of a learner go together, and a sentence for those that do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from kesler.answers import Kind
from kesler.classes import Newcomers
from kesler.constraints import VS_REST
from kesler.costs import Costs
from kesler.errors import KeslerError
from kesler.geometry import Metric, resolve_metric
from kesler.hypotheses import Ordered, Part
from kesler.links import Linear, Link
from kesler.updates import UpdateRule


def require_measurable(metric: Metric, rule: UpdateRule, link: Link, parts: Sequence[Part]) -> None:
    """Raise a sentence that says why, if a metric makes no sense with the other parts."""
    resolve_metric(metric, rule.metric)
    if metric.is_euclidean:
        return
    if not isinstance(link, Linear):
        raise KeslerError(
            f"{metric!r} is a metric of the linear link: under {link!r} all weights follow from "
            'sums; choose metric="euclidean" or the linear link'
        )
    if rule.update is not None or rule.sees == "gram":
        why = "moves weights by itself" if rule.update is not None else "solves a quadratic program"
        raise KeslerError(
            f"{rule!r} {why}, in the Euclidean metric only, not in {metric!r}: choose another "
            'rule, simproj for instance, or metric="euclidean"'
        )
    if metric.unit == "features" and any(
        part.feature_map is not None or isinstance(part, Ordered) for part in parts
    ):
        raise KeslerError(
            f"{metric!r} counts each feature in units of its largest value, but views change with "
            'their classes: use hypotheses="multi" or groups without a map, or metric="adagrad"'
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
    newcomers: Newcomers, rule: UpdateRule, link: Link, costs: Costs | None, answer: Kind
) -> None:
    """Raise if there cannot be a class that no instance has been seen of."""
    if newcomers not in get_args(Newcomers):
        raise KeslerError(
            f"newcomers={newcomers!r} is not known: choose one of {', '.join(get_args(Newcomers))}"
        )
    if newcomers != "virtual":
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
                f'newcomers="virtual" trains a class that no row is of, but {reason}: choose '
                'newcomers="learn" or "wait"'
            )


def require_priceable(costs: Costs | None, rule: UpdateRule) -> None:
    """Raise if a rule would not notice what confusions cost."""
    if costs is not None and not (rule.heeds_margin and rule.margin > 0):
        raise KeslerError(
            f"{rule!r} does not look at margins, so that costs would change nothing: choose a rule "
            "that does, such as pa1, margin-perceptron, hinge or simproj"
        )

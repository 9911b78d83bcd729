"""Links: how weights follow from the accumulated updates."""

from __future__ import annotations

from collections.abc import Callable

from kesler.errors import KeslerError
from kesler.links.exponential import Exponential
from kesler.links.link import CustomLink, Linear, Link, link_function
from kesler.links.p_norm import PNorm
from kesler.parts.constraints import VS_REST
from kesler.parts.user_part import part_of
from kesler.updates.passive_aggressive import PassiveAggressive
from kesler.updates.rule import UpdateRule

__all__ = [
    "LINKS",
    "CustomLink",
    "Exponential",
    "Linear",
    "Link",
    "PNorm",
    "link_function",
    "resolve_link",
]

LINKS: dict[str, Callable[..., Link]] = {
    "linear": Linear,
    "exponential": Exponential,
    "positive": lambda alpha=2.0: Exponential(alpha, balanced=False),
    "p-norm": PNorm,
}
"""The links by their names in estimators and on the command line."""


def resolve_link(link: str | Link) -> Link:
    """Return the link of this name, or the link itself.

    Examples
    --------
    >>> resolve_link("p-norm")
    PNorm(p=8.0)
    """
    more = ", or in Python a link of kesler.links or a function decorated with kesler.link_function"
    return part_of("link", link, Link, LINKS, more)


def require_compatible(link: Link, rule: UpdateRule) -> None:
    """Raise an error if a link does not support a rule.

    Examples
    --------
    >>> from kesler.updates import MIRA
    >>> require_compatible(PNorm(), MIRA())
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: MIRA(C=1.0) solves a quadratic program in the products of views, \
but the distance between weights under PNorm(p=8.0) is not quadratic: choose simproj, which has \
steps along as many constraints, or the linear link
    """
    if isinstance(link, Linear):
        return
    if rule.requires == "gram":
        raise KeslerError(
            f"{rule!r} solves a quadratic program in the products of views, but the distance "
            f"between weights under {link!r} is not quadratic: choose simproj, which has steps "
            "along as many constraints, or the linear link"
        )
    if link.is_exact and isinstance(rule, PassiveAggressive) and rule.variant == 2:
        raise KeslerError(
            f"{rule!r} divides losses by norms to which it adds 1 / 2C, and {link!r} knows the "
            'exact steps of rules that C limits: choose "pa1" or "simproj", or exact=False'
        )
    if link.is_exact and not _projects(rule):
        raise KeslerError(
            f"{rule!r} does not project on constraints of pairs of classes, which is what exact "
            f"steps of {link!r} do: choose exact=False, or a rule that projects, such as pa1 or "
            "simproj"
        )
    if rule.requires == "norms" and link.exponent is None:
        raise KeslerError(
            f"{rule!r} requires norms of views, but in which norm the link {link!r} measures them "
            "is unknown: declare it, link_function(exponent=..., factor=...), or choose a rule "
            "that requires losses only, such as perceptron, simperc or softmax"
        )


def _projects(rule: UpdateRule) -> bool:
    """Return whether the steps of a rule end where the margin of a pair of classes is attained."""
    is_curved = rule.gradient is not None  # its loss, of which a margin is no end
    return rule.requires == "norms" and not is_curved and rule.constraints not in VS_REST

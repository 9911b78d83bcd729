"""Links: in which geometry a learner moves. One file a link, one row here for each name."""

from __future__ import annotations

from collections.abc import Callable

from kesler.errors import KeslerError
from kesler.parts.links.exponential import Exponential
from kesler.parts.links.link import Linear, Link
from kesler.parts.links.p_norm import PNorm
from kesler.parts.updates.rule import UpdateRule

LINKS: dict[str, Callable[..., Link]] = {
    "linear": Linear,
    "exponential": Exponential,
    "positive": lambda alpha=2.0: Exponential(alpha, balanced=False),
    "p-norm": PNorm,
}
"""The links by the names that estimators and the command line take."""


def resolve_link(link: str | Link) -> Link:
    """Return the link for a name, or the link itself.

    Examples
    --------
    >>> resolve_link("p-norm")
    PNorm(p=8.0)
    """
    if isinstance(link, Link):
        return link
    if isinstance(link, str) and link in LINKS:
        return LINKS[link]()
    raise KeslerError(
        f"link={link!r} is not known: choose one of {', '.join(LINKS)}, a link of kesler.links, "
        "or a function decorated with kesler.link_function"
    )


def require_compatible(link: Link, rule: UpdateRule, *, averaged: bool) -> None:
    """Raise a sentence that says why, if a rule or an average makes no sense in a geometry.

    Examples
    --------
    >>> from kesler.updates import MIRA
    >>> require_compatible(PNorm(), MIRA(), averaged=False)
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: MIRA(C=1.0) solves a quadratic program in the products of views, \
which is the trial's problem under the linear link only, not under PNorm(p=8.0): choose simproj, \
which moves along as many constraints, or the linear link
    """
    if isinstance(link, Linear):
        return
    if averaged:
        raise KeslerError(
            f"averaged weights are those of the linear link: under {link!r} every step changes "
            "them all; choose averaged=False or the linear link"
        )
    if rule.requires == "gram":
        raise KeslerError(
            f"{rule!r} solves a quadratic program in the products of views, which is the trial's "
            f"problem under the linear link only, not under {link!r}: choose simproj, which moves "
            "along as many constraints, or the linear link"
        )
    if rule.requires == "norms" and link.exponent is None:
        raise KeslerError(
            f"{rule!r} measures its steps by the norms of views, and in which norm the link "
            f"{link!r} wants them measured is not known: choose a rule that looks at losses only, "
            "such as perceptron, simperc or softmax"
        )

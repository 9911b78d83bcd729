"""Methods: what the command line names, made into learners."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from kesler.conditioning import resolve_conditioning
from kesler.errors import KeslerError
from kesler.estimators import OnlineClassifier
from kesler.estimators.defaults import OPEN
from kesler.forgetting import require_half_life
from kesler.geometry import resolve_metric
from kesler.hypotheses import Shared, resolve_hypotheses
from kesler.kernels import resolve_kernel
from kesler.links import resolve_link
from kesler.maps import resolve_map
from kesler.updates import UpdateRule, resolve_rule


@dataclass(frozen=True, slots=True)
class Method:
    """A learner by the names of its parts.

    Parameters
    ----------
    hypotheses, update, map : str
        As :class:`kesler.OnlineClassifier` takes them.
    C : float or None
        How far the update goes: its C, delta or eta, if it has one; None for its default.
    link, averaged : str, bool
        As :class:`kesler.OnlineClassifier` takes them.
    metric, newcomers : str
        As :class:`kesler.OnlineClassifier` takes them.
    kernel, sigma, budget : str or None, float or "auto", int or None
        As :class:`kesler.OnlineClassifier` takes them.
    conditioning, half_life : str or None, float or None
        As :class:`kesler.OnlineClassifier` takes them.
    """

    hypotheses: str = OPEN
    update: str = OPEN
    C: float | None = None
    link: str = "linear"
    averaged: bool = False
    map: str = "auto"
    kernel: str | None = None
    sigma: float | Literal["auto"] = "auto"
    budget: int | None = None
    metric: str = "auto"
    newcomers: str = OPEN
    conditioning: str | None = OPEN
    half_life: float | None = None

    def learner(self) -> OnlineClassifier:
        """Return a new learner; raises KeslerError if a name is not known."""
        if self.hypotheses != OPEN:
            resolve_hypotheses(self.hypotheses, lambda: Shared(resolve_map("product", dense=False)))
        resolve_map(self.map, dense=False)
        resolve_link(self.link)
        resolve_metric(self.metric)
        if self.conditioning != OPEN:
            resolve_conditioning(self.conditioning, dense=False)
        require_half_life(self.half_life)
        if self.kernel is not None:
            resolve_kernel(self.kernel, self.sigma)
        return OnlineClassifier(
            self.hypotheses,
            feature_map=self.map,
            update=self._rule(),
            link=self.link,
            averaged=self.averaged,
            kernel=self.kernel,
            sigma=self.sigma,
            budget=self.budget,
            metric=self.metric,
            newcomers=self.newcomers,
            conditioning=self.conditioning,
            half_life=self.half_life,
        )

    def spelt_out(self) -> Method:
        """Return the same method, with the strength of its update where it was left open."""
        rule = self._rule()
        if isinstance(rule, str) or rule.strength is None:
            return replace(self, C=None)
        strength = getattr(rule, rule.strength)
        return replace(self, C=strength)

    def _rule(self) -> UpdateRule | str:
        """Return the rule; or "bank" and "default", which have rules of their own."""
        if self.update in ("bank", OPEN):
            if self.C is not None:
                raise KeslerError(
                    f"C={self.C:g} says nothing to the update {self.update}, which has a setting "
                    "of its own: leave it out, or name a rule, pa1 for instance"
                )
            return self.update
        rule = resolve_rule(self.update)
        if self.C is None or rule.strength is None:
            return rule
        return replace(rule, **{rule.strength: self.C})


def chosen(options: Namespace) -> dict[str, Any]:
    """Return what the command line says of a method, without what it leaves open.

    Examples
    --------
    >>> chosen(Namespace(update="pa2", C=None, map="product", input="-"))
    {'update': 'pa2', 'map': 'product'}
    """
    given = {field.name: getattr(options, field.name, None) for field in fields(Method)}
    return {name: value for name, value in given.items() if value is not None}


def named_learners(methods: str, defaults: Method) -> dict[str, OnlineClassifier]:
    """Return a learner for each of some methods, written HYPOTHESES[:UPDATE[:C]] and commas.

    Hypotheses without an update have that of `defaults`, or pa1; "default" alone leaves all open.

    Examples
    --------
    >>> named_learners("multi,hybrid:simproj:0.1", Method())["hybrid:simproj:0.1"].update
    SimProj(C=0.1)
    """
    names = [name.strip() for name in methods.split(",")]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise KeslerError(f"the method {twice!r} is named twice: name each once")
    return {name: _method(name, defaults).learner() for name in names}


def _method(name: str, defaults: Method) -> Method:
    hypotheses, update, C, *more = [*name.split(":"), "", ""]
    try:
        strength = float(C) if C else defaults.C
    except ValueError:
        more.append(C)
    if any(more):
        raise KeslerError(
            f"the method {name!r} is not HYPOTHESES[:UPDATE[:C]], as in hybrid:simproj:0.01"
        )
    update = update or (defaults.update if defaults.update != OPEN else _unnamed(hypotheses))
    return replace(defaults, hypotheses=hypotheses, update=update, C=strength)


def _unnamed(hypotheses: str) -> str:
    """Return the update of hypotheses that are named without one."""
    return OPEN if hypotheses == OPEN else "pa1"

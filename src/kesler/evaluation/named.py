"""Methods by name, as on the command line, and the methods of a comparison without a list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from kesler.errors import KeslerError
from kesler.evaluation.methods import BASELINES, Method
from kesler.hypotheses import Shared, resolve_hypotheses
from kesler.kernels import resolve_kernel
from kesler.learner.combinations import require_half_life
from kesler.links import resolve_link
from kesler.maps import resolve_map
from kesler.online.classifier import OnlineClassifier
from kesler.online.defaults import OPEN
from kesler.preconditioners import resolve_preconditioner
from kesler.preprocessing import resolve_preprocessing
from kesler.updates import resolve_rule
from kesler.updates.rule import UpdateRule


@dataclass(frozen=True, slots=True)
class Setting:
    """A learner by the names of its parts.

    Parameters
    ----------
    hypotheses, update, map : str
        As in :class:`kesler.OnlineClassifier`.
    C : float or None
        Aggressiveness of the update: its C, delta or eta, if it has one; None for its default.
    link, averaged : str, bool
        As in :class:`kesler.OnlineClassifier`.
    preconditioner, on_new_class : str
        As in :class:`kesler.OnlineClassifier`.
    kernel, sigma, budget : str or None, float or "auto", int or None
        As in :class:`kesler.OnlineClassifier`.
    preprocessing, half_life : str or None, float or None
        As in :class:`kesler.OnlineClassifier`.
    label_budget : float or None
        As in :class:`kesler.OnlineClassifier`.
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
    preconditioner: str = "auto"
    on_new_class: str = OPEN
    preprocessing: str | None = OPEN
    half_life: float | None = None
    label_budget: float | None = None

    def learner(self) -> OnlineClassifier:
        """Return a new learner; raise KeslerError if a name is unknown."""
        if self.hypotheses != OPEN:
            resolve_hypotheses(self.hypotheses, lambda: Shared(resolve_map("product", dense=False)))
        resolve_map(self.map, dense=False)
        resolve_link(self.link)
        resolve_preconditioner(self.preconditioner)
        if self.preprocessing != OPEN:
            resolve_preprocessing(self.preprocessing, dense=False)
        require_half_life(self.half_life)
        _require_budget(self.label_budget)
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
            preconditioner=self.preconditioner,
            on_new_class=self.on_new_class,
            preprocessing=self.preprocessing,
            half_life=self.half_life,
            label_budget=self.label_budget,
        )

    def resolved(self) -> Setting:
        """Return the method with the default of `C` resolved."""
        rule = self._rule()
        if isinstance(rule, str) or rule.strength is None:
            return replace(self, C=None)
        strength = getattr(rule, rule.strength)
        return replace(self, C=strength)

    def _rule(self) -> UpdateRule | str:
        """Return the rule, or the name "ensemble" or "default"."""
        if self.update in ("ensemble", OPEN):
            if self.C is not None:
                raise KeslerError(
                    f"C={self.C:g} has no effect on the update {self.update}, which has its own "
                    "setting: omit it, or name a rule such as pa1"
                )
            return self.update
        rule = resolve_rule(self.update)
        if self.C is None or rule.strength is None:
            return rule
        return replace(rule, **{rule.strength: self.C})


def _require_budget(label_budget: float | None) -> None:
    """Raise unless a label budget is None or a share of rows."""
    if label_budget is not None:
        from kesler.queries import resolve_query

        resolve_query(label_budget)


BY_WAY: dict[str, Setting] = {
    "default": Setting(),
    "ensemble": Setting(update="ensemble"),
    "kernel": Setting(kernel="rbf", budget=20_000),
}
"""Learners with settings of their own; the budget bounds the cost of a row on long streams."""

SHARING = ("multi", "single", "hybrid")
"""The three ways of sharing hypotheses."""

MOST_FEATURES = 100
"""Largest number of features for which a kernel is among the methods of a comparison."""

Learner = OnlineClassifier | Method


def default_methods(given: Setting, *, dense: bool, n_features: int) -> dict[str, Learner]:
    """Return the methods of a comparison without a list, the default first and baselines last.

    Parameters
    ----------
    given : Setting
        The setting of the three ways of sharing hypotheses, whose update is pa1 if it is open; the
        default, the ensemble and the kernel have settings of their own, but for the label budget.
    dense : bool
        Whether the rows list every feature.
    n_features : int
        The number of features; a kernel is among the methods if there are at most 100 and the rows
        are dense.

    Examples
    --------
    >>> list(default_methods(Setting(), dense=False, n_features=5))
    ['default', 'ensemble', 'multi', 'single', 'hybrid', 'most frequent class', 'last answer again']
    """
    own = ["default", "ensemble"]
    kernel = ["kernel"] if dense and n_features <= MOST_FEATURES else []
    by_way = {name: replace(each, label_budget=given.label_budget) for name, each in BY_WAY.items()}
    return {
        **{name: by_way[name].learner() for name in own},
        **{name: _setting(name, given).learner() for name in SHARING},
        **{name: by_way[name].learner() for name in kernel},
        **{name: make() for name, make in BASELINES.items()},
    }


def named_methods(methods: str, given: Setting) -> dict[str, Learner]:
    """Return the method of each name in a list "HYPOTHESES[:UPDATE[:C]],...".

    Hypotheses without an update use that of `given`, or pa1. "default" uses `given` as it is,
    "ensemble" and "kernel" use it with that update or that kernel. The names of baselines stand for
    these.

    Examples
    --------
    >>> named_methods("multi,hybrid:simproj:0.1", Setting())["hybrid:simproj:0.1"].update
    SimProj(C=0.1)
    """
    names = [name.strip() for name in methods.split(",")]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise KeslerError(f"the method {twice!r} is named twice: name each method once")
    return {name: named_method(name, given) for name in names}


def named_method(name: str, given: Setting) -> Learner:
    """Return the method of a name."""
    return BASELINES[name]() if name in BASELINES else _setting(name, given).learner()


def _setting(name: str, given: Setting) -> Setting:
    if name == "ensemble":
        return replace(given, update="ensemble")
    if name == "kernel":
        return replace(given, kernel=given.kernel or "rbf")
    hypotheses, update, C, *more = [*name.split(":"), "", ""]
    try:
        strength = float(C) if C else given.C
    except ValueError:
        more.append(C)
    if any(more):
        raise KeslerError(
            f"the method {name!r} is not HYPOTHESES[:UPDATE[:C]], such as hybrid:simproj:0.01"
        )
    update = update or (given.update if given.update != OPEN else _unnamed(hypotheses))
    return replace(given, hypotheses=hypotheses, update=update, C=strength)


def _unnamed(hypotheses: str) -> str:
    """Return the default update of named hypotheses."""
    return OPEN if hypotheses == OPEN else "pa1"

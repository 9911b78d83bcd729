"""NamedRule: an estimator whose update rule may be named, with the rule's parameters beside it."""

from __future__ import annotations

from typing import Any

from kesler.errors import KeslerError
from kesler.online.contract import Estimator
from kesler.updates import PARAMETERS, RULES, parameters_of, resolve_rule
from kesler.updates.rule import UpdateRule


class NamedRule(Estimator):
    """An estimator with the parameter `update`, and those of :data:`PARAMETERS` beside it.

    The parameters of a named rule can also be set as ``update__<parameter>``, as can those of a
    rule object, so that the same search works for both.
    """

    update: Any

    def _rule_of(self, update: str | UpdateRule) -> UpdateRule:
        """Return the rule of this name with the parameters that stand beside it."""
        return resolve_rule(update, **self._beside())

    def _beside(self) -> dict[str, Any]:
        given = {name: vars(self).get(name) for name in PARAMETERS}
        return {name: value for name, value in given.items() if value is not None}

    def _named(self) -> str | None:
        """Return the name of the rule; None for a rule object, "auto" and ensembles."""
        update = vars(self).get("update")
        return update if isinstance(update, str) and update in RULES else None

    def _params_within(self, name: str) -> dict[str, Any]:
        rule = self._named() if name == "update" else None
        if rule is None:
            return super()._params_within(name)
        try:
            resolved = self._rule_of(rule)
        except KeslerError:  # raised when learning, not when listing parameters
            return {}
        return {inner: getattr(resolved, inner) for inner in parameters_of(rule)}

    def _set_within(self, name: str, inner: str, value: Any) -> None:
        rule = self._named() if name == "update" else None
        if rule is None or inner not in parameters_of(rule):
            super()._set_within(name, inner, value)
        elif self._params_within(name)[inner] == value:
            return  # as it is, whether by the default of the rule or not
        elif inner in PARAMETERS:
            setattr(self, inner, value)
        else:
            self.update = resolve_rule(rule, **self._beside(), **{inner: value})
            for beside in PARAMETERS:
                setattr(self, beside, None)

"""Settings of estimators as JSON: those of model files, journals, requests and named methods.

A value that JSON holds stands for itself. Each of the others is an object of one key, its form,
such as ``{"part": {"name": "links.PNorm", "fields": {"p": 3.0}}}``; `_RESTORED` lists the forms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

from kesler.errors import KeslerError
from kesler.parts.user_part import UserPart, find_function, function_name

ESTIMATORS = {
    "OnlineClassifier": "kesler.online.classifier",
    "Ensemble": "kesler.online.ensemble",
    "LinearMax": "kesler.online.linear_max",
    "OnlineMultilabelClassifier": "kesler.online.multilabel",
    "OnlineLabelRanker": "kesler.online.ranking",
    "OnlineOrdinalClassifier": "kesler.online.ordinal",
    "BanditClassifier": "kesler.online.bandit",
    "CostSensitiveClassifier": "kesler.online.cost_sensitive",
}
"""The estimators that can be stored, and the modules that define them."""

PACKAGES = (
    *("updates", "links", "maps", "preprocessing", "preconditioners", "hypotheses", "kernels"),
    *("budgets", "costs", "trees", "queries", "exploration", "algorithms", "candidates", "forests"),
)
"""The packages of kesler that define the parts, each the first word of the names of its parts."""

UNREADABLE = (AttributeError, ImportError, LookupError, RecursionError, TypeError, ValueError)
"""What is raised where JSON does not have the form of settings."""

FORMAT = 4
"""The version of the form; those before are brought to it by :mod:`kesler.settings.former`."""


def settings_of(estimator: Any, *, functions: bool = True) -> dict[str, Any]:
    """Return the name and the parameters of an estimator, as JSON holds them.

    Parameters
    ----------
    functions : whether functions of users may be stored, by their names.

    Raises
    ------
    KeslerError
        If the estimator or a parameter cannot be stored.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> settings_of(OnlineClassifier(update="pa1"))["parameters"]["update"]
    'pa1'
    """
    name = type(estimator).__name__
    if ESTIMATORS.get(name) != type(estimator).__module__:
        raise KeslerError(
            f"{estimator!r:.60} cannot be stored: give one of {', '.join(ESTIMATORS)}"
        )
    parameters = estimator.get_params(deep=False)
    return {
        "format": FORMAT,
        "name": name,
        "parameters": {
            parameter: described(value, parameter, functions=functions)
            for parameter, value in parameters.items()
        },
    }


def estimator_of(settings: Any, custom: Iterable[Any] = ()) -> Any:
    """Return a new estimator of these settings; functions of users come from `custom`.

    Raises
    ------
    KeslerError
        If they are not settings of an estimator of this version.
    """
    try:
        if settings.get("format", 1) < FORMAT:
            from kesler.settings import former

            settings = former.settings(settings)
        name, parameters = settings["name"], settings["parameters"]
        custom = list(custom)
        return type_of(name)(**{key: restored(value, custom) for key, value in parameters.items()})
    except UNREADABLE as error:
        if isinstance(error, KeslerError):
            raise
        raise KeslerError(
            f"the settings of the model do not fit this version of Kesler ({error}): use the "
            "version that wrote them, or a newer one"
        ) from error


def type_of(name: str) -> Any:
    """Return the estimator of this name."""
    return getattr(import_module(ESTIMATORS[name]), name)


def described(value: Any, parameter: str, *, functions: bool = True) -> Any:
    """Return the value of a parameter as JSON holds it.

    Examples
    --------
    >>> from kesler.links import PNorm
    >>> described(PNorm(p=3.0), "link")
    {'part': {'name': 'links.PNorm', 'fields': {'p': 3.0}}}
    >>> described({("a", "b"): 2.0}, "costs")
    {'mapping': [[{'tuple': ['a', 'b']}, 2.0]]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return _form_of(value, parameter, functions=functions)


def _form_of(value: Any, parameter: str, *, functions: bool) -> Any:
    def each(values: Iterable[Any]) -> list[Any]:
        return [described(one, parameter, functions=functions) for one in values]

    if isinstance(value, list):
        return each(value)
    if isinstance(value, tuple):
        return {"tuple": each(value)}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if isinstance(value, Mapping):
        return {"mapping": [each(pair) for pair in value.items()]}
    if type(value).__name__ in ESTIMATORS:
        return {"estimator": settings_of(value, functions=functions)}
    if isinstance(value, UserPart) and (functions or _is_ours(value.written)):
        function, kind = function_name(value.written), value.kind
        return {"custom": {"kind": kind, "function": function, "parameters": [*value.values]}}
    if isinstance(value, FunctionType) and functions:
        return {"function": function_name(value)}
    if is_dataclass(value) and _class_of(_name_of(value)) is type(value):
        names = [field.name for field in fields(value) if field.init]
        pairs = zip(names, each(getattr(value, name) for name in names), strict=True)
        return {"part": {"name": _name_of(value), "fields": dict(pairs)}}
    if isinstance(getattr(value, "tolist", None), Callable):  # type: ignore[arg-type]
        return {"array": each(value.tolist())}
    raise KeslerError(
        f"{parameter}={value!r:.60} cannot be stored"
        + ("" if functions else " in a journal, which stores no code")
        + ": use the parts of Kesler, by their names or as objects"
    )


def restored(value: Any, custom: list[Any]) -> Any:
    """Return the value that JSON stands for; see :func:`described`."""
    if isinstance(value, list):
        return [restored(each, custom) for each in value]
    if not isinstance(value, dict):
        return value
    ((form, written),) = value.items()
    return _RESTORED[form](written, custom)


def _part_of(written: Mapping[str, Any], custom: list[Any]) -> Any:
    made = _class_of(written["name"])
    if made is None:
        raise LookupError(f"{written['name']} is no part")
    return made(**{name: restored(value, custom) for name, value in written["fields"].items()})


def _name_of(part: Any) -> str:
    """Return the package and the name of the class of a part, such as "links.Linear"."""
    package = (*type(part).__module__.split("."), "")[1]
    return f"{package}.{type(part).__name__}"


def _class_of(name: str) -> Any:
    """Return the class of parts of this name, None if there is none."""
    package, _, name = name.partition(".")
    found = getattr(import_module(f"kesler.{package}"), name, None) if package in PACKAGES else None
    return found if isinstance(found, type) and is_dataclass(found) else None


def _user_part_of(written: Mapping[str, Any], custom: list[Any]) -> UserPart:
    kind, function, parameters = (written[key] for key in ("kind", "function", "parameters"))
    parts = [each for each in custom if isinstance(each, UserPart)]
    named = [each for each in parts if function_name(each.written) == function]
    if len(named) > 1:
        raise KeslerError(
            f"custom=[...] has {len(named)} parts named {function}: pass only the one that the "
            "model was trained with"
        )
    found = named[0] if named else _part_of_ours(function)
    if found is None or found.kind != kind:
        raise KeslerError(
            f"the model was trained with the {kind} {function}, which a model file does not "
            "contain: in Python, import it and pass it in custom=[...]"
        )
    return found.with_parameters(*parameters)


def _part_of_ours(function: str) -> UserPart | None:
    """Return the part that a module of a package of parts defines under this name, or None."""
    module, _, name = function.rpartition(".")
    if not module.startswith(tuple(f"kesler.{package}." for package in PACKAGES)):
        return None
    found = getattr(import_module(module), name, None)
    return found if isinstance(found, UserPart) else None


def _is_ours(function: Any) -> bool:
    return _part_of_ours(function_name(function)) is not None


def _function_of(written: str, custom: list[Any]) -> Any:
    return find_function(written, custom, "a function")


_RESTORED: dict[str, Callable[[Any, list[Any]], Any]] = {
    "estimator": estimator_of,
    "part": _part_of,
    "custom": _user_part_of,
    "function": _function_of,
    "tuple": lambda written, custom: tuple(restored(written, custom)),
    "mapping": lambda written, custom: {
        restored(key, custom): restored(value, custom) for key, value in written
    },
    "range": lambda written, custom: range(*written),
    "array": lambda written, custom: np.array(restored(written, custom)),
    "float": lambda written, custom: float(written),
}


def expression(written: Any) -> str:
    """Return the Python expression of a value of JSON, of an estimator without its defaults.

    Examples
    --------
    >>> expression({"part": {"name": "updates.MIRA", "fields": {"C": 0.5}}})
    'MIRA(C=0.5)'
    """
    if isinstance(written, list):
        return f"[{', '.join(map(expression, written))}]"
    if not isinstance(written, dict):
        return repr(written)
    ((form, value),) = written.items()
    return _EXPRESSIONS[form](value)


def _called(name: str, arguments: Mapping[str, Any]) -> str:
    given = (f"{key}={expression(value)}" for key, value in arguments.items())
    return f"{name}({', '.join(given)})"


def _estimator_expression(written: Mapping[str, Any]) -> str:
    name, parameters = written["name"], written["parameters"]
    defaults = type_of(name)().get_params(deep=False)
    changed = {
        key: value
        for key, value in parameters.items()
        if key not in defaults or value != described(defaults[key], key)
    }
    return _called(name, changed)


_EXPRESSIONS: dict[str, Callable[[Any], str]] = {
    "estimator": _estimator_expression,
    "part": lambda written: _called(written["name"].rpartition(".")[2], written["fields"]),
    "custom": lambda written: (
        f"{written['function']}({', '.join(map(str, written['parameters']))})"
    ),
    "function": str,
    "tuple": lambda written: f"({', '.join(map(expression, written))})",
    "mapping": lambda written: (
        "{" + ", ".join(": ".join(map(expression, pair)) for pair in written) + "}"
    ),
    "range": lambda written: f"range({', '.join(map(str, written))})",
    "array": expression,
    "float": str,
}

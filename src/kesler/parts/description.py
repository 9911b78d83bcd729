"""Descriptions of built-in and user-defined parts in model files, and their restoring."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from importlib import import_module
from types import FunctionType
from typing import Any

from kesler.errors import KeslerError


def describe(part: Any) -> dict[str, Any]:
    """Return the name and the fields of a built-in part, a dataclass.

    Examples
    --------
    >>> from kesler.updates import MIRA
    >>> describe(MIRA(C=0.5))
    {'name': 'MIRA', 'fields': {'C': 0.5}}
    """
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    return {"name": type(part).__name__, "fields": values}


def describe_custom(function: Callable[..., Any], parameters: tuple[float, ...]) -> dict[str, Any]:
    """Return the name and the parameters of a user-defined function; its code is never stored."""
    return {"custom": function_name(function), "parameters": list(parameters)}


def function_name(function: Any) -> str:
    """Return the module and the qualified name of a function."""
    return f"{function.__module__}.{function.__qualname__}"


def find_function(name: str, custom: Iterable[Any], kind: str) -> Any:
    """Return the user-defined function of this name from `custom`.

    Raises
    ------
    KeslerError
        If `custom` has no function of this name.
    """
    for function in custom:
        if hasattr(function, "__qualname__") and function_name(function) == name:
            return function
    raise KeslerError(
        f"the model was trained with {kind} from the function {name}, which a model file does not "
        "contain: import it and pass it in custom=[...]"
    )


def require_function(function: Any, kind: str) -> None:
    """Raise unless a user-defined part is a plain Python function, which can be compiled."""
    if not isinstance(function, FunctionType):
        raise KeslerError(f"{kind} must be made of a plain Python function, not of {function!r}")


def reduce_custom(part: Any, function: Callable[..., Any]) -> Any:
    """Return how to pickle a user-defined part: by module and name, as functions are pickled.

    The decorator has replaced the function by the part, so that pickle cannot find the function.
    """
    module, name = function.__module__, function.__qualname__
    if isinstance(_find(module, name), type(part)):
        return _find_with, (module, name, part.parameters)
    return _made, (type(part), {field.name: getattr(part, field.name) for field in fields(part)})


def _find(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        found = getattr(found, step, None)
    return found


def _find_with(module: str, name: str, parameters: tuple[float, ...]) -> Any:
    import_module(module)
    return _find(module, name).with_parameters(*parameters)


def _made(cls: type[Any], values: dict[str, Any]) -> Any:
    return cls(**values)


def restore(
    description: Mapping[str, Any],
    kind: str,
    base: type[Any],
    built_in: Iterable[Callable[..., Any]],
    custom: Iterable[Any],
) -> Any:
    """Return the part that a description stands for.

    Parameters
    ----------
    description : result of `describe` or `describe_custom`.
    kind : name of this kind of part in messages.
    base : the class of all parts of this kind.
    built_in : the classes of the built-in parts, or functions that make one.
    custom : user-defined parts of any kind, since a model file holds no code.

    Raises
    ------
    KeslerError
        If the part is neither built in nor in `custom`.
    """
    built_in = list(built_in)
    made = [each() for each in built_in if not isinstance(each, type)]
    if "custom" in description:
        name = description["custom"]
        parts = [each for each in (*made, *custom) if isinstance(each, base)]
        named = [part for part in parts if part.describe().get("custom") == name]
        if len(named) > 1:
            raise KeslerError(
                f"custom=[...] has {len(named)} parts named {name}: pass only "
                "the one that the model was trained with"
            )
        if named:
            return named[0].with_parameters(*description["parameters"])
        raise KeslerError(
            f"the model was trained with the {kind} {name}, which a model file "
            "does not contain: import it and pass it in custom=[...]"
        )
    for part in (*map(type, made), *built_in):
        if isinstance(part, type) and part.__name__ == description["name"]:
            return part(**description["fields"])
    raise KeslerError(
        f"the {kind} {description['name']} is not known to this version of Kesler: update Kesler"
    )

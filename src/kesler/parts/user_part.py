"""What user-defined parts have in common, and what is said when their compiled code fails."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module
from types import FunctionType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError

Part = TypeVar("Part")


def part_of(
    name: str, choice: Any, kind: Any, registry: Mapping[str, Callable[..., Part]], more: str
) -> Part:
    """Return a part, or that of this name; raise if it is neither.

    Parameters
    ----------
    name : the parameter.
    choice : its value.
    kind : the class of the parts, or several.
    registry : the parts by their names.
    more : what else may be given, in words that follow the names.
    """
    if isinstance(choice, str) and choice in registry:
        return registry[choice]()
    if not isinstance(choice, kind):
        known = ", ".join(registry)
        raise KeslerError(f"{name}={choice!r} is not known: choose one of {known}{more}")
    found: Part = choice
    return found


@dataclass(frozen=True, kw_only=True, repr=False)
class UserPart:
    """A part made of a function that a user wrote, and of its parameters.

    Attributes
    ----------
    kind : the kind of part in messages, a key of :data:`kesler.parts.trial_calls.KINDS`.
    field : the name of the attribute that is the function.
    """

    values: tuple[float, ...] = ()

    kind: ClassVar[str]
    field: ClassVar[str]

    @property
    def written(self) -> Callable[..., Any]:
        """The function that the user wrote."""
        function: Callable[..., Any] = getattr(self, self.field)
        return function

    @property
    def full_name(self) -> str:
        """The kind of part, and the module and name of the function."""
        return f"the {self.kind} {function_name(self.written)}"

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers given by :meth:`with_parameters`."""
        return self.values

    def with_parameters(self, *values: float) -> Self:
        """Return the same part with other parameters."""
        return replace(self, values=tuple(float(value) for value in values))

    def __reduce__(self) -> Any:
        return reduce_custom(self, self.written)

    def __repr__(self) -> str:
        return f"{self.written.__qualname__}{self.values or ''}"


FaultWords = tuple[tuple[UserPart, npt.NDArray[Any]], ...]
"""User-defined parts, each with the word that its compiled code sets when the function fails."""


def fault_words(parts: Iterable[tuple[Any, npt.NDArray[Any]]]) -> FaultWords:
    """Return the fault words of the user-defined ones of these parts.

    Parameters
    ----------
    parts : parts of any kind, each with the array that its compiled code receives: the parameters,
        followed by the fault word.
    """
    return tuple((part, array[-1:]) for part, array in parts if isinstance(part, UserPart))


def require_no_faults(words: FaultWords) -> None:
    """Raise an error that names the functions that failed; reset the words."""
    failed = [part.full_name for part, word in words if word[0]]
    if failed:
        for _, word in words:
            word[:] = 0
        raise KeslerError(
            f"{' and '.join(dict.fromkeys(failed))} failed on a row: the function raised "
            "an error, used an index out of range or returned a number that is not finite; what "
            "depends on it was not learnt: correct it, as its decorator's documentation says"
        )


def followed_by_word(parameters: Iterable[float], n: int | None = None) -> npt.NDArray[np.float64]:
    """Return parameters, padded to n with zeros if n is given, and the fault word behind them."""
    values = [*parameters]
    return np.array([*values, *[0.0] * ((n or len(values)) - len(values)), 0.0])


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
        "contain: in Python, import it and pass it in custom=[...]"
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

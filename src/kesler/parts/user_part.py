"""What user-defined parts have in common, and what is said when their compiled code fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.parts.description import describe_custom, function_name, reduce_custom


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

    def describe(self) -> dict[str, Any]:
        """Return the name of the function and the parameters."""
        return describe_custom(self.written, self.values)

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

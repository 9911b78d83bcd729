"""What a view of an instance is, wherever it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from kesler.parts import describe


@dataclass(frozen=True)
class View:
    """What one class sees of an example, phi(x, r).

    Attributes
    ----------
    zero_at_zero : whether a feature of value 0 counts for nothing, so that zeros of sparse rows may
        be left out.
    """

    zero_at_zero: ClassVar[bool]

    @property
    def parameters(self) -> tuple[float, ...]:
        """At most four numbers that the view depends on."""
        return ()

    def describe(self) -> dict[str, Any]:
        """Return the name and the parameters, as a model file keeps them."""
        return describe(self)

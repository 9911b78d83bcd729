"""Forgetting: learners for streams that drift, to which the past counts less and less."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from kesler.errors import KeslerError
from kesler.links import Linear, Link
from kesler.updates import UpdateRule


def require_half_life(half_life: Any) -> float | None:
    """Return a half-life as a float, or None.

    Raises
    ------
    KeslerError
        Unless it is None or a finite number of rows, 1 at least.

    Examples
    --------
    >>> require_half_life(1000)
    1000.0
    """
    if half_life is None:
        return None
    is_number = isinstance(half_life, Real) and not isinstance(half_life, bool)
    if not (is_number and 1 <= float(half_life) < math.inf):
        raise KeslerError(
            f"half_life={half_life!r} must be a finite number of rows, 1 or more, after which what "
            "was learnt counts half, or None, which never forgets"
        )
    return float(half_life)


def require_forgettable(
    half_life: float | None, rule: UpdateRule, link: Link, *, averaged: bool
) -> None:
    """Raise a sentence that says why, if a learner cannot forget."""
    reasons = {
        f"under {link!r} all weights follow from sums and their scale": not isinstance(
            link, Linear
        ),
        f"{rule!r} moves weights by itself": rule.update is not None,
        "averaged=True asks for the mean over all of the past": averaged,
    }
    for reason, holds in reasons.items():
        if half_life is not None and holds:
            raise KeslerError(
                f"half_life={half_life:g}: the past is to fade, but {reason}; leave half_life out, "
                "or choose an update rule in the linear link, not averaged"
            )

"""What is asked of a dictionary's parameters."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from scipy import sparse

from kesler.errors import KeslerError


def check_count(name: str, value: Any, most: int | None = None) -> None:
    """Refuse what is not a whole number from 1, to `most` where there is a limit."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
        raise KeslerError(f"{name} is {value!r}: give a whole number of 1 or more")
    if most is not None and int(value) > most:
        raise KeslerError(f"{name} is {value}: give {most} or fewer")


def check_dense(X: Any, candidates: str) -> None:
    """Refuse sparse rows, of which these candidates would be dense."""
    if sparse.issparse(X):
        raise KeslerError(
            f"{candidates} are not made of sparse rows: give a dense array, "
            "X.toarray() where memory allows, or fewer features"
        )

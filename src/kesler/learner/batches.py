"""Calls of many rows while kernels are compiled in another process."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

MOST_ROWS = 512
"""Rows that a process interprets in calls of several rows; more take longer than the compiler."""

_NOTHING = nullcontext()
_interpreted = {"n_rows": 0}


def compiled_for(n_rows: int) -> AbstractContextManager[None]:
    """Return a context in which kernels are compiled before they are called, if rows are many.

    Calls of one row are answered at once. Those of several wait for the compiler as soon as they,
    with the calls before them, have more than `MOST_ROWS` rows.

    Parameters
    ----------
    n_rows : the number of rows of a call.

    Examples
    --------
    >>> with compiled_for(1):
    ...     pass
    """
    from kesler.compiled.jit.background import COMPILING, in_foreground

    if not COMPILING.is_busy or n_rows < 2:
        return _NOTHING
    _interpreted["n_rows"] += n_rows
    return in_foreground() if _interpreted["n_rows"] > MOST_ROWS else _NOTHING

"""A limit on the time of functions that users wrote, where Python runs them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from kesler.errors import KeslerError

LIMIT = 2.0
"""The seconds that calls of a function in Python may take together."""


class _Late(BaseException):
    """The limit has passed; not an Exception, which the function might catch."""


@contextmanager
def within_limit(name: str) -> Iterator[None]:
    """Raise a KeslerError about `name` when the functions called here take longer than `LIMIT`.

    Notes
    -----
    The thread itself looks at the time before each line that it runs, so that this works in any
    thread. A call of compiled code, such as ``sum(range(10**12))``, is not interrupted, nor is a
    loop that catches every error.
    """
    end, tracer = time.perf_counter() + LIMIT, sys.gettrace()

    def look(frame: FrameType, event: str, argument: Any) -> Any:
        if time.perf_counter() > end:
            raise _Late
        return look

    sys.settrace(look)
    try:
        yield
    except _Late:
        raise KeslerError(
            f"{name} did not return within {LIMIT:g} s when Python called it: correct the loop "
            "that does not end"
        ) from None
    finally:
        sys.settrace(tracer)

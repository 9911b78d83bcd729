"""What is said of rows that were skipped, and the exit code where they are too many."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from kesler.readers.stream import Stream

MOST_BAD = 0.1
"""The share of bad rows up to which a command succeeds."""
TOO_MANY_BAD = 3
"""The exit code of a command that has skipped more."""


def report(streams: Iterable[Stream], max_bad: float | None) -> int:
    """Say which rows were skipped; return the exit code, given the share of bad rows allowed."""
    most = MOST_BAD if max_bad is None else max_bad
    code = 0
    for stream in streams:
        losses, n_rows = stream.losses, stream.n_rows + stream.losses.n_bad
        if not losses.n_bad:
            continue
        print(
            f"kesler: skipped {losses.n_bad:,} of {n_rows:,} rows of {stream.source}: "
            f"{losses.bad_by_class}; the first is {losses.first_bad}",
            file=sys.stderr,
        )
        if losses.n_bad > most * n_rows:
            code = TOO_MANY_BAD
            print(
                f"kesler: that is more than a share of {most:g}, so the exit code is {code}: check "
                f"{stream.source}, or allow more with --max-bad SHARE",
                file=sys.stderr,
            )
    return code

"""The printed table of a comparison and its summary."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from textwrap import fill
from threading import Timer
from typing import TYPE_CHECKING

from kesler.data.readers.stream import Block, Stream
from kesler.errors import KeslerError
from kesler.evaluation.comparison import Comparison, Line, MethodResult

if TYPE_CHECKING:
    from kesler.evaluation.bounds import MistakeBound

GAP = "   "
# Seconds after which a notice is printed, since the first trial may compile the loops.
PATIENCE = 3.0
COMPILING = "kesler: compiling the loops (once on this machine, up to half a minute)"
LEGEND = "Mistakes in % of the trials so far (error) and of those since the previous line (last)"


def print_run(comparison: Comparison, blocks: Iterable[Block]) -> list[Line]:
    """Run a comparison, print its table while it runs, and return the lines."""
    lines = list[Line]()
    notice = Timer(PATIENCE, print, [COMPILING], {"file": sys.stderr, "flush": True})
    notice.daemon = True
    try:
        for line in comparison.run(started(notice, blocks)):
            notice.cancel()
            if not lines:
                print(f"{LEGEND}\n\n{heading(line.errors)}", flush=True)
            print(row(line), flush=True)
            lines.append(line)
    finally:
        notice.cancel()
    return lines


def started(timer: Timer, blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks; start a timer after the first block has been read."""
    for i, block in enumerate(blocks):
        if i == 0 and is_watched():
            timer.start()
        yield block


def is_watched() -> bool:
    """Return whether standard error is a terminal."""
    return sys.stderr.isatty()


def heading(methods: Iterable[str]) -> str:
    """Return the two lines above the table.

    Examples
    --------
    >>> print(heading(["multi", "hybrid"]))
                                multi             hybrid
         trials  classes     error    last     error    last        rows/s
    """
    names = "".join(GAP + name.center(_width(name)) for name in methods)
    columns = "".join(GAP + f"{'error':>7}{'last':>8}".rjust(_width(name)) for name in methods)
    return f"{'':20}{names}".rstrip() + f"\n{'trials':>11}{'classes':>9}{columns}{'rows/s':>14}"


def row(line: Line) -> str:
    """Return a line of the table below `heading`.

    Examples
    --------
    >>> print(row(Line(1024, 26, {"multi": 0.5}, {"multi": 0.25}, 1e6)))
          1,024       26     50.00   25.00     1,000,000
    """
    recent = line.recent_errors
    errors = "".join(
        GAP + f"{100 * error:7.2f}{100 * recent[name]:8.2f}".rjust(_width(name))
        for name, error in line.errors.items()
    )
    return f"{line.n_trials:>11,}{line.n_classes:>9,}{errors}{_rate(line.rows_per_second):>14}"


def statement(stream: Stream, comparison: Comparison) -> str:
    """Return a line with the source and its numbers of rows, features and classes."""
    counts = [
        counted(stream.n_rows, "row"),
        counted(comparison.n_features, "feature"),
        counted(comparison.n_classes, "class", "classes"),
    ]
    skipped = f"; {counted(stream.n_bad, 'bad row')} skipped" if stream.n_bad else ""
    return f"{stream.source}: {', '.join(counts)}{skipped}"


def summary(
    results: Mapping[str, MethodResult], bounds: Mapping[str, MistakeBound | KeslerError]
) -> str:
    """Return the summary of each method, with a mark for the fewest mistakes.

    Bounds are printed in a column, and below in one paragraph for each method.

    Examples
    --------
    >>> import numpy as np
    >>> result = MethodResult(9, 2, 1, np.arange(0), np.arange(0), seconds=2.0)
    >>> print(summary({"multi": result}, {}))
      method       trials   mistakes  error %        rows/s
      multi             9          2    22.22             4
    """
    width = max(6, *map(len, results))
    fewest = min(result.n_mistakes for result in results.values())
    allowed = f"{'allowed':>13}" if bounds else ""
    heading = f"  {'method':{width}}{'trials':>13}{'mistakes':>11}{allowed}{'error %':>9}"
    lines = [f"{heading}{'rows/s':>14}"]
    for name, result in results.items():
        best = "  best" if len(results) > 1 and result.n_mistakes == fewest else ""
        allowed = f"{_allowed(bounds[name]):>13}" if bounds else ""
        counts = f"{result.n_trials:>13,}{result.n_mistakes:>11,}{allowed}"
        rate = f"{_rate(result.rows_per_second):>14}"
        lines.append(f"  {name:{width}}{counts}{100 * result.error:>9.2f}{rate}{best}")
    lines.extend(_paragraph(f"{name}: {bound}") for name, bound in bounds.items())
    return "\n".join(lines)


def _paragraph(text: str) -> str:
    return "\n" + fill(text, 99, initial_indent="  ", subsequent_indent="    ")


def _allowed(bound: MistakeBound | KeslerError) -> str:
    if isinstance(bound, KeslerError) or not math.isfinite(bound.bound):
        return "-"
    return f"{bound.bound:,.0f}"


def _width(name: str) -> int:
    return max(15, len(name))


def _rate(rows_per_second: float | None) -> str:
    return "-" if rows_per_second is None else f"{rows_per_second:,.0f}"


def counted(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"

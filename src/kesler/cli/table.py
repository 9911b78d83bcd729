"""The printed table of a comparison and its summary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from textwrap import fill
from typing import TYPE_CHECKING

from kesler.data.readers.stream import Block, Stream
from kesler.errors import KeslerError
from kesler.evaluation.comparison import Comparison, Line, MethodResult
from kesler.progress import Task, progress, say

if TYPE_CHECKING:
    from kesler.evaluation.bounds import MistakeBound

GAP = "   "
LEGEND = "Mistakes in % of the trials so far (error) and of those since the previous line (last)"


def print_run(comparison: Comparison, blocks: Iterable[Block], stream: Stream) -> list[Line]:
    """Run a comparison of blocks of a stream, print its table meanwhile, and return the lines."""
    lines = list[Line]()
    with progress("learning", "rows") as task:
        for line in comparison.run(counted_rows(blocks, stream, task)):
            if not lines:
                say(f"{LEGEND}\n\n{heading(line.errors)}")
            say(row(line))
            lines.append(line)
    return lines


def counted_rows(blocks: Iterable[Block], stream: Stream, task: Task) -> Iterator[Block]:
    """Yield blocks of a stream, and report the rows that have been dealt with."""
    n_rows = 0
    for block in blocks:
        yield block
        n_rows += len(block)
        task.report(n_rows, share=stream.share())


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

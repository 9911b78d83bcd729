"""The printed table of a comparison and its summary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from kesler.cli import spoken
from kesler.errors import KeslerError
from kesler.evaluation.comparison import Comparison, Line, MethodResult
from kesler.evaluation.methods import BASELINES
from kesler.evaluation.summary import rate, table_of, top_columns
from kesler.progress import Task, progress, say
from kesler.readers.stream import Block, Stream

if TYPE_CHECKING:
    from kesler.bounds.mistakes import MistakeBound

GAP = "   "
MANY_FIRST = 3  # first rows of classes are named where there are more than one in so many
LEGEND = "Mistakes in % of the trials so far (error)"
LEGEND_OF_PAIRS = f"{LEGEND} and of those since the previous line (last)"


def print_run(comparison: Comparison, blocks: Iterable[Block], stream: Stream) -> list[Line]:
    """Run a comparison of blocks of a stream, print its table meanwhile, and return the lines."""
    lines = list[Line]()
    with progress("learning", "rows") as task:
        for line in comparison.run(counted_rows(blocks, stream, task)):
            if not lines:
                pairs = _has_pairs(_shown(line.errors))
                legend = LEGEND_OF_PAIRS if pairs else LEGEND
                say(f"{legend}\n\n{heading(line.errors)}")
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
    """Return the two lines above the table; more than three methods have one column each.

    Examples
    --------
    >>> print(heading(["multi", "hybrid"]))
                                multi             hybrid
         trials  classes     error    last     error    last        rows/s
    >>> print(heading(["default", "multi", "single", "hybrid"]))
                           default     multi    single    hybrid
         trials  classes     error     error     error     error        rows/s
    """
    shown = _shown(methods)
    pair = f"{'error':>7}{'last':>8}" if _has_pairs(shown) else "error"
    align = str.center if _has_pairs(shown) else str.rjust
    names = "".join(GAP + align(name, _width(name, shown)) for name in shown)
    columns = "".join(GAP + pair.rjust(_width(name, shown)) for name in shown)
    return f"{'':20}{names}".rstrip() + f"\n{'trials':>11}{'classes':>9}{columns}{'rows/s':>14}"


def row(line: Line) -> str:
    """Return a line of the table below `heading`.

    Examples
    --------
    >>> print(row(Line(1024, 26, {"multi": 0.5}, {"multi": 0.25}, 1e6)))
          1,024       26     50.00   25.00     1,000,000
    """
    shown = _shown(line.errors)
    errors = ""
    for name in shown:
        last = f"{100 * line.recent_errors[name]:8.2f}" if _has_pairs(shown) else ""
        errors += GAP + f"{100 * line.errors[name]:7.2f}{last}".rjust(_width(name, shown))
    return f"{line.n_trials:>11,}{line.n_classes:>9,}{errors}{rate(line.rows_per_second):>14}"


def _shown(methods: Iterable[str]) -> list[str]:
    """Return the methods with columns: all but the baselines, which are in the summary."""
    names = list(methods)
    return [name for name in names if name not in BASELINES] or names


def _has_pairs(shown: Sequence[str]) -> bool:
    """Return whether both errors of each method fit into a line."""
    return len(shown) <= 3


def print_columns(methods: Iterable[Any]) -> None:
    """Print the kinds of the columns, if the first learner of a table has inferred them."""
    schemas = (getattr(method, "schema_", None) for method in methods)
    schema = next((each for each in schemas if each is not None), None)
    if schema is not None:
        print(f"\n{schema}")
        for sentence in schema.misfits:
            print(f"\n{spoken(sentence)}")


def print_first_rows(results: Mapping[str, MethodResult]) -> None:
    """Print the errors on rows of known classes, where many rows are the first of their class."""
    one = next(iter(results.values()))
    n_known = one.n_trials - one.n_first_seen
    if n_known and MANY_FIRST * one.n_first_seen > one.n_trials:
        errors = (f"{name} {100 * each.n_mistakes / n_known:.2f}" for name, each in results.items())
        print(
            f"\nfirst rows of classes: {one.n_first_seen:,} of {one.n_trials:,}, which are no "
            f"mistakes; of the other {n_known:,} are wrong, in %: {', '.join(errors)}"
        )


def print_left_out(names: Sequence[str]) -> None:
    """Print the columns that are not learnt since others are named as texts."""
    if names:
        listed = ", ".join(map(repr, names))
        print(f"\nleft out beside the texts: {listed}; --table learns them as well")


def statement(stream: Stream, comparison: Comparison, delay: int = 0) -> str:
    """Return a line with the source and its numbers of rows, features and classes."""
    counts = [
        counted(stream.n_rows, "row"),
        counted(comparison.n_features, "feature"),
        counted(comparison.n_classes, "class", "classes"),
    ]
    skipped = f"; {counted(stream.n_bad, 'bad row')} skipped" if stream.n_bad else ""
    late = f"; answers arrive {counted(delay, 'row')} late" if delay else ""
    return f"{stream.source}: {', '.join(counts)}{skipped}{late}"


def summary(
    results: Mapping[str, MethodResult],
    bounds: Mapping[str, MistakeBound | KeslerError],
    asked: Mapping[str, int],
    top: int | None = None,
) -> str:
    """Return the summary of each method, with its bound in a column and in a paragraph below.

    Parameters
    ----------
    results, bounds : by the names of the methods; no bounds if none are asked for.
    asked : the number of labels that each method with a label budget has asked for.
    top : up to which number of classes of highest score columns say how often that of a row is
        among them; None for no such columns.
    """
    columns = {
        "asked": {name: f"{n:,}" for name, n in asked.items()},
        "allowed": {name: _allowed(bound) for name, bound in bounds.items()},
        **top_columns({name: each.places for name, each in results.items()}, top),
    }
    lines = [table_of(results, {title: texts for title, texts in columns.items() if texts})]
    lines.extend(_paragraph(f"{name}: {bound}") for name, bound in bounds.items())
    late = {name: each.late for name, each in results.items() if each.late is not None}
    lines.extend(_paragraph(f"{name}: {figures}") for name, figures in late.items())
    return "\n".join(lines)


def _paragraph(text: str) -> str:
    return "\n" + fill(text, 99, initial_indent="  ", subsequent_indent="    ")


def _allowed(bound: MistakeBound | KeslerError) -> str:
    if isinstance(bound, KeslerError) or not math.isfinite(bound.bound):
        return "-"
    return f"{bound.bound:,.0f}"


def _width(name: str, shown: Sequence[str]) -> int:
    return max(15 if _has_pairs(shown) else 7, len(name))


def counted(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"

"""The summary of several methods as a table of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kesler.metrics import PlaceCounts


class Counts(Protocol):
    """The interface of results in a summary: ProgressiveResult and MethodResult."""

    @property
    def n_trials(self) -> int: ...  # noqa: D102
    @property
    def n_mistakes(self) -> int: ...  # noqa: D102
    @property
    def error(self) -> float: ...  # noqa: D102
    @property
    def rows_per_second(self) -> float | None: ...  # noqa: D102


def table_of(
    results: Mapping[str, Counts], columns: Mapping[str, Mapping[str, str]] | None = None
) -> str:
    """Return a table with a line for each method and a mark for the fewest mistakes.

    Parameters
    ----------
    results : mapping of str to ProgressiveResult or MethodResult
        The methods by name.
    columns : mapping of str to mapping of str to str, default None
        Further columns: their titles, and the text for each method.

    Examples
    --------
    >>> import numpy as np
    >>> from kesler.evaluation.comparison import MethodResult
    >>> result = MethodResult(9, 2, 1, np.arange(0), np.arange(0), seconds=2.0)
    >>> print(table_of({"multi": result}))
      method       trials   mistakes  error %        rows/s
      multi             9          2    22.22             4
    """
    more = columns or {}
    width = max(6, *map(len, results))
    fewest = min(result.n_mistakes for result in results.values())
    titles = "".join(f"{title:>13}" for title in more)
    heading = f"  {'method':{width}}{'trials':>13}{'mistakes':>11}{titles}{'error %':>9}"
    lines = [f"{heading}{'rows/s':>14}"]
    for name, result in results.items():
        best = "  best" if len(results) > 1 and result.n_mistakes == fewest else ""
        added = "".join(f"{column.get(name, '-'):>13}" for column in more.values())
        counts = f"{result.n_trials:>13,}{result.n_mistakes:>11,}{added}"
        end = f"{100 * result.error:>9.2f}{rate(result.rows_per_second):>14}{best}"
        lines.append(f"  {name:{width}}{counts}{end}")
    return "\n".join(lines)


def top_columns(
    places: Mapping[str, PlaceCounts | None], top: int | None
) -> dict[str, dict[str, str]]:
    """Return the columns of the recall and the NDCG of the first classes, none if `top` is None.

    Parameters
    ----------
    places : by the names of the methods; None for those that score no classes.
    top : how many classes of a row count.

    Examples
    --------
    >>> import numpy as np
    >>> top_columns({"multi": PlaceCounts.of(np.array([1, 3]), 3), "last answer again": None}, 3)
    {'top-3 %': {'multi': '100.00'}, 'NDCG@3': {'multi': '0.750'}}
    """
    if top is None:
        return {}
    known = {name: each for name, each in places.items() if each is not None}
    return {
        f"top-{top} %": {name: f"{100 * each.recall(top):.2f}" for name, each in known.items()},
        f"NDCG@{top}": {name: f"{each.ndcg(top):.3f}" for name, each in known.items()},
    }


def rate(rows_per_second: float | None) -> str:
    """Return a number of rows per second, or a dash."""
    return "-" if rows_per_second is None else f"{rows_per_second:,.0f}"

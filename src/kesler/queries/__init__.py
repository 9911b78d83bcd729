"""Rules of asking: for which rows a label is asked, where labels cost a person's attention."""

from __future__ import annotations

from numbers import Real
from typing import Any

from kesler.errors import KeslerError
from kesler.parts.trial_calls import try_out
from kesler.queries.at_random import RandomQuery
from kesler.queries.budget import LabelBudget
from kesler.queries.margin import MarginQuery
from kesler.queries.query import CustomQuery, Query, query_rule, require_share

__all__ = [
    "QUERIES",
    "CustomQuery",
    "LabelBudget",
    "MarginQuery",
    "Query",
    "RandomQuery",
    "query_rule",
    "resolve_query",
]

QUERIES: dict[str, type[Query]] = {
    "budget": LabelBudget,
    "margin": MarginQuery,
    "random": RandomQuery,
}
"""The rules by their names."""


def resolve_query(choice: Any) -> Query | None:
    """Return the rule that a parameter stands for: a share of the rows, or the rule itself.

    Raises
    ------
    KeslerError
        If it is neither, or a function of the user fails in a trial call.

    Examples
    --------
    >>> resolve_query(0.1), resolve_query(MarginQuery(0.5))
    (LabelBudget(seed=0, share=0.1), MarginQuery(seed=0, b=0.5))
    """
    if choice is None:
        return None
    if isinstance(choice, Query):
        try_out(choice)
        return choice
    if isinstance(choice, Real) and not isinstance(choice, bool):
        return LabelBudget(require_share("label_budget", choice))
    raise KeslerError(
        f"label_budget={choice!r}: give the share of rows whose label is asked for, above 0 and at "
        "most 1, a rule of kesler.queries, a function decorated with kesler.query_rule, or None"
    )

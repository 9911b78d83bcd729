"""Rules of asking: for which rows a label is asked, where labels cost a person's attention."""

from kesler.parts.queries import QUERIES, resolve_query
from kesler.parts.queries.at_random import RandomQuery
from kesler.parts.queries.budget import LabelBudget
from kesler.parts.queries.margin import MarginQuery
from kesler.parts.queries.query import CustomQuery, Query, query_rule

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

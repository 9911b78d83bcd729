"""The state of a rule of asking: what it remembers of the rows that were offered to it."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from kesler.state.fields import Field, record
from kesler.state.records import MOST_ROWS

N_RECENT = 256  # doubts

# The number of rows offered, which also numbers the random draws, and of those asked for.
QUERIED = record(n_offered="i8", n_asked="i8")


class QueryState(NamedTuple):
    """What a rule of asking remembers; recent : the doubts about the last rows, in a ring."""

    counts: Annotated[Any, Field(QUERIED, at_least=0, at_most=MOST_ROWS)]
    recent: Annotated[Any, Field(np.float64, (N_RECENT,), when="rule.ranks", at_least=0.0)]

"""The state of a limit on memory: how often each feature came.

Axes: "feature", as in :mod:`kesler.state.records`.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from kesler.state.fields import Field, record
from kesler.state.records import MOST_ROWS

# The number of features that were dropped, each as often as it was.
DROPPED = record(n_dropped="i8")


class Usage(NamedTuple):
    """Which features rows had; counts : the discounted number of rows that had a feature."""

    counts: Annotated[Any, Field(np.float64, ("feature",), at_least=0.0, at_most=MOST_ROWS)]
    dropped: Annotated[Any, Field(DROPPED, at_least=0, at_most=MOST_ROWS)]

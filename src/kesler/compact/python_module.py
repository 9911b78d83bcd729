"""A predictor as the source of a Python module that needs NumPy only."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from kesler.compact.predictor import CompactPredictor
from kesler.compact.tables import Table
from kesler.compact.text import account, remark, spelt, wrapped

HEAD = '''\
"""{account}

`predict`, `decision_function` and `scores` take an array of shape (n_rows, {n_features}).

The features, in the order in which they were chosen:

{names}
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view  # noqa: F401

N_FEATURES = {n_features}
CLASSES = np.array({classes})
'''

TAIL = '''

def scores(X: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the score of each class for each row, an array of shape (n_rows, n_classes)."""
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != N_FEATURES:
        raise ValueError(f"X is of shape {rows.shape}, not (n_rows, {N_FEATURES})")
    values = np.hstack([function(rows, **table) for function, table in TABLES])
    return np.asarray(values @ WEIGHTS + INTERCEPT)


def decision_function(X: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the score of each class; of two classes, the second's less the first's."""
    found = scores(X)
    return found[:, 1] - found[:, 0] if len(CLASSES) == 2 else found


def predict(X: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """Return the label of highest score for each row."""
    return np.asarray(CLASSES[scores(X).argmax(axis=1)])
'''


def python_source(predictor: CompactPredictor) -> str:
    """Return the source of a module with `predict`, `decision_function` and `scores`.

    Scores are those of the estimator to rounding, in float64.
    """
    head = HEAD.format(
        account="\n".join(account(predictor)),
        n_features=predictor.n_features,
        classes=ascii(predictor.classes),
        names="\n".join(f"    {remark(name)}" for name in predictor.names),
    )
    functions = {table.evaluate: inspect.getsource(table.evaluate) for table in predictor.tables}
    tables = "".join(map(_pair, predictor.tables))
    constants = (
        f"WEIGHTS = {_literal(predictor.weights)}\n"
        f"INTERCEPT = {_literal(predictor.intercept)}\n"
        f"TABLES = [\n{tables}]\n"
    )
    return (
        head + "".join(f"\n\n{source}" for source in functions.values()) + "\n\n" + constants + TAIL
    )


def _pair(table: Table) -> str:
    """Return a function and what it is given."""
    parts = ", ".join(f'"{name}": {_literal(part)}' for name, part in table.parts.items())
    return f"({table.evaluate.__name__}, {{{parts}}}),\n"


def _literal(part: Any) -> str:
    if not isinstance(part, np.ndarray):
        return repr(part)
    numbers = wrapped(", ".join(spelt(part)))
    array = f"np.array([\n{numbers}\n], dtype=np.{part.dtype})"
    return array if part.ndim == 1 else f"{array}.reshape({part.shape})"

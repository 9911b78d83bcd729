"""The source of a predictor as a Python module that needs only NumPy."""

from __future__ import annotations

import inspect
import re
from textwrap import fill
from typing import Any

import numpy as np

from kesler.sharing.exports.predictor import CompactPredictor, Table

WIDTH = 99


def identifier(text: str) -> str:
    """Return text as an ASCII identifier, valid as a prefix of names in Python and C.

    Examples
    --------
    >>> identifier("my model-2"), identifier("2nd"), identifier("é")
    ('my_model_2', 'model_2nd', 'model_')
    """
    plain = re.sub(r"[^0-9A-Za-z]+", "_", text).lstrip("_")
    return plain if plain[:1].isalpha() else f"model_{plain}"


def remark(text: str) -> str:
    r"""Return text that is safe inside a comment, for feature names.

    Examples
    --------
    >>> remark('price */ "EUR"\n')
    'price * / "EUR"?'
    """
    plain = "".join(c if " " <= c <= "~" and c not in "\\?" else "?" for c in text)
    return plain.replace("*/", "* /").replace("/*", "/ *")


def account(predictor: CompactPredictor) -> list[str]:
    """Return the lines of the comment at the beginning of every export."""
    n_classes, n_chosen = len(predictor.classes), len(predictor.names)
    reads = predictor.reads
    numbers = ", ".join(map(str, reads)) if len(reads) < predictor.n_features else "all of them"
    return [
        f"{n_classes:,} classes from {n_chosen:,} chosen features of instances of "
        f"{predictor.n_features:,} numbers.",
        fill(f"Reads, counting from 0: {numbers}.", WIDTH),
        f"At most {predictor.cost:,} multiply-accumulates for each instance.",
        "Written by Kesler.",
    ]


def wrapped(numbers: str, indent: str = "    ") -> str:
    """Return a list of numbers wrapped to indented lines."""
    return fill(
        numbers,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def spelt(array: Any, single: bool = False) -> list[str]:
    """Return the numbers of an array as text, in full precision.

    Examples
    --------
    >>> spelt(np.array([0.1, 1e-9, 2.0])), spelt(np.array([0.1]), single=True), spelt([3])
    (['0.1', '1e-09', '2.0'], ['0.1f'], ['3'])
    """
    flat = np.asarray(array).ravel()
    if flat.dtype.kind in "iu":
        return [str(number) for number in flat.tolist()]
    if single:
        return [f"{number!s}f" for number in flat.astype(np.float32)]
    return [repr(number) for number in flat.tolist()]


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

    Scores are the estimator's up to rounding, in float64.
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
    """Return the source of a function and its arguments."""
    parts = ", ".join(f'"{name}": {_literal(part)}' for name, part in table.parts.items())
    return f"({table.evaluate.__name__}, {{{parts}}}),\n"


def _literal(part: Any) -> str:
    if not isinstance(part, np.ndarray):
        return repr(part)
    numbers = wrapped(", ".join(spelt(part)))
    array = f"np.array([\n{numbers}\n], dtype=np.{part.dtype})"
    return array if part.ndim == 1 else f"{array}.reshape({part.shape})"

"""Text: numbers, names and remarks as source code can hold them."""

from __future__ import annotations

import re
from textwrap import fill
from typing import Any

import numpy as np

from kesler.compact.predictor import CompactPredictor

WIDTH = 99


def identifier(text: str) -> str:
    """Return a name that Python and C take for the beginning of theirs.

    Examples
    --------
    >>> identifier("my model-2"), identifier("2nd"), identifier("é")
    ('my_model_2', 'model_2nd', 'model_')
    """
    plain = re.sub(r"[^0-9A-Za-z]+", "_", text).lstrip("_")
    return plain if plain[:1].isalpha() else f"model_{plain}"


def remark(text: str) -> str:
    r"""Return text as a comment can hold it, whatever a feature is called.

    Examples
    --------
    >>> remark('price */ "EUR"\n')
    'price * / "EUR"?'
    """
    plain = "".join(c if " " <= c <= "~" and c not in "\\?" else "?" for c in text)
    return plain.replace("*/", "* /").replace("/*", "/ *")


def account(predictor: CompactPredictor) -> list[str]:
    """Return the sentences at the head of every export."""
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
    """Return a list of numbers as indented lines."""
    return fill(
        numbers,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def spelt(array: Any, single: bool = False) -> list[str]:
    """Return the numbers of an array, in full precision.

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

"""Codes: one row of -1, 0 and 1 for each class, one column for each binary problem."""

from __future__ import annotations

from math import ceil, log2
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import hadamard

from kesler.errors import KeslerError

Code = npt.NDArray[np.int8]

MOST_EXHAUSTIVE = 12
# What is drawn for each class and bit (Allwein, Schapire and Singer 2000, Section 6), and how many
# bits there are for each of log2(n_classes).
RANDOM = {"dense": ((-1, 1), 10), "sparse": ((-1, 0, 0, 1), 15)}


def exhaustive_code(n_classes: int) -> Code:
    """Return every way to split the classes in two, 2^(n_classes - 1) - 1 columns.

    Examples
    --------
    >>> exhaustive_code(3)
    array([[ 1,  1,  1],
           [-1, -1,  1],
           [-1,  1, -1]], dtype=int8)
    """
    if n_classes > MOST_EXHAUSTIVE:
        raise KeslerError(
            f"code='exhaustive' has {2 ** (n_classes - 1) - 1:,} bits for {n_classes} classes: it "
            f"is for {MOST_EXHAUSTIVE} or fewer, choose 'dense' or 'hadamard'"
        )
    splits = np.arange(2 ** (n_classes - 1) - 1)
    bits = splits >> np.arange(n_classes - 2, -1, -1)[:, None] & 1
    return np.vstack([np.ones_like(splits), 2 * bits - 1]).astype(np.int8)


def hadamard_code(n_classes: int) -> Code:
    """Return rows of a Hadamard matrix of order n, any two of which differ in n / 2 bits.

    n is the least power of 2 that is no less than the number of classes; the first column, which
    is constant, is left out. No other is constant or tells what another does, since more than half
    of the rows are used.

    Examples
    --------
    >>> hadamard_code(4)
    array([[ 1,  1,  1],
           [-1,  1, -1],
           [ 1, -1, -1],
           [-1, -1,  1]], dtype=int8)
    """
    order = 1 << (n_classes - 1).bit_length()
    rows: Code = hadamard(order, dtype=np.int8)[:n_classes, 1:]
    return rows


def default_bits(kind: str, n_classes: int) -> int:
    """Return how many bits a random code has where none are asked for."""
    usual = ceil(RANDOM[kind][1] * log2(n_classes))
    return min(usual, most_bits(kind, n_classes))


def most_bits(kind: str, n_classes: int) -> int:
    """Return how many columns differ, without constant ones, a column and its opposite being one.

    Examples
    --------
    >>> most_bits("dense", 3), most_bits("sparse", 3)
    (3, 6)
    """
    if kind == "dense":
        return 2 ** (n_classes - 1) - 1
    return int((3**n_classes - 2 ** (n_classes + 1) + 1) // 2)


def random_code(
    kind: str, n_classes: int, n_bits: int, n_codes: int, random: np.random.RandomState
) -> Code:
    """Return the code of largest row distance among `n_codes` drawn at random."""
    drawn = (_random_columns(kind, n_classes, n_bits, random) for _ in range(n_codes))
    usable = [code for code in drawn if _tells_apart(code)]
    if not usable:
        raise KeslerError(
            f"none of n_codes={n_codes} random codes of n_bits={n_bits} tells all {n_classes} "
            "classes apart: raise n_bits"
        )
    return max(usable, key=row_distance)


def random_row(kind: str, code: Code, n_rows: int, random: np.random.RandomState) -> Code:
    """Return, of `n_rows` drawn at random, the row furthest from those of a code."""
    n_bits = code.shape[1]
    drawn = random.choice(RANDOM[kind][0], (n_rows, n_bits)).astype(np.int8)
    usable = [row for row in drawn if _tells_apart(np.vstack([code, row]))]
    if not usable:
        raise KeslerError(
            f"none of {n_rows} random rows of {n_bits} bits differs from those of the "
            f"{len(code)} classes met so far: raise n_bits"
        )
    return max(usable, key=lambda row: -int((code @ row.astype(np.int64)).max(initial=-n_bits)))


def row_distance(code: Code) -> float:
    """Return in how many bits any two rows differ at least, a 0 counting half; of one row inf.

    Examples
    --------
    >>> row_distance(exhaustive_code(4))
    4.0
    """
    words = code.astype(np.float32)  # which holds such sums exactly, and multiplies fast
    agreement = words @ words.T
    between = agreement[np.triu_indices(len(code), 1)]
    return float((code.shape[1] - between.max()) / 2) if len(between) else float("inf")


def require_code(code: Any, n_classes: int) -> Code:
    """Return a user's code as int8, or raise what is wrong with it."""
    try:
        array = np.asarray(code, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise KeslerError(f"code={code!r:.60} must be a name or a table ({error})") from None
    if array.ndim != 2 or len(array) != n_classes or not array.shape[1]:
        raise KeslerError(
            f"the code has the shape {array.shape}: it must have one row for each of the "
            f"{n_classes} classes, and one column for each bit"
        )
    if not np.isin(array, (-1, 0, 1)).all():
        raise KeslerError(
            "the code holds other values than -1, 0 and 1: each bit takes a class as negative, "
            "leaves it out or takes it as positive"
        )
    _require_columns(array)
    _require_rows(array)
    return array.astype(np.int8)


def _require_columns(array: npt.NDArray[np.float64]) -> None:
    constant = np.flatnonzero((array.max(axis=0) != 1) | (array.min(axis=0) != -1))
    if len(constant):
        raise KeslerError(
            f"column {constant[0]} of the code does not have both -1 and 1, so that there is "
            "nothing to tell apart: leave it out"
        )


def _require_rows(array: npt.NDArray[np.float64]) -> None:
    unused = np.flatnonzero(~array.any(axis=1))
    if len(unused):
        raise KeslerError(f"row {unused[0]} of the code is all 0: no bit learns its class")
    _, first, which = np.unique(array, axis=0, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[which.ravel()] != np.arange(len(array)))
    if len(again):
        raise KeslerError(
            f"rows {first[which.ravel()[again[0]]]} and {again[0]} of the code are equal: no bit "
            "tells their classes apart"
        )


def _tells_apart(code: Code) -> bool:
    """Whether every class is used, and no two have the same row."""
    return bool(code.any(axis=1).all()) and len(np.unique(code, axis=0)) == len(code)


def _random_columns(kind: str, n_classes: int, n_bits: int, random: np.random.RandomState) -> Code:
    """Return different columns with both signs, none the opposite of another."""
    columns: dict[bytes, None] = {}  # a set that keeps the order of drawing
    while len(columns) < n_bits:
        drawn = random.choice(RANDOM[kind][0], (2 * n_bits, n_classes)).astype(np.int8)
        drawn = drawn[(drawn.max(axis=1) == 1) & (drawn.min(axis=1) == -1)]
        leading = drawn[np.arange(len(drawn)), (drawn != 0).argmax(axis=1)]
        columns.update(dict.fromkeys(column.tobytes() for column in drawn * leading[:, None]))
    chosen = b"".join(list(columns)[:n_bits])
    return np.frombuffer(chosen, dtype=np.int8).reshape(n_bits, n_classes).T

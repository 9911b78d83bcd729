"""Labels: the names of classes."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Hashable, Sequence
from decimal import Decimal
from enum import Enum
from operator import is_
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Label = Hashable
MOST_FRACTIONS = 50
"""The most classes that are numbers with fractions, such as the grades 1.0, 1.3, 1.7."""


class NewClass:
    """The type of :data:`NEW`, which has no other object."""

    def __repr__(self) -> str:
        return "kesler.NEW"

    def __str__(self) -> str:
        return "(new)"

    def __reduce__(self) -> str:
        return "NEW"


NEW = NewClass()
"""A class that has not been seen yet, in probabilities and prediction sets.

It is not a label: learning it is refused.

Examples
--------
>>> import pickle
>>> pickle.loads(pickle.dumps(NEW)) is NEW, NEW
(True, kesler.NEW)
"""


def plain(label: Label) -> Label:
    """Return a number or text of NumPy or Arrow, a decimal or a member as the usual value.

    Examples
    --------
    >>> plain(np.int64(3)), plain(Decimal("3.00")), plain(Decimal("1.3")), plain(np.float32(1.3))
    (3, 3, 1.3, 1.3)
    """
    if type(label) is str:
        return label
    if isinstance(label, Decimal):
        return int(label) if label == label.to_integral_value() else float(label)
    if isinstance(label, (np.float16, np.float32)):
        return shortest(label)
    if isinstance(label, (np.number, np.bool_, np.character)):
        item: Label = label.item()
        return item
    value: Any = label.value if isinstance(label, Enum) else of_arrow(label)
    found: Label = label if value is label else class_of(value)
    return found


def shortest(number: np.floating[Any]) -> float:
    """Return the shortest decimal number that a type of few bits rounds to this one."""
    return float(str(number))


def of_arrow(value: Any) -> Any:
    """Return a scalar of Arrow as the value of Python; others as they are."""
    as_python = getattr(value, "as_py", None)
    if as_python is None:
        return value
    kind, found = NARROW.get(str(value.type)), as_python()
    return found if kind is None or found is None else shortest(kind(found))


NARROW: dict[str, type[np.floating[Any]]] = {
    "Float32": np.float32,
    "float": np.float32,
    "float[pyarrow]": np.float32,
    "halffloat": np.float16,
    "halffloat[pyarrow]": np.float16,
}
"""Types of few bits, as pandas, polars and Arrow name them, whose numbers Python lengthens."""


def decimals(array: npt.NDArray[Any]) -> list[Any]:
    """Return the values of an array, numbers of few bits as the shortest decimals of their type.

    Examples
    --------
    >>> decimals(np.array([1.3, 2], dtype=np.float32))
    [1.3, 2.0]
    """
    if array.dtype not in (np.float16, np.float32):
        found: list[Any] = array.tolist()
        return found
    values, places = np.unique(array, return_inverse=True)
    return [*map([*map(shortest, values)].__getitem__, places.tolist())]


def class_of(label: Any) -> Any:
    r"""Return the class that a label names, as all readers and estimators name it.

    A text has no white space around it and is in Unicode's form NFC, a NumPy value is the Python
    one, and a missing value is None.

    Examples
    --------
    >>> class_of(" spam\n"), class_of("007"), class_of(np.int64(7)), class_of(float("nan"))
    ('spam', '007', 7, None)
    """
    if isinstance(label, str) and not isinstance(label, Enum):
        text = label.strip()
        return str(text) if text.isascii() else unicodedata.normalize("NFC", text)
    if type(label) is int:
        return label
    return None if is_missing(label) else plain(label)


def classes_of(labels: list[Any]) -> list[Any]:
    """Return the class that each label names; all labels as they are if one is not hashable."""
    try:
        distinct = dict.fromkeys(labels)
    except TypeError:  # refused by the table of classes, which says which one
        return labels
    if {*map(type, distinct)} == {int}:
        return labels
    named = dict(zip(distinct, map(class_of, distinct), strict=True))
    if all(map(is_, named, named.values())):
        return labels
    return [named[label] for label in labels]


def require_few_fractions(new: Collection[Label], known: Collection[Label] = ()) -> None:
    """Raise if too many classes are numbers with fractions: measurements, not grades.

    Raises
    ------
    KeslerError
        If there are more than `MOST_FRACTIONS`, known ones included.
    """
    from kesler.errors import KeslerError

    fractions = [label for label in new if _is_fraction(label)]
    if fractions and len(fractions) + sum(map(_is_fraction, known)) > MOST_FRACTIONS:
        raise KeslerError(
            f"Unknown label type: label {fractions[-1]!r} is one of more than {MOST_FRACTIONS} "
            "different numbers with fractions, which are measurements and not classes: round or "
            "bin them, convert them to text, or use a regressor"
        )


def _is_fraction(label: Label) -> bool:
    return isinstance(label, float) and label % 1 != 0


def is_missing(label: Any) -> bool:
    """Return whether a value stands for none: None, NaN, or the NA and NaT of pandas.

    Examples
    --------
    >>> is_missing(None), is_missing(float("nan")), is_missing("nan"), is_missing(0)
    (True, True, False, False)
    """
    try:
        return label is None or not bool(label == label)
    except (TypeError, ArithmeticError):  # as the NA of pandas
        return True
    except ValueError:  # as an array
        return False


_ESCAPES = str.maketrans(
    {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    | {c: f"\\x{ord(c):02x}" for c in "\v\f\x1c\x1d\x1e\x85"}
    | {c: f"\\u{ord(c):04x}" for c in "\u2028\u2029"}
)


def name_in_line(label: Any) -> str:
    r"""Return the name of a class in a line of text, with line ends, tabs and backslashes escaped.

    Examples
    --------
    >>> print(name_in_line("line one\nline two"), name_in_line("a\\b"), name_in_line(7))
    line one\nline two a\\b 7
    """
    return str(label).translate(_ESCAPES)


# ---- the labels of highest score ----------------------------------------------------------------


Numbers = npt.NDArray[np.floating[Any]]


class TopLabel(NamedTuple):
    """One of the labels of highest score of a row.

    Parameters
    ----------
    label
        The class, the rank or the label.
    score : float
        Its score, as in `decision_function`.
    probability : float or None
        Its probability, as in `predict_proba`; None where an estimator has none.
    """

    label: Any
    score: float
    probability: float | None


def top_labels(
    labels: Sequence[Any], scores: Numbers, probabilities: Numbers | None, n: int
) -> list[list[TopLabel]]:
    """Return the n labels of highest score of each row, the highest first.

    Parameters
    ----------
    labels : sequence of k labels
    scores, probabilities : arrays of shape (n_rows, k)
        In the order of the labels; None if there are no probabilities.
    n : int of 1 or more

    Raises
    ------
    KeslerError
        If `n` is no such number.

    Examples
    --------
    >>> top_labels(["cat", "dog"], np.array([[0.5, 2.0]]), None, 1)
    [[TopLabel(label='dog', score=2.0, probability=None)]]
    """
    from kesler.errors import integer_of  # here, as kesler.NEW loads this module
    from kesler.metrics import highest

    chosen = highest(scores, integer_of("n", n, 1, why=": it is the number of labels of a row"))
    given: Any = [None] * len(chosen) if probabilities is None else probabilities
    return [
        [
            TopLabel(labels[i], float(row[i]), None if shares is None else float(shares[i]))
            for i in columns.tolist()
        ]
        for columns, row, shares in zip(chosen, scores, given, strict=True)
    ]

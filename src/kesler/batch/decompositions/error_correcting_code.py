"""Error-correcting codes: one binary learner for each bit of the classes' code words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, log2
from numbers import Integral
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import hadamard
from sklearn.base import clone
from sklearn.utils import check_random_state

from kesler.batch.decompositions.binary import (
    BinaryProblem,
    Decomposition,
    Examples,
    Floats,
    all_margins,
    fit_all,
    require_choice,
    teach_all,
)
from kesler.data.labels import Label
from kesler.errors import KeslerError
from kesler.learner.classes import ClassTable

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
            f"{len(code)} classes seen so far: raise n_bits"
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


FIXED = {"exhaustive": exhaustive_code, "hadamard": hadamard_code}
CLASSES_TO_COME = 64  # what random codes make bits for where no number of classes is declared


@dataclass(frozen=True)
class CodeBook:
    """The code word of each label; random codes may grow.

    Parameters
    ----------
    kind : "dense" or "sparse" of a code that can grow, else None.
    n_codes : how many words are drawn for a label that joins, of which the furthest is taken.
    random : what they are drawn from.
    labels : the labels that have words.
    code : int8 array of shape (n_labels, n_bits)
    """

    kind: str | None
    n_codes: int
    random: np.random.RandomState
    labels: tuple[Label, ...]
    code: Code

    @staticmethod
    def of(
        labels: Sequence[Label], code: Any, n_bits: int | None, n_codes: int, random_state: Any
    ) -> CodeBook:
        """Return the book of these labels; parameters are those of ErrorCorrectingCode."""
        random = check_random_state(random_state)
        _require_count("n_codes", n_codes)
        if not isinstance(code, str) or code in FIXED:
            words = _fixed_code(labels, code, n_bits)
            return CodeBook(None, n_codes, random, tuple(labels), words)
        if code not in RANDOM:
            known = ", ".join(repr(name) for name in (*RANDOM, *FIXED))
            raise KeslerError(f"code={code!r} is not known: choose one of {known}, or a table")
        if len(labels) < 2:
            width = default_bits(code, CLASSES_TO_COME) if n_bits is None else n_bits
            _require_count("n_bits", width)
            return CodeBook(code, n_codes, random, (), np.empty((0, width), dtype=np.int8))
        width = _random_width(code, len(labels), n_bits)
        words = random_code(code, len(labels), width, n_codes, random)
        return CodeBook(code, n_codes, random, tuple(labels), words)

    def including(self, labels: Sequence[Label]) -> CodeBook:
        """Return a book in which these labels have words too."""
        new = [label for label in labels if label not in self.labels]
        if not new:
            return self
        if self.kind is None:
            raise KeslerError(
                f"the label {new[0]!r} has no row in the code, which was made for "
                f"{list(self.labels)!r}: declare all classes, or choose code='dense'"
            )
        code = self.code
        for _ in new:
            code = np.vstack([code, random_row(self.kind, code, self.n_codes, self.random)])
        return replace(self, labels=(*self.labels, *new), code=code)

    def words(self, labels: Sequence[Label]) -> Code:
        """Return the words of these labels, one a row."""
        row = {label: number for number, label in enumerate(self.labels)}
        return self.code[[row[label] for label in labels]]


def _fixed_code(labels: Sequence[Label], code: Any, n_bits: int | None) -> Code:
    if n_bits is not None:
        raise KeslerError(
            f"n_bits={n_bits!r} is for codes that are drawn at random: leave it out, or choose "
            "code='dense' or 'sparse'"
        )
    if not labels:
        raise KeslerError(
            "this code has to know how many classes there will be: give partial_fit all of "
            "classes=, or choose code='dense'"
        )
    if not isinstance(code, str):
        return require_code(code, len(labels))
    if len(labels) < 2:
        raise KeslerError(f"code={code!r} needs two classes or more, not {list(labels)!r}")
    return FIXED[code](len(labels))


def _random_width(kind: str, n_classes: int, n_bits: int | None) -> int:
    if n_bits is None:
        return default_bits(kind, n_classes)
    _require_count("n_bits", n_bits)
    most = most_bits(kind, n_classes)
    if n_bits > most:
        raise KeslerError(
            f"n_bits={n_bits} is more than the {most} different bits that code={kind!r} has for "
            f"{n_classes} classes: ask for fewer, or leave it out"
        )
    return n_bits


def _require_count(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise KeslerError(f"{name}={value!r} must be an integer of 1 or more")


STEEPEST = 500.0  # e^500 and its sums are numbers still


def _hinge(margins: Floats) -> Floats:
    return np.maximum(0.0, 1.0 - margins)


def _exponential(margins: Floats) -> Floats:
    return np.exp(-np.clip(margins, -STEEPEST, STEEPEST))


def _logistic(margins: Floats) -> Floats:
    return np.logaddexp(0.0, -margins)


LOSSES: dict[str, Callable[[Floats], Floats]] = {
    "hinge": _hinge,
    "exponential": _exponential,
    "logistic": _logistic,
}


class ErrorCorrectingCode(Decomposition):
    r"""One binary learner for each bit of a code; the class of the nearest code word is predicted.

    Class r has the word :math:`M_r \in \{-1, 0, 1\}^b`. Learner s learns rows of classes with
    :math:`M_{rs} = 1` as positive, with -1 as negative, and no others, and

    .. math:: \hat y = \arg\min_r \sum_s L(M_{rs} f_s(x)), \qquad
        L(z) = \begin{cases}
            (1 - \operatorname{sign} z) / 2 & \text{Hamming} \\
            [1 - z]_+, \; e^{-z}, \; \ln(1 + e^{-z}) & \text{loss}
        \end{cases}

    Words that differ in d bits or more stand (d - 1) / 2 wrong bits.

    Parameters
    ----------
    estimator : scikit-learn classifier or None, default None
        The binary learner, as in :class:`~kesler.OneVsRest`.
    code : "dense", "sparse", "exhaustive", "hadamard" or array, default "dense"
        "dense" draws each entry from -1 and 1, "sparse" is 0 half of the time, which makes smaller
        problems; "exhaustive" has a bit for each way to split the classes in two, at most 12
        classes; "hadamard" has fewest bits for its distance, from n_classes - 1 to
        2 n_classes - 3. An array of shape (n_classes, n_bits) has a row for each class in the order
        of `classes_`.
    n_bits : int >= 1 or None, default None
        Bits of a random code, all of which differ. More take longer and correct more. None is
        10 log2(n_classes) of "dense" and 15 log2(n_classes) of "sparse", or fewer if there are not
        that many.
    n_codes : int >= 1, default 100
        How many random codes are drawn; the one of largest row distance is taken.
    decoding : "loss" or "hamming", default "loss"
        Whether margins count, or only their signs.
    loss : "logistic", "hinge" or "exponential", default "logistic"
        The loss of "loss": that which the binary learner minimises. Of "exponential", margins
        beyond 500 count as 500.
    random_state : int, RandomState or None, default None
        What random codes are drawn from.
    n_jobs : int or None, default None
        How many binary learners learn or predict at a time, as joblib has it.

    Attributes
    ----------
    code_ : int8 array of shape (n_classes, n_bits), in the order of `classes_`.
    distance_ : float
        In how many bits two rows of `code_` differ at least; a 0 counts half.
    estimators_ : list of n_bits binary learners.
    n_evaluations_ : int
        Binary learners asked for each prediction: those that tell some of `classes_` apart, which
        after `fit` are all.
    classes_, classes_by_code_, n_features_in_, feature_names_in_
        As in :class:`~kesler.OneVsRest`.

    Raises
    ------
    KeslerError
        If a parameter is out of its range, the code has equal rows, a row of zeros, a column
        without both signs or not one row for each class, and as for :class:`~kesler.OneVsRest`.

    Notes
    -----
    Of equal losses, the class seen first wins. A margin of 0 counts as half a wrong bit in Hamming
    decoding, and so does a 0 of the code, in either decoding as the loss of margin 0.

    `partial_fit` needs to know how many classes there will be if the code is fixed: declare them.
    Random codes draw a further row for a class that was not declared, the furthest from the others
    of `n_codes`; if none are declared, they have bits for 64 classes. A bit learns from its first
    row on, and is asked once the classes seen have both signs in it.

    `fit` costs n_bits times the binary learner on all rows, on half of them if "sparse".

    References
    ----------
    Dietterich and Bakiri (1995), the codes; Allwein, Schapire and Singer (2000), zeros and losses.

    Examples
    --------
    >>> from kesler import ErrorCorrectingCode
    >>> X, y = [[0, 0], [0, 5], [5, 0], [5, 5]] * 5, ["ape", "bee", "cat", "dog"] * 5
    >>> animals = ErrorCorrectingCode(code="hadamard").fit(X, y)
    >>> animals.code_.shape, animals.distance_
    ((4, 3), 2.0)
    """

    def __init__(
        self,
        estimator: Any = None,
        code: Literal["dense", "sparse", "exhaustive", "hadamard"] | npt.ArrayLike = "dense",
        n_bits: int | None = None,
        n_codes: int = 100,
        decoding: Literal["loss", "hamming"] = "loss",
        loss: Literal["logistic", "hinge", "exponential"] = "logistic",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.code = code
        self.n_bits = n_bits
        self.n_codes = n_codes
        self.decoding = decoding
        self.loss = loss
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def code_(self) -> Code:
        """The code words, in the order of `classes_`."""
        return self._words()[self._known().order]

    @property
    def distance_(self) -> float:
        """In how many bits two rows of `code_` differ at least."""
        return row_distance(self._words())

    @property
    def n_evaluations_(self) -> int:
        """The binary learners that one prediction asks."""
        return int(_asked(self._words()).sum())

    # ---- learning ---------------------------------------------------------------------------

    def _fit(self, examples: Examples) -> None:
        self._require_decoding()
        self._book = self._book_of(self._table.in_order.tolist())
        problems = _problems(examples, self._words())
        self.estimators_ = fit_all(self._learner(), problems, self.n_jobs)

    def _declare(self, labels: list[Any]) -> None:
        if not self.__sklearn_is_fitted__():
            table = ClassTable()
            table.encode(labels)
            self._book = self._book_of(table.in_order.tolist())

    def _teach(self, examples: Examples, n_before: int) -> None:
        self._require_decoding()
        if "_book" not in self.__dict__:
            self._book = self._book_of([])
        if not n_before:
            n_bits = self._book.code.shape[1]
            self.estimators_ = [clone(self._learner()) for _ in range(n_bits)]
        self._book = self._book.including(self._table.labels)
        problems = _problems(examples, self._words())
        self.estimators_ = teach_all(self.estimators_, problems, self.n_jobs)

    def _book_of(self, labels: list[Any]) -> CodeBook:
        return CodeBook.of(labels, self.code, self.n_bits, self.n_codes, self.random_state)

    # ---- predicting -------------------------------------------------------------------------

    def _scores(self, X: Any) -> Floats:
        self._require_decoding()
        words = self._words()
        asked = np.flatnonzero(_asked(words))
        words = words[:, asked].astype(np.float64)
        margins = all_margins([self.estimators_[bit] for bit in asked], X, self.n_jobs)
        if self.decoding == "hamming":
            agreement: Floats = np.sign(margins) @ words.T
            return (agreement - len(asked)) / 2
        loss = LOSSES[self.loss]
        return -(
            loss(margins) @ (words.T == 1)
            + loss(-margins) @ (words.T == -1)
            + loss(np.zeros(1)) * (words == 0).sum(axis=1)
        )

    def _words(self) -> Code:
        """Return the code words of the classes seen, by number."""
        return self._book.words(self._known().labels)

    def _require_decoding(self) -> None:
        require_choice("decoding", self.decoding, ("loss", "hamming"))
        require_choice("loss", self.loss, LOSSES)


def _asked(words: Code) -> npt.NDArray[np.bool_]:
    """Return which bits tell some of the classes apart."""
    found: npt.NDArray[np.bool_] = (words == 1).any(axis=0) & (words == -1).any(axis=0)
    return found


def _problems(examples: Examples, words: Code) -> Iterator[BinaryProblem]:
    """Yield the problem of each bit, without the rows that it does not use."""
    for bit in words.T:
        signs = bit[examples.codes]
        used = np.flatnonzero(signs)
        yield examples[used].problem(signs[used] > 0)

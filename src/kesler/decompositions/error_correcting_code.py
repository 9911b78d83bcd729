"""Error-correcting output codes: one binary learner per bit of the classes' code words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import hadamard
from sklearn.base import clone
from sklearn.utils import check_random_state

from kesler.data.labels import Label
from kesler.decompositions.binary import (
    BinaryProblem,
    Decomposition,
    Examples,
    Floats,
    all_margins,
    fit_all,
    teach_all,
)
from kesler.errors import KeslerError, integer_of, keep_settings, require_choice
from kesler.learner.classes import ClassTable

Code = npt.NDArray[np.int8]

MOST_EXHAUSTIVE = 12
# The values drawn for each class and bit (Allwein, Schapire and Singer 2000, Section 6), and the
# number of bits divided by log2(n_classes).
RANDOM = {"dense": ((-1, 1), 10), "sparse": ((-1, 0, 0, 1), 15)}


def exhaustive_code(n_classes: int) -> Code:
    """Return all splits of the classes in two, 2^(n_classes - 1) - 1 columns.

    Examples
    --------
    >>> exhaustive_code(3)
    array([[ 1,  1,  1],
           [-1, -1,  1],
           [-1,  1, -1]], dtype=int8)
    """
    if n_classes > MOST_EXHAUSTIVE:
        raise KeslerError(
            f"code='exhaustive' has {2 ** (n_classes - 1) - 1:,} bits for {n_classes} classes, but "
            f"{MOST_EXHAUSTIVE} classes are the maximum: choose 'dense' or 'hadamard'"
        )
    splits = np.arange(2 ** (n_classes - 1) - 1)
    bits = splits >> np.arange(n_classes - 2, -1, -1)[:, None] & 1
    return np.vstack([np.ones_like(splits), 2 * bits - 1]).astype(np.int8)


def hadamard_code(n_classes: int) -> Code:
    """Return rows of a Hadamard matrix of order n, any two of which differ in n / 2 bits.

    n is the smallest power of 2 that is at least the number of classes; the first column, which is
    constant, is left out. No other column is constant or repeats another, since more than half of
    the rows are used.

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
    """Return the default number of bits of a random code."""
    usual = ceil(RANDOM[kind][1] * log2(n_classes))
    return min(usual, most_bits(kind, n_classes))


def most_bits(kind: str, n_classes: int) -> int:
    """Return the number of distinct columns without constant ones, up to sign.

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
    """Return the code with the largest row distance among `n_codes` random codes."""
    drawn = (_random_columns(kind, n_classes, n_bits, random) for _ in range(n_codes))
    usable = [code for code in drawn if _tells_apart(code)]
    if not usable:
        raise KeslerError(
            f"none of n_codes={n_codes} random codes of n_bits={n_bits} distinguishes all "
            f"{n_classes} classes: raise n_bits"
        )
    return max(usable, key=row_distance)


def random_row(kind: str, code: Code, n_rows: int, random: np.random.RandomState) -> Code:
    """Return the row that is furthest from those of a code, among `n_rows` random rows."""
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
    """Return the minimum number of bits in which two rows differ; a 0 counts half.

    The distance of a code with one row is inf.

    Examples
    --------
    >>> row_distance(exhaustive_code(4))
    4.0
    """
    words = code.astype(np.float32)  # exact for such sums, and fast to multiply
    agreement = words @ words.T
    between = agreement[np.triu_indices(len(code), 1)]
    return float((code.shape[1] - between.max()) / 2) if len(between) else float("inf")


def require_code(code: Any, n_classes: int) -> Code:
    """Return a user's code as int8; raise if it is invalid."""
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
            "the code has values other than -1, 0 and 1: give -1 where a class is negative, 0 "
            "where it is left out, and 1 where it is positive"
        )
    _require_columns(array)
    _require_rows(array)
    return array.astype(np.int8)


def _require_columns(array: npt.NDArray[np.float64]) -> None:
    constant = np.flatnonzero((array.max(axis=0) != 1) | (array.min(axis=0) != -1))
    if len(constant):
        raise KeslerError(
            f"column {constant[0]} of the code does not have both -1 and 1, so its binary problem "
            "has one class only: leave it out"
        )


def _require_rows(array: npt.NDArray[np.float64]) -> None:
    unused = np.flatnonzero(~array.any(axis=1))
    if len(unused):
        raise KeslerError(
            f"row {unused[0]} of the code is all 0, so no bit uses its class: set a -1 or 1"
        )
    _, first, which = np.unique(array, axis=0, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[which.ravel()] != np.arange(len(array)))
    if len(again):
        raise KeslerError(
            f"rows {first[which.ravel()[again[0]]]} and {again[0]} of the code are equal, so no "
            "bit distinguishes their classes: make them differ"
        )


def _tells_apart(code: Code) -> bool:
    """Return whether every class is used and no two classes have the same row."""
    return bool(code.any(axis=1).all()) and len(np.unique(code, axis=0)) == len(code)


def _random_columns(kind: str, n_classes: int, n_bits: int, random: np.random.RandomState) -> Code:
    """Return distinct columns with both signs, none the negation of another."""
    columns: dict[bytes, None] = {}  # an ordered set
    while len(columns) < n_bits:
        drawn = random.choice(RANDOM[kind][0], (2 * n_bits, n_classes)).astype(np.int8)
        drawn = drawn[(drawn.max(axis=1) == 1) & (drawn.min(axis=1) == -1)]
        leading = drawn[np.arange(len(drawn)), (drawn != 0).argmax(axis=1)]
        columns.update(dict.fromkeys(column.tobytes() for column in drawn * leading[:, None]))
    chosen = b"".join(list(columns)[:n_bits])
    return np.frombuffer(chosen, dtype=np.int8).reshape(n_bits, n_classes).T


FIXED = {"exhaustive": exhaustive_code, "hadamard": hadamard_code}
CLASSES_TO_COME = 64  # the assumed number of classes of random codes if none is declared


@dataclass(frozen=True)
class CodeBook:
    """The code word of each label; random codes can be extended.

    Parameters
    ----------
    kind : "dense" or "sparse" for a code that can be extended, else None.
    n_codes : number of words drawn for a new label, of which the furthest is used.
    random : random number generator.
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
        """Return the code book of these labels; the parameters are ErrorCorrectingCode's."""
        random = check_random_state(random_state)
        integer_of("n_codes", n_codes, 1)
        if not isinstance(code, str) or code in FIXED:
            words = _fixed_code(labels, code, n_bits)
            return CodeBook(None, n_codes, random, tuple(labels), words)
        if code not in RANDOM:
            known = ", ".join(repr(name) for name in (*RANDOM, *FIXED))
            raise KeslerError(f"code={code!r} is unknown: choose one of {known}, or a table")
        if len(labels) < 2:
            width = default_bits(code, CLASSES_TO_COME) if n_bits is None else n_bits
            integer_of("n_bits", width, 1)
            return CodeBook(code, n_codes, random, (), np.empty((0, width), dtype=np.int8))
        width = _random_width(code, len(labels), n_bits)
        words = random_code(code, len(labels), width, n_codes, random)
        return CodeBook(code, n_codes, random, tuple(labels), words)

    def including(self, labels: Sequence[Label]) -> CodeBook:
        """Return a code book extended by words for these labels."""
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
        """Return the words of these labels, one per row."""
        row = {label: number for number, label in enumerate(self.labels)}
        return self.code[[row[label] for label in labels]]


def _fixed_code(labels: Sequence[Label], code: Any, n_bits: int | None) -> Code:
    if n_bits is not None:
        raise KeslerError(
            f"n_bits={n_bits!r} applies to random codes only: leave it out, or choose "
            "code='dense' or 'sparse'"
        )
    if not labels:
        raise KeslerError(
            "this code needs to know how many classes there will be: give partial_fit all of "
            "them as classes=, or choose code='dense'"
        )
    if not isinstance(code, str):
        return require_code(code, len(labels))
    if len(labels) < 2:
        raise KeslerError(f"code={code!r} needs two classes or more, not {list(labels)!r}")
    return FIXED[code](len(labels))


def _random_width(kind: str, n_classes: int, n_bits: int | None) -> int:
    if n_bits is None:
        return default_bits(kind, n_classes)
    integer_of("n_bits", n_bits, 1)
    most = most_bits(kind, n_classes)
    if n_bits > most:
        raise KeslerError(
            f"n_bits={n_bits} is more than the {most} distinct bits that code={kind!r} has for "
            f"{n_classes} classes: give fewer, or leave it out"
        )
    return n_bits


STEEPEST = 500.0  # e^500 and sums of it are finite


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
    r"""Error-correcting output codes: one binary learner per bit of the classes' code words.

    Class r has the word :math:`M_r \in \{-1, 0, 1\}^b`. Learner s is trained on the rows of classes
    with :math:`M_{rs} = 1` as positive examples and with -1 as negative ones. The class with the
    nearest word is predicted:

    .. math:: \hat y = \arg\min_r \sum_s L(M_{rs} f_s(x)), \qquad
        L(z) = \begin{cases}
            (1 - \operatorname{sign} z) / 2 & \text{Hamming} \\
            [1 - z]_+, \; e^{-z}, \; \ln(1 + e^{-z}) & \text{loss}
        \end{cases}

    If words differ in at least d bits, (d - 1) / 2 wrong bits are corrected.

    Parameters
    ----------
    estimator : scikit-learn classifier or None, default None
        The binary learner, as in :class:`~kesler.OneVsRest`.
    code : "dense", "sparse", "exhaustive", "hadamard" or array, default "dense"
        "dense" draws each entry from -1 and 1; "sparse" draws 0 with probability 1/2, which makes
        the binary problems smaller; "exhaustive" has one bit for each split of the classes in two,
        for at most 12 classes; "hadamard" has the fewest bits for its distance, from n_classes - 1
        to 2 n_classes - 3. An array of shape (n_classes, n_bits) has one row for each class, in
        the order of `classes_`.
    n_bits : int >= 1 or None, default None
        Number of bits of a random code, all distinct. More bits correct more errors and take
        longer. None is 10 log2(n_classes) for "dense" and 15 log2(n_classes) for "sparse", or the
        number of distinct bits if that is smaller.
    n_codes : int >= 1, default 100
        Number of random codes that are drawn; the one with the largest row distance is used.
    decoding : "loss" or "hamming", default "loss"
        Whether margins are used, or only their signs.
    loss : "logistic", "hinge" or "exponential", default "logistic"
        The loss for decoding="loss": choose the one that the binary learner minimises. For
        "exponential", margins are clipped to [-500, 500].
    random_state : int, RandomState or None, default None
        Controls the random codes.
    n_jobs : int or None, default None
        Number of binary learners that are fitted, or predict, in parallel, as in joblib.

    Attributes
    ----------
    code_ : int8 array of shape (n_classes, n_bits), in the order of `classes_`.
    distance_ : float
        The minimum number of bits in which two rows of `code_` differ; a 0 counts half.
    estimators_ : list of n_bits binary learners.
    n_evaluations_ : int
        Binary learners evaluated per prediction: those that distinguish some of `classes_`, which
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
    Among equal losses, the class seen first wins. In Hamming decoding, a margin of 0 counts as half
    a wrong bit. A 0 of the code counts as the loss at margin 0, which in Hamming decoding is also
    half a wrong bit.

    With a fixed code, `partial_fit` needs all classes in advance: declare them in the first call.
    For an undeclared class, random codes draw `n_codes` further rows and use the one furthest from
    the others; if no class is declared, they have bits for 64 classes. A bit is trained from its
    first row on, and used once the classes seen have both signs in it.

    `fit` costs n_bits fits of the binary learner, on all rows or, for "sparse", on half of them.

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
        keep_settings(self, locals())

    @property
    def code_(self) -> Code:
        """The code words, in the order of `classes_`."""
        return self._words()[self._known().order]

    @property
    def distance_(self) -> float:
        """The minimum number of bits in which two rows of `code_` differ."""
        return row_distance(self._words())

    @property
    def n_evaluations_(self) -> int:
        """Number of binary learners evaluated per prediction."""
        return int(_asked(self._words()).sum())

    # ---- learning ---------------------------------------------------------------------------

    def _fit(self, examples: Examples) -> None:
        self._require_decoding()
        self._book = self._book_of(self._table.in_order.tolist())
        words = self._words()
        problems = _problems(examples, words)
        self.estimators_ = fit_all(self._learner(), problems, words.shape[1], self.n_jobs)

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
        """Return the code words of the classes seen, by class number."""
        return self._book.words(self._known().labels)

    def _require_decoding(self) -> None:
        require_choice("decoding", self.decoding, ("loss", "hamming"))
        require_choice("loss", self.loss, LOSSES)


def _asked(words: Code) -> npt.NDArray[np.bool_]:
    """Return which bits distinguish some of the classes."""
    found: npt.NDArray[np.bool_] = (words == 1).any(axis=0) & (words == -1).any(axis=0)
    return found


def _problems(examples: Examples, words: Code) -> Iterator[BinaryProblem]:
    """Yield the binary problem of each bit, without rows of classes that it leaves out."""
    for bit in words.T:
        signs = bit[examples.codes]
        used = np.flatnonzero(signs)
        yield examples[used].problem(signs[used] > 0)

"""Error-correcting codes: one binary learner for each bit of the classes' code words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from kesler.classes import ClassTable
from kesler.decompositions.binary import (
    BinaryProblem,
    Decomposition,
    Examples,
    Floats,
    all_margins,
    fit_all,
    require_choice,
    teach_all,
)
from kesler.decompositions.code_book import CodeBook
from kesler.decompositions.codes import Code, row_distance

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
    Of equal losses, the class met first wins. A margin of 0 counts as half a wrong bit in Hamming
    decoding, and so does a 0 of the code, in either decoding as the loss of margin 0.

    `partial_fit` needs to know how many classes there will be if the code is fixed: declare them.
    Random codes draw a further row for a class that was not declared, the furthest from the others
    of `n_codes`; if none are declared, they have bits for 64 classes. A bit learns from its first
    row on, and is asked once the classes met have both signs in it.

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
        """Return the code words of the classes met, by number."""
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

"""Explanations: the contributions of the features of a row to the score of a class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label, name_in_line
from kesler.errors import KeslerError

INTERCEPT, BASELINE = "intercept", "baseline"
REMAINDER = "others"
LABEL, RIVAL = range(2)  # the classes of the terms
OWN, SHARED = range(2)  # the hypotheses
NAME_WIDTH = 40  # longer names are cut in tables


class Contribution(NamedTuple):
    r"""What a feature, a word, a pair of words or a cell adds to the score of a class.

    Parameters
    ----------
    feature : str or int
        The name of the feature, or its position if features have no names; a word or words with
        spaces between, behind the name of their column where a table has several; the name of the
        column of another cell, with the category or the date in it.
    value : float or None
        The value of the feature in the row, before preprocessing; the number in a cell; the
        similarity of a support vector; None for sums over several features and for a baseline.
    own : float
        What hypotheses of the class, or of its groups, add to its score.
    shared : float
        What hypotheses that all classes share add to its score.
    rival : float
        What the feature adds to the score of the rival; 0 without a rival.
    n_features : int, default 1
        The number of features that it is the sum of, or of words, pairs and cells; one of these
        counts as one feature, whatever it is the sum of.
    mean : float or None, default None
        The mean of the numbers of a column over the rows learnt so far, with which the number in a
        cell can be compared; None for all else, and where the model does not keep it.

    Examples
    --------
    >>> cash = Contribution("cash", 1.0, own=0.5, shared=0.25, rival=-0.25)
    >>> cash.score, cash.margin, cash.label
    (0.75, 1.0, 'cash')
    >>> Contribution(3, 1.0, own=0.5, shared=0.25, rival=0.0).label
    'feature 3'
    """

    feature: str | int
    value: float | None
    own: float
    shared: float
    rival: float
    n_features: int = 1
    mean: float | None = None

    @property
    def score(self) -> float:
        """The contribution to the score of the class: own + shared."""
        return self.own + self.shared

    @property
    def margin(self) -> float:
        """The contribution to the score of the class minus that of the rival."""
        return self.score - self.rival

    @property
    def label(self) -> str:
        """The name of the feature, "feature 3" for position 3, "12 others" for a sum."""
        if self.feature == REMAINDER and self.value is None:
            return f"{self.n_features} {'other' if self.n_features == 1 else 'others'}"
        return self.feature if isinstance(self.feature, str) else f"feature {self.feature}"

    @property
    def written(self) -> str:
        """The value, with the mean that it can be compared with: "714 (mean 310)"."""
        mean = "" if self.mean is None else f" (mean {self.mean:.4g})"
        return "" if self.value is None else f"{self.value:.4g}{mean}"

    def to_dict(self) -> dict[str, Any]:
        """Return the contribution as a dictionary that JSON can hold."""
        return {
            "feature": self.feature,
            "value": self.value,
            "own": self.own,
            "shared": self.shared,
            "score": self.score,
            "rival": self.rival,
            "margin": self.margin,
            "n_features": self.n_features,
            "mean": self.mean,
        }


class Span(NamedTuple):
    """A word in a text, and what its features contribute.

    Parameters
    ----------
    start, end : int
        Where the word is in the text.
    margin : float
        What it contributes to the margin, with its part of the pairs that it is in.
    """

    start: int
    end: int
    margin: float


class MarkedText(NamedTuple):
    """A text of a row, with what each of its words contributes.

    Parameters
    ----------
    column : str or None
        The column that the text is of; None for a row that is a text.
    text : str
        The text.
    spans : tuple of Span
        Its words in their order, and the characters of scripts without spaces. Their margins sum to
        the contributions of the words and the pairs of the text. Empty where characters cannot be
        told apart after they were brought into one form of Unicode.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> model = OnlineClassifier().fit(["a lost card", "exchange rates"] * 5, ["card", "rate"] * 5)
    >>> marked = model.explain_one("my lost card").texts[0]
    >>> [marked.text[span.start : span.end] for span in marked.spans if span.margin > 0]
    ['lost', 'card']
    """

    column: str | None
    text: str
    spans: tuple[Span, ...]


class Marks(Protocol):
    """What computes the marked texts of a row."""

    def texts(self) -> tuple[MarkedText, ...]:
        """Return the texts of the row, with what each of their words contributes."""
        ...


@dataclass(frozen=True, slots=True)
class Explanation:
    r"""Why a row has its score of one class, and its margin over another.

    With :math:`c_{ir}` the contribution of feature i to the score of class r,

    .. math:: h(x, r) = c_{0r} + \sum_i c_{ir}, \quad
        h(x, r) - h(x, s) = (c_{0r} - c_{0s}) + \sum_i (c_{ir} - c_{is})

    up to rounding, where :math:`c_{0r}` is the intercept or the baseline.

    Parameters
    ----------
    label : label
        The class that is explained.
    rival : label or None
        The class that it is compared with; None if only one is known.
    score, rival_score : float, float or None
        Their scores, as those of `decision_function`; None without a rival.
    contributions : tuple of Contribution
        The largest contributions to the margin (to the score if there is no rival) in absolute
        value, largest first: of the words of texts, their pairs and the other cells of a table; of
        single features if these were asked for, or if rows are numbers.
    remainder : Contribution
        The sum of all others, whose number is its `n_features`.
    intercept : Contribution
        What no feature adds: the intercept, or the scores of a baseline ("baseline") where
        contributions are differences from one.
    by_feature : bool, default True
        Whether single features were asked for; if so, `str` has a column for each part of a
        contribution.
    marks : Marks or None, default None
        What computes `texts`; None for a row without texts.

    Notes
    -----
    Texts are learnt by their words, pairs of words and runs of characters. A run is divided among
    the words that it stands in by its letters in each, and a word has the sum of what is its own.
    Where a script has no spaces between words, words are the characters and the runs of them that
    are features. A cell of a number, a date, a category or a vector has the sum of its features.

    How contributions of features are computed depends on the learner.

    - Where hypotheses are weights, :math:`c_{ir} = x_i (w_i^r + u_i \phi_i(x, r))` of the
      preprocessed row x, with own weights w (`own`) and shared weights u over a feature map
      (`shared`). Z-scores and bins belong to their column.
    - Over a kernel, "features" are the support vectors: coefficient times similarity.
    - Where a feature of the trial mixes columns (random Fourier features, pairs), and where an
      ensemble mixes probabilities, columns are replaced one after another by those of the row,
      from a baseline: the means of the columns so far, or zeros where the learner keeps none. The
      contribution of a column is the mean change of the score over random orders and their
      reverses, which estimates Shapley values; the sum over columns is exact for any orders.
      `own` then contains all that an ensemble adds.

    References
    ----------
    Štrumbelj and Kononenko (2014), "Explaining prediction models and individual predictions with
    feature contributions"; Mitchell, Cooper, Frank and Holmes (2022), "Sampling permutations for
    Shapley value estimation", for antithetic pairs.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> X, y = [[2.0, 0.0], [0.0, 2.0], [2.0, 1.0]], ["a", "b", "a"]
    >>> model = OnlineClassifier("multi", update="perceptron", on_new_class="learn").fit(X, y)
    >>> why = model.explain_one([1.0, 0.5])
    >>> why.label, why.rival, why.margin
    ('a', 'b', 3.0)
    >>> print(why)
    a: score 1.5, 3 above b (-1.5)
    reason     value  contribution
    feature 0      1             4
    feature 1    0.5            -1
    intercept      0             0
    >>> print(model.explain_one([1.0, 0.5], features=True))
    a: score 1.5, 3 above b (-1.5)
    feature    value   own  shared  rival  margin
    feature 0      1     2       0     -2       4
    feature 1    0.5  -0.5       0    0.5      -1
    intercept      0     0       0      0       0
    """

    label: Label
    rival: Label | None
    score: float
    rival_score: float | None
    contributions: tuple[Contribution, ...]
    remainder: Contribution
    intercept: Contribution
    by_feature: bool = True
    marks: Marks | None = field(default=None, repr=False, compare=False)

    @property
    def margin(self) -> float:
        """The score of the class minus that of the rival; its score if there is no rival."""
        return self.score - (self.rival_score or 0.0)

    @property
    def texts(self) -> tuple[MarkedText, ...]:
        """The texts of the row, with what each of their words contributes; computed each time."""
        return () if self.marks is None else self.marks.texts()

    @property
    def summands(self) -> tuple[Contribution, ...]:
        """All that the scores are the sums of: contributions, remainder and intercept."""
        return (*self.contributions, self.remainder, self.intercept)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dictionary, that JSON can hold if it can hold the labels."""
        return {
            "label": self.label,
            "rival": self.rival,
            "score": self.score,
            "rival_score": self.rival_score,
            "margin": self.margin,
            "contributions": [each.to_dict() for each in self.contributions],
            "remainder": self.remainder.to_dict(),
            "intercept": self.intercept.to_dict(),
        }

    def to_frame(self) -> Any:
        """Return the summands as a pandas data frame, one row for each.

        Returns
        -------
        pandas.DataFrame with the columns of :meth:`Contribution.to_dict`.

        Raises
        ------
        KeslerError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise KeslerError(
                "to_frame needs pandas: install it with pip install pandas"
            ) from error
        return pd.DataFrame([each.to_dict() for each in self.summands])

    def __str__(self) -> str:
        shown = [each for each in self.summands if each.n_features or each is self.intercept]
        lines = [*zip(*self._columns(shown), strict=True)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([self.headline, *table])

    def _columns(self, shown: Sequence[Contribution]) -> list[list[str]]:
        """Return the columns of the table, each with its name first."""
        names, values = [_cut(each.label) for each in shown], [each.written for each in shown]
        margins = [each.margin for each in shown]
        if self.by_feature:
            parts = {
                "own": [each.own for each in shown],
                "shared": [each.shared for each in shown],
                "rival": [each.rival for each in shown],
                "margin": margins,
            }
            return [["feature", *names], ["value", *values], *_numbers(parts)]
        has_values = any(each.written for each in self.contributions)
        given = [["value", *values]] if has_values else []
        return [["reason", *names], *given, *_numbers({"contribution": margins})]

    @property
    def headline(self) -> str:
        """One line: the class, its score, and its margin over the rival."""
        own = f"{name_in_line(self.label)}: score {self.score:.4g}"
        if self.rival_score is None:
            return own
        apart = f"{abs(self.margin):.4g} {'above' if self.margin >= 0 else 'below'}"
        return f"{own}, {apart} {name_in_line(self.rival)} ({self.rival_score:.4g})"


def _cut(name: str) -> str:
    name = name_in_line(name)
    return name if len(name) <= NAME_WIDTH else name[: NAME_WIDTH - 3] + "..."


def _numbers(columns: Mapping[str, Iterable[float]]) -> list[list[str]]:
    """Return columns of numbers as they are printed, each with its name first."""
    return [[name, *(f"{number:.4g}" for number in each)] for name, each in columns.items()]


Naming = Callable[[int, int, bool], str | int]
"""Returns the name of a feature or sub-expert, given its place among the terms of the row, its
number, and whether it is a feature."""


class Terms(NamedTuple):
    """The contributions of all features of a row, before the largest are chosen.

    numbers : (n,), of features, sub-experts or support vectors; values : (n,), NaN for none; table
    : (n, 2, 2), what each adds to the scores of the label and of the rival, by own and by shared
    hypotheses; n_features : how many are features, which come first; start : (2, 2), what no
    feature adds; start_value : the value of the constant feature, None for a baseline; name_of :
    the name of a number, None if features are named by the estimator.
    """

    numbers: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    table: npt.NDArray[np.float64]
    n_features: int
    start: npt.NDArray[np.float64]
    start_value: float | None
    name_of: Callable[[int], str] | None = None

    def explained(
        self,
        label: Label,
        rival: Label | None,
        scores: tuple[float, float | None],
        n: int,
        name_of: Naming,
        *,
        by_feature: bool,
        marks: Marks | None = None,
    ) -> Explanation:
        """Return the explanation with the n largest contributions.

        name_of : names features and sub-experts; other parameters are those of `Explanation`.
        """
        order = np.argsort(-np.abs(self.margins), kind="stable")
        top, rest = order[:n], order[n:]
        chosen = zip(self.values[top].tolist(), self.table[top].tolist(), strict=True)
        names = [self._name(i, name_of) for i in top.tolist()]
        start_name = BASELINE if self.start_value is None else INTERCEPT
        return Explanation(
            label,
            rival,
            *scores,
            tuple(map(_contribution, names, chosen)),
            summed(REMAINDER, None, self.table[rest].sum(axis=0), len(rest)),
            summed(start_name, self.start_value, self.start, 0),
            by_feature,
            marks,
        )

    @property
    def margins(self) -> npt.NDArray[np.float64]:
        """What each adds to the margin."""
        own, shared = self.table[:, LABEL, OWN], self.table[:, LABEL, SHARED]
        return own + shared - self.table[:, RIVAL, OWN] - self.table[:, RIVAL, SHARED]

    def names(self, name_of: Naming) -> list[str | int]:
        """Return the names of all."""
        if self.name_of is not None:
            return [self.name_of(i) for i in range(len(self.numbers))]
        n = self.n_features
        return [name_of(i, number, i < n) for i, number in enumerate(self.numbers.tolist())]

    def _name(self, i: int, name_of: Naming) -> str | int:
        if self.name_of is not None:
            return self.name_of(i)
        return name_of(i, int(self.numbers[i]), i < self.n_features)

    def moved_to(self, score: float, rival_score: float | None) -> Terms:
        """Return terms whose start contains what a decision adds to the sums of the others."""
        start = self.start.copy()
        sums = start.sum(axis=1) + self.table.sum(axis=(0, 2))
        start[LABEL, OWN] += score - sums[LABEL]
        if rival_score is not None:
            start[RIVAL, OWN] += rival_score - sums[RIVAL]
        return self._replace(start=start)


def _contribution(name: str | int, term: tuple[float, list[list[float]]]) -> Contribution:
    """Return a contribution from the value and the table of a feature; values may be NaN."""
    value, ((own, shared), rival) = term
    return Contribution(name, None if value != value else value, own, shared, sum(rival))


def summed(
    feature: str, value: float | None, terms: npt.NDArray[np.float64], n_features: int
) -> Contribution:
    """Return a contribution of several features, or of none, from their sums, of shape (2, 2)."""
    own, shared = terms[LABEL].tolist()
    return Contribution(feature, value, own, shared, float(terms[RIVAL].sum()), n_features)

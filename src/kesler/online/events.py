"""Learning and predicting one row at a time, and conversion of input to rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.data import inputs
from kesler.data.inputs import TextLengths, presence, with_runs
from kesler.data.ratings import Ratings
from kesler.data.rows import Rows, Vocabulary
from kesler.errors import KeslerError
from kesler.learner.events import DICTIONARIES, NO_SCORES, Event
from kesler.learner.targets import Answers
from kesler.online.columns import ColumnLearner, texts_of
from kesler.online.contract import exclusive

if TYPE_CHECKING:
    from kesler.learner.ensemble import EnsembleLearner
    from kesler.learner.explanations import Explanation, Naming
    from kesler.learner.learner import Learner
    from kesler.learner.targets import Targets


class FeatureReader(ColumnLearner):
    """The part of an estimator that converts its input to rows."""

    @property
    def vocabulary_(self) -> Vocabulary | None:
        """The names of the features; None if they are identified by position."""
        return self._vocabulary

    @property
    def _vocabulary(self) -> Vocabulary | None:
        return self.__dict__.get("_names")

    @_vocabulary.setter
    def _vocabulary(self, vocabulary: Vocabulary | None) -> None:
        self.__dict__["_names"] = vocabulary

    @property
    def sub_experts_(self) -> Vocabulary | None:
        """The names of the sub-experts; None if there are none, or they are numbered."""
        return self._sub_experts

    @property
    def _sub_experts(self) -> Vocabulary | None:
        return self.__dict__.get("_sub_expert_names")

    @_sub_experts.setter
    def _sub_experts(self, vocabulary: Vocabulary | None) -> None:
        self.__dict__["_sub_expert_names"] = vocabulary

    @abstractmethod
    def _takes_ratings(self) -> bool:
        """Return whether a part of the hypotheses uses ratings of sub-experts."""

    # ---- texts ------------------------------------------------------------------------------

    def _earlier_texts(self) -> TextLengths | None:
        """Return the lengths of the texts learnt; None if the features of texts are words alone.

        They are where parameters are chosen, and where the first row was no text.
        """
        lengths: TextLengths | None = self.__dict__.get("_texts")
        if lengths is None and self._chooses_nothing() and not self._knows_features():
            return TextLengths()
        return lengths

    def _chooses_nothing(self) -> bool:
        """Return whether the features of texts follow from the default settings."""
        update = vars(self).get("update")
        return isinstance(update, str) and update in ("auto", "ensemble")

    def _apart(self, X: Any) -> tuple[Any, Ratings | None, bool]:
        """Return the attributes and the ratings in X, and whether the attributes are texts."""
        texts, rated = texts_of(X), self._takes_ratings()
        if texts is not None and not rated:
            return texts, None, True
        return (
            *inputs.apart(X if texts is None else [presence([t]) for t in texts], rated=rated),
            False,
        )

    def _text_rows(self, texts: list[str], weights: Any, *, learn: bool) -> Rows:
        """Return the rows of texts, whose lengths `_count_texts` adds once they are learnt."""
        if hasattr(self, "n_features_in_"):
            return self._named_rows([presence([text]) for text in texts], learn=learn)
        names = self._named_vocabulary()
        learner, known = self.__dict__.get("_learner"), self._earlier_texts()
        event = Event() if learner is None else learner.event
        pieces, to_count = [], list[int]()
        for i, text in enumerate(texts):
            pieces.append(_numbers_of(text, known, event, names, learn=learn))
            if learn and known is not None and (weights is None or weights[i]):
                known = known.and_text(len(text))
                to_count.append(len(text))
        if learn:
            self.__dict__["_texts_to_count"] = to_count
        indices = np.concatenate(pieces)
        return Rows(
            np.cumsum([0, *map(len, pieces)], dtype=np.int64),
            indices,
            np.ones(len(indices), dtype=np.float32),
            max(len(names), 1 + int(indices.max(initial=-1))),
            dense=False,
        )

    def _count_texts(self, n_before: int) -> None:
        """Add the lengths of the texts that were learnt since so many rows had been."""
        for length in vars(self).pop("_texts_to_count", [])[: self._n_learnt() - n_before]:
            self._count_text(length)

    def _count_text(self, length: int) -> None:
        """Add a text of this many characters to those learnt."""
        known: TextLengths = self.__dict__.get("_texts") or TextLengths()
        self.__dict__["_texts"] = known.and_text(length)

    def _n_learnt(self) -> int:
        learner = self.__dict__.get("_learner")
        return 0 if learner is None else int(learner.n_trials)

    # ---- rows -------------------------------------------------------------------------------

    def _rows_to_score(self, X: Any) -> Iterator[Rows]:
        table = self._table_of(X)
        X, ratings, texts = self._apart(X if table is None else self._entries_to_score(table))
        if texts:
            data = self._text_rows(X, None, learn=False)
        elif inputs.holds_names(X):
            data = self._named_rows(X, learn=False)
        else:
            data = self._array_rows(X, learn=False)
        inputs.require_rated(inputs.count_rows(data), ratings)
        return inputs.blocks(data, self._numbered(ratings, learn=False))

    def _require_positions(self) -> None:
        if self._vocabulary is not None and not hasattr(self, "n_features_in_"):
            raise KeslerError(
                "this model learns from named features, so it cannot match the columns of an array "
                "with them: give mappings of names to values, or use another model for arrays"
            )

    def _array_rows(self, X: Any, *, learn: bool) -> Any:
        if isinstance(X, Rows):
            self._require_no_attributes()
            return X
        self._require_positions()
        first = learn and not hasattr(self, "n_features_in_")
        data = inputs.array_rows(self, X, reset=first)
        if first and hasattr(self, "feature_names_in_"):
            self._vocabulary = Vocabulary.of(self.feature_names_in_)
        return data

    def _named_vocabulary(self) -> Vocabulary:
        """Return the names of the features; raise if they are identified by position."""
        if self._vocabulary is None and self._knows_features():
            raise KeslerError(
                "this model learnt from arrays without column names, so it cannot match named "
                "features with them: give arrays, or learn from a data frame or from mappings"
            )
        if self._vocabulary is None:
            self._vocabulary = Vocabulary()
        return self._vocabulary

    def _named_rows(self, X: Any, *, learn: bool) -> Rows:
        vocabulary = self._named_vocabulary()
        if hasattr(self, "n_features_in_"):
            return inputs.framed_rows(X, vocabulary)
        return inputs.named_rows(X, vocabulary, learn=learn)

    def _require_no_attributes(self) -> None:
        if hasattr(self, "n_features_in_"):
            raise KeslerError(
                f"this model learnt from {self.n_features_in_} attributes in addition to ratings, "
                "but these rows have none: give Ratings with attributes=..."
            )

    def _numbered(self, ratings: Ratings | None, *, learn: bool) -> Ratings | None:
        """Return ratings with sub-experts by number; new names are added if `learn`.

        Otherwise all new names get the next unused number.

        Raises
        ------
        KeslerError
            If the model identifies its sub-experts in another way.
        """
        if ratings is None or not len(ratings.vectors.indices):
            return ratings
        known, learner = self._sub_experts, getattr(self, "_learner", None)
        by_number = known is None and learner is not None and learner.n_sub_experts > 0
        if (ratings.names is None and known is not None) or (ratings.names and by_number):
            ways = ("number", "name") if by_number else ("name", "number")
            raise KeslerError(
                f"this model identifies its sub-experts by {ways[0]}, but the ratings identify "
                f"them by {ways[1]}: give ratings in the same form as before"
            )
        if ratings.names is None:
            return ratings
        if known is None:
            known = self._sub_experts = Vocabulary()
        if learn:
            numbers = [known.add(name) for name in ratings.names]
            return ratings.numbered(numbers, len(known))
        unseen = len(known)
        numbers = [known.indices.get(name, unseen) for name in ratings.names]
        return ratings.numbered(numbers, unseen + 1)

    def _knows_features(self) -> bool:
        """Return whether rows have been learnt, by name or by position."""
        learner = getattr(self, "_learner", None)
        return hasattr(self, "n_features_in_") or (learner is not None and learner.n_trials > 0)

    def _row(self, x: Any, *, learn: bool) -> Rows:
        """Return one row, by names or by position."""
        table = self._table_of_row(x)
        if table is not None:
            return self._named_rows(self._entries_to_score(table), learn=learn)
        x, ratings = inputs.apart(x, rated=self._takes_ratings())
        if ratings is None:
            return self._features_of(x, learn=learn)
        rows = self._features_of(inputs.only_row(x), learn=learn)
        inputs.require_rated(1, ratings)
        return replace(rows, ratings=self._numbered(ratings, learn=learn))

    def _features_of(self, x: Any, *, learn: bool) -> Rows:
        if isinstance(x, str):
            return self._text_rows([x], None, learn=learn)
        if isinstance(x, Mapping):
            return self._named_rows(x, learn=learn)
        if isinstance(x, Rows):
            return self._array_rows(x, learn=learn)
        self._require_positions()
        width = getattr(self, "n_features_in_", None)
        listed = inputs.listed_features(x)
        if listed is not None:
            return inputs.listed_row(*listed, width)
        return inputs.positional_row(x, width)

    def _read(self, x: Any, learner: Any, *, learn: bool) -> bool:
        """Read one row into the learner's event buffer; return whether it could be read this way.

        New feature names are added if `learn`, even if the row could not be read.
        """
        own, event = self.__dict__, learner.event
        if "_table" in own or learner.takes_ratings:
            return False
        if type(x) is str or type(x) in DICTIONARIES:
            names = None if "n_features_in_" in own else own.get("_names")
            if names is None:
                return False
            if type(x) is str:
                earlier = own.get("_texts")
                is_short = earlier is not None and earlier.is_short(x)
                read = event.read_short_text if is_short else event.read_text
                return read(x, names, joins=learn)
            return event.read_mapping(x, names, joins=learn)
        width = own.get("n_features_in_")
        if type(x) is np.ndarray:
            return x.shape == (width,) and event.read_array(x)
        listed = None if own.get("_names") is not None else inputs.listed_features(x)
        return listed is not None and event.read_pair(*listed, width)


def _numbers_of(
    text: str, known: TextLengths | None, event: Event, names: Vocabulary, *, learn: bool
) -> npt.NDArray[np.int32]:
    """Return the numbers of the features of a text, given the lengths of the texts before it."""
    is_short = known is not None and known.is_short(text)
    read = event.read_short_text if is_short else event.read_text
    if read(text, names, joins=learn):
        return event.indices.copy()
    entry = with_runs(text) if is_short else presence([text])
    return np.array([*(names.learnt if learn else names.numbered)(entry)], dtype=np.int32)


Self = TypeVar("Self", bound="EventLearner")


class EventLearner(FeatureReader):
    """A learner that processes events: one row at a time, with its target.

    After the first row, an event is read into reused buffers, without scikit-learn's validation and
    without a Python step for each feature. Input that cannot be read this way is processed as a
    batch, which raises the detailed errors.

    Attributes
    ----------
    by_scores : whether predictions need the scores of all classes, not only the best class.
    """

    by_scores: ClassVar[bool] = True

    @abstractmethod
    def _decode(self, highest: int, scores: npt.NDArray[np.float32]) -> Any:
        """Return a prediction from the code of the best class, or from scores if `by_scores`.

        Scores are those of the known classes by number, including virtual classes. Before any
        class is known the arguments are -1 and an empty array.
        """

    @abstractmethod
    def _encode(self, y: Any, classes: Any = None) -> Targets:
        """Return the encoded targets of `y`, in any form that the estimator accepts."""

    @abstractmethod
    def _fitted(self) -> Learner | EnsembleLearner:
        """Return the learner; raise if no class is known."""

    @abstractmethod
    def _first_trial(
        self, x: Any, y: Any, weights: npt.NDArray[np.float64] | None, *, keep_scores: bool
    ) -> tuple[int, npt.NDArray[np.float32]]:
        """Run the trial of one row as a batch of one."""

    @exclusive
    def end_sequence(self: Self) -> Self:
        """Say that the next row, to be predicted or learnt, does not follow the last one.

        Ensembles, and so the default for measurements, predict the row after the last one that
        `learn_one` or `partial_fit` has learnt. Call this before predicting other rows.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        NotFittedError
            Before the first row.
        """
        self._fitted().end_sequence()
        return self

    @contextmanager
    def _rows_as_set(self) -> Iterator[None]:
        """Learn rows that do not follow each other."""
        self.__dict__["_is_set"] = True
        try:
            yield
        finally:
            del self.__dict__["_is_set"]
            learner = vars(self).get("_learner")
            if learner is not None:
                learner.is_ordered = True

    def learn_one(self: Self, x: Any, y: Any, sample_weight: float | None = None) -> Self:
        """Learn from one row, without scikit-learn's validation.

        Parameters
        ----------
        x : dict of feature names to values, str, array of shape (n_features,), (indices, values) \
or sparse row
            The features of a text are those described in `fit`. A pair of arrays lists the non-zero
            features by position, each once. Learners with sub-experts take a mapping
            {label: ratings} or :class:`~kesler.Ratings` of one row.
        y : the target of the row.
        sample_weight : float, 0 or more, or None, default None
            The weight of the row, as in `partial_fit`; None for 1. With larger values the row
            changes the model more, and with 0 it is not learnt.

        Returns
        -------
        The estimator itself.

        Notes
        -----
        The fastest inputs are a dict of str to Python or NumPy numbers, an array of float64 or
        float32, and a pair of arrays with increasing indices and such values.
        """
        if sample_weight is None:
            self._trial(x, y, keep_scores=False)
            return self
        weights = inputs.row_weights([sample_weight], 1)
        if weights is None or weights[0]:
            self._first_trial(x, y, weights, keep_scores=False)
        return self

    def predict_one(self, x: Any) -> Any:
        """Return the prediction for one row, given as in `learn_one`."""
        learner = self._fitted()
        with learner.lock:
            event = learner.event
            row = event if self._read(x, learner, learn=False) else self._row(x, learn=False)
            if self.by_scores:
                return self._decode(-1, learner.scores(row)[0])
            return self._decode(int(learner.predict(row)[0]), NO_SCORES)

    def explain_one(self, x: Any, label: Any = None, rival: Any = None, n: int = 10) -> Explanation:
        r"""Explain the score of a class for one row, and its margin over another class.

        The score is a sum of contributions of the features of the row,
        :math:`h(x, r) = c_{0r} + \sum_i c_{ir}`; the largest are listed. Nothing is learnt.

        Parameters
        ----------
        x : one row, as in `learn_one`.
        label : label or None, default None
            The class to explain. None stands for the predicted class; of label sets and rankings,
            for the label of the highest score.
        rival : label or None, default None
            The class that it is compared with. None stands for the class of the highest score
            among the others; where no other class is known, there is no rival.
        n : int, 1 or more, default 10
            The number of features to list, those of the largest contributions to the margin in
            absolute value; the others are summed.

        Returns
        -------
        :class:`~kesler.Explanation`, whose sums are the scores of `decision_function`: of label
        sets, above the threshold. What a contribution is depends on the learner, as explained
        there.

        Raises
        ------
        KeslerError
            If `label` or `rival` has not been learnt, both are the same, n is not an integer above
            0, or the row cannot be scored.

        Notes
        -----
        Costs about as much as four predictions where scores are sums over features, else the
        predictions of twice as many rows as the row has columns, or of up to 512 rows if it has
        few.

        Examples
        --------
        >>> from kesler import OnlineClassifier
        >>> mail = OnlineClassifier()
        >>> for words, folder in [("win cash", "spam"), ("team lunch", "work"), ("cash", "spam")]:
        ...     mail = mail.learn_one(dict.fromkeys(words.split(), 1.0), folder)
        >>> why = mail.explain_one({"cash": 1.0, "team": 1.0}, n=1)
        >>> why.label, why.rival, why.contributions[0].feature
        ('spam', 'work', 'cash')
        """
        from kesler.online.explaining import explained

        learner = self._fitted()
        with learner.lock:
            rows, name_of = self._row_and_names(x, learner)
            return explained(learner, rows, name_of, label, rival, n)

    def explain_rows(
        self, rows: Any, label: Any = None, rival: Any = None, n: int = 10
    ) -> Iterator[Explanation]:
        """Yield the explanation of each row, of the rows that a reader yields.

        Parameters
        ----------
        rows : Rows, or Table
            As in `learn_rows`.
        label, rival, n : as in `explain_one`.
        """
        from kesler.online.explaining import explained, names_of_model

        learner, table = self._fitted(), self._read_table(rows)
        if table is not None:
            rows = self._named_rows(self._entries_to_score(table), learn=False)
        inputs.require_width(rows, getattr(self, "n_features_in_", None), more=True)
        rows = replace(rows, ratings=self._numbered(rows.ratings, learn=False))
        name_of = names_of_model(self._vocabulary, self._sub_experts)
        for i in range(len(rows)):
            with learner.lock:
                found = explained(learner, rows[i : i + 1], name_of, label, rival, n)
            yield found

    def top_features(self, label: Any, n: int = 10) -> list[tuple[str | int, float]]:
        r"""Return the features that speak most for a class: those of the largest weights.

        The weight of a feature is what a unit of its value adds to the score of the class, minus
        what it adds to the scores of all classes on average,

        .. math:: w_i^r + u_i \phi_i(1, r) - \frac{1}{k} \sum_s (w_i^s + u_i \phi_i(1, s))

        with own weights w and shared weights u over a feature map. Values are those after
        preprocessing, without the scaling of rows to length 1: a word with its weight, a
        measurement in standard deviations.

        Parameters
        ----------
        label : label
            A class that has been learnt.
        n : int, 1 or more, default 10
            The maximum number of features; fewer have weights above 0 where features are few.

        Returns
        -------
        List of pairs of a feature, by its name or position, and its weight, largest first. Of an
        ensemble, weights are means over its members, each in units of log-probability.

        Raises
        ------
        KeslerError
            If the label has not been learnt, n is not an integer above 0, or scores are not sums
            of weights times values: over a kernel, with expansions such as random Fourier features,
            with feature maps that are not zero at zero, or with sub-experts alone.

        Notes
        -----
        O(n k) for n features and k classes.

        Examples
        --------
        >>> from kesler import OnlineClassifier
        >>> mail = OnlineClassifier()
        >>> for words, folder in [("win cash", "spam"), ("team lunch", "work"), ("cash", "spam")]:
        ...     mail = mail.learn_one(dict.fromkeys(words.split(), 1.0), folder)
        >>> [name for name, weight in mail.top_features("work", n=2)]
        ['team', 'lunch']
        """
        from kesler.online.explaining import names_of_model, top_features

        learner = self._fitted()
        with learner.lock:
            name_of = names_of_model(self._vocabulary, self._sub_experts)
            return top_features(learner, name_of, label, n)

    def _row_and_names(self, x: Any, learner: Any) -> tuple[Rows | Event, Naming]:
        """Return one row as it is scored, and the names of its features."""
        from kesler.online.explaining import names_of_entries, names_of_model

        table = self._table_of_row(x)
        if table is not None:
            x = self._entries_to_score(table)[0]
        is_read = table is None and self._read(x, learner, learn=False)
        row = learner.event if is_read else self._features_of_one(x, table is not None)
        by_name = isinstance(x, (str, Mapping)) and not learner.takes_ratings
        if not by_name or row.dense:
            return row, names_of_model(self._vocabulary, self._sub_experts)
        words = self.words_of([x]) if isinstance(x, str) else x
        return row, names_of_entries(words, row, self._sub_experts)

    def _features_of_one(self, x: Any, is_of_table: bool) -> Rows:
        """Return one row; the features of a row of a table are given."""
        return self._named_rows(x, learn=False) if is_of_table else self._row(x, learn=False)

    @property
    def has_text_lengths_(self) -> bool:
        """Whether texts were learnt whose features depend on the lengths of those before them."""
        return vars(self).get("_texts") is not None

    def words_of(self, texts: Sequence[str]) -> dict[str, float]:
        """Return the features of the texts of a row, by name, as this learner reads them.

        Parameters
        ----------
        texts : sequence of str
            The texts, which are read as one.

        Returns
        -------
        dict of str to float
            1 for each word; for texts that count as short (see `fit`) also for each pair of words
            and each run of 4 characters.

        Notes
        -----
        O(n) for n characters. Nothing is learnt.

        Examples
        --------
        >>> from kesler import OnlineClassifier
        >>> list(OnlineClassifier("multi", update="pa1").words_of(["Top up!"]))
        ['top', 'up']
        """
        known, text = self._earlier_texts(), " ".join(texts)
        is_short = known is not None and known.is_short(text) and "n_features_in_" not in vars(self)
        return with_runs(text) if is_short else presence([text])

    def learn_predict_one(self, x: Any, y: Any) -> Any:
        """Learn from one row; return the prediction made before the target was used.

        This runs one trial, which costs less than `predict_one` followed by `learn_one`, with the
        same results.

        Parameters
        ----------
        x, y : as in `learn_one`.

        Returns
        -------
        As `predict_one`; None or no labels for the first row.
        """
        return self._decode(*self._trial(x, y, keep_scores=self.by_scores))

    def _trial(self, x: Any, y: Any, *, keep_scores: bool) -> tuple[int, npt.NDArray[np.float32]]:
        """Learn from one row; return the code of the best class, and scores if `keep_scores`."""
        learner = self.__dict__.get("_learner")
        if learner is not None:
            with learner.lock:
                names = self.__dict__.get("_names")
                n_names = 0 if names is None else len(names.indices)
                n_trials = learner.trials_run[0]
                try:
                    if self._read(x, learner, learn=True):
                        return _trial_of_event(
                            learner, *self._one_target(y), keep_scores=keep_scores
                        )
                except BaseException:
                    if learner.trials_run[0] == n_trials:  # an interrupt may come after the trial
                        self._forget_names(n_names)
                        if names is not None and not hasattr(self, "n_features_in_"):
                            learner.uncount(n_names)
                    raise
                finally:
                    if type(x) is str and learner.trials_run[0] > n_trials:
                        if "_texts" in self.__dict__:
                            self._count_text(len(x))
                self._forget_names(n_names)
        return self._first_trial(x, y, None, keep_scores=keep_scores)

    def _one_target(
        self, y: Any
    ) -> tuple[Sequence[Any], Callable[[npt.NDArray[np.int32]], Answers]]:
        """Return the labels of one target, and the function that encodes their codes as answers."""
        targets = self._encode([y])
        return targets.names, targets.answers

    def _forget_names(self, n_names: int) -> None:
        if self._vocabulary is not None and len(self._vocabulary) > n_names:
            self._vocabulary.forget_from(n_names)


def _trial_of_event(
    learner: Learner | EnsembleLearner,
    labels: Sequence[Any],
    answers: Callable[[npt.NDArray[np.int32]], Answers],
    *,
    keep_scores: bool,
) -> tuple[int, npt.NDArray[np.float32]]:
    if keep_scores:
        n_known = learner.n_known
        scores = np.empty((1, learner.classes.count_with(labels)), dtype=np.float32)
        predictions, _ = learner.learn_observed(learner.event, labels, None, answers, scores)
        return int(predictions[0]), scores[0, :n_known]
    predicted = learner.learn_event(labels[0]) if answers is Answers.of_classes else None
    if predicted is None:
        predictions, _ = learner.learn_observed(learner.event, labels, None, answers)
        predicted = int(predictions[0])
    return predicted, NO_SCORES

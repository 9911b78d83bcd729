"""BanditClassifier: an online classifier that is told only whether its prediction is right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from kesler.data import inputs
from kesler.data.labels import Label
from kesler.errors import KeslerError, is_flag, keep_settings, number_of
from kesler.exploration import (
    Exploration,
    Greedy,
    InverseGap,
    Uniform,
    require_seed,
    resolve_exploration,
)
from kesler.hypotheses import Part
from kesler.kernels.mercer import MercerKernel
from kesler.learner.bandit import WHATEVER, BanditLearner, KernelBanditLearner
from kesler.learner.classes import ClassTable
from kesler.learner.ensemble import AnyLearner
from kesler.learner.learner import Learner
from kesler.learner.support_vectors import Limit
from kesler.learner.targets import Answers, Decision, Targets
from kesler.links.link import Link
from kesler.maps.feature_map import FeatureMap
from kesler.online import contract
from kesler.online.answers import ClassAnswer, Encoding
from kesler.online.classifier import OnlineClassifier
from kesler.online.contract import Method, exclusive, exclusive_trials
from kesler.online.defaults import of_bandit_rule, of_feedback, resolve
from kesler.online.making import Maker, Settings
from kesler.online.named_rule import beside
from kesler.online.uncertain import confident_one
from kesler.preconditioners import Preconditioner
from kesler.preprocessing import Preprocessing
from kesler.settings.table import AUTO, as_meant
from kesler.updates.bandit import FEEDBACK_RULES, FeedbackRule
from kesler.updates.rule import UpdateRule

if TYPE_CHECKING:
    from kesler.data.schema.measurements import Inputs

Self = TypeVar("Self", bound="BanditClassifier")


class Shown(NamedTuple):
    """A class to show, and the probability with which it was drawn."""

    label: Any
    probability: float


@dataclass(frozen=True)
class Feedback:
    """Whether a class that was shown is right; takes the place of a target."""

    label: Label
    right: bool

    def targets(self) -> Targets:
        """Return the target: the class, at level 0 if it is right, else at level 1."""
        indptr = np.array([0, 1], dtype=np.int64)
        return Targets(indptr, [self.label], self._levels(), rest=1)

    def answers(self, codes: npt.NDArray[np.int32]) -> Answers:
        """Return the encoded target, given the number of the class."""
        return Answers(np.array([0, 1], dtype=np.int64), codes, self._levels(), rest=1)

    def _levels(self) -> npt.NDArray[np.int32]:
        return np.array([0 if self.right else 1], dtype=np.int32)


class _FeedbackAnswer(ClassAnswer):
    """Each row has one class, or feedback on the class that was shown takes its place."""

    def encoded(self, y: Any, classes: Any, known: ClassTable) -> Targets:
        if isinstance(y, list) and len(y) == 1 and isinstance(y[0], Feedback):
            return y[0].targets()
        return super().encoded(y, classes, known)

    def encoded_one(self, y: Any, known: ClassTable) -> Encoding:
        if isinstance(y, Feedback):
            return (y.label,), y.answers
        return super().encoded_one(y, known)

    def declared(self, classes: Any) -> list[Label]:
        return [] if classes is None else _labels(classes)


class _BanditMaker(Maker):
    """Makes learners that explore."""

    def members(self, given: Settings, *, dense: bool, inputs: Inputs | None = None) -> None:
        return None

    def classes(self, given: Settings, declared: Iterable[Label] = ()) -> ClassTable:
        table = ClassTable()
        table.encode(list(dict.fromkeys([*_labels(given["classes"]), *declared])))
        return table

    def made(self, given: Settings, made_of: Settings, *, dense: bool) -> Learner:
        kind = KernelBanditLearner if "kernel" in made_of else BanditLearner
        return kind(
            **{**made_of, "classes": ClassTable()},
            exploration=_exploration(given, made_of["rule"], dense=dense),
            is_weighted=_truth("weighted", given["weighted"]),
            seed=require_seed(given["seed"]),
        )

    def decision(self, made_of: Settings) -> Decision:
        return "score"  # exploration is around the most probable class

    def chosen(self, given: Settings, *, dense: bool) -> dict[str, Any]:
        update, given = given["update"], as_meant(given, dense=dense)
        if isinstance(update, str) and update == AUTO:
            given = of_feedback(given, dense=dense)
        elif isinstance(update, FeedbackRule) or _is_named(update, FEEDBACK_RULES):
            given = of_bandit_rule(given)
        return resolve(given, dense=dense) | {"on_new_class": "learn"}

    def rule(self, given: Settings, update: Any) -> UpdateRule:
        if _is_named(update, FEEDBACK_RULES):
            if beside(given):
                raise KeslerError(
                    f"{', '.join(beside(given))} has no effect on update={update!r}: give a rule "
                    "object of kesler.updates for other parameters"
                )
            return FEEDBACK_RULES[update]()
        if isinstance(update, (list, tuple)) or (isinstance(update, str) and update == "ensemble"):
            raise KeslerError(
                f"update={update!r}: an ensemble cannot learn from feedback: choose one rule"
            )
        return super().rule(given, update)

    def in_use(self, given: Settings, learner: Any) -> dict[str, Any]:
        return {
            **super().in_use(given, learner),
            "classes": list(learner.classes.labels),
            "exploration": learner.exploration,
            "weighted": learner.is_weighted,
            "seed": learner.seed,
        }


def _exploration(given: Settings, rule: UpdateRule, *, dense: bool) -> Exploration:
    choice, update = given["exploration"], given["update"]
    if not (isinstance(choice, str) and choice == "auto"):
        return resolve_exploration(choice)
    if rule.feedback:
        return Uniform()
    of_words = isinstance(update, str) and update == AUTO and not dense
    return InverseGap() if of_words else Greedy()


def _from_the_start(method: Method, *, one: bool = False) -> Method:
    """Return a method of rows, or of one, that answers before the first row that is learnt."""
    name = "x" if one else "X"

    @wraps(method)
    def answering(self: BanditClassifier, *arguments: Any, **named: Any) -> Any:
        if not arguments and name not in named:
            return method(self, **named)  # raises, as there are no rows
        rows = arguments[0] if arguments else named[name]
        return method(_begun(self, rows, one=one), *arguments, **named)

    return cast(Method, answering)


class BanditClassifier(OnlineClassifier):
    r"""A multiclass classifier that is told only whether the class that it shows is right.

    For each row it draws a class :math:`\tilde y` from probabilities P that depend on the scores
    (`exploration`), and learns from the answer :math:`1[\tilde y = y]`. If the class is right, the
    target is known, and the row is learnt as by :class:`~kesler.OnlineClassifier`. If it is wrong,
    one constraint remains of the target:

    .. math:: h(x, \tilde y) \le -1 \text{ under one-vs-rest rules}, \quad
        h(x, s) \ge h(x, \tilde y) + 1, \; s = \arg\max_{r \ne \tilde y} h(x, r)
        \text{ under rules with margins}

    Parameters
    ----------
    classes : sequence of labels, default ()
        The classes that may be shown from the first row on. More become known by `add_classes`, or
        where feedback names them.
    update : "auto", "banditron", "soba", a rule of :class:`~kesler.OnlineClassifier` or rule \
object, default "auto"
        The update rule. "auto" stands for the settings in Notes. "banditron" and "soba" are
        rules for bandit feedback alone, see :class:`~kesler.updates.Banditron` and
        :class:`~kesler.updates.SOBA`.
    exploration : "auto", "greedy", "uniform", "inverse-gap", float or exploration, \
default "auto"
        How the class to show is drawn; see :mod:`kesler.exploration`. A number is the gamma of
        :class:`~kesler.exploration.Uniform`, above 0 and at most 1; larger values explore more.
        "auto" is uniform exploration with gamma = 0.05 for "banditron" and "soba", as their
        theorems need it, inverse gaps for the default of rows that list only non-zeros, and
        "greedy" otherwise.
    weighted : bool, default False
        Whether a row counts by 1 / P of the class that was shown, which makes the expected update
        that of full information where classes are right. It mostly costs accuracy. "banditron" and
        "soba" have their own weights.
    seed : int from 0 to 2^63 - 1, default 0
        The seed of the draws, which depend on it and on the number of draws before.
    hypotheses, feature_map, link, averaged, intercept, preconditioner, preprocessing, half_life, \
C, eta, delta, r, columns, on_mismatch
        As in :class:`~kesler.OnlineClassifier`, of a single learner.
    kernel, sigma, budget
        As in :class:`~kesler.OnlineClassifier`, not for "soba".

    Attributes
    ----------
    n_trials_, n_mistakes_ : int
        Number of rows that were learnt, and of those for which a wrong class was shown.
    exploration_ : Exploration
        The exploration in use.
    n_pending_ : int
        Number of classes shown by `predict_one` and `explore_one` without feedback so far.
    classes_, coef_, intercept_, feature_map_, preprocessing_, resolved_, n_features_in_
        As in :class:`~kesler.OnlineClassifier`.

    Raises
    ------
    KeslerError
        If an argument is unknown or out of its range, feedback is given on a class that was not
        shown, or for the reasons given in :class:`~kesler.OnlineClassifier`. The model is then
        unchanged.

    Notes
    -----
    `predict_one` and `explore_one` draw a class, and `learn_feedback_one` learns the answer.
    Each drawn class waits for one answer; answers may come late and in any order. Where learning
    depends on P, it is the probability that the model, as it is when the answer comes, gives to
    the class; it is the one of the draw unless rows have been learnt in between. For late answers
    `explore_one` returns the probability, which `learn_feedback_one` takes. `predict` and the
    other methods for several rows never explore. They answer before the first row as well, where
    all classes have the same score. The columns of a table are of the kinds that the rows learnt
    before the first draw give them; later rows may add columns.

    Methods that take targets (`fit`, `partial_fit`, `learn_one`, `learn_predict_one`,
    :func:`~kesler.progressive_validate`) simulate feedback: the class to show is drawn, of the
    target nothing is used but whether it is this class, and what is returned and counted are the
    classes that were shown. The draws are those of `predict_one` and `learn_feedback_one` for the
    same rows, to the last bit. A label that is not known yet is added to the classes.

    The default has one-vs-rest rules for both kinds of rows, whose constraint on a wrong class does
    not involve the others. If rows list only non-zeros, it is the learner of
    :class:`~kesler.OnlineClassifier` with inverse gaps; if they list every feature, it is
    squared loss over z-scores, bins and random Fourier features, shown greedily: the scores of a
    class that was wrong fall below 0, which is the score of a class not yet tried on such rows, so
    that all classes are tried where that is useful. With a kernel it is squared loss as well, over
    ranges if rows list every feature. `papers/results/few_labels_bandits.md` compares the
    alternatives.

    Costs are those of :class:`~kesler.OnlineClassifier`, and O(k) for a draw.

    References
    ----------
    Kakade, Shalev-Shwartz and Tewari (2008), the setting and Banditron; Beygelzimer, Orabona and
    Zhang (2017), SOBA; Bietti, Agarwal and Langford (2021), greedy exploration.

    Examples
    --------
    >>> from kesler import BanditClassifier
    >>> model = BanditClassifier(classes=["spam", "work"])
    >>> for words, folder in [("win cash", "spam"), ("team lunch", "work")] * 3:
    ...     shown = model.predict_one(words)
    ...     model = model.learn_feedback_one(words, shown, right=shown == folder)
    >>> model.predict(["cash", "lunch"]).tolist(), model.n_mistakes_
    (['spam', 'work'], 1)
    """

    answer: ClassVar[ClassAnswer] = _FeedbackAnswer()
    explores: ClassVar[bool] = True
    _maker: ClassVar[Maker] = _BanditMaker(answer)
    classes: Sequence[Any]

    def __init__(
        self,
        classes: Sequence[Any] = (),
        update: str | UpdateRule = "auto",
        exploration: str | float | Exploration = "auto",
        weighted: bool = False,
        seed: int = 0,
        hypotheses: str | Part | list[Part] = "auto",
        feature_map: str | FeatureMap = "auto",
        link: str | Link = "linear",
        averaged: bool = False,
        intercept: float | str = "auto",
        preconditioner: str | Preconditioner = "auto",
        preprocessing: str | Preprocessing | None = "auto",
        half_life: float | None = None,
        C: float | None = None,
        eta: float | None = None,
        delta: float | None = None,
        r: float | None = None,
        columns: Mapping[str, Any] | str | None = "auto",
        on_mismatch: str = "missing",
        kernel: str | MercerKernel | None = None,
        sigma: float | Literal["auto"] = "auto",
        budget: Limit = None,
    ) -> None:
        keep_settings(self, locals())

    # ---- answers ----------------------------------------------------------------------------

    predict = _from_the_start(OnlineClassifier.predict)
    decision_function = _from_the_start(OnlineClassifier.decision_function)
    predict_proba = _from_the_start(OnlineClassifier.predict_proba)
    predict_proba_one = _from_the_start(OnlineClassifier.predict_proba_one, one=True)
    predict_top = _from_the_start(OnlineClassifier.predict_top)
    predict_top_one = _from_the_start(OnlineClassifier.predict_top_one, one=True)
    predict_path = _from_the_start(OnlineClassifier.predict_path)
    predict_path_one = _from_the_start(OnlineClassifier.predict_path_one, one=True)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes that may be shown, sorted: the columns of predictions."""
        has_begun = self._learner is not None or not self.n_known_
        return super().classes_ if has_begun else self._known_classes().in_order

    # ---- feedback ---------------------------------------------------------------------------

    def predict_one(self, x: Any, min_confidence: float | None = None) -> Any:
        """Return the class to show for one row, drawn by the exploration.

        Parameters
        ----------
        x : the row, as in `learn_one`.
        min_confidence : None; as confidence is not estimated from feedback.
        """
        if min_confidence is not None:
            return confident_one(_begun(self, x, one=True), x, min_confidence)
        return self.explore_one(x).label

    @exclusive
    def explore_one(self, x: Any) -> Shown:
        """Return the class to show for one row, and the probability with which it was drawn.

        Parameters
        ----------
        x : the row, as in `learn_one`.

        Returns
        -------
        A pair (label, probability).

        Raises
        ------
        KeslerError
            If no class is known.

        Examples
        --------
        >>> model = BanditClassifier(classes=["spam", "work"], exploration=0.5)
        >>> model.explore_one("win cash")
        Shown(label='spam', probability=0.75)
        """
        learner = _exploring(self, x)
        with learner.lock:
            shown, probability = learner.draw(self._input.row_to_score(self, x, learner))
            # With first rows learnt again, no class would wait for its feedback any more.
            self._input.columns.settle()
            return Shown(learner.classes.labels[shown], probability)

    def learn_feedback_one(
        self: Self,
        x: Any,
        predicted: Any,
        right: bool,
        probability: float | None = None,
        new_class: Any = None,
    ) -> Self:
        """Learn whether the class that was shown for one row is right.

        Parameters
        ----------
        x : the row, as in `learn_one`.
        predicted : label
            The class that `predict_one` or `explore_one` returned.
        right : bool
            Whether it is right.
        probability : float above 0, at most 1, or None, default None
            The probability with which it was drawn, as `explore_one` returned it; needed if rows
            were learnt in between and the rule depends on it. Smaller values let the row count
            more. None stands for the probability that the model gives the class now.
        new_class : label or None, default None
            A class that is not known so far, which the feedback names. It may be shown from the
            next row on.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        KeslerError
            If no prediction of this class waits for feedback, `right` is not a bool, the
            probability is out of its range, or the model would not show this class now and
            learning depends on the probability.
        """
        learner, code = _waiting(self, predicted)
        if not is_flag(right):
            raise KeslerError(f"right={right!r} must be True or False")
        if new_class is not None and right:
            raise KeslerError(
                f"new_class={new_class!r} with right=True: feedback names another class only if "
                "the one that was shown is wrong"
            )
        with self._lock, learner.lock:
            if new_class is not None:
                learner.require_admissible([new_class])
            chance = _probability(self, x, learner, code, probability)
            with learner.with_probability(chance):
                self._trial(x, Feedback(predicted, bool(right)), keep_scores=False)
            if new_class is not None:
                self.add_classes([new_class])
        return self

    @exclusive
    def add_classes(self: Self, classes: Sequence[Any]) -> Self:
        """Make classes known, so that they may be shown.

        Parameters
        ----------
        classes : sequence of labels; those already known are ignored.

        Returns
        -------
        The estimator itself.
        """
        labels, learner = _labels(classes), cast("BanditLearner | None", self._learner)
        if learner is None:
            self._known_classes().require_admissible(labels)
            self._declared = list(dict.fromkeys([*self._declared, *labels]))
        else:
            learner.introduce(labels)
        return self

    @exclusive_trials
    def exploration_proba_one(self, x: Any) -> dict[Any, float]:
        """Return the probability with which each class would be shown for one row."""
        learner = _exploring(self, x)
        with learner.lock:
            chances = learner.chances(self._input.row(self, x, learn=False)).tolist()
            return dict(zip(learner.classes.labels, chances, strict=True))

    @property
    def exploration_(self) -> Exploration:
        """The exploration in use."""
        learner: BanditLearner = self._fitted()  # type: ignore[assignment]
        return learner.exploration

    @property
    def n_pending_(self) -> int:
        """Number of classes shown without feedback so far."""
        learner = cast("BanditLearner | None", self._learner)
        return 0 if learner is None else int(learner.stored["exploration.pending"].sum())

    def __sklearn_is_fitted__(self) -> bool:
        return self._learner is not None and self.n_known_ > 0

    def _prepared(self, *, dense: bool) -> AnyLearner:
        learner = super()._prepared(dense=dense)
        assert isinstance(learner, BanditLearner)
        learner.introduce([*_labels(self.classes), *self._declared])
        return learner


def _begun(model: BanditClassifier, rows: Any, *, one: bool) -> BanditClassifier:
    """Return the model; before its first row, a copy that has a learner for such rows."""
    if model._learner is not None or not model.n_known_:
        return model
    begun = contract.unfitted(model)
    begun._declared = model._declared
    reader = begun._input
    first = reader.row(begun, rows, learn=False) if one else next(reader.rows_to_score(begun, rows))
    cast(BanditLearner, begun._prepared(dense=first.dense)).begin_with(first)
    return begun


def _exploring(model: BanditClassifier, x: Any) -> BanditLearner:
    """Return the learner; it is made for the kind of the first row."""
    learner = model._learner
    if learner is None:
        if not model.n_known_:
            raise KeslerError(
                "no class is known that could be shown: create the model with classes=[...], "
                "or call add_classes"
            )
        reader = model._input
        learner = model._prepared(dense=reader.row(model, x, learn=False).dense)
        lengths = reader.earlier_texts(model) if isinstance(x, str) else None
        if lengths is not None:  # the first text decides which features texts have
            reader.texts = lengths
    return cast(BanditLearner, learner)


def _waiting(model: BanditClassifier, predicted: Any) -> tuple[BanditLearner, int]:
    """Return the learner and the number of a class, a prediction of which waits for feedback."""
    learner = cast("BanditLearner | None", model._learner)
    code = None if learner is None else learner.classes.code(predicted)
    if learner is None or code is None or not learner.n_pending(code):
        known = (
            f"no class that is known ({model.n_known_} are)"
            if code is None
            else "not waiting for feedback: it was not shown, or its feedback has been given"
        )
        raise KeslerError(
            f"feedback on {predicted!r}, which is {known}: give feedback once on each class "
            "that predict_one or explore_one returned"
        )
    return learner, int(code)


def _probability(
    model: BanditClassifier, x: Any, learner: BanditLearner, code: int, probability: float | None
) -> float:
    """Return the probability with which a class was shown, as far as the rule reads it."""
    if probability is not None:
        why = ", as explore_one returned it, or None"
        return number_of("probability", probability, why, above=0, most=1)
    if not learner.reads_probability:
        return WHATEVER
    chance = float(learner.chances(model._input.row(model, x, learn=False))[code])
    if chance <= 0:
        raise KeslerError(
            f"the model as it is now does not show {learner.classes.labels[code]!r} for this "
            "row, so that the probability of the draw is not known: give probability=, as "
            "explore_one returned it"
        )
    return chance


def _labels(classes: Any) -> list[Label]:
    """Return declared classes as a list of labels."""
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__len__"):
        raise KeslerError(f"classes={classes!r}: give a sequence of labels")
    return inputs.label_list(list(classes)) if len(classes) else []


def _is_named(value: Any, names: Mapping[str, Any]) -> bool:
    """Return whether a parameter is one of these names; objects are not compared with text."""
    return isinstance(value, str) and value in names


def _truth(name: str, value: Any) -> bool:
    if not is_flag(value):
        raise KeslerError(f"{name}={value!r} must be True or False")
    return bool(value)

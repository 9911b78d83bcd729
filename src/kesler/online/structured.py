"""StructuredLearner: online structured prediction with user-defined joint features and search."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.errors import NO_ESTIMATES, KeslerError, integer_of, require_unasked, set_state
from kesler.online import contract
from kesler.online.contract import exclusive
from kesler.online.joint_features import Space, bordered, gram, space_for
from kesler.online.named_rule import rule_of
from kesler.parts.constraints import VS_REST
from kesler.parts.user_part import UserPart
from kesler.updates.rule import UpdateRule

Self = TypeVar("Self", bound="StructuredLearner")

# Attributes that `fit` deletes.
_LEARNT = ("_space", "_moments", "_averaged", "_n_trials", "_n_mistakes")
# A growing set of constraints is complete if no further one is violated by more than this.
EXACT = 1e-6
TIED = 1e-12  # difference of scores up to which they tie, relative to them
# Maximum size of a growing set of constraints, which is rarely reached.
MOST_OUTPUTS = 200


@dataclass(frozen=True, slots=True)
class _Trial:
    """An instance, its output, the weights, and phi(x, y) as `truth`."""

    x: Any
    y: Any
    space: Space
    truth: Any


@dataclass(frozen=True, slots=True)
class _Constraints:
    """The constraints of one trial: outputs s that the true output y must outscore.

    vectors : phi(x, y) - phi(x, s) of each; margins : the required difference of scores.
    """

    vectors: list[Any]
    margins: list[float]

    def losses(self, space: Space) -> npt.NDArray[np.float64]:
        """Return margin - <w, phi(x, y) - phi(x, s)> for each constraint."""
        pairs = zip(self.margins, self.vectors, strict=True)
        return np.array([margin - space.score(vector) for margin, vector in pairs])

    def where(self, stored: list[bool]) -> _Constraints:
        """Return the constraints selected by a mask."""
        return _Constraints(
            [vector for vector, keep in zip(self.vectors, stored, strict=True) if keep],
            [margin for margin, keep in zip(self.margins, stored, strict=True) if keep],
        )


class StructuredLearner:
    r"""An online learner for structured outputs: sequences, trees, alignments.

    The user defines the joint features phi(x, y) of an instance and an output, and the search for
    the best output; the learner updates the weight vector that scores outputs,

    .. math:: \hat y = \arg\max_{y'} \langle w, \phi(x, y') \rangle, \qquad
        w \mathrel{+}= \sum_s \alpha_s (\phi(x, y) - \phi(x, s)),

    with the step sizes :math:`\alpha_s` of any update rule for the constraints
    :math:`\langle w, \phi(x, y) - \phi(x, s) \rangle \ge \text{cost}(y, s)` found by the search.

    Parameters
    ----------
    features : function (x, y) -> phi
        The joint features: a mapping of names to values, which may contain new names at any time,
        an array of shape (n_features,) or a sparse row.
    infer : function (weights, x) -> y
        The output of highest score. `weights` is read-only: for features by name a mapping, with 0
        for unseen names, otherwise an array.
    infer_augmented : function (weights, x, y) -> output, or None, default None
        The output s of highest :math:`\langle w, \phi(x, s) \rangle + \text{cost}(y, s)`. All
        rules with margins need it: all but "perceptron", "simperc", "conproj", "softmax" and
        "logistic".
    cost : function (y, s) -> float, or None, default None
        The cost of predicting s where y is right, which is also the required margin; 0 for y
        itself. Larger costs lead to larger updates. None means 1 for every other output.
    update : "perceptron", "margin-perceptron", "pa", "pa1", "pa2", "simperc", "conproj", \
"simproj", "mira", "hinge", "softmax", "logistic" or rule, default "perceptron"
        The update rule; a name stands for the rule of :mod:`kesler.updates`.
    n_best : int > 0, default 1
        The number of outputs that a search returns. If it is above 1, both searches are called with
        this number as an additional argument and return a list, best first; "simperc", "conproj",
        "simproj", "softmax" and "logistic" then update with more than one constraint.
    averaged : bool, default False
        Whether to predict with the mean of the weights after each trial, which is more robust to
        noise than the last weights. Learning does not depend on it.
    C, eta, delta, r : float or None, default None
        The parameters of a rule that is named by `update`, as in :mod:`kesler.updates`; None for
        the default. In searches they may also be written ``update__C``, as for rule objects.

    Attributes
    ----------
    weights_ : mapping or array
        The weights that `predict` passes to `infer`.
    n_trials_, n_mistakes_ : int
        Number of pairs learnt from, and number of pairs for which `predict` would have returned
        another output before the update (progressive validation).

    Raises
    ------
    KeslerError
        If an argument is unknown; if the joint features are not finite or not of one kind and
        width; if `infer_augmented` returns an output worse than the true one. The learner is then
        unchanged.

    Notes
    -----
    A trial searches once for the prediction, and once more for a rule with margins or with averaged
    weights, whose means are computed for the features that `infer` reads. "mira" repeats
    the search with updated weights until no constraint is violated by more than those found: it is
    exact if the search is exact. `infer` may be approximate: if it returns an output that scores
    less than the true one, there is no update. The features of both outputs cost O(nnz) in Python;
    the search usually takes longer.

    References
    ----------
    Collins (2002), averaged weights; Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006),
    Section 9; Taskar, Guestrin and Koller (2003), margins in proportion to the cost; Huang,
    Fayong and Guo (2012), approximate search.

    Examples
    --------
    Tag each word of a sentence with one of two tags, using the tag of the previous word:

    >>> from itertools import product
    >>> from kesler import StructuredLearner
    >>> def features(words, tags):
    ...     phi = {}
    ...     for name in [*zip(words, tags), *zip(tags, tags[1:])]:
    ...         phi[name] = phi.get(name, 0) + 1
    ...     return phi
    >>> def infer(weights, words):
    ...     score = lambda tags: sum(weights[f] * n for f, n in features(words, tags).items())
    ...     return max(product("NV", repeat=len(words)), key=score)
    >>> tagger = StructuredLearner(features, infer, averaged=True)
    >>> texts = [["fish", "swim"], ["fish", "fish"], ["swim"]] * 3
    >>> tags = [("N", "V"), ("N", "N"), ("V",)] * 3
    >>> tagger.fit(texts, tags).predict([["fish", "fish", "swim"]])
    [('N', 'N', 'V')]
    >>> tagger.n_trials_, tagger.n_mistakes_
    (9, 2)
    """

    _space: Space | None = None  # the weights; none before the first pair
    _moments: Any = None  # the sum of each step times the number of trials before it
    _averaged: Space | None = None  # the mean weights, once they have been asked for
    _n_trials: int = 0
    _n_mistakes: int = 0

    __slots__ = contract.SLOTS
    __class__: Any  # for type checkers, which treat classes as unhashable
    _created_lock: Any

    _get_param_names = classmethod(contract.param_names)
    get_params = contract.get_params
    set_params = contract.set_params
    __repr__ = contract.representation
    __getattr__ = contract.inherited
    _absent = NO_ESTIMATES | dict.fromkeys(
        (
            *("decision_function", "predict_top", "predict_top_one"),
            *("predict_proba", "predict_proba_one", "predict_log_proba"),
        ),
        "the outputs of an instance are not listed: infer returns those of highest score",
    )
    __getstate__, __setstate__ = contract.state, set_state
    __deepcopy__ = contract.copied
    _lock = property(contract.lock_of)

    def __init__(
        self,
        features: Callable[[Any, Any], Any],
        infer: Callable[..., Any],
        infer_augmented: Callable[..., Any] | None = None,
        cost: Callable[[Any, Any], float] | None = None,
        update: str | UpdateRule = "perceptron",
        n_best: int = 1,
        averaged: bool = False,
        C: float | None = None,
        eta: float | None = None,
        delta: float | None = None,
        r: float | None = None,
    ) -> None:
        self.features = features
        self.infer = infer
        self.infer_augmented = infer_augmented
        self.cost = cost
        self.update = update
        self.n_best = n_best
        self.averaged = averaged
        self.C = C
        self.eta = eta
        self.delta = delta
        self.r = r

    # ---- learning ---------------------------------------------------------------------------

    @exclusive
    def fit(self: Self, X: Iterable[Any], y: Iterable[Any]) -> Self:
        """Reset the model, then learn from the pairs once, in order; return the learner itself."""
        for name in _LEARNT:
            vars(self).pop(name, None)
        return self.partial_fit(X, y)

    def partial_fit(self: Self, X: Iterable[Any], y: Iterable[Any]) -> Self:
        """Learn from further pairs, in order.

        Parameters
        ----------
        X : instances, of any kind.
        y : their outputs, one for each instance.

        Returns
        -------
        The learner itself. If a pair raises an error, the pairs before it have been learnt.
        """
        instances, outputs = list(X), list(y)
        _require_lengths(instances, outputs)
        for instance, output in zip(instances, outputs, strict=True):
            self.learn_one(instance, output)
        return self

    @exclusive
    def learn_one(self: Self, x: Any, y: Any) -> Self:
        """Learn from one instance and its output; return the learner itself."""
        rule = self._rule()
        phi = self.features(x, y)
        space = self._space or space_for(phi)
        trial = _Trial(x, y, space, space.read(phi))
        outputs = self._outputs(self.infer, space.view(), x)
        n_better = _place(y, outputs)
        found = self._constraints(rule, trial, outputs, n_better)
        steps = self._steps(rule, trial, found)
        mistaken = self._is_mistaken(trial, n_better)
        self._move(space, steps, found.vectors)
        self._n_mistakes += mistaken
        return self

    def _is_mistaken(self, trial: _Trial, n_better: int) -> bool:
        """Return whether `predict_one` returns another output before the update."""
        if not (self.averaged and self.n_trials_):
            return n_better > 0
        means = trial.space.view_less(self._moments, 1 / self._n_trials)
        return not _same(self._outputs(self.infer, means, trial.x)[0], trial.y)

    def _move(self, space: Space, steps: npt.NDArray[np.float64], vectors: list[Any]) -> None:
        """Add the steps to the weights and to the sums for Collins's averaged weights."""
        if self._space is None:
            self._space = space
            self._moments = space.less(space, 1.0)
        n_trials = self._n_trials
        for step, vector in zip(steps.tolist(), vectors, strict=True):
            if step:
                space.add(step, vector)
                self._moments.add(n_trials * step, vector)
        self._n_trials = n_trials + 1
        self._averaged = None

    # ---- constraints ------------------------------------------------------------------------

    def _constraints(
        self, rule: UpdateRule, trial: _Trial, outputs: list[Any], n_better: int
    ) -> _Constraints:
        """Return the constraints for the rule; `infer` ranked `n_better` outputs before y."""
        if rule.constraints in ("predicted", "mistaken"):
            ahead = outputs[: min(n_better, 1)] if rule.constraints == "predicted" else outputs
            found = self._against(trial, ahead)
            # Outputs may tie with y, and an inexact search may rank a lower score before y. Sums of
            # the same numbers in another order differ in their last bits.
            tie = TIED * (1 + abs(trial.space.score(trial.truth)))
            return found.where([trial.space.score(vector) <= tie for vector in found.vectors])
        if not rule.margin:
            found = self._against(trial, outputs, margin=0.0)
        else:
            found = self._worst(trial)
        if rule.constraints == "all":
            return found
        is_violated = (found.losses(trial.space) > 0).tolist()
        if rule.constraints == "violated":
            return found.where(is_violated)
        return found.where([*is_violated[:1], *(False for _ in is_violated[1:])])

    def _worst(self, trial: _Trial) -> _Constraints:
        """Return the constraints found by `infer_augmented`, the most violated first."""
        if self.infer_augmented is None:
            raise KeslerError(
                f"update={self.update!r} is a rule with margins, so it needs "
                "infer_augmented(weights, x, y), the output of highest score plus cost: pass it, "
                "or use perceptron"
            )
        outputs = self._outputs(self.infer_augmented, trial.space.view(), trial.x, trial.y)
        found = self._against(trial, outputs)
        losses = found.losses(trial.space)
        first_is_other = len(losses) > 0 and not _same(outputs[0], trial.y)
        if first_is_other and losses[0] < -EXACT * (1 + found.margins[0]):
            raise KeslerError(
                f"infer_augmented(weights, x, y) returned an output whose score plus cost is "
                f"{-losses[0]:.3g} below the score of y itself: it must be the highest of all, y "
                "included"
            )
        order = np.argsort(-losses, kind="stable").tolist()
        return _Constraints([found.vectors[i] for i in order], [found.margins[i] for i in order])

    def _against(
        self, trial: _Trial, outputs: list[Any], margin: float | None = None
    ) -> _Constraints:
        """Return the constraints that y outscores other outputs, by `margin` or by their costs."""
        space, truth, x, y = trial.space, trial.truth, trial.x, trial.y
        others = [s for s in outputs if not _same(s, y)]
        vectors = [space.difference(truth, space.read(self.features(x, s))) for s in others]
        return _Constraints(
            vectors, [self._cost(y, s) if margin is None else margin for s in others]
        )

    def _steps(
        self, rule: UpdateRule, trial: _Trial, found: _Constraints
    ) -> npt.NDArray[np.float64]:
        """Return the step sizes for the constraints; a "growing" rule appends constraints."""
        space = trial.space
        products = gram(space, found.vectors)
        steps = _ask(rule, found.losses(space), products, np.zeros(len(products)))
        while rule.constraints == "growing" and 0 < len(steps) < MOST_OUTPUTS:
            with space.moved(steps, found.vectors):
                slack = max(0.0, float(found.losses(space).max()))
                further = self._worst(trial)
                if not further.vectors or further.losses(space)[0] <= slack + EXACT:
                    break
            found.vectors.append(further.vectors[0])
            found.margins.append(further.margins[0])
            products = bordered(space, products, found.vectors)
            steps = _ask(rule, found.losses(space), products, np.append(steps, 0.0))
        return steps

    # ---- predictions ------------------------------------------------------------------------

    @exclusive
    def predict(self, X: Iterable[Any], min_confidence: float | None = None) -> list[Any]:
        """Return the output of highest score of each instance.

        Parameters
        ----------
        X : instances as in `fit`.
        min_confidence : None
            Outputs have no estimate of their uncertainty.

        Raises
        ------
        KeslerError
            If `min_confidence` is given.
        """
        require_unasked(self, min_confidence=min_confidence)
        return [self.predict_one(x) for x in X]

    def predict_one(self, x: Any, min_confidence: float | None = None) -> Any:
        """Return the output of highest score of one instance, as `predict` does."""
        require_unasked(self, min_confidence=min_confidence)
        return self._outputs(self.infer, self.weights_, x)[0]

    def score(self, X: Iterable[Any], y: Iterable[Any], sample_weight: Any = None) -> float:
        """Return the share of instances whose output is predicted exactly.

        Parameters
        ----------
        X, y : instances and outputs as in `fit`.
        sample_weight : array of shape (n_instances,) or None, default None
            The weight of each instance in the mean.
        """
        outputs, predicted = list(y), self.predict(X)
        _require_lengths(predicted, outputs)
        right = [_same(s, t) for s, t in zip(predicted, outputs, strict=True)]
        from kesler.data.inputs import weighted_mean

        return weighted_mean(right, sample_weight)

    @property
    def weights_(self) -> Any:
        """The weights that `predict` passes to `infer`."""
        return self._predicting().view()

    @property
    def n_trials_(self) -> int:
        """Number of pairs learnt from."""
        return self._n_trials

    @property
    def n_mistakes_(self) -> int:
        """Number of pairs for which another output was predicted before the update."""
        return self._n_mistakes

    def _predicting(self) -> Space:
        space = self._space
        if space is None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: it has no weights before "
                "the first pair; call fit, partial_fit or learn_one first"
            )
        if not self.averaged:
            return space
        if self._averaged is None:
            self._averaged = space.less(self._moments, 1 / self._n_trials)
        return self._averaged

    # ---- user functions ---------------------------------------------------------------------

    def _outputs(self, search: Callable[..., Any], weights: Any, *given: Any) -> list[Any]:
        """Return the outputs of a search as a list, best first."""
        if self.n_best == 1:
            return [search(weights, *given)]
        outputs = search(weights, *given, self.n_best)
        if not isinstance(outputs, (list, tuple)) or not outputs:
            raise KeslerError(
                f"with n_best={self.n_best!r} a search must return a list of outputs, best first, "
                f"not {outputs!r:.60}"
            )
        return list(outputs)

    def _cost(self, y: Any, s: Any) -> float:
        cost = 1.0 if self.cost is None else float(self.cost(y, s))
        if not (math.isfinite(cost) and cost >= 0):
            raise KeslerError(f"cost(y, s) returned {cost}: it must be finite, 0 or more")
        return cost

    def _rule(self) -> UpdateRule:
        integer_of("n_best", self.n_best, 1)
        rule = rule_of(self.update, self.get_params(deep=False))
        if rule.preconditioner is not None or rule.constraints in VS_REST:
            raise KeslerError(
                f"{rule!r} needs separate weights for each class, which outputs do not have: "
                "choose a rule without them and without a preconditioner, such as pa1 or softmax"
            )
        if rule.margin not in (0, 1) and rule.heeds_margin:
            raise KeslerError(
                f"{rule!r} has a margin of {rule.margin}, but cost(y, s) is the margin here: "
                "return it from cost, and use the rule with margin 1"
            )
        return rule

    def _between_trials(self) -> AbstractContextManager[Any]:
        """Return a context: calls that learn hold the lock of the estimator for each pair."""
        return nullcontext()

    def __sklearn_is_fitted__(self) -> bool:
        return self._space is not None

    def __sklearn_tags__(self) -> Any:
        return contract.tags()


def _ask(
    rule: UpdateRule,
    losses: npt.NDArray[np.float64],
    products: npt.NDArray[np.float64],
    steps: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Compute the step sizes of the rule, starting from the given ones.

    The rule runs as plain Python: with few constraints this is faster than calling compiled code.
    """
    if len(steps):
        norms = products.diagonal().copy()
        _call(rule, np.array(rule.parameters), 1.0, losses, norms, products, steps)
    if not np.isfinite(steps).all():
        raise KeslerError(
            f"a step of the rule {rule!r} is not a finite number: use a capped rule such as pa1, "
            "or rescale the features"
        )
    return steps


def _call(rule: UpdateRule, *arguments: Any) -> None:
    if isinstance(rule, UserPart):
        from kesler.parts.trial_calls import result_of

        result_of(rule, *arguments)
    else:
        rule.steps(*arguments)


def _place(y: Any, outputs: Sequence[Any]) -> int:
    """Return the number of outputs ranked before y."""
    return next((i for i, s in enumerate(outputs) if _same(s, y)), len(outputs))


def _same(s: Any, y: Any) -> bool:
    """Return whether two outputs are equal; lists equal tuples, and items may be arrays."""
    if isinstance(s, np.ndarray) or isinstance(y, np.ndarray):
        return np.array_equal(s, y)
    if isinstance(s, (list, tuple)) and isinstance(y, (list, tuple)):
        return len(s) == len(y) and all(map(_same, s, y))
    return bool(s == y)


def _require_lengths(instances: list[Any], outputs: list[Any]) -> None:
    if len(instances) != len(outputs):
        raise KeslerError(
            f"there are {len(instances)} instances and {len(outputs)} outputs: give one output for "
            "each instance"
        )

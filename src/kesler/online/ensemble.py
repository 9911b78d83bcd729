"""Ensemble: several online learners whose predictions are combined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from kesler.errors import keep_settings
from kesler.learner.ensemble import Combination, EnsembleLearner
from kesler.learner.uncertainty import Use
from kesler.online.classifier import OnlineClassifier
from kesler.online.making import Maker, Settings, members_in_use, resolve_members

if TYPE_CHECKING:
    from kesler.data.schema.measurements import Inputs
    from kesler.queries.query import Query


class _EnsembleMaker(Maker):
    """Makes ensembles of the parameter `learners`."""

    def is_default(self, given: Settings) -> bool:
        return given["learners"] is None

    def members(self, given: Settings, *, dense: bool, inputs: Inputs | None = None) -> list[Any]:
        return resolve_members(given["learners"], dense=dense, inputs=inputs)

    def combination(self, given: Settings) -> dict[str, Any]:
        return {name: given[name] for name in ("combine", "discount", "demotion", "share")}

    def in_use(self, given: Settings, learner: Any) -> dict[str, Any]:
        return {"learners": members_in_use(learner), **self.combination(given)}


class Ensemble(OnlineClassifier):
    r"""A classifier that trains several learners in one pass and combines their predictions.

    Each learner runs its own trials, independently of the others. Let :math:`\hat y_i` be the class
    predicted by learner i and :math:`p_i` its probabilities. The ensemble predicts

    .. math:: \text{majority: } \arg\max_r \sum_{i : \hat y_i = r} b^{m_i},
        \quad \text{best: } \hat y_j, \; j = \arg\min_i E_i, \quad
        \text{mixture: } \arg\max_r \sum_i e^{-L_i} p_i(r \mid x)

    with :math:`m_i` the mistakes of learner i so far, and E and L its discounted errors and
    log-losses, :math:`E_i \leftarrow \gamma E_i + 1[\hat y_i \ne y]`. The first row of a class is
    not counted.

    "fixed-share" predicts :math:`\arg\max_r \sum_i w_i p_i(r \mid x)` with experts that are the N
    learners and, of several learners, two more: their logarithmic pool
    :math:`p_{N+1} \propto \prod_{i \le N} p_i^{\beta_i}`, and a pool that knows the last class z,

    .. math:: p_{N+2}(z) = \sigma(a \log \tfrac{p_{N+1}(z)}{1 - p_{N+1}(z)} + c), \quad
        w_i \leftarrow (1 - \alpha) \tfrac{w_i p_i(y)}{\sum_j w_j p_j(y)} +
        \tfrac{\alpha}{N + 2}

    where the other classes share the rest as in the pool. In `partial_fit` and `learn_one`, a and
    c, at first 1 and 0, follow the gradient of the log-loss of whether z comes again; `fit` takes
    its rows as a set, where z is not known. The exponents :math:`\beta_i`, at first 1/N and kept
    from 0 to 5, follow the gradient of the pool's log-loss, which is convex in them: what a learner
    says that others know better counts less, and learners that err on different rows are together
    more certain than each of them. Of one learner there are no pools.

    Parameters
    ----------
    learners : list of OnlineClassifier and LinearMax, or None, default None
        The members; what they have learnt is ignored. None means the default members.
    combine : "fixed-share", "mixture", "best" or "majority", default "fixed-share"
        "fixed-share" made the fewest mistakes in our runs, has a bound against the best sequence of
        learners, and thus follows streams in which another learner becomes the best; "mixture"
        discounts past losses instead; "best" predicts with one member and has the lowest prediction
        cost; "majority" has a bound on mistakes against the best learner.
    discount : float above 0, at most 1, or None, default None
        :math:`\gamma`. With smaller values the ensemble adapts faster when another member
        becomes the best; 1 means no discount. None means 0.98 for "mixture" and 0.995 for "best";
        the others ignore it.
    demotion : float between 0 and 1, default 0.9
        b. With smaller values the votes of learners with mistakes decay faster; the bound is
        smallest near 0. Used by "majority" only.
    share : float between 0 and 1, default 0.003
        :math:`\alpha`, the probability that another expert becomes the best at a row. With larger
        values the ensemble switches faster, and is never as sure of one member. Used by
        "fixed-share" only.
    columns, on_mismatch, uncertainty, label_budget, epochs, shuffle, random_state, class_weight
        As in :class:`~kesler.OnlineClassifier`; those of the members have no effect.

    Attributes
    ----------
    classes_, n_trials_, n_mistakes_, n_features_in_, feature_names_in_
        As in :class:`~kesler.OnlineClassifier`.
    mistakes_of_learners_ : list of int
        Number of mistakes of each learner.
    mistake_bound_ : float or None
        An upper bound on the number of mistakes of the ensemble, for any rows. For "majority" with
        N learners, the best of which made :math:`m^*` mistakes, and for "fixed-share" over the
        sequences :math:`i_1, i_2, \dots` of experts,

        .. math:: M \le \frac{m^* \ln(1/b) + \ln N}{\ln(2 / (1 + b))}, \qquad
            M \le \frac{1}{\ln 2} \min_{i_1, i_2, \dots} \sum_t
            (-\ln p_{i_t}(y_t \mid x_t) - \ln P(i_t \mid i_{t-1}))

        with :math:`P(i \mid j) = \alpha / (N + 2)`, and :math:`1 - \alpha` more for i = j. None for
        the others.

    Raises
    ------
    KeslerError
        If a learner is not a single-label classifier or is itself an ensemble, if a parameter is
        out of its range, or if a learner raises. The model is then unchanged.

    Notes
    -----
    A row costs the sum of the costs of the learners, and O(k) for each learner to combine them.
    `predict_proba` returns the combined probabilities, and for "majority" the calibrated share of
    votes. Larger blocks of rows use one thread for each learner. Row by
    row, in batches of any size or with any number of threads, the results are equal bit for bit.
    The bound of "majority" holds because more than half of all votes are wrong at a mistake of the
    ensemble: after M mistakes at most :math:`N ((1 + b) / 2)^M` of them are left, and the best
    learner has at least :math:`b^{m^*}`. That of "fixed-share" holds because its weights are those
    of Bayes' rule for a prior over sequences, so that its log-loss is at most that of any sequence
    minus the logarithm of its prior probability; and at a mistake, the target has at most the
    probability 1/2, a log-loss of ln 2. The best sequence is followed by Viterbi's recursion.

    References
    ----------
    Littlestone and Warmuth (1994), "The weighted majority algorithm", Section 5, for the bound;
    Mesterharm (2001) for sub-experts, of which learners that rate the class they predict are a
    special case; Vovk (1998) for mixtures of probabilities; Herbster and Warmuth (1998), "Tracking
    the best expert", Section 5, for fixed share; Genest and Zidek (1986) for pools by geometric
    means; Duchi, Hazan and Singer (2011), AdaGrad, for the steps of a, c and :math:`\beta`;
    Satopaa et al. (2014) for the exponent of pools; Zliobaite et al. (2015), "Evaluation methods
    and decision theory for classification of streaming data with temporal dependence".

    Examples
    --------
    >>> from kesler import Ensemble, OnlineClassifier
    >>> ensemble = Ensemble([OnlineClassifier(), OnlineClassifier("multi", update="mira")], "best")
    >>> for words, folder in [("win cash", "spam"), ("team lunch", "work"), ("cash prize", "spam")]:
    ...     ensemble = ensemble.learn_one(dict.fromkeys(words.split(), 1.0), folder)
    >>> ensemble.predict_one({"cash": 1.0}), ensemble.mistakes_of_learners_
    ('spam', [0, 0])
    """

    _maker: ClassVar[Maker] = _EnsembleMaker(OnlineClassifier.answer)

    def __init__(
        self,
        learners: list[OnlineClassifier] | None = None,
        combine: Combination = "fixed-share",
        discount: float | None = None,
        demotion: float = 0.9,
        share: float = 0.003,
        columns: Mapping[str, Any] | str | None = "auto",
        on_mismatch: str = "missing",
        uncertainty: Use = "auto",
        label_budget: float | Query | None = None,
        epochs: int | str = "auto",
        shuffle: bool | str = "auto",
        random_state: int = 0,
        class_weight: Mapping[Any, float] | str | None = None,
    ) -> None:
        keep_settings(self, locals())

    @property
    def mistakes_of_learners_(self) -> list[int]:
        """Number of mistakes of each learner."""
        return self._ensemble_learner().mistakes_of_members

    @property
    def mistake_bound_(self) -> float | None:
        """Mistake bound of weighted majority and fixed share; None for other combinations."""
        return self._ensemble_learner().mistake_bound

    def _ensemble_learner(self) -> EnsembleLearner:
        learner = self._fitted()
        assert isinstance(learner, EnsembleLearner)
        return learner

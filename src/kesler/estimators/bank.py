"""Bank: several learners on one stream, of which the best is found as it goes."""

from __future__ import annotations

from typing import Any

from kesler.bank_machine import BankMachine, Combination
from kesler.estimators.base import OnlineLearner
from kesler.estimators.members import resolve_members
from kesler.estimators.online import OnlineClassifier


class Bank(OnlineClassifier):
    r"""Several learners in one pass over the rows, and one prediction.

    Each learner runs its own trials; it knows nothing of the others. Of what they say of a row,
    with :math:`\hat y_i` the class and :math:`p_i` the probabilities of learner i, the bank makes

    .. math:: \text{majority: } \arg\max_r \sum_{i : \hat y_i = r} b^{m_i},
        \quad \text{best: } \hat y_j, \; j = \arg\min_i E_i, \quad
        \text{mixture: } \arg\max_r \sum_i e^{-L_i} p_i(r \mid x)

    with :math:`m_i` the mistakes of learner i so far, and E and L its errors and log-losses, of
    which the past is discounted: :math:`E_i \leftarrow \gamma E_i + 1[\hat y_i \ne y]`. The first
    row of a class counts for nobody.

    Parameters
    ----------
    learners : list of OnlineClassifier and LinearMax, or None, default None
        The members: unfitted, or taken as if they were. None is for the default ones.
    combine : "mixture", "best" or "majority", default "mixture"
        "mixture" made the fewest mistakes in our runs, about as many as the best learner known in
        hindsight; "best" follows one member and costs least to predict; "majority" has a mistake
        bound.
    discount : float above 0, at most 1, or None, default None
        :math:`\gamma`. Smaller values forget sooner which member was best, and follow changes
        faster; 1 never forgets. None takes 0.98 for "mixture" and 0.995 for "best"; "majority"
        forgets nothing and does not look at it.
    demotion : float between 0 and 1, default 0.9
        b. Smaller values silence learners that are wrong sooner; the bound is least near 0. Used by
        "majority" only.

    Attributes
    ----------
    classes_, n_trials_, n_mistakes_, n_features_in_, feature_names_in_
        As in :class:`~kesler.OnlineClassifier`.
    mistakes_of_learners_ : list of int
        The mistakes of each learner.
    mistake_bound_ : float or None
        Of "majority", the most mistakes that the bank can have made, whatever the rows:

        .. math:: M \le \frac{m^* \ln(1/b) + \ln N}{\ln(2 / (1 + b))}

        for N learners, the best of which made :math:`m^*`.

    Raises
    ------
    KeslerError
        If a learner is no classifier of single classes, or is a bank itself, a parameter is out of
        its range, or for what a learner refuses. The model is then as it was before.

    Notes
    -----
    A row costs what it costs each learner, and O(k) for each to be combined; "mixture" and "best"
    predict the probabilities as they were mixed, "majority" calibrates the share of the votes.
    Larger blocks of rows run in a thread a learner. Row by row, in batches of any size or with any
    number of threads, the bits are the same. The bound follows since more than half of all votes
    are wrong where the bank is: M mistakes leave at most :math:`N ((1 + b) / 2)^M` of them, and the
    best learner has :math:`b^{m^*}` at least.

    References
    ----------
    Littlestone and Warmuth (1994), "The weighted majority algorithm", Section 5, for the bound;
    Mesterharm (2001), whose sub-experts learners that rate the class they predict are; Vovk (1998)
    for mixtures of probabilities.

    Examples
    --------
    >>> from kesler import Bank, OnlineClassifier
    >>> bank = Bank([OnlineClassifier(), OnlineClassifier("multi", update="mira")], "best")
    >>> for words, folder in [("win cash", "spam"), ("team lunch", "work"), ("cash prize", "spam")]:
    ...     bank = bank.learn_one(dict.fromkeys(words.split(), 1.0), folder)
    >>> bank.predict_one({"cash": 1.0}), bank.mistakes_of_learners_
    ('spam', [0, 0])
    """

    def __init__(
        self,
        learners: list[OnlineClassifier] | None = None,
        combine: Combination = "mixture",
        discount: float | None = None,
        demotion: float = 0.9,
    ) -> None:
        self.learners = learners
        self.combine = combine
        self.discount = discount
        self.demotion = demotion

    @property
    def mistakes_of_learners_(self) -> list[int]:
        """The mistakes of each learner."""
        return self._bank_machine().mistakes_of_members

    @property
    def mistake_bound_(self) -> float | None:
        """The most mistakes that weighted majority can have made; None of other combinations."""
        return self._bank_machine().mistake_bound

    def _bank_machine(self) -> BankMachine:
        machine = self._fitted()
        assert isinstance(machine, BankMachine)
        return machine

    def _members(self, *, dense: bool = False) -> list[OnlineLearner]:
        return resolve_members(self.learners, dense=dense)

    def _combination(self) -> dict[str, Any]:
        return {
            "combine": self.combine,
            "discount": self.discount,
            "demotion": self.demotion,
        }

    @classmethod
    def _of_bank(cls, learners: list[Any], machine: BankMachine) -> Bank:
        return cls(learners, machine.combine, machine.discount, machine.demotion)

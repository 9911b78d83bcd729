"""Budgets: the number of support vectors, and what happens to those beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from kesler.codes import BudgetPolicy, code_of
from kesler.errors import KeslerError, is_integer, keep_number

__all__ = [
    "POLICIES",
    "Budget",
    "resolve_budget",
]

PolicyName = Literal["least-recent", "smallest", "forgetron", "projectron", "projectron++"]


class Policy(NamedTuple):
    """What a policy requires.

    Attributes
    ----------
    projects : whether updates are projected onto the span of the stored support vectors.
    is_measured : whether the learner sums up what the policy changed, for mistake bounds.
    rule : the name of the only update rule that the policy is defined for, "" for any.
    """

    projects: bool = False
    is_measured: bool = False
    rule: str = ""


# In the order of the codes in `kesler.compiled.kernels.supports`.
POLICIES: dict[PolicyName, Policy] = {
    "least-recent": Policy(),
    "smallest": Policy(),
    "forgetron": Policy(is_measured=True, rule="Perceptron"),
    "projectron": Policy(projects=True, is_measured=True),
    "projectron++": Policy(projects=True, is_measured=True, rule="MarginPerceptron"),
}
"""The policies by the names that :class:`Budget` accepts."""

ETA = 0.1
"""The default of `eta`, as in the software of Orabona et al. (2009)."""


@dataclass(frozen=True)
class Budget:
    r"""A maximum number of support vectors, and the policy that keeps it.

    "least-recent" removes the oldest support vector, "smallest" the one whose coefficients have the
    smallest sum of squares, of several the oldest. "forgetron" multiplies all coefficients by
    :math:`\phi_t`, so that the oldest support vector has little effect when it is removed:

    .. math:: \phi_t = \max \{\phi \in (0, 1] : \Psi(\phi) + Q_{t-1} \le \tfrac{15}{32} M_t\}, \quad
        \Psi(\phi) = \frac{\|\phi v\|^2}{R^2} + 2 \phi \sigma -
        \frac{2 \langle \phi f, \phi v \rangle}{R^2}

    where v is the summand of the oldest support vector in the hypotheses f, :math:`\sigma` its
    largest coefficient, R the largest norm of an update so far, Q the sum of :math:`\Psi` and M the
    number of updates. "projectron" adds an update to the coefficients of the stored support vectors
    S, without a new one,

    .. math:: \beta_r \leftarrow \beta_r + c_r K_S^{-1} k_S(x), \quad
        \text{if } \delta \max_r |c_r| \le \eta \text{ or } |S| = \text{size}, \quad
        \delta^2 = K(x, x) - k_S(x)^\top K_S^{-1} k_S(x)

    "projectron++" also learns from rows that are predicted rightly with a loss
    :math:`\ell > \delta / \eta`, by the projection :math:`P z` of the update z times
    :math:`\tau = \min(\ell / \|P z\|^2, 2 (\ell - \delta / \eta) / \|P z\|^2, 1)`.

    Parameters
    ----------
    size : int, 1 or more
        The maximum number of support vectors of each part of the hypotheses. Larger values mean
        fewer mistakes, and cost time and memory in proportion.
    policy : "least-recent", "smallest", "forgetron", "projectron" or "projectron++", \
default "least-recent"
        "forgetron" requires the rule "perceptron", "projectron++" the rule
        :class:`~kesler.updates.MarginPerceptron` and one part without a feature map.
    eta : float, 0 or more, or None, default None
        The distance from the span of the stored support vectors, for coefficients of 1, up to which
        a row is projected before the budget is used up. Larger values store fewer support vectors
        and lose more of each update. None is 0.1. Above 0 for "projectron++"; only for the
        policies that project.

    Raises
    ------
    KeslerError
        If a parameter is out of its range or does not fit the policy; when the learner is created,
        if the policy does not fit the rule, the preprocessing or the half-life.

    Notes
    -----
    For n support vectors, k hypotheses and rows of d features, in addition to O(n d) for the scores
    of a row: an update costs nothing under "least-recent", O(n d) under "smallest" and "forgetron",
    and O(n d + n^2 + n k) under the projecting policies, which store the inverse of the Gram matrix
    of the support vectors, 8 n^2 bytes for each part, and a coefficient for each support vector and
    hypothesis.

    The projecting policies use one Gram matrix for all hypotheses of a part, while the software of
    Orabona et al. projects the update of each class onto the support vectors of this class. With
    sigma="auto" the matrix belongs to the sigma of an earlier row, and is computed again, at a cost
    of O(n^3), when sigma has changed by a tenth.

    Bounds: see :func:`kesler.mistake_bound`.

    References
    ----------
    Cavallanti, Cesa-Bianchi and Gentile (2007), "Tracking the best hyperplane with a simple budget
    Perceptron"; Wang, Crammer and Vucetic (2012), "Breaking the curse of kernelization", removal;
    Dekel, Shalev-Shwartz and Singer (2008), "The Forgetron", the self-tuned algorithm; Orabona,
    Keshet and Caputo (2009), "Bounded kernel-based online learning".

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.budgets import Budget
    >>> X, y = [[0.0], [0.1], [1.0], [1.1], [2.0], [2.1]] * 10, [0, 0, 1, 1, 0, 0] * 10
    >>> model = OnlineClassifier(
    ...     "multi", update="perceptron", kernel="rbf", sigma=0.1, budget=Budget(3, "projectron")
    ... )
    >>> model.fit(X, y).n_support_vectors_, model.predict([[0.0], [1.0], [2.0]]).tolist()
    ([3], [0, 1, 0])
    """

    size: int
    policy: PolicyName = "least-recent"
    eta: float | None = None

    def __post_init__(self) -> None:
        _require_size(self.size, f"Budget(size={self.size!r}): size")
        if not isinstance(self.policy, str) or self.policy not in POLICIES:
            names = ", ".join(get_args(PolicyName))
            raise KeslerError(f"Budget(policy={self.policy!r}) is not known: choose one of {names}")
        object.__setattr__(self, "size", int(self.size))  # grid searches pass NumPy scalars
        if self.eta is not None:
            self._require_eta()

    def _require_eta(self) -> None:
        """Raise unless eta is a number that fits the policy."""
        eta = self.eta
        if not self.projects:
            raise KeslerError(
                f"Budget(eta={eta!r}) is a distance up to which rows are projected, and "
                f'policy="{self.policy}" projects none: omit eta, or choose policy="projectron"'
            )
        why = ", or None: it is a distance from the span of the support vectors"
        keep_number(self, "eta", why, least=0)
        if eta == 0 and self.policy == "projectron++":
            raise KeslerError(
                'Budget(eta=0, policy="projectron++"): eta must be above 0, since its inverse '
                'limits the norm of competitors; for projections without eta choose "projectron"'
            )

    @property
    def code(self) -> int:
        """The number of the policy in compiled code."""
        return code_of(BudgetPolicy, self.policy)

    @property
    def projects(self) -> bool:
        """Whether updates are projected onto the span of the stored support vectors."""
        return POLICIES[self.policy].projects

    @property
    def is_measured(self) -> bool:
        """Whether the learner sums up what the policy changed, for mistake bounds."""
        return POLICIES[self.policy].is_measured

    @property
    def settings(self) -> tuple[int, int, float, bool, bool]:
        """The size, the code, eta, `projects` and `is_measured`."""
        return self.size, self.code, self.threshold, self.projects, self.is_measured

    @property
    def threshold(self) -> float:
        """The value of `eta`, with its default."""
        return ETA if self.eta is None else self.eta


def resolve_budget(budget: Any) -> int | Budget | None:
    """Return a number of support vectors, a :class:`Budget`, or None for no limit.

    Raises
    ------
    KeslerError
        If it is none of them.

    Examples
    --------
    >>> resolve_budget(500), resolve_budget(Budget(20, "projectron", eta=0.2))
    (500, Budget(size=20, policy='projectron', eta=0.2))
    """
    if budget is None or isinstance(budget, Budget):
        return budget
    _require_size(budget, f"budget={budget!r}")
    return int(budget)


def _require_size(size: Any, subject: str) -> None:
    if not is_integer(size, 1):
        other = "" if "size" in subject else ", a kesler.budgets.Budget, or None"
        raise KeslerError(
            f"{subject} must be an integer of 1 or more{other}: it is the maximum number of "
            "support vectors of a part"
        )

r"""Mistake bounds of the Perceptron over a Mercer kernel, without a budget and within one.

Let z_t be the difference of views that trial t asks for, and f the hypotheses. A policy changes an
update to :math:`f_t = f_{t-1} + z_t + e_t`. For every competitor u, with the hinge loss
:math:`\ell_t` of u, L its sum and M mistakes:

- Projectron: :math:`z_t + \delta_t` is the projection of z_t and :math:`\langle f_{t-1}, z_t
  \rangle \le 0`, so that :math:`\|f_T\|^2 \le S = \sum_t \|z_t + \delta_t\|^2` and
  :math:`\langle u, f_T \rangle \ge M - L - \|u\| \Delta` with :math:`\Delta = \sum_t \|\delta_t\|`:
  :math:`M \le L + \|u\| (\Delta + \sqrt S)`. An update of Projectron++ by :math:`\tau_t < 1` adds
  :math:`2 \tau_t \langle f_{t-1}, z_t \rangle` to S and :math:`\tau_t` to the left side.
- Forgetron: progress towards :math:`\lambda u`, summed over the removals of
  :math:`v = \phi_t \sigma z` and the shrinking by :math:`\phi_t`, gives :math:`M \le L + D + \|u\|
  \sqrt{(1 + \Sigma) S}` with :math:`D = \sum_t \phi_t \sigma_t`, :math:`\Sigma = \sum_t (1 -
  \phi_t) / (1 + \phi_t)` and :math:`S = \sum_t \|z_t\|^2 + \sum_t (\|v_t\|^2 - 2 \langle \phi_t f,
  v_t \rangle)`. Dekel et al. (2008) bound these sums beforehand: :math:`M \le 2 R^2 \|u\|^2 + 4 L`
  for budgets B of 83 or more, :math:`R \|u\| \le \sqrt{(B + 1) / \ln(B + 1)} / 4` and a kernel for
  which all :math:`\|z_t\|` are R.

The sums are those of the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.evaluation.replay import Block, require_theorem, rows_of_weight_one
from kesler.hypotheses import PerClass
from kesler.kernels.mercer import MercerKernel
from kesler.learner.classes import ClassTable
from kesler.learner.kernel_learner import KernelLearner
from kesler.learner.targets import Targets
from kesler.updates.passive_aggressive import PassiveAggressive
from kesler.updates.perceptron import MarginPerceptron, Perceptron
from kesler.updates.rule import UpdateRule

Array = npt.NDArray[np.float64]

# Competitors: values of C of PA-I in units of 1 / R^2, and the number of passes of each.
CAPS, N_PASSES = (0.1, 1.0, 10.0), 2
LEAST_BUDGET = 83  # of the theorem of Dekel et al. (2008)
# Columns of the sums, as in `kesler.compiled.kernels.removals`.
SQUARES, ERRORS, LOST, SHRUNK = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class KernelCompetition:
    """The quantities in the theorems, for a competitor at several scales.

    Parameters
    ----------
    loss, squared_norm : arrays, the sum of hinge losses and the squared norm at each scale.
    """

    loss: Array
    squared_norm: Array


@dataclass(frozen=True, slots=True)
class KernelTheorem:
    """A bound with the sums of a run; `bound` returns one number for each scale."""

    name: str
    sums: Array
    radius: float
    size: int
    is_prior: bool = False

    def bound(self, of: KernelCompetition) -> Array:
        """Return the bound for each scale of a competitor."""
        norm = np.sqrt(of.squared_norm)
        if self.is_prior:
            most = math.sqrt((self.size + 1) / math.log(self.size + 1)) / 4
            holds = self.radius * norm <= most
            return np.where(holds, 2 * self.radius**2 * of.squared_norm + 4 * of.loss, np.inf)
        if not len(self.sums):  # M <= L + ||u|| R sqrt(M)
            half = self.radius * norm / 2
            bound: Array = (half + np.sqrt(half * half + of.loss)) ** 2
            return bound
        spread = np.sqrt(max(0.0, (1 + self.sums[SHRUNK]) * self.sums[SQUARES]))
        found: Array = of.loss + self.sums[LOST] + norm * (self.sums[ERRORS] + spread)
        return found


class KernelRun:
    """The rows of a run over a kernel, on which other learners are trained.

    Parameters
    ----------
    made : the unfitted learner of the run.
    blocks : the blocks of rows of the run, with encoded targets and sample weights.

    Raises
    ------
    KeslerError
        If no theorem covers the learner.
    """

    def __init__(self, made: KernelLearner, blocks: list[Block]) -> None:
        require_theorem(made)
        _require_plain(made)
        self.made = made
        self.pieces: list[tuple[Rows, Targets]] = [rows_of_weight_one(*b) for b in blocks]
        table = ClassTable(n_virtual=0)
        self.codes = [np.asarray(table.encode(t.names), dtype=np.int64) for _, t in self.pieces]
        y = np.concatenate(self.codes)
        known = np.maximum.accumulate(np.concatenate([[-1], y]))[:-1] + 1
        self.y, self.n_known, self.n_classes = y, known, len(table)
        self.compared = (y < known) & (known > 1)
        self.squares = np.concatenate([_own_similarities(made, rows) for rows, _ in self.pieces])
        compared = self.squares[self.compared]
        self.radius = float(np.sqrt(2 * compared.max(initial=0.0)))
        self.has_one_norm = (
            bool(np.ptp(compared) <= 1e-6 * compared.max()) if len(compared) else True
        )

    def learner(self, rule: UpdateRule, budget: Any = None) -> KernelLearner:
        """Return a learner over the kernel that has seen no class."""
        made = self.made
        return KernelLearner(
            made.parts,
            rule,
            ClassTable(n_virtual=0, declared=made.classes.declared),
            made.constant,
            answer=made.answer,
            kernel=made.kernel,
            dense=made.dense,
            budget=budget,
        )

    def learn(self, learner: KernelLearner) -> tuple[npt.NDArray[np.float32], int]:
        """Run a learner over all rows; return the scores before each trial, and the mistakes."""
        found, before = [], learner.n_mistakes
        for rows, targets in self.pieces:
            scores = np.full((len(rows), self.n_classes), -np.inf, dtype=np.float32)
            learner.learn(rows, targets.names, None, targets.answers, scores)
            found.append(scores)
        return np.concatenate(found), learner.n_mistakes - before

    def leads(self, scores: npt.NDArray[np.float32], n_known: npt.NDArray[np.int64]) -> Array:
        """Return score(right class) - largest score of another known class, for every row."""
        table = scores.astype(np.float64)
        rows, columns = np.arange(len(self.y)), np.arange(self.n_classes)
        own = table[rows, self.y].copy()
        table[columns >= n_known[:, None]] = -np.inf
        table[rows, self.y] = -np.inf
        with np.errstate(invalid="ignore"):
            leads: Array = own - table.max(axis=1)
        return leads

    def competitors(self) -> Iterator[KernelCompetition]:
        """Yield u = 0, and the hypotheses of passes of PA-I at several scales."""
        n = int(self.compared.sum())
        yield KernelCompetition(np.array([float(n)]), np.zeros(1))
        if not self.radius:
            return
        for cap in CAPS:
            C = cap / self.radius**2
            searcher, square = self.learner(PassiveAggressive(C)), 0.0
            for i in range(N_PASSES):
                known = self.n_known if i == 0 else np.full(len(self.y), self.n_classes)
                scores, _ = self.learn(searcher)
                square += self._grown(self.leads(scores, known), C, known)
                final = np.concatenate([searcher.scores(rows) for rows, _ in self.pieces])
                margins = self.leads(final[:, : self.n_classes], self.n_known)[self.compared]
                yield _at_scales(margins, square)

    def _grown(self, leads: Array, C: float, known: npt.NDArray[np.int64]) -> float:
        """Return the increase of ||u||^2 in a pass of PA-I, given the leads before each trial."""
        moved = (self.y < known) & (known > 1) & (leads < 1) & (self.squares > 0)
        lead, norm = leads[moved], 2 * self.squares[moved]
        tau = np.minimum(C, (1 - lead) / norm)
        return float((2 * tau * lead + tau * tau * norm).sum())


def _at_scales(margins: Array, square: float) -> KernelCompetition:
    """Return the losses and squared norms of a competitor, scaled to where losses become 0."""
    kinks = (1 + 1e-9) / margins[margins > 1e-30]
    if not len(kinks):
        return KernelCompetition(np.array([float(len(margins))]), np.zeros(1))
    between = np.geomspace(kinks.min() / 100, kinks.max(), 100)
    scales = np.concatenate([np.quantile(kinks, np.linspace(0, 1, 200)), between])
    ordered = np.sort(margins)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    n = np.searchsorted(ordered, 1 / scales)
    return KernelCompetition(np.maximum(0.0, n - scales * sums[n]), scales**2 * square)


def least_bound(
    made: KernelLearner,
    blocks: list[Block],
    n_mistakes: int | None,
    competitions: Sequence[KernelCompetition] = (),
) -> tuple[str, float, int, int, float, float, float]:
    """Return the smallest bound on the mistakes of a learner over a kernel.

    Parameters
    ----------
    made, blocks : as in `KernelRun`.
    n_mistakes : the number of mistakes; None to count them.
    competitions : the competitors, if they were found earlier for the same rows.

    Returns
    -------
    The name of the theorem, the bound, the numbers of mistakes and of trials that compare classes,
    the loss and the squared norm of the competitor, and R.
    """
    run = KernelRun(made, blocks)
    learner = run.learner(made.rule, made.budget)
    _, counted = run.learn(learner)
    theorems = list(_theorems(run, learner.supports.stored["sums"]))
    n_compared, best = int(run.compared.sum()), None
    for of in competitions or run.competitors():
        for theorem in theorems:
            bounds = theorem.bound(of)
            i = int(np.argmin(bounds))
            found = (float(bounds[i]), theorem.name, float(of.loss[i]), float(of.squared_norm[i]))
            best = found if best is None or found < best else best
    assert best is not None
    bound, name, loss, square = best
    n = counted if n_mistakes is None else n_mistakes
    return name, bound, n, n_compared, loss, square, run.radius


def _theorems(run: KernelRun, sums: Array) -> Iterator[KernelTheorem]:
    """Yield the theorems on the policy of the budget of a run."""
    budget = run.made.budget
    if budget is None:
        yield KernelTheorem("the Perceptron bound with hinge losses", np.zeros(0), run.radius, 0)
        return
    name = {
        "forgetron": "the progress of the Forgetron, Dekel et al. (2008), in this run",
        "projectron": "the projection errors of this run, Orabona et al. (2009)",
        "projectron++": "the projection errors of this run, Orabona et al. (2009)",
    }[budget.policy]  # type: ignore[union-attr]
    size = budget.size  # type: ignore[union-attr]
    yield KernelTheorem(name, sums[0], run.radius, size)
    prior = budget.policy == "forgetron" and size >= LEAST_BUDGET  # type: ignore[union-attr]
    if prior and run.has_one_norm:
        theorem = "the theorem of Dekel et al. (2008)"
        yield KernelTheorem(theorem, sums[0], run.radius, size, is_prior=True)


def _require_plain(made: KernelLearner) -> None:
    """Raise unless the theorems cover the rule, the budget, the hypotheses and the kernel."""
    budget = made.budget
    policy = "least-recent" if isinstance(budget, int) else budget and budget.policy
    rule = made.rule
    if policy in ("least-recent", "smallest"):
        raise KeslerError(
            f"Kesler has no theorem that bounds the mistakes within budget={made.budget!r}: give a "
            'Budget with policy="forgetron" or "projectron", or no budget'
        )
    if policy == "projectron++":
        is_covered = type(rule) is MarginPerceptron and rule.delta == 1
    else:
        is_covered = type(rule) is Perceptron
    if not is_covered:
        raise KeslerError(
            f"Kesler has no theorem that bounds the mistakes of {rule!r} over a kernel: there are "
            'bounds for update="perceptron", and for MarginPerceptron(delta=1) within a budget of '
            'the policy "projectron++"'
        )
    if made.answer != "class" or made.parts != [PerClass()]:
        raise KeslerError(
            "bounds over a kernel are for single classes and one hypothesis per class: evaluate "
            'the bound of an OnlineClassifier with hypotheses="multi"'
        )
    if made.kernel.share or made.preprocessing is not None:
        raise KeslerError(
            "no theorem covers a kernel that changes during the run: evaluate the bound with a "
            "number for sigma and preprocessing=None"
        )


def _own_similarities(made: KernelLearner, rows: Rows) -> Array:
    """Return K(x, x) of every row."""
    prepared: Any = made._prepare(rows)
    kernel = made.kernel
    values = np.asarray(prepared.values)
    bounds = prepared.indptr.tolist()
    parts = [values[a:b] for a, b in pairwise(bounds)]
    return np.array([_own(kernel, each) for each in parts], dtype=np.float64)


def _own(kernel: MercerKernel, x: npt.NDArray[np.float32]) -> float:
    given = (x, x)
    if kernel.of == "products":
        given = (np.float64(x.astype(np.float64) @ x.astype(np.float64)), np.float64(0))  # type: ignore[assignment]
    takes_q = kernel.k.__code__.co_argcount == 3
    parameters = (*kernel.parameters, 0.0, 0.0, 0.0, 0.0)[:4]
    return float(kernel.k(*given, parameters) if takes_q else kernel.k(*given))

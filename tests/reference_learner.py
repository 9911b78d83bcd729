"""The trials of one learner in NumPy, each from what the learner has before it.

A trial that rounding decides spoils none after it: it is left out, and the next begins anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import Any

import numpy as np

import reference
import reference_answers
import reference_links
import reference_preconditioners
from reference_preconditioners import AGAINST_REST

ONE_PAIR = ("perceptron", *reference_answers.WORST, *reference_answers.RIVAL)
SMOOTH = ("softmax", "logistic", "ovr-squared", "ovr-logistic", "least-squares")
LEAST = 1e-17  # of a gradient: float32 has the squares of smaller ones with few bits, or none


@dataclass(frozen=True)
class State:
    """What a learner keeps of each weight: the sums v, and what its rate follows from."""

    v: Any
    evidence: Any
    bets: Any = None  # of coin betting the sums, the wealth and the sizes
    largest: float = 0.0  # and the largest coefficient of a class so far


def pairs_of(ours: State, theirs: State) -> list[tuple[Any, Any]]:
    """Return what must be equal in two states.

    Shares that are equal but for rounding move a weight in full if they are its first.
    """
    found = [(ours.v, theirs.v), (ours.evidence, theirs.evidence)]
    if np.shape(ours.evidence) == np.shape(ours.v):
        is_noise = (ours.evidence > 0) & (ours.evidence < 1e-12) & (theirs.evidence < 1e-12)
        found[0] = np.where(is_noise, theirs.v, ours.v), theirs.v
    if ours.bets is not None:
        found += zip(ours.bets, theirs.bets, strict=True)
        found += [(np.array([ours.largest]), np.array([theirs.largest]))]
    return found


@dataclass
class ReferenceLearner:
    """A learner in the oracle's words.

    Attributes
    ----------
    answers, rest : levels of classes by number, and that of classes left out.
    labels : of the classes, by number.
    groups : the label sets of groups, by name.
    X : the rows, a constant before them where there is one.
    trials, gain : rows so far by weight, and their squared lengths in units of the scales.
    half_life : after how many rows all that is kept beside the weights counts half.
    """

    parts: list[dict[str, Any]]
    rule: str
    C: float
    answers: list[dict[int, int]]
    rest: int
    labels: list[Any]
    groups: dict[str, list[int]]
    X: Any
    link: reference_links.Link = field(default_factory=reference_links.linear)
    preconditioner: str = "euclidean"
    on_new_class: str = "register"
    invariant: bool | None = None
    is_ordinal: bool = False
    half_life: float = np.inf

    def __post_init__(self) -> None:
        self.parts = [part | {"groups": list(self.groups.values())} for part in self.parts]
        self.preconditioner = reference_preconditioners.OWN_PRECONDITIONER.get(
            self.rule, self.preconditioner
        )
        self.k = 1 + max([r for a in self.answers for r in a], default=0)
        self.k += self.on_new_class == "inherit"
        self.n = self.X.shape[1]
        self.margin = reference.margin_of(self.rule, self.C)
        self.everyone: list[Any] = []
        self.running: list[Any] = []
        self.ranks: list[int] = []  # the rank of each class, by its number
        self.seen = np.zeros(self.n, dtype=bool)
        self.pace = 0.1
        self.scales, self.trials, self.length = np.zeros(self.n), 0.0, 0.0

    @property
    def fading(self) -> float:
        """What the past is multiplied by after each trial."""
        return float(2 ** (-1 / self.half_life))

    def faded(self, state: State) -> State:
        """Return what is left of a state when the trial is over."""
        return replace(state, v=self.fading * state.v, evidence=self.fading * state.evidence)

    # ---- views and weights ------------------------------------------------------------------

    def sizes(self) -> list[int]:
        """How many hypotheses of n weights each part has."""
        return [
            2 if part["kind"] == "ordered" else reference.n_hypotheses(part, self.k)
            for part in self.parts
        ]

    def summed(self) -> Any:
        """Which weights are of one vector over ranks."""
        kinds = [part["kind"] == "ordered" for part in self.parts]
        return np.repeat(kinds, [self.n * size for size in self.sizes()])

    def view(self, x: Any, r: int) -> Any:
        """Return V^r: of ordered parts r's place times x, and 1 for each threshold under it.

        The weights of thresholds are minus the thresholds, as links of one sign require.
        """
        blocks = []
        for part in self.parts:
            if r == len(self.running) and part["kind"] != "per_class":  # the virtual class
                blocks.append(np.zeros(self.n * reference.n_hypotheses(part, self.k)))
            elif part["kind"] != "ordered":
                blocks.append(self.plain_view(x, r, part))
            else:
                blocks.append(self.ordered_view(x, r))
        return np.concatenate(blocks)

    def plain_view(self, x: Any, r: int, part: dict[str, Any]) -> Any:
        rows = [*self.running, []][r]
        if not rows and "view" in (part.get("map") or {}):  # which a class without rows has not
            return np.zeros(self.n * reference.n_hypotheses(part, self.k))
        return reference.stack(x, r, rows or [(np.zeros(self.n), 1.0)], [part], self.k)

    def ordered_view(self, x: Any, r: int) -> Any:
        here = sorted(self.ranks)
        place = here.index(self.ranks[r])
        block = np.zeros((2, self.n))
        block[0, 1:] = place * x[1:]
        block[1, [1 + rank for rank in here[1 : place + 1]]] = x[0]
        return block.ravel()

    def state_of(self, model: Any, *, linked: bool = False) -> State:
        """Return what the learner has, as `view` lays it out."""
        arrays = model._learner.arrays()
        tables = [
            arrays[f"weights.states.{i}"][0] if linked else arrays[f"weights.values.{i}"]
            for i in range(len(self.parts))
        ]
        decay = model._learner.stored["decay.row"]["weight"][0]
        self.pace = 0.1 * model._learner.stored["preconditioner.pace"]["factor"][0]
        v = self.laid_out(model, tables) / decay
        if "preconditioner.evidence.0" not in arrays:
            return State(v, np.zeros_like(v))
        evidence = self.laid_out_field(model, "evidence") / decay
        if self.preconditioner != "coin-betting":
            return State(v, evidence)
        sums, won, sizes = (
            self.laid_out_field(model, each) for each in ("sums", "winnings", "sizes")
        )
        return State(
            v, evidence, np.array([sums, 1 + won, sizes]), arrays["preconditioner.bets"][0]
        )

    def laid_out_field(self, model: Any, name: str) -> Any:
        """Lay a field of the preconditioner out as views are."""
        arrays = model._learner.arrays()
        tables = [arrays[f"preconditioner.{name}.{i}"] for i in range(len(self.parts))]
        return self.laid_out(model, tables)

    def laid_out(self, model: Any, tables: list[Any]) -> Any:
        """Lay tables out as views are."""
        blocks = []
        for i, (part, size) in enumerate(zip(self.parts, self.sizes(), strict=True)):
            full, table = np.zeros((size, self.n)), tables[i]
            if part["kind"] == "ordered":
                full[0, 1 : len(table)] = table[1:, 0]
                for code, rank in enumerate(self.ranks):
                    full[1, 1 + rank] = table[0, 1 + code]
            elif part["kind"] == "grouped":
                columns = model._learner.groups[i]
                for row, name in enumerate(self.groups):
                    if name in columns:
                        full[row, : len(table)] = table[:, columns[name]]
            else:
                full[: table.shape[1], : len(table)] = table.T
            blocks.append(full.ravel())
        return np.concatenate(blocks).astype(float)

    def seen_weights(self) -> Any:
        """Return which sums the scale of a link is made of."""
        return np.concatenate([self.seen_of(part).ravel() for part in self.parts])

    def seen_of(self, part: dict[str, Any]) -> Any:
        """Return which weights of a part are there: of ranks a threshold under all but one."""
        if part["kind"] != "ordered":
            met = reference_links.hypotheses_seen(part, len(self.running), self.k)
            return met[:, None] & self.seen
        there = np.zeros((2, self.n), dtype=bool)
        there[0, 1:] = self.seen[1:]
        there[1, [1 + rank for rank in sorted(self.ranks)[1:]]] = True
        return there

    # ---- trials -----------------------------------------------------------------------------

    def pairs(self, answer: dict[int, int], k: int) -> list[tuple[int, int]]:
        """Return which class must outscore which: of ranks, neighbours alone; k is the rest."""
        if not self.is_ordinal:
            compared = reference_answers.pairs_of(answer, self.rest, k)
            if self.rule not in AGAINST_REST or not compared:
                return compared
            return reference_answers.pairs_with_rest(answer, self.rest, k)
        (y,) = answer
        if y >= len(self.running):
            return []
        order = sorted(range(len(self.running)), key=lambda r: self.ranks[r])
        here = order.index(y)
        return [(b, a) if i < here else (a, b) for i, (a, b) in enumerate(pairwise(order))]

    def step(
        self, x: Any, answer: dict[int, int], before: State, weight: float = 1.0
    ) -> tuple[Any, State, bool]:
        """Return the scores before, the state after, and whether rounding decides nothing."""
        before = self.rescaled(x, before, weight)
        w = self.link.weights(before.v, self.seen_weights())
        scores, V = self.scored(x, w, len(self.running))
        again, k = scores, len(self.running)
        if self.on_new_class != "register":
            before = self.joined(answer, before)
            k = len(self.running) + (self.on_new_class == "inherit")
            known = () if self.is_ordinal else V  # where those who join change no other's view
            again, V = self.scored(x, self.link.weights(before.v, self.seen_weights()), k, known)
        pairs = self.pairs(answer, k)
        if not pairs:
            return scores, before, True
        V, again = np.vstack([V, np.zeros(V.shape[1])]), np.append(again, 0.0)
        size = float((abs(V) @ abs(w)).max())
        clear = self.is_clear(again, V * w, pairs, size)
        along = reference_answers.chosen(self.rule, again, pairs, self.margin)
        clear = clear and self.is_steep(V, along, again) and self.is_off_thresholds(x)
        if not along:
            return scores, before, clear
        if self.preconditioner == "coin-betting":
            return scores, self.betted(before, x, V, again, along, weight), clear
        return scores, self.moved(before, V, again, along, weight), clear

    def scored(self, x: Any, w: Any, k: int, known: Any = ()) -> tuple[Any, Any]:
        """Return the scores and the views of the first k classes, of which some are known."""
        more = [self.view(x, r) for r in range(len(known), k)]
        V = np.array([*known, *more]).reshape(k, len(w))
        return np.array([np.sort(row * w).sum() for row in V]), V

    def moved(self, before: State, V: Any, scores: Any, along: Any, weight: float) -> State:
        """Take the evidence of gradients in, step, and leave that of steps."""
        losses = reference_answers.losses_of(scores, along, self.margin)
        seen = self.with_gradient(along, scores)
        evidence = before.evidence + self.gradients_squared(
            V, [along[j] for j in seen], losses[seen], weight
        )
        d = np.array([V[r] - V[s] for r, s in along])
        rates = self.rates(evidence)
        if self.preconditioner == "euclidean":
            norms = np.array([self.link.squared_norm(each) for each in d])
        else:
            norms = (d * d) @ rates
        C = 1.0 if self.preconditioner == "distance-adagrad" else self.C
        strength = reference.strength_of(self.rule, C) * weight
        alpha = self.rule_reference()(losses, norms, (d * rates) @ d.T, strength)
        alpha = weight * alpha if self.rule in reference.UNIT_STEPS else alpha
        moving = np.full(len(alpha), alpha.sum()) if self.rule == "mira" else alpha
        evidence = evidence + reference_preconditioners.left_behind(
            self.preconditioner, d[seen], moving[seen], norms[seen], weight
        )
        return State(before.v + rates * (alpha @ d), evidence)

    def betted(
        self, before: State, x: Any, V: Any, scores: Any, along: Any, weight: float
    ) -> State:
        """Bet on the next gradient, whatever the step size of the rule."""
        losses = reference_answers.losses_of(scores, along, self.margin)
        plain = reference.RULES | reference_preconditioners.PLAIN
        none = np.full(len(along), np.nan)  # norms are not read
        alpha = plain[self.rule](losses, none, none, weight)
        alpha = weight * alpha if self.rule in reference.UNIT_STEPS else alpha
        c = np.zeros(len(V))
        for (r, s), step in zip(along, alpha, strict=True):
            c[[r, s]] += [step, -step]
        c[-1] = 0  # the rest
        amounts, largest = c @ V, max(before.largest, abs(c).max())
        concerned = sorted(
            {r for pair, step in zip(along, alpha, strict=True) if step for r in pair}
        )
        sizes = self.sizes_of_bets(x, V[concerned], amounts, largest)
        change, squares, bets = reference_preconditioners.bet_again(
            before.evidence, before.bets, amounts, sizes
        )
        return State(before.v + change, squares, bets, largest)

    def sizes_of_bets(self, x: Any, V: Any, amounts: Any, largest: float) -> Any:
        """Return what amounts would be at the largest coefficient so far."""
        ends = np.cumsum([self.n * size for size in self.sizes()])[:-1]
        views, found = np.split(V, ends, axis=1), []
        for part, view, amount in zip(self.parts, views, np.split(amounts, ends), strict=True):
            unit = abs(view).max(axis=0, initial=0)
            if part["kind"] == "ordered":  # of the row, not of its multiples by ranks
                unit = np.append(abs(x), np.zeros(self.n))
                unit[0], unit[[self.n + 1 + rank for rank in sorted(self.ranks)[1:]]] = 0, abs(x[0])
            found.append(np.maximum(abs(amount), largest * unit))
        return np.concatenate(found)

    def with_gradient(self, along: Any, scores: Any) -> list[int]:
        """Return the constraints in the gradient of the loss: Amit et al. 2006, Eq. 1, the worst.

        The loss of the other rules is the sum over all that they choose.
        """
        if self.rule == "mira":
            return [along.index(reference_answers.worst(scores, along)[0])]
        return list(range(len(along)))

    def rule_reference(self) -> Any:
        if self.invariant:
            return (reference_preconditioners.FLOWS | reference_preconditioners.RULES)[self.rule]
        plain = reference_preconditioners.PLAIN if self.invariant is False else {}
        return (reference.RULES | plain)[self.rule]

    def gradients_squared(self, V: Any, along: Any, losses: Any, weight: float) -> Any:
        if self.preconditioner not in reference_preconditioners.FOLLOWS_GRADIENTS:
            return 0.0
        return weight * reference_preconditioners.gradients_squared(
            V, self.coefficients(along, losses, len(V)), self.summed()
        )

    def coefficients(self, along: Any, losses: Any, k: int, sign: int = -1) -> Any:
        """Return the gradient of the loss by the scores; of `sign` 1 what its sums are made of."""
        slopes = reference_preconditioners.GRADIENTS.get(self.rule, np.ones_like)(losses)
        coefficients = np.zeros(k)
        for (r, s), slope in zip(along, slopes, strict=True):
            coefficients[[r, s]] += [slope, sign * slope]
        return coefficients

    def rates(self, evidence: Any) -> Any:
        everywhere = np.tile(self.scales, len(evidence) // self.n)
        gain = self.trials / self.length if self.length else 0.0
        return reference_preconditioners.rates(
            self.preconditioner, evidence, everywhere, gain, self.pace
        )

    def rescaled(self, x: Any, before: State, weight: float) -> State:
        """Count features in the units that they have from this row on."""
        self.scales, shrunk = reference_preconditioners.shrunk(self.preconditioner, x, self.scales)
        units = x
        if self.preconditioner.startswith("scale-free"):
            units = np.divide(x, self.scales, out=np.zeros(self.n), where=self.scales > 0)
        self.trials, self.length = self.trials + weight, self.length + weight * (units @ units)
        return replace(before, v=before.v * np.tile(shrunk, len(before.v) // self.n))

    def joined(self, answer: dict[int, int], before: State) -> State:
        """Let classes join; each leaves the virtual class that comes after it what it has."""
        first = len(self.running)
        self.let_join(answer)
        if self.on_new_class != "inherit" or len(self.running) == first:
            return before
        state = State(*(self.inherited(each, first) for each in (before.v, before.evidence)))
        if before.bets is None:
            return state
        bets = np.array([self.inherited(each, first) for each in before.bets])
        return replace(state, bets=bets, largest=before.largest)

    def inherited(self, table: Any, first: int) -> Any:
        """Copy what class `first` has to those that come after it."""
        blocks = np.split(table, np.cumsum([self.n * size for size in self.sizes()])[:-1])
        for i, part in enumerate(self.parts):
            if part["kind"] == "per_class":
                rows = blocks[i].reshape(-1, self.n).copy()
                rows[first + 1 : len(self.running) + 1] = rows[first]
                blocks[i] = rows.ravel()
        return np.concatenate(blocks)

    def is_clear(self, scores: Any, terms: Any, pairs: Any, size: float) -> bool:
        """Whether no choice of the rule hangs on the last bits of a score."""
        ordered = np.sort(terms, axis=1)
        leads = np.array([scores[r] - scores[s] for r, s in pairs])
        equal = np.array([bool((ordered[r] == ordered[s]).all()) for r, s in pairs])
        close = 1e-5 * size
        tied = (abs(leads) < close) & ~equal
        at_margin = abs(leads - self.margin) < close
        if self.rule in SMOOTH:
            return True
        has_one = self.rule == "mira" and self.preconditioner != "euclidean"
        if self.rule not in ONE_PAIR and not has_one:
            return not (
                (tied.any() and self.rule not in AGAINST_REST)
                or (at_margin.any() and self.rule in ("simproj", *AGAINST_REST))
            )
        last = [p for p, lead in zip(pairs, leads, strict=True) if lead < leads.min() + close]
        alike = all((ordered[list(p)] == ordered[list(last[0])]).all() for p in last)
        return (
            alike
            and not at_margin[leads < leads.min() + close].any()
            and not (self.rule == "perceptron" and tied.any())
        )

    def is_steep(self, V: Any, along: Any, scores: Any) -> bool:
        """Whether no gradient that rounding leaves is the first to be divided by its size."""
        follows = "adagrad" in self.preconditioner or self.preconditioner == "coin-betting"
        if not follows or self.rule not in ("softmax", "logistic"):
            return True  # whole numbers cancel in any arithmetic
        losses = reference_answers.losses_of(scores, along, self.margin)
        c = self.coefficients(along, losses, len(scores))
        whole = self.coefficients(along, losses, len(scores), sign=1)
        left = np.append(abs(c), np.where(self.summed(), abs(c @ V), 0))
        whole = np.append(whole, np.where(self.summed(), abs(c) @ abs(V), 0))
        faint = (0 < abs(c[:, None] * V)) & (abs(c[:, None] * V) < LEAST)
        return not ((left < 1e-6 * whole).any() or faint.any())

    def is_off_thresholds(self, x: Any) -> bool:
        """Whether no view jumps within what float32 leaves open of how common a feature is.

        Sums of halves and of whole numbers are exact, and so is where their ratio lies; those of
        rows that fade are not, though the ratio may be: of two rows, four half-lives apart, one is
        a fifth.
        """
        if self.fading == 1:
            return True
        for part, rows in product(self.parts, self.running):
            counted = part.get("map") or {}
            if counted.get("statistic") == "frequency" and rows:
                p = reference.statistic("frequency", rows)
                below, above = (counted["g"](x, p * (1 + open_)) for open_ in (-1e-5, 1e-5))
                if (below != above).any():
                    return False
        return True

    def take_in(self, x: Any, answer: dict[int, int], weight: float = 1.0) -> None:
        """Let classes join after the trial, and the row count as an instance of the best."""
        self.seen |= x != 0
        self.let_join(answer)
        self.trials, self.length = self.fading * self.trials, self.fading * self.length
        self.everyone[:] = [(row, self.fading * w, owner) for row, w, owner in self.everyone]
        for rows in self.running:
            rows[:] = [(row, self.fading * w) for row, w in rows]
        for r, level in answer.items():
            if level == 0:
                self.running[r].append((x, weight))

    def let_join(self, answer: dict[int, int]) -> None:
        while len(self.running) <= max([*answer, -1]):
            self.running.append(reference.Seen(self.everyone))
            if self.is_ordinal:
                self.ranks.append(int(self.labels[len(self.running) - 1]))

"""The oracle of learners that compare candidates, in float64 NumPy, from what is there before.

Every count is kept here, from the first row on; only weights and what their rates follow from may
be set to those of a learner before each trial, so that a trial that rounding decides spoils none
after it. The rest is written from the sources of the default for words: Counts with information,
contrasts, one-vs-rest hinge without overshoot, AdaGrad.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import reference_calibration
from reference_preprocessing import n_log_n

Array = NDArray[np.float64]
ETA = 0.5
BEGINS = (0.15, 0.05)  # of the shared hypotheses
EQUAL = 1e-6  # shares that differ by less, relative to their sum, are equal
CLOSE = 1e-5  # nearer than this, rounding may decide


@dataclass
class Trial:
    """What one row led to.

    Attributes
    ----------
    candidates, scores, probabilities : the classes compared, in their order, and what was said of
        them before the row was learnt; scores and probabilities are of all classes known.
    is_clear : whether no choice hangs on the last bits of a number.
    """

    candidates: NDArray[np.int64]
    scores: Array
    probabilities: Array
    is_clear: bool


@dataclass
class Calibration:
    """The inverse temperature, its information, and the share of targets that nothing explains."""

    inverse: float = 1.0
    information: float = 0.0
    lapse: float = 1.0
    encoded: float = 50.0

    def probabilities(self, scores: Array) -> Array:
        """Return the probabilities; before the first target of unequal scores, z differ by 2."""
        inverse = self.inverse
        if self.information == 0 and np.ptp(scores) > 0:
            inverse = 2 / float(np.ptp(scores))
        lapse = self.lapse / self.encoded
        return reference_calibration.probabilities(scores, lapse, inverse)[0]

    def learn(self, s: Array, y: int) -> None:
        """Take the step of one target, as `reference_calibration.calibrate` does."""
        if self.information == 0 and np.ptp(s) > 0:
            self.inverse, self.information = 2 / float(np.ptp(s)), 1.0
        if len(s) == 1 or self.information == 0:
            return
        u = self.lapse / self.encoded / len(s) / self.probabilities(s)[y]
        softmax, z = reference_calibration.probabilities(s, 0.0, self.inverse)
        mean, counts = softmax @ z, max(1 - u, 0.01)
        self.information = 0.99 * self.information + counts * (softmax @ (z - mean) ** 2)
        self.inverse *= np.exp(-np.clip(counts * (mean - z[y]) / self.information, -1, 1))
        self.lapse, self.encoded = 0.99 * self.lapse + u, 0.99 * self.encoded + 1


@dataclass
class Tables:
    """Weights, and the evidence of each: of features by classes, of the virtual class, shared."""

    own: Array
    virtual: Array
    shared: Array

    def copy(self) -> Tables:
        return Tables(self.own.copy(), self.virtual.copy(), self.shared.copy())


@dataclass
class ReferenceCandidates:
    """A learner of rows of words that compares at most `most` classes beyond `beyond` of them.

    The class of most rows is the first that reached their number since weights moved to entries;
    at that row, of equal numbers, the class seen first.
    """

    n: int
    n_classes: int
    most: int = 64
    beyond: int = 128
    budget: int = 2000
    intercept: float = 0.0  # the value of feature 0 in every row, if it is not 0
    k: int = 0
    rows: float = 0.0  # T
    mistakes: int = 0
    is_sparse: bool = False
    recall: list[int] = field(default_factory=lambda: [0, 0])  # rows of known classes, those found
    missing: float = 0.0
    frequent: int = 0  # the class of most rows
    calibration: Calibration = field(default_factory=Calibration)

    def __post_init__(self) -> None:
        n, k = self.n, self.n_classes
        begins = np.array([np.full(n, begin) for begin in BEGINS])
        self.w = Tables(np.zeros((n, k)), np.zeros(n), begins)
        self.g = Tables(np.zeros((n, k)), np.zeros(n), np.zeros((2, n)))
        self.counts = np.zeros((n, k))  # n_ir
        self.of_class, self.with_feature = np.zeros(k), np.zeros(n)  # N_r and n_i
        self.surprise = np.zeros(n)  # minus the logs of the shares of the classes of its rows

    # ---- rows and views -------------------------------------------------------------------------

    def prepared(self, x: Array) -> Array:
        """Return damped counts times the root of the information, of length 1."""
        size, n = np.abs(x), self.with_feature
        damped = np.where(size >= 1, np.sign(x) * (1 + np.log(np.maximum(size, 1))), x)
        gained = n_log_n(self.counts).sum(axis=1) - n_log_n(n) + self.surprise
        v = damped * np.sqrt(0.1 + np.maximum(gained, 0) / (n + 3))
        first = int(self.intercept != 0)
        length = np.sqrt((v[first:] ** 2).sum())
        v = np.asarray(v / length if length > 0 else v)
        v[:first] = self.intercept
        return v

    def contrasts(self, x: Array, r: int) -> Array:
        """Return the two views of a class: relative and plain; none of a class without rows."""
        if self.of_class[r] == 0:
            return np.zeros((2, self.n))
        a, b = self.shares(r)
        off, both = a - b, a + b
        differ = abs(off) > EQUAL * both
        relative = np.divide(off, both, out=np.zeros(self.n), where=differ & (both > 0))
        return np.array([x * relative, x * off])

    def shares(self, r: int) -> tuple[Array, Array]:
        """Return the smooth shares of rows with each feature, of the class and of all others."""
        everywhere = self.with_feature / self.rows
        others = self.with_feature - self.counts[:, r]
        a = (self.counts[:, r] + everywhere) / (self.of_class[r] + 1)
        return a, (others + everywhere) / (self.rows - self.of_class[r] + 1)

    # ---- candidates -----------------------------------------------------------------------------

    def place_count(self, n_entries: int) -> int:
        """Return the size of the block of a feature: 2^p >= 4, at most three quarters in use."""
        p = 2
        while 4 * n_entries > 3 * 2**p:
            p += 1
        return 2**p

    def visited(self, x: Array) -> list[int]:
        """Return the features whose classes get points, in order."""
        own = range(int(self.intercept != 0), self.n)
        sizes = {i: int((self.counts[i] > 0).sum()) for i in own if x[i]}
        places = {i: self.place_count(size) for i, size in sizes.items() if size}
        found, n_places = [], 0
        for i in sorted(places, key=lambda i: (places[i], i)):
            if found and n_places + places[i] > self.budget:
                break
            found.append(i)
            n_places += places[i]
        return found

    def points(self, x: Array) -> Array:
        """Return how much the features of a row speak for each class."""
        points = np.zeros(self.k)
        for i in self.visited(x):
            rarity = np.log((self.rows + 1) / (self.with_feature[i] + 0.5))
            points += self.counts[i, : self.k] * rarity**2
        return points

    def candidates(self, x: Array) -> tuple[NDArray[np.int64], bool]:
        """Return the classes that a row is compared with, and whether rounding decides nothing."""
        if not self.is_sparse or self.k <= self.most:
            return np.arange(self.k), True
        points = self.points(x)
        order = np.argsort(-points, kind="stable")
        chosen = order[: self.most][points[order[: self.most]] > 0]
        if len(chosen) < self.most:
            return np.union1d(chosen, [self.frequent]), True
        last, first = points[order[self.most - 1]], points[order[self.most]]
        is_clear = first == 0 or last - first > 1e-12 * last or self.are_alike(x, last)
        return np.sort(chosen), bool(is_clear)

    def are_alike(self, x: Array, last: float) -> bool:
        """Whether classes at the edge have the same points in any arithmetic: the same terms."""
        near = np.flatnonzero(abs(self.points(x) - last) <= 1e-12 * last)
        counts = self.counts[np.ix_(self.visited(x), near)]
        return bool((counts == counts[:, :1]).all())

    # ---- the trial ------------------------------------------------------------------------------

    def weights_of(self, tables: Tables, r: int) -> Array:
        """Return the weights or evidence of a class: of other features, those of the virtual."""
        if not self.is_sparse:
            return tables.own[:, r]
        return np.where(self.counts[:, r] > 0, tables.own[:, r], tables.virtual)

    def score(self, x: Array, r: int) -> float:
        own = x @ self.weights_of(self.w, r)
        return float(own + (self.w.shared * self.contrasts(x, r)).sum())

    def said(self, x: Array) -> Trial:
        """Return what is said of a row, x as it was given."""
        candidates, is_clear = self.candidates(x)
        seen = self.prepared(x)
        own = np.array([self.score(seen, r) for r in candidates])
        scores, probabilities = np.zeros(self.k), np.zeros(self.k)
        if not self.k:
            return Trial(candidates, scores, probabilities, is_clear)
        others = np.setdiff1d(np.arange(self.k), candidates)
        share = self.missing if len(others) else 0.0
        scores[:], scores[candidates] = own.min() - 1, own
        probabilities[others] = share / max(len(others), 1)
        probabilities[candidates] = (1 - share) * self.calibration.probabilities(own)
        ranked = np.sort(own)
        is_clear = is_clear and (len(own) == 1 or self.leads(seen, candidates, ranked))
        return Trial(candidates, scores, probabilities, is_clear)

    def leads(self, seen: Array, candidates: Any, ranked: Array) -> bool:
        """Whether one class leads, or those that do have the same score in any arithmetic."""
        return bool(ranked[-1] - ranked[-2] > CLOSE or ranked[-1] == ranked[-2])

    def step(self, x: Array, y: int, weight: float = 1.0) -> Trial:
        """Learn a row of class y; return what was said of it."""
        if y == self.k == self.beyond:
            self.is_sparse = True
            self.frequent = int(self.of_class[: self.k].argmax())
        trial, seen = self.said(x), self.prepared(x)
        is_new, is_found = y == self.k, y in trial.candidates
        if is_new:
            self.k += 1
            self.w.own[:, y], self.g.own[:, y] = self.w.virtual, self.g.virtual
        else:
            scores = trial.scores[trial.candidates]
            self.mistakes += y != trial.candidates[scores.argmax()]
            if is_found:
                self.calibration.learn(scores, int(np.searchsorted(trial.candidates, y)))
        concerned = trial.candidates if is_found else np.append(trial.candidates, y)
        trial.is_clear = self.update(seen, concerned, y, weight) and trial.is_clear
        if self.is_sparse and not is_new:
            self.recall = [self.recall[0] + 1, self.recall[1] + is_found]
            self.missing += 0.002 * ((not is_found) - self.missing)
        self.count(x, y, weight)
        return trial

    def update(self, x: Array, concerned: Any, y: int, weight: float) -> bool:
        """Move the classes with a loss, and the virtual one; return whether all is clear."""
        views = {int(r): self.contrasts(x, r) for r in concerned} | {-1: np.zeros((2, self.n))}
        w, g = self.w.copy(), self.g.copy()
        losses = {r: 1 - (1 if r == y else -1) * self.score(x, r) for r in views if r >= 0}
        losses[-1] = 1 + float(x @ self.w.virtual)
        moving = [r for r, loss in losses.items() if loss > 0]
        squares = np.array([views[r] ** 2 for r in moving]).reshape(-1, 2, self.n).sum(axis=0)
        g.shared += weight * squares
        rates_shared, along = rates(g.shared), np.zeros((2, self.n))
        for r in moving:
            old = self.g.virtual if r < 0 else self.weights_of(self.g, r)
            evidence = old + weight * x**2
            norm = x**2 @ rates(evidence) + (views[r] ** 2 * rates_shared).sum()
            step = min(ETA * weight, losses[r] / norm) if norm > 0 else ETA * weight
            step *= 1 if r == y else -1
            before = self.w.virtual if r < 0 else self.weights_of(self.w, r)
            after = before + step * rates(evidence) * x
            self.put(w, r, after)
            self.put(g, r, evidence)
            along += step * views[r]
        w.shared += rates_shared * along
        if self.is_sparse and y not in moving:  # its row has entries all the same
            for new, old in ((w, self.w), (g, self.g)):
                new.own[:, y] = self.weights_of(old, y)
        self.w, self.g = w, g
        return all(abs(loss) > CLOSE for loss in losses.values())

    def put(self, tables: Tables, r: int, values: Array) -> None:
        """Write a class back; what is no entry when the row is counted is not read again."""
        if r < 0:
            tables.virtual = values
        else:
            tables.own[:, r] = values

    def count(self, x: Array, y: int, weight: float) -> None:
        """Count the row; the class of most rows is the first that reached their number."""
        occurs = x != 0
        self.counts[occurs, y] += weight
        self.with_feature[occurs] += weight
        self.of_class[y] += weight
        self.rows += weight
        self.surprise[occurs] -= weight * np.log(self.of_class[y] / self.rows)
        if self.of_class[y] > self.of_class[self.frequent]:
            self.frequent = y

    # ---- what a learner has ---------------------------------------------------------------------

    def of_learner(self, learner: Any) -> tuple[Tables, Tables, Array]:
        """Return a learner's weights, evidence and counts as they are laid out here."""
        arrays = learner.arrays()
        found = []
        for name in ("weights.values", "preconditioner.evidence"):
            values = [self.padded(arrays[f"{name}.{i}"]) for i in range(3)]
            shared = np.array([values[1][:, 0], values[2][:, 0]])
            found.append(Tables(values[0][:, :-1], values[0][:, -1], shared))
        counts = np.zeros((self.n, self.n_classes))
        if "entries.starts" not in arrays:
            for table in found:
                table.own = self.wide(table.own)
            return found[0], found[1], counts
        features = np.repeat(
            np.arange(len(arrays["entries.starts"]) - 1), np.diff(arrays["entries.starts"])
        )
        places = features, arrays["entries.classes"]
        for each, table in enumerate(found):
            table.own = np.zeros((self.n, self.n_classes))
            table.own[places] = arrays["entries.numbers"][:, each]
        counts[places] = arrays["entries.numbers"][:, 2]
        return found[0], found[1], counts

    def padded(self, table: Any) -> Array:
        return np.vstack([table, np.zeros((self.n - len(table), table.shape[1]))]).astype(float)

    def wide(self, table: Array) -> Array:
        return np.hstack([table, np.zeros((self.n, self.n_classes - table.shape[1]))])

    def take_over(self, learner: Any) -> None:
        """Go on from the weights, the evidence and the calibration of a learner."""
        weights, evidence, _ = self.of_learner(learner)
        n_seen = len(learner.arrays()["weights.values.0"])
        for own, other in ((self.w, weights), (self.g, evidence)):
            other.shared[:, n_seen:] = own.shared[:, n_seen:]
        self.w, self.g = weights, evidence
        self.calibration = Calibration(*learner.arrays()["calibration"].tolist())


def rates(evidence: Array) -> Array:
    """AdaGrad (Duchi et al. 2011): 1 / sqrt(G), 0 where there was no gradient."""
    return np.divide(1, np.sqrt(evidence), out=np.zeros_like(evidence), where=evidence > 0)

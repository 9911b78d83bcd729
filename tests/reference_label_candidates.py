"""The oracle of label sets that are compared with candidates, in float64 NumPy.

Counts are kept from the first row on; weights, their evidence and the calibration may be taken from
a learner before each row. Feature 0 is the constant 1. Labels are numbered from 0, in the order in
which they came.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reference_candidates import BEGINS, CLOSE, ETA, Array, ReferenceCandidates, Tables, rates
from reference_label_sets import LabelCalibration
from reference_preprocessing import n_log_n


@dataclass
class Said:
    """What is said of a row: the candidates, their scores above the threshold, and probabilities.

    is_clear : whether no choice hangs on the last bits of a number.
    """

    candidates: Any
    scores: Array
    probabilities: Array
    is_clear: bool


@dataclass
class ReferenceLabelCandidates(ReferenceCandidates):
    """A learner of label sets: the default for words, where there are more than `beyond` labels."""

    intercept: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.w.shared, self.g.shared = self.w.shared[:1], self.g.shared[:1]
        self.gained = np.zeros(self.n)
        self.shared_offset = LabelCalibration(1)

    def prepared(self, x: Array) -> Array:
        size = np.where(np.arange(self.n) > 0, np.abs(x), 0)
        damped = np.where(size >= 1, 1 + np.log(np.maximum(size, 1)), size)
        v = damped * np.sqrt(0.1 + np.maximum(self.gained, 0) / (self.with_feature + 3))
        v /= np.sqrt((v**2).sum()) or 1.0
        v[0] = self.intercept
        return np.asarray(v)

    def contrasts(self, x: Array, r: int) -> Array:
        """Return the relative contrast alone."""
        return super().contrasts(x, r)[:1] if self.of_class[r] else np.zeros((1, self.n))

    def weights_of(self, tables: Tables, r: int) -> Array:
        """Return weights: an entry is what is added to that of the virtual label."""
        if not self.is_sparse:
            return tables.own[:, r]
        return tables.virtual + np.where(self.counts[:, r] > 0, tables.own[:, r], 0)

    def said_of(self, x: Array) -> Said:
        """Return what is said of a row before it is learnt."""
        candidates, is_clear = self.candidates(x)
        seen = self.prepared(x)
        scores = np.array([self.score(seen, r) for r in candidates])
        held = self.shared_offset
        z = np.clip(held.temper(scores) * scores, -80, 80)
        return Said(candidates, scores, 1 / (1 + np.exp(-(z + held.offsets[0]))), is_clear)

    def learn(self, x: Array, own: list[int], weight: float = 1.0) -> Said:
        """Learn a row; return what was said of it."""
        k, new = self.k, [r for r in own if r >= self.k]
        if not self.is_sparse and k + len(new) > self.beyond:
            self.begin_entries()
        said, seen = self.said_of(x), self.prepared(x)
        missed = [r for r in own if r < k and r not in said.candidates]
        for r in new:
            start = 0 if self.is_sparse else self.w.virtual, 0 if self.is_sparse else self.g.virtual
            self.w.own[:, r], self.g.own[:, r] = start
            self.k += 1
        if self.is_sparse:
            n_known = len(own) - len(new)
            found = n_known - len(missed)
            self.recall = [self.recall[0] + n_known, self.recall[1] + found]
            n_others = k - len(said.candidates)
            if n_others:
                self.missing += 0.002 * (len(missed) / n_others - self.missing)
        concerned = [*said.candidates.tolist(), *sorted(missed), *new]
        self.mistakes += bool(missed) or self.is_wrong(said, own)
        said.is_clear = self.move(x, seen, concerned, own, weight) and said.is_clear
        self.count_sets(x, own, weight)
        return said

    def is_wrong(self, said: Said, own: list[int]) -> bool:
        """Whether a label or the threshold is ahead of one that it is to be behind."""
        is_own = np.isin(said.candidates, own)
        inside, outside = said.scores[is_own], said.scores[~is_own]
        lowest, highest = inside.min(initial=np.inf), outside.max(initial=-np.inf)
        return bool(lowest <= 0 or highest > 0 or lowest <= highest)

    def begin_entries(self) -> None:
        for table in (self.w, self.g):
            table.own -= table.virtual[:, None]
        self.is_sparse = True
        self.frequent = int(self.of_class[: max(1, self.k)].argmax())

    def move(
        self, x: Array, seen: Array, concerned: list[int], own: list[int], weight: float
    ) -> Any:
        """Move the labels with a loss, and the virtual one; return whether all is clear."""
        views = {r: self.contrasts(seen, r) for r in concerned} | {-1: np.zeros((1, self.n))}
        before = {
            r: [t.virtual if r < 0 else self.weights_of(t, r) for t in (self.w, self.g)]
            for r in views
        }
        score = {r: seen @ before[r][0] + (self.w.shared * views[r]).sum() for r in views}
        losses = {r: 1 - (1 if r in own else -1) * score[r] for r in views}
        moving = [r for r in views if losses[r] > 0]
        self.g.shared = self.g.shared + weight * sum(views[r] ** 2 for r in moving)
        shared_rates, along = rates(self.g.shared), np.zeros((1, self.n))
        after = dict(before)
        for r in moving:
            evidence = np.maximum(before[r][1], 0) + weight * seen**2
            norm = seen**2 @ rates(evidence) + (views[r] ** 2 * shared_rates).sum()
            step = min(ETA * weight, losses[r] / norm) * (1 if r in own else -1)
            after[r] = [before[r][0] + step * rates(evidence) * seen, evidence]
            along += step * views[r]
        self.w.shared = self.w.shared + shared_rates * along
        for place, table in enumerate((self.w, self.g)):
            table.virtual = after[-1][place]
            base = table.virtual if self.is_sparse else 0
            for r in concerned:
                kept = (self.counts[:, r] > 0) | ((x != 0) & (r in own)) | (not self.is_sparse)
                table.own[:, r] = np.where(kept, after[r][place] - base, 0)
        return all(abs(loss) > CLOSE for loss in losses.values())

    def count_sets(self, x: Array, own: list[int], weight: float) -> None:
        occurs = x != 0
        self.with_feature[occurs] += weight
        self.rows += weight
        for r in own:
            self.counts[occurs, r] += weight
            self.of_class[r] += weight
        growth = n_log_n(self.with_feature) - n_log_n(self.with_feature - weight)
        for r in sorted(own):
            of_class = n_log_n(self.counts[:, r]) - n_log_n(self.counts[:, r] - weight)
            prior = weight * np.log(self.of_class[r] / self.rows)
            self.gained[occurs] += ((of_class - growth - prior) / len(own))[occurs]
            if self.is_sparse and self.of_class[r] > self.of_class[self.frequent]:
                self.frequent = r

    # ---- what a learner has ---------------------------------------------------------------------

    def tables_of(self, learner: Any) -> tuple[Tables, Tables, Array]:
        """Return a learner's weights, evidence and counts as they are laid out here."""
        arrays, found = learner.arrays(), []
        counts = np.zeros((self.n, self.n_classes))
        for name in ("weights.values", "preconditioner.evidence"):
            own, shared = (self.padded(arrays[f"{name}.{i}"]) for i in range(2))
            found.append(Tables(self.wide(own[:, 1:-1]), own[:, -1], shared.T))
        if "entries.starts" in arrays:
            starts = arrays["entries.starts"]
            features = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
            places = features, arrays["entries.classes"] - 1
            for each, table in enumerate(found):
                table.own = np.zeros((self.n, self.n_classes))
                table.own[places] = arrays["entries.numbers"][:, each]
            counts[places] = arrays["entries.numbers"][:, 2]
        return found[0], found[1], counts

    def take_over(self, learner: Any) -> None:
        weights, evidence, _ = self.tables_of(learner)
        n_seen = learner.n_features
        weights.shared[:, n_seen:] = BEGINS[0]
        self.w, self.g = weights, evidence
        held, arrays = self.shared_offset, learner.arrays()
        held.inverse, held.information, held.hits, held.named = arrays["sets.calibration"].tolist()
        held.offsets[0], held.evidence[0] = arrays["sets.offsets"][0], arrays["sets.evidence"][0]

    def calibrate(self, said: Said, own: list[int], n_missed: int) -> None:
        """Learn the calibration of a row that is compared with candidates."""
        held, relevant = self.shared_offset, np.isin(said.candidates, own)
        offset, evidence = held.offsets[0], held.evidence[0]
        wide = LabelCalibration(
            len(relevant), held.inverse, held.information, held.hits, held.named
        )
        wide.offsets[:], wide.evidence[:] = offset, evidence
        wide.learn(said.scores, relevant)
        p = said.probabilities
        held.inverse, held.information = wide.inverse, wide.information
        held.hits, held.named = wide.hits, wide.named + n_missed
        if len(p):
            held.evidence[0] = 0.999 * evidence + (p * (1 - p)).sum()
            held.offsets[0] = offset + (relevant - p).sum() / (held.evidence[0] + 5)

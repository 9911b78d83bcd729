"""The oracle of ranks: one pass of trials in plain float64 NumPy, one instance a threshold.

Written from Amit et al. (2006), Section 3: k - 1 instances, (x, e_j) for the j-th threshold, whose
weight is minus the threshold, of label +1 for those under y and -1 for the others, so that every
constraint is label <w, instance> >= 1; and, for one vector a rank, from Section 2. Under a link, as
in Section 7, w follows from sums v, and it is these that begin and move. Steps are those of
`reference.py`. PRank is Crammer and Singer (2001), Figure 1, which knows no hypotheses at all.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import reference
import reference_links
from reference import Array

CLOSE = 1e-5  # of the largest term of a margin: nearer than this, rounding may decide
WORST = reference.names_of(reference.most_violated)


class Thresholds:
    """The blocks of one expanded vector: w and thresholds, and one vector a rank.

    Or a vector for each node of a tree, given the nodes above each rank, and one that all ranks
    share over a feature map of `reference.MAPS`, with the rows of each rank in `past`. `own` is 0
    if the vectors of ranks have no weight for the constant.
    """

    def __init__(
        self,
        kinds: tuple[str, ...],
        n: int,
        n_ranks: int,
        nodes: Any = (),
        view: Any = None,
        own: float = 1.0,
    ) -> None:
        self.kinds, self.n, self.n_ranks, self.own = kinds, n, n_ranks, own
        self.nodes, self.view = nodes, view
        self.past: list[list[Any]] = [[] for _ in range(n_ranks)]
        self.names = sorted({node for above in nodes for node in above}, key=str)
        sizes = {"ordered": n - 1 + n_ranks, "per_class": n * n_ranks}
        sizes |= {"tree": n * len(self.names), "shared": n}
        self.starts = dict(
            zip(kinds, np.cumsum([0, *(sizes[kind] for kind in kinds)]), strict=False)
        )
        self.size = sum(sizes[kind] for kind in kinds)

    def instance(self, x: Array, lower: int, upper: int) -> Array:
        """phi(x, upper) - phi(x, lower) of neighbours: x begins with the constant."""
        d = np.zeros(self.size)
        if "ordered" in self.kinds:
            start = self.starts["ordered"]
            d[start : start + self.n - 1] = x[1:]
            d[start + self.n - 1 + upper] = x[0]
        if "per_class" in self.kinds:
            for rank, sign in ((upper, 1.0), (lower, -1.0)):
                start = self.starts["per_class"] + rank * self.n
                d[start : start + self.n] = sign * x
                d[start] *= self.own
        for rank, sign in ((upper, 1.0), (lower, -1.0)):
            for node in self.nodes[rank] if "tree" in self.kinds else ():
                start = self.starts["tree"] + self.names.index(node) * self.n
                d[start : start + self.n] += sign * x
            if "shared" in self.kinds:
                start = self.starts["shared"]
                d[start : start + self.n] += sign * reference.view(self.view, x, self.past[rank])
        return d

    def known(self, ranks: list[int], seen: Array) -> Array:
        """Which weights there are: of features seen, and below every rank but the lowest."""
        there = np.zeros(self.size, dtype=bool)
        if "ordered" in self.kinds:
            start = self.starts["ordered"] + self.n - 1
            there[start - self.n + 1 : start] = seen[1:]
            there[[start + rank for rank in ranks[1:]]] = True
        if "per_class" in self.kinds:
            for rank in ranks:
                start = self.starts["per_class"] + rank * self.n
                there[start : start + self.n] = seen
        return there

    def begin(self, w: Array, known: list[int], new: int) -> None:
        """Give the threshold that a new rank brings its first value."""
        if "ordered" not in self.kinds or len(known) < 2:
            return
        b = w[self.starts["ordered"] + self.n - 1 :][: self.n_ranks]  # b[r]: the one under r
        ranks = sorted([*known, new])
        place, gaps = ranks.index(new), max(1, len(known) - 2)
        if 0 < place < len(known):
            b[new] = b[ranks[place + 1]]
        elif place:
            b[new] = b[known[-1]] + (b[known[-1]] - b[known[1]]) / gaps
        else:
            b[known[0]] = b[known[1]] - (b[known[-1]] - b[known[1]]) / gaps


def margins_of(known: list[int], rank: int, cost: Any) -> Array:
    """Lin and Li 2012: a threshold counts by how much the costs on its sides differ."""
    prices = [0.0 if r == rank or cost is None else cost(rank, r) for r in known]
    differ = np.abs(np.diff(prices))
    return np.ones(len(differ)) if cost is None else differ


def choice(update: str, leads: Array, margins: Array, wrong: Array, ties: list[Any]) -> list[int]:
    """Amit et al. 2006, sec. 4: which instances a rule moves along; of equal ones the first tie."""
    most = margins.max(initial=0.0)
    order = sorted(range(len(leads)), key=lambda j: (leads[j] + most - margins[j], ties[j]))
    lossy, mistaken = [j for j in order if leads[j] < margins[j]], [j for j in order if wrong[j]]
    not_ahead = [j for j in order if leads[j] <= 0]
    return {
        **dict.fromkeys(reference.names_of(reference.predicted), mistaken[:1]),
        **dict.fromkeys(WORST, lossy[:1]),
        **dict.fromkeys(reference.names_of(reference.mistaken), not_ahead),
        **dict.fromkeys(reference.names_of(reference.with_loss), lossy),
        **dict.fromkeys(reference.names_of(reference.every), order if lossy else []),
        **dict.fromkeys(reference.names_of(reference.others), order),
    }[update]


def is_clear(scores: Array, sizes: Array) -> bool:
    """Whether the prediction does not hang on the last bits of a number; 0 is exact."""
    if not len(scores):
        return True
    best, group = int(np.argmax(scores)), np.cumsum([0, *(sizes > 0)])
    near = scores[best] - scores < len(scores) * CLOSE * sizes.max(initial=0.0)
    return not (near & (group != group[best])).any()


def is_decided(update: str, leads: Array, margins: Array, sizes: Array) -> bool:
    """Whether no choice of constraints hangs on the last bits of a number; 0 is exact."""
    close = CLOSE * sizes.max()
    near = (abs(leads) < close * (sizes > 0)) | (abs(leads - margins) < close * (sizes > 0))
    behind = leads - margins
    worst = np.argmin(behind)
    tied = (behind - behind[worst] < close) & ((sizes > 0) | (sizes[worst] > 0))
    tied[worst] = False
    return not (near.any() or (update in ("perceptron", *WORST) and tied.any()))


def reference_ordinal_run(
    X: Array,
    y: Any,
    kinds: tuple[str, ...],
    update: str,
    C: float = 1.0,
    weights: Any = None,
    link: reference_links.Link | None = None,
    cost: Any = None,
    **sharing: Any,
) -> dict[str, Any]:
    """Amit et al. 2006, Fig. 2: one pass; ranks y are numbers, which may come in any order."""
    space = Thresholds(kinds, X.shape[1], int(np.max(y)) + 1, **sharing)
    geometry = link or reference_links.linear()
    seen_features = np.zeros(X.shape[1], dtype=bool)
    v, moved = np.zeros(space.size), np.zeros(space.size)
    margin = reference.margin_of(update, C)
    known: list[int] = []
    seen: list[int] = []
    predictions: list[int] = []
    mistakes, doubtful = 0, len(X)
    for t, (x, rank) in enumerate(zip(X, map(int, y), strict=True)):
        weight = 1.0 if weights is None else float(weights[t])
        pairs = list(pairwise(known))
        D = np.array([space.instance(x, a, b) for a, b in pairs]).reshape(len(pairs), space.size)
        w = geometry.weights(v, space.known(known, seen_features))
        seen_features |= x != 0
        scores = np.cumsum([0.0, *(D @ w)])
        firsts = [seen.index(r) for r in known]
        best = sorted(range(len(known)), key=lambda i: (-scores[i], firsts[i]))
        predictions.append(known[best[0]] if known else -1)
        sizes = abs(D) @ (abs(w) if link else moved)
        if not is_clear(scores, sizes):
            doubtful = min(doubtful, t)
        if rank not in known:
            space.begin(v, known, rank)
            moved[:] = np.maximum(moved, abs(v))
            known, seen = sorted([*known, rank]), [*seen, rank]
            space.past[rank].append((x, weight))
            continue
        labels = np.array([1.0 if rank >= upper else -1.0 for _, upper in pairs])
        A = labels[:, None] * D
        leads = A @ w
        # The worse of two equals is ahead if it was seen first.
        order = np.array([seen.index(b) - seen.index(a) for a, b in pairs])
        swapped = labels * order > 0
        wrong = (leads < 0) | ((leads == 0) & swapped)
        margins = margin * margins_of(known, rank, cost)
        if pairs and not is_decided(update, leads, margins, sizes):
            doubtful = min(doubtful, t)
        mistakes += bool(wrong.any())
        ties: list[Any] = (~swapped).tolist()
        if cost is not None:  # as of classes: the better one seen first, then the worse one
            better_first = [(b, a) if rank >= b else (a, b) for a, b in pairs]
            ties = [(seen.index(r), seen.index(s)) for r, s in better_first]
        along = choice(update, leads, margins, wrong, ties)
        space.past[rank].append((x, weight))
        if along:
            d = A[along]
            norms = np.array([geometry.squared_norm(each) for each in d])
            alpha = reference.RULES[update](
                margins[along] - leads[along], norms, d @ d.T, C * weight
            )
            alpha = weight * alpha if update in reference.UNIT_STEPS else alpha
            v, moved = v + alpha @ d, moved + alpha @ abs(d)
    found = {"v": v, "moved": moved, "mistakes": mistakes, "doubtful": doubtful}
    return {**found, "predictions": predictions, "space": space}


def prank(X: Array, y: Any, k: int) -> tuple[list[int], Array, Array]:
    """Crammer and Singer 2001, Fig. 1: predictions, w and thresholds; ranks are 0 to k - 1."""
    w, b, predictions = np.zeros(X.shape[1]), np.zeros(k - 1), []
    for x, rank in zip(X, y, strict=True):
        above = w @ x - b >= 0
        predictions.append(k - 1 if above.all() else int(np.argmin(above)))
        if predictions[-1] != rank:
            label = np.where(rank > np.arange(k - 1), 1.0, -1.0)
            tau = np.where(label * (w @ x - b) <= 0, label, 0.0)
            w, b = w + tau.sum() * x, b - tau
    return predictions, w, b

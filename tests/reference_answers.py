"""The oracle of answers as levels: one pass of trials in plain float64 NumPy, all pairs, no speed.

Written from the text of Amit et al. (2006), Sections 2 and 3: an answer demands of every pair
(r, s) that r is scored above s, its loss is 1 - (score_r - score_s), and a trial is imperfect if
any pair is violated. Hypotheses and steps are those of `reference.py`, which knows no pairs.
"""

from typing import Any

import numpy as np

import reference
from reference import Array, Part, Past
from reference_preconditioners import AGAINST_REST

Pairs = list[tuple[int, int]]
WORST = (*reference.names_of(reference.most_violated), "arow")
RIVAL = ("scw1", "scw2")
CLOSE = 1e-4  # of the largest term of a score: nearer than this, rounding may decide


def pairs_of(levels: dict[int, int], rest: int, k: int) -> Pairs:
    """Amit et al. 2006, sec. 3: (r, s) such that r belongs above s; levels < 0 say nothing."""
    level = [levels.get(r, rest) for r in range(k)]
    pairs = [(r, s) for r in range(k) for s in range(k) if 0 <= level[r] < level[s]]
    return sorted(pairs, key=lambda p: (level[p[0]], level[p[1]], -p[0], p[1]))


def pairs_with_rest(levels: dict[int, int], rest: int, k: int) -> Pairs:
    """Rifkin and Klautau 2004: each class and k, the rest; the middle level is the rest's own."""
    level = [levels.get(r, rest) for r in range(k)]
    top = max([rest, *level])
    settings = [r for r in range(k) if level[r] >= 0 and 2 * level[r] != top]
    return [(r, k) if 2 * level[r] < top else (k, r) for r in settings]


def is_ahead(scores: Array, s: int, r: int) -> bool:
    """Whether s is ranked before r: by score, then by number."""
    return bool((-scores[s], s) < (-scores[r], r))


def losses_of(scores: Array, pairs: Pairs, margin: float) -> Array:
    """Amit et al. 2006, sec. 3: margin - (score_r - score_s); its positive part is the loss."""
    return np.array([margin - (scores[r] - scores[s]) for r, s in pairs])


def worst(scores: Array, pairs: Pairs) -> Pairs:
    """Amit et al. 2006, sec. 3: the pair of the largest loss; of equals, one that is violated."""
    return sorted(pairs, key=lambda p: (scores[p[0]] - scores[p[1]], p[0] < p[1]))[:1]


def chosen(update: str, scores: Array, pairs: Pairs, margin: float) -> Pairs:
    """Amit et al. 2006, sec. 4: M (not ahead) and Gamma (with a loss); else the worst, or all."""
    mistaken = [p for p in pairs if is_ahead(scores, p[1], p[0])]
    not_ahead = [p for p in pairs if reference.is_not_behind(scores, p[1], p[0])]
    lossy = [p for p in pairs if losses_of(scores, [p], margin)[0] > 0]
    return {
        **dict.fromkeys(reference.names_of(reference.predicted), worst(scores, mistaken)),
        **dict.fromkeys(WORST, worst(scores, lossy)),
        **dict.fromkeys(RIVAL, worst(scores, pairs)),
        **dict.fromkeys(reference.names_of(reference.mistaken), not_ahead),
        **dict.fromkeys(reference.names_of(reference.with_loss), lossy),
        **dict.fromkeys(reference.names_of(reference.every), pairs if lossy else []),
        **dict.fromkeys([*reference.names_of(reference.others), *AGAINST_REST], pairs),
    }[update]


def decided(
    update: str,
    scores: Array,
    pairs: Pairs,
    margin: float,
    terms: Array,
    size: float,
    loose: set[int],
) -> bool:
    """Whether no choice of the trial hangs on the last bits of a score.

    Two classes of the same terms tie in any arithmetic, but for those that a solver left `loose`.
    """
    same = [bool((terms[r] == terms[s]).all()) and not {r, s} & loose for r, s in pairs]
    gaps = np.array([scores[r] - scores[s] for r, s in pairs])
    close = 10 * CLOSE * size + 1e-5 if update == "mira" else CLOSE * size
    near = (abs(gaps) < close) & ~np.array(same)
    smooth = update in ("softmax", "logistic")  # moves a little less or more there, no other way
    at_margin = (abs(gaps - margin) < close) & (close > 0) & (not smooth)
    above = gaps - gaps.min()
    one_of = update in ("perceptron", *WORST)
    tied = (above > 0) & (above < close) & one_of
    return not (near.any() or at_margin.any() or tied.any())


def reference_answers_run(
    X: Array,
    answers: list[dict[int, int]],
    rest: int,
    hypotheses: list[Part],
    update: str,
    C: float = 1.0,
    weights: Any = None,
) -> dict[str, Any]:
    """Amit et al. 2006, Fig. 2: one pass; answers map classes, as they appear, to levels."""
    margin = reference.margin_of(update, C)
    k, n = 1 + max((r for answer in answers for r in answer), default=-1), X.shape[1]
    ends = n * np.cumsum([reference.n_hypotheses(part, k) for part in hypotheses])
    w, moved = np.zeros(ends[-1]), np.zeros(ends[-1])
    running: list[Past] = []  # the rows in which each class was best
    shared = any(part["kind"] != "per_class" for part in hypotheses)
    touched: set[int] = set()  # classes whose weights a solver may have moved by its last bits
    scores_before, mistakes, doubtful = [], 0, len(X)
    for t, answer in enumerate(answers):
        weight = 1.0 if weights is None else float(weights[t])
        seen = [rows or [(np.zeros(n), 1.0)] for rows in running]
        V = np.array(
            [reference.stack(X[t], r, seen[r], hypotheses, k) for r in range(len(running))]
        )
        scores = np.array([np.sort(v * w).sum() for v in V])  # same terms, same score
        scores_before.append(scores)
        pairs = pairs_of(answer, rest, len(running))
        size = float((abs(V) @ moved).max()) if len(V) else 0.0
        terms = np.array([[*np.sort(v * w), *np.sort(abs(v) * moved)] for v in V])
        solved = touched if update == "mira" else set()
        loose = {r for r in range(len(V)) if V[r].any() and (r in solved or (solved and shared))}
        if pairs and not decided(update, scores, pairs, margin, terms, size, loose):
            doubtful = min(doubtful, t)
        mistakes += any(is_ahead(scores, s, r) for r, s in pairs)
        along = chosen(update, scores, pairs, margin)
        touched |= {r for pair in along for r in pair}
        if along:
            d = np.array([V[r] - V[s] for r, s in along])
            norms = (d * d).sum(axis=1)
            alpha = reference.RULES[update](
                losses_of(scores, along, margin), norms, d @ d.T, C * weight
            )
            alpha = weight * alpha if update in reference.UNIT_STEPS else alpha
            w, moved = w + alpha @ d, moved + alpha @ abs(d)
        running.extend([] for _ in range(len(running), max([*answer, len(running) - 1]) + 1))
        for r, level in answer.items():
            if level == 0:
                running[r].append((X[t], weight))
    W = [v.reshape(-1, n) for v in np.split(w, ends[:-1])]
    found = {"scores": scores_before, "mistakes": mistakes, "doubtful": doubtful, "moved": moved}
    return {**found, "W": W}


if __name__ == "__main__":
    # By hand: row 0 only joins 0, 1, 2; row 1 ties all, 1 before 2 by number, but wants 2 on top.
    rows2 = np.array([[1.0, 0.0], [1.0, 0.0]])
    settings = [{0: 1, 1: 0, 2: 2}, {0: 1, 2: 0, 1: 2}]
    run = reference_answers_run(rows2, settings, 2, [{"kind": "per_class", "map": None}], "simperc")
    # Violated: 2 over 0 and 2 over 1; 0 over 1 holds by number. C / 2 along each.
    assert run["W"][0].tolist() == [[-0.5, 0.0], [-0.5, 0.0], [1.0, 0.0]], run
    assert run["mistakes"] == 1, run
    print("the oracle's self-check passes")

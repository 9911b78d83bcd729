"""The oracle of sub-experts: one pass of trials in plain float64 NumPy, dense ratings, no speed.

Written from Mesterharm (2001), Sections 2, 5.3 and 6; how far to move is `reference.py`'s, which
knows no ratings. Run it for its self-check.
"""

from typing import Any, NamedTuple

import numpy as np

import reference
from reference import Array
from reference_answers import chosen
from reference_links import Link, is_doubtful, step

CLOSE = 1e-4  # of the largest term of a score: nearer than this, rounding may decide


class Part(NamedTuple):
    """Who shares which weights ("per_class", "shared", "grouped"), over ratings or attributes."""

    kind: str
    of: str
    groups: tuple[tuple[int, ...], ...] = ()


def view(part: Part, ratings: Array, attributes: Array, r: int, k: int) -> Array:
    """Mesterharm 2001, sec. 2.1 and 5.2: x^r, or z for every class, where r's weights are."""
    members = {"per_class": [r], "shared": [0]}.get(part.kind)
    if members is None:
        members = [t for t, group in enumerate(part.groups) if r in group]
    phi = ratings[r] if part.of == "ratings" else attributes
    n_hypotheses = {"per_class": k, "shared": 1}.get(part.kind, len(part.groups))
    block = np.zeros((n_hypotheses, len(phi)))
    block[members] = phi
    return block.ravel()


def sub_experts_run(
    ratings: Array,
    attributes: Array,
    y: Any,
    parts: list[Part],
    update: str,
    C: float = 1.0,
    weights: Any = None,
) -> dict[str, Any]:
    """Mesterharm 2001, sec. 2.2: predict the class of highest vote, of ratings (m, k, n)."""
    k, known = ratings.shape[1], 0
    ends = np.cumsum([len(view(p, ratings[0], attributes[0], 0, k)) for p in parts])
    w, moved, doubtful = np.zeros(ends[-1]), np.zeros(ends[-1]), len(y)
    found, predictions, mistakes = list[Array](), list[int](), 0
    solved = False  # whether a solver has made steps, though all of them may have cancelled
    for t, label in enumerate(y):
        weight = 1.0 if weights is None else float(weights[t])
        views = [[view(p, ratings[t], attributes[t], r, k) for p in parts] for r in range(known)]
        V = np.array([np.concatenate(each) for each in views])  # sec. 6.2: unseen ones never win
        scores = np.array([v @ w for v in V])
        found.append(scores)
        predictions.append(int(np.argmax(scores)) if known else -1)
        joins = label == known
        if known and close_call(V, scores, moved, solved=solved, moves=not joins):
            doubtful = min(doubtful, t)
        if joins:  # our law: the first row of a class moves nothing
            known += 1
            continue
        mistakes += predictions[-1] != label
        step = reference.move(update, V, scores, int(label), C, weight)
        w, moved = w + step, moved + abs(step)
        solved |= update == "mira" and known > 1 and bool(V.any())
    out = {"scores": found, "predictions": predictions, "mistakes": int(mistakes)}
    return {**out, "W": np.split(w, ends[:-1]), "doubtful": doubtful}


def linked_run(ratings: Array, y: Any, update: str, link: Link, C: float) -> dict[str, Any]:
    """Mesterharm 2001, sec. 4 and 6.1: weights f(v) over sub-experts, all of which begin alike."""
    known, v, seen = 0, np.zeros(ratings.shape[2]), np.zeros(ratings.shape[2], dtype=bool)
    margin, found, doubtful = reference.margin_of(update, C), list[Array](), len(y)
    for t, label in enumerate(map(int, y)):
        w, V = link.weights(v, seen), ratings[t, :known]
        scores = np.array([np.sort(row * w).sum() for row in V])  # same terms, same score
        found.append(scores)
        seen |= (V != 0).any(axis=0)
        if label == known:
            known += 1
        elif known > 1:
            pairs, size = [(label, s) for s in range(known) if s != label], (abs(V) @ abs(w)).max()
            if is_doubtful(update, scores, V * w, pairs, margin, float(size)):
                doubtful = min(doubtful, t)
            along = chosen(update, scores, pairs, margin)
            v = v + step(update, V, scores, along, margin, link, C)
    return {"scores": found, "doubtful": doubtful}


def close_call(V: Array, scores: Array, moved: Array, *, solved: bool, moves: bool) -> bool:
    """Whether rounding, or a solver's last bits, could change who wins or, if it moves, a loss."""
    pairs = np.triu_indices(len(scores), 1)
    gaps = abs(scores[:, None] - scores)[pairs]
    close = CLOSE * float((abs(V) * moved).sum(axis=1).max())
    close += 1e-3 * float(abs(V).max()) * solved
    nothing = (scores == 0) & ((abs(V).sum(axis=1) == 0) | (not solved))
    near = (gaps < close) & ~(nothing[:, None] & nothing)[pairs]
    return bool(near.any() or (moves and (abs(gaps - 1) < close).any()))


if __name__ == "__main__":
    # By hand: rows 0 and 1 join; row 2 ties and says 0, so w = x^1 - x^0 = (-1, 1).
    settings = np.array([[[1.0, 0.0], [0.0, 1.0]]] * 3)
    run = sub_experts_run(
        settings, np.zeros((3, 1)), [0, 1, 1], [Part("shared", "ratings")], "perceptron"
    )
    assert run["mistakes"] == 1 and run["W"][0].tolist() == [-1.0, 1.0], run
    print("the oracle's self-check passes")

"""Prediction sets of others beside ours: recalibration of the last rows, and MAPIE."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from kesler import NEW, OnlineClassifier
from report import Report, table
from sets import Stream

RECALIBRATED = ("farmer-d", "kaminski-v", "sanders-r", "late segment", "late vowel", "late landsat")
FIXED = ("landsat", "pendigits", "optdigits", "letter")
COVERAGE, LAST_ROWS, WINDOW = 0.9, 1000, 500
Doubles = npt.NDArray[np.float64]


def add_peers(page: Report, stream_of: Callable[[str], Stream]) -> None:
    """Add the tables of peers."""
    rows = []
    for name in RECALIBRATED:
        for peer, (covered, sizes) in online_sets(stream_of(name)).items():
            sums = np.cumsum(np.append(0, covered))
            worst = (sums[WINDOW:] - sums[:-WINDOW]).min() / WINDOW
            figures = f"{covered.mean():.3f}", f"{worst:.3f}", f"{sizes.mean():.2f}"
            rows.append([f"{name}, {peer}", *figures])
    page.add(
        "## Other ways to sets, at 90 %, from the same probabilities",
        ONLINE,
        table(["", "coverage", "worst window", "mean size"], rows),
    )
    rows = []
    for name in FIXED:
        for peer, (covered, sizes) in fixed_sets(stream_of(name)).items():
            rows.append([f"{name}, {peer}", f"{covered.mean():.3f}", f"{sizes.mean():.2f}"])
    page.add("## MAPIE, at 90 %", MAPIE, table(["", "coverage", "mean size"], rows))


ONLINE = """\
"recalibrated" takes the quantile of the scores of the last 1,000 rows (split conformal prediction,
in a sliding window); "summed" the smallest set whose probabilities sum to .9."""

MAPIE = """\
Where classes are fixed: the model learns half of the rows, and 1,000 rows more, from which MAPIE
calibrates the model of the first half; the sets of all other rows are predicted at once, without
learning further. Ours are those of `predict_set`, with thresholds from all rows learnt."""


def online_sets(stream: Stream) -> dict[str, tuple[Doubles, Doubles]]:
    """Return whether sets contained the class, and their sizes, row by row."""
    model, y = OnlineClassifier(), stream.y.tolist()
    last: deque[float] = deque(maxlen=LAST_ROWS)
    found: dict[str, list[tuple[bool, int]]] = {"ours": [], "recalibrated": [], "summed": []}
    for t in range(len(y)):
        x = stream.X[t : t + 1]
        if t:
            ours = model.predict_set_one(x if issparse(x) else x[0], COVERAGE)
            known = model.classes_.tolist()
            target = y[t] if y[t] in known else NEW
            found["ours"].append((target in ours, len(ours)))
            scores = cumulated(model.predict_proba(x, new=True)[0])
            own = scores[known.index(y[t]) if target is not NEW else len(known)]
            for peer, bound in (("recalibrated", quantile_of(last)), ("summed", COVERAGE)):
                inside = scores <= bound if peer == "recalibrated" else summed(scores, x, model)
                is_in = own <= bound if peer == "recalibrated" else inside[_place(known, y[t])]
                found[peer].append((bool(is_in), int(inside.sum())))
            last.append(float(own))
        model.partial_fit(x, y[t : t + 1])
    return {peer: tuple(np.array(pairs, float).T) for peer, pairs in found.items()}  # type: ignore[misc]


def _place(known: list[int], label: int) -> int:
    """Return the column of a label, the last one for a new class."""
    return known.index(label) if label in known else len(known)


def cumulated(p: Doubles) -> Doubles:
    """Return the score of each class: the probability above it, and half of its own."""
    order = np.argsort(-p, kind="stable")
    scores = np.empty(len(p))
    scores[order] = np.cumsum(p[order]) - p[order] / 2
    return scores


def summed(scores: Doubles, x: Any, model: OnlineClassifier) -> npt.NDArray[np.bool_]:
    """Return the smallest set whose probabilities sum to the coverage."""
    p = model.predict_proba(x, new=True)[0]
    return scores - p / 2 < COVERAGE


def quantile_of(last: deque[float]) -> float:
    """Return the threshold of split conformal prediction from the last scores."""
    n = len(last)
    rank = int(np.ceil((n + 1) * COVERAGE))
    return float(np.sort(last)[rank - 1]) if rank <= n else np.inf


def fixed_sets(stream: Stream) -> dict[str, tuple[Doubles, Doubles]]:
    """Return whether the sets of rows not learnt contain the class, and their sizes."""
    from mapie.classification import SplitConformalClassifier

    X, y, half = stream.X, stream.y, len(stream.y) // 2
    end = half + LAST_ROWS
    model = OnlineClassifier().partial_fit(X[:half], y[:half])
    found: dict[str, tuple[Doubles, Doubles]] = {}
    for score in ("lac", "aps"):
        peer = SplitConformalClassifier(model, COVERAGE, conformity_score=score, random_state=0)
        peer.conformalize(X[half:end], y[half:end])
        sets = peer.predict_set(X[end:])[1][:, :, 0]
        columns = np.searchsorted(model.classes_, y[end:])
        inside = sets[np.arange(len(columns)), columns]
        found[f"MAPIE, {score}"] = inside.astype(float), sets.sum(axis=1).astype(float)
    model.partial_fit(X[half:end], y[half:end])
    ours = model.predict_set(X[end:], COVERAGE)
    inside = np.array([label in found for label, found in zip(y[end:], ours, strict=True)], float)
    return {"ours": (inside, np.array([len(each) for each in ours], float)), **found}

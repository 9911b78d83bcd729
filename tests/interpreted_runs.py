"""Learners of all kinds, whose kernels become compiled at random times, for a test.

    python tests/interpreted_runs.py SEED

It prints a digest of the answers and of the model file of each. With SEED 0, kernels are compiled
when they are loaded; with another, each is interpreted for a random number of calls. What is
compiled comes from Numba's cache.
"""

import hashlib
import json
import random
import sys
import tempfile
from pathlib import Path

import numpy as np

from kesler import (
    BanditClassifier,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
)
from kesler.budgets import Budget
from kesler.compiled.jit import background
from kesler.forests import ExtraTrees

N_ROWS, N_FEATURES = 36, 5
WORDS = "card lost transfer failed rate top up cash pin blocked euro pound refund late".split()


class Turns:
    """Stands for the process that compiles: a recipe is done after so many questions."""

    is_busy = True

    def __init__(self, seed):
        self._random, self._left = random.Random(seed), {}

    def ask(self, recipe):
        self._left.setdefault(recipe, self._random.choice((0, 3, 20, 60, 10**9)))

    def is_done(self, recipe):
        self._left[recipe] -= 1
        return self._left[recipe] < 0

    def is_at(self, recipe):
        return False

    def leave_out(self, recipe):
        self._left[recipe] = 0


def not_cached(store):
    raise background.NotCached


# ---- streams ------------------------------------------------------------------------------------

rng = np.random.default_rng(5)
X = rng.normal(size=(N_ROWS, N_FEATURES))
CLASSES = [f"c{int(i)}" for i in np.abs(2 * X[:, 0]).clip(0, 3)]
TEXTS = [" ".join([*rng.choice(WORDS, 6), c]) for c in CLASSES]
DICTS = [dict.fromkeys(text.split(), 1.0) for text in TEXTS]
NUMBERS, POSITIVE = list(X), list(np.abs(X))
TICKETS = [
    {"title": text, "amount": float(x[0]), "kind": "ab"[i % 2], "note": text[::-1]}
    for i, (text, x) in enumerate(zip(TEXTS, X, strict=True))
]
LABELS = [{c, c[::-1]} if i % 3 else {c} for i, c in enumerate(CLASSES)]
RANKS = [int(c[1]) for c in CLASSES]
RANKINGS = [[str(name) for name in rng.permutation(["a", "b", "c"])] for _ in CLASSES]


def of(*arguments, **named):
    """Return an OnlineClassifier."""
    return OnlineClassifier(*arguments, **named)


RUNS = {
    "texts": (of(), TEXTS, CLASSES),
    "dictionaries": (of(), DICTS, CLASSES),
    "tickets": (of(), TICKETS, CLASSES),
    "numbers": (of(), NUMBERS, CLASSES),
    "ensemble": (of(update="ensemble"), NUMBERS, CLASSES),
    "PA-I": (of("multi", update="pa1"), DICTS, CLASSES),
    "averaged": (of("hybrid", update="pa1", averaged=True), NUMBERS, CLASSES),
    "MIRA": (of("multi", update="mira"), NUMBERS, CLASSES),
    "contrast": (of("single", "contrast", update="pa"), DICTS, CLASSES),
    "p-norm": (of("multi", update="perceptron", link="p-norm"), NUMBERS, CLASSES),
    "AROW": (of("multi", update="arow"), NUMBERS, CLASSES),
    "least squares": (of("multi", update="least-squares"), NUMBERS, CLASSES),
    "kernel": (of("multi", update="pa1", kernel="rbf"), NUMBERS, CLASSES),
    "trees": (of(update=ExtraTrees(4)), NUMBERS, CLASSES),
    "budget": (
        of("multi", update="pa1", kernel="rbf", budget=Budget(8, "projectron")),
        NUMBERS,
        CLASSES,
    ),
    "candidates": (of(candidates=2), DICTS, CLASSES),
    "half-life and replay": (of(half_life=20.0, replay=2), NUMBERS, CLASSES),
    "limit on memory": (of(memory_limit="1 MB"), DICTS, CLASSES),
    "label sets": (OnlineMultilabelClassifier(), TEXTS, LABELS),
    "label sets of numbers": (OnlineMultilabelClassifier(), NUMBERS, LABELS),
    "ranks": (OnlineOrdinalClassifier(), NUMBERS, RANKS),
    "rankings": (OnlineLabelRanker(), NUMBERS, RANKINGS),
    "bandit": (BanditClassifier(sorted(set(CLASSES))), NUMBERS, CLASSES),
    "Winnow": (LinearMax("winnow", "multi"), POSITIVE, CLASSES),
}


def digests(model, rows, targets):
    """Return digests of the answers before each row is learnt, and of the file of the end."""
    answers = []
    for i, (row, target) in enumerate(zip(rows, targets, strict=True)):
        if isinstance(model, BanditClassifier):
            answers.append(model.predict_one(row))
            model.learn_one(row, answers[-1], answers[-1] == target)
            continue
        if i % 3 == 2:
            some = np.array([row]) if isinstance(row, np.ndarray) else [row]
            answers.append([str(each) for each in model.predict(some)])
        if i % 3 == 2 and isinstance(model, (OnlineClassifier, OnlineOrdinalClassifier)):
            answers.append(model.predict_proba(some).tolist())
        model.learn_one(row, target)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.kesler"
        model.save(file)
        contents = file.read_bytes()
    parts = repr(answers).encode(), contents
    return [hashlib.sha256(part).hexdigest()[:16] for part in parts]


if __name__ == "__main__":
    seed, names = int(sys.argv[1]), list(RUNS)
    if seed:
        random.Random(seed).shuffle(names)
        background.COMPILING = Turns(seed)
        background.Store.loaded = not_cached
    print(json.dumps({name: digests(*RUNS[name]) for name in names}))

"""Saves beside two threads that learn: every file is a state between two trials.

Both threads learn the same rows, and calls follow each other, so that the number of trials says
what the state must be: a second model learns alone up to the same number, and has the same file.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from attack.model_files import described
from attack.models import MAKERS
from kesler import load

N_SAVES = 50
LEARNERS = (
    "default",
    "default of names",
    "averaged",
    "kernel",
    "ensemble",
    "multilabel",
    "ordinal",
    "texts",
    "longer table",
)


def prepare(folder: Path) -> Callable[[np.random.Generator], str | None]:
    """Return a function that saves a model fifty times, and says which file is wrong."""

    def case(rng: np.random.Generator) -> str | None:
        name = LEARNERS[int(rng.integers(len(LEARNERS)))]
        one_by_one = bool(rng.random() < 0.5)
        try:
            paths = saved_beside_threads(name, folder, one_by_one=one_by_one)
            return first_wrong(name, paths, folder, one_by_one=one_by_one)
        except Exception as error:
            return f"{name}: {described(error)}"

    return case


def saved_beside_threads(name: str, folder: Path, *, one_by_one: bool) -> list[Path]:
    """Return the files that were saved while two threads learnt the same rows."""
    make, (X, y) = MAKERS[name]
    model, stop = make().partial_fit(X, y), threading.Event()
    errors: list[BaseException] = []

    def learn() -> None:
        try:
            while not stop.is_set():
                again(model, X, y, one_by_one=one_by_one)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=learn) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    paths = [folder / f"saved-{i}" for i in range(N_SAVES)]
    for path in paths:
        model.save(path)
    stop.set()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    if errors:
        raise errors[0]
    return paths


def again(model: Any, X: Any, y: Any, *, one_by_one: bool) -> None:
    if one_by_one:
        model.learn_one(X[0], y[0])
    else:
        model.partial_fit(X, y)


def first_wrong(name: str, paths: list[Path], folder: Path, *, one_by_one: bool) -> str | None:
    """Return what is wrong with the first file that is not a state of a model learning alone."""
    make, (X, y) = MAKERS[name]
    alone = make().partial_fit(X, y)
    for path in paths:
        n_trials = load(path).n_trials_
        while alone.n_trials_ < n_trials:
            again(alone, X, y, one_by_one=one_by_one)
        alone.save(folder / "alone")
        if alone.n_trials_ != n_trials or path.read_bytes() != (folder / "alone").read_bytes():
            return f"{name}: a file after {n_trials} trials is no state between two calls"
    return None

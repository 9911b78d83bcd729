"""Functions of users with faults: each works, or is refused by name and its row is not learnt.

A fault happens in every call, so that calls in Python meet it, or for large values only, so that
only compiled code does. What a call learnt before it failed is what the same rows give one by one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numba import njit

from attack.matrices import pick
from attack.model_files import described
from faulty import FAULTS, KINDS, LATE, TRIGGER
from kesler import KeslerError
from kesler.parts import time_limit

ROWS = np.random.default_rng(5).normal(size=(24, 4))
LABELS = np.abs(ROWS[:, :3]).argmax(axis=1)
HOSTILE = np.array([[TRIGGER, 1.0, -TRIGGER, 1.0], [0.5, 0, 1, 0], [1, TRIGGER, 0, -TRIGGER]])
INDICES = [*(0, 1, 3, 4, 5, 64, 10**4), *(-1, -2, -65), *(2**31, 2**62, -(2**62))]

Fault = Callable[[Any, float], float]


def reads(index: int) -> Fault:
    return lambda a, x: a[index if abs(x) > 500 else 0]


def writes(index: int) -> Fault:
    def fault(a: Any, x: float) -> float:
        a[index if abs(x) > 500 else 0] = 1.0
        return 1.0

    return fault


def reads_by_a_compiled_helper(index: int) -> Fault:
    @njit
    def at(a: Any, i: int) -> Any:
        return a[i]

    return lambda a, x: at(a, index if abs(x) > 500 else 0)


def raises(index: int) -> Fault:
    def fault(a: Any, x: float) -> float:
        if abs(x) > 500:
            raise ValueError("too large")
        return 1.0

    return fault


def divides_by_zero(index: int) -> Fault:
    return lambda a, x: 1.0 / (0.0 if abs(x) > 500 else 1.0)


def allocates(index: int) -> Fault:
    return lambda a, x: 1.0 + np.zeros(2**50 if abs(x) > 500 else 1)[0]


MAKERS = [reads, writes, reads_by_a_compiled_helper, raises, divides_by_zero, allocates]


def draw(rng: np.random.Generator) -> tuple[Any, str]:
    """Return a part with a fault, and its kind."""
    way, kind = rng.random(), pick(rng, list(KINDS))
    if way < 0.2:
        return KINDS[kind].faulty(FAULTS[pick(rng, list(FAULTS))]), kind
    if way < 0.4:
        part, kind = pick(rng, LATE)
        return part, kind
    return KINDS[kind].faulty(pick(rng, MAKERS)(pick(rng, INDICES))), kind


def prepare(folder: Path) -> Callable[[np.random.Generator], str | None]:
    """Return a function of one case."""

    def case(rng: np.random.Generator) -> str | None:
        part, kind = draw(rng)
        with np.errstate(all="ignore"), patch.object(time_limit, "LIMIT", 0.1):
            return fault_of(part, kind, rng)

    return case


def fault_of(part: Any, kind: str, rng: np.random.Generator) -> str | None:
    """Return what was wrong in calls of a model with the part, None if nothing was."""
    name, model = f"{kind} {part.written.__qualname__}", KINDS[kind].estimator(part)
    for call in ["fit", *rng.permutation(list(CALLS)), "partial_fit"]:
        X, y = (HOSTILE, pick(rng, TARGETS)) if call in CALLS else (ROWS, LABELS)
        one_by_one = copy.deepcopy(model)
        try:
            called(model, call, X[: len(y)], y)
        except KeslerError as error:
            if not is_named(error, part):
                return f"{name}: {call} said {described(error)}"
            if call == "fit":
                return None
            if "failed on a row" in str(error) and not is_as(model, one_by_one, call, X, y):
                return f"{name}: {call} did not learn the rows before: {described(error)}"
        except Exception as error:
            return f"{name}: {call} raised {described(error)}"
    return None


CALLS = ("partial_fit", "learn_one", "predict", "decision_function", "predict_proba")
TARGETS = [[0], [1], [0, 1], [2, 3, 1], [1, 1, 4]]


def called(model: Any, call: str, X: Any, y: Any) -> None:
    if call == "learn_one":
        model.learn_one(X[0], y[0])
    else:
        getattr(model, call)(*((X, y) if "fit" in call else (X,)))


def is_as(model: Any, other: Any, call: str, X: Any, y: Any) -> bool:
    """Return whether a model is what another becomes by the rows one by one, up to a failed one."""
    try:
        for row, label in zip(X, y[:1] if call == "learn_one" else y, strict=False):
            if call in ("partial_fit", "learn_one"):
                other.partial_fit(row[np.newaxis], [label])
    except KeslerError:
        pass
    return state_of(model) == state_of(other) and list(model.classes_) == list(other.classes_)


def is_named(error: KeslerError, part: Any) -> bool:
    return part.written.__name__ in str(error) or "a value of a feature map was not" in str(error)


def state_of(model: Any) -> dict[str, bytes]:
    """Return what was learnt; the calibration is that of predictions, which are made before."""
    arrays = model._learner.arrays().items()
    return {name: a.tobytes() for name, a in arrays if not name.startswith("calibration")}

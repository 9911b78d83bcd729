"""Malformed matrices and rows: each is refused with a sentence, or answered with finite numbers.

After a refusal the model is what it was before: its file holds the same bytes.
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from attack.model_files import described
from attack.models import DENSE, LABELS, MAKERS, N_ROWS, NAMED
from kesler import (
    CrammerSingerClassifier,
    JointBoostClassifier,
    KeslerError,
    ShareBoostClassifier,
    SoftmaxClassifier,
)

INDICES = [*(0, 1, 4, 5, 6, 10**6), *(-1, -(2**31)), *(10**9, 2**31 - 1, 2**40, 2**62)]
VALUES = [0.0, -0.0, 1e-300, 1e30, -1e30, 1e39, 1e300, float("nan"), float("inf"), float("-inf")]
THINGS = [None, "", "word", b"bytes", True, 10**400, -(2**70), 1j, [1.0], {"a": 1.0}, object()]
KEYS = ["", "w0", "w1", "\ud800", "x" * 100_000, 0, -1, 10**30, None, 1.5, ("a", 1), float("nan")]

BATCH: dict[str, Callable[[], Any]] = {
    "crammer-singer": CrammerSingerClassifier,
    "softmax": SoftmaxClassifier,
    "shareboost": lambda: ShareBoostClassifier(2),
    "jointboost": lambda: JointBoostClassifier(n_rounds=3),
}
VALIDATING = ("validation", "multiclass", "_encode")
READING = ("predict", "decision_function", "predict_proba")


def pick(rng: np.random.Generator, things: Any) -> Any:
    return things[int(rng.integers(len(things)))]


def sparse_rows(rng: np.random.Generator, n_rows: int = N_ROWS) -> Any:
    """Return rows in compressed form with one to three alterations."""
    dense = DENSE[:n_rows] * (rng.random((n_rows, DENSE.shape[1])) < 0.7)
    rows = pick(rng, [sparse.csr_matrix, sparse.csr_array])(dense)
    for _ in range(rng.integers(1, 4)):
        alter_sparse(rows, rng)
    return rows


def alter_sparse(rows: Any, rng: np.random.Generator) -> None:
    """Change numbers, the length, the order or the dtype of one array, or the shape."""
    name = pick(rng, ["data", "indices", "indptr"])
    array = getattr(rows, name)
    way = rng.integers(7)
    if way == 0:
        array = array[: rng.integers(len(array) + 1)]
    elif way == 1:
        array = np.concatenate([array, array])
    elif way == 2:
        array = array[::-1] if rng.random() < 0.5 else rng.permutation(array)
    elif way == 3:
        array = array.astype(pick(rng, ["f4", "f8", "i8", "i2", "u8", "u1", "?", "O"]))
    elif way == 4:
        rows._shape = (pick(rng, [0, 1, 17, 19, 2**40]), pick(rng, [0, 1, 4, 6, 2**31, 2**40]))
    else:
        array = with_numbers(array, VALUES if name == "data" else INDICES, rng)
    setattr(rows, name, array)


def with_numbers(array: Any, numbers: list[Any], rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return the array with some numbers replaced, wider where a number needs it."""
    if not len(array) or array.dtype.kind == "O":
        return array
    array = array.astype(np.float64 if numbers is VALUES else np.int64)
    array[rng.integers(len(array), size=rng.integers(1, 4))] = pick(rng, numbers)
    return array


def dense_rows(rng: np.random.Generator) -> Any:
    """Return an array with odd numbers, another shape or another dtype, or lists of things."""
    rows: Any = DENSE.copy()
    for _ in range(rng.integers(1, 4)):
        rows[rng.integers(N_ROWS), rng.integers(rows.shape[1])] = pick(rng, VALUES)
    way = rng.integers(6)
    if way == 0:
        return pick(
            rng, [rows[:, :3], rows[:, :0], rows[:0], rows[0], rows[None], rows.T, rows[:9]]
        )
    if way == 1:
        rows = rows.astype(object)
        rows[rng.integers(N_ROWS), 0] = pick(rng, THINGS)
    elif way == 2:
        rows = rows.tolist()
        rows[int(rng.integers(N_ROWS))] = pick(rng, [*THINGS, [], [1.0], [1.0] * 6])
    elif way == 3:
        with np.errstate(all="ignore"):
            return rows.astype(pick(rng, ["f2", "f4", "i8", "u1", "c16", "S5", "U5", "M8[s]"]))
    return rows


def named_rows(rng: np.random.Generator) -> Any:
    """Return dictionaries with odd names and values."""
    rows: list[Any] = [dict(row) for row in NAMED]
    for _ in range(rng.integers(1, 4)):
        rows[int(rng.integers(N_ROWS))][pick(rng, KEYS)] = pick(rng, VALUES + THINGS)
    if rng.random() < 0.2:
        rows[int(rng.integers(N_ROWS))] = pick(rng, THINGS)
    return rows


def targets(rng: np.random.Generator, y: list[Any]) -> Any:
    """Return the targets, in one case of four altered."""
    if rng.random() < 0.75:
        return y
    y = list(y)
    way = rng.integers(3)
    if way == 0:
        return y[: rng.integers(N_ROWS)]
    if way == 1:
        y[int(rng.integers(N_ROWS))] = pick(rng, [*THINGS, "new", 3, float("nan"), -0.0, "\ud800"])
        return y
    return pick(rng, [None, "c0", 3, [], np.zeros((N_ROWS, 2)), np.full(N_ROWS, np.nan)])


def prepare(folder: Path) -> Callable[[np.random.Generator], str | None]:
    """Return a function that passes malformed rows to a model, and says what was wrong then."""
    learnt = {name: make().partial_fit(X, y) for name, (make, (X, y)) in MAKERS.items()}

    def case(rng: np.random.Generator) -> str | None:
        if rng.random() < 0.15:
            return batch_case(rng)
        name = pick(rng, list(learnt))
        return online_case(name, copy.deepcopy(learnt[name]), rng, folder)

    return case


def rows_for(name: str, rng: np.random.Generator) -> Any:
    ways = [named_rows] if "names" in name or name == "frequency" else [sparse_rows, dense_rows]
    return pick(rng, ways if rng.random() < 0.95 else [sparse_rows, dense_rows, named_rows])(rng)


def online_case(name: str, model: Any, rng: np.random.Generator, folder: Path) -> str | None:
    X, y = rows_for(name, rng), targets(rng, MAKERS[name][1][1])
    x = one_of(X, rng)
    for call in rng.permutation(["partial_fit", "fit", "learn_one", *READING]):
        if not hasattr(model, call):
            continue
        before = bytes_of(model, folder)
        try:
            with np.errstate(all="ignore"):
                found = called(model, call, X, y, x)
        except (KeslerError, ValueError, TypeError) as error:
            if not is_refusal(error):
                return f"{name}: {call} raised {described(error)}"
            skipped = "the step was skipped" in str(error)  # all other rows are learnt
            if call != "fit" and not skipped and bytes_of(model, folder) != before:
                return f"{name}: {call} refused rows and changed the model: {described(error)}"
        except Exception as error:
            return f"{name}: {call} raised {described(error)}"
        else:
            if call in READING[1:] and not np.isfinite(found).all():
                return f"{name}: {call} returned numbers that are not finite"
    return None


def one_of(X: Any, rng: np.random.Generator) -> Any:
    """Return one row of X, or a malformed one where X is sparse."""
    if not sparse.issparse(X):
        return X[0] if isinstance(X, (list, np.ndarray)) and len(X) else None
    if rng.random() < 0.5:
        return sparse_rows(rng, n_rows=1)
    indices = with_numbers(np.arange(4), INDICES, rng)
    return indices, with_numbers(rng.normal(size=rng.integers(3, 5)), VALUES, rng)


def called(model: Any, call: str, X: Any, y: Any, x: Any = None) -> Any:
    if call == "learn_one":
        return model.learn_one(x, y[0] if isinstance(y, list) and y else LABELS[0])
    return getattr(model, call)(*((X, y) if "fit" in call else (X,)))


def batch_case(rng: np.random.Generator) -> str | None:
    name = pick(rng, list(BATCH))
    X, y = pick(rng, [sparse_rows, dense_rows])(rng), targets(rng, LABELS)
    for call in ("fit", *READING):
        model = BATCH[name]() if call == "fit" else BATCH[name]().fit(DENSE, LABELS)
        try:
            with np.errstate(all="ignore"):
                found = called(model, call, X, y)
        except (ValueError, TypeError) as error:
            if not is_refusal(error):
                return f"{name}: {call} raised {described(error)}"
        except AttributeError:
            if hasattr(model, call):
                raise
        except Exception as error:
            return f"{name}: {call} raised {described(error)}"
        else:
            if call in READING[1:] and not np.isfinite(found).all():
                return f"{name}: {call} returned numbers that are not finite"
    return None


def bytes_of(model: Any, folder: Path) -> bytes:
    model.save(folder / "bytes")
    return (folder / "bytes").read_bytes()


def is_refusal(error: Exception) -> bool:
    """Return whether an error is a sentence of ours, or raised by scikit-learn's validation."""
    if isinstance(error, KeslerError):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    return any(f"sklearn/utils/{name}" in f.filename for f in frames for name in VALIDATING)

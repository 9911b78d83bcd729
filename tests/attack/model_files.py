"""Altered model files: each is refused with a sentence, or gives a model that works.

The checksum of an altered file is right, as anyone can compute it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from attack.models import MAKERS, models_of
from kesler import KeslerError, load
from kesler.cli.show import account
from kesler.data import model_file

SCALARS: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        3,
        7,
        64,
        255,
        2**31 - 1,
        2**31,
        -(2**31),
        2**40,
        2**63,
        10**30,
    ),
    *(0.5, -0.5, 1e-300, 1e300, -1e300, float("nan"), float("inf"), float("-inf")),
    *("", "c0", "c1", "w0", "PerClass", "Shared", "class", "\ud800", "x" * 5000),
    *([], {}, [[]], [None], {"name": "PA1"}, [0, 1, 2, 3], ["c0"] * 4, [[0], [1]]),
]
NUMBERS = [*(0, 1, -1, 2, 63, 64, 1000), *(2**31 - 1, -(2**31), 2**62, -(2**63)), 0.5, 1e38, -1e300]
NOT_NUMBERS = [float("nan"), float("inf"), float("-inf")]
KINDS = ["f4", "f8", "i4", "i8", "u1", "?", "f2"]

Contents = tuple[dict[str, Any], dict[str, Any]]


def altered(contents: Contents, rng: np.random.Generator) -> Contents:
    """Return the arrays and metadata of a file with one to three alterations."""
    arrays = {name: array.copy() for name, array in contents[0].items()}
    metadata = json.loads(json.dumps(contents[1]))
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.55:
            alter_metadata(metadata, rng)
        elif arrays:
            alter_arrays(arrays, rng)
    return arrays, metadata


def alter_metadata(metadata: dict[str, Any], rng: np.random.Generator) -> None:
    """Replace, remove, repeat or exchange something somewhere in the metadata."""
    at: Any = metadata
    while True:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        if not len(keys):
            return
        key = keys[rng.integers(len(keys))]
        inner = at[key]
        if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.2:
            break
        at = inner
    way = rng.integers(5)
    if way == 0:
        del at[key]
    elif way == 1 and isinstance(at, list):
        at.append(at[rng.integers(len(at))])
    elif way == 2 and isinstance(at, dict):
        at[str(SCALARS[rng.integers(len(SCALARS))])] = inner
    elif way == 3:
        at[key] = at[keys[rng.integers(len(keys))]]
    else:
        at[key] = SCALARS[rng.integers(len(SCALARS))]


def alter_arrays(arrays: dict[str, Any], rng: np.random.Generator) -> None:
    """Change values, the shape or the dtype of an array, or remove, copy or exchange one."""
    names = sorted(arrays)
    name = names[rng.integers(len(names))]
    other = names[rng.integers(len(names))]
    array = arrays[name]
    way = rng.integers(9)
    if way == 0:
        del arrays[name]
    elif way == 1:
        arrays[name] = arrays[other].copy()
    elif way == 2:
        arrays[name] = array.astype(KINDS[rng.integers(len(KINDS))])
    elif way == 3:
        axis = rng.integers(max(1, array.ndim))
        arrays[name] = np.repeat(array, 2, axis) if array.ndim else array
    elif way == 4:
        arrays[name] = array[: rng.integers(len(array) + 1)] if array.ndim else array
    elif way == 5:
        arrays[name] = array.reshape(-1)
    else:
        arrays[name] = with_values(array, rng)


def with_values(array: Any, rng: np.random.Generator) -> Any:
    """Return the array with some values, or all, replaced."""
    array = array.copy()
    flat = array.reshape(-1)
    if not flat.size:
        return array
    pool = NUMBERS + NOT_NUMBERS if array.dtype.kind == "f" else NUMBERS
    value = pool[rng.integers(len(pool))]
    if array.dtype.kind != "f":
        info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
        value = int(value) if info is None else min(max(int(value), info.min), info.max)
    where = slice(None) if rng.random() < 0.2 else rng.integers(flat.size, size=1 + flat.size // 8)
    with np.errstate(all="ignore"):
        flat[where] = value
    return array


def use(model: Any, name: str, folder: Path) -> None:
    """Ask, teach, save, load and show a model that was loaded.

    It may refuse rows that are not of its width or kind, steps that are not finite, and files of
    numbers that are not.
    """
    X, y = MAKERS[name][1]
    again = folder / "again"
    again.unlink(missing_ok=True)
    calls = [
        *(partial(ask, X) for ask in (model.predict, model.decision_function)),
        *(partial(ask, X) for ask in [getattr(model, "predict_proba", None)] if ask),
        partial(model.partial_fit, X, y),
    ]
    with np.errstate(all="ignore"):
        for call in [*calls, *calls, partial(model.save, again)]:
            try:
                call()
            except ValueError as error:
                if not is_sentence(error):
                    raise
        repr(model), model.classes_, model.n_trials_, model.n_mistakes_, model.resolved_
    if again.exists():
        load(again)
        account(str(again))


def is_sentence(error: ValueError) -> bool:
    """Return whether an error says what is wrong with rows, and not that a file is damaged."""
    said = str(error)
    if "features as input" in said:  # as scikit-learn says it
        return True
    return isinstance(error, KeslerError) and "the file is damaged" not in said


def prepare(folder: Path) -> Callable[[np.random.Generator], str | None]:
    """Return a function that loads an altered file, and says what was wrong with that."""
    files = models_of(folder)
    names = list(files)

    def case(rng: np.random.Generator) -> str | None:
        name = names[rng.integers(len(names))]
        model_file.save(folder / "altered", *altered(files[name], rng))
        try:
            model = load(folder / "altered")
        except KeslerError:
            return None
        except Exception as error:
            return f"{name}: load raised {described(error)}"
        try:
            use(model, name, folder)
        except Exception as error:
            return f"{name}: later {described(error)}"
        return None

    return case


def described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".split("\n")[0][:300]

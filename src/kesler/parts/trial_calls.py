"""Trial calls of user-defined functions in Python, before their compiled code is used.

Compiled code cannot be interrupted. Therefore each function is first called as it was written, on
a few arguments of the kind that it will receive, for a limited time. NumPy then checks every
index, and errors are raised where they occur.

Later, in compiled code, every index is checked too, and errors of the function are caught: the call
of the learner ends with an error that names the function, and without learning the row. A division
by zero gives an infinite number or NaN, as in NumPy. What compiled code cannot prevent:

- a loop that does not end, if it is first entered with other arguments than those of the trial
  calls; nor does the trial interrupt one call of compiled code, or a loop that catches all errors;
- arrays that are too large for the memory;
- access to memory past NumPy's checks: `as_strided`, `numba.carray`, `ctypes` and pointers;
- finite numbers that are wrong.

A function is code, and trial calls run it with the rights of the process: do not use functions of
an author whom you do not trust.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from numbers import Real
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from kesler.errors import KeslerError
from kesler.parts.time_limit import within_limit
from kesler.parts.user_part import UserPart, function_name

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Kind:
    """How functions of one kind are called.

    Attributes
    ----------
    arguments : the function that yields the arguments of the trial calls of a part.
    n_written : the number of arguments, the last ones, that the function writes. If there are none,
        it returns a number.
    """

    arguments: Callable[[Any], Iterator[Arguments]]
    n_written: int = 0


# ---- the arguments of each kind -----------------------------------------------------------------

LOSSES = np.array([1.25, 0.5, 0.75])
NORMS = np.array([2.0, 3.0, 4.0])
GRAM = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 1.5], [0.5, 1.5, 4.0]])
SINGLE = ("predicted", "worst", "rival")  # the selections of one constraint


def _of_rule(rule: Any) -> Iterator[Arguments]:
    """Yield parameters, weight, losses, squared_norms, gram and steps; what is unset is 0."""
    for m in (1,) if rule.constraints in SINGLE else (1, 3):
        norms = np.zeros(m) if rule.requires == "losses" else NORMS[:m].copy()
        gram = GRAM[:m, :m].copy() if rule.requires == "gram" else np.empty((m, 0))
        for weight in (1.0, 0.5):
            yield np.array(rule.values), weight, LOSSES[:m].copy(), norms, gram, np.zeros(m)


def _of_algorithm(algorithm: Any) -> Iterator[Arguments]:
    """Yield parameters, positions, z, margin, weights, states and numbers."""
    for margin in (-0.5, 0.0, 0.5):
        weights = np.full(7, algorithm.begins_at, dtype=np.float32)
        states, numbers = np.zeros((algorithm.n_states, 7)), np.eye(1, algorithm.n_numbers)[0]
        positions, z = np.array([0, 3, 6]), np.array([1.0, -2.0, 0.5])
        yield np.array(algorithm.values), positions, z, margin, weights, states, numbers


def _of_map(view: Any) -> Iterator[Arguments]:
    """Yield x, p, for contrasts the share of the others, and q if the function takes it."""
    q = tuple(np.float32(value) for value in (*view.values, 0, 0, 0, 0)[:4])
    for numbers in ((1.0, 0.5, 0.25), (0.5, 0.75, 0.5)):
        shares = numbers if view.statistic == "contrast" else numbers[:2]
        yield _with(view, tuple(map(np.float32, shares)), q)


def _of_kernel(kernel: Any) -> Iterator[Arguments]:
    """Yield x and z, or their inner product and squared distance, and q if it is taken."""
    q = (*kernel.values, 0.0, 0.0, 0.0, 0.0)[:4]
    x, z = np.array([[1.0, 0.0, 0.5], [0.5, 2.0, 0.25]], dtype=np.float32)
    for one, other in ((x, z), (x, x)):
        products = np.float32(one @ other), np.float32(np.sum((one - other) ** 2))
        yield _with(kernel, (one, other) if kernel.of == "vectors" else products, q)


def _of_link(link: Any) -> Iterator[Arguments]:
    """Yield v, and q if the function takes it."""
    for v in (0.0, 0.5, -0.5):
        yield _with(link, (np.float64(v),), np.array(link.values))


def _of_preconditioner(preconditioner: Any) -> Iterator[Arguments]:
    """Yield the evidence, and q if the function takes it."""
    for evidence in (0.25, 4.0):
        yield _with(preconditioner, (np.float64(evidence),), np.array(preconditioner.values))


def _of_query(query: Any) -> Iterator[Arguments]:
    """Yield parameters, margin, confidence and the probability of a new class."""
    for margin, confidence, new in ((0.0, 0.5, 1.0), (1.5, 0.75, 0.25)):
        yield np.array(query.values), margin, confidence, new


def _with(part: UserPart, arguments: Arguments, q: Any) -> Arguments:
    takes_q = len(inspect.signature(part.written).parameters) > len(arguments)
    return (*arguments, q) if takes_q else arguments


KINDS = {
    "update rule": Kind(_of_rule, n_written=1),
    "linear-threshold algorithm": Kind(_of_algorithm, n_written=3),
    "feature map": Kind(_of_map),
    "Mercer kernel": Kind(_of_kernel),
    "link": Kind(_of_link),
    "preconditioner": Kind(_of_preconditioner),
    "query rule": Kind(_of_query),
}
"""The kinds of functions that users write, by their names in messages."""

# ---- trial calls --------------------------------------------------------------------------------


def try_out(part: Any) -> None:
    """Call the function of a user-defined part in Python; do nothing for other parts.

    Raises
    ------
    KeslerError
        If the function raises, uses an index out of range, divides by zero, changes an argument
        that it may only read, returns anything but what its decorator documents, or takes longer
        than :data:`kesler.parts.time_limit.LIMIT`.

    Notes
    -----
    The calls are made once for a function and its settings, and take about 0.2 ms.
    """
    if isinstance(part, UserPart):
        _try_out_once(part)


def result_of(part: UserPart, *arguments: Any) -> Any:
    """Return what the function of a part returns in Python, with the errors of `try_out`.

    A division by zero gives what it gives in compiled code.
    """
    with within_limit(part.full_name), np.errstate(all="ignore"):
        return _result(part, _in_python(part.written), arguments)


@cache
def _try_out_once(part: UserPart) -> None:
    kind, function = KINDS[part.kind], _in_python(part.written)
    with within_limit(part.full_name), np.errstate(divide="raise", invalid="raise", over="ignore"):
        for arguments in kind.arguments(part):
            _call(part, kind, function, arguments)


def _call(part: UserPart, kind: Kind, function: Any, arguments: Arguments) -> None:
    read = arguments[: len(arguments) - kind.n_written]
    before = [np.copy(each) for each in read]
    result = _result(part, function, arguments)
    if kind.n_written and result is not None:
        what = f"returned {result!r}, but it must write its results into its last arguments"
        raise _refused(part, what, arguments)
    if not kind.n_written and not isinstance(result, (Real, np.bool_)):
        raise _refused(part, f"returned {result!r}, but it must return a number", arguments)
    if not all(np.array_equal(*pair, equal_nan=True) for pair in zip(before, read, strict=True)):
        raise _refused(part, "changed an argument that it may only read", arguments)


def _result(part: UserPart, function: Any, arguments: Arguments) -> Any:
    try:
        return function(*arguments)
    except IndexError as error:
        raise _refused(part, f"used an index out of range ({error})", arguments) from error
    except Exception as error:
        what = f"raised {type(error).__name__} ({error})"
        raise _refused(part, what, arguments) from error


def _refused(part: UserPart, what: str, arguments: Arguments) -> KeslerError:
    listed = ", ".join(map(_shown, arguments))
    return KeslerError(
        f"{part.full_name} {what} when Python called it with the arguments {listed}: correct the "
        "function, as the documentation of its decorator says"
    )


def _shown(argument: Any) -> str:
    if isinstance(argument, np.ndarray):
        return f"{argument.dtype} array of shape {argument.shape}"
    return str(np.asarray(argument).tolist())


def _in_python(function: Any) -> Any:
    """Return a function in which it and its helpers are plain, not compiled by the user."""
    return _plain(function, {})


def _plain(value: Any, done: dict[int, Any]) -> Any:
    value = getattr(value, "py_func", value)
    if not isinstance(value, FunctionType):
        return value
    if id(value) not in done:
        globals_ = dict(value.__globals__)
        cells = tuple(CellType() for _ in value.__closure__ or ())
        copy = FunctionType(value.__code__, globals_, value.__name__, value.__defaults__, cells)
        copy.__kwdefaults__ = value.__kwdefaults__
        done[id(value)] = copy
        for name in value.__code__.co_names:
            if name in globals_:
                _require_plain_attributes(value, globals_[name])
                globals_[name] = _plain(globals_[name], done)
        for cell, original in zip(cells, value.__closure__ or (), strict=True):
            _require_plain_attributes(value, original.cell_contents)
            cell.cell_contents = _plain(original.cell_contents, done)
    return done[id(value)]


def _require_plain_attributes(function: FunctionType, module: Any) -> None:
    """Raise if a function calls compiled functions of a module, whose indices nothing checks."""
    if not isinstance(module, ModuleType):
        return
    for name in function.__code__.co_names:
        if hasattr(vars(module).get(name), "py_func"):
            raise KeslerError(
                f"{function_name(function)} calls {module.__name__}.{name}, which was compiled "
                f"without checks: import it by its name, `from {module.__name__} import {name}`"
            )

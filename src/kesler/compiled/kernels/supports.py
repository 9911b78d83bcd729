"""Support vectors, and the loops around a Mercer kernel."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.codes import BudgetPolicy
from kesler.compiled.jit.background import recipe
from kesler.compiled.jit.decorators import (
    DOUBLES,
    FLOAT_TABLE,
    FLOATS,
    allocating,
    are_finite,
    by_address,
    callback_address,
    inlined,
    instantiate,
)
from kesler.compiled.trial.preprocessing import NONE
from kesler.compiled.trial.records import GROUPED, LARGEST, PER_CLASS
from kesler.compiled.trial.variants import is_averaged
from kesler.compiled.weights.scores import clear

# view, panel, inner products, squared distances, parameters, out
SINGLE_SIGNATURE = types.void(FLOATS, FLOAT_TABLE, FLOATS, FLOATS, FLOATS, FLOATS)
DOUBLE_SIGNATURE = types.void(FLOATS, FLOAT_TABLE, DOUBLES, DOUBLES, DOUBLES, DOUBLES)
call_single = by_address(SINGLE_SIGNATURE)
call_double = by_address(DOUBLE_SIGNATURE)


def k(*arguments: Any) -> Any:
    """Stand for the kernel function, which `instantiate` inserts."""
    raise NotImplementedError


def of_products(view, panel, inner, distances, parameters, out):
    """Compute out[s] = K(view, u_s) from <view, u_s> and ||view - u_s||^2."""
    q = (parameters[0], parameters[1], parameters[2], parameters[3])
    for s in range(out.shape[0]):
        out[s] = k(inner[s], distances[s], q)


def of_vectors(view, panel, inner, distances, parameters, out):
    """Compute out[s] = K(view, u_s), where u_s is column s of the panel."""
    q = (parameters[0], parameters[1], parameters[2], parameters[3])
    for s in range(out.shape[0]):
        out[s] = k(view, panel[: view.shape[0], s], q)


def without_parameters(one, other, q):
    """Call a k that takes no parameters."""
    return k(one, other)


def loop(*arguments: Any) -> None:
    """Stand for the loop around a user-defined k, which `instantiate` inserts."""
    raise NotImplementedError


def guarded(view, panel, inner, distances, parameters, out):
    """Run the loop around a user-defined k; if it fails, write NaN and set the fault word.

    It fails if it raises an error, or if a result is not finite.
    """
    failed = False
    try:
        loop(view, panel, inner, distances, parameters, out)
    except Exception:
        failed = True
    if failed or not are_finite(out):
        parameters[-1] = 1
        out[:] = np.nan


LOOPS = {"products": of_products, "vectors": of_vectors}


@recipe
@cache
def kernel_addresses(function: Callable[..., Any], of: str, *, custom: bool) -> tuple[int, int]:
    """Return the addresses of the loops around k: in float32 for scores, in float64 for norms."""
    takes_q = function.__code__.co_argcount == 3
    if not takes_q:
        function = instantiate(without_parameters, "k", function, checked=custom)
    loop = instantiate(LOOPS[of], "k", function, checked=custom and takes_q)
    if custom:
        loop = instantiate(guarded, "loop", loop)
    return callback_address(loop, SINGLE_SIGNATURE), callback_address(loop, DOUBLE_SIGNATURE)


# The policies of budgets.
LEAST_RECENT = int(BudgetPolicy.LEAST_RECENT)
SMALLEST = int(BudgetPolicy.SMALLEST)
FORGETRON = int(BudgetPolicy.FORGETRON)
PROJECTRON = int(BudgetPolicy.PROJECTRON)
PROJECTRON_PLUS = int(BudgetPolicy.PROJECTRON_PLUS_PLUS)
# The number of support vectors in a panel, which is feature-major: the inner loops run over them.
PANEL = 64


class KernelScratch(NamedTuple):
    """Scratch arrays of a trial, allocated once per call.

    views : (classes, longest row + 1), a 0 followed by phi(x, r);
    sizes : (classes,), their squared norms; inner, distances, similarities, factors : (PANEL,), of
    the support vectors of a panel; lanes : (classes, PANEL), partial sums of scores;
    column : (hypotheses,); phi, vectors, products, out : for the loops of maps;
    pair : (longest row, 1), one : (3, 1), for single products in float64; conditioned, exact : as
    in `Scratch`; stored, units : (longest row,), the row as it may be stored, and 1 over the ranges
    of its features; widened : (1,), whether these differ from the learner's; norms :
    (PANEL,), squared norms in them; singles, doubles : (5,), the kernel's parameters and the fault
    word;
    median, n_distances : (1,), those of the learner, if it learns the row.
    """

    scores: npt.NDArray[np.float32]
    views: npt.NDArray[np.float32]
    sizes: npt.NDArray[np.float32]
    inner: npt.NDArray[np.float32]
    distances: npt.NDArray[np.float32]
    similarities: npt.NDArray[np.float32]
    factors: npt.NDArray[np.float32]
    lanes: npt.NDArray[np.float32]
    column: npt.NDArray[np.float32]
    phi: npt.NDArray[np.float32]
    vectors: npt.NDArray[np.float32]
    products: npt.NDArray[np.float64]
    out: npt.NDArray[np.float64]
    pair: npt.NDArray[np.float32]
    one: npt.NDArray[np.float64]
    conditioned: npt.NDArray[np.float32]
    exact: npt.NDArray[np.float64]
    stored: npt.NDArray[np.float32]
    units: npt.NDArray[np.float32]
    widened: npt.NDArray[np.int64]
    norms: npt.NDArray[np.float32]
    singles: npt.NDArray[np.float32]
    doubles: npt.NDArray[np.float64]
    median: npt.NDArray[np.float64]
    n_distances: npt.NDArray[np.float64]


@allocating
def make_kernel_scratch(learner, indptr):
    """Allocate scratch arrays for the longest row and all classes."""
    longest = 0
    for i in range(indptr.shape[0] - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    n_classes = learner.parts.member_starts.shape[1] - 1
    n_views, width = 1, n_classes
    for part in range(learner.parts.kind.shape[0]):
        width = max(width, learner.parts.width[part])
        if learner.parts.map[part] != 0:
            n_views = n_classes
    n_conditioned = 0 if learner.preprocessing.method == NONE else longest
    return KernelScratch(
        np.zeros(n_classes, np.float32),
        np.zeros((n_views, longest + 1), np.float32),
        np.empty(n_views, np.float32),
        np.empty(PANEL, np.float32),
        np.empty(PANEL, np.float32),
        np.empty(PANEL, np.float32),
        np.empty(PANEL, np.float32),
        np.empty((n_views, PANEL), np.float32),
        np.zeros(width, np.float32),
        np.empty(longest, np.float32),
        np.empty((1, 1), np.float32),
        np.empty(n_classes),
        np.empty(1),
        np.empty((longest, 1), np.float32),
        np.empty((3, 1)),
        np.empty(n_conditioned, np.float32),
        np.empty(n_conditioned),
        np.empty(longest, np.float32),
        np.empty(n_conditioned, np.float32),
        np.zeros(1, np.int64),
        np.empty(PANEL, np.float32),
        learner.weights.parameters.astype(np.float32),
        learner.weights.parameters.copy(),
        np.zeros(1),
        np.zeros(1),
    )


@inlined
def multiply_panel(indices, view, panel, out):
    """Compute out[s] = <view, u_s> for the support vectors of a panel, each feature by feature.

    Four features per pass save stores; the order of the sums is that of `multiply_lists`. Unused
    columns hold zeros, since a loop of constant length takes half the time.
    """
    n, stop = indices.shape[0], np.uintp(PANEL)
    clear(out, PANEL)
    j = 0
    while j + 4 <= n:
        x1, x2, x3, x4 = view[j], view[j + 1], view[j + 2], view[j + 3]
        i1, i2 = np.uintp(indices[j]), np.uintp(indices[j + 1])
        i3, i4 = np.uintp(indices[j + 2]), np.uintp(indices[j + 3])
        for s in range(stop):
            total = out[s] + x1 * panel[i1, s]
            total = total + x2 * panel[i2, s]
            total = total + x3 * panel[i3, s]
            out[s] = total + x4 * panel[i4, s]
        j += 4
    while j < n:
        x1, i1 = view[j], np.uintp(indices[j])
        for s in range(stop):
            out[s] += x1 * panel[i1, s]
        j += 1


@inlined
def set_distances(size, squared_norms, inner, distances):
    """Compute distances[s] = ||view - u_s||^2 for the support vectors of a panel."""
    for s in range(PANEL):
        distance = (size + squared_norms[s]) - np.float32(2) * inner[s]
        distances[s] = np.float32(0) if distance < 0 else distance


@inlined
def squared_norm(vector):
    """Return ||u||^2, summed in the order of inner products: ||x - x||^2 is then exactly 0."""
    total = np.float32(0)
    for j in range(vector.shape[0]):
        total += vector[j] * vector[j]
    return total


@inlined
def stays_small(coefficient, view, own):
    """Return whether a step changes no score of its row by more than LARGEST; False for NaN."""
    if not (coefficient <= LARGEST and squared_norm(view) <= LARGEST):
        return False
    return own <= LARGEST and coefficient * own <= LARGEST


@inlined
def hypothesis(learner, part, r, i):
    """Return the index of hypothesis i of class r within a part."""
    kind = learner.parts.kind[part]
    if kind == GROUPED:
        return learner.parts.members[learner.parts.member_starts[part, r] + i]
    return r if kind == PER_CLASS else 0


@inlined
def store(learner, part, indices, vector, size):
    """Append a support vector and its squared norm, without entries."""
    s = learner.weights.following[part]
    if learner.weights.in_panels:
        panel = learner.weights.panels[part, s // PANEL]
        for j in range(indices.shape[0]):
            panel[indices[j], s % PANEL] = vector[j]
    else:
        end = learner.weights.starts[part, s]
        for j in range(indices.shape[0]):
            if vector[j] != 0:
                learner.weights.features[part, end] = indices[j]
                learner.weights.values[part, end] = vector[j]
                end += 1
        learner.weights.starts[part, s + 1] = end
    learner.weights.squared_norms[part, s] = size
    learner.weights.entry_starts[part, s + 1] = learner.weights.entry_starts[part, s]
    learner.weights.following[part] = s + 1


@inlined
def enter(learner, part, owner, coefficient):
    """Append an entry: the coefficient of the last support vector in a hypothesis."""
    s = learner.weights.following[part]
    end = learner.weights.entry_starts[part, s]
    learner.weights.owners[part, end] = owner
    learner.weights.coefficients[part, end] = coefficient
    begin_state(learner, part, end)
    learner.weights.entry_starts[part, s] = end + 1


@inlined
def begin_state(learner, part, e):
    """Begin the sum of the steps of a new coefficient, each times the number of trials before."""
    if is_averaged(learner):
        coefficient = np.float64(learner.weights.coefficients[part, e])
        learner.weights.states[part, e] = learner.counts.n_trials * coefficient

"""Support vectors: what a learner over a Mercer kernel holds in place of weights."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.conditioning import METHOD, NONE
from kesler.compiled.jit import (
    DOUBLE_STACK,
    DOUBLE_TABLE,
    DOUBLES,
    FLOAT_STACK,
    FLOAT_STACKS,
    FLOAT_TABLE,
    FLOATS,
    INT_TABLE,
    INTS,
    allocating,
    inlined,
)
from kesler.compiled.learner import GROUPED, KIND, MAP, PER_CLASS, WIDTH
from kesler.compiled.scores import clear

# Support vectors come in panels of so many, feature by feature: the inner loops run over them.
PANEL = 64
# Columns of `counts`: the oldest support vector in use and the place of the next one.
OLDEST, NEXT = range(2)
# Of `kernel`: addresses for scores and for norms, the most support vectors of a part (0 for any
# number), whether they stand in panels.
SINGLE, DOUBLE, BUDGET, IN_PANELS = range(4)


class KernelLearner(NamedTuple):
    """All that a trial over a kernel reads and moves; see `kernel_machine.py` for who owns it.

    The weights of hypothesis t are sum over its entries of coefficient Phi(support vector). Support
    vectors of rows that list every feature stand in panels; those of rows that list non-zeros alone
    as lists of these.

    panels : (parts, panels, features, PANEL), or lists: starts : (parts, supports + 1), features
    and values : (parts, non-zeros); squared_norms : (parts, supports);
    entry_starts : (parts, supports + 1), owners and coefficients : (parts, entries), hypotheses
    of each support vector and its factor there; counts : (parts, 2), as named above;
    places : (features,), all 0 between rows: one more than the place of a feature in the row;
    kernel : (4,), as named above; parameters : (4,), its own, of which the first follows bandwidth;
    recent : (features, PANEL), or lists: recent_features, recent_values : (PANEL, longest) and
    recent_lengths : (PANEL,), the last rows, with recent_norms : (PANEL,), where bandwidth : (4,),
    named in `kernel_units`, asks for them; the others as in `Learner`.
    """

    panels: npt.NDArray[np.float32]
    starts: npt.NDArray[np.int64]
    features: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]
    squared_norms: npt.NDArray[np.float32]
    entry_starts: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64]
    coefficients: npt.NDArray[np.float32]
    counts: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    kernel: npt.NDArray[np.int64]
    parameters: npt.NDArray[np.float64]
    statistics: npt.NDArray[np.float32]
    totals: npt.NDArray[np.float32]
    kinds: npt.NDArray[np.int64]
    parts: npt.NDArray[np.int64]
    map_parameters: npt.NDArray[np.float32]
    member_starts: npt.NDArray[np.int64]
    members: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.int64]
    rule: npt.NDArray[np.int64]
    rule_parameters: npt.NDArray[np.float64]
    margins: npt.NDArray[np.float64]
    counters: npt.NDArray[np.int64]
    geometry: npt.NDArray[np.float64]
    algorithm: npt.NDArray[np.int64]
    newcomers: npt.NDArray[np.int64]
    pooled: npt.NDArray[np.float64]
    moments: npt.NDArray[np.float64]
    amounts: npt.NDArray[np.float64]
    divisors: npt.NDArray[np.float32]
    smoothing: npt.NDArray[np.float64]
    calibration: npt.NDArray[np.float64]
    conditioning: npt.NDArray[np.int64]
    conditioning_parameters: npt.NDArray[np.float64]
    past: npt.NDArray[np.float64]
    past_rows: npt.NDArray[np.float64]
    forgetting: npt.NDArray[np.float64]
    recent: npt.NDArray[np.float32]
    recent_features: npt.NDArray[np.int64]
    recent_values: npt.NDArray[np.float32]
    recent_lengths: npt.NDArray[np.int64]
    recent_norms: npt.NDArray[np.float32]
    bandwidth: npt.NDArray[np.float64]


KERNEL_LEARNER = types.NamedTuple(
    (
        FLOAT_STACKS,
        INT_TABLE,
        INT_TABLE,
        FLOAT_TABLE,
        FLOAT_TABLE,
        INT_TABLE,
        INT_TABLE,
        FLOAT_TABLE,
        INT_TABLE,
        INTS,
        INTS,
        DOUBLES,
        FLOAT_STACK,
        FLOAT_TABLE,
        INTS,
        INT_TABLE,
        FLOAT_TABLE,
        INT_TABLE,
        INTS,
        INT_TABLE,
        INTS,
        DOUBLES,
        DOUBLE_TABLE,
        INTS,
        DOUBLES,
        INTS,
        INTS,
        DOUBLE_TABLE,
        DOUBLE_STACK,
        DOUBLES,
        FLOAT_TABLE,
        DOUBLES,
        DOUBLES,
        INTS,
        DOUBLES,
        DOUBLE_TABLE,
        DOUBLES,
        DOUBLES,
        FLOAT_TABLE,
        INT_TABLE,
        FLOAT_TABLE,
        INTS,
        FLOATS,
        DOUBLES,
    ),
    KernelLearner,
)


class KernelScratch(NamedTuple):
    """Room for one trial, made once a call.

    views : (classes, longest row + 1), phi(x, r) from the second place on, the first being 0;
    sizes : (classes,), their squared norms; inner, distances, similarities, factors : (PANEL,), of
    the support vectors of a panel; lanes : (classes, PANEL), scores before they are summed;
    column : (hypotheses,); phi, vectors, products, out : for the loops of maps;
    pair : (longest row, 1), one : (3, 1), for single products in double; conditioned, exact : as
    in `Scratch`; kept, units : (longest row,), the row as it may be stored, and 1 over the ranges
    of its features; widened : (1,), whether these are no longer the learner's; norms :
    (PANEL,), squared norms in them; singles, doubles : (4,), the kernel's parameters;
    bandwidth : (4,), what the learner's becomes if it learns the row.
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
    kept: npt.NDArray[np.float32]
    units: npt.NDArray[np.float32]
    widened: npt.NDArray[np.int64]
    norms: npt.NDArray[np.float32]
    singles: npt.NDArray[np.float32]
    doubles: npt.NDArray[np.float64]
    bandwidth: npt.NDArray[np.float64]


@allocating
def make_kernel_scratch(learner, indptr):
    """Room for the longest row and all classes."""
    longest = 0
    for i in range(indptr.shape[0] - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    n_classes = learner.member_starts.shape[1] - 1
    n_views, width = 1, n_classes
    for part in range(learner.parts.shape[0]):
        width = max(width, learner.parts[part, WIDTH])
        if learner.parts[part, MAP] != 0:
            n_views = n_classes
    n_conditioned = 0 if learner.conditioning[METHOD] == NONE else longest
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
        np.empty(1),
        np.empty(1),
        np.empty((longest, 1), np.float32),
        np.empty((3, 1)),
        np.empty(n_conditioned, np.float32),
        np.empty(n_conditioned),
        np.empty(longest, np.float32),
        np.empty(n_conditioned, np.float32),
        np.zeros(1, np.int64),
        np.empty(PANEL, np.float32),
        learner.parameters.astype(np.float32),
        learner.parameters.copy(),
        np.zeros(4),
    )


@inlined
def multiply_panel(indices, view, panel, out):
    """out[s] = <view, u_s> for the support vectors of a panel, each summed feature by feature.

    Four features a sweep spare stores; the order of the sums is that of `multiply_lists`. Places
    that are not taken yet hold zeros: a loop of a known length takes half the time.
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
    """distances[s] = ||view - u_s||^2 for the support vectors of a panel."""
    for s in range(PANEL):
        distance = (size + squared_norms[s]) - np.float32(2) * inner[s]
        distances[s] = np.float32(0) if distance < 0 else distance


@inlined
def squared_norm(vector):
    """Return ||u||^2, summed in the order in which products are: ||x - x||^2 is then 0."""
    total = np.float32(0)
    for j in range(vector.shape[0]):
        total += vector[j] * vector[j]
    return total


@inlined
def hypothesis(learner, part, r, i):
    """Return the number of the i-th hypothesis of class r within a part."""
    kind = learner.parts[part, KIND]
    if kind == GROUPED:
        return learner.members[learner.member_starts[part, r] + i]
    return r if kind == PER_CLASS else 0


@inlined
def store(learner, part, indices, vector, size):
    """Add a support vector and its squared norm, without an entry yet."""
    s = learner.counts[part, NEXT]
    if learner.kernel[IN_PANELS]:
        panel = learner.panels[part, s // PANEL]
        for j in range(indices.shape[0]):
            panel[indices[j], s % PANEL] = vector[j]
    else:
        end = learner.starts[part, s]
        for j in range(indices.shape[0]):
            if vector[j] != 0:
                learner.features[part, end] = indices[j]
                learner.values[part, end] = vector[j]
                end += 1
        learner.starts[part, s + 1] = end
    learner.squared_norms[part, s] = size
    learner.entry_starts[part, s + 1] = learner.entry_starts[part, s]
    learner.counts[part, NEXT] = s + 1


@inlined
def enter(learner, part, owner, coefficient):
    """Let a hypothesis have the last support vector, with a factor."""
    s = learner.counts[part, NEXT]
    end = learner.entry_starts[part, s]
    learner.owners[part, end] = owner
    learner.coefficients[part, end] = coefficient
    learner.entry_starts[part, s] = end + 1


@inlined
def keep_budget(learner):
    """Forget the oldest support vectors beyond the budget (Cavallanti et al. 2007)."""
    budget = learner.kernel[BUDGET]
    if budget:
        for part in range(learner.parts.shape[0]):
            oldest = learner.counts[part, NEXT] - budget
            learner.counts[part, OLDEST] = max(learner.counts[part, OLDEST], oldest)

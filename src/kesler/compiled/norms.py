"""Squared norms and inner products of phi(x, y) - phi(x, s), over all hypotheses."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import inlined
from kesler.compiled.learner import GROUPED, KIND, MAP, PER_CLASS, SHARED
from kesler.compiled.maps import PHI, SQUARED_NORMS
from kesler.compiled.scores import clear, of_map, project


@inlined
def squared_length(values):
    """Return ||x||^2, as double."""
    total = 0.0
    for j in range(values.shape[0]):
        total += np.float64(values[j]) * np.float64(values[j])
    return total


@inlined
def n_hypotheses(learner, part, r):
    """Return how many hypotheses of the part class r owns."""
    if learner.parts[part, KIND] != GROUPED:
        return 1
    return learner.member_starts[part, r + 1] - learner.member_starts[part, r]


@inlined
def n_common(learner, part, r, s):
    """Return how many hypotheses of the part classes r and s share."""
    kind = learner.parts[part, KIND]
    if kind == PER_CLASS:
        return 1 if r == s else 0
    if kind == SHARED:
        return 1
    common = 0
    i, i_end = learner.member_starts[part, r], learner.member_starts[part, r + 1]
    j, j_end = learner.member_starts[part, s], learner.member_starts[part, s + 1]
    while i < i_end and j < j_end:
        if learner.members[i] == learner.members[j]:
            common += 1
            i += 1
            j += 1
        elif learner.members[i] < learner.members[j]:
            i += 1
        else:
            j += 1
    return common


@inlined
def pair_norm(learner, indices, values, y, s, scratch):
    """||phi(x, y) - phi(x, s)||^2 over all hypotheses, for one pair."""
    total = 0.0
    n = indices.shape[0]
    for part in range(learner.parts.shape[0]):
        common = n_common(learner, part, y, s)
        own = n_hypotheses(learner, part, y) - common
        others = n_hypotheses(learner, part, s) - common
        if learner.parts[part, MAP] == 0:
            total += (own + others) * squared_length(values)
            continue
        of_map(learner, part, PHI, indices, values, scratch.narrow, y, scratch.phi)
        of_map(learner, part, PHI, indices, values, scratch.narrow, s, scratch.other)
        for j in range(n):
            a, b = np.float64(scratch.phi[j]), np.float64(scratch.other[j])
            total += own * (a * a) + others * (b * b) + common * ((a - b) * (a - b))
    return total


@inlined
def gram_column(learner, indices, values, s, k, scratch, out):
    """out[r] = <phi(x, r), phi(x, s)> over the hypotheses that classes r and s share, r < k."""
    clear(out, k)
    n = indices.shape[0]
    plain = np.float32(squared_length(values))
    for part in range(learner.parts.shape[0]):
        if learner.parts[part, MAP] == 0:
            for r in range(k):
                scratch.column[r] = plain
        else:
            of_map(learner, part, PHI, indices, values, scratch.narrow, s, scratch.phi)
            for j in range(n):
                scratch.narrow[j, 0] = scratch.phi[j]
            clear(scratch.column, k)
            project(learner, part, indices, values, scratch.narrow[:n], k, scratch.column)
        for r in range(k):
            out[r] += n_common(learner, part, r, s) * scratch.column[r]


@inlined
def gram_diagonal(learner, indices, values, k, scratch, out):
    """out[r] = ||phi(x, r)||^2 over the hypotheses of class r, r < k."""
    clear(out, k)
    plain = np.float32(squared_length(values))
    for part in range(learner.parts.shape[0]):
        if learner.parts[part, MAP] == 0:
            for r in range(k):
                scratch.column[r] = plain
        else:
            clear(scratch.column, k)
            of_map(learner, part, SQUARED_NORMS, indices, values, scratch.narrow, k, scratch.column)
        for r in range(k):
            out[r] += n_hypotheses(learner, part, r) * scratch.column[r]


@inlined
def measure_norms(learner, indices, values, y, k, chosen, m, scratch, solver):
    """norms[j] = ||phi(x, y) - phi(x, s_j)||^2 of the chosen classes."""
    if m == 1:
        solver.norms[0] = pair_norm(learner, indices, values, y, chosen[0], scratch)
        return
    diagonal, column = solver.columns[0], solver.columns[1]
    gram_diagonal(learner, indices, values, k, scratch, diagonal)
    gram_column(learner, indices, values, y, k, scratch, column)
    for j in range(m):
        s = chosen[j]
        norm = np.float64(diagonal[y]) + np.float64(diagonal[s]) - 2.0 * np.float64(column[s])
        solver.norms[j] = max(0.0, norm)


@inlined
def measure_gram(learner, indices, values, y, k, start, m, scratch, solver):
    """Fill gram[i, j] = <d_i, d_j>, d_j = phi(x, y) - phi(x, s_j), from row `start` to m - 1."""
    columns, gram = solver.columns, solver.gram
    if start == 0:
        gram_column(learner, indices, values, y, k, scratch, columns[0])
    for i in range(start, m):
        new = solver.chosen[i]
        gram_column(learner, indices, values, new, k, scratch, columns[i + 1])
        for j in range(i + 1):
            s = solver.chosen[j]
            inner = np.float64(columns[0, y]) - np.float64(columns[0, s])
            inner += np.float64(columns[i + 1, s]) - np.float64(columns[i + 1, y])
            gram[i, j] = inner
            gram[j, i] = inner
        solver.norms[i] = gram[i, i]

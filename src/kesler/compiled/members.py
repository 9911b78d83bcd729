"""Members: which hypotheses of a part a class owns, and which of them two classes share."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from kesler.compiled.jit import inlined
from kesler.compiled.learner import FIRST_SEEN, GROUPED, KIND, PER_CLASS, SHARED, VIRTUAL


@inlined
def groups_of(learner, part, r):
    """Return where the groups of class r begin and end; one that was not met has none yet."""
    start = learner.member_starts[part, r]
    if r >= learner.counters[FIRST_SEEN]:
        return start, start
    return start, learner.member_starts[part, r + 1]


@inlined
def n_hypotheses(learner, part, r):
    """Return how many hypotheses of the part class r owns."""
    if learner.parts[part, KIND] != GROUPED:
        return 1
    start, end = groups_of(learner, part, r)
    return end - start


@inlined
def n_common(learner, part, r, s):
    """Return how many hypotheses of the part classes r and s share."""
    kind = learner.parts[part, KIND]
    if kind == PER_CLASS:
        return 1 if r == s else 0
    if kind == SHARED:
        return 1
    common = 0
    i, i_end = groups_of(learner, part, r)
    j, j_end = groups_of(learner, part, s)
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
def is_member(learner, part, r, group):
    """Whether class r belongs to a group of the part."""
    start, end = groups_of(learner, part, r)
    for m in range(start, end):
        if learner.members[m] == group:
            return True
    return False


@inlined
def n_candidates(learner):
    """Return how many classes there are by now, a virtual one included."""
    return learner.counters[FIRST_SEEN] + (learner.newcomers[0] == VIRTUAL)

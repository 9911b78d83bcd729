"""Trials over a kernel of learners that are told only whether the class they show is right."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from functools import cache
from typing import Any

from kesler.compiled.jit.background import recipe
from kesler.compiled.kernels.kernel_trial import compiled_for, write_arguments
from kesler.compiled.trial.bandit_trial import learn_shown
from kesler.compiled.trial.facts import JUDGED_OVER_KERNEL
from kesler.compiled.trial.records import Blocks, EncodedTargets, Ratings
from kesler.compiled.trial.tasks import Kernels

__all__ = ["Blocks", "EncodedTargets", "Ratings", "kernels_for", "write_arguments"]


def kernels_for(learner: Any) -> Kernels:
    """Return the kernels for all learners of this kind."""
    return kernels()


@recipe
@cache
def kernels() -> Kernels:
    """Return the kernels, compiled for what holds for these learners."""
    return compiled_for("bandit_over_kernel", JUDGED_OVER_KERNEL, learn_all=learn_shown)

"""Tasks: the rows that a kernel processes, their targets, and the results."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit.decorators import DOUBLE_TABLE, FLOAT_TABLE, INDICES, INT, kernel
from kesler.compiled.jit.pointers import pointer_reader, put
from kesler.compiled.trial.records import BLOCKS, ENCODED_TARGETS, Blocks, EncodedTargets


class Task(NamedTuple):
    """Rows and targets, and arrays for the results.

    predictions[i] is set to the class of the highest score before the target is learnt, -1 if no
    class is known; scores[i] to the scores of the classes known then, and probabilities[i] to those
    of the predicted class and of the target, both NaN if the target is unknown. Scores and
    probabilities are not written if their arrays have no rows.
    """

    rows: Blocks
    encoded: EncodedTargets
    predictions: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    probabilities: npt.NDArray[np.float64]


TASK = types.NamedTuple((BLOCKS, ENCODED_TARGETS, INDICES, FLOAT_TABLE, DOUBLE_TABLE), Task)

task_at = pointer_reader(TASK)


@kernel(types.void(TASK, INT))
def write_arguments(task, address):
    """Write a task to an address, from which other kernels read it."""
    put(task, address)


class Kernels(NamedTuple):
    """The kernels of the learners for which some facts hold."""

    learn: Any
    predict: Any

"""Tasks: the rows that a kernel goes through, their targets, and what it finds."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit.decorators import DOUBLE_TABLE, FLOAT_TABLE, INDICES, INT, kernel
from kesler.compiled.jit.pointers import pointer_reader, put
from kesler.compiled.trial.records import BLOCKS, ENCODED_TARGETS, Blocks, EncodedTargets


class Task(NamedTuple):
    """Rows and answers, and room for what is found.

    predictions[i] becomes the class of highest score before the answer was given, -1 if none was
    known; scores[i] the scores of the classes known by then, and probabilities[i] those of the
    class predicted and of the answer, NaN if it was not known, unless they have no rows.
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
    """Write a task to an address, where other kernels borrow it."""
    put(task, address)

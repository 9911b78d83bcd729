"""Snapshots: model files of a learner as it was, from which later rows are learnt again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np


def contents_of(learner: Any, *, by_name: bool) -> bytes:
    """Return the model file of a learner; without the names of classes, unless `by_name`.

    The names follow from the history, and may have changed when the snapshot is used.
    """
    from kesler.data.model_file import to_bytes
    from kesler.online.saving import described

    arrays, metadata = described(learner, "the snapshot", {})
    if not by_name:
        for each in metadata["learners"]:
            each["labels"] = [*range(len(each["labels"]))]
    return to_bytes(arrays, metadata)


def learner_of(contents: bytes) -> Any:
    """Return the learner of a snapshot, whose classes are numbers unless it was made by name."""
    from kesler.data.model_file import from_bytes
    from kesler.online.metadata import validated
    from kesler.online.saving import restored

    arrays, metadata = from_bytes(contents, "the snapshot")
    return restored(arrays, validated(metadata), [])


def maker() -> str:
    """Return what the bits of a learner depend on: versions of packages, and the processor."""
    from kesler.compiled.jit.cache import platform_name

    own = sys.modules["kesler"].__version__  # importing kesler would be importing upwards
    return f"kesler {own}, numpy {np.__version__}, {platform_name()}"


def size_of(learner: Any) -> int:
    """Return about how many bytes the state of a learner has, 0 before its first row."""
    members = [] if learner._learner is None else learner._learner.members
    return sum(array.nbytes for member in members for array in member.stored.values())


def rename_classes(learner: Any, labels: Sequence[Any]) -> None:
    """Give the classes of a learner, by number, these names; later ones keep theirs."""
    inner = learner._learner
    if inner is None:
        return
    with inner.lock:
        for table in {id(each.classes): each.classes for each in inner.members}.values():
            table.rename(labels)


def superfluous(numbers: Sequence[int], last: int, spacing: int, times: float = 2.0) -> list[int]:
    """Return which snapshots may go, so that their distances from the last event grow.

    Parameters
    ----------
    numbers : the numbers of the events of the snapshots, in ascending order.
    last : the number of the last event.
    spacing : the distance up to which all are kept.
    times : the ratio of distances of neighbours that is reached, above 1; more keeps fewer.

    Notes
    -----
    Those left are O(log(n / spacing)) for n events. An event at a distance d has one at most
    `times` d + `spacing` before the last.

    Examples
    --------
    >>> superfluous([0, 100, 200, 300, 400, 500], 500, 100)
    [100, 300]
    """
    left, gone = list(numbers), []
    i = len(left) - 2
    while i > 0:
        newer, older = last - left[i + 1], last - left[i - 1]
        if older <= times * newer + spacing:
            gone.append(left.pop(i))
        i -= 1
    return sorted(gone)

"""Columns: where the hypotheses of each part stand in the table of weights."""

from __future__ import annotations

from collections.abc import Sequence

from kesler.hypotheses import Ordered, Part, PerClass, Shared


def n_columns(part: Part, n_classes: int, n_groups: int) -> int:
    """Return how many hypotheses a part has for so many classes and groups."""
    if isinstance(part, PerClass):
        return n_classes
    if isinstance(part, Ordered):
        return 1 + n_classes
    return 1 if isinstance(part, Shared) else n_groups


def n_beside(parts: Sequence[Part]) -> int:
    """Return how many columns stand at the end of the room that there is for classes.

    Those of hypotheses that all classes share: in cache lines of their own they would make a row
    of 20 classes half as long again.
    """
    has_classes = any(isinstance(part, PerClass) for part in parts)
    return sum(isinstance(part, Shared) for part in parts) if has_classes else 0


def columns_of(
    parts: Sequence[Part], class_room: int, group_room: Sequence[int]
) -> tuple[list[int], int]:
    """Return the first column of each part, and how many there are of all.

    The first part with a hypothesis a class has whole cache lines, but for the single columns at
    their end; the others follow.

    Examples
    --------
    >>> from kesler.maps import Frequency
    >>> columns_of([Shared(Frequency()), PerClass()], 16, [0, 0])
    ([15, 0], 16)
    """
    rooms = [n_columns(part, class_room, n) for part, n in zip(parts, group_room, strict=True)]
    of_classes = [i for i, part in enumerate(parts) if isinstance(part, PerClass)][:1]
    single = [i for i, part in enumerate(parts) if isinstance(part, Shared)]
    for i in of_classes:
        rooms[i] -= len(single)
    first = [*of_classes, *single]
    offsets, width = [0] * len(parts), 0
    for i in [*first, *(i for i in range(len(parts)) if i not in first)]:
        offsets[i], width = width, width + rooms[i]
    return offsets, width

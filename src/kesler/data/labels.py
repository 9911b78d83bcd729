"""Labels: the names of classes."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

Label = Hashable


class NewClass:
    """The type of :data:`NEW`, which has no other object."""

    def __repr__(self) -> str:
        return "kesler.NEW"

    def __str__(self) -> str:
        return "(new)"

    def __reduce__(self) -> str:
        return "NEW"


NEW = NewClass()
"""A class that has not been seen yet, in probabilities and prediction sets.

It is not a label: learning it is refused.

Examples
--------
>>> import pickle
>>> pickle.loads(pickle.dumps(NEW)) is NEW, NEW
(True, kesler.NEW)
"""


def plain(label: Label) -> Label:
    """Return a NumPy number or text as the Python one that it equals."""
    return label.item() if isinstance(label, (np.number, np.bool_, np.character)) else label

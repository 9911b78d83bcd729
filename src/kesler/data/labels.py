"""Labels: the names of classes."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

Label = Hashable


def plain(label: Label) -> Label:
    """Return a NumPy number or text as the Python one that it equals."""
    return label.item() if isinstance(label, (np.number, np.bool_, np.character)) else label

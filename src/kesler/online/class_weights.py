"""Weights of classes, by which the sample weights of their rows are multiplied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.inputs import MOST_WEIGHT, label_list, row_weights
from kesler.data.labels import Label
from kesler.errors import KeslerError, is_number

if TYPE_CHECKING:
    from kesler.online.model import Model

Weights = npt.NDArray[np.float64] | None
BALANCED = "balanced"


@contextmanager
def of_all_rows(model: Model, y: Any) -> Iterator[None]:
    """Learn rows whose labels are all known, so that the weights of classes may be balanced."""
    chosen = model.class_weight
    if not _is_balanced(chosen):
        if chosen is not None:
            _require_known(_required(chosen), label_list(y))
        yield
        return
    counts = Counter(label_list(y))
    n_rows, n_classes = sum(counts.values()), len(counts)
    model._balance = {label: n_rows / (n_classes * n) for label, n in counts.items()}
    try:
        yield
    finally:
        del model._balance


def weighted(model: Model, labels: Sequence[Label], weights: Weights) -> Weights:
    """Return sample weights times the weights of the classes of rows, None for 1.

    Raises
    ------
    KeslerError
        If a weight is invalid, or weights are to be balanced and not all rows are known.
    """
    by_label = _weights_of(model)
    if by_label is None:
        return weights
    factors = np.array([by_label.get(label, 1.0) for label in labels], dtype=np.float64)
    return row_weights(factors if weights is None else factors * weights, len(labels))


def _weights_of(model: Model) -> Mapping[Label, float] | None:
    chosen = model.class_weight
    if chosen is None or not _is_balanced(chosen):
        return None if chosen is None else _required(chosen)
    if model._balance is None:
        raise KeslerError(
            'class_weight="balanced" counts the rows of each class, which only `fit` knows before '
            "it learns: give a mapping of labels to weights, such as those of "
            'sklearn.utils.class_weight.compute_class_weight("balanced", classes=..., y=...), or '
            "sample weights"
        )
    return model._balance


def _is_balanced(chosen: Any) -> bool:
    return isinstance(chosen, str) and chosen == BALANCED


def _required(chosen: Any) -> Mapping[Label, float]:
    if not isinstance(chosen, Mapping):
        raise KeslerError(
            f'class_weight={chosen!r} is unknown: give a mapping of labels to weights, "balanced" '
            "or None"
        )
    for label, weight in chosen.items():
        if not is_number(weight, 1 / MOST_WEIGHT, MOST_WEIGHT):
            raise KeslerError(
                f"class_weight of {label!r} is {weight!r}: it must be a number between "
                f"1/{MOST_WEIGHT:,} and {MOST_WEIGHT:,}; leave rows out that are not to be learnt"
            )
    return chosen


def _require_known(weights: Mapping[Label, float], labels: Sequence[Label]) -> None:
    """Raise if no row has a class with a weight: the labels are most likely of another type."""
    if weights and weights.keys().isdisjoint(labels):
        raise KeslerError(
            f"class_weight names {', '.join(map(repr, list(weights)[:3]))}, and no row has such a "
            "label: give the labels as they are in y"
        )

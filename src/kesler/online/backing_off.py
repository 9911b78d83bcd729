"""Answers of classes that are paths: the deepest node that is sure enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kesler.data.inputs import parts_of
from kesler.learner.uncertainty import require_confidence
from kesler.trees.paths import PathAnswer, PathNodes, path_nodes, require_separator

if TYPE_CHECKING:
    from kesler.data.rows import Rows
    from kesler.learner.ensemble import AnyLearner
    from kesler.learner.events import Event


def path_answers(
    learner: AnyLearner, blocks: Iterable[Rows | Event], least: float, separator: str
) -> Iterator[PathAnswer]:
    """Yield the answer of each row; probabilities exist for a part of the rows at a time."""
    least, separator = require_confidence(least), require_separator(separator)
    nodes = path_nodes(tuple(learner.classes.labels), separator)
    shares = _shares_of_new(learner, nodes)
    for rows in blocks:
        for part in parts_of(rows, len(nodes.names)):
            if learner.uncertainty is None:
                probabilities = learner.probabilities(part)
                new = np.zeros(len(probabilities))
            else:
                said = learner.assess(part)
                probabilities, new = said.probabilities[:, 2:], said.new
            yield from nodes.answers(probabilities, new[:, None] * shares, least)


def _shares_of_new(learner: AnyLearner, nodes: PathNodes) -> npt.NDArray[np.float64]:
    """Return the share of new classes that are new at each level; none without estimates."""
    if learner.uncertainty is None:
        return np.empty(0)
    n_rows, counted = np.zeros(len(nodes.of_class)), learner.uncertainty.stored["arrivals.n_rows"]
    n_rows[: len(counted)] = counted[: len(n_rows)]  # a class whose first row failed has no count
    return nodes.new_shares(n_rows)

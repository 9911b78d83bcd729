"""Answers of classes that are paths: the deepest node that is sure enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kesler.data.inputs import parts_of
from kesler.data.labels import Label
from kesler.errors import KeslerError, MismatchWarning, warn
from kesler.learner.uncertainty import require_confidence
from kesler.trees.paths import PathAnswer, PathNodes, path_nodes, ranks_of, require_separator

if TYPE_CHECKING:
    from kesler.data.rows import Rows
    from kesler.learner.ensemble import AnyLearner
    from kesler.learner.events import Event

Doubles = npt.NDArray[np.float64]
SEPARATOR = ";"


def path_answers(
    learner: AnyLearner, blocks: Iterable[Rows | Event], least: float, separator: str | None
) -> Iterator[PathAnswer]:
    """Yield the answer of each row; probabilities exist for a part of the rows at a time."""
    least, separator = require_confidence(least), _separator(learner, separator)
    nodes = path_nodes(tuple(learner.classes.labels), separator)
    say = _of_classes if learner.ranks is None else _of_ranks
    for rows in blocks:
        for part in parts_of(rows, len(nodes.names)):
            yield from nodes.answers(*say(learner, nodes, part), least)


def warn_if_flat(learner: AnyLearner) -> None:
    """Warn if ranks are asked for, and no label has more than one."""
    ranks = learner.ranks
    if ranks is not None and not ranks.learners:
        warn(
            f"ranks={ranks.separator!r}: no label has {ranks.separator!r} between two names, so "
            "there is one rank: give what separates the names of your labels, or leave it out",
            MismatchWarning,
        )


def _separator(learner: AnyLearner, separator: str | None) -> str:
    """Return the separator of names: that of the ranks learnt, or the one given."""
    ranks = learner.ranks
    if separator is None:
        return SEPARATOR if ranks is None else ranks.separator
    if ranks is not None and require_separator(separator) != ranks.separator:
        raise KeslerError(
            f"separator={separator!r}: the ranks that were learnt are separated by "
            f"{ranks.separator!r}: give this one"
        )
    return require_separator(separator)


def _said(learner: AnyLearner, rows: Rows | Event) -> tuple[Doubles, Doubles]:
    """Return the probabilities of classes, and that of a new one, 0 without estimates."""
    if learner.uncertainty is None:
        probabilities = learner.probabilities(rows)
        return probabilities, np.zeros(len(probabilities))
    said = learner.assess(rows)
    return said.probabilities[:, 2:], said.new


def _of_classes(
    learner: AnyLearner, nodes: PathNodes, rows: Rows | Event
) -> tuple[Doubles, Doubles]:
    """Return the probability of each node, a sum over classes, and that its rank is new."""
    probabilities, new = _said(learner, rows)
    return nodes.sums(probabilities), new[:, None] * _shares_of_new(learner, nodes)


def _of_ranks(learner: AnyLearner, nodes: PathNodes, rows: Rows | Event) -> tuple[Doubles, Doubles]:
    """Return the probability of each node by the learners of all ranks, and P(new) of each rank.

    A path that is new at a rank is new at those below it, whatever their learners say.
    """
    ranks = learner.ranks
    assert ranks is not None
    learners = [*ranks.learners[: len(nodes.levels) - 2], learner]
    said = [_said(each, rows) for each in learners]
    of_classes = [
        _numbers(nodes, rank, tuple(each.classes.labels)) for rank, each in enumerate(learners)
    ]
    total = nodes.combined(
        [(numbers, chances) for numbers, (chances, _) in zip(of_classes, said, strict=True)]
    )
    if learner.uncertainty is None:
        return total, np.empty((total.shape[1], 0))
    new = [np.zeros(total.shape[1]), *(each for _, each in said)]
    return total, np.maximum.accumulate(np.column_stack(new), axis=1)


@lru_cache(maxsize=32)
def _numbers(nodes: PathNodes, rank: int, labels: tuple[Label, ...]) -> npt.NDArray[np.int64]:
    """Return the nodes of the classes of a rank, of which 0 is the first."""
    paths = (ranks_of(label, nodes.separator)[: rank + 1] for label in labels)
    return np.array([nodes.number[path] for path in paths], dtype=np.int64)


def _shares_of_new(learner: AnyLearner, nodes: PathNodes) -> Doubles:
    """Return the share of new classes that are new at each level; none without estimates."""
    if learner.uncertainty is None:
        return np.empty(0)
    n_rows, counted = np.zeros(len(nodes.of_class)), learner.uncertainty.stored["arrivals.n_rows"]
    n_rows[: len(counted)] = counted[: len(n_rows)]  # a class whose first row failed has no count
    return nodes.new_shares(n_rows)

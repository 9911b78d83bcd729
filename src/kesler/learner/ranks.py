"""Ranks of labels that are paths: a learner for each rank above the last."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label
from kesler.data.rows import Rows
from kesler.learner.events import Event
from kesler.learner.targets import Answers
from kesler.state.fields import damaged
from kesler.trees.paths import ranks_of, require_separator

if TYPE_CHECKING:
    from kesler.trees.paths import Ranks as Path

Codes = npt.NDArray[np.int32]
Doubles = npt.NDArray[np.float64]


class Ranks:
    """The learners of the ranks above the last one, beside the learner of the labels.

    The learner of rank d learns the rows with labels that are cut behind d names. It begins when a
    path is deeper than d for the first time, as a copy of the learner of the labels: until then,
    these are cut labels.

    Parameters
    ----------
    separator : what separates the names of a label.
    """

    def __init__(self, separator: str) -> None:
        self.separator = require_separator(separator)
        self.learners: list[Any] = []
        self._label_of: list[dict[Path, Label]] = []  # of each rank, the label of each node

    # ---- learning ---------------------------------------------------------------------------

    def learn(
        self,
        learner: Any,
        rows: Rows | Event,
        labels: Sequence[Label],
        weights: Doubles | None,
        answers: Callable[[Codes], Answers],
        *results: Any,
    ) -> tuple[Codes, Codes]:
        """Run the trials of a learner, and those of the ranks.

        Parameters
        ----------
        learner : the learner of the labels.
        rows, labels, weights, answers, results : as for its method `learn_observed`.

        Raises
        ------
        KeslerError
            If a label is no path; nothing is learnt then.
        """
        paths = [ranks_of(label, self.separator) for label in labels]
        found = []
        for part in self._parts(paths):
            self._deepen(learner, len(paths[part.start]))
            some = None if weights is None else weights[part]
            given = (rows if isinstance(rows, Event) else rows[part]), labels[part], some
            own = [self._labels(depth, paths[part]) for depth in range(len(self.learners))]
            for each, names in zip(self.learners, own, strict=True):
                _prepare(each, learner, rows, names)
            try:
                found.append(learner.observe(*given, answers, *(each[part] for each in results)))
            finally:
                self._follow(learner, given[0], own, some)
        predictions, codes = zip(*found, strict=True)
        return np.concatenate(predictions), np.concatenate(codes)

    def _parts(self, paths: Sequence[Path]) -> Iterator[slice]:
        """Yield the rows up to the first path that is deeper than those before it, and so on."""
        deepest, start = len(self.learners) + 1, 0
        for i, path in enumerate(paths):
            if len(path) > deepest:
                deepest = len(path)
                if i > start:
                    yield slice(start, i)
                start = i
        yield slice(start, len(paths))

    def _deepen(self, learner: Any, depth: int) -> None:
        """Add learners of ranks for paths of this depth."""
        while len(self.learners) < depth - 1:
            learner.ranks = None
            try:
                self.put([*self.learners, copy.deepcopy(learner)])
            finally:
                learner.ranks = self

    def put(self, learners: Sequence[Any]) -> None:
        """Replace the learners."""
        self.learners, self._label_of = list(learners), []
        for rank, each in enumerate(self.learners):
            each.is_ordered = False  # the learner of the labels knows which class follows which
            labels = reversed(each.classes.labels)
            self._label_of.append({self.node(label, rank): label for label in labels})

    def node(self, label: Label, rank: int) -> Path:
        """Return the path of a label as far as a rank, of which 0 is the first."""
        return ranks_of(label, self.separator)[: rank + 1]

    def _labels(self, rank: int, paths: Sequence[Path]) -> list[Label]:
        """Return the labels of paths at a rank; those of new nodes are their names, joined."""
        known = self._label_of[rank]
        nodes = [path[: rank + 1] for path in paths]
        return [known.setdefault(node, self.separator.join(node)) for node in nodes]

    def _follow(
        self,
        learner: Any,
        rows: Rows | Event,
        labels: Sequence[Sequence[Label]],
        weights: Doubles | None,
    ) -> None:
        """Learn the rows that a learner has learnt, with the labels of each rank."""
        # Fewer than all rows, if a function of the user has failed.
        n_learnt = learner.n_trials - self.learners[0].n_trials if self.learners else 0
        n_learnt = len(rows) if learner.repeats else n_learnt
        rows = rows[:n_learnt] if isinstance(rows, Rows) else rows
        some = None if weights is None else weights[:n_learnt]
        for each, names in zip(self.learners, labels, strict=True) if n_learnt else ():
            each.learn_observed(rows, names[:n_learnt], some)

    # ---- files ------------------------------------------------------------------------------

    def require_fit(self, learner: Any) -> None:
        """Raise unless the learners are those of all ranks of the labels of a learner, or more.

        There is one more if the first row of a deeper path could not be learnt.
        """
        paths = [ranks_of(label, self.separator) for label in learner.classes.labels]
        if len(self.learners) < max(map(len, paths), default=1) - 1:
            raise damaged("ranks are not those of its labels")
        for rank, of_label in enumerate(self._label_of):
            if set(of_label) != {path[: rank + 1] for path in paths}:
                raise damaged(f"rank {rank + 1} has other nodes than its labels")


def _prepare(each: Any, learner: Any, rows: Rows | Event, labels: Sequence[Label]) -> None:
    """Provide capacity for the rows, or refuse them before any learner has learnt."""
    each.observes = learner.observes
    if isinstance(rows, Rows):
        each.expect(list(dict.fromkeys(labels)), rows.n_features, rows.n_sub_experts)

"""Labels that are paths, such as taxa: their tree, and answers that stop at a sure rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label, class_of
from kesler.errors import KeslerError
from kesler.trees.tree import Tree

Doubles = npt.NDArray[np.float64]
Ranks = tuple[str, ...]
"""The names of a path from below the root, one for each rank."""
LEAST = 1e-9
"""The least probability of a node that ranks are combined of."""


@dataclass(frozen=True, slots=True)
class PathAnswer:
    """The deepest node on the path of the most probable nodes that is sure enough.

    Parameters
    ----------
    path : the names of the node and of those above it, joined by the separator; "" is the root.
    probability : the probability that the path of the target leads through the node.
    nodes : the probabilities of all nodes of the path, from below the root on, also of those below
        the answer, by their own paths.
    new : for each of these nodes, the probability that the path of the target has not been seen
        down to its rank; empty if uncertainty is not estimated.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> names = ["fungi;agarics;amanita", "fungi;agarics;bolete"] * 50
    >>> model = OnlineClassifier().fit([{"red": 1}, {"brown": 1}] * 50, names)
    >>> answer = model.predict_path_one({"cap": 1}, min_confidence=0.8)
    >>> answer.path, len(answer.nodes)
    ('fungi;agarics', 3)
    """

    path: str
    probability: float
    nodes: dict[str, float]
    new: dict[str, float]

    def to_list(self) -> list[dict[str, Any]]:
        """Return the nodes of the path as JSON can hold them, from below the root on.

        Examples
        --------
        >>> PathAnswer("k", 0.9, {"k": 0.9, "k;s": 0.5}, {}).to_list()[0]
        {'path': 'k', 'probability': 0.9, 'new': None}
        """
        return [
            {"path": path, "probability": probability, "new": self.new.get(path)}
            for path, probability in self.nodes.items()
        ]


def ranks_of(label: Label, separator: str) -> Ranks:
    """Return the names on the path that a label is, without the empty ranks at its end.

    A rank is empty if it has no name, or a name that ends behind two underscores.

    Raises
    ------
    KeslerError
        If the label is no text, or all of its ranks are empty.

    Examples
    --------
    >>> ranks_of("k__Fungi; p__Ascomycota; c__; s__", ";")
    ('k__Fungi', 'p__Ascomycota')
    """
    if not isinstance(label, str):
        raise KeslerError(
            f"the label {label!r:.60} is no text: paths are names that are joined by a separator, "
            'such as "k__Fungi;p__Ascomycota"; of names in a list, ";".join(names) is one'
        )
    names = [name.strip() for name in label.split(separator)]
    while names and (not names[-1] or names[-1].endswith("__")):
        names.pop()
    if not names:
        raise KeslerError(
            f"the label {label!r:.60} names no rank: give one name or more, separated by "
            f'"{separator}"'
        )
    return tuple(names)


def require_separator(separator: Any) -> str:
    """Return the separator of the names of paths; raise unless it is a text that is not empty."""
    if not isinstance(separator, str) or not separator:
        raise KeslerError(f'separator={separator!r}: give what separates the names, such as ";"')
    return separator


def tree_of_paths(labels: Iterable[Label], separator: str = ";") -> Tree:
    """Return the tree of labels that are paths, such as ``k__Fungi;p__Ascomycota``.

    Parameters
    ----------
    labels : iterable of str
        The paths, of any depths. Empty ranks such as ``s__`` at the end of a label end its path:
        the label hangs from the last rank that has a name. Spaces around names do not count.
    separator : str, default ";"
        What separates the names.

    Returns
    -------
    Tree
        Its nodes are named by their whole paths, so that equal names on different paths differ.

    Raises
    ------
    KeslerError
        If a label is no text, or names no rank.

    Examples
    --------
    >>> tree = tree_of_paths(["k__Fungi; p__Ascomycota; c__", "k__Fungi; p__Basidiomycota"])
    >>> tree.path("k__Fungi; p__Ascomycota; c__")
    ['k__Fungi; p__Ascomycota; c__', 'k__Fungi;p__Ascomycota', 'k__Fungi', '']
    """
    separator, parents = require_separator(separator), dict[str, str | None]()
    for label in map(class_of, labels):
        above = None
        for node in [*_joined(ranks_of(label, separator), separator), label]:
            if node != above:
                parents[node] = above
            above = node
    return Tree(parents)


def _joined(ranks: Ranks, separator: str) -> Iterator[str]:
    """Yield the path of each node above a rank, and of the rank itself."""
    return accumulate(ranks, lambda above, name: f"{above}{separator}{name}")


class PathNodes:
    """The nodes of classes whose labels are paths: level by level, those of one parent in a row.

    Of one parent, the node whose class comes first is the first.

    Parameters
    ----------
    labels : the label of each class.
    separator : what separates the names of a path.

    Attributes
    ----------
    names : the path of each node; the root, number 0, has the path ().
    parent : the number of the node that each node hangs from; -1 for the root.
    levels : the numbers of the nodes of each level, from that of the root on.
    number : the number of the node of each path.
    of_class : the node of each class.
    """

    def __init__(self, labels: Sequence[Label], separator: str = ";") -> None:
        self.separator = require_separator(separator)
        paths = [ranks_of(label, self.separator) for label in labels]
        self.number = number = dict[Ranks, int]({(): 0})
        self.levels = [slice(0, 1)]
        for depth in range(1, 1 + max(map(len, paths), default=0)):
            found = dict.fromkeys(path[:depth] for path in paths if len(path) >= depth)
            for path in sorted(found, key=lambda path: number[path[:-1]]):
                number[path] = len(number)
            self.levels.append(slice(self.levels[-1].stop, len(number)))
        self.names = [*number]
        self.parent = np.array([-1, *(number[path[:-1]] for path in self.names[1:])])
        self.of_class = np.array([number[path] for path in paths], dtype=np.int64)

    def sums(self, values: Doubles) -> Doubles:
        """Return the sums of values of classes (n_rows, n_classes) below nodes (n_nodes, n_rows).

        Values of 0 or more give a node no less than any node below it, whatever is rounded.
        """
        found = _sums(values.T, self.of_class, len(self.names))
        for level in reversed(self.levels[1:]):
            _add(found, self.parent[level], found[level])
        return found

    @cached_property
    def cells(self) -> list[npt.NDArray[np.int64]]:
        """The nodes of paths that are cut at each level, from that of the root on, in order."""
        nodes, found = np.unique(self.of_class), []
        for level in reversed(self.levels):
            found.append(nodes)
            nodes = np.unique(self._cut(nodes, level))
        return found[::-1]

    @cached_property
    def _above(self) -> list[npt.NDArray[np.int64]]:
        """Of the cells of each level below the root, the places among the cells of that above."""
        pairs = zip(self.cells[:-1], self.cells[1:], self.levels[1:], strict=True)
        return [np.searchsorted(upper, self._cut(own, level)) for upper, own, level in pairs]

    def _cut(self, nodes: npt.NDArray[np.int64], level: slice) -> npt.NDArray[np.int64]:
        """Return nodes, and of those of a level their parents."""
        return np.where(nodes >= level.start, self.parent[nodes], nodes)

    def combined(self, ranks: Sequence[tuple[npt.NDArray[np.int64], Doubles]]) -> Doubles:
        r"""Return probabilities of nodes (n_nodes, n_rows) that agree on all ranks.

        With q of the learner of each rank, from the last rank up to the first and then down,

        .. math:: m_d(v) \propto \sqrt{q_d(v) \sum_{u \text{ below } v} m_{d+1}(u)}, \quad
            P(v) = P(a) \frac{m_d(v)}{\sum_{u \text{ below } a} m_d(u)}, \; a \text{ above } v

        and m = q at the last rank. A path that ends above a rank is a node of that rank as well.

        Parameters
        ----------
        ranks : of each rank, the nodes of its classes, and their probabilities (n_rows, n_classes).
        """
        found = np.zeros((len(self.names), len(ranks[0][1])))
        found[0], values = 1.0, found[:1]
        for depth, merged in enumerate(self._merged(ranks)):
            above, cells, level = self._above[depth], self.cells[depth + 1], self.levels[depth + 1]
            total = _sums(merged, above, len(values))
            values = values[above] * merged / np.maximum(total, LEAST)[above]
            is_of_level = cells >= level.start  # others have ended above
            found[cells[is_of_level]] = values[is_of_level]
        return found

    def _merged(self, ranks: Sequence[tuple[npt.NDArray[np.int64], Doubles]]) -> list[Doubles]:
        """Return m of `combined` for the cells of each level below the root."""
        found: list[Doubles] = []
        for depth in range(len(ranks), 0, -1):
            (nodes, values), cells = ranks[depth - 1], self.cells[depth]
            own = _sums(values.T, np.searchsorted(cells, nodes), len(cells))
            if found:
                below = _sums(found[-1], self._above[depth], len(cells))
                own = np.sqrt(np.maximum(own, LEAST) * np.maximum(below, LEAST))
                own /= own.sum(axis=0)
            found.append(own)
        return found[::-1]

    def new_shares(self, n_rows: npt.NDArray[np.float64]) -> Doubles:
        """Return the share of new classes whose paths are new at each level, from the root's on.

        As by Good and Turing, a class of one row was new when this row came; its path is new at a
        level if no other row is below the node that it leads through there, or ends at above. The
        number of nodes for each class, the share of all classes that were once new there, counts
        as one class more.

        Parameters
        ----------
        n_rows : number of rows of each class.
        """
        nodes, is_once = self.of_class, n_rows == 1
        is_alone = self.sums(n_rows[None])[:, 0] == 1
        found = np.zeros(len(self.levels))
        for depth in range(len(self.levels) - 1, 0, -1):
            of_all = len(np.unique(nodes)) / len(nodes)
            found[depth] = (of_all + is_alone[nodes[is_once]].sum()) / (1 + is_once.sum())
            nodes = np.where(nodes >= self.levels[depth].start, self.parent[nodes], nodes)
        return found

    def descent(self, total: Doubles) -> npt.NDArray[np.int64]:
        """Return the numbers of the nodes of highest value of each row, (n_levels, n_rows).

        Each is the highest of those below the one before it; where there is none, it is repeated.
        """
        chosen = np.zeros(total.shape[1], dtype=np.int64)
        found = [chosen]
        for level in self.levels[1:]:
            of_chosen = self.parent[level, None] == chosen
            best = level.start + np.where(of_chosen, total[level], -1.0).argmax(axis=0)
            chosen = np.where(self.parent[best] == chosen, best, chosen)
            found.append(chosen)
        return np.array(found)

    def answers(self, total: Doubles, new: Doubles, least: float) -> Iterator[PathAnswer]:
        """Yield the answer of each row.

        Parameters
        ----------
        total : array of shape (n_nodes, n_rows), the probability of each node.
        new : array of shape (n_rows, n_levels), the probability that a path is new at each level;
            of 0 columns if it is not known.
        least : the least probability of an answer.
        """
        nodes = self.descent(total)
        found = np.take_along_axis(total, nodes, axis=0).T / total[0][:, None]
        found[:, : new.shape[1]] *= 1 - new
        for path, known, fresh in zip(nodes.T.tolist(), found.tolist(), new.tolist(), strict=True):
            depth = len(set(path))
            names = [self.separator.join(self.names[node]) for node in path[:depth]]
            deepest = max(i for i in range(depth) if i == 0 or known[i] >= least)
            yield PathAnswer(
                names[deepest],
                known[deepest],
                dict(zip(names[1:], known[1:depth], strict=True)),
                dict(zip(names[1:], fresh[1:depth], strict=False)),
            )


@lru_cache(maxsize=1)
def path_nodes(labels: tuple[Label, ...], separator: str) -> PathNodes:
    """Return the nodes of classes; kept for the next row of the same classes."""
    return PathNodes(labels, separator)


def _sums(values: Doubles, into: npt.NDArray[np.int64], n: int) -> Doubles:
    """Return n sums of rows of values, each of those that go into it."""
    total, order = np.zeros((n, values.shape[1])), np.argsort(into, kind="stable")
    _add(total, into[order], values[order])
    return total


def _add(total: Doubles, into: npt.NDArray[np.int64], values: Doubles) -> None:
    """Add rows of values to the rows of a table; `into` ascends."""
    starts = np.flatnonzero(np.diff(into, prepend=-1))
    total[into[starts]] += np.add.reduceat(values, starts, axis=0)

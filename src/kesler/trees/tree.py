"""Trees of classes: which node each class hangs from, and how far apart two classes are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kesler.data.labels import class_of
from kesler.errors import KeslerError

ROOT = ""
"""The name of the root, unless one node of a mapping is above all others."""

DEEPEST = 1000  # nodes from a class to the root


@dataclass(frozen=True)
class Tree:
    r"""A tree whose leaves, and perhaps inner nodes, are classes.

    The distance of two classes is the number of edges of the path between them,

    .. math:: \gamma(y, s) = |P(y) \setminus P(s)| + |P(s) \setminus P(y)|

    where P(y) are the nodes from y to the root.

    Parameters
    ----------
    given : mapping {child: parent}, list of pairs (child, parent), text, callable or Tree
        A mapping or pairs name the parent of each node; nodes without a parent, or with the parent
        None, hang from the root, which is such a node itself if there is only one. A text is the
        separator of names that are paths: with ".", "rec.autos" hangs from "rec". A callable
        returns the parent of a node, None at the root. Classes that none of these places hang from
        the root.
    hung : mapping {child: parent}, default {}
        Classes whose place was given later (:meth:`hang`); these places come first.

    Attributes
    ----------
    root : label
        The name of the root: "" unless a mapping has one node above all others.

    Raises
    ------
    KeslerError
        If nodes form a cycle, a node has two parents or is its own parent, or a name is empty or
        not hashable.

    References
    ----------
    Dekel, Keshet and Singer (2004), "Large margin hierarchical classification".

    Examples
    --------
    >>> animals = Tree({"cat": "mammal", "dog": "mammal", "eel": "fish"})
    >>> animals.path("cat"), animals.distance("cat", "dog"), animals.distance("cat", "eel")
    (['cat', 'mammal', ''], 2, 4)
    >>> animals.hang("cod", under="fish").path("cod")
    ['cod', 'fish', '']
    >>> Tree(".").path("rec.autos")
    ['rec.autos', 'rec', '']
    """

    given: Any
    hung: Mapping[Any, Any] = field(default_factory=dict)
    root: Any = field(init=False, compare=False, repr=False, default=ROOT)

    def __post_init__(self) -> None:
        given = self.given
        if isinstance(given, Tree):
            given, hung = given.given, {**given.hung, **self.hung}
            object.__setattr__(self, "hung", hung)
        elif isinstance(given, str):
            if not given:
                raise KeslerError("tree='': give the separator of names, such as '.' or '/'")
        elif not callable(given):
            given = parents_of(given)
        object.__setattr__(self, "given", given)
        object.__setattr__(self, "hung", dict(self.hung))
        if isinstance(given, dict):
            object.__setattr__(self, "root", _root_of(given))
            for node in given:
                self.path(node)

    @property
    def nodes(self) -> list[Any]:
        """The nodes that are named in the mapping and by `hang`, and the root."""
        pairs = [*(self.given.items() if isinstance(self.given, dict) else ()), *self.hung.items()]
        named = [node for pair in pairs for node in pair if node is not None]
        return list(dict.fromkeys([self.root, *named]))

    def parent(self, node: Any) -> Any:
        """Return the node that a node hangs from; the root for nodes without another place."""
        if node in self.hung:
            return self.hung[node]
        if isinstance(self.given, dict):
            found = self.given.get(node)
        elif isinstance(self.given, str):
            found = _before(node, self.given)
        else:
            found = class_of(self.given(node))
        return self.root if found is None else found

    def path(self, label: Any) -> list[Any]:
        """Return the nodes from a class to the root.

        Raises
        ------
        KeslerError
            If the name of the class is empty, or the tree has a cycle above it.
        """
        node = class_of(label)
        found = {node: None}
        _require_name(node)
        while node != self.root:
            above = self.parent(node)
            _require_node(above, f"the parent of {node!r}")
            if above == node:
                raise KeslerError(f"tree: the node {node!r} is its own parent")
            if above in found or len(found) > DEEPEST:
                raise KeslerError(
                    f"tree: the path from {label!r} comes to {above!r} again, or has more than "
                    f"{DEEPEST} nodes: a tree has no cycle"
                )
            found[above] = None
            node = above
        return list(found)

    def distance(self, one: Any, other: Any) -> int:
        """Return the number of edges between two classes."""
        return len(set(self.path(one)) ^ set(self.path(other)))

    def margin(self, right: Any, wrong: Any) -> float:
        """Return the square root of the distance, the margin of Dekel, Keshet and Singer."""
        return math.sqrt(self.distance(right, wrong))

    def ancestor(self, label: Any, level: int) -> Any:
        """Return the node of a class at a level: 0 is the root; a class ends its own path."""
        path = self.path(label)
        return path[max(0, len(path) - 1 - level)]

    def hang(self, label: Any, under: Any = None) -> Tree:
        """Return the tree with one more class.

        Parameters
        ----------
        label : the class, which the tree must not place yet.
        under : the node that it hangs from; None stands for the root.

        Raises
        ------
        KeslerError
            If the class has a place already, or its name is empty.
        """
        label, under = class_of(label), self.root if under is None else class_of(under)
        _require_node(label, "a class to hang")
        _require_name(label)
        if label in self.nodes:
            raise KeslerError(
                f"{label!r} is a node of the tree already: a node has one place, which stays"
            )
        found = Tree(self.given, {**self.hung, label: under})
        found.path(label)
        return found


def parents_of(given: Any) -> dict[Any, Any]:
    """Return the parent of each node, after validation of the names.

    Examples
    --------
    >>> parents_of([("cat", "mammal"), ("cat", "pet")])
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: tree: the node 'cat' has two parents, 'mammal' and 'pet': a node \
has one
    """
    found: dict[Any, Any] = {}
    for child, parent in _pairs(given):
        _require_node(child, "a child")
        _require_name(child)
        if isinstance(parent, (list, set, frozenset)):
            raise KeslerError(
                f"tree: the node {child!r} has the parents {parent!r:.60}: a node has one"
            )
        _require_node(parent, f"the parent of {child!r}")
        _require_name(parent)
        if child in found and found[child] != parent:
            raise KeslerError(
                f"tree: the node {child!r} has two parents, {found[child]!r} and {parent!r}: a "
                "node has one"
            )
        found[child] = parent
    return found


def _pairs(given: Any) -> list[tuple[Any, Any]]:
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    is_list = isinstance(pairs, (list, tuple))
    if not is_list or not all(isinstance(p, (list, tuple)) and len(p) == 2 for p in pairs):
        raise KeslerError(
            f"tree={given!r:.60}: give a mapping {{child: parent}}, the separator of names such as "
            "'.', or a function that returns the parent of a node"
        )
    return [(class_of(child), class_of(parent)) for child, parent in pairs]


def _root_of(parents: Mapping[Any, Any]) -> Any:
    """Return the node above all others, or the name of the root if there is none."""
    tops = dict.fromkeys(p for p in parents.values() if p is not None and p not in parents)
    is_rooted = len(tops) == 1 and None not in parents.values()
    return next(iter(tops)) if is_rooted else ROOT


def _before(node: Any, separator: str) -> str | None:
    """Return a name up to its last separator, None if there is none or nothing before it."""
    if not isinstance(node, str):
        raise KeslerError(
            f"tree={separator!r} separates the names of classes, but the label {node!r} is no "
            "text: give a mapping {child: parent} or a function"
        )
    return node.rpartition(separator)[0] or None


def _require_node(node: Any, what: str) -> None:
    try:
        hash(node)
    except TypeError:
        raise KeslerError(
            f"tree: {what} is {node!r:.60}, which is not hashable: give one label"
        ) from None


def _require_name(node: Any) -> None:
    if isinstance(node, str) and not node:
        raise KeslerError("tree: a node has an empty name, which stands for the root: name it")


Given = Mapping[Any, Any] | Iterable[tuple[Any, Any]] | str | Callable[[Any], Any] | Tree
"""What a tree may be given as."""

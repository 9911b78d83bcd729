"""Trees of classes: where later classes hang, and the tree in use."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar

from kesler.data.labels import Label
from kesler.online.contract import exclusive

if TYPE_CHECKING:
    from kesler.learner.ensemble import AnyLearner
    from kesler.trees.tree import Tree

Self = TypeVar("Self", bound="TreeOfClasses")


class TreeOfClasses:
    """The part of an estimator for a tree of its classes, its parameter `tree`."""

    _fitted: Callable[[], AnyLearner]

    @exclusive
    def hang(self: Self, label: Label, under: Hashable = None) -> Self:
        """Place a class that has not been seen in the tree of classes.

        Parameters
        ----------
        label : the class.
        under : label or None, default None
            The node that it hangs from, in the tree or above a class seen; None for the root.

        Raises
        ------
        KeslerError
            If there is no tree, the label has been seen or has a place, or the node is unknown.
        """
        self._fitted().hang(label, under)
        return self

    @property
    def tree_(self) -> Tree | None:
        """The tree of hypotheses, or else of costs, with what `hang` has placed."""
        return self._fitted().tree

    def _tree(self) -> Tree | None:
        """Return the tree of classes that is asked for, or None."""
        if vars(self).get("tree") is None:
            return None
        from kesler.trees.tree import Tree

        return Tree(vars(self)["tree"])

"""Groups and trees of classes: the part of an estimator that places classes in them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar

from kesler.data.labels import Label
from kesler.learner.ensemble import EnsembleLearner
from kesler.online.contract import exclusive
from kesler.parts.trees import Tree

if TYPE_CHECKING:
    from kesler.learner.ensemble import AnyLearner

Self = TypeVar("Self", bound="GroupedLearner")


class GroupedLearner:
    """The part of an estimator that places classes in groups and in a tree."""

    _fitted: Callable[[], AnyLearner]

    @exclusive
    def join_group(self: Self, label: Label, group: Hashable) -> Self:
        """Add a class to a group of the `Grouped` hypotheses.

        Raises
        ------
        KeslerError
            If the label has not been seen, or no hypotheses are grouped.
        """
        self._fitted().join_group(label, group)
        return self

    @exclusive
    def hang(self: Self, label: Label, under: Hashable = None) -> Self:
        """Place a class that has not been seen in the tree of classes.

        Parameters
        ----------
        label : the class. It is known from its first row, as always.
        under : label or None, default None
            The node that it hangs from: one that the tree names, or above a class that has been
            seen. None stands for the root, from which classes without a place hang.

        Raises
        ------
        KeslerError
            If there is no tree, the label has been seen or placed already, or the node is unknown.
        """
        self._fitted().hang(label, under)
        return self

    @property
    def tree_(self) -> Tree | None:
        """The tree of hypotheses, or else of costs, with what `hang` has placed; None without."""
        learner = self._fitted()
        return None if isinstance(learner, EnsembleLearner) else learner.tree

    def _tree(self) -> Tree | None:
        """Return the tree of classes that is asked for, or None."""
        given = vars(self).get("tree")
        return None if given is None else Tree(given)

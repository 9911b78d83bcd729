"""Which classes are known to a learner, which groups they are in, and how they are ranked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kesler.costs import Costs
from kesler.data.labels import Label, class_of
from kesler.errors import KeslerError
from kesler.hypotheses import Grouped, Part, require_hashable, tree_of
from kesler.learner.classes import ClassTable
from kesler.learner.observing import Observing
from kesler.learner.targets import Decision
from kesler.links.link import Link

if TYPE_CHECKING:
    from kesler.trees.tree import Tree


class KnownClasses(Observing):
    """The classes of a learner: their groups and their ranks.

    Attributes
    ----------
    groups : for each part, the column of each group.
    memberships : for each part and class, the columns of the groups that the class is in.
    """

    parts: list[Part]
    classes: ClassTable
    costs: Costs | None
    decision: Decision
    link: Link
    n_features: int
    groups: list[dict[Hashable, int]]
    memberships: list[list[list[int]]]
    has_order: Any
    reserve: Callable[..., None]
    _bind: Callable[[], None]

    def join_group(self, label: Label, group: Hashable) -> None:
        """Add a class that has been seen to one more group of every grouped part."""
        code = self.classes.code(label) if label in self.classes else None
        if code is None:
            raise KeslerError(
                f"label {label!r} has not been seen: name it in the groups, or let it join later"
            )
        require_hashable([group], "the groups to join")
        grouped = [i for i, part in enumerate(self.parts) if isinstance(part, Grouped)]
        if not grouped:
            raise KeslerError("no part of this learner is Grouped, so there is no group to join")
        with self.lock:
            for i in grouped:
                columns = self.memberships[i][code]
                column = self.groups[i].setdefault(group, len(self.groups[i]))
                if column not in columns:
                    self.memberships[i][code] = sorted([*columns, column])
                if self.link.normalised:
                    seen = self.stored["link.n_hypotheses"]
                    seen[i] = max(seen[i], column + 1)
            if self.link.normalised:
                self.stored["link.scale"]["is_stale"] = 1  # the next trial recomputes it
            self.reserve(len(self.classes), self.n_features)
            self._bind()

    @property
    def tree(self) -> Tree | None:
        """The tree of the hypotheses, or else of the costs; None without one."""
        return tree_of(self.parts) or (None if self.costs is None else self.costs.tree)

    def hang(self, label: Label, under: Hashable) -> None:
        """Place a class that has not been seen in the tree."""
        tree = self.tree
        if tree is None:
            raise KeslerError(
                "this learner has no tree of classes: give one with tree=, as a mapping "
                "{child: parent} or the separator of names"
            )
        if label in self.classes:
            raise KeslerError(f"{label!r} has been seen, and its place in the tree stays")
        above = (node for known in self.classes.labels for node in tree.path(known))
        nodes = {*tree.nodes, *above, *(group for groups in self.groups for group in groups)}
        if under is not None and class_of(under) not in nodes:
            raise KeslerError(
                f"{label!r} cannot hang from {under!r}, which is no node of the tree so far: hang "
                "that one first, or name another node"
            )
        grown = tree.hang(label, under)
        with self.lock:
            self.parts = [
                Grouped(grown, part.feature_map)
                if isinstance(part, Grouped) and part.tree == tree
                else part
                for part in self.parts
            ]
            if self.costs is not None and self.costs.tree == tree:
                self.costs = replace(self.costs, given=grown)

    def require_admissible(self, labels: Sequence[Label]) -> None:
        """Raise the errors that learning these labels would raise, those of groups included."""
        new = self.classes.unknown(labels)
        if not new:
            return
        grouped = [part for part in self.parts if isinstance(part, Grouped)]
        for label in new if grouped else ():
            for part in grouped:
                part.groups_of(label)
        if self.costs is not None:
            self.costs.require_known([*self.classes.labels, *new], len(self.classes.labels))
            if self.answer == "rank":
                self.costs.require_rising(self.classes.ordered_with(new))

    def _groups_of_new(self, n_before: int) -> list[tuple[int, list[list[Hashable]]]]:
        """Return the groups of the classes from number `n_before` on, for each grouped part."""
        new = self.classes.since(n_before)
        return [
            (i, [part.groups_of(label) for label in new])
            for i, part in enumerate(self.parts)
            if new and isinstance(part, Grouped)
        ]

    def _join(self, joined: list[tuple[int, list[list[Hashable]]]], n_before: int) -> None:
        """Add the classes from number `n_before` on to their groups, and to the tree."""
        for i, groups_by_class in joined:
            columns, members = self.groups[i], self.memberships[i]
            for groups in groups_by_class:
                members.append(sorted(columns.setdefault(g, len(columns)) for g in groups))
        if joined:
            self.reserve(len(self.classes), self.n_features)
        if joined or (self.decision == "distance" and len(self.classes) > n_before):
            self._bind()

    def _forget_unmet(self) -> None:
        """Remove the classes that no trial has met, and the groups of them alone."""
        if len(self.classes) == self.n_known:
            return
        self.classes.forget_from(self.n_known)
        for columns, members in zip(self.groups, self.memberships, strict=True):
            del members[self.n_known :]
            met = {column for of_class in members for column in of_class}
            for group in [g for g, column in columns.items() if column not in met]:
                del columns[group]
        self._place_ranks()
        self._bind()

    def _place_ranks(self) -> None:
        """Write the order of all labels, and which of them are known, for compiled code."""
        if not self.has_order:
            return
        places, order, positions = (
            self.stored[f"ranks.{name}"] for name in ("places", "order", "positions")
        )
        codes = np.array(self.classes.order, dtype=np.int64)
        known = codes[codes < self.n_known]
        places[codes] = np.arange(len(codes))
        order[: len(known)] = known
        positions[known] = np.arange(len(known))

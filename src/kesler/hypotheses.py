"""Hypotheses: which classes share a weight vector, over which features.

A learner has a list of parts, and the score of a class is the sum over the hypotheses t that it
belongs to (Fink et al. 2006, Eq. 7):

    h(x, r) = sum over t with r in t of <w^t, phi^t(x, r)>
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

from kesler.data.labels import class_of
from kesler.errors import KeslerError
from kesler.maps import MAPS
from kesler.maps.view import SubExperts, View

MOST = 1e6  # maximum absolute value of initial weights

if TYPE_CHECKING:
    from kesler.trees.tree import Tree

    Groups = Mapping[Any, Iterable[Hashable]] | Callable[[Any], Iterable[Hashable]] | Tree

__all__ = [
    "Grouped",
    "Ordered",
    "Part",
    "PerClass",
    "Shared",
    "resolve_hypotheses",
]


@dataclass(frozen=True)
class PerClass:
    r"""One hypothesis for each class: the multi-vector construction.

    .. math:: h(x, r) = \langle w^r, \phi(x, r) \rangle, \quad \phi(x, r) = x \text{ unless given}

    Parameters
    ----------
    feature_map : FeatureMap, SubExperts or None, default None
        The features of x for each class; None stands for x itself.

    Notes
    -----
    n_features weights per class.

    References
    ----------
    Duda and Hart (1973); Fink et al. (2006), Section 2.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.hypotheses import PerClass
    >>> OnlineClassifier(hypotheses=[PerClass()]).hypotheses
    [PerClass(feature_map=None)]
    """

    begins_at: ClassVar[float] = 0.0

    feature_map: View | None = None

    def __post_init__(self) -> None:
        _require_map(self.feature_map)


@dataclass(frozen=True)
class Shared:
    r"""One hypothesis for all classes, over features that depend on the class: single-vector.

    .. math:: h(x, r) = \langle w, \phi(x, r) \rangle

    Parameters
    ----------
    feature_map : FeatureMap or SubExperts
        The features of x for each class.
    begins_at : float from -1e6 to 1e6, default 0.0
        Initial value of every weight, also for features that appear later. With a value above 0 the
        map affects predictions from the first row on, as in a naive Bayes classifier; larger values
        increase this effect. For the linear link only, and not for :class:`~kesler.LinearMax`,
        whose algorithms define the initial weights.

    Raises
    ------
    KeslerError
        If there is no map, in which case all classes would have the same score, or begins_at is out
        of range; when learning begins, if a link, a kernel or an algorithm does not allow initial
        weights.

    Notes
    -----
    n_features weights, whatever the number of classes.

    References
    ----------
    Collins (2002); Fink et al. (2006), Section 2 and Eq. 5.

    Examples
    --------
    >>> from kesler.hypotheses import Shared
    >>> from kesler.maps import Frequency
    >>> Shared(Frequency()).feature_map.common
    0.2
    """

    feature_map: View
    begins_at: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.feature_map, View):
            raise KeslerError(
                f"Shared(feature_map={self.feature_map!r}): one hypothesis for all classes needs a "
                "map of kesler.maps, or every class would have the same score"
            )
        if not (isinstance(self.begins_at, Real) and abs(float(self.begins_at)) <= MOST):
            raise KeslerError(
                f"Shared(begins_at={self.begins_at!r}): initial weights must be a number from "
                f"{-MOST:g} to {MOST:g}"
            )

    def __repr__(self) -> str:
        beginning = f", begins_at={self.begins_at!r}" if self.begins_at else ""
        return f"Shared(feature_map={self.feature_map!r}{beginning})"


@dataclass(frozen=True)
class Grouped:
    r"""One hypothesis for each set of a family of sets of classes.

    .. math:: h(x, r) = \sum_{t \,:\, r \in S^t} \langle w^t, \phi(x, r) \rangle

    Sets may overlap, and a class may be in none. If the sets are the nodes of a tree, each with the
    classes below it, this is the hierarchical classifier of Dekel, Keshet and Singer.

    Parameters
    ----------
    groups : mapping {group: labels}, callable label -> groups, or Tree
        The sets that each class belongs to. Labels need not have been seen yet, and a callable is
        called when a class appears, so that it can define new groups. Of a tree, a class belongs
        to the nodes from it to the root. Classes can join further
        groups at any time through `OnlineClassifier.join_group`.
    feature_map : FeatureMap, SubExperts or None, default None
        The features of x for each class; None stands for x itself.

    Raises
    ------
    KeslerError
        If groups is neither a mapping to collections of labels nor a callable.

    Notes
    -----
    n_features weights per group. Without a map a row costs O(nnz groups + memberships), with a map
    O(nnz memberships).

    References
    ----------
    Fink et al. (2006), Section 4, Eq. 7; Dekel, Keshet and Singer (2004).

    Examples
    --------
    >>> from kesler.hypotheses import Grouped
    >>> kinds = Grouped({"desert": ["scarab", "darkling"], "water": ["diving"]})
    >>> kinds.groups_of("scarab")
    ['desert']
    >>> path = Grouped(lambda label: [label[:end] for end in range(1, len(label) + 1)])
    >>> path.groups_of("ab")
    ['a', 'ab']
    """

    begins_at: ClassVar[float] = 0.0

    groups: Groups
    feature_map: View | None = None
    _lookup: dict[Any, list[Any]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _require_map(self.feature_map)
        lookup: dict[Any, list[Any]] = {}
        if isinstance(self.groups, Mapping):
            groups: dict[Any, list[Any]] = {}
            for group, labels in self.groups.items():
                if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
                    raise KeslerError(
                        f"group {group!r} must be a collection of labels, not {labels!r}"
                    )
                groups[group] = [class_of(label) for label in labels]
                require_hashable(groups[group], f"the labels of group {group!r}")
                for label in groups[group]:
                    lookup.setdefault(label, []).append(group)
            object.__setattr__(self, "groups", groups)
        elif not callable(self.groups) and self.tree is None:
            raise KeslerError(
                "Grouped takes a mapping {group: labels} or a function from a label to its "
                f"groups, not {type(self.groups).__name__}"
            )
        object.__setattr__(self, "_lookup", lookup)

    @property
    def tree(self) -> Tree | None:
        """The tree whose nodes are the groups, or None."""
        if isinstance(self.groups, Mapping) or callable(self.groups):
            return None
        from kesler.trees.tree import Tree

        return self.groups if isinstance(self.groups, Tree) else None

    def groups_of(self, label: Any) -> list[Hashable]:
        """Return the distinct groups of a label, from the mapping or by calling the callable."""
        if self.tree is not None:
            return self.tree.path(label)
        groups: Any = self.groups(label) if callable(self.groups) else self._lookup.get(label, ())
        if isinstance(groups, (str, bytes)) or not isinstance(groups, Iterable):
            raise KeslerError(
                f"the groups of label {label!r} must be a list of groups, not {groups!r}"
            )
        groups = list(groups)
        require_hashable(groups, f"the groups of label {label!r}")
        return list(dict.fromkeys(groups))


@dataclass(frozen=True)
class Ordered:
    r"""One hypothesis for all ranks and a threshold between neighbouring ranks: ordinal.

    .. math:: h(x, r) = \sum_{i < r} (\langle w, x \rangle - b_i), \quad
        \arg\max_r h(x, r) = \min \{r : \langle w, x \rangle < b_r\}
        \text{ if } b_0 \le b_1 \le \dots

    This equals one shared hypothesis over a map whose features are r times x and -1 for each of the
    first r thresholds, with ranks numbered from 0.

    Notes
    -----
    For :class:`~kesler.OnlineOrdinalClassifier`, whose classes have an order. The thresholds are
    weights of the constant feature, so that `intercept` must not be 0; a larger intercept makes
    them learn faster. There are n_features weights and one for each rank, but the allocated memory
    is that of one hypothesis per rank. A row costs O(nnz + k) for k ranks.

    References
    ----------
    Amit, Shalev-Shwartz and Singer (2006), Section 3; Crammer and Singer (2001), "Pranking with
    ranking"; McCullagh (1980), regression models for ordinal data.

    Examples
    --------
    >>> from kesler import OnlineOrdinalClassifier
    >>> from kesler.hypotheses import Ordered
    >>> grades = OnlineOrdinalClassifier(Ordered()).fit([[0], [1], [2]] * 50, [0, 1, 2] * 50)
    >>> grades.thresholds_.shape
    (2,)
    """

    feature_map: ClassVar[None] = None
    begins_at: ClassVar[float] = 0.0


Part = PerClass | Shared | Grouped | Ordered
VIEWS = (*MAPS.values(), SubExperts)


def _require_map(feature_map: Any) -> None:
    if feature_map is not None and not isinstance(feature_map, View):
        raise KeslerError(
            f"feature_map={feature_map!r}: give a map of kesler.maps, such as Frequency(), or None"
        )


def require_hashable(values: list[Any], what: str) -> None:
    """Raise an error that names `what` if a value is not hashable."""
    for value in values:
        try:
            hash(value)
        except TypeError:
            raise KeslerError(
                f"{what} hold {value!r}, which is not hashable: use numbers, text or tuples"
            ) from None


NAMED: dict[str, Callable[[Callable[[], Part]], list[Part]]] = {
    "multi": lambda shared: [PerClass()],
    "single": lambda shared: [shared()],
    "hybrid": lambda shared: [PerClass(), shared()],
    "sub-experts": lambda shared: [Shared(SubExperts())],
}
"""Functions that return the parts for a name of estimators and the command line, given a function
that makes the shared part."""


def resolve_hypotheses(hypotheses: Any, shared: Callable[[], Part]) -> list[Part]:
    """Return the parts for a name, or the parts themselves.

    Parameters
    ----------
    hypotheses : "multi", "single", "hybrid", "sub-experts", some of them joined by "+", a part or a
        non-empty list of parts.
    shared : function that returns the part shared by all classes; called only if it is used.

    Raises
    ------
    KeslerError
        If `hypotheses` is none of these.

    Examples
    --------
    >>> from kesler.maps import Product
    >>> resolve_hypotheses("hybrid", lambda: Shared(Product()))
    [PerClass(feature_map=None), Shared(feature_map=Product())]
    >>> resolve_hypotheses("multi+sub-experts", lambda: Shared(Product()))
    [PerClass(feature_map=None), Shared(feature_map=SubExperts())]
    """
    if isinstance(hypotheses, str) and set(hypotheses.split("+")) <= set(NAMED):
        return [part for name in hypotheses.split("+") for part in NAMED[name](shared)]
    parts = [hypotheses] if isinstance(hypotheses, Part) else hypotheses
    if isinstance(parts, (list, tuple)) and parts and all(isinstance(p, Part) for p in parts):
        return list(parts)
    raise KeslerError(
        f"hypotheses={hypotheses!r} is not known: choose multi, single, hybrid or sub-experts, "
        "join several of them by '+', or give a list of PerClass, Shared, Grouped and, for ranks, "
        "Ordered parts"
    )


def over_tree(parts: Iterable[Part], tree: Tree) -> list[Part]:
    """Return parts in which one vector for each node of a tree replaces those of the classes.

    Raises
    ------
    KeslerError
        If no part has one vector for each class, over the features of x.

    Examples
    --------
    >>> from kesler.trees import Tree
    >>> over_tree([PerClass()], Tree("."))[0].groups_of("rec.autos")
    ['rec.autos', 'rec', '']
    """
    given = list(parts)
    if PerClass() not in given:
        raise KeslerError(
            "tree= gives each node a vector in place of those of the classes, but the hypotheses "
            'have none: choose hypotheses="multi" or "hybrid"'
        )
    return [Grouped(tree) if part == PerClass() else part for part in given]


def tree_of(parts: Iterable[Part]) -> Tree | None:
    """Return the tree whose nodes have hypotheses, None if there is none."""
    trees = (part.tree for part in parts if isinstance(part, Grouped))
    return next((tree for tree in trees if tree is not None), None)


def takes_ratings(parts: Iterable[Part]) -> bool:
    """Return whether one of the parts uses ratings by sub-experts."""
    return any(isinstance(part.feature_map, SubExperts) for part in parts)

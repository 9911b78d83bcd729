"""Hypotheses with fixed feature maps, as batch solvers use them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.batch.design import Design, Diagonal, Floats
from kesler.data.labels import Label
from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.hypotheses import Grouped, Ordered, Part, PerClass, Shared
from kesler.learner.binding import map_parameters
from kesler.learner.classes import ClassTable
from kesler.learner.learner import Learner
from kesler.learner.requirements import layers_of
from kesler.maps.feature_map import FeatureMap
from kesler.maps.view import SubExperts
from kesler.parts.user_part import FaultWords, UserPart, fault_words, require_no_faults
from kesler.state.capacity import whole_lines
from kesler.state.fields import bind, converted
from kesler.updates.perceptron import Perceptron

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Statistics:
    """The class statistics that maps use, as an online learner has them after its last row.

    Parameters
    ----------
    names : tuple of str
        The names of the layers.
    layers : float32 array of shape (n_layers, n_features, n_classes)
    totals : float32 array of shape (n_layers, n_classes)
        The divisors of the layers.
    divisors : float32 array of shape (4, n_classes) or (0, 0)
    pooled : float64 array of shape (n_features, 6), (n_features, 1) or (0, 0)
        Statistics of all rows.
    """

    names: tuple[str, ...]
    layers: npt.NDArray[np.float32]
    totals: npt.NDArray[np.float32]
    divisors: npt.NDArray[np.float32]
    pooled: Array

    @classmethod
    def of_rows(
        cls,
        maps: Sequence[FeatureMap],
        rows: Rows,
        codes: Codes,
        weights: Array | None,
        constant: float,
    ) -> Statistics:
        """Compute the statistics by one online pass; classes are in the order of their codes."""
        if not maps:
            none = np.empty((0, 0), dtype=np.float32)
            return cls((), np.empty((0, 0, 0), dtype=np.float32), none, none, np.empty((0, 0)))
        learner = Learner([Shared(m) for m in maps], Perceptron(), ClassTable(), constant)
        learner.learn(rows, codes.tolist(), weights)
        stored, order = learner.arrays(), learner.classes.order
        divisors = stored.get("statistics.divisors", np.empty((0, 0), dtype=np.float32))
        return cls(
            tuple(learner.statistics),
            np.ascontiguousarray(stored["statistics.sums"][:, :, order]),
            np.ascontiguousarray(stored["statistics.totals"][:, order]),
            np.ascontiguousarray(divisors[:, order] if divisors.size else divisors),
            stored.get("statistics.pooled", np.empty((0, 0))),
        )


class FrozenHypotheses:
    r"""Hypotheses of fixed classes with fixed maps, whose scores are linear in the weights.

    .. math:: h(x, r) = \langle W, \Phi(x, r) \rangle
        = \sum_{t \ni r} \langle w^t, \phi^t(x, r) \rangle

    The maps use the class statistics of an online learner after one pass over the rows: the view of
    every row depends on all rows, including itself.

    Parameters
    ----------
    parts : list of PerClass, Shared and Grouped
        The weights that classes share, and their feature maps.
    labels : sequence of labels
        The labels of the classes, by code.
    rows : Rows
        Training rows.
    codes : int64 array of shape (n_rows,)
        The classes of the rows; each class has a row.
    row_weights : array of shape (n_rows,) or None, default None
        The weights of rows in the statistics, above 0.
    constant : float, default 0.0
        The value of a constant first feature added to every row, 0 for none.

    Raises
    ------
    KeslerError
        If a part is ordered, uses sub-experts or begins at weights other than 0, or if a map that
        is not zero at zero is used with sparse rows.

    Notes
    -----
    Weights have the shape (n_features, n_hypotheses), with the columns of the parts side by side.
    Views of rows are recomputed whenever they are needed: memory is 4 bytes for each feature, class
    and statistic that a map uses, and for each entry of one row, class and part. Scores cost
    O(nnz n_hypotheses) without maps, and O(nnz n_classes) evaluations of the map with one.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Eq. 7; Tsochantaridis, Joachims, Hofmann and
    Altun (2005), Section 2, joint feature maps.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        labels: Sequence[Label],
        rows: Rows,
        codes: Codes,
        row_weights: Array | None = None,
        constant: float = 0.0,
    ) -> None:
        _require_linear(parts)
        self.parts = list(parts)
        self.constant = constant
        self.n_classes = len(labels)
        self.members = [members_of(part, labels) for part in self.parts]
        self.widths = [_n_hypotheses(members) for members in self.members]
        maps = [p.feature_map for p in self.parts if isinstance(p.feature_map, FeatureMap)]
        self._looks_at_zeros = next((m for m in maps if not m.zero_at_zero), None)
        seen = self.as_seen(rows)
        self.n_features = seen.n_features
        self.statistics = Statistics.of_rows(maps, rows, codes, row_weights, constant)

    # ---- weights ----------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the weights."""
        return self.n_features, sum(self.widths)

    def weights_of_parts(self, weights: Array) -> list[Array]:
        """Return the weights of each part, (n_features, n_hypotheses), as views."""
        return np.split(weights, np.cumsum(self.widths)[:-1], axis=1)

    # ---- rows -------------------------------------------------------------------------------

    def as_seen(self, rows: Rows) -> Rows:
        """Return rows with the constant feature, and without zeros unless a map needs them.

        Raises
        ------
        KeslerError
            If a map needs zeros and the rows are sparse.
        """
        rows = rows.with_constant(self.constant) if self.constant else rows
        if self._looks_at_zeros is None:
            return rows.without_zeros()
        if not rows.dense:
            raise KeslerError(
                f"the feature map {self._looks_at_zeros!r} is not zero at zero, so it cannot be "
                "used with sparse rows, whose zeros are not stored: give dense rows, or choose "
                "another map such as 'frequency'"
            )
        return rows

    def scores(self, rows: Rows, weights: Array) -> Array:
        """Return the score of each class for each row, shape (n_rows, n_classes).

        Parameters
        ----------
        rows : as `as_seen` returns them.
        weights : of `shape`.
        """
        scores = np.empty((len(rows), self.n_classes))
        table = _own(weights)
        self._kernels.score_rows(self.joint, self.listed(rows), table, scores)
        self.require_no_faults()
        return scores

    def adjoint(self, rows: Rows, coefficients: Array, power: int = 1) -> Array:
        """Return sum over i and r of c[i, r] Phi(x_i, r)^power, of `shape`.

        Parameters
        ----------
        rows : as `as_seen` returns them.
        coefficients : of shape (n_rows, n_classes).
        power : 1, or 2 for the squares of features.
        """
        weights = np.zeros(self.shape)
        given = _own(coefficients)
        self._kernels.add_rows(self.joint, self.listed(rows), given, power, weights)
        self.require_no_faults()
        return weights

    def gram(self, rows: Rows) -> Array:
        """Return <Phi(x, r), Phi(x, s)> of each row, shape (n_rows, n_classes, n_classes)."""
        grams = np.empty((len(rows), self.n_classes, self.n_classes))
        self._kernels.gram_rows(self.joint, self.listed(rows), grams)
        self.require_no_faults()
        return grams

    def listed(self, rows: Rows) -> Any:
        """Return rows in the form that the kernels accept."""
        return self._kernels.Listed(rows.indptr, rows.indices, rows.values)

    # ---- binding to the kernels -------------------------------------------------------------

    @cached_property
    def _kernels(self) -> ModuleType:
        from kesler.compiled.batch import joint

        return joint

    @cached_property
    def joint(self) -> Any:
        """The record from which the kernels compute joint features."""
        starts, members = _as_lists(self.members)
        stored = self.statistics
        described = zip(*map(self._describe_part, range(len(self.parts))), strict=True)
        names = ("kind", "map", "statistic", "offset", "width")
        values = {
            **{f"parts.{name}": column for name, column in zip(names, described, strict=True)},
            "parts.map_parameters": self._map_parameters,
            "parts.member_starts": starts,
            "parts.members": members,
            "statistics.sums": _by_lines(stored.layers),
            "statistics.totals": _own(stored.totals, np.float32),
            "statistics.divisors": _by_lines(stored.divisors),
            "statistics.pooled": _own(stored.pooled),
            "common": [coupling_of([classes]) for classes in self.members],
        }
        return bind(self._kernels.Joint, converted(self._kernels.Joint, values))

    def _describe_part(self, i: int) -> list[int]:
        """Return a part's kind, map (its address or ITSELF), statistic, first column and width."""
        from kesler.compiled.trial.records import ITSELF
        from kesler.compiled.views.maps import map_address
        from kesler.parts.trial_calls import try_out

        part, view = self.parts[i], self.parts[i].feature_map
        kind, columns = [PerClass, Shared, Grouped].index(type(part)), self.widths[i]
        address, layer = ITSELF, 0
        if isinstance(view, FeatureMap):
            try_out(view)
            address = map_address(view.g, view.looks_at, custom=isinstance(view, UserPart))
            layer = self.statistics.names.index(layers_of(view.statistic)[0])
        return [kind, address, layer, sum(self.widths[:i]), columns]

    @cached_property
    def _map_parameters(self) -> npt.NDArray[np.float32]:
        return np.array([map_parameters(part) for part in self.parts], dtype=np.float32)

    @cached_property
    def _faults(self) -> FaultWords:
        maps = (part.feature_map for part in self.parts)
        return fault_words(zip(maps, self._map_parameters, strict=True))

    def require_no_faults(self) -> None:
        """Raise an error if a user-defined map has failed on a row."""
        require_no_faults(self._faults)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out modules, addresses and fault words, which are valid in this process only."""
        bound = ("_kernels", "joint", "_map_parameters", "_faults")
        return {name: v for name, v in vars(self).items() if name not in bound}


# ---- memberships --------------------------------------------------------------------------------


def members_of(part: Part, labels: Sequence[Label]) -> list[list[int]]:
    """Return the hypotheses of each class by number; groups are numbered as they first occur.

    Examples
    --------
    >>> members_of(Grouped({"vowels": ["a"], "all": ["a", "b"]}), ["a", "b", "c"])
    [[0, 1], [1], []]
    """
    if isinstance(part, PerClass):
        return [[code] for code in range(len(labels))]
    if isinstance(part, Shared):
        return [[0] for _ in labels]
    assert isinstance(part, Grouped)
    columns: dict[Any, int] = {}
    groups = [part.groups_of(label) for label in labels]
    return [sorted(columns.setdefault(g, len(columns)) for g in each) for each in groups]


def coupling_of(members: Sequence[list[list[int]]]) -> Array:
    """Return the number of hypotheses that two classes share, over all parts: M = B B^T.

    Without maps, <Phi(x, r), Phi(z, s)> = M[r, s] <x, z>.

    Examples
    --------
    >>> coupling_of([[[0, 1], [1], []]]).tolist()
    [[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    n_classes = len(members[0])
    total = np.zeros((n_classes, n_classes))
    for classes in members:
        belongs = np.zeros((n_classes, _n_hypotheses(classes)))
        for code, columns in enumerate(classes):
            belongs[code, columns] = 1.0
        total += belongs @ belongs.T
    return total


def _own(array: npt.NDArray[Any], dtype: Any = np.float64) -> npt.NDArray[Any]:
    """Return a contiguous, writable array for kernels; a read-only one (memory map) is copied."""
    return np.require(array, dtype, ["C", "W"])


def _by_lines(array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return a table whose classes are zero-padded to whole cache lines, as kernels read it."""
    n = array.shape[-1]
    capacity = [(0, 0)] * (array.ndim - 1) + [(0, whole_lines(n) - n)]
    return np.pad(array.astype(np.float32, copy=False), capacity)


def _n_hypotheses(members: list[list[int]]) -> int:
    return max((1 + column for columns in members for column in columns), default=0)


def _as_lists(
    members: Sequence[list[list[int]]],
) -> tuple[Codes, Codes]:
    """Return the hypotheses of all parts and classes in one list, and where each class begins."""
    lengths = np.array([[len(columns) for columns in classes] for classes in members])
    ends = np.cumsum(lengths).reshape(lengths.shape)
    starts = np.column_stack([ends[:, 0] - lengths[:, 0], ends])
    flat = [column for classes in members for columns in classes for column in columns]
    return starts, np.array(flat, dtype=np.int64)


def _require_linear(parts: Sequence[Part]) -> None:
    """Raise unless scores are linear in weights that can be regularised towards 0."""
    for part in parts:
        if isinstance(part, Ordered):
            raise KeslerError(
                "Ordered hypotheses can be learned online only, by OnlineOrdinalClassifier: give "
                "PerClass, Shared and Grouped parts"
            )
        if isinstance(part.feature_map, SubExperts):
            raise KeslerError(
                f"{part!r} uses the scores of sub-experts, which batch learners do not support: "
                "give parts over rows, or use an online learner"
            )
        if isinstance(part, Shared) and part.begins_at:
            raise KeslerError(
                f"{part!r}: the optimum does not depend on the initial weights: leave begins_at out"
            )


@dataclass(frozen=True, eq=False)
class JointDesign(Design):
    """The joint features of training rows, recomputed for each product.

    Parameters
    ----------
    hypotheses : FrozenHypotheses
    rows : Rows
        As `FrozenHypotheses.as_seen` returns them.

    Notes
    -----
    Nothing is copied: memory is that of the rows and of the frozen hypotheses. All products are
    computed in float64, whatever the dtype of the weights.
    """

    hypotheses: FrozenHypotheses
    rows: Rows

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return len(self.rows)

    def weights_shape(self, n_classes: int) -> tuple[int, int]:
        """Return (n_features, n_hypotheses)."""
        return self.hypotheses.shape

    def forward(self, weights: Floats) -> Floats:
        """Return the score of each class for each row, shape (n_rows, n_classes)."""
        return self.hypotheses.scores(self.rows, weights).astype(weights.dtype, copy=False)

    def adjoint(self, coefficients: Floats) -> Floats:
        """Return sum over i and r of c[i, r] Phi(x_i, r), of the weights' shape."""
        weights = self.hypotheses.adjoint(self.rows, coefficients)
        return weights.astype(coefficients.dtype, copy=False)

    def blocks(self) -> Iterator[tuple[slice, Design]]:
        """Yield all rows at once, since it is the weights that do not fit into the cache."""
        yield slice(0, self.n_rows), self

    def preconditioner(self, curvatures: Floats, ridge: Floats) -> Diagonal:
        """Return the inverse of a diagonal: the Hessian's if no two classes share weights."""
        squares = self.hypotheses.adjoint(self.rows, curvatures, power=2)
        return Diagonal(squares + ridge)

    @property
    def single(self) -> JointDesign:
        """The same design, which also accepts float32 directions."""
        return self

"""The state of a learner: its arrays, their capacity, and their form in a model file."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import KW_ONLY, dataclass
from operator import le
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from kesler.costs import Costs, fill_rank
from kesler.hypotheses import (
    Ordered,
    Part,
    PerClass,
    Shared,
    takes_ratings,
)
from kesler.interrupts import Postponed
from kesler.learner import replaying
from kesler.learner.classes import ClassTable, OnNewClass
from kesler.learner.expanding import OF_RELEVANCE, PREFIX, ExpandingRows
from kesler.learner.known_classes import KnownClasses
from kesler.learner.locks import learner_lock
from kesler.learner.replaying import KeptLists, ReplayingRows
from kesler.learner.requirements import STATISTICS, Requirements, layers_of, smoothing_of
from kesler.learner.targets import Decision, Kind
from kesler.learner.weights import (
    BYTES_OF_FEATURE,
    SparseWeights,
    columns_of,
    is_sparse,
    n_beside,
    n_columns,
)
from kesler.links.link import SCALE, WEIGHT, CustomLink, Linear, Link
from kesler.maps.feature_map import FeatureMap
from kesler.maps.view import SubExperts
from kesler.preconditioners import EUCLIDEAN, Preconditioner
from kesler.preprocessing import Preprocessing
from kesler.preprocessing.replay import Replay
from kesler.state.capacity import enlarged, keep_along, require_memory, return_memory, whole_lines
from kesler.state.fields import (
    Arrays,
    Field,
    allocated,
    array_of,
    damaged,
    fields_of,
    put,
    size_of,
    valid_array,
)
from kesler.state.records import LearnerRecord
from kesler.updates.rule import UpdateRule

LINEAR = Linear()
STARTS_OF_ENTRIES = "entries.starts"  # in the files of learners whose rows have candidates
# A dense table of weights may have this many bytes, or more if this share of it is not 0.
LARGEST_TABLE = 1 << 29
FULL_TABLE = 1 / 8
# The constraints of two classes that rules may ask for if weights are in sparse rows.
TWO_CLASSES = ("predicted", "worst", "rival")
# The axes whose lengths are numbers of features.
OF_FEATURES = ("feature", "row")
LEAST_RETURNED = 0.9  # of the capacity: with more, the rest is kept for later features
LEAST_FREED = 1 << 23  # bytes, of which the memory is returned when arrays have moved
# The fields whose arrays depend on the number of inputs.
OF_INPUTS = (PREFIX, OF_RELEVANCE, replaying.PREFIX)
# Attributes that hold modules, addresses, records for compiled code, or the lock.
_OF_THIS_PROCESS = (
    *("_kernels", "_trials", "_record", "_kernel_arguments", "_predictor", "_row_buffer"),
    *("event", "lock", "_not_finite", "trials_run", "_settings", "_faults"),
    "_kernel_parameters",
)


@dataclass(eq=False, repr=False)
class LearnerState(Requirements, ExpandingRows, ReplayingRows, KnownClasses):
    """The arrays of one learner, by the names of :mod:`kesler.state.records`.

    Parameters
    ----------
    parts : the parts of the hypotheses, whose scores are added.
    rule : the update rule.
    classes : the classes known from the start.
    constant : the value of a constant feature that precedes the features of every row, 0 for none;
        its weights are the intercepts.
    answer : the kind of target.
    link : how weights follow from the accumulated updates.
    averaged : whether predictions use the mean of the weights after each trial.
    costs : the cost of each confusion, None for 1.
    preconditioner : the step size of each weight.
    on_new_class : what happens at the first instance of a class; see
        :data:`kesler.learner.classes.OnNewClass`.
    preprocessing : the preprocessing of rows, None for none.
    half_life : the number of rows after which a row has half of its weight, None for no decay.
    replay : how earlier rows are learnt again, None for not at all.
    decision : how a prediction follows from the scores; see
        :data:`kesler.learner.targets.Decision`.

    Attributes
    ----------
    candidates : how rows are compared with a part of the classes, None for all classes; only where
        `may_compare`.

    Notes
    -----
    Memory: 4 bytes for each feature and hypothesis, or about 12 for each weight that is not 0 where
    that is much less (:mod:`kesler.learner.weights`); 8 more with a link or an average, 24 with
    both; 4 more with a preconditioner other than the Euclidean; 4 for each feature, class and
    statistic that a map requires (28 for moments); up to 16 for each feature with preprocessing.
    The capacity for classes and features doubles when it is exhausted, so that growth costs O(1)
    amortised.
    """

    has_weights: ClassVar[bool] = True
    grows_trees: ClassVar[bool] = False

    parts: list[Part]
    rule: UpdateRule
    classes: ClassTable
    constant: float = 0.0
    _: KW_ONLY
    answer: Kind = "class"
    link: Link = LINEAR
    averaged: bool = False
    costs: Costs | None = None
    preconditioner: Preconditioner = EUCLIDEAN
    on_new_class: OnNewClass = "register"
    preprocessing: Preprocessing | None = None
    half_life: float | None = None
    replay: Replay | None = None
    decision: Decision = "score"

    def __post_init__(self) -> None:
        self.parts = list(self.parts)
        self._n_beside = n_beside(self.parts)
        self.takes_ratings = takes_ratings(self.parts)
        self.n_features = 0
        self.n_sub_experts = 0
        asked: set[str] = {m.statistic for m in self._maps}
        if self.preprocessing is not None:
            asked |= self.preprocessing.statistics_of_classes
        stored = {layer for statistic in asked for layer in layers_of(statistic)}
        self.statistics = [name for name in STATISTICS if name in stored]
        self.groups: list[dict[Hashable, int]] = [{} for _ in self.parts]
        self.memberships: list[list[list[int]]] = [
            [[] for _ in range(self.classes.n_virtual)] for _ in self.parts
        ]
        self._smoothing = smoothing_of(self._maps)
        self._require_linear_beginning()
        if self.replay is not None:
            self.keeps_table = self.expansion is not None
            self.kept_lists = None if self.keeps_table else KeptLists()
        # Whether the margins of a row follow from its target.
        self.prices_targets = self.answer == "rank" and self.costs is not None
        self._costs_of_ranks = np.zeros((0, 0))  # of these, by the numbers of right and wrong
        self.lock = learner_lock(self)
        self.stays_dense = False  # whether weights are never stored in sparse rows
        self.sparse: SparseWeights | None = None
        self.stored: Arrays = {}
        self._allocate(whole_lines(1 + self._n_beside), 0, [0] * len(self.parts))
        self._begin()

    def _begin(self) -> None:
        """Write the initial values that follow from the link and from shared hypotheses."""
        if self._scale_code:
            self._scale_number[:] = self._ask_link(SCALE)
        self.stored["link.n_hypotheses"][:] = [
            isinstance(part, (Shared, Ordered))
            for part in self.parts[: len(self.stored["link.n_hypotheses"])]
        ]

    # ---- properties -------------------------------------------------------------------------

    @property
    def counts(self) -> npt.NDArray[Any]:
        """The counts, an array of one record; see :data:`kesler.state.records.COUNTS`."""
        return self.stored["counts"]

    @property
    def weights(self) -> npt.NDArray[np.float32]:
        """The table of weights, of the length of its capacity."""
        return self.stored["weights.values"]

    @property
    def n_named_features(self) -> int:
        """Number of features of the rows as they are given, without the constant one."""
        if self.expansion is not None:
            return self.n_inputs
        return max(0, self.n_features - bool(self.constant))

    @property
    def _maps(self) -> list[FeatureMap]:
        return [p.feature_map for p in self.parts if isinstance(p.feature_map, FeatureMap)]

    @property
    def scale(self) -> float:
        """The factor of all weights: 1 without decay, a scaled link or a scaled algorithm."""
        if self._scale_code:
            return float(self._scale_number[0])
        if self.preconditioner.is_full:
            return 1.0
        return 1.0 / float(self.stored["decay.row"]["weight"][0])

    @property
    def _scale_number(self) -> npt.NDArray[np.float64]:
        """The scale that the link or the algorithm stores, an array of one number."""
        if self.rule.update is not None:
            return self.stored["algorithm.numbers"][:1]
        return self.stored["link.scale"]["value"]

    @property
    def n_weights(self) -> int:
        """Number of weights of the features, sub-experts and classes seen so far."""
        n_others = sum(self._height(i) * self._width(i) for i in range(len(self.parts)))
        return n_others + (0 if self.comparing is None else self.comparing.entries.n_entries)

    def hypothesis_weights(self) -> list[Any]:
        """Return the weights of each part, of shape (n_features, n_hypotheses).

        They are views, or a sparse matrix if the weights are in sparse rows.
        """
        if self.sparse is not None:
            return [self.sparse.matrix(self.n_features, self._width(0))]
        found: list[Any] = [self.weights[: self._height(i), c] for i, c in enumerate(self._columns)]
        if self.comparing is not None:
            found[self._of_classes] = self.comparing.entries.matrix(
                self.n_features, len(self.classes)
            )
        return found

    @property
    def _of_classes(self) -> int:
        """The part with a hypothesis for each class."""
        return next(i for i, part in enumerate(self.parts) if isinstance(part, PerClass))

    @property
    def _scale_code(self) -> int:
        """Which part scales the weights: 0 for none, 1 for the link, 2 for the algorithm."""
        return 2 if self.rule.update is not None else int(self.link.normalised)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without those that are valid in this process only."""
        return {k: v for k, v in vars(self).items() if k not in _OF_THIS_PROCESS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copy the arrays, which may be a read-only memory map."""
        vars(self).update(state, lock=learner_lock(self))
        self.stored = {name: array.copy() for name, array in self.stored.items()}
        if self.sparse is not None:
            self.sparse.own()

    # ---- capacity ---------------------------------------------------------------------------

    def reserve(
        self, n_classes: int, n_features: int, n_sub_experts: int = 0, *, ahead: bool = False
    ) -> None:
        """Provide capacity for classes, features and sub-experts, and for the present groups.

        If `ahead`, the features and sub-experts are not counted as seen. An interrupt waits until
        all arrays have been moved.

        Features and sub-experts are rows of one table, since each part has its own columns. One row
        of either kind is never used: it represents all that have not been seen, with the initial
        weights (Mesterharm 2001, Section 6.1).
        """
        if ahead and self.comparing is None and self.candidates is not None:
            most = self.classes.n_virtual + self.candidates.beyond
            n_classes = min(n_classes, most)  # more will not be in the table
        n_places = n_classes + self.n_virtual + self._n_beside
        n_rows = max(n_features + 1, n_sub_experts + self.takes_ratings)
        if (
            n_places <= self._class_capacity
            and n_rows <= self._feature_capacity
            and all(map(le, map(len, self.groups), self._group_capacity))
        ):
            if not ahead:
                self._count(n_features, n_sub_experts)
            return
        times = 2.0 if self.sparse is None else 1.25  # dense rows take most of the memory
        class_capacity = enlarged(self._class_capacity, n_places, times)
        feature_capacity = enlarged(self._feature_capacity, n_rows)
        if self.memory is not None and feature_capacity > self._feature_capacity:
            feature_capacity = self.memory.capacity(self, feature_capacity, n_rows)
        group_capacity = [
            enlarged(capacity, len(groups))
            for capacity, groups in zip(self._group_capacity, self.groups, strict=True)
        ]
        turns = self._turns_sparse(feature_capacity, class_capacity)
        sparse = turns or self.sparse is not None
        self._require_memory(class_capacity, feature_capacity, group_capacity, sparse=sparse)
        with Postponed():
            if turns:
                table = self.weights[:, : self._width(0)]
                self._keep_sparsely(table, feature_capacity, class_capacity)
            before = self._views(whole=True)
            self._allocate(class_capacity, feature_capacity, group_capacity)
            if not ahead:
                self._count(n_features, n_sub_experts)
            self._put(before)
            self._bind()
        n_freed = sum(array.nbytes for array in before.values())
        del before
        if n_freed >= LEAST_FREED:
            return_memory()

    def keep_features(self, kept: npt.NDArray[np.int64]) -> None:
        """Keep only these features, in ascending order, numbered from 0; others become unseen."""
        n_before, self.n_features = self.n_features, len(kept)
        for name, field in self._fields.items():
            for axis, what in enumerate(field.axes):
                if what in OF_FEATURES and self.stored[name].shape[axis]:
                    free = keep_along(self.stored[name], axis, kept, n_before)
                    if field.fill:
                        getattr(self, field.fill)(free)
        if self.comparing is not None:
            self.comparing.entries.keep(kept, n_before)
        self._list_features()
        self._bind()
        self._return_rows()

    def _return_rows(self) -> None:
        """Return the memory of rows of features that the limit has no use for."""
        assert self.memory is not None
        capacity = self.memory.capacity(self, self._feature_capacity, self.n_features + 1)
        if capacity > LEAST_RETURNED * self._feature_capacity:
            return
        before, n = self._views(whole=True), self.n_features
        for name, array in before.items():
            axes = self._field_of(name).axes
            before[name] = array[tuple(slice(n if a in OF_FEATURES else None) for a in axes)]
        self._allocate(self._class_capacity, capacity, self._group_capacity)
        self._put(before)
        self._bind()

    def _provide_inputs(self, n_inputs: int) -> None:
        """Provide what is stored of the features of rows before their expansion."""
        if n_inputs == self.n_inputs:
            return
        if self.n_inputs:
            self._require_inputs(n_inputs)
        self.n_inputs = n_inputs
        lengths = self._lengths(self._class_capacity, self._feature_capacity, 0)
        fields = {n: f for n, f in self._fields.items() if n.startswith(OF_INPUTS) and f.axes}
        require_memory(size_of(fields, self, lengths), f"the state of {n_inputs:,} features")
        self.stored |= allocated(fields, self, lengths)
        self._fill(fields)
        self._bind()

    def _has_capacity(self, n_classes: int, n_features: int) -> bool:
        """Return whether the capacity suffices, also for one feature that has not been seen."""
        n_places = n_classes + self.n_virtual + self._n_beside
        return n_places <= self._class_capacity and n_features < self._feature_capacity

    def count(self, n_named_features: int, n_sub_experts: int = 0) -> None:
        """Count at least so many named features, which rows may have had without listing them."""
        self.reserve(0, n_named_features + bool(self.constant), n_sub_experts)

    def uncount(self, n_named_features: int) -> None:
        """Count no more named features than these: a row with others was read, but not learnt."""
        self.n_features = min(self.n_features, n_named_features + bool(self.constant))

    def _count(self, n_features: int, n_sub_experts: int) -> None:
        if n_features > self.n_features:
            self.n_features = n_features
        if n_sub_experts > self.n_sub_experts:
            self.n_sub_experts = n_sub_experts

    def _allocate(
        self, class_capacity: int, feature_capacity: int, group_capacity: list[int]
    ) -> None:
        """Allocate new arrays, all or none; zeros take no memory before they are written."""
        offsets, width = self._table_columns(class_capacity, group_capacity)
        lengths = self._lengths(class_capacity, feature_capacity, width)
        fields = {n: f for n, f in self._fields.items() if f.axes or n not in self.stored}
        arrays = allocated(fields, self, lengths)
        self._allocate_others(class_capacity, feature_capacity)
        self._class_capacity, self._feature_capacity, self._group_capacity = (
            class_capacity,
            feature_capacity,
            group_capacity,
        )
        self._offsets = offsets
        self.stored |= arrays
        self._fill(fields)
        self._bind()

    def _fill(self, fields: Mapping[str, Field]) -> None:
        """Write the initial values of new arrays that are not zeros."""
        for name, field in fields.items():
            if field.fill:
                getattr(self, field.fill)(self.stored[name])

    def _allocate_others(self, class_capacity: int, feature_capacity: int) -> None:
        """Provide capacity for hypotheses that are not in the table of weights."""
        if self.sparse is not None:
            self.sparse.reserve(feature_capacity, class_capacity)
        if self.comparing is not None:
            self.comparing.reserve(feature_capacity, class_capacity)

    def _table_columns(
        self, class_capacity: int, group_capacity: list[int]
    ) -> tuple[list[int], int]:
        """Return the first column of each part in the table of weights, and its width."""
        if self.comparing is not None:  # the classes have entries, and the virtual one a column
            return columns_of(self.parts, self.n_virtual + self._n_beside, group_capacity)
        offsets, width = columns_of(self.parts, class_capacity, group_capacity)
        return offsets, whole_lines(width)

    def _require_memory(
        self, class_capacity: int, feature_capacity: int, group_capacity: list[int], *, sparse: bool
    ) -> None:
        """Raise if the arrays of this capacity are larger than the memory of the machine."""
        width = self._table_columns(class_capacity, group_capacity)[1]
        lengths = self._lengths(class_capacity, feature_capacity, width)
        fields = fields_with(weights=self.has_weights and not sparse)
        n_bytes = size_of(fields, self, lengths) + sparse * BYTES_OF_FEATURE * feature_capacity
        what = f"the state of {feature_capacity:,} features"
        if not self.preconditioner.is_full:
            require_memory(n_bytes, what)
            return
        instead = 'name an update rule that has none, such as "pa1", give fewer features'
        require_memory(n_bytes, f"{what}, which has numbers of all pairs of them,", instead)

    @property
    def _fields(self) -> dict[str, Field]:
        """The stored fields by name; without weights if these are not in a table."""
        return fields_with(weights=self.has_table)

    @property
    def has_table(self) -> bool:
        """Whether weights are in a dense table."""
        return self.has_weights and self.sparse is None

    def _lengths(self, n_classes: int, n_features: int, width: int) -> dict[str, int]:
        """Return the length of each axis for this many classes, features and columns."""
        n_given = self.n_inputs if self.keeps_table else n_features
        return {
            **{"class": n_classes, "feature": n_features, "row": n_features, "hypothesis": width},
            "better": n_classes if self.margin_costs else 1,
            "worse": n_classes if self.margin_costs or self.has_costs else 1,
            "state": self.n_states,
            "own number": self.rule.n_numbers,
            "statistic": len(self.statistics) if self.comparing is None else 0,
            "pooled": self.n_pooled,
            "part": len(self.parts),
            "number": self.preprocessing.n_statistics if self.preprocessing else 0,
            "slot": self.replay.size if self.replay and n_given else 0,
            **self._expansion_lengths(n_features),
        }

    @property
    def _in_use(self) -> dict[str, int]:
        """The part of each axis that is in use."""
        width = self.weights.shape[1] if self.has_table else 0
        lengths = self._lengths(self.n_known, self.n_features, width)
        return {**lengths, "row": self._n_used, "slot": self._n_kept}

    def _views(self, *, whole: bool) -> Arrays:
        """Return the stored arrays by name: whole, or the part in use that a model file holds.

        The columns of each part of a table are separate, since their offsets depend on the
        capacity.
        """
        found: Arrays = {}
        in_use = {} if whole else self._in_use
        for name, field in self._fields.items():
            array = self.stored[name]
            if not field.exists(self) or not (field.axes if whole else field.saved):
                continue
            if "hypothesis" in field.axes:
                for i, columns in enumerate(self._columns):
                    n_rows = None if whole else self._height(i)
                    found[f"{name}.{i}"] = array[..., :n_rows, columns]
            else:
                lengths = (in_use.get(str(axis)) for axis in field.axes)
                found[name] = array[tuple(map(slice, lengths))] if field.axes else array
        return found

    def _put(self, arrays: Arrays) -> None:
        """Copy arrays returned by `_views` to their present places."""
        for name, array in arrays.items():
            field, target = self._field_of(name), self._target_of(name)
            if field.axes:
                begun = field.fill and not self._begins_at_zero(field)
                copy(array, target, starts_at_zero=not begun)
            else:
                put(array, target)

    def _field_of(self, name: str) -> Field:
        fields = self._fields
        return fields[name] if name in fields else fields[name.rpartition(".")[0]]

    def _target_of(self, name: str) -> npt.NDArray[Any]:
        """Return the array of this name; of a table, the columns from those of the part on."""
        if name in self.stored:
            return self.stored[name]
        table, _, part = name.rpartition(".")
        return self.stored[table][..., self._offsets[int(part)] :]

    def fill_weights(self, weights: npt.NDArray[np.float32]) -> None:
        """Write the initial weights."""
        begin_at = self._ask_link(WEIGHT)
        if begin_at:
            weights[:] = begin_at
        for part, offset in zip(self.parts, self._offsets, strict=True):
            if isinstance(part, Shared) and part.begins_at:
                weights[:, offset] = part.begins_at

    def fill_inverse(self, inverse: npt.NDArray[np.float64]) -> None:
        """Write the inverse of the second moments before the first row."""
        np.fill_diagonal(inverse, 1 / self.preconditioner.parameter)

    def fill_states(self, states: npt.NDArray[np.float64]) -> None:
        """Write the initial sums of the means, which weights that are yet to be seen also have."""
        if self.has_scaled_means:
            states[1] = self.stored["link.means"]["begun"][0]

    def fill_margins(self, margins: npt.NDArray[np.float64]) -> None:
        """Write the margin of all pairs of classes, or its factor of steps."""
        margins[:] = self._unit_of_costs

    @property
    def _unit_of_costs(self) -> float:
        """What a cost of 1 means in the table of margins."""
        return 1.0 if self.costs_scale_steps else self.rule.margin

    def _begins_at_zero(self, field: Field) -> bool:
        """Return whether the initial values of a field with `fill` are zeros."""
        if field.fill == "fill_states":
            return not (self.has_scaled_means and self.stored["link.means"]["begun"][0])
        begun = any(isinstance(part, Shared) and part.begins_at for part in self.parts)
        return "hypothesis" in field.axes and not begun and self._ask_link(WEIGHT) == 0

    @property
    def may_be_sparse(self) -> bool:
        """Whether weights may be in sparse rows: trials update two classes, over x itself."""
        rule = self.rule.for_hypotheses(one_per_class=True)
        return (
            self.has_weights
            and not self.stays_dense
            and self.memory is None
            and self.parts == [PerClass()]
            and not self.statistics
            and self.answer == "class"
            and rule.constraints in TWO_CLASSES
            and rule.requires != "gram"
            and rule.update is None
            and self.preconditioner.is_euclidean
            and isinstance(self.link, Linear)
            and not self.averaged
            and self.costs is None
            and self.on_new_class != "inherit"
        )

    def _turns_sparse(self, feature_capacity: int, class_capacity: int) -> bool:
        """Return whether weights are to move to sparse rows: a dense table would waste memory."""
        size = feature_capacity * class_capacity
        if self.sparse is not None or 4 * size <= LARGEST_TABLE or not self.may_be_sparse:
            return False
        table = self.weights[:, : self._width(0)]
        return bool(np.count_nonzero(table) <= FULL_TABLE * size)

    def _keep_sparsely(
        self, table: npt.NDArray[np.float32], n_features: int, n_classes: int
    ) -> None:
        """Move weights to sparse rows."""
        self.sparse = SparseWeights(n_features, n_classes)
        self.sparse.put(table)
        for name in fields_of(LearnerRecord):
            if name.startswith("weights."):
                self.stored[name] = self.stored[name][..., :0]
        self.__dict__.pop("_kernels", None)

    @property
    def may_compare(self) -> bool:
        """Whether rows may be compared with candidates: a class has weights and counts alone."""
        from kesler.learner.comparing import may_compare

        return may_compare(self)

    def compare_candidates(self) -> None:
        """Move the weights and counts of classes to entries; rows that follow have candidates."""
        from kesler.learner.comparing import OF_ENTRIES, Comparing, entries_of, share_offsets

        assert self.candidates is not None
        entries, before = entries_of(self), self._views(whole=True)
        virtual, part = slice(self.n_known, self.n_known + self.n_virtual), f".{self._of_classes}"
        n_numbers = 1 + ("evidence" in self.preconditioner.keeps) + len(self.statistics)
        first = self.classes.n_virtual
        kept = Comparing(self.candidates, self._feature_capacity, n_numbers, first)
        self.comparing = kept
        for name in list(before):
            if name in OF_ENTRIES:
                del before[name]
            elif name.endswith(part) and "hypothesis" in self._field_of(name).axes:
                before[name] = before[name][..., virtual]
        self._allocate(self._class_capacity, self._feature_capacity, self._group_capacity)
        self._put(before)
        kept.entries.put(*entries)
        if self.has_sets:
            share_offsets(self.stored, first, self.n_known)
        self.counts["n_classes"] = max(first, self.n_known)
        amounts = self.stored["statistics.amounts"]
        frequent = int(amounts.argmax()) if len(amounts) else 0
        kept.stored["recall"]["frequent"] = max(first, frequent)
        self._bind()

    def _price(self, n_known: int) -> None:
        """Write the margins of the classes from number `n_known` on, or the costs of ranks."""
        n_virtual, n_classes = self.classes.n_virtual, len(self.classes)
        if self.margin_costs is None or n_known == n_classes:
            return
        among, unit = self.stored["rule.margins"], self._unit_of_costs
        if self.prices_targets:
            among, unit = np.zeros((n_classes, n_classes)), 1.0
            among[:n_known, :n_known] = self._costs_of_ranks[:n_known, :n_known]
            self._costs_of_ranks = among
        among = among[n_virtual:n_classes, n_virtual:n_classes]
        self.margin_costs.fill(among, self.classes.labels, n_known - n_virtual, unit)

    def _price_target(self, y: int) -> None:
        """Write the margins between neighbours that rows of rank y demand."""
        n = len(self.classes)
        margins = self.stored["rule.margins"][:n, :n]
        fill_rank(margins, self._costs_of_ranks[y], self.classes.order, y)
        margins *= self.rule.margin

    def _ask_link(self, task: int) -> float:
        """Return the weight, or the scale, that the link gives to a sum of 0."""
        if isinstance(self.link, Linear):
            return 1.0 if task == SCALE else self.rule.begins_at
        if isinstance(self.link, CustomLink):
            return self.link.at_zero if task == WEIGHT else 1.0
        reference = float(self.stored["link.scale"]["reference"][0])
        return float(self.link.geometry(task, 0.0, reference, self.link.parameters))

    @property
    def _columns(self) -> list[slice]:
        """The columns of the hypotheses of each part."""
        return [slice(start, start + self._width(i)) for i, start in enumerate(self._offsets)]

    def _width(self, i: int) -> int:
        """Return the number of hypotheses of part i."""
        n_known = 0 if self.comparing is not None else len(self.classes)
        n_classes = min(n_known + self.n_virtual, self._class_capacity - self._n_beside)
        n_groups = min(len(self.groups[i]), self._group_capacity[i])
        return n_columns(self.parts[i], n_classes, n_groups)

    @property
    def _n_used(self) -> int:
        """Number of rows of the table of weights in use."""
        return max(self.n_features, self.n_sub_experts)

    def _height(self, i: int) -> int:
        """Return the number of weights of each hypothesis of part i."""
        given = isinstance(self.parts[i].feature_map, SubExperts)
        return self.n_sub_experts if given else self.n_features

    def _bind(self) -> None:
        """Discard the records for compiled code, since arrays have changed."""
        if self.comparing is not None:
            self.comparing.unbind()
        for name in ("_record", "_kernel_arguments", "_predictor", "_trials"):
            self.__dict__.pop(name, None)

    # ---- saving -----------------------------------------------------------------------------

    def arrays(self) -> Arrays:
        """Return copies of the part of the arrays that is in use, which a model file stores."""
        with self.lock:
            found = {name: array_of(array) for name, array in self._views(whole=False).items()}
            found |= self._other_arrays() | self._uncertainty_arrays()
            if self.memory is not None:
                found |= self.memory.arrays(self.n_named_features)
            return {name: np.array(array, order="C") for name, array in found.items()}

    def _other_arrays(self) -> Arrays:
        """Return the arrays of rows that are kept, and of hypotheses not in the table of weights.

        No learner whose rows have candidates keeps rows.
        """
        if self.comparing is not None:
            return self.comparing.arrays(self.n_features)
        kept = {} if self.kept_lists is None else self.kept_lists.arrays()
        if self.sparse is None:
            return kept
        return kept | self.sparse.arrays(self.n_features, self._width(0))

    def restore(
        self,
        arrays: Arrays,
        n_features: int,
        n_sub_experts: int,
        groups: list[dict[Hashable, int]],
        memberships: list[list[list[int]]],
        n_inputs: int = 0,
    ) -> None:
        """Restore what `arrays` returned, and the groups; the classes must be known already.

        Raises
        ------
        KeslerError
            If an array is missing, has another dtype or shape, or holds invalid values.
        """
        self.groups, self.memberships = groups, memberships
        self._put_record("link.means", arrays)
        if self._put_record("link.scale", arrays):  # initial values depend on both
            self._allocate(self._class_capacity, self._feature_capacity, self._group_capacity)
        if is_sparse(arrays):
            self._keep_sparsely(self.weights, self._feature_capacity, self._class_capacity)
        if STARTS_OF_ENTRIES in arrays:
            if self.candidates is None:
                raise damaged("entries are those of candidates, which its settings do not have")
            self.compare_candidates()
        if self.expansion is not None:
            self._provide_inputs(n_inputs)
            if n_features and self.width_of(n_inputs) != n_features:
                raise damaged(f"rows of {n_inputs} features do not have {n_features} when expanded")
        self.reserve(len(self.classes), n_features, n_sub_experts)
        self._price(0)
        self._put_record("counts", arrays)
        self._put_record("replay.offered", arrays)
        self._put(self._checked(arrays))
        self._restore_others(arrays)
        self._restore_lists(arrays, n_inputs)
        self._list_features()
        self._place_ranks()
        self._bind()

    def _put_record(self, name: str, arrays: Arrays) -> bool:
        """Restore one record of a file if the file and this learner have it."""
        field = self._fields[name]
        if name not in arrays or not field.exists(self):
            return False
        self._put({name: valid_array(name, arrays, field, (), {})})
        return True

    def _checked(self, arrays: Arrays) -> Arrays:
        """Return the arrays of a file that belong to the stored fields, after validation."""
        if self.n_known != len(self.classes):
            raise damaged(f"counts name {self.n_known} classes, of {len(self.classes)} labels")
        found, in_use = {}, self._in_use
        for name, view in self._views(whole=False).items():
            array = valid_array(name, arrays, self._field_of(name), view.shape, in_use)
            found[name] = np.ascontiguousarray(array)
        if self.is_normalised:
            n_seen = found["link.is_seen"].sum(axis=0)
            if (n_seen != found["link.n_features"]).any():
                raise damaged(f"link.is_seen names {n_seen} features, not as many as n_features")
        return found

    def _restore_others(self, arrays: Arrays) -> None:
        """Restore hypotheses that are not in the table of weights."""
        if self.sparse is not None:
            self.sparse.restore(arrays, self.n_features, self._width(0))
        if self.comparing is not None:
            self.comparing.restore(arrays, self.n_features, len(self.classes))
        if self.memory is not None:
            self.memory.restore(arrays, self.n_named_features)

    def _list_features(self) -> None:
        """List all features, whose weights new classes inherit; their order is not stored."""
        n = self._n_used if self.n_virtual else 0
        if n:
            self.stored["weights.lists"]["n_listed"] = n
            self.stored["weights.listed"][:n] = np.arange(n)
            self.stored["weights.is_listed"][:n] = True


def fields_with(*, weights: bool) -> dict[str, Field]:
    """Return the stored fields by name, with those of a table of weights or without."""
    fields = fields_of(LearnerRecord)
    return {n: f for n, f in fields.items() if weights or not n.startswith("weights.")}


def copy(source: npt.NDArray[Any], target: npt.NDArray[Any], *, starts_at_zero: bool) -> None:
    """Copy an array to the beginning of a larger one.

    If the larger one is all 0, memory that would only receive rows of zeros is not touched.
    """
    if starts_at_zero and source.ndim > 1 and target.itemsize in (4, 8):
        from kesler.compiled.weights.copies import copy_filled

        for place in np.ndindex(source.shape[:-2]):
            copy_filled(source[place], target[place])
    else:
        put(source, target)

"""Memory: all that a learner keeps, the room that it takes and what of it a model file holds."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.algorithms.algorithm import MOST_NUMBERS
from kesler.answers import Kind
from kesler.calibration import uncalibrated
from kesler.classes import ClassTable, Label, Newcomers, plain
from kesler.columns import columns_of, n_beside, n_columns
from kesler.conditioning import Conditioning
from kesler.costs import Costs
from kesler.counted import Counted
from kesler.errors import KeslerError
from kesler.geometry import Metric
from kesler.hypotheses import (
    Grouped,
    Part,
    PerClass,
    Shared,
    require_hashable,
    takes_ratings,
)
from kesler.links import CustomLink, Linear, Link
from kesler.links.link import SCALE, WEIGHT
from kesler.maps import FeatureMap, GaussianRatio, SubExperts
from kesler.room import aligned_zeros, grown, whole_lines
from kesler.sparse_weights import SparseWeights, is_sparse
from kesler.updates import UpdateRule

# What is kept of each class, as in `kesler.compiled.learner`; the last is what float32 rounds off
# the sums of the means.
_GAUSSIAN = ("centre", "sharpness", "height")
STATISTICS = ("first", "mean", "frequency", "contrast", *_GAUSSIAN, "rounded off")
# Tables of weights are kept whole up to so many bytes, or if so large a part is not 0.
LARGEST_TABLE = 1 << 29
FULL_TABLE = 1 / 8
# Constraints of two classes each: those that rules with sparse rows are handed.
TWO_CLASSES = ("predicted", "worst", "rival")
_ARRAYS = (
    *("_sums", "_totals", "_ranks", "counters", "_margins", "_numbers", "_met", "_calibration"),
    *("_pooled", "_moments", "_amounts", "_divisors", "_metric_numbers", "_past", "_past_rows"),
    "_forgetting",
)

# Modules, addresses, what is lent, and the lock.
_OF_THIS_PROCESS = (
    *("_kernels", "_learner", "_lent", "_reader", "_lent_reader", "_desk"),
    *("event", "lock"),
)


class Memory(Counted):
    """The arrays of one learner: weights, statistics of classes, margins, counters.

    Parameters
    ----------
    parts, rule, classes, constant, answer, link, averaged, costs, metric, newcomers, \
conditioning, half_life : as in :class:`~kesler.machine.Machine`.

    Notes
    -----
    4 bytes for each feature and hypothesis, or some 12 for each weight that is not 0 where that is
    far less (:mod:`kesler.sparse_weights`); 8 more with a link or an average, 4 more with a metric
    that is not Euclidean, and 4 for each feature, class and statistic kept (one for every kind that
    a map asks for; 28 for moments), and up to 16 for each feature if rows are conditioned. Room for
    classes and features doubles when it is full, so that growing costs O(1) amortised.
    """

    stays_dense = False  # whether weights are never kept in sparse rows

    def __init__(
        self,
        parts: Sequence[Part],
        rule: UpdateRule,
        classes: ClassTable,
        constant: float,
        *,
        answer: Kind,
        link: Link,
        averaged: bool,
        costs: Costs | None,
        metric: Metric,
        newcomers: Newcomers,
        conditioning: Conditioning | None,
        half_life: float | None,
    ) -> None:
        self.parts = list(parts)
        self._n_beside = n_beside(self.parts)
        self.rule = rule
        self.classes = classes
        self.constant = constant
        self.answer = answer
        self.link = link
        self.averaged = averaged
        self.costs = costs
        self.metric = metric
        self.newcomers = newcomers
        self.conditioning = conditioning
        self.half_life = half_life
        self.takes_ratings = takes_ratings(self.parts)
        self.n_features = 0
        self.n_sub_experts = 0
        asked = {m.statistic for m in self._maps}
        kept = {layer for statistic in asked for layer in layers_of(statistic)}
        self.statistics = [name for name in STATISTICS if name in kept]
        self.groups: list[dict[Hashable, int]] = [{} for _ in self.parts]
        self.memberships: list[list[list[int]]] = [
            [[] for _ in range(classes.n_virtual)] for _ in self.parts
        ]
        self.counters = np.zeros(4, dtype=np.int64)
        # What the link's scale is made of; see `kesler.compiled.learner`.
        self._numbers = np.zeros(3 + MOST_NUMBERS)
        self._numbers[3] = self._ask_link(SCALE)
        self._met = np.array([[0, isinstance(part, Shared)] for part in self.parts], dtype=np.int64)
        # What a metric measures, and the gain of scale-free ones; see `kesler.compiled.learner`.
        self._metric_numbers = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
        self._smoothing = _smoothing(self._maps)
        self._require_linear_beginning()
        self._calibration = uncalibrated() if answer != "levels" else np.empty(0)
        self._past_rows = np.zeros(1)
        # What rows count; see `kesler.compiled.worth`.
        self._forgetting = np.array(
            [1.0 if half_life is None else 2.0 ** (1 / half_life), 1.0, 1.0]
        )
        self.lock = RLock()
        self.sparse: SparseWeights | None = None
        self._allocate(whole_lines(1 + self._n_beside), 0, [0] * len(self.parts))

    # ---- what has been seen -----------------------------------------------------------------

    @property
    def n_named_features(self) -> int:
        """Features but the constant one."""
        return max(0, self.n_features - bool(self.constant))

    @property
    def _maps(self) -> list[FeatureMap]:
        return [p.feature_map for p in self.parts if isinstance(p.feature_map, FeatureMap)]

    @property
    def scale(self) -> float:
        """What weights are to be multiplied by: 1 unless they fade, or link or algorithm say so."""
        return float(self._numbers[3] if self._scale_code else 1.0 / self._forgetting[1])

    @property
    def n_weights(self) -> int:
        """How many weights the features, sub-experts and classes met so far have."""
        return sum(self._height(i) * self._width(i) for i in range(len(self.parts)))

    def hypothesis_weights(self) -> list[Any]:
        """Return the weights of each part, of shape (n_features, n_hypotheses).

        As views, or as a sparse matrix where they stand in sparse rows.
        """
        if self.sparse is not None:
            return [self.sparse.matrix(self.n_features, self._width(0))]
        return [self.weights[: self._height(i), c] for i, c in enumerate(self._columns)]

    @property
    def _scale_code(self) -> int:
        """Where the scale of the weights comes from: nowhere, the link, or the rule itself."""
        return 2 if self.rule.update is not None else int(self.link.normalised)

    # ---- groups -----------------------------------------------------------------------------

    def join_group(self, label: Label, group: Hashable) -> None:
        """Let a class that has been met take part in one more group of every grouped part."""
        code = self.classes.code(label) if label in self.classes else None
        if code is None:
            raise KeslerError(
                f"label {label!r} has not been met: name it in the groups, or let it join later"
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
                self._met[i, 1] = max(self._met[i, 1], column + 1)
            if self.link.normalised:
                self._numbers[4] = 1  # the next trial computes the link's sum anew
            self.make_room(len(self.classes), self.n_features)
            self._bind()

    def require_admissible(self, labels: Sequence[Label]) -> None:
        """Raise what learning these labels would raise, a group function's errors too."""
        self.classes.require_admissible(labels)
        grouped = [part for part in self.parts if isinstance(part, Grouped)]
        new = [plain(label) for label in dict.fromkeys(labels) if label not in self.classes]
        for label in new if grouped else ():
            for part in grouped:
                part.groups_of(label)
        if self.costs is not None and new:
            self.costs.require_known([*self.classes.labels, *new], len(self.classes.labels))

    def _groups_of_new(self, n_before: int) -> list[tuple[int, list[list[Hashable]]]]:
        """Return for each grouped part the groups of the classes from number `n_before` on."""
        new = self.classes.since(n_before)
        return [
            (i, [part.groups_of(label) for label in new])
            for i, part in enumerate(self.parts)
            if new and isinstance(part, Grouped)
        ]

    def _join(self, joined: list[tuple[int, list[list[Hashable]]]]) -> None:
        """Give new classes their groups."""
        for i, groups_by_class in joined:
            columns, members = self.groups[i], self.memberships[i]
            for groups in groups_by_class:
                members.append(sorted(columns.setdefault(g, len(columns)) for g in groups))
        if joined:
            self.make_room(len(self.classes), self.n_features)
            self._bind()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what holds only in this process."""
        here = (
            "_kernels",
            "_learner",
            "_lent",
            "_reader",
            "_lent_reader",
            "event",
            "_desk",
            "lock",
        )
        return {k: v for k, v in vars(self).items() if k not in here}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the arrays as our own: they may come as a read-only memory map."""
        vars(self).update(state, lock=RLock())
        for name in _ARRAYS:
            setattr(self, name, getattr(self, name).copy())
        self._own_hypotheses()

    def _place_ranks(self) -> None:
        """Tell the kernels how all labels are ordered, and which of them are known."""
        if self.answer != "rank":
            return
        places, order, positions = self._ranks
        codes = np.array(self.classes.order, dtype=np.int64)
        known = codes[codes < self.n_known]
        places[codes] = np.arange(len(codes))
        order[: len(known)] = known
        positions[known] = np.arange(len(known))

    # ---- room -------------------------------------------------------------------------------

    def make_room(self, n_classes: int, n_features: int, n_sub_experts: int = 0) -> None:
        """Make room for so many classes, features, sub-experts and the groups there are.

        Features and sub-experts are rows of one table, since each part has columns of its own. One
        row of either kind stays unused: it stands for all that have not been met, whose weight is
        the one that all begin with (Mesterharm 2001, Section 6.1).
        """
        from kesler.compiled.copies import copy_filled

        times = 2.0 if self.sparse is None else 1.25  # rows of the table take most of the memory
        n_places = n_classes + self._n_unborn + self._n_beside
        class_room = grown(self._class_room, n_places, times)
        feature_room = grown(
            self._feature_room, max(n_features + 1, n_sub_experts + self.takes_ratings)
        )
        group_room = [
            grown(room, len(groups))
            for room, groups in zip(self._group_room, self.groups, strict=True)
        ]
        if (class_room, feature_room, group_room) == (
            self._class_room,
            self._feature_room,
            self._group_room,
        ):
            self._count(n_features, n_sub_experts)
            return
        self._choose_rows(feature_room, class_room)
        old_hypotheses, old_ranks = self._hypotheses(whole=True), self._ranks
        old_margins = self._margins
        old_statistics, old_totals, old_pooled = self._sums, self._totals, self._pooled_arrays()
        old_past = self._past
        self._allocate(class_room, feature_room, group_room)
        self._count(n_features, n_sub_experts)
        self._put_hypotheses(old_hypotheses)
        for sums, old_sums in zip(self._sums, old_statistics, strict=True):
            copy_filled(old_sums, sums)
        self._totals[:, : old_totals.shape[1]] = old_totals
        self._put_pooled(old_pooled)
        self._past[: len(old_past)] = old_past
        self._ranks[:, : old_ranks.shape[1]] = old_ranks
        if self.costs is not None:
            self._margins[: len(old_margins), : len(old_margins)] = old_margins
        self._bind()

    def _has_room(self, n_classes: int, n_features: int) -> bool:
        """Whether there is room for so many classes and features, and for one that is not met."""
        n_places = n_classes + self._n_unborn + self._n_beside
        return n_places <= self._class_room and n_features < self._feature_room

    def _count(self, n_features: int, n_sub_experts: int) -> None:
        if n_features > self.n_features:
            self.n_features = n_features
        if n_sub_experts > self.n_sub_experts:
            self.n_sub_experts = n_sub_experts

    def _allocate(self, class_room: int, feature_room: int, group_room: list[int]) -> None:
        """Make empty arrays, all or none; zeros take no memory before they are written."""
        n_statistics = len(self.statistics)
        margins = np.ones((class_room, class_room) if self.costs else (1, 1))
        sums = aligned_zeros(n_statistics, feature_room, class_room)
        totals = np.zeros((n_statistics, class_room), dtype=np.float32)
        past = np.zeros((feature_room, self.conditioning.n_statistics if self.conditioning else 0))
        ranks = np.zeros((3, class_room if self.answer == "rank" else 0), dtype=np.int64)
        self._allocate_hypotheses(class_room, feature_room, group_room)
        self._allocate_pooled(class_room, feature_room)
        self._sums, self._totals, self._past, self._ranks = sums, totals, past, ranks
        self._margins = margins * self.rule.margin
        self._class_room, self._feature_room, self._group_room = (
            class_room,
            feature_room,
            group_room,
        )
        self._bind()

    def _allocate_pooled(self, class_room: int, feature_room: int) -> None:
        """Make room for what is kept of all rows, as far as a map looks at it."""
        has_moments = "centre" in self.statistics
        n_columns = 6 if has_moments else int("contrast" in self.statistics)
        self._pooled = np.zeros((feature_room, n_columns))
        self._moments = np.zeros((2, class_room if has_moments else 0, feature_room))
        self._amounts = np.zeros(1 + class_room)
        self._divisors = np.zeros((4, class_room), dtype=np.float32)

    def _pooled_arrays(
        self, n_features: int | None = None, n_classes: int | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """Return what is kept of all rows, cut to so many features and classes."""
        if not self._pooled.shape[1]:
            return {}
        return {
            "statistics.pooled": self._pooled[:n_features],
            "moments": self._moments[:, :n_classes, :n_features],
            "amounts": self._amounts[: None if n_classes is None else 1 + n_classes],
            "divisors": self._divisors[:, :n_classes],
        }

    def _put_pooled(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Copy what `_pooled_arrays` returned to where it belongs by now."""
        for name, array in self._pooled_arrays().items():
            array[tuple(slice(n) for n in arrays[name].shape)] = arrays[name]

    def _allocate_hypotheses(
        self, class_room: int, feature_room: int, group_room: list[int]
    ) -> None:
        """Make the weights that there are before the first trial."""
        if self.sparse is not None:
            self.sparse.make_room(feature_room, class_room)
            return
        offsets, width = columns_of(self.parts, class_room, group_room)
        weights = aligned_zeros(feature_room, whole_lines(width))
        weights_begin_at = self._ask_link(WEIGHT, self._numbers[2])
        if weights_begin_at:
            weights[:] = weights_begin_at
        for part, offset in zip(self.parts, offsets, strict=True):
            if isinstance(part, Shared) and part.begins_at:
                weights[:, offset] = part.begins_at
        states = np.zeros((self._n_states, *weights.shape))
        self._is_met = np.zeros((feature_room, len(self.parts)), dtype=np.bool_)
        follows = self.metric.follows != "nothing"
        self._evidence = aligned_zeros(feature_room if follows else 0, weights.shape[1])
        self._scales = np.zeros(
            feature_room if self.metric.unit == "features" else 0, dtype=np.float32
        )
        self._listed = np.zeros(1 + feature_room * self._n_unborn, dtype=np.int64)
        self._is_listed = np.zeros(feature_room * self._n_unborn, dtype=np.bool_)
        self.weights, self._states, self._offsets = weights, states, offsets

    def _own_hypotheses(self) -> None:
        """Copy arrays that may be a read-only memory map."""
        if self.sparse is not None:
            self.sparse.own()
        self.weights, self._states = self.weights.copy(), self._states.copy()
        self._is_met = self._is_met.copy()
        self._evidence, self._scales = self._evidence.copy(), self._scales.copy()
        self._listed, self._is_listed = self._listed.copy(), self._is_listed.copy()

    def _hypotheses(self, *, whole: bool) -> dict[str, npt.NDArray[Any]]:
        """Return the weights in use, or those that there is room for, and what is kept beside.

        What stands in sparse rows stays where it is when room is made.
        """
        if self.sparse is not None:
            return {} if whole else self.sparse.arrays(self.n_features, self._width(0))
        arrays: dict[str, npt.NDArray[Any]] = {}
        for i, columns in enumerate(self._columns):
            n_rows = len(self.weights) if whole else self._height(i)
            arrays[f"weights.{i}"] = self.weights[:n_rows, columns]
            if self._n_states:
                arrays[f"states.{i}"] = self._states[:, :n_rows, columns]
            if self.metric.follows != "nothing":
                arrays[f"evidence.{i}"] = self._evidence[:n_rows, columns]
        if self._n_unborn and whole:
            arrays["listed"] = self._listed[1 : 1 + self._listed[0]]
        if self._scale_code:
            met = self._is_met[: len(self.weights) if whole else self._n_used]
            arrays |= {"numbers": self._numbers, "is_met": met, "met": self._met}
        if self.metric.unit != "none":
            scales = self._scales[: len(self._scales) if whole else self._n_used]
            arrays |= {"scales": scales, "metric_numbers": self._metric_numbers}
        return arrays

    def _put_hypotheses(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Copy what `_hypotheses` returned to where it belongs by now."""
        from kesler.compiled.copies import copy_filled

        if self.sparse is not None:
            self.sparse.restore(arrays)
            return
        if self._n_unborn:  # from a file: all that there are, in whatever order
            listed = arrays.get("listed", np.arange(self._n_used))
            self._listed[0], self._is_listed[listed] = len(listed), True
            self._listed[1 : 1 + len(listed)] = listed
        begun = any(isinstance(part, Shared) and part.begins_at for part in self.parts)
        begin_at_zero = not begun and self._ask_link(WEIGHT, self._numbers[2]) == 0
        for i, offset in enumerate(self._offsets):
            weights = arrays[f"weights.{i}"]
            columns = slice(offset, offset + weights.shape[1])
            if begin_at_zero:
                copy_filled(weights, self.weights[:, columns])
            else:
                self.weights[: len(weights), columns] = weights
            for layer in range(self._n_states):
                copy_filled(arrays[f"states.{i}"][layer], self._states[layer][:, columns])
            if self.metric.follows != "nothing":
                copy_filled(arrays[f"evidence.{i}"], self._evidence[:, columns])
        if self.metric.unit != "none":
            self._scales[: len(arrays["scales"])] = arrays["scales"]
            self._metric_numbers[:] = arrays["metric_numbers"]
        if self._scale_code:
            self._is_met[: len(arrays["is_met"])] = arrays["is_met"]

    @property
    def may_be_sparse(self) -> bool:
        """Whether weights may stand in sparse rows: trials move two classes, over x itself."""
        rule = self.rule.for_hypotheses(one_per_class=True)
        return (
            not self.stays_dense
            and self.parts == [PerClass()]
            and self.answer == "class"
            and rule.constraints in TWO_CLASSES
            and rule.sees != "gram"
            and rule.update is None
            and self.metric.is_euclidean
            and isinstance(self.link, Linear)
            and not self.averaged
            and self.costs is None
            and self.newcomers != "virtual"
        )

    def _choose_rows(self, feature_room: int, class_room: int) -> None:
        """Keep weights in sparse rows from here on if a table for all would waste memory."""
        wide = 4 * feature_room * class_room > LARGEST_TABLE
        if self.sparse is None and wide and self.may_be_sparse:
            table = self.weights[:, : self._width(0)]
            if np.count_nonzero(table) <= FULL_TABLE * feature_room * class_room:
                self._keep_sparsely(table, feature_room, class_room)

    def _keep_sparsely(
        self, table: npt.NDArray[np.float32], n_features: int, n_classes: int
    ) -> None:
        """Move weights to sparse rows."""
        self.sparse = SparseWeights(n_features, n_classes)
        self.sparse.put(table)
        self.weights, self._states = aligned_zeros(0, 0), np.zeros((0, 0, 0))
        self.__dict__.pop("_kernels", None)

    def _require_linear_beginning(self) -> None:
        """Raise if weights begin at a value where there are none, or a link or algorithm says."""
        begun = [part for part in self.parts if isinstance(part, Shared) and part.begins_at]
        if not begun:
            return
        if not isinstance(self.link, Linear):
            raise KeslerError(
                f"{begun[0]!r}: under {self.link!r} all weights begin where the link says; leave "
                "begins_at out, or choose the linear link"
            )
        if self.rule.update is not None:
            raise KeslerError(
                f"{begun[0]!r}: the weights of {self.rule!r} begin where the algorithm says; leave "
                "begins_at out, or choose an update rule"
            )

    def _price(self, n_known: int) -> None:
        """Write the margins of the classes from number `n_known` on."""
        n_virtual, n_classes = self.classes.n_virtual, len(self.classes)
        if self.costs is None or n_known == n_classes:
            return
        among = self._margins[n_virtual:n_classes, n_virtual:n_classes]
        self.costs.fill(among, self.classes.labels, n_known - n_virtual, self.rule.margin)

    @property
    def _n_unborn(self) -> int:
        """How many classes have weights, but no instance yet."""
        return int(self.newcomers == "virtual")

    @property
    def _n_states(self) -> int:
        """How many numbers are kept beside each weight."""
        return max(self.rule.n_states, int(self.averaged or not isinstance(self.link, Linear)))

    def _ask_link(self, task: int, reference: float = 0.0) -> float:
        """Return the weight or the scale of a sum of 0."""
        if isinstance(self.link, Linear):
            return 1.0 if task == SCALE else self.rule.begins_at
        if isinstance(self.link, CustomLink):
            return self.link.at_zero if task == WEIGHT else 1.0
        return float(self.link.geometry(task, 0.0, reference, self.link.parameters))

    @property
    def _columns(self) -> list[slice]:
        """Where the hypotheses of each part are."""
        return [slice(start, start + self._width(i)) for i, start in enumerate(self._offsets)]

    def _width(self, i: int) -> int:
        """Return how many hypotheses part i has by now."""
        n_classes = min(len(self.classes) + self._n_unborn, self._class_room - self._n_beside)
        n_groups = min(len(self.groups[i]), self._group_room[i])
        return n_columns(self.parts[i], n_classes, n_groups)

    @property
    def _n_used(self) -> int:
        """How many rows of the table of weights are in use."""
        return max(self.n_features, self.n_sub_experts)

    def _height(self, i: int) -> int:
        """Return how many weights each hypothesis of part i has by now."""
        given = isinstance(self.parts[i].feature_map, SubExperts)
        return self.n_sub_experts if given else self.n_features

    def _bind(self) -> None:
        """Forget the tuple that the kernels were given: arrays have changed."""
        self.__dict__.pop("_learner", None)
        self.__dict__.pop("_lent", None)
        self._forget_mean()

    def _forget_mean(self) -> None:
        self.__dict__.pop("_reader", None)
        self.__dict__.pop("_lent_reader", None)

    # ---- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that was learnt, cut to what is in use, as a model file keeps it."""
        n, k = self.n_features, self.n_known
        arrays: dict[str, npt.NDArray[Any]] = {"counters": self.counters}
        if self._calibration.size:
            arrays["calibration"] = self._calibration
        arrays |= self._hypotheses(whole=False)
        for i, name in enumerate(self.statistics):
            arrays[f"statistics.{name}"] = self._sums[i, :n, :k]
            arrays[f"totals.{name}"] = self._totals[i, :k]
        arrays |= self._pooled_arrays(n, k)
        if self.conditioning is not None:
            arrays |= {"past": self._past[:n], "past_rows": self._past_rows}
        if self.half_life is not None:
            arrays["forgetting"] = self._forgetting
        return {name: np.ascontiguousarray(array) for name, array in arrays.items()}

    def restore(
        self,
        arrays: dict[str, npt.NDArray[Any]],
        n_features: int,
        n_sub_experts: int,
        groups: list[dict[Hashable, int]],
        memberships: list[list[list[int]]],
    ) -> None:
        """Take over what `arrays` returned, with the groups; the classes must be there already."""
        self.groups, self.memberships = groups, memberships
        if self._scale_code:
            self._numbers[:], self._met[:] = arrays["numbers"], arrays["met"]
            self._allocate(self._class_room, self._feature_room, self._group_room)
        if is_sparse(arrays):
            self._keep_sparsely(self.weights, self._feature_room, self._class_room)
        self.make_room(len(self.classes), n_features, n_sub_experts)
        self._price(0)
        self.counters[:] = arrays["counters"]
        if "calibration" in arrays:  # files of the first version have none
            self._calibration[:] = arrays["calibration"]
        self._put_hypotheses(arrays)
        for i, name in enumerate(self.statistics):
            self._sums[i, :n_features, : self.n_known] = arrays[f"statistics.{name}"]
            self._totals[i, : self.n_known] = arrays[f"totals.{name}"]
        self._put_pooled(arrays)
        if self.conditioning is not None:
            self._past[:n_features], self._past_rows[:] = arrays["past"], arrays["past_rows"]
        if self.half_life is not None:
            self._forgetting[:] = arrays["forgetting"]
        self._place_ranks()
        self._bind()


def layers_of(statistic: str) -> tuple[str, ...]:
    """Return the statistics that are kept where a map asks for one, its own first."""
    if statistic == "moments":
        return _GAUSSIAN
    return ("mean", "rounded off") if statistic == "mean" else (statistic,)


def _smoothing(maps: Sequence[FeatureMap]) -> list[float]:
    """Return how variances and counts of classes are smoothed: what is read of them is kept once.

    In the order of the numbers of `kesler.compiled.learner`.
    """
    variances = {(m.shrinkage, m.floor) for m in maps if isinstance(m, GaussianRatio)}
    pseudo = {getattr(m, "smoothing", 0.0) for m in maps if m.statistic == "contrast"}
    if len(variances) > 1 or len(pseudo) > 1:
        raise KeslerError(
            "the hypotheses have maps of different shrinkage, floor or smoothing, but what is kept "
            "of classes is smoothed in one way: give all GaussianRatio, and all maps of contrasts, "
            "the same"
        )
    shrinkage, floor = variances.pop() if variances else (0.0, 0.0)
    return [shrinkage, floor, pseudo.pop() if pseudo else 0.0]

"""Mixing: combination of learners that were trained separately from the same initial state.

Weights are averaged with shares that sum to 1, and so are the statistics that determine their step
sizes: with summed statistics, step sizes would decrease as if one learner had learnt all shards,
and mixed weights would learn too slowly (held-out errors after four epochs on eight shards of
LETTER and Pendigits were higher by 2 to 20 %). Sums over rows are added: the initial value plus the
increase of each learner. Classes, groups and features are numbered in the order in which they were
seen, one learner after the other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label
from kesler.errors import KeslerError
from kesler.hypotheses import Grouped, Ordered, Part, PerClass
from kesler.learner.ensemble import EnsembleLearner
from kesler.learner.kernel_learner import KernelLearner
from kesler.learner.learner import Learner
from kesler.links.link import Linear
from kesler.preprocessing import Ranges, ZScores
from kesler.state.fields import Field, fields_of, number_type
from kesler.state.records import COUNTS, LearnerRecord
from kesler.state.records import RATES as RATES_RECORD

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Places = npt.NDArray[np.int64]

# Columns of `statistics.pooled`, as in `kesler.compiled`.
POOLED_COUNT, POOLED_MEAN, POOLED_SQUARES = 0, 1, 2
# Statistics that are recomputed from others.
DERIVED = ("centre", "sharpness", "height")
# Names of the arrays in a model file.
WEIGHTS, STATES = "weights.values", "weights.states"
SCALES, RATES = "preconditioner.scales", "preconditioner.rates"
SUMS, TOTALS, POOLED = "statistics.sums", "statistics.totals", "statistics.pooled"
MOMENTS, AMOUNTS, TOTAL = "statistics.moments", "statistics.amounts", "statistics.total"
DIVISORS, PAST, N_ROWS = "statistics.divisors", "preprocessing.statistics", "preprocessing.seen"
MISSING = "preprocessing.missing"

# Names of converted arrays, and how they are mixed where that is not by sums.
FIRSTS, ORIGINS, EXTREMES = "firsts", "origins", "extremes"
CONVERTED = {FIRSTS: "first", ORIGINS: "first", EXTREMES: "largest"}


def require_mixable(learner: Any) -> None:
    """Raise if the weights of a learner cannot be mixed."""
    if isinstance(learner, EnsembleLearner):
        raise KeslerError(
            "ensembles cannot be mixed, since their members are weighted by errors on the same "
            "rows: learn each member separately"
        )
    if learner.grows_trees:
        raise KeslerError(
            f"{learner.rule!r}: trees of several shards have no mean: choose another update rule"
        )
    if isinstance(learner, KernelLearner):
        raise KeslerError(
            f"{learner.kernel!r}: hypotheses over a kernel are sums over support vectors, which "
            "grow with every shard and have no mean of the same size: set kernel=None"
        )
    reasons = {
        f"{learner.rule!r} computes its own updates": learner.rule.update is not None,
        f"weights under {learner.link!r} have no mean that follows from sums": not isinstance(
            learner.link, Linear
        ),
        "half_life needs an order of the rows, which several shards do not have": (
            learner.half_life is not None
        ),
        f"{learner.replay!r} has a sample of the rows of one learner": learner.replay is not None,
        f"{learner.preconditioner!r} {learner.preconditioner.no_mean}": (
            learner.preconditioner.no_mean
        ),
        f"{learner.preprocessing!r} depends on the quantiles and lengths of the rows of a shard": (
            learner.expansion is not None
        ),
        "ratings by sub-experts are not read from partitions": learner.takes_ratings,
        "a shard has no thresholds for ranks that it has not seen": any(
            isinstance(part, Ordered) for part in learner.parts
        ),
    }
    for reason, holds in reasons.items():
        if holds:
            raise KeslerError(
                f"{reason}, so parameters cannot be mixed: choose an update rule with the linear "
                "link, features instead of ratings, no half_life or replay and another "
                "preconditioner than coin-betting"
            )


@dataclass(frozen=True, eq=False)
class Numbering:
    """The labels, the groups of each part and the features, in the order of their numbers.

    Parameters
    ----------
    labels : list of labels
    groups : list of lists of groups, one for each part
    members : list of mappings {label: groups}, one for each part
    names : list of str or None
        Names of the features; None if they are identified by position.
    n_features : int
        Number of features, including the constant one.
    """

    labels: list[Label]
    groups: list[list[Hashable]]
    members: list[dict[Label, list[Hashable]]]
    names: list[str] | None
    n_features: int

    @classmethod
    def of(cls, learner: Learner, names: list[str] | None) -> Numbering:
        """Return the numbering of one learner."""
        groups = [list(each) for each in learner.groups]
        n_virtual = learner.classes.n_virtual
        members = [
            {
                label: [groups[i][column] for column in columns]
                for label, columns in zip(
                    learner.classes.labels, learner.memberships[i][n_virtual:], strict=False
                )
            }
            for i in range(len(groups))
        ]
        return cls(list(learner.classes.labels), groups, members, names, learner.n_features)

    @classmethod
    def merged(cls, each: Sequence[Numbering], constant: bool) -> Numbering:
        """Return the union of numberings, in their order."""
        names = None if each[0].names is None else _union(one.names or [] for one in each)
        n_features = max(one.n_features for one in each)
        parts = range(len(each[0].groups))
        return cls(
            _union(one.labels for one in each),
            [_union(one.groups[i] for one in each) for i in parts],
            [_merged_members([one.members[i] for one in each]) for i in parts],
            names,
            n_features if names is None else len(names) + constant,
        )


def _union(lists: Iterable[Sequence[Any]]) -> list[Any]:
    return list(dict.fromkeys(item for each in lists for item in each))


def _merged_members(each: Sequence[dict[Label, list[Hashable]]]) -> dict[Label, list[Hashable]]:
    labels = _union(list(one) for one in each)
    return {label: _union(one.get(label, []) for one in each) for label in labels}


class Alignment:
    """The mapping from the numbers of one learner to those of all learners.

    Parameters
    ----------
    learner : Learner
    own, everyone : Numbering
    """

    def __init__(self, learner: Learner, own: Numbering, everyone: Numbering) -> None:
        n_virtual, constant = learner.classes.n_virtual, bool(learner.constant)
        self.learner, self.own, self.everyone = learner, own, everyone
        known = {label: n_virtual + number for number, label in enumerate(own.labels)}
        self.classes = np.array(
            [*range(n_virtual), *(known.get(label, -1) for label in everyone.labels)],
            dtype=np.int64,
        )
        self.features = _feature_places(own, everyone, constant)

    def arrays(self) -> Arrays:
        """Return the arrays of the learner, reordered to the numbers of all learners."""
        return {name: self._placed(name, array) for name, array in self.learner.arrays().items()}

    def _placed(self, name: str, array: Array) -> Array:
        field, part = field_of(name)
        begins_at = 0.0
        if name.startswith(WEIGHTS):
            begins_at = self.learner.parts[part].begins_at
        for axis, kind in enumerate(field.axes):
            if kind in ("feature", "row"):
                array = _at(array, self.features, axis, begins_at)
            elif kind == "class":
                array = _at(array, self.classes, axis)
            elif kind == "hypothesis":
                array = _at(array, self._columns(self.learner.parts[part], part), axis)
        return array

    def _columns(self, part: Part, i: int) -> Places:
        if isinstance(part, PerClass):
            if self.learner.on_new_class != "inherit":
                return self.classes
            # The last column is that of the virtual class: the initial weights of classes.
            n_own = len(self.learner.classes)
            return np.append(np.where(self.classes < 0, n_own, self.classes), n_own)
        if isinstance(part, Grouped):
            return _places(self.own.groups[i], self.everyone.groups[i])
        return np.zeros(1, dtype=np.int64)


def _feature_places(own: Numbering, everyone: Numbering, constant: bool) -> Places:
    if own.names is None or everyone.names is None:
        numbers = np.arange(everyone.n_features)
        return np.where(numbers < own.n_features, numbers, -1)
    named = _places(own.names, everyone.names)
    # A learner may have more names than features in its arrays.
    numbers = np.where(named + constant < own.n_features, named + constant, -1)
    return np.concatenate([np.arange(int(constant)), np.where(named < 0, -1, numbers)])


def _places(own: Sequence[Any], everyone: Sequence[Any]) -> Places:
    numbers = {item: number for number, item in enumerate(own)}
    return np.array([numbers.get(item, -1) for item in everyone], dtype=np.int64)


def _at(array: Array, places: Places, axis: int, missing: float = 0.0) -> Array:
    """Return the array with these indices along an axis; -1 selects the value `missing`.

    An axis of length 0, for which nothing is stored, is not changed.
    """
    if not array.shape[axis]:
        return array
    shape = list(array.shape)
    shape[axis] = 1
    filled = np.concatenate([array, np.full(shape, missing, dtype=array.dtype)], axis=axis)
    return np.take(filled, places, axis=axis)


class Mixture:
    """The arrays of a mixed learner, to which learners are added one after another.

    Parameters
    ----------
    blank : Learner
        An unfitted learner with the same parameters.
    everyone : Numbering
        The numbering of all learners.
    base : Learner or None
        The learner from which all learners started; None if they started unfitted.
    base_names : list of str or None
        Names of its features.
    """

    def __init__(
        self,
        blank: Learner,
        everyone: Numbering,
        base: Learner | None,
        base_names: list[str] | None,
    ) -> None:
        self.blank, self.everyone = blank, everyone
        self._centres: Arrays = {}
        self._base: Arrays = {}
        if base is not None:
            self._base = self._summable(self._aligned(base, base_names))
        self._found: Arrays = {}

    def add(self, learner: Learner, names: list[str] | None, share: float) -> None:
        """Add a learner.

        Parameters
        ----------
        learner : Learner
        names : list of str or None
            Names of its features.
        share : float
            The coefficient of its weights; all shares sum to 1.
        """
        for name, array in self._summable(self._aligned(learner, names)).items():
            self._found[name] = self._mixed(name, array, share)

    def _aligned(self, learner: Learner, names: list[str] | None) -> Arrays:
        own = Numbering.of(learner, names)
        return Alignment(learner, own, self.everyone).arrays()

    def _mixed(self, name: str, array: Array, share: float) -> Array:
        base, how = self._base.get(name), _mixed(name)
        if how == "mean":
            return np.asarray(self._found.get(name, 0.0) + share * array)
        if how == "largest":
            return np.asarray(np.maximum(self._found.get(name, array), array))
        if how == "first":
            found = self._found.get(name, array if base is None else base)
            return np.where(found[-1] > 0.5, found, array) if name == FIRSTS else found
        begun = np.zeros_like(array) if base is None else base
        return np.asarray(self._found.get(name, begun) + (array - begun))

    # ---- conversion to sums over rows ----------------------------------------------------------

    def _summable(self, arrays: Arrays) -> Arrays:
        """Return the arrays of a learner in a form in which each is mixed separately."""
        found = {name: array.astype(np.float64) for name, array in arrays.items()}
        n_trials, blank = named("counts", found)["n_trials"], self.blank
        for i in range(len(blank.parts)):
            weights, states = f"{WEIGHTS}.{i}", f"{STATES}.{i}"
            if states in found:  # the sum of the weights after each trial
                found[states] = n_trials * found[weights] - found[states][0]
            if SCALES in found:
                found[weights] *= self._units(found[SCALES])
        if "first" in blank.statistics:
            layer = blank.statistics.index("first")
            found[FIRSTS] = np.concatenate([found[SUMS][layer], found[TOTALS][layer, None]])
        for name in ("first", *DERIVED):
            if name in blank.statistics:
                layer = blank.statistics.index(name)
                found[SUMS][layer], found[TOTALS][layer] = 0, 0
        if "calibration" in found:
            found["calibration"] = _logged(found["calibration"])
        if self.blank.has_moments:
            self._add_up(found, "moments", found[AMOUNTS][:, None], *found.pop(MOMENTS))
            pooled = found[POOLED].T
            self._add_up(
                found, "pooled", found[TOTAL][0], pooled[POOLED_MEAN], pooled[POOLED_SQUARES]
            )
        self._condition(found)
        return found

    def _condition(self, found: Arrays) -> None:
        """Convert the statistics of preprocessing to sums or largest values."""
        if isinstance(self.blank.preprocessing, ZScores):
            self._add_up(found, "running", _n_known(found), *found.pop(PAST).T)
        elif isinstance(self.blank.preprocessing, Ranges):
            origin, lowest, highest = found.pop(PAST).T
            found[ORIGINS], found[EXTREMES] = origin, np.stack([-lowest, highest])

    def _units(self, scales: Array) -> Array:
        """Return the factors that make weights independent of the units of features."""
        power = 1 if self.blank.preconditioner.follows == "gradients" else 2
        return (np.where(scales > 0, scales, 1.0) ** power)[:, None]

    def _add_up(self, found: Arrays, name: str, n: Any, means: Array, squares: Array) -> None:
        """Convert means and squared deviations to sums about a centre shared by all learners."""
        centre = self._centres.setdefault(name, means)
        off = means - centre
        found[f"sums.{name}"] = n * off
        found[f"squares.{name}"] = squares + n * off * off

    # ---- conversion from sums ------------------------------------------------------------------

    def learner(self) -> Learner:
        """Return the mixed learner."""
        blank, everyone, found = self.blank, self.everyone, self._found
        n_virtual = blank.classes.n_virtual
        counted = named("counts", found)
        counted["n_classes"] = n_virtual + len(everyone.labels)
        found["counts"] = numbers_of(COUNTS, **counted)
        self._take_back(found)
        blank.classes.encode(everyone.labels)
        groups = [{group: number for number, group in enumerate(g)} for g in everyone.groups]
        memberships = [
            [
                *([] for _ in range(n_virtual)),
                *(
                    sorted(numbers[group] for group in members.get(label, []))
                    for label in everyone.labels
                ),
            ]
            if isinstance(part, Grouped)
            else blank.memberships[i]
            for i, (part, numbers, members) in enumerate(
                zip(blank.parts, groups, everyone.members, strict=True)
            )
        ]
        stored = {
            name: array.astype(number_type(field_of(name)[0])) for name, array in found.items()
        }
        blank.restore(stored, everyone.n_features, 0, groups, memberships)
        blank.recompute()
        return blank

    def _take_back(self, found: Arrays) -> None:
        """Convert arrays back to the form in which learners store them."""
        n_trials, blank = named("counts", found)["n_trials"], self.blank
        for i in range(len(blank.parts)):
            weights, states = f"{WEIGHTS}.{i}", f"{STATES}.{i}"
            if SCALES in found:
                found[weights] /= self._units(found[SCALES])
            if states in found:
                found[states] = (n_trials * found[weights] - found[states])[None]
        if FIRSTS in found:
            layer, first = blank.statistics.index("first"), found.pop(FIRSTS)
            found[SUMS][layer], found[TOTALS][layer] = first[:-1], first[-1]
        if "calibration" in found:
            found["calibration"] = _unlogged(found["calibration"])
        if RATES in found:
            rates = named(RATES, found)
            length = rates["scaled_length"]
            rates["gain"] = rates["n_scaled"] / length if length > 0 else 1.0
            found[RATES] = numbers_of(RATES_RECORD, **rates)
        if self.blank.has_moments:
            found[MOMENTS] = self._apart(found, "moments", found[AMOUNTS][:, None])
            pooled = self._apart(found, "pooled", found[TOTAL][0])
            found[POOLED][:, [POOLED_MEAN, POOLED_SQUARES]] = pooled.T
        if DIVISORS in found:
            found[DIVISORS][:] = 0  # recomputed
        if "sums.running" in found:
            found[PAST] = self._apart(found, "running", _n_known(found)).T
        if EXTREMES in found:
            lowest, highest = found.pop(EXTREMES)
            found[PAST] = np.stack([found.pop(ORIGINS), -lowest, highest], axis=1)

    def _apart(self, found: Arrays, name: str, n: Any) -> Array:
        """Return means and squared deviations from sums about a centre."""
        off = found.pop(f"sums.{name}") / np.where(n > 0, n, 1.0)
        squares = found.pop(f"squares.{name}") - n * off * off
        return np.stack([self._centres[name] + off, np.maximum(squares, 0.0)])


def _n_known(found: Arrays) -> Array:
    """Return the number of rows in which each feature was not missing."""
    return np.asarray(found[N_ROWS][0] - found[MISSING])


def field_of(name: str) -> tuple[Field, int]:
    """Return the field of an array of a learner, and the number of its part."""
    fields = fields_of(LearnerRecord)
    if name in fields:
        return fields[name], 0
    table, _, part = name.rpartition(".")
    return fields[table], int(part)


def _mixed(name: str) -> str:
    """Return how an array is mixed; sums that were converted belong to no field."""
    if name in CONVERTED or name.startswith(("sums.", "squares.")):
        return CONVERTED.get(name, "sum")
    return field_of(name)[0].mixed


def named(name: str, found: Arrays) -> dict[str, float]:
    """Return the numbers of a record by name."""
    return dict(zip(field_of(name)[0].dtype.names, found[name].tolist(), strict=True))


def numbers_of(record: np.dtype[Any], **numbers: float) -> Array:
    """Return the numbers of a record, with 0 for missing names."""
    return np.array([numbers.get(name, 0.0) for name in record.names or ()])


def _logged(calibration: Array) -> Array:
    """Return a calibration with the logarithm of its temperature, and its count at the end."""
    inverse, information, *others = calibration
    is_learnt = float(information > 0)
    return np.array([is_learnt * np.log(inverse), information, *others, is_learnt])


def _unlogged(calibration: Array) -> Array:
    logarithm, *others, is_learnt = calibration
    return np.array([np.exp(logarithm / is_learnt) if is_learnt > 0 else 1.0, *others])

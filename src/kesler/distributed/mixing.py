"""Mixing: one learner made of several that learnt apart, after they began as the same.

Weights are mixed by shares that sum to 1, and so is what their step sizes follow from: were that
added up, steps would shrink as if one learner had gone over all shards, and weights that were mixed
would lag behind (held-out errors after four epochs on eight shards of LETTER and Pendigits were
higher by 2 to 20 %). What is a sum over rows is added up: what each learner added to what all began
with. Classes, groups and features are numbered as they were met, one
learner after the other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.bank_machine import BankMachine
from kesler.classes import Label
from kesler.conditioning import Ranges, ZScores
from kesler.errors import KeslerError
from kesler.hypotheses import Grouped, Ordered, Part, PerClass
from kesler.kernel_machine import KernelMachine
from kesler.links import Linear
from kesler.machine import Machine

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Places = npt.NDArray[np.int64]

# Numbers of `counters`, of `metric_numbers`, of `calibration` and of `past` for ranges; columns of
# `statistics.pooled`: as `kesler.compiled` has them.
N_COUNTED, KNOWN = 2, 2
GAIN, N_SCALED, SCALED_LENGTH = 2, 3, 4
INFORMATION = 1
POOLED_COUNT, POOLED_MEAN, POOLED_SQUARES = 0, 1, 2


def require_mixable(machine: Any) -> None:
    """Raise a sentence that says why, if a learner's weights cannot be mixed."""
    if isinstance(machine, BankMachine):
        raise KeslerError(
            "a bank cannot be mixed, whose members are weighed by how they did on the same rows: "
            "learn each of them by itself"
        )
    if isinstance(machine, KernelMachine):
        raise KeslerError(
            f"{machine.kernel!r}: hypotheses over a kernel are sums over support vectors, which "
            "grow with every shard and have no mean of the same size: leave the kernel out"
        )
    reasons = {
        f"{machine.rule!r} moves weights by itself": machine.rule.update is not None,
        f"under {machine.link!r} a mean of weights follows from no sum": not isinstance(
            machine.link, Linear
        ),
        "half_life fades the past row by row, but rows of several shards come in no order": (
            machine.half_life is not None
        ),
        "ratings by sub-experts are not read from partitions": machine.takes_ratings,
        "thresholds of ranks that a shard has not met are nowhere": any(
            isinstance(part, Ordered) for part in machine.parts
        ),
    }
    for reason, holds in reasons.items():
        if holds:
            raise KeslerError(
                f"{reason}, so that parameters cannot be mixed: choose an update rule in the "
                "linear link, over features, that does not forget"
            )


@dataclass(frozen=True, eq=False)
class Numbering:
    """Who is who: labels, groups of each part and features, in the order of their numbers.

    Parameters
    ----------
    labels : list of labels
    groups : list of lists of groups, one a part
    members : list of mappings {label: groups}, one a part
    names : list of str or None
        Of the features; None if they are known by position.
    n_features : int
        The constant one among them.
    """

    labels: list[Label]
    groups: list[list[Hashable]]
    members: list[dict[Label, list[Hashable]]]
    names: list[str] | None
    n_features: int

    @classmethod
    def of(cls, machine: Machine, names: list[str] | None) -> Numbering:
        """Return that of one learner."""
        groups = [list(each) for each in machine.groups]
        n_virtual = machine.classes.n_virtual
        members = [
            {
                label: [groups[i][column] for column in columns]
                for label, columns in zip(
                    machine.classes.labels, machine.memberships[i][n_virtual:], strict=False
                )
            }
            for i in range(len(groups))
        ]
        return cls(list(machine.classes.labels), groups, members, names, machine.n_features)

    @classmethod
    def merged(cls, each: Sequence[Numbering], constant: bool) -> Numbering:
        """Return that of all, the first ones first."""
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
    """Where the numbers of one learner stand among those of all.

    Parameters
    ----------
    machine : Machine
    own, everyone : Numbering
    """

    def __init__(self, machine: Machine, own: Numbering, everyone: Numbering) -> None:
        n_virtual, constant = machine.classes.n_virtual, bool(machine.constant)
        self.machine, self.own, self.everyone = machine, own, everyone
        known = {label: n_virtual + number for number, label in enumerate(own.labels)}
        self.classes = np.array(
            [*range(n_virtual), *(known.get(label, -1) for label in everyone.labels)],
            dtype=np.int64,
        )
        self.features = _feature_places(own, everyone, constant)

    def arrays(self) -> Arrays:
        """Return what was learnt, as it would be by the numbers of all."""
        return {name: self._placed(name, array) for name, array in self.machine.arrays().items()}

    def _placed(self, name: str, array: Array) -> Array:
        kind, _, rest = name.partition(".")
        if kind in ("weights", "evidence", "states"):
            return self._hypotheses(kind, int(rest), array)
        if name in ("past", "scales", "statistics.pooled"):
            return _at(array, self.features, 0)
        if kind == "statistics":
            return _at(_at(array, self.features, 0), self.classes, 1)
        if kind == "totals":
            return _at(array, self.classes, 0)
        if kind == "moments":
            return _at(_at(array, self.features, 2), self.classes, 1)
        if kind == "amounts":
            return np.concatenate([array[:1], _at(array[1:], self.classes, 0)])
        return array

    def _hypotheses(self, kind: str, i: int, array: Array) -> Array:
        part = self.machine.parts[i]
        begins_at = getattr(part, "begins_at", 0.0) if kind == "weights" else 0.0
        return _at(_at(array, self.features, -2, begins_at), self._columns(part, i), -1)

    def _columns(self, part: Part, i: int) -> Places:
        if isinstance(part, PerClass):
            if self.machine.newcomers != "virtual":
                return self.classes
            # The last column is that of the virtual class, where classes begin.
            n_own = len(self.machine.classes)
            return np.append(np.where(self.classes < 0, n_own, self.classes), n_own)
        if isinstance(part, Grouped):
            return _places(self.own.groups[i], self.everyone.groups[i])
        return np.zeros(1, dtype=np.int64)


def _feature_places(own: Numbering, everyone: Numbering, constant: bool) -> Places:
    if own.names is None or everyone.names is None:
        numbers = np.arange(everyone.n_features)
        return np.where(numbers < own.n_features, numbers, -1)
    named = _places(own.names, everyone.names)
    # A learner may know of more names than it has met: these have no numbers in its arrays.
    numbers = np.where(named + constant < own.n_features, named + constant, -1)
    return np.concatenate([np.arange(int(constant)), np.where(named < 0, -1, numbers)])


def _places(own: Sequence[Any], everyone: Sequence[Any]) -> Places:
    numbers = {item: number for number, item in enumerate(own)}
    return np.array([numbers.get(item, -1) for item in everyone], dtype=np.int64)


def _at(array: Array, places: Places, axis: int, missing: float = 0.0) -> Array:
    """Return the array with these places of one axis; -1 stands for what is not there.

    An axis that is empty, since nothing of the kind is kept, stays so.
    """
    if not array.shape[axis]:
        return array
    shape = list(array.shape)
    shape[axis] = 1
    filled = np.concatenate([array, np.full(shape, missing, dtype=array.dtype)], axis=axis)
    return np.take(filled, places, axis=axis)


class Mixture:
    """What a mixed learner keeps, put together from learners that come one by one.

    Parameters
    ----------
    blank : Machine
        As all learners began, with nothing learnt.
    everyone : Numbering
        Of all.
    base : Machine or None
        What all began from, None for nothing learnt.
    base_names : list of str or None
        Of its features.
    """

    def __init__(
        self,
        blank: Machine,
        everyone: Numbering,
        base: Machine | None,
        base_names: list[str] | None,
    ) -> None:
        self.blank, self.everyone = blank, everyone
        self._centres: Arrays = {}
        self._base: Arrays = {}
        if base is not None:
            self._base = self._summable(self._aligned(base, base_names))
        self._found: Arrays = {}

    def add(self, machine: Machine, names: list[str] | None, share: float) -> None:
        """Mix one more learner in.

        Parameters
        ----------
        machine : Machine
        names : list of str or None
            Of its features.
        share : float
            What its weights count; all shares sum to 1.
        """
        for name, array in self._summable(self._aligned(machine, names)).items():
            self._found[name] = self._mixed(name, array, share)

    @property
    def _has_moments(self) -> bool:
        return "centre" in self.blank.statistics

    def _aligned(self, machine: Machine, names: list[str] | None) -> Arrays:
        own = Numbering.of(machine, names)
        return Alignment(machine, own, self.everyone).arrays()

    def _mixed(self, name: str, array: Array, share: float) -> Array:
        kind = name.partition(".")[0]
        if kind in ("weights", "evidence", "calibration"):
            return np.asarray(self._found.get(name, 0.0) + share * array)
        base = self._base.get(name)
        if kind in ("scales", "extremes"):
            return np.asarray(np.maximum(self._found.get(name, array), array))
        if kind == "firsts":
            found = self._found.get(name, array if base is None else base)
            return np.where(found[-1] > 0.5, found, array)
        if kind == "origins":
            return self._found.get(name, array if base is None else base)
        begun = np.zeros_like(array) if base is None else base
        return np.asarray(self._found.get(name, begun) + (array - begun))

    # ---- in a form in which sums over rows add up ----------------------------------------------

    def _summable(self, arrays: Arrays) -> Arrays:
        """Return the arrays of a learner so that each is mixed by itself."""
        found = {name: array.astype(np.float64) for name, array in arrays.items()}
        n_trials, blank = found["counters"][0], self.blank
        for i in range(len(blank.parts)):
            if f"states.{i}" in found:  # the sum of the weights after each trial
                found[f"states.{i}"] = n_trials * found[f"weights.{i}"] - found[f"states.{i}"][0]
            if blank.metric.unit == "features":
                found[f"weights.{i}"] *= self._units(found["scales"])
        if "statistics.first" in found:
            first = found.pop("statistics.first"), found.pop("totals.first")[None]
            found["firsts"] = np.concatenate(first)
        if "calibration" in found:
            found["calibration"] = _logged(found["calibration"])
        found.pop("divisors", None)
        if self._has_moments:
            amounts = found["amounts"]
            self._add_up(found, "moments", amounts[1:, None], *found.pop("moments"))
            pooled = found["statistics.pooled"].T
            self._add_up(found, "pooled", amounts[0], pooled[POOLED_MEAN], pooled[POOLED_SQUARES])
        self._condition(found)
        for derived in ("centre", "sharpness", "height"):
            found.pop(f"statistics.{derived}", None)
            found.pop(f"totals.{derived}", None)
        return found

    def _condition(self, found: Arrays) -> None:
        """Bring what conditioning keeps into the form of sums, or of largest values."""
        if isinstance(self.blank.conditioning, ZScores):
            self._add_up(found, "past", found["past_rows"][0], *found.pop("past").T)
        elif isinstance(self.blank.conditioning, Ranges):
            origin, lowest, highest = found.pop("past").T
            found["origins"], found["extremes"] = origin, np.stack([-lowest, highest])

    def _units(self, scales: Array) -> Array:
        """Return what weights are multiplied by to be the same in all units."""
        power = 1 if self.blank.metric.follows == "gradients" else 2
        return (np.where(scales > 0, scales, 1.0) ** power)[:, None]

    def _add_up(self, found: Arrays, name: str, n: Any, means: Array, squares: Array) -> None:
        """Replace means and squares about them by sums about a centre that is the same for all."""
        centre = self._centres.setdefault(name, means)
        off = means - centre
        found[f"sums.{name}"] = n * off
        found[f"squares.{name}"] = squares + n * off * off

    # ---- and back ------------------------------------------------------------------------------

    def machine(self) -> Machine:
        """Return the mixed learner."""
        blank, everyone, found = self.blank, self.everyone, self._found
        n_virtual = blank.classes.n_virtual
        found["counters"] = np.append(found["counters"][:N_COUNTED], [0, 0])
        found["counters"][KNOWN] = n_virtual + len(everyone.labels)
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
        blank.restore(found, everyone.n_features, 0, groups, memberships)
        blank.restate()
        return blank

    def _take_back(self, found: Arrays) -> None:
        """Bring arrays back into the form in which learners keep them."""
        n_trials, blank = found["counters"][0], self.blank
        for i in range(len(blank.parts)):
            if blank.metric.unit == "features":
                found[f"weights.{i}"] /= self._units(found["scales"])
            if f"states.{i}" in found:
                found[f"states.{i}"] = (n_trials * found[f"weights.{i}"] - found[f"states.{i}"])[
                    None
                ]
        if "firsts" in found:
            first = found.pop("firsts")
            found["statistics.first"], found["totals.first"] = first[:-1], first[-1]
        if "calibration" in found:
            found["calibration"] = _unlogged(found["calibration"])
        if "metric_numbers" in found:
            numbers = found["metric_numbers"]
            length = numbers[SCALED_LENGTH]
            numbers[GAIN] = numbers[N_SCALED] / length if length > 0 else 1.0
        if self._has_moments:
            amounts, pooled = found["amounts"], found["statistics.pooled"]
            found["moments"] = self._apart(found, "moments", amounts[1:, None])
            pooled[:, [POOLED_MEAN, POOLED_SQUARES]] = self._apart(found, "pooled", amounts[0]).T
        if "amounts" in found:
            found["divisors"] = np.zeros((4, 0))  # computed anew
        for name in self.blank.statistics:
            # What follows from others is computed anew, and has no sums.
            shape = (self.everyone.n_features, len(found["amounts"]) - 1) if name in DERIVED else ()
            if shape:
                found[f"statistics.{name}"] = np.zeros(shape)
                found[f"totals.{name}"] = np.zeros(shape[1])
        if "sums.past" in found:
            found["past"] = self._apart(found, "past", found["past_rows"][0]).T
        if "extremes" in found:
            lowest, highest = found.pop("extremes")
            found["past"] = np.stack([found.pop("origins"), -lowest, highest], axis=1)

    def _apart(self, found: Arrays, name: str, n: Any) -> Array:
        """Return means and squares about them, from sums about a centre."""
        off = found.pop(f"sums.{name}") / np.where(n > 0, n, 1.0)
        squares = found.pop(f"squares.{name}") - n * off * off
        return np.stack([self._centres[name] + off, np.maximum(squares, 0.0)])


DERIVED = ("centre", "sharpness", "height")


def _logged(calibration: Array) -> Array:
    """Return a calibration whose temperature is a logarithm, and what it counts beside it."""
    taught = float(calibration[INFORMATION] > 0)
    return np.array([taught * np.log(calibration[0]), *calibration[1:], taught])


def _unlogged(calibration: Array) -> Array:
    logarithm, *others, taught = calibration
    return np.array([np.exp(logarithm / taught) if taught > 0 else 1.0, *others])

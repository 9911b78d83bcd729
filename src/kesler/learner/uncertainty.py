r"""Uncertainty: the probability of a new class, confidence and prediction sets, learnt online.

Everything is computed before the target of a row is used, and learnt from this target.

**A new class.** The prior is a Bayesian mixture of nine estimates from arrivals, with n rows and k
classes so far, n1 of them of one row,

.. math:: \frac{n_1 + .5}{n + 1}, \; \frac{k + .5}{n + 1}, \; \frac{1 + .5 k}{1 + n}, \;
    \frac{1 + .3 k}{1 + n}, \; \frac{3}{3 + n}, \; \frac{e_h + .5}{w_h + 1}

the last with the numbers e of new classes and w of rows discounted by half-lives h of 30, 100, 300
and 1000 rows (Good 1953 and Krichevsky and Trofimov 1981 for the estimates), each kept within 1e-5
and .999. The evidence of a row are z(top), its highest score, and z(out), by how many standard
deviations that is above the mean of its scores, of three classes or more; z is the distance to the
mean over earlier rows in standard deviations, at most 4, and 0 before five rows or where a measure
is not defined; for an ensemble it is the mean over its members. With a memory of 1,000 rows, the
log-likelihood ratio L of the log distance to the nearest one is added, a logistic regression that
learns without new classes: each row of a class that is remembered is an example of one with the
rows of its class, and then of the other without them. The distance is in standard deviations of
features over all earlier rows (of those above 1e-15 and 1e-7 of the mean), divided by the number of
features, computed in float32; L is at most 6, and it is 0 and not learnt before five rows. The
probability is the Bayesian mixture of the prior, of

.. math:: \sigma(-.3 + 1.05 \operatorname{logit} p_0 - .7 z_{top} - .3 z_{out})

(-.5, -.2 and + .6 L with a memory), and of the regression that begins there and is learnt by an
extended Kalman filter (Penny and Roberts 1999, for logistic regression) from variances of .01. The
two mixtures share .002 and .0003 of their weights at each row (Herbster and Warmuth 1998). Before
the first row, the probability is 1; arrivals alone are learnt from it.

**Confidence**, the probability that the prediction is right, is

.. math:: \sigma(a + b \operatorname{logit}(p_1 (1 - p_{new})) + c \, z(s_1 - s_2))

of the probability p1 of the predicted class and of the lead of the highest score over the second,
with the initial values 0, 1 and .3, learnt by the same filter from variances of .1, to which a
drift of 1e-4 is added before each step. Probabilities are kept within 1e-4 and 1 - 1e-4
before their logit is taken, and those of regressions within 1e-6 and 1 - 1e-6.

**Prediction sets** contain the classes r, a new class among them, whose score

.. math:: v_r = \sum_{s: q_s > q_r} q_s + q_r / 2 +
    .04 \max(0, \min(12, \operatorname{rank}_r) - 2), \quad q_r = (1 - p_{new}) p_r, \;
    q_{new} = p_{new}

is at most a threshold, which moves by a step eta if the target y is outside and back if it is not:

.. math:: \tau \leftarrow \tau + \eta (1[v_y > \tau] - \alpha)

with alpha = 1 - coverage (Gibbs and Candes 2021; the scores follow Romano, Sesia and Candes 2020
and Angelopoulos et al. 2021), from tau = coverage, with eta = .06, .06, .08 and .3 for coverages of
.8, .9, .95 and .99. Of equal q, that of the class seen first counts as larger, and that of a new
class as least. Whatever the stream, the share of rows outside differs from alpha by at most
:math:`(B + \eta) / (\eta T)` after T rows, if no score is above B (Angelopoulos, Candes and
Tibshirani 2023, Proposition 1). As targets move the threshold at each row, it is for the next row
alone; rows without targets have the mean of the last thresholds, which also begins at the coverage,
with a weight of .005 for the last (with constant steps the threshold does not settle, see
Angelopoulos, Barber and Bates 2024). With thresholds by class, each class has an offset besides,
which moves in the same way with the rows of the class, by steps of .05.

For ranks, v is the probability of an interval before it takes the rank, and half of that of the
rank; the interval grows from the predicted rank and takes the likelier of its two neighbours, the
lower of equal ones. New ranks are neither in a set nor counted. For label sets, the set contains
the labels whose probability is above the threshold, and a row is outside if one of them is
irrelevant: these labels are surely relevant, all of them in a share `coverage` of the rows.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows
from kesler.errors import KeslerError, is_flag, number_of
from kesler.interrupts import Postponed
from kesler.learner.classes import ClassTable
from kesler.learner.targets import Answers, Kind
from kesler.state.capacity import enlarged, whole_lines
from kesler.state.fields import (
    Arrays,
    allocated,
    array_of,
    bind,
    checked,
    damaged,
    fields_of,
    put,
)
from kesler.state.uncertainty import (
    COVERAGES,
    CURRENT,
    LARGEST_SCORE,
    MEAN,
    MOST_REMEMBERED,
    Uncertainties,
)

Doubles = npt.NDArray[np.float64]
Use = Literal["auto", "full"] | bool
"""The values of the parameter `uncertainty` of estimators."""

NO_INPUTS = np.empty((0, 0), dtype=np.float32)
NO_TRACES = np.empty((0, 0))
# The initial weights of the two regressions, without a memory and with one, and variances.
NEW_CLASS = (-0.3, 1.05, -0.7, -0.3, 0.0), (-0.3, 1.05, -0.5, -0.2, 0.6)
CONFIDENCE_WEIGHTS = (0.0, 1.0, 0.3)
NEW_CLASS_VARIANCE, CONFIDENCE_VARIANCE, DISTANCE_VARIANCE = 0.01, 0.1, 1.0


_OF_THIS_PROCESS = ("_arguments", "loop")


@dataclass(frozen=True, slots=True)
class Assessment:
    """What is said of rows before their targets are known.

    Parameters
    ----------
    predictions : int32 array of shape (n_rows,), the predicted classes.
    probabilities : array of shape (n_rows, 2 + n_classes), those of classes from column 2 on.
    new : array of shape (n_rows,), the probability of a new class.
    confidence : array of shape (n_rows,), the probability that the prediction is right.
    """

    predictions: npt.NDArray[np.int32]
    probabilities: Doubles
    new: Doubles
    confidence: Doubles

    @staticmethod
    def concatenate(pieces: list[Assessment]) -> Assessment:
        """Concatenate what is said of blocks of rows."""
        if len(pieces) == 1:
            return pieces[0]
        names = ("predictions", "probabilities", "new", "confidence")
        return Assessment(*(np.concatenate([getattr(each, n) for each in pieces]) for n in names))

    @property
    def with_new(self) -> Doubles:
        """The probabilities of the known classes and, in the last column, of a new one."""
        known = (1 - self.new[:, None]) * self.probabilities[:, 2:]
        return np.column_stack([known, self.new])


@dataclass(frozen=True, slots=True)
class Judged:
    """What was said of rows whose classes are known, a few numbers for each row.

    Parameters
    ----------
    predictions : int32 array of shape (n_rows,), the predicted classes.
    confidences : array of shape (n_rows,), the probability that the prediction is right, or without
        estimates of uncertainty that of the predicted class.
    of_targets : array of shape (n_rows,), the probability of the class of the row, NaN if unknown.
    places : int32 array of shape (n_rows,), the place of this class by score, 0 if unknown.
    """

    predictions: npt.NDArray[np.int32]
    confidences: Doubles
    of_targets: Doubles
    places: npt.NDArray[np.int32]

    @staticmethod
    def concatenate(pieces: list[Judged]) -> Judged:
        """Concatenate what was said of parts of the rows."""
        names = ("predictions", "confidences", "of_targets", "places")
        return Judged(*(np.concatenate([getattr(each, n) for each in pieces]) for n in names))


@dataclass(frozen=True, slots=True)
class SetRequest:
    """Which prediction sets are asked for.

    Parameters
    ----------
    coverage, by_class, allow_empty : as for `predict_set` of estimators.
    is_next : whether the row is the next one of the stream, whose target follows.
    """

    coverage: float
    by_class: bool = False
    allow_empty: bool = True
    is_next: bool = False

    @property
    def column(self) -> int:
        """The column of the thresholds: the present ones, or their means."""
        return CURRENT if self.is_next else MEAN


class Uncertainty:
    """Estimates of how sure the predictions of a learner are.

    Parameters
    ----------
    answer : the kind of target: "class", "rank" or "sets".
    n_members : number of learners whose scores are evidence.
    remembers : whether the last rows are remembered, for their distances; dense rows only.
    """

    def __init__(self, answer: Kind, n_members: int = 1, *, remembers: bool = False) -> None:
        self.answer, self.n_members = answer, n_members
        self.is_of_classes, self.is_of_others = answer != "sets", answer != "class"
        self.remembers = remembers
        self._capacity, self.n_classes, self.n_inputs = 0, 0, 0
        self.stored = allocated(fields_of(Uncertainties), self, self._lengths(whole=True))
        self._begin()

    def _begin(self) -> None:
        """Write initial values other than 0."""
        stored = self.stored
        if self.is_of_others:
            stored["others"].T[:] = COVERAGES
        if not self.is_of_classes:
            return
        stored["thresholds"].T[:] = stored["by_class"].T[:] = COVERAGES
        stored["arrivals.priors"][:] = 1 / len(stored["arrivals.priors"])
        stored["mixed"][:] = 1 / 3
        stored["new_class"][:], stored["confidence"][:] = (
            NEW_CLASS[self.remembers],
            CONFIDENCE_WEIGHTS,
        )
        np.fill_diagonal(stored["new_class_covariance"], NEW_CLASS_VARIANCE)
        np.fill_diagonal(stored["confidence_covariance"], CONFIDENCE_VARIANCE)
        if self.remembers:
            np.fill_diagonal(stored["memory.covariance"], DISTANCE_VARIANCE)

    # ---- capacity and saving ----------------------------------------------------------------

    def _lengths(self, *, whole: bool) -> dict[str, int]:
        """Return the lengths of the axes of the arrays, or of what a model file holds of them."""
        n_rows = int(self.stored["memory.counts"]["n_rows"][0]) if not whole else MOST_REMEMBERED
        return {
            "class": self._capacity if whole else self.n_classes,
            "member": self.n_members,
            "slot": min(n_rows, MOST_REMEMBERED),
            "input": whole_lines(self.n_inputs) if whole else self.n_inputs,
        }

    def reserve(self, n_classes: int, n_inputs: int = 0) -> None:
        """Provide capacity for classes and, with a memory, for features."""
        n_inputs = max(self.n_inputs, n_inputs if self.remembers else 0)
        capacity = enlarged(self._capacity, n_classes)
        if (capacity, n_inputs) != (self._capacity, self.n_inputs):
            with Postponed():
                former = self.stored
                self._capacity, self.n_inputs = capacity, n_inputs
                fields = fields_of(Uncertainties)
                self.stored = allocated(fields, self, self._lengths(whole=True))
                for name, array in former.items():
                    self.stored[name][tuple(map(slice, array.shape))] = array
                self.__dict__.pop("_arguments", None)
        self.n_classes = max(self.n_classes, n_classes)

    @property
    def _fields(self) -> dict[str, Any]:
        """The stored fields by name."""
        fields = fields_of(Uncertainties)
        return {name: field for name, field in fields.items() if field.exists(self)}

    def arrays(self) -> Arrays:
        """Return copies of the arrays in use, which a model file stores."""
        lengths, found = self._lengths(whole=False), {}
        for name, field in self._fields.items():
            in_use = (axis if isinstance(axis, int) else lengths[axis] for axis in field.axes)
            array = self.stored[name]
            found[f"uncertainty.{name}"] = np.array(
                array[tuple(map(slice, in_use))] if field.axes else array_of(array), order="C"
            )
        return found

    def restore(self, arrays: Arrays, n_classes: int, n_inputs: int) -> None:
        """Restore what `arrays` returned.

        Raises
        ------
        KeslerError
            If an array is missing, has another dtype or shape, or holds invalid values.
        """
        self.reserve(n_classes, n_inputs)
        lengths = self._lengths(whole=False)
        if self.remembers:
            only = {name: f for name, f in self._fields.items() if name == "memory.counts"}
            counts = checked(only, self, lengths, arrays, "uncertainty.")
            lengths["slot"] = min(MOST_REMEMBERED, int(counts["memory.counts"][0]))
        stored = checked(self._fields, self, lengths, arrays, "uncertainty.")
        _require_sound(stored)
        for name, array in stored.items():
            put(array, self.stored[name])

    def limit_thresholds(self) -> None:
        """Lower the thresholds of earlier versions, whose scores had no bound, to the largest."""
        for name in self.stored.keys() & {"thresholds", "by_class"}:
            np.minimum(self.stored[name], LARGEST_SCORE, out=self.stored[name])

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without those that are valid in this process only."""
        return {name: value for name, value in vars(self).items() if name not in _OF_THIS_PROCESS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copy the arrays, which may be a read-only memory map."""
        vars(self).update(state)
        self.stored = {name: array.copy() for name, array in self.stored.items()}

    @cached_property
    def _arguments(self) -> Any:
        """The state as compiled code takes it."""
        from kesler.compiled.jit.pointers import KernelArguments
        from kesler.compiled.trial.uncertainty import write_arguments

        return KernelArguments(write_arguments, bind(Uncertainties, self.stored))

    @cached_property
    def loop(self) -> Any:
        """The kernel that learns from rows."""
        from kesler.compiled.trial.uncertainty import observe

        return observe

    # ---- rows -------------------------------------------------------------------------------

    def inputs_of(self, rows: Any) -> npt.NDArray[np.float32]:
        """Return the features of rows for the memory; none without one."""
        if not self.remembers:
            return NO_INPUTS
        given = rows if isinstance(rows, Rows) else rows.rows
        given = given if given.measured is None else given.measured
        if given.dense:
            return np.ascontiguousarray(given.values.reshape(len(given), given.n_features))
        table = np.zeros((len(given), given.n_features), dtype=np.float32)
        table[np.repeat(np.arange(len(given)), np.diff(given.indptr)), given.indices] = given.values
        return table

    def observe(
        self,
        n_known: int,
        scores: npt.NDArray[np.float32],
        probabilities: Doubles,
        predictions: npt.NDArray[np.int32],
        codes: npt.NDArray[np.int32],
        inputs: npt.NDArray[np.float32] = NO_INPUTS,
        traces: Doubles = NO_TRACES,
    ) -> None:
        """Learn from rows and their classes, given what was said of them before.

        Parameters
        ----------
        n_known : number of classes known before the first row.
        scores : array of shape (n_members, n_rows, n_classes).
        probabilities : array of shape (n_rows, 2 + n_classes).
        predictions, codes : int32 arrays of shape (n_rows,), the predicted classes and the targets.
        inputs : array of shape (n_rows, n_features), for the memory.
        traces : array of shape (n_rows, n_traced) that receives what was said of each row; see
            :mod:`kesler.state.uncertainty`.
        """
        self.reserve(scores.shape[2], inputs.shape[1])
        self.loop(
            self._arguments.address,
            n_known,
            scores,
            probabilities,
            predictions,
            codes,
            inputs,
            traces,
        )
        # Those of rows that were not learnt, after a fault, have been provided for but are unknown.
        self.n_classes = max(n_known, int(codes.max(initial=-1)) + 1)

    def observe_compared(
        self, n_known: int, said: Any, codes: npt.NDArray[np.int32], traces: Doubles
    ) -> None:
        """Learn from rows and their classes, given what was said of their candidates before.

        Parameters
        ----------
        n_known, codes, traces : as for `observe`.
        said : what was said, at an address; see :class:`kesler.state.candidates.Compared`.
        """
        from kesler.compiled.candidates.observing import observe

        self.reserve(max(n_known, int(codes.max(initial=-1)) + 1))
        few = self._few(said.arrays.classes.shape[1])
        addresses = self._arguments.address, few.address
        observe(*addresses, n_known, said.address, codes, traces)

    def _few(self, n_classes: int) -> Any:
        """Return the state with offsets of a few classes, at an address for compiled code."""
        from kesler.compiled.jit.pointers import KernelArguments
        from kesler.compiled.trial.uncertainty import write_arguments

        offsets = np.zeros((n_classes, len(COVERAGES)))
        return KernelArguments(
            write_arguments, bind(Uncertainties, self.stored | {"offsets": offsets})
        )

    def tell_compared(self, n_known: int, said: Any, found: Doubles) -> None:
        """Write the probability of a new class and the confidence of rows, given what is said."""
        from kesler.compiled.candidates.observing import tell

        tell(self._arguments.address, n_known, said.address, found)

    def observe_event(
        self,
        classes: ClassTable,
        task: Any,
        scores: npt.NDArray[np.float32],
        inputs: npt.NDArray[np.float32],
    ) -> None:
        """Learn from one row of a known class, given the arrays of its trial."""
        n_known = len(classes)
        if n_known > self.n_classes:  # the first row of a class ended with an error
            self.reserve(n_known)
        said, code = (task.probabilities, task.predictions), task.encoded.codes
        address = self._arguments.address
        self.loop(address, n_known, scores, *said, code, inputs, NO_TRACES)
        if self.answer == "rank":
            self.observe_ranks(n_known, *said, code, np.array(classes.order, dtype=np.int64))

    def observe_ranks(
        self,
        n_known: int,
        probabilities: Doubles,
        predictions: npt.NDArray[np.int32],
        codes: npt.NDArray[np.int32],
        order: npt.NDArray[np.int64],
        traces: Doubles = NO_TRACES,
    ) -> None:
        """Learn from rows and their ranks; `order` lists the classes in the order of ranks."""
        from kesler.compiled.trial.other_sets import observe_ranks

        thresholds = self.stored["others"]
        observe_ranks(thresholds, n_known, probabilities, predictions, codes, order, traces)

    def observe_labels(
        self, n_known: int, probabilities: Doubles, answers: Answers, traces: Doubles = NO_TRACES
    ) -> None:
        """Learn from rows and their label sets, of which label 0 is the threshold."""
        from kesler.compiled.trial.other_sets import observe_labels

        thresholds, named = self.stored["others"], (answers.indptr, answers.codes)
        observe_labels(thresholds, 1, n_known, probabilities, *named, answers.levels, traces)

    def observe_labels_compared(self, said: Any, n_rows: int, traces: Doubles) -> None:
        """Learn from rows and their label sets, given what was said of their candidates before."""
        from kesler.compiled.candidates.observing import observe_labels

        observe_labels(self.stored["others"], said.address, n_rows, traces)

    # ---- answers ----------------------------------------------------------------------------

    def assess(
        self,
        scores: npt.NDArray[np.float32],
        probabilities: Doubles,
        predictions: npt.NDArray[np.int32],
        inputs: npt.NDArray[np.float32],
    ) -> Assessment:
        """Return the probability of a new class and the confidence of rows; see `observe`."""
        from kesler.compiled.trial.uncertain_answers import tell

        found = np.empty((len(predictions), 2))
        address = self._arguments.address
        tell(address, scores, probabilities, predictions, inputs, found)
        return Assessment(predictions, probabilities, found[:, 0].copy(), found[:, 1].copy())

    def bound(self, ask: SetRequest) -> float:
        """Return the threshold of intervals of ranks, or of sets of labels."""
        return interpolated(self.stored["others"][:, ask.column], ask.coverage)

    def bounds(self, ask: SetRequest) -> Doubles:
        """Return the threshold of each class, and last that of a new class."""
        n, stored = self.n_classes, self.stored
        if not ask.by_class:
            bound = interpolated(stored["thresholds"][:, ask.column], ask.coverage)
            return np.full(n + 1, bound)
        offsets = np.vstack([stored["offsets"][:n], stored["of_new"]])
        found = stored["by_class"][:, ask.column] + offsets
        return np.array([interpolated(each, ask.coverage) for each in found])

    def classes_in_sets(self, said: Assessment, ask: SetRequest) -> npt.NDArray[np.bool_]:
        """Return whether each class, and last a new one, is in the set of each row."""
        from kesler.compiled.trial.uncertain_answers import choose

        chosen = np.zeros((len(said.new), self.n_classes + 1), dtype=np.bool_)
        choose(said.probabilities, said.new, self.bounds(ask), ask.allow_empty, chosen)
        return chosen

    def ranks_in_intervals(
        self, said: Assessment, order: list[int], ask: SetRequest
    ) -> npt.NDArray[np.bool_]:
        """Return whether each class is in the interval of each row, given the order of ranks."""
        from kesler.compiled.trial.other_sets import choose_ranks

        chosen = np.zeros((len(said.predictions), len(order)), dtype=np.bool_)
        ranks, bound = np.array(order, dtype=np.int64), self.bound(ask)
        choose_ranks(said.probabilities, said.predictions, ranks, bound, ask.allow_empty, chosen)
        return chosen


def _require_sound(stored: Arrays) -> None:
    """Raise unless weights of estimates sum to 1, and counts and variances are not negative."""
    for name in stored.keys() & {"arrivals.priors", "mixed"}:
        if abs(stored[name].sum() - 1) > 1e-6:
            raise damaged(f"uncertainty.{name} holds weights that do not sum to 1")
    for name, columns in {"spread": [0, 2], "memory.moments": [1]}.items():
        if name in stored and (stored[name][..., columns] < 0).any():
            raise damaged(f"uncertainty.{name} holds counts or squares below 0")


def interpolated(thresholds: Doubles, coverage: float) -> float:
    """Return the threshold for a coverage between or above those that are tracked.

    It is interpolated linearly, up to at least 1 at coverage 1.

    Examples
    --------
    >>> tracked = np.array([0.5, 0.8, 0.9, 0.98])
    >>> interpolated(tracked, 0.9), interpolated(tracked, 0.85).__round__(3)
    (0.8, 0.65)
    >>> interpolated(tracked, 0.995).__round__(3)
    0.99
    """
    if coverage in COVERAGES:
        return float(thresholds[COVERAGES.index(coverage)])
    points, values = [*COVERAGES, 1.0], [*thresholds, max(1.0, thresholds[-1])]
    i = bisect.bisect(points, coverage)
    share = (coverage - points[i - 1]) / (points[i] - points[i - 1])
    return float(values[i - 1] + share * (values[i] - values[i - 1]))


def require_coverage(coverage: Any) -> float:
    """Return a coverage as a float; raise unless it is a number from 0.8 to below 1.

    Between thresholds that are tracked, others are interpolated well; below the smallest they
    would cover far fewer rows than asked for.
    """
    why = ": it is the share of rows whose target is in the set, such as 0.9"
    return number_of("coverage", coverage, why, least=COVERAGES[0], below=1)


def require_confidence(least: Any) -> float:
    """Return the least confidence of an answer; raise unless it is a number from 0 to 1."""
    why = ": rows whose prediction is right with a lower probability are not answered"
    return number_of("min_confidence", least, why, least=0, most=1)


def require_use(use: Any) -> Use:
    """Return a value of the parameter `uncertainty`; raise unless it is a valid one."""
    if is_flag(use):
        return bool(use)
    if isinstance(use, str) and use in ("auto", "full"):
        return "auto" if use == "auto" else "full"
    raise KeslerError(
        f'uncertainty={use!r} is unknown: choose "auto", which estimates it for default settings, '
        'True, "full", which remembers 1,000 rows besides, or False'
    )

"""The results of the study of defaults, and the sets that its means are over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from groups import mean_over
from guarantees import Guarantee
from judging import Errors
from kesler.evaluation.results import ProgressiveResult
from peer import Wrong
from sets import GROUPS, SHOWN, RealSet

VW, TUNED, KERNEL = "VW default", "VW best of 9", "RBF, untuned"
THIRTY = "the 30 sets shown"
DENSE = ("dense", "table")
"""The kinds of rows that count as measurements in the means."""

Figures = dict[str, dict[str, float]]
"""Values by learner and set."""


@dataclass
class Study:
    """The results.

    Parameters
    ----------
    errors : mapping of learner to % mistakes by set
        In the order of learning that each set has; also of peers.
    spread : mapping of learner to % mistakes by set, one for each random order
    calibration, log_loss : mapping of learner to the error of its probabilities by set
    seconds : mapping of learner to processor seconds by set
    p_values : mapping of set to p
        McNemar's test of the default against Vowpal Wabbit's default.
    n_rows : mapping of learner to the number of rows by set
    guarantees : list of Guarantee
        What is guaranteed of each run of an ensemble.
    """

    errors: Figures = field(default_factory=dict)
    spread: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    calibration: Figures = field(default_factory=dict)
    log_loss: Figures = field(default_factory=dict)
    seconds: Figures = field(default_factory=dict)
    p_values: dict[str, float] = field(default_factory=dict)
    n_rows: dict[str, dict[str, int]] = field(default_factory=dict)
    guarantees: list[Guarantee] = field(default_factory=list)

    def note(self, learner: str, name: str, wrong: Wrong, order: int = 0) -> None:
        """Store the share of mistakes of a run."""
        error = 100 * float(wrong.mean())
        if order == 0:
            self.errors.setdefault(learner, {})[name] = error
            self.n_rows.setdefault(learner, {})[name] = len(wrong)
        else:
            self.spread.setdefault(learner, {}).setdefault(name, []).append(error)

    def note_result(
        self, learner: str, name: str, result: ProgressiveResult, seconds: float
    ) -> None:
        """Store a run in the first order, its probabilities and its processor time."""
        self.note(learner, name, np.asarray(result.wrong))
        self.note_seconds(learner, name, seconds)
        self.note_probabilities(learner, name, result.log_loss, result.calibration_error)

    def note_seconds(self, learner: str, name: str, seconds: float) -> None:
        """Store the processor time of a run."""
        self.seconds.setdefault(learner, {})[name] = seconds

    def note_probabilities(
        self, learner: str, name: str, log_loss: float, calibration_error: float
    ) -> None:
        """Store the errors of the probabilities of a run."""
        self.log_loss.setdefault(learner, {})[name] = float(log_loss)
        self.calibration.setdefault(learner, {})[name] = float(calibration_error)

    def mean(self, learner: str, reference: str, sets: Iterable[RealSet]) -> float | None:
        """Return the geometric mean of the errors relative to another learner.

        None if one of the two did not run on each of the sets.
        """
        return mean_of_both(self.errors, learner, reference, names_of(sets))

    def n_lower(self, learner: str, reference: str, sets: Iterable[RealSet]) -> int:
        """Return on how many sets a learner makes fewer mistakes than another."""
        ours, theirs = self.errors[learner], self.errors[reference]
        return sum(ours[name] < theirs[name] for name in names_of(sets))

    def run_by(self, learner: str, sets: Iterable[RealSet]) -> list[RealSet]:
        """Return the sets that a learner ran on."""
        return [each for each in sets if each.name in self.errors.get(learner, {})]

    def ratio_of_times(self, learner: str, reference: str, sets: Iterable[RealSet]) -> float:
        """Return the processor time of a learner, divided by that of another, on sets of both."""
        ours, theirs = self.seconds.get(learner, {}), self.seconds.get(reference, {})
        both = [name for name in names_of(sets) if name in ours and name in theirs]
        return sum(ours[name] for name in both) / max(1e-9, sum(theirs[name] for name in both))

    def microseconds(self, learner: str, sets: Iterable[RealSet]) -> float | None:
        """Return the processor time per row over the sets that a learner ran on."""
        seconds = self.seconds.get(learner, {})
        names = [name for name in names_of(sets) if name in seconds]
        n_rows = sum(self.n_rows[learner][name] for name in names)
        return 1e6 * sum(seconds[name] for name in names) / n_rows if n_rows else None

    def stored(self) -> dict[str, Any]:
        """Return the results for a JSON file."""
        return asdict(self)


def mean_of_both(
    figures: Mapping[str, Errors], learner: str, reference: str, names: Sequence[str]
) -> float | None:
    """Return a geometric mean relative to another learner; None if one lacks one of the sets.

    Examples
    --------
    >>> figures = {"A": {"x": 1.0, "y": 8.0}, "B": {"x": 2.0, "y": 4.0, "z": 1.0}}
    >>> mean_of_both(figures, "A", "B", ["x", "y"]), mean_of_both(figures, "A", "B", ["x", "z"])
    (1.0, None)
    """
    ours, theirs = figures.get(learner, {}), figures.get(reference, {})
    if not names or any(name not in ours or name not in theirs for name in names):
        return None
    return mean_over(ours, names, theirs)


def names_of(sets: Iterable[RealSet]) -> list[str]:
    """Return the names of sets."""
    return [each.name for each in sets]


def scopes(sets: Sequence[RealSet]) -> dict[str, list[RealSet]]:
    """Return the sets that means are over: the first 23, the 30 of the first studies, and all."""
    first = [each for each in sets if each.published]
    shown = [each for each in sets if each in SHOWN]
    found = {"the 23 first sets": first, THIRTY: shown, "all sets": list(sets)}
    return {scope: part for scope, part in found.items() if part}


def kinds(sets: Iterable[RealSet]) -> dict[str, list[RealSet]]:
    """Return all sets, those of text, and those of measurements."""
    sets = list(sets)
    found = {
        "all": sets,
        "text": [each for each in sets if each.kind == "text"],
        "measurements": [each for each in sets if each.kind in DENSE],
    }
    return {kind: part for kind, part in found.items() if part}


def grouped(sets: Iterable[RealSet]) -> dict[str, list[str]]:
    """Return the names of the sets of each group."""
    sets = list(sets)
    found = {group: names_of(s for s in sets if s.group == group) for group in GROUPS}
    return {group: names for group, names in found.items() if names}

"""What the parts of a learner require of its state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from kesler.codes import Statistic
from kesler.costs import Costs
from kesler.errors import KeslerError
from kesler.hypotheses import Part, Shared
from kesler.learner.classes import OnNewClass
from kesler.learner.targets import Decision, Kind
from kesler.links.link import Linear, Link
from kesler.maps.feature_map import FeatureMap
from kesler.maps.gaussian import GaussianRatio
from kesler.updates.rule import UpdateRule

_GAUSSIAN = ("centre", "sharpness", "height")
STATISTICS = tuple(each.name.lower().replace("_", " ") for each in Statistic)
"""The statistics of each class, in the order of their layers."""


class Requirements:
    """The arrays and sizes that follow from the parts of a learner alone.

    Attributes
    ----------
    statistics : the names of the statistics of classes that the maps require.
    """

    parts: list[Part]
    rule: UpdateRule
    answer: Kind
    link: Link
    averaged: bool
    on_new_class: OnNewClass
    statistics: list[str]
    costs: Costs | None
    decision: Decision
    explores: ClassVar[bool] = False  # whether it is told only whether the class shown is right

    @property
    def has_full_feedback(self) -> bool:
        """Whether a rule of feedback keeps a matrix over all pairs of class and feature."""
        return self.rule.second_moments == "matrix"

    @property
    def has_diagonal_feedback(self) -> bool:
        """Whether a rule of feedback keeps the diagonal of such a matrix."""
        return self.rule.second_moments == "diagonal"

    @property
    def has_moments(self) -> bool:
        """Whether a map reads means and variances of the features of each class."""
        return "centre" in self.statistics

    @property
    def has_order(self) -> bool:
        """Whether classes are ranks."""
        return self.answer == "rank"

    @property
    def is_calibrated(self) -> bool:
        """Whether probabilities of classes are learnt."""
        return self.answer in ("class", "rank", "costs")

    @property
    def has_sets(self) -> bool:
        """Whether targets are label sets, and probabilities of labels are learnt."""
        return self.answer == "sets"

    @property
    def margin_costs(self) -> Costs | None:
        """The costs that margins are proportional to; those of a tree may only affect decisions."""
        return None if self.decision == "distance" else self.costs

    @property
    def has_costs(self) -> bool:
        """Whether targets are costs of classes."""
        return self.answer == "costs"

    @property
    def is_normalised(self) -> bool:
        """Whether the link divides all weights by a scale."""
        return self.link.normalised and self.rule.update is None

    @property
    def n_pooled(self) -> int:
        """Number of statistics of each feature over all rows that the maps require."""
        return 6 if self.has_moments else int("contrast" in self.statistics)

    @cached_property
    def n_virtual(self) -> int:
        """Number of virtual classes, which have weights but no instances."""
        return int(self.on_new_class == "inherit")

    @property
    def n_states(self) -> int:
        """Number of additional values stored for each weight."""
        if isinstance(self.link, Linear):
            return max(self.rule.n_states, int(self.averaged))
        return 3 if self.averaged else 1

    @property
    def has_scaled_means(self) -> bool:
        """Whether the means of weights are computed that a link scales in every trial."""
        return self.averaged and self.is_normalised

    def _require_linear_beginning(self) -> None:
        """Raise if `begins_at` is used with a link or an algorithm, which sets initial weights."""
        begun = [part for part in self.parts if isinstance(part, Shared) and part.begins_at]
        if not begun:
            return
        if not isinstance(self.link, Linear):
            raise KeslerError(
                f"{begun[0]!r}: {self.link!r} sets all initial weights: leave "
                "begins_at out, or choose the linear link"
            )
        if self.rule.update is not None:
            raise KeslerError(
                f"{begun[0]!r}: {self.rule!r} sets all initial weights: leave "
                "begins_at out, or choose an update rule"
            )


def layers_of(statistic: str) -> tuple[str, ...]:
    """Return the statistics stored for a map that requires this one, which comes first."""
    if statistic == "moments":
        return _GAUSSIAN
    return ("mean", "rounded off") if statistic == "mean" else (statistic,)


def smoothing_of(maps: Sequence[FeatureMap]) -> list[float]:
    """Return the shrinkage and floor of variances, and the pseudo-rows of counts, of all maps."""
    variances = {(m.shrinkage, m.floor) for m in maps if isinstance(m, GaussianRatio)}
    pseudo = {getattr(m, "smoothing", 0.0) for m in maps if m.statistic == "contrast"}
    if len(variances) > 1 or len(pseudo) > 1:
        raise KeslerError(
            "the maps of the hypotheses differ in shrinkage, floor or smoothing, but their "
            "statistics are stored once: give all GaussianRatio, and all maps of contrasts, the "
            "same values"
        )
    shrinkage, floor = variances.pop() if variances else (0.0, 0.0)
    return [shrinkage, floor, pseudo.pop() if pseudo else 0.0]

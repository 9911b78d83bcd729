"""Learners in compiled code: the records that kernels take, and the kernels for a learner."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler import codes
from kesler.codes import code_of
from kesler.hypotheses import Part, PerClass
from kesler.learner.requirements import layers_of
from kesler.learner.user_functions import LearnerWithFunctions
from kesler.links.link import CustomLink, Linear
from kesler.maps.feature_map import FeatureMap
from kesler.parts.constraints import requirement_code, selection_code
from kesler.parts.user_part import UserPart, followed_by_word
from kesler.state.capacity import aligned_zeros
from kesler.state.fields import bind, converted
from kesler.state.records import LearnerRecord

if TYPE_CHECKING:
    from types import ModuleType


class BoundLearner(LearnerWithFunctions):
    """The state of a learner as records for compiled code, and its kernels."""

    @cached_property
    def _kernels(self) -> ModuleType:
        # Imported on first use: Numba takes longer to import than the rest of Kesler.
        if self.sparse is not None:
            from kesler.compiled.weights import sparse_trial

            return sparse_trial
        from kesler.compiled.trial import weight_trial

        return weight_trial

    @cached_property
    def _record(self) -> Any:
        """The record that compiled code reads and updates."""
        return bind(LearnerRecord, self._values)

    @property
    def _values(self) -> dict[str, Any]:
        self._try_out_functions()
        described = self._described_parts() | self._described_weights()
        return self.stored | self._settings | self._described_expansion() | described

    def _described_weights(self) -> dict[str, Any]:
        """Return the record of the weights, or the computed arrays that complete a table."""
        if self.sparse is not None:
            return {"weights": self.sparse.bound()}
        weights, states = self.stored["weights.values"], self.stored["weights.states"]
        views = {
            "weights.flat": weights.reshape(-1),
            "weights.flat_states": states.reshape(len(states), weights.size),
            "weights.initial": [part.begins_at for part in self.parts],
            "weights.given_sums": np.zeros(self._feature_capacity if self.takes_ratings else 0),
        }
        return converted(LearnerRecord, views)

    @cached_property
    def _settings(self) -> dict[str, Any]:
        """The settings of the record, which depend on the parameters of the learner only."""
        shrinkage, floor, pseudo_rows = self._smoothing
        half_life = self.half_life
        settings = {
            "settings.on_new_class": code_of(codes.NewClass, self.on_new_class),
            "settings.is_calibrated": self.is_calibrated,
            "settings.decision": code_of(codes.Decision, self.decision),
            "settings.has_sets": self.has_sets,
            "settings.has_costs": self.has_costs,
            "settings.ends_at_faults": self.ends_at_faults and self._has_functions,
            "settings.predictor": 0,
            "statistics.kinds": [code_of(codes.Statistic, s) for s in self.statistics],
            "statistics.shrinkage": shrinkage,
            "statistics.floor": floor,
            "statistics.pseudo_rows": pseudo_rows,
            "statistics.prior": self.constant,
            "decay.growth": 1.0 if half_life is None else 2.0 ** (1 / half_life),
            "parts.map_parameters": [map_parameters(part) for part in self.parts],
            **self._described_rule(),
            **self._described_geometry(),
            **self._described_exploration(),
        }
        return converted(LearnerRecord, settings)

    def _described_parts(self) -> dict[str, Any]:
        starts, members = self._member_lists()
        columns = zip(*map(self._describe_part, range(len(self.parts))), strict=True)
        names = ("kind", "map", "statistic", "offset", "width")
        found = {
            **self._nodes_above_classes(),
            **{f"parts.{name}": column for name, column in zip(names, columns, strict=True)},
            "parts.member_starts": starts,
            "parts.members": members,
        }
        return converted(LearnerRecord, found)

    def _nodes_above_classes(self) -> dict[str, Any]:
        """Return the nodes of the tree above each class, if predictions follow its distances."""
        starts, columns, members = [0], dict[Hashable, int](), list[int]()
        if self.decision == "distance" and self.tree is not None:
            for label in self.classes.labels:
                above = self.tree.path(label)
                members += [columns.setdefault(node, len(columns)) for node in above]
                starts.append(len(members))
        masses = np.zeros(len(columns))
        return {"tree.starts": starts, "tree.members": members, "tree.masses": masses}

    def _described_exploration(self) -> dict[str, Any]:
        """Return the settings of exploration, of which most learners have none."""
        names = ("kind", "feedback", "is_weighted", "seed")
        return {**{f"exploration.{name}": 0 for name in names}, "exploration.parameters": ()}

    def _described_rule(self) -> dict[str, Any]:
        from kesler.compiled.trial.rules import algorithm_address, gradient_address, rule_address

        one_per_class = (
            self.answer == "class"
            and self.parts == [PerClass()]
            and self.preconditioner.is_euclidean
        )
        rule = self.rule.for_hypotheses(one_per_class=one_per_class)
        if self.preconditioner.has_bets:
            rule = rule.as_gradient() or rule
        if self.preconditioner.is_paced:
            rule = rule.of_unit_strength()
        update, custom = self.rule.update, isinstance(self.rule, UserPart)
        return {
            "rule.address": rule_address(rule.steps, custom=custom and update is None),
            "rule.selection": selection_code(rule.constraints),
            "rule.requires": requirement_code(rule.requires),
            "rule.gradient": gradient_address(rule.gradient),
            "rule.scales_steps": self.costs_scale_steps,
            "rule.parameters": followed_by_word(rule.parameters),
            "rule.margin": self.rule.margin,
            "algorithm.address": 0 if update is None else algorithm_address(update, custom=custom),
        }

    def _described_geometry(self) -> dict[str, Any]:
        """Return the settings of the link, the preconditioner and the preprocessing."""
        from kesler.compiled.weights.preconditioners import rate_address

        kind, unit, evidence_rule = self.preconditioner.codes
        part = self.preprocessing
        return {
            "link.address": self._link_address(),
            "link.scale_source": self._scale_code,
            "link.is_exact": self.link.is_exact,
            "link.parameters": followed_by_word(self.link.parameters),
            "link.exponent": self.link.exponent or 2.0,
            "link.factor": self.link.factor,
            "preconditioner.kind": kind,
            "preconditioner.unit": unit,
            "preconditioner.is_paced": self.preconditioner.is_paced,
            "preconditioner.evidence_rule": evidence_rule,
            "preconditioner.parameter": next(iter(self.preconditioner.parameters), 0.0),
            "preconditioner.address": rate_address(self.preconditioner.function),
            "preconditioner.parameters": followed_by_word(self.preconditioner.parameters),
            "preprocessing.method": 0 if part is None else part.method,
            "preprocessing.n_constant": bool(self.constant),
            "preprocessing.parameters": () if part is None else part.parameters,
        }

    @cached_property
    def _kernel_arguments(self) -> Any:
        learner = self._record
        if self.averaged:
            settings = learner.settings._replace(predictor=self._predictor.address)
            learner = learner._replace(settings=settings)
        return self._write_arguments(learner)

    @cached_property
    def _trials(self) -> Any:
        """The kernels whose facts hold for this learner."""
        return self._kernels.kernels_for(self._kernel_arguments.arrays)

    @cached_property
    def _predictor(self) -> Any:
        """The learner with a table for mean weights, which are computed for the rows to predict."""
        record, means = self._record, aligned_zeros(*self.weights.shape)
        weights, link = record.weights._replace(values=means), record.link
        link = link._replace(scale_source=0)  # the means include the scales
        return self._write_arguments(record._replace(weights=weights, link=link))

    def _write_arguments(self, learner: Any) -> Any:
        from kesler.compiled.jit.pointers import KernelArguments

        return KernelArguments(self._kernels.write_arguments, learner)

    def _link_address(self) -> int:
        from kesler.compiled.weights.links import link_address

        if isinstance(self.link, Linear):
            return 0
        if isinstance(self.link, CustomLink):
            return link_address(self.link.function, custom=True)
        return link_address(self.link.geometry, custom=False)

    def _describe_part(self, i: int) -> list[int]:
        """Return the kind, the address of the map or its code, the statistic, offset and width."""
        from kesler.compiled.trial.records import GIVEN, ITSELF
        from kesler.compiled.views.maps import map_address

        part, columns = self.parts[i], [self._offsets[i], self._width(i)]
        kind = code_of(codes.PartKind, type(part).__name__)
        if isinstance(part.feature_map, FeatureMap):
            view = part.feature_map
            layer = self.statistics.index(layers_of(view.statistic)[0])
            address = map_address(view.g, view.looks_at, custom=isinstance(view, UserPart))
            return [kind, address, layer, *columns]
        return [kind, ITSELF if part.feature_map is None else GIVEN, 0, *columns]

    def _member_lists(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the start of the groups of each class in one list, for each part, and the list."""
        starts = np.zeros((len(self.parts), self._class_capacity + 1), dtype=np.int64)
        members: list[int] = []
        for i, classes in enumerate(self.memberships):
            starts[i, 0] = len(members)
            for code, columns in enumerate(classes):
                members.extend(columns)
                starts[i, code + 1] = len(members)
            starts[i, len(classes) + 1 :] = len(members)
        return starts, np.array(members, dtype=np.int64)


def map_parameters(part: Part) -> npt.NDArray[np.float64]:
    """Return the parameters of the map of a part, and the fault word."""
    parameters = part.feature_map.parameters if part.feature_map is not None else ()
    return followed_by_word(parameters, 4)

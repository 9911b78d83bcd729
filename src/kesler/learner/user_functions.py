"""Learners with user-defined functions: trial calls before, and faults of compiled code after."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.learner.state import LearnerState
from kesler.parts.user_part import FaultWords, UserPart, fault_words, require_no_faults


class LearnerWithFunctions(LearnerState):
    """The state of a learner, and the errors of functions that its trials call.

    Attributes
    ----------
    ends_at_faults : whether trials end when a user-defined function fails. A member of an ensemble
        skips the row instead, since all members learn the same rows.
    """

    _settings: Any

    ends_at_faults = True

    @property
    def _has_functions(self) -> bool:
        return any(isinstance(part, UserPart) for part in self._with_functions)

    @property
    def _with_functions(self) -> list[Any]:
        """The rule, the other parts that may be user-defined, and None for parts without a map."""
        maps = [part.feature_map for part in self.parts]
        return [self.rule, self.link, self.preconditioner, *maps]

    @property
    def _function_parameters(self) -> list[npt.NDArray[Any]]:
        """The parameters that compiled code receives of each of these, and the fault words."""
        names = ("rule.parameters", "link.parameters", "preconditioner.parameters")
        return [*map(self._settings.__getitem__, names), *self._settings["parts.map_parameters"]]

    @cached_property
    def _faults(self) -> FaultWords:
        return fault_words(zip(self._with_functions, self._function_parameters, strict=True))

    def _try_out_functions(self) -> None:
        if self._has_functions:
            from kesler.parts.trial_calls import try_out

            for part in self._with_functions:
                try_out(part)

    @cached_property
    def _not_finite(self) -> npt.NDArray[np.int64]:
        """The count of skipped steps, a view because every event reads it."""
        return self.stored["counts"]["n_not_finite"]

    @property
    def _has_fault(self) -> bool:
        """Whether a user-defined function has failed since the last report."""
        return any(word[0] for _, word in self._faults)

    def _require_no_faults(self) -> None:
        """Raise if a user-defined function failed, without the classes of rows not learnt.

        The steps that this prevented are not counted.
        """
        try:
            require_no_faults(self._faults)
        except KeslerError:
            self._not_finite[0] = 0
            self._forget_unmet()
            raise

    def _require_finite_steps(self) -> None:
        """Raise if a step was skipped, or a user-defined function failed."""
        if self._faults:
            self._require_no_faults()
        if self._not_finite[0]:
            self._not_finite[0] = 0
            raise KeslerError(
                f"a step of the rule {self.rule!r}, a score or a value of a feature map was not a "
                "number that float32 can hold, and the step was skipped: use a capped rule such as "
                "pa1, rescale the features, or correct the map"
            )

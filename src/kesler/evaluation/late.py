"""How well estimates of uncertainty hold where answers arrive late."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from kesler.evaluation.uncertainty import UncertaintyTrace
from kesler.metrics import calibration_error

SURE = 0.8
"""The confidence from which a prediction counts as sure."""


@dataclass(frozen=True, slots=True)
class LateFigures:
    """How well the estimates of uncertainty held in a run whose answers arrived late.

    Attributes
    ----------
    unknown : float
        Share of the rows whose class no answer had named when they were predicted.
    probability_of_new : float
        Mean probability of a new class, which should equal this share.
    calibration_error : float
        The expected calibration error of confidences; predictions of rows of unknown classes count
        as wrong.
    sure, sure_wrong : float
        Share of the predictions with a confidence of at least 0.8, and the share of wrong ones
        among these; NaN if there are none.
    covered, set_size : float
        Share of the rows whose class was in the prediction set of 90 %, and the mean size of sets.
    """

    unknown: float
    probability_of_new: float
    calibration_error: float
    sure: float
    sure_wrong: float
    covered: float
    set_size: float

    @staticmethod
    def of(
        trace: UncertaintyTrace, right: npt.NDArray[np.bool_], unknown: npt.NDArray[np.bool_]
    ) -> LateFigures:
        """Return the figures of a run.

        Parameters
        ----------
        trace : the estimates for each row.
        right : a mask of the rows that were predicted right.
        unknown : a mask of the rows whose class no answer had named.
        """
        confidence, has_set = trace.confidence, ~np.isnan(trace.sizes(0.9))
        sure = confidence >= SURE
        return LateFigures(
            unknown=float(unknown.mean()),
            probability_of_new=float(trace.new.mean()),
            calibration_error=calibration_error(confidence, right),
            sure=float(sure.mean()),
            sure_wrong=float((~right[sure]).mean()) if sure.any() else np.nan,
            covered=float(trace.covered(0.9)[has_set].mean()) if has_set.any() else np.nan,
            set_size=float(trace.sizes(0.9)[has_set].mean()) if has_set.any() else np.nan,
        )

    def to_dict(self) -> dict[str, float | None]:
        """Return the figures by name, None for those that are not defined."""
        return {name: None if each != each else each for name, each in asdict(self).items()}

    def __str__(self) -> str:
        wrong = "" if np.isnan(self.sure_wrong) else f", {self.sure_wrong:.1%} of them wrong"
        sets = "" if np.isnan(self.covered) else f"; sets of 90% covered {self.covered:.1%}"
        return (
            f"{self.unknown:.1%} of the rows were of classes that no answer had named, and the "
            f"mean probability of a new class was {self.probability_of_new:.1%}; confidences "
            f"differ from the shares of right predictions by {self.calibration_error:.3f}; "
            f"{self.sure:.1%} of the predictions had a confidence of at least {SURE}{wrong}{sets}."
        )

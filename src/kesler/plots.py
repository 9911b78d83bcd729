"""Plots: Display classes that follow scikit-learn's API."""

from kesler.evaluation.plots.chosen_features import ChosenFeaturesDisplay
from kesler.evaluation.plots.curves import (
    FeatureCurveDisplay,
    LabelCurveDisplay,
    Measure,
    MistakeCurveDisplay,
    RiskCoverageDisplay,
    path_curve,
    save_feature_curves,
    save_mistake_curves,
)
from kesler.evaluation.plots.drawing import COLOURS, require_drawable
from kesler.evaluation.plots.explanations import ExplanationDisplay
from kesler.evaluation.plots.images import MistakenImagesDisplay, TemplatesDisplay
from kesler.evaluation.plots.mistake_bounds import MistakeBoundDisplay

__all__ = [
    "COLOURS",
    "ChosenFeaturesDisplay",
    "ExplanationDisplay",
    "FeatureCurveDisplay",
    "LabelCurveDisplay",
    "Measure",
    "MistakeBoundDisplay",
    "MistakeCurveDisplay",
    "MistakenImagesDisplay",
    "RiskCoverageDisplay",
    "TemplatesDisplay",
    "path_curve",
    "require_drawable",
    "save_feature_curves",
    "save_mistake_curves",
]

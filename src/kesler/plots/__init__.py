"""Pictures: Display classes in scikit-learn's manner."""

from kesler.plots.chosen_features import ChosenFeaturesDisplay
from kesler.plots.drawing import COLOURS, require_drawable
from kesler.plots.feature_curves import (
    FeatureCurveDisplay,
    Measure,
    path_curve,
    save_feature_curves,
)
from kesler.plots.mistake_curves import MistakeCurveDisplay, save_mistake_curves
from kesler.plots.mistaken_images import MistakenImagesDisplay
from kesler.plots.templates import TemplatesDisplay

__all__ = [
    "COLOURS",
    "ChosenFeaturesDisplay",
    "FeatureCurveDisplay",
    "Measure",
    "MistakeCurveDisplay",
    "MistakenImagesDisplay",
    "TemplatesDisplay",
    "path_curve",
    "require_drawable",
    "save_feature_curves",
    "save_mistake_curves",
]

"""Feature maps: features that depend on the class, phi(x, r)."""

from kesler.parts.maps import MAPS, resolve_map
from kesler.parts.maps.contrast import Contrast
from kesler.parts.maps.distance import Difference, Distance
from kesler.parts.maps.feature_map import CustomMap, FeatureMap, feature_map
from kesler.parts.maps.frequency import Frequency
from kesler.parts.maps.gaussian import GaussianRatio
from kesler.parts.maps.product import Product, ProductMean
from kesler.parts.maps.view import SubExperts, View

__all__ = [
    "MAPS",
    "Contrast",
    "CustomMap",
    "Difference",
    "Distance",
    "FeatureMap",
    "Frequency",
    "GaussianRatio",
    "Product",
    "ProductMean",
    "SubExperts",
    "View",
    "feature_map",
    "resolve_map",
]

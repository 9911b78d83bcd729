"""Feature maps: features that depend on the class, phi(x, r)."""

from __future__ import annotations

from kesler.maps.contrast import Contrast
from kesler.maps.distance import Difference, Distance
from kesler.maps.feature_map import CustomMap, FeatureMap, feature_map
from kesler.maps.frequency import Frequency
from kesler.maps.gaussian import GaussianRatio
from kesler.maps.product import Product, ProductMean
from kesler.maps.view import SubExperts, View
from kesler.parts.user_part import part_of

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

MAPS: dict[str, type[FeatureMap]] = {
    "product": Product,
    "product-mean": ProductMean,
    "frequency": Frequency,
    "contrast": Contrast,
    "distance": Distance,
    "difference": Difference,
    "gaussian-ratio": GaussianRatio,
}
"""The maps by their names in `OnlineClassifier` and on the command line."""


def resolve_map(choice: str | FeatureMap, *, dense: bool, kernel: bool = False) -> FeatureMap:
    """Return the map of this name, or the map itself; "auto" depends on the kind of the rows.

    "auto" is :class:`Frequency` for rows that list only non-zeros (text, counts); for rows that
    list every feature it is :class:`Distance`, or :class:`Difference` with a kernel.

    Examples
    --------
    >>> resolve_map("auto", dense=True), resolve_map("product", dense=True)
    (Distance(), Product())
    """
    if isinstance(choice, str) and choice == "auto":
        if not dense:
            return Frequency()
        return Difference() if kernel else Distance()
    more = (
        ", auto, or in Python a map of kesler.maps or a function decorated with kesler.feature_map"
    )
    return part_of("feature_map", choice, FeatureMap, MAPS, more)

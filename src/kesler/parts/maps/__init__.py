"""Feature maps: a class's own view of an instance. One file a map, one row here for each name."""

from __future__ import annotations

from kesler.errors import KeslerError
from kesler.parts.maps.contrast import Contrast
from kesler.parts.maps.distance import Difference, Distance
from kesler.parts.maps.feature_map import FeatureMap
from kesler.parts.maps.frequency import Frequency
from kesler.parts.maps.gaussian import GaussianRatio
from kesler.parts.maps.product import Product, ProductMean

MAPS: dict[str, type[FeatureMap]] = {
    "product": Product,
    "product-mean": ProductMean,
    "frequency": Frequency,
    "contrast": Contrast,
    "distance": Distance,
    "difference": Difference,
    "gaussian-ratio": GaussianRatio,
}
"""The maps by the names that `OnlineClassifier` and the command line take."""


def resolve_map(choice: str | FeatureMap, *, dense: bool, kernel: bool = False) -> FeatureMap:
    """Return the map for a name, or the map itself; "auto" looks at the kind of the rows.

    "auto" is :class:`Frequency` for rows of which only non-zeros are listed (text, counts); for
    rows that list every feature :class:`Distance`, or :class:`Difference` under a kernel.

    Examples
    --------
    >>> resolve_map("auto", dense=True), resolve_map("product", dense=True)
    (Distance(), Product())
    """
    if isinstance(choice, FeatureMap):
        return choice
    if isinstance(choice, str) and choice == "auto":
        if not dense:
            return Frequency()
        return Difference() if kernel else Distance()
    if isinstance(choice, str) and choice in MAPS:
        return MAPS[choice]()
    raise KeslerError(
        f"feature_map={choice!r} is not known: choose one of auto, {', '.join(MAPS)}, a map of "
        "kesler.maps, or a function decorated with kesler.feature_map"
    )

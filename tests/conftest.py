"""What every test shares: hypothesis draws the same examples each time; real data may be absent."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "kesler",
    derandomize=True,
    deadline=None,  # the first call of a kernel compiles it
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("kesler")


def pytest_collection_modifyitems(items):
    """Skip what needs real data where there is none."""
    if not os.environ.get("KESLER_DATA"):
        skip = pytest.mark.skip(reason="KESLER_DATA names no folder of real data")
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(skip)

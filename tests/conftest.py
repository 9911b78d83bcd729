"""What every test shares: hypothesis draws the same examples each time; real data may be absent."""

import os
import subprocess
import sys

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


LOOPS = (
    "model = OnlineClassifier('multi', update='pa1'); learn(model); model.predict_proba(X)",
    "model = OnlineClassifier('multi', update='pa1', kernel='rbf'); learn(model); model.predict(X)",
    "from kesler.compiled import bank, measures",
)
"""What has the largest loops compiled, each in a process of its own."""
BEGIN = (
    "from kesler import OnlineClassifier; X = [[0.0], [1.0]]; learn = lambda m: m.fit(X, [0, 1]); "
)


def pytest_configure(config):
    """Have the loops compiled once, before several workers would each compile them all."""
    workers = config.getoption("numprocesses", None)
    is_worker = hasattr(config, "workerinput")
    if not workers or is_worker or os.environ.get("NUMBA_DISABLE_JIT"):
        return
    running = [subprocess.Popen([sys.executable, "-c", BEGIN + each]) for each in LOOPS]
    for each in running:
        each.wait()


def pytest_collection_modifyitems(items):
    """Skip what needs real data where there is none."""
    if not os.environ.get("KESLER_DATA"):
        skip = pytest.mark.skip(reason="KESLER_DATA names no folder of real data")
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(skip)

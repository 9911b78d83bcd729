"""What every test shares: hypothesis draws the same examples each time; real data may be absent."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Before NumPy is imported, here and in the workers: on small matrices the threads of BLAS do
# nothing but wait for one another, which took a LabelTree eleven times the processor time.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

# Tests of kernels run what is compiled; `test_first_answers` tests what stands for it.
os.environ.setdefault("KESLER_COMPILE", "foreground")

# A shell lets its background jobs ignore Ctrl-C, and tests send it to themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "kesler",
    derandomize=True,
    deadline=None,  # the first call of a kernel compiles it
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("kesler")

collect_ignore = ["mutation_plugin.py"]  # it is loaded by the script of mutations alone


LOOPS = (
    "model = OnlineClassifier('multi', update='pa1'); learn(model); model.predict_proba(X)",
    "model = OnlineClassifier('multi', update='pa1', kernel='rbf'); learn(model); model.predict(X)",
    "from kesler.compiled.trial import ensemble, measures",
)
"""What has the largest loops compiled, each in a process of its own."""
TESTS = Path(__file__).parent
OF_TESTS = [file.stem for file in TESTS.glob("test_*.py") if "\n@kernel(" in file.read_text()]
"""Tests that compile a loop of their own when they are imported."""
REST = """
import pkgutil, sys
from importlib import import_module
import kesler.compiled

modules = pkgutil.walk_packages(kesler.compiled.__path__, "kesler.compiled.")
names = sorted(module.name for module in modules)
sys.path.insert(0, {tests!r})
for name in [*names[len(names) * {half} // 2 : len(names) * ({half} + 1) // 2], *{of_tests}]:
    import_module(name)
"""
"""Has all other loops compiled: neighbours, which may import one another, in one process."""
HALVES = (
    REST.format(tests=str(TESTS), half=0, of_tests=OF_TESTS),
    REST.format(tests=str(TESTS), half=1, of_tests=[]),
)
BEGIN = (
    "from kesler import OnlineClassifier; X = [[0.0], [1.0]]; learn = lambda m: m.fit(X, [0, 1]); "
)


def pytest_configure(config):
    """Have all loops compiled once: workers would each compile them when they collect the tests."""
    workers = config.getoption("numprocesses", None)
    is_worker = hasattr(config, "workerinput")
    if not workers or is_worker or os.environ.get("NUMBA_DISABLE_JIT"):
        return
    with ThreadPoolExecutor(workers) as pool:
        for codes in ([BEGIN + each for each in LOOPS], HALVES):
            list(
                pool.map(
                    lambda code: subprocess.run([sys.executable, "-c", code], check=True), codes
                )
            )


def pytest_collection_modifyitems(items):
    """Skip what needs real data where there is none."""
    if not os.environ.get("KESLER_DATA"):
        skip = pytest.mark.skip(reason="KESLER_DATA names no folder of real data")
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(skip)


@pytest.fixture
def desk(tmp_path):
    """A service without tokens, with a model that knows nothing."""
    from desks import served

    with served(tmp_path / "desk.db") as client:
        assert client.post("/api/models", json={"name": "mail"}).status_code == 201
        yield client


@pytest.fixture
def taught(desk):
    """The same, with three rows m0, m1 and m2."""
    from desks import ROWS, post

    for i, (row, answer) in enumerate(ROWS):
        said = post(desk, "learn", row=row, answer=answer, id=f"m{i}", subject=f"s{i % 2}")
        assert said == {"id": f"m{i}", "changed": True, "n_rows": 1}
    return desk


@pytest.fixture
def guarded(tmp_path):
    """A service with tokens."""
    from desks import TOKENS, bearer, served
    from kesler.service import Tokens

    with served(tmp_path / "guarded.db", tokens=Tokens.of_text(TOKENS)) as client:
        client.post("/api/models", json={"name": "mail"}, headers=bearer("admin"))
        yield client

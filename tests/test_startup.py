"""What a new process does before its first answer: what it imports, and what it compiles."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kesler import Ensemble, OnlineClassifier, OnlineLabelRanker, OnlineMultilabelClassifier
from kesler.compiled.jit.numba_internals import BITCODE, LEVELS, levels, processor_level

HEAVY = [
    "sklearn",
    "scipy.sparse",
    "scipy.linalg",
    "scipy.stats",
    "pandas",
    "pyarrow",
    "matplotlib",
]
is_compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled"
)


SOURCE = str(Path(sys.modules["kesler"].__file__ or "").parents[1])


def printed(code: str, **environment: str) -> str:
    """Return what Python prints when it runs code in a new process."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | {"PYTHONPATH": SOURCE} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---- modules ------------------------------------------------------------------------------------

LEARNERS = ["OnlineClassifier()", "OnlineClassifier('multi', update='pa1')"]
EVENTS = (
    "import sys; from kesler import OnlineClassifier; m = {}; "
    "m.learn_one({{'a': 1.0}}, 'x'); m.learn_one({{'b': 1.0}}, 'y'); m.predict_one({{'b': 1.0}}); "
)
TABLE = (
    "import sys, numpy as np; from kesler import OnlineClassifier; m = {}; X = np.eye(2); "
    "m.fit(X, [0, 1]).predict(X); m.partial_fit(X, np.array([0, 1])).predict_proba(X); "
)
LOADED = f"print([name for name in {HEAVY!r} if name in sys.modules])"


@is_compiled
@pytest.mark.parametrize("rows", [EVENTS, TABLE])
@pytest.mark.parametrize("learner", LEARNERS)
def test_a_first_answer_imports_neither_scikit_learn_nor_scipy(learner, rows):
    code = rows.format(learner)
    exec(code, {})  # leaves nothing to compile, for which Numba would import SciPy
    assert printed(code + LOADED) == "[]"


@is_compiled
def test_a_command_imports_neither_scikit_learn_nor_scipy(tmp_path):
    file = tmp_path / "rows.vw"
    file.write_text("x | a:1 b:2\ny | c:1\n" * 20)
    code = "import sys; from kesler.cli import main; assert main({!r}.split()) == 0; "
    for command in ("compare {0}", "learn {1}/{2} {0}"):
        exec(code.format(command.format(file, tmp_path, "first")), {})  # leaves nothing to compile
        said = printed(code.format(command.format(file, tmp_path, "second")) + LOADED)
        assert said.splitlines()[-1] == "[]"


# ---- kernels that a wheel carries ---------------------------------------------------------------

MODULE = """
import numpy as np
from numba import types
from kesler.compiled.jit.decorators import DOUBLES, inlined, kernel

@inlined
def doubled(value):
    return 2 * value

@kernel(types.void(DOUBLES))
def add_up(values):
    sums = np.zeros(values.shape[0])
    for i in range(values.shape[0]):
        sums[i] = doubled(values[i]) + (sums[i - 1] if i else 0.0)
    values[:] = sums
"""
RUN = """
import numpy as np
from pathlib import Path
from numba.core import event
from kesler.compiled.jit import cache
from kesler.compiled.trial.rules import rule_address
from kesler.updates import resolve_rule

def run():
    from small_kernels import add_up
    values = np.arange(4.0)
    add_up(values)
    assert rule_address(resolve_rule("pa1").steps, custom=False)
    return values.tolist(), add_up

folder = Path({folder!r})
"""
SHIP = RUN + "with cache.shipping(folder): print(run()[0])"
LOAD = """
cache.SHIPPED = folder
with event.install_recorder("numba:run_pass") as passes:
    values, add_up = run()
print(values, len(passes.buffer), sum(add_up.stats.cache_hits.values()))
"""
LOAD = RUN + LOAD


def shipped_to(folder: Path) -> tuple[str, dict[str, str]]:
    """Ship small kernels; return the code that loads them, and its environment."""
    (folder / "small_kernels.py").write_text(MODULE)
    ship, load = (code.format(folder=str(folder / "shipped")) for code in (SHIP, LOAD))
    there = {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": f"{SOURCE}:{folder}"}
    assert printed(ship, **there) == "[0.0, 2.0, 6.0, 12.0]"
    return load, there


AT_ONCE = """
import logging, sys
import numpy as np
from kesler import OnlineClassifier
logging.basicConfig(level="INFO", format="%(message)s", stream=sys.stdout)
model = OnlineClassifier("multi", update="perceptron")
print("ready", flush=True)
sys.stdin.readline()
for i in range(4):
    model.learn_one(np.array([i, 1.0]), i % 2)
print(model.predict_one(np.array([1.0, 1.0])))
"""


@is_compiled
def test_processes_that_need_a_kernel_at_once_compile_it_once(tmp_path):
    """One compiles what the other waits for; both say the same."""
    own = os.environ | {"PYTHONPATH": SOURCE, "NUMBA_CACHE_DIR": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-W", "error", "-c", AT_ONCE]
    processes = [subprocess.Popen(command, env=own, **pipes) for _ in range(2)]
    for each in processes:
        assert each.stdout.readline() == "ready\n"
    for each in processes:
        each.stdin.write("go\n")
        each.stdin.flush()
    printed_by = [each.communicate()[0].splitlines() for each in processes]
    assert printed_by[0][-1] == printed_by[1][-1]
    lines = [line for each in printed_by for line in each]
    begun = [line for line in lines if line.startswith("compiling")]
    trials = [each for each in begun if "learn_" in each and each.endswith("machine")]
    assert len(trials) == 1, trials


REFUSED = """
import errno, fcntl, time
def refuse(*_):
    raise OSError(errno.ENOLCK, "No locks available")
def wait(_):
    raise AssertionError("waited for a lock that nobody holds")
fcntl.flock, time.sleep = refuse, wait
"""


@is_compiled
@pytest.mark.skipif(sys.platform == "win32", reason="fcntl is of Unix")
def test_nobody_waits_where_a_file_system_refuses_locks(tmp_path):
    """Some network file systems do; filelock before 3.21 waited for another process then."""
    code, there = shipped_to(tmp_path)
    there["NUMBA_CACHE_DIR"] = str(tmp_path / "another")
    shutil.rmtree(tmp_path / "shipped")
    assert printed(REFUSED + code, **there).startswith("[0.0, 2.0, 6.0, 12.0]")


@is_compiled
def test_kernels_that_the_package_carries_are_not_compiled_again(tmp_path):
    load, there = shipped_to(tmp_path)
    shipped = sorted((tmp_path / "shipped").iterdir())
    assert len(shipped) == 2 * (1 + len(levels()))
    loaded = "[0.0, 2.0, 6.0, 12.0] 0 1"
    assert printed(load, **there) == loaded  # machine code of the level of this processor
    cached = list((tmp_path / "cache").rglob("*.nbc"))
    assert bool(cached) == (processor_level() is None)
    for each in shipped:
        if each.suffix != f".{BITCODE}":
            each.unlink()
    for _ in range(2):  # translated from bitcode; then found in the cache
        assert printed(load, **there) == loaded
    assert list((tmp_path / "cache").rglob("*.nbc"))
    shutil.rmtree(tmp_path / "shipped")
    assert printed(load, **there) == loaded


@is_compiled
def test_kernels_of_the_package_are_read_where_no_cache_can_be_written(tmp_path):
    load, there = shipped_to(tmp_path)
    refuse = """
from kesler.compiled.jit import cache as caches

def refuse(function):
    raise RuntimeError("cannot cache function: no locator available")

caches.KernelCache = refuse
"""
    assert printed(refuse + load, **there).startswith("[0.0, 2.0, 6.0, 12.0] 0 ")  # no pass is run
    assert not list((tmp_path / "cache").rglob("*.nbc"))


@is_compiled
@pytest.mark.parametrize("chosen", [{"NUMBA_CPU_NAME": "haswell"}, {"NUMBA_CPU_FEATURES": "+avx2"}])
def test_a_processor_that_is_chosen_has_no_level(chosen):
    code = "from kesler.compiled.jit import numba_internals as i; print(i.processor_level())"
    assert printed(code, **chosen) == "None"


@is_compiled
@pytest.mark.parametrize("level", levels())
def test_machine_code_of_each_level_that_this_processor_has_gives_the_same(tmp_path, level):
    there = llvm.get_host_cpu_features()
    if not all(map(there.get, LEVELS[level])):
        pytest.skip(f"this processor is below {level}")
    load, own = shipped_to(tmp_path)
    others = [BITCODE, *(each for each in levels() if each != level)]
    for each in (tmp_path / "shipped").iterdir():
        if each.suffix[1:] in others:
            each.unlink()
    chosen = "from kesler.compiled.jit import numba_internals as internals\n"
    chosen += f"internals.processor_level = lambda: {level!r}\n"
    assert printed(chosen + load, **own) == "[0.0, 2.0, 6.0, 12.0] 0 1"
    assert not list((tmp_path / "cache").rglob("*.nbc"))


# ---- scikit-learn's contract --------------------------------------------------------------------

ESTIMATORS = [
    OnlineClassifier("multi", update="pa1", averaged=True),
    OnlineLabelRanker(),
    Ensemble(),
    OnlineMultilabelClassifier("hybrid"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_parameters_are_those_that_scikit_learn_would_find(estimator):
    """The oracle is its own base class, run on our estimators."""
    assert estimator.get_params(deep=False) == BaseEstimator.get_params(estimator, deep=False)
    assert estimator.get_params().items() >= BaseEstimator.get_params(estimator).items()
    assert sorted(estimator.get_params(deep=False)) == estimator._get_param_names()
    assert clone(estimator).get_params() == estimator.get_params() and type(
        clone(estimator)
    ) is type(estimator)


def test_parameters_within_parameters():
    estimator = make_pipeline(StandardScaler(), OnlineClassifier())
    estimator.set_params(onlineclassifier__update="pa1")
    assert estimator.get_params()["onlineclassifier__update"] == "pa1"
    assert "OnlineClassifier(update='pa1')" in repr(estimator)
    ensemble = OnlineClassifier(hypotheses=OnlineClassifier())
    ensemble.set_params(hypotheses__update="perceptron")
    assert ensemble.get_params() == BaseEstimator.get_params(ensemble)
    with pytest.raises(ValueError, match="Invalid parameter 'up' for estimator OnlineClassifier"):
        ensemble.set_params(up="pa1")


def test_what_scikit_learn_adds_to_estimators_is_there():
    estimator = OnlineClassifier(update="pa1")
    assert "OnlineClassifier" in estimator._repr_mimebundle_()["text/html"]
    assert estimator.get_metadata_routing().fit.requests == {"sample_weight": None}
    assert not hasattr(estimator, "n_features_in_") and not hasattr(estimator, "classes_")
    with pytest.raises(AttributeError, match="nothing_such"):
        print(estimator.nothing_such)


def test_scores_are_those_of_scikit_learns_classifiers():
    X, y = np.eye(3), np.array([0, 1, 1])
    estimator = OnlineClassifier("multi", update="perceptron").fit(X, y)
    weights = np.array([1.0, 2.0, 0.5])
    assert estimator.score(X, y, weights) == ClassifierMixin.score(estimator, X, y, weights)


@pytest.mark.parametrize("X", [np.array([[1, 0], [0, 1]]), np.eye(2) > 0, np.eye(2)[::-1]])
def test_tables_pass_as_scikit_learn_lets_them_pass(X):
    """An array that needs no conversion is what its validation would return."""
    quick, whole = OnlineClassifier(), OnlineClassifier()
    rows = [X, X.tolist()]
    answers = [
        m.fit(x, [0, 1]).decision_function(x) for m, x in zip((quick, whole), rows, strict=True)
    ]
    np.testing.assert_array_equal(*answers)
    assert quick.n_features_in_ == whole.n_features_in_ == 2
    with pytest.raises(ValueError, match="3 features, but OnlineClassifier is expecting 2"):
        quick.predict(np.eye(3))


def test_an_averaged_learner_may_be_the_first_of_a_process():
    code = (
        "from kesler import OnlineClassifier as C\n"
        "C('multi', update='pa1', averaged=True).fit([[1.0], [2.0]], [0, 1]).predict([[1.0]])"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

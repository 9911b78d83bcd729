"""First answers of a process: kernels that another process compiles, and what stands for them."""

import json
import os
import pickle
import signal
import subprocess
import sys
from base64 import b64encode
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kesler import OnlineClassifier
from kesler.compiled.jit import background, pointers
from kesler.interrupts import pieces_of
from kesler.online import training

TESTS = Path(__file__).parent
SOURCE = str(Path(sys.modules["kesler"].__file__ or "").parents[1])

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled"
)


def printed(*command, **environment):
    """Return what a Python process prints whose kernels another one may compile."""
    given = {name: value for name, value in os.environ.items() if name != "KESLER_COMPILE"}
    done = subprocess.run(
        [sys.executable, "-W", "error", *command],
        env=given | {"PYTHONPATH": SOURCE} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def compiled_runs():
    return json.loads(printed(str(TESTS / "interpreted_runs.py"), "0", KESLER_COMPILE="foreground"))


@pytest.mark.parametrize("seed", [1, 2])
def test_kernels_that_are_interpreted_for_a_time_give_the_same_bits(compiled_runs, seed):
    found = json.loads(printed(str(TESTS / "interpreted_runs.py"), str(seed)))
    assert found == compiled_runs


def test_interpreted_code_writes_the_words_of_arguments_that_compiled_code_writes(monkeypatch):
    written = []
    original = pointers.KernelArguments.__init__

    def noted(self, write_arguments, arrays):
        original(self, write_arguments, arrays)
        written.append((self._place.tolist(), list(pointers._words_of(arrays))))

    monkeypatch.setattr(pointers.KernelArguments, "__init__", noted)
    for rows in (["a b", "c d"], [{"a": 1.0}, {"b": 2.0}], np.eye(2)):
        OnlineClassifier().partial_fit(rows, ["x", "y"]).predict(rows)
    OnlineClassifier("multi", update="pa1", kernel="rbf").fit(np.eye(2), ["x", "y"])
    assert len(written) > 10
    assert all(words == place for place, words in written)


# ---- the process that compiles ------------------------------------------------------------------

BEGIN = """
import os, signal
from numba.core import event
from kesler import OnlineClassifier
from kesler.compiled.jit.background import COMPILING, WaitingKernel

compiled = event.RecordingListener()
event.register("numba:compile", compiled)
"""
ANSWER = """
model = OnlineClassifier()
model.learn_one("my card has not come", "card")
model.learn_one("the transfer failed", "transfer")
assert model.predict_one("has my card come") == "card"
assert COMPILING.is_busy and not compiled.buffer
print(COMPILING._process.pid)
"""
COPY = """
import numpy as np
from kesler.compiled.jit.background import is_ready
from kesler.compiled.weights.copies import copy_rows

def copied():
    rows, target = np.arange(1, 33, dtype=np.int32), np.zeros(64, dtype=np.int32)
    copy_rows(rows, 16, target, 32, 2, 16)
    return (target.reshape(2, 32)[:, :16].reshape(-1) == rows).all()

assert copied()
"""


def ran(code, folder, **environment):
    """Return what code prints that begins with an empty cache."""
    return printed("-c", BEGIN + code, NUMBA_CACHE_DIR=str(folder), **environment)


def is_running(process):
    """Return whether a process has not ended; nobody may have asked yet how it ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def test_a_first_answer_compiles_nothing_in_its_process_and_leaves_no_other_behind(tmp_path):
    process = int(ran(ANSWER, tmp_path))
    assert not is_running(process)


def test_a_first_answer_waits_for_no_loop_where_a_part_is_compiled(tmp_path):
    part = "from kesler.compiled.trial import calibration, events, tasks, texts, weight_trial\n"
    part += "from kesler.compiled.weights import copies"
    ran(part, tmp_path, KESLER_COMPILE="foreground")
    no_loop = "not any('_learn' in str(each.data) for _, each in compiled.buffer)"
    ran(ANSWER.replace("not compiled.buffer", no_loop), tmp_path)


def test_a_process_that_is_killed_takes_the_one_that_compiles_with_it(tmp_path):
    code = ANSWER + "os.kill(os.getpid(), signal.SIGKILL)"
    given = {name: value for name, value in os.environ.items() if name != "KESLER_COMPILE"}
    environment = given | {"PYTHONPATH": SOURCE, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-u", "-c", BEGIN + code],
        env=environment,
        stdout=subprocess.PIPE,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    while is_running(int(done.stdout)):
        pass


def test_what_another_process_compiled_is_taken_from_the_cache(tmp_path):
    code = """
assert isinstance(copy_rows, WaitingKernel) and not compiled.buffer
while not is_ready(copy_rows):
    pass
assert copied() and not compiled.buffer
assert COMPILING._process is None
"""
    ran(COPY + code, tmp_path)
    code = "assert not isinstance(copy_rows, WaitingKernel) and not compiled.buffer"
    ran(COPY + code, tmp_path)


def test_what_a_killed_process_did_not_compile_is_compiled_in_this_one(tmp_path):
    code = """
os.kill(COMPILING._process.pid, signal.SIGKILL)
while not is_ready(copy_rows):
    pass
assert copied() and compiled.buffer
"""
    ran(COPY + code, tmp_path)


def test_a_forked_process_has_its_own_process_that_compiles(tmp_path):
    code = """
ours = COMPILING._process.pid
process = os.fork()
if process == 0:
    try:
        while not is_ready(copy_rows):
            assert COMPILING._process is None or COMPILING._process.pid != ours
        assert copied() and not compiled.buffer
    except BaseException:
        os._exit(1)
    os._exit(0)
assert os.waitpid(process, 0)[1] == 0
while not is_ready(copy_rows):
    pass
assert copied() and not compiled.buffer
"""
    ran(COPY + code, tmp_path)


def test_the_foreground_compiles_before_the_first_call(tmp_path):
    code = "assert not isinstance(copy_rows, WaitingKernel) and compiled.buffer"
    ran(COPY + code, tmp_path, KESLER_COMPILE="foreground")


def test_a_kernel_that_waits_is_compiled_where_times_are_measured(tmp_path):
    code = """
from kesler.compiled.jit.background import in_foreground
with in_foreground():
    assert copy_rows._compiled is None and copied() and copy_rows._compiled is not None
"""
    ran(COPY + code, tmp_path)


RULE = """
import sys
from kesler import update_rule
from kesler.compiled.jit.background import _SWITCH

sys.path.insert(0, {folder!r})
from mine import steps

model = OnlineClassifier("multi", update=update_rule(steps))
for row in ([1.0, 0.0], [0.0, 1.0]) * 2:
    model.learn_one(row, row[0])
assert model.predict_one([1.0, 0.0]) == 1.0
assert not _SWITCH.pending and COMPILING.is_busy
"""
MODULE = """
import os
from pathlib import Path

with Path(__file__).with_name("imports").open("a") as file:
    file.write(f"{os.getpid()} ")

def steps(q, weight, losses, norms, gram, out):
    for i in range(losses.shape[0]):
        out[i] = weight * losses[i] / norms[i]
"""


def test_the_process_that_compiles_does_not_import_modules_of_users(tmp_path):
    (tmp_path / "mine.py").write_text(MODULE)
    ran(RULE.format(folder=str(tmp_path)), tmp_path)
    assert len((tmp_path / "imports").read_text().split()) == 1


def test_calls_of_many_rows_wait_for_the_compiler_and_those_of_one_row_do_not(monkeypatch):
    monkeypatch.delenv("KESLER_COMPILE", raising=False)
    monkeypatch.setattr(background.COMPILING, "is_busy", True)
    monkeypatch.setattr(training, "_interpreted", {"n_rows": 0})
    found = []
    for n_rows in (1, 400, 1, 200, 1):
        with training.compiled_for(n_rows):
            found.append(background.may_interpret())
    assert found == [True, True, True, False, True]
    monkeypatch.setattr(background.COMPILING, "is_busy", False)
    monkeypatch.setattr(training, "_interpreted", {"n_rows": 0})
    for n_rows in (400, 400):  # nothing is interpreted
        with training.compiled_for(n_rows):
            assert background.may_interpret()
    with training.compiled_for(513):  # what it needs is not asked for yet
        assert background.is_on() and not background.may_interpret()


def test_the_first_rows_of_a_call_are_few_while_they_are_interpreted(monkeypatch):
    """So that Ctrl-C need not wait for 128 rows in Python; the rows of the call are the same."""
    sizes = {}
    for is_busy in (False, True):
        monkeypatch.setattr(background.COMPILING, "is_busy", is_busy)
        pieces = [*pieces_of(300, first=training.first_rows())]
        assert [i for piece in pieces for i in range(300)[piece]] == [*range(300)]
        sizes[is_busy] = pieces[0].stop
    assert 0 < sizes[True] <= sizes[False] / 8


class OtherProcess:
    """A process that is at the first recipe until it is waited for, for `_Switch`."""

    def __init__(self, *recipes):
        self.left, self.calls = list(recipes), []

    def is_at(self, recipe):
        return self.left[:1] == [recipe]

    def is_done(self, recipe):
        return recipe not in self.left

    def leave_out(self, recipe):
        self.left.remove(recipe)

    def wait(self):
        self.calls.append(f"wait for {self.left.pop(0)}")


@pytest.mark.parametrize(
    ("needed", "calls"),
    [
        ("first", ["compile third", "compile second", "wait for first", "compile first"]),
        ("second", ["compile second", "compile second"]),  # compiled, and read from the cache
    ],
)
def test_a_process_that_waits_compiles_what_was_asked_last(monkeypatch, needed, calls):
    other, switch = OtherProcess("first", "second", "third"), background._Switch()
    monkeypatch.setattr(background, "COMPILING", other)
    kernels = {}
    for recipe in ("first", "second", "third"):
        store = SimpleNamespace(
            compiled=lambda recipe=recipe: other.calls.append(f"compile {recipe}")
        )
        switch.kernels[recipe].append(store)
        kernels[recipe] = SimpleNamespace(recipe=recipe, store=store)
    switch.take(kernels[needed])
    assert other.calls == calls


def test_the_process_that_compiles_passes_over_what_is_left_out():
    refused, followed = (
        b64encode(pickle.dumps((import_module, (name,), {}))).decode()
        for name in ("none_such", "json")
    )
    lines = [json.dumps(sys.path), background.LEFT_OUT + refused, refused, followed]
    process = subprocess.Popen(
        [sys.executable, "-c", background.COMPILER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdin.write("\n".join([*lines, ""]))
    process.stdin.flush()
    assert [process.stdout.readline().strip() for _ in range(2)] == [refused, followed]
    process.communicate()


def test_a_call_of_many_rows_is_compiled_by_two_processes_and_interprets_none(tmp_path):
    code = """
from kesler.compiled.jit import background
rows = [[float(i % 3), float(i % 5)] for i in range(1500)]
calls = []
for name in ("ask", "leave_out", "wait"):
    def noted(*arguments, name=name, called=getattr(background.Compiler, name)):
        calls.append(name)
        return called(*arguments)
    setattr(background.Compiler, name, noted)
background.WaitingKernel._interpret = lambda *arguments: calls.append("interpret")
found = OnlineClassifier("multi", update="pa1").fit(rows, [i % 3 for i in range(1500)])
print(sorted({*calls} - {"wait"}), found.predict(rows).tolist())
"""
    head = "from kesler import OnlineClassifier\n"
    shared = printed("-c", head + code, NUMBA_CACHE_DIR=str(tmp_path))
    alone = printed("-c", head + code, KESLER_COMPILE="foreground")
    assert shared == alone.replace("[]", "['ask', 'leave_out']", 1)


def test_compare_asks_for_the_loops_of_all_methods_before_it_needs_one(tmp_path):
    """Times are those of compiled loops, and no method waits for those of another."""
    code = """
from kesler import OnlineClassifier, compare
from kesler.compiled.jit import background
n_asked = []
def noted(*arguments, called=background._Switch.take):
    n_asked.append(len(background.COMPILING._asked))
    return called(*arguments)
background._Switch.take = noted
rows = [[float(i % 3), float(i % 5)] for i in range(200)]
named = {name: OnlineClassifier("multi", update=name) for name in ("pa1", "perceptron")}
found = compare(named, rows, [i % 3 for i in range(200)])
print(*[each.n_mistakes for each in found.values()], *{*n_asked, len(background.COMPILING._asked)})
"""
    shared = printed("-c", code, NUMBA_CACHE_DIR=str(tmp_path)).split()
    alone = printed("-c", code, KESLER_COMPILE="foreground").split()
    assert len(shared) == 3 and shared[:2] == alone[:2] and int(shared[2]) > 2

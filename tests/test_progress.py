"""Progress of long computations: the line on a terminal, and the records of `logging`."""

import io
import logging
import math
import os
import re
import sys
import threading
import time
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import Perceptron

import kesler
from commands import kesler as command
from commands import messages, write_jsonl, write_vw
from kesler import progress as module
from kesler.cli import warm_up
from kesler.progress import Task, progress, say
from kesler.readers.lines import Lines
from test_startup import is_compiled


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self):
        return True

    def versions(self):
        """The versions of the line that were printed."""
        return [each.rstrip() for each in self.getvalue().split("\r") if each.strip()]


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.01)
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    found = Terminal()
    # Not sys.stderr itself, which pytest replaces between a fixture and its test.
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=found, modules={}))
    return found


def until(holds):
    end = time.monotonic() + 5
    while not holds() and time.monotonic() < end:
        time.sleep(0.005)
    assert holds()


def shows(terminal, *words):
    until(lambda: any(all(w in each for w in words) for each in terminal.versions()))


# ---- the line -----------------------------------------------------------------------------------


def test_the_line_lists_what_runs_from_the_outside_to_the_inside(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with progress("outer", "problems", 3) as outer:
        outer.report(1)
        with progress("inner", "passes", 100, goal=1e-3) as inner:
            inner.report(12, gap=0.25)
            shows(terminal, "kesler: outer, 1 of 3 problems", " | inner, 12 of at most 100 passes")
            shows(terminal, "gap 2.5e-01")
    assert terminal.getvalue().endswith("\r")  # erased: other output begins at the left


def test_nobody_is_shown_a_line_who_neither_watches_nor_asks(monkeypatch):
    quiet = io.StringIO()
    monkeypatch.setattr(sys, "stderr", quiet)
    monkeypatch.setattr(module, "PAUSE", 0.001)
    before = threading.active_count()
    with progress("hidden"):
        assert threading.active_count() == before
        time.sleep(0.02)
    assert quiet.getvalue() == ""


@pytest.mark.parametrize("wanted", [True, False])
def test_who_asks_is_obeyed(terminal, monkeypatch, wanted):
    monkeypatch.setattr(terminal, "isatty", lambda: not wanted)
    kesler.show_progress(wanted)
    try:
        with progress("asked"):
            if wanted:
                shows(terminal, "asked")
            else:
                time.sleep(0.05)
    finally:
        kesler.show_progress(None)
    assert wanted or not terminal.getvalue()


def test_a_notebook_is_watched(monkeypatch):
    class ZMQInteractiveShell:
        pass

    class IPython:
        get_ipython = ZMQInteractiveShell

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not module.is_shown()
    monkeypatch.setitem(sys.modules, "IPython", IPython)
    assert module.is_shown()


def test_the_line_is_as_wide_as_the_terminal(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    with progress("a name longer than the terminal is wide"):
        shows(terminal, "kesler: a name longer than th")
    assert max(map(len, terminal.versions())) == 29


def test_lines_of_output_replace_the_line(terminal, capsys):
    with progress("counting"):
        shows(terminal, "counting")
        say("a row of the table")
        written = terminal.getvalue()
    assert capsys.readouterr().out == "a row of the table\n"
    assert "counting" in written


def test_an_error_ends_the_line(terminal):
    with pytest.raises(ZeroDivisionError), progress("failing"):
        shows(terminal, "failing")
        raise ZeroDivisionError
    assert not module._LINE._tasks and terminal.getvalue().endswith("\r")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_does_not_show_what_runs_in_the_other(terminal):
    with progress("of the parent"):
        child = os.fork()
        if not child:
            os._exit(len(module._LINE._tasks))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# ---- time left ----------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_time_left_follows_from_the_count(clock):
    task = Task("rounds", "rounds", total=50)
    assert math.isnan(task.seconds_left())
    clock[0] += 20
    task.report(10)
    assert task.seconds_left() == pytest.approx(80)
    assert "10 of 50 rounds, 20 s, about 80 s left" in task.status()
    rows = Task("rows", "rows")
    clock[0] += 20
    rows.report(12_345, share=0.25)
    assert "12,345 rows, 20 s, about 60 s left" in rows.status()


def test_time_left_follows_from_a_gap_that_shrinks_tenfold_in_two_seconds(clock):
    task = Task("ascent", "passes", total=10**6, goal=1e-6)
    for n in range(4):
        task.report(n + 1, gap=10.0**-n)
        clock[0] += 2
    clock[0] -= 2
    assert task.seconds_left() == pytest.approx(2 * 3)


# ---- records ------------------------------------------------------------------------------------


def records(caplog):
    return [(each.levelname, each.getMessage()) for each in caplog.records if each.name == "kesler"]


def test_records_of_long_computations_are_of_level_info(caplog, monkeypatch):
    caplog.set_level("DEBUG", "kesler")
    with progress("short"):
        pass
    monkeypatch.setattr(module, "LONG", 0.0)
    with progress("long", "passes") as task:
        task.report(7)
    assert records(caplog) == [("DEBUG", "short, 0.0 s"), ("INFO", "long, 7 passes, 0.0 s")]


def test_a_long_computation_has_records_meanwhile(caplog, monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.01)
    monkeypatch.setattr(module, "BETWEEN_RECORDS", 0.02)
    caplog.set_level("INFO", "kesler")
    with progress("long", "passes", 4) as task:
        task.report(1)
        until(lambda: any("1 of 4 passes" in text for _, text in records(caplog)))


def binary():
    return kesler.OnlineClassifier("multi", update="pa1")


SOLVERS = {
    "dual ascent": (lambda: kesler.CrammerSingerClassifier(random_state=0), "passes, gap"),
    "dual ascent over a kernel": (
        lambda: kesler.CrammerSingerClassifier(kernel="rbf", random_state=0),
        "passes, gap",
    ),
    "dual ascent of joint features": (
        lambda: kesler.CrammerSingerClassifier(
            hypotheses="hybrid", feature_map="difference", random_state=0
        ),
        "passes, gap",
    ),
    "free intercept": (
        lambda: kesler.CrammerSingerClassifier(regularise_intercept=False, random_state=0),
        "passes, gap",
    ),
    "Newton": (kesler.SoftmaxClassifier, "steps, gap"),
    "mixed norm": (kesler.MixedNormClassifier, "steps, gap"),
    "ShareBoost": (lambda: kesler.ShareBoostClassifier(2), "2 of 2 features"),
    "JointBoost": (lambda: kesler.JointBoostClassifier(3), "3 of 3 rounds"),
    "binary problems": (lambda: kesler.OneVsOne(binary()), "3 of 3 begun"),
    "binary problems of a code": (
        lambda: kesler.ErrorCorrectingCode(binary(), random_state=0),
        "begun",
    ),
    "binary problems of a tournament": (
        lambda: kesler.ErrorCorrectingTournament(binary()),
        "begun",
    ),
    "Kesler's construction": (
        lambda: kesler.KeslerReduction(Perceptron(fit_intercept=False), n_passes=2),
        "2 of 2 passes",
    ),
    "one against some": (lambda: kesler.OneAgainstSome(binary(), n_passes=2), "2 of 2 passes"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_reports_what_it_has_done(caplog, name):
    make, words = SOLVERS[name]
    caplog.set_level("DEBUG", "kesler")
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    make().fit(rng.normal(size=(30, 4)) + 2 * np.eye(3, 4)[y], y)
    texts = [text for _, text in records(caplog)]
    begins = re.split(" of | over ", name)[0]
    assert any(text.startswith(begins) and words in text for text in texts), texts


# ---- compiling ----------------------------------------------------------------------------------


@is_compiled
def test_a_compilation_is_shown_and_logged(caplog, terminal):
    from kesler.compiled.jit.decorators import DOUBLES, callback_address, types

    constant = time.time()  # which no cache contains

    def add_constant(values):
        for i in range(values.shape[0]):
            values[i] += constant

    caplog.set_level("INFO", "kesler")
    for _ in range(2):  # the second time, nothing is compiled
        callback_address(add_constant, types.void(DOUBLES))
    (_, begun), (_, ended) = records(caplog)
    assert begun.startswith("compiling test_progress.add_constant")
    assert re.fullmatch(r"compiled test_progress\.add_constant in \d\.\d s", ended)
    shows(terminal, "compiling test_progress.add_constant once on this machine, 0.")


def test_warm_up_makes_every_learner():
    warm_up.weights()


def test_warm_up_says_what_it_compiles_and_how_long_it_takes(capsys, monkeypatch):
    def compile_two():
        for name in ("one", "two"):
            with module.compiling(name):
                pass

    monkeypatch.setattr(warm_up, "PARTS", (compile_two,))
    level = module.LOGGER.level
    done = command(capsys, "warm-up")
    assert done.lines == [
        "compiled one in 0.0 s",
        "compiled two in 0.0 s",
        "2 functions compiled in 0.0 s",
    ]
    assert module.LOGGER.level == level and not module.LOGGER.handlers


# ---- files --------------------------------------------------------------------------------------


def test_commands_report_rows_and_the_share_of_the_file(capsys, caplog, tmp_path):
    rows = write_vw(tmp_path / "rows.vw", messages(40))
    caplog.set_level("DEBUG", "kesler")
    assert command(capsys, "compare", rows).code == 0
    assert any(text.startswith("learning, 40 rows, ") for _, text in records(caplog))


@pytest.mark.parametrize("write", [write_vw, write_jsonl])
def test_the_share_of_a_file_grows_to_one(tmp_path, write):
    path = write(tmp_path / "rows", messages(40))
    lines = Lines(str(path))
    assert lines.share == 0
    read = [lines.share for _ in lines]
    assert read == sorted(read) and lines.share == 1
    whole = Lines(str(path))
    assert sum(len(text) for _, text in whole.chunks()) == whole.n_bytes and whole.share == 1


def test_the_share_of_what_has_no_size_is_unknown(tmp_path):
    path = tmp_path / "rows.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("rows.vw", "1 | a\n")
    lines = Lines(str(path))
    assert len(list(lines)) == 1 and math.isnan(lines.share) and math.isnan(Lines("-").share)


def test_what_is_logged_by_default_is_silent():
    assert logging.getLogger("kesler").level == logging.NOTSET

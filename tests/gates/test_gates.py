"""Gates: accuracy changes only with a reason, and imports and rows take no more than before."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import calls
import learners
import mistakes
import modules
import speed

is_compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="60,000 rows by four learners take minutes"
)


@is_compiled
@pytest.mark.data
@pytest.mark.parametrize("name", learners.NAMES)
def test_mistakes_are_those_of_the_file(name):
    now = {name: mistakes.measured(name)}
    assert mistakes.changes(now, mistakes.read().figures) == [], (
        "if that is meant: python tests/gates/mistakes.py --write 'why'"
    )


@pytest.mark.data
def test_the_file_has_every_set_and_as_many_rows_as_are_run():
    gate = mistakes.read()
    assert list(gate.figures) == list(gate.n_rows) == list(learners.NAMES)
    for name, n_rows in gate.n_rows.items():
        assert n_rows <= learners.N_ROWS and list(gate.figures[name]) == list(learners.LEARNERS)


def test_the_last_reason_is_that_of_the_figures():
    gate = mistakes.read()
    assert gate.reasons[-1][0] == mistakes.digest(gate.figures), (
        "figures changed without a line that says why"
    )
    assert all(len(sentence) >= mistakes.SHORTEST_REASON for _, sentence in gate.reasons)


def test_a_figure_changed_by_hand_is_found_out(tmp_path, monkeypatch):
    text = mistakes.FILE.read_text(encoding="utf-8")
    monkeypatch.setattr(mistakes, "FILE", tmp_path / "mistakes.tsv")
    mistakes.FILE.write_text(text, encoding="utf-8")
    figures = mistakes.read().figures
    figures["letter"]["default"] -= 1
    assert mistakes.digest(figures) != mistakes.read().reasons[-1][0]
    monkeypatch.setattr(mistakes, "rows_of", lambda name: learners.Stream([], [0] * 5))
    mistakes.write(figures, "for the sake of this test")
    gate = mistakes.read()
    assert gate.figures == figures and gate.reasons[-1][0] == mistakes.digest(figures)
    assert gate.reasons[-1][1].startswith("letter default ")
    assert gate.reasons[-1][1].endswith(": for the sake of this test")


# ---- imports ------------------------------------------------------------------------------------


def test_no_public_name_loads_more_modules_than_its_limit():
    limits, now = modules.limits(), modules.loaded(modules.public_names())
    assert list(now) == list(limits), "python tests/gates/modules.py --write"
    assert {name: n for name, n in now.items() if n > limits[name]} == {}


@is_compiled
def test_no_path_calls_more_functions_than_its_limit():
    """With a fifth more for other versions of NumPy, pandas and narwhals."""
    limits, now = calls.limits(), calls.called()
    assert list(now) == list(limits), "python tests/gates/calls.py --write"
    assert {name: n for name, (n, _) in now.items() if n > 1.2 * limits[name][0]} == {}


# ---- speed --------------------------------------------------------------------------------------


def noisy(ratio, n_pairs=12):
    """Return ratios of pairs around one, as shared machines give them."""
    errors = np.random.default_rng(0).normal(0, 0.015, n_pairs)
    return (ratio * np.exp(errors - errors.mean())).tolist()


@pytest.mark.parametrize(("ratio", "is_slower"), [(0.8, False), (1.0, False), (1.06, True)])
def test_more_time_by_five_percent_fails_and_noise_does_not(ratio, is_slower):
    assert speed.is_slower(noisy(ratio)) == is_slower


def test_limits_are_those_of_students_t():
    ratios = noisy(1.02)
    logs = np.log(ratios)
    low, high = stats.t.interval(0.95, 11, logs.mean(), stats.sem(logs))
    assert speed.limits(ratios) == pytest.approx((1.02, np.exp(low), np.exp(high)), rel=1e-3)


def test_a_version_that_takes_more_time_is_found_out(monkeypatch, capsys):
    times = {"now": 1.1, "before": 1.0}
    monkeypatch.setattr(speed, "seconds", lambda tree, name: times[tree.name])
    assert speed.compared(Path("now"), Path("before"), 5) == 1
    assert "pa1: 1.100 times the time (1.100 to 1.100), TOO SLOW" in capsys.readouterr().out
    assert speed.compared(Path("before"), Path("before"), 5) == 0

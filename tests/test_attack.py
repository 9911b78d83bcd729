"""A short run of every attack; `python tests/attack/run.py --seconds 3600` is the long one."""

import pytest

from attack import run

CASES = {"model files": 200, "matrices": 150, "functions": 3, "kills": 1, "saves": 2}


@pytest.mark.parametrize("name", run.ATTACKS)
def test_an_attack_finds_no_fault(name, capsys):
    status = run.main(["--only", name, "--cases", str(CASES[name]), "--seconds", "60"])
    assert status == 0, capsys.readouterr().out


def test_a_fault_a_crash_and_a_hang_are_found(monkeypatch, capsys, tmp_path):
    (tmp_path / "cases").touch()
    monkeypatch.setenv("KESLER_CASES", str(tmp_path / "cases"))
    monkeypatch.setitem(run.ATTACKS, "model files", "attack.faults")
    monkeypatch.setattr(run, "PATIENCE", 6.0)
    assert run.main(["--only", "model files", "--cases", "6", "--seconds", "60"]) == 1
    assert capsys.readouterr().out == (
        "model files 1: a fault\n"
        "model files 2: the process ended with -6\n"
        "model files 3: the process ended with 1\n"
        "model files 4: the process did not end\n"
        "model files: 6 cases, 4 faults\n"
    )

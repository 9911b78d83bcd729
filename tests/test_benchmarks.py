"""The scripts of benchmarks/, papers/ and wheels/ import names that the package has."""

import ast
import importlib
import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest

import report

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(
    str(file.relative_to(ROOT))
    for folder in ("benchmarks", "papers", "wheels")
    for file in (ROOT / folder).glob("*.py")
)


def text_of(script):
    return (ROOT / script).read_text()


@pytest.mark.parametrize("script", SCRIPTS)
def test_names_of_the_package_that_a_script_imports_are_there(script):
    for node in ast.walk(ast.parse(text_of(script))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "kesler":
            module = importlib.import_module(node.module)
            for each in node.names:
                assert hasattr(module, each.name), f"{node.module} has no {each.name}"


WORKERS = ("benchmarks/many_classes_learners.py", "benchmarks/subjects_omikuji.py")
"""What other scripts start, with arguments that only these give."""
RUN = [
    each
    for each in SCRIPTS
    if "__main__" in text_of(each) and each not in WORKERS and not each.startswith("wheels")
]
WRITING = [each for each in RUN if re.search(r"\bReport\(\n? *[\"n]", text_of(each))]


def started(monkeypatch, script, *given):
    """Run a script in this process with arguments that end it."""
    file = ROOT / script
    monkeypatch.setattr(sys, "argv", [str(file), *given])
    monkeypatch.setattr(sys, "path", [str(file.parent), *sys.path])
    with warnings.catch_warnings():  # some scripts change what is shown
        try:
            runpy.run_path(str(file), run_name="__main__")
        except ModuleNotFoundError as error:
            pytest.skip(f"{script} needs {error.name}, which is not installed")


@pytest.mark.parametrize("script", RUN)
def test_scripts_say_what_they_do_in_place_of_doing_it(script, monkeypatch, capsys):
    with pytest.raises(SystemExit) as end:
        started(monkeypatch, script, "--help")
    assert end.value.code == 0 and capsys.readouterr().out.startswith("usage: ")


@pytest.mark.parametrize("script", WRITING)
def test_pages_are_written_to_the_folder_that_is_given(script, monkeypatch, tmp_path):
    def written(name, title, folder):
        raise SystemExit(str(folder))

    monkeypatch.setattr(report, "Report", written)
    monkeypatch.setenv("KESLER_DATA", str(tmp_path))
    more = ["python"] if script.endswith("wheels.py") else []
    with pytest.raises(SystemExit, match=re.escape(str(tmp_path))):
        started(monkeypatch, script, *more, "--results", str(tmp_path))

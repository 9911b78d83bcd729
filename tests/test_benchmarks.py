"""The scripts of benchmarks/, papers/ and wheels/ import names that the package has."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(
    str(file.relative_to(ROOT))
    for folder in ("benchmarks", "papers", "wheels")
    for file in (ROOT / folder).glob("*.py")
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_names_of_the_package_that_a_script_imports_are_there(script):
    for node in ast.walk(ast.parse((ROOT / script).read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "kesler":
            module = importlib.import_module(node.module)
            for each in node.names:
                assert hasattr(module, each.name), f"{node.module} has no {each.name}"

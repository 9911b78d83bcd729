"""What we use of CPython without its promise: one module lists it, and each row holds."""

import ast
from pathlib import Path

import pytest

import kesler
from kesler import python_internals
from kesler.compiled.trial import events, texts
from kesler.python_internals import C_FUNCTIONS, PRIVATE, type_address

HOME = Path(python_internals.__file__)
ALLOWED = {"interrupts.py": {"_signal"}}
SOURCES = [file for file in sorted(Path(kesler.__file__).parent.rglob("*.py")) if file != HOME]
MARKS = {"_signal", "_is_gil_enabled", "__basicsize__", "_at_fork_reinit", "pythonapi", "py_object"}


@pytest.mark.parametrize("what", PRIVATE)
def test_it_is_as_it_was(what):
    assert PRIVATE[what]()


def test_the_address_of_a_type_is_read_from_each_object():
    class Own(str):
        __slots__ = ()

    for thing in (Own("text"), "text", b"bytes", 1 << 80, 2.5, None, [], PRIVATE):
        assert type_address(thing) == id(type(thing))


def called() -> set[str]:
    """Return the C functions that compiled modules declare."""
    found = set()
    for module in (events, texts):
        for node in ast.walk(ast.parse(Path(module.__file__ or "").read_text())):
            if isinstance(node, ast.Constant) and str(node.value).startswith("Py"):
                found.add(node.value)
    return {name for name in found if name.isidentifier()}


def test_every_c_function_is_listed():
    assert called() == set(C_FUNCTIONS)


def names_in(file: Path) -> set[str]:
    """Return the attributes and the texts of a file."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)} | {
        text for text in texts if isinstance(text, str)
    }


def test_no_other_module_uses_what_is_private():
    assert {file.name: used for file in SOURCES if (used := names_in(file) & MARKS)} == ALLOWED


def test_strays_are_found(tmp_path):
    (tmp_path / "stray.py").write_text(
        "import sys\nlock._at_fork_reinit()\nsys.modules['_signal']\n"
    )
    assert names_in(tmp_path / "stray.py") & MARKS == {"_at_fork_reinit", "_signal"}

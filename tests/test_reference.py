"""The reference shows every public name, and the pages link only to what exists."""

import importlib
import inspect
import pkgutil
import re
import sys
from itertools import chain

import pytest

import kesler
import pages

DOCS = pages.ROOT / "docs"
sys.path.insert(0, str(DOCS / "_ext"))
public_names = importlib.import_module("public_names")
command_line = importlib.import_module("command_line")


def public_modules():
    """Return the modules in which names are public: those that declare them, at the top."""
    names = (m.name for m in pkgutil.iter_modules(kesler.__path__) if m.name != "__main__")
    found = {name: importlib.import_module(f"kesler.{name}") for name in names}
    return {name: module for name, module in found.items() if getattr(module, "__all__", None)}


def test_every_public_name_of_the_package_is_in_one_group():
    listed = list(chain.from_iterable(names.split() for names in public_names.GROUPS.values()))
    assert sorted(listed) == sorted(kesler.__all__)


def test_every_public_module_has_a_page():
    assert set(public_names.MODULES) == set(public_modules())


@pytest.mark.parametrize("name", ["kesler", *(f"kesler.{name}" for name in public_names.MODULES)])
def test_every_public_name_has_a_docstring_of_one_line_and_more(name):
    module = importlib.import_module(name)
    for each in module.__all__:
        thing = getattr(module, each)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            assert re.match(r"\S.*[.:]", inspect.getdoc(thing) or ""), f"{name}.{each}"


@pytest.mark.parametrize("command", sorted(command_line.commands(command_line.parser())))
def test_the_page_of_the_command_line_has_every_command(command):
    assert f"usage: kesler {command}" in command_line.page()

"""The reference shows every public name, and the pages link only to what exists."""

import importlib
import inspect
import pkgutil
import re
import sys
from ast import literal_eval
from collections.abc import Iterator
from contextlib import suppress
from inspect import signature
from itertools import chain
from typing import Any

import pytest

import kesler
import pages
from kesler.settings.codec import ESTIMATORS
from kesler.settings.table import SETTINGS

DOCS = pages.ROOT / "docs"
sys.path.insert(0, str(DOCS / "_ext"))
public_names = importlib.import_module("public_names")
command_line = importlib.import_module("command_line")
parameter_groups = importlib.import_module("parameter_groups")
settings_page = importlib.import_module("settings_page")


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


BASES = set(
    "FeatureMap View MercerKernel UpdateRule Exploration ThresholdAlgorithm RivalStep Link "
    "Preconditioner Preprocessing Query Dictionary Step".split()
)
"""Classes that others derive from: these have examples."""
NOT_HERE = set(
    "load_20newsgroups load_enron load_mnist serve ModelRegistry application Format".split()
)
"""Names that need data which Kesler does not contain, those of servers, which do not end, and the
type of the rows of a registry."""


def has_example(thing):
    """Say whether a docstring has an example, or that of a method, or that of what makes it.

    Types of errors, and constants, need none.
    """
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return True
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return True
    docs = [inspect.getdoc(thing) or ""]
    if inspect.isclass(thing):
        docs += [inspect.getdoc(m) or "" for n, m in vars(thing).items() if n[0] != "_"]
    docs += [
        inspect.getdoc(getattr(kesler, name)) or ""
        for name in re.findall(r"made by :func:`(\w+)`", docs[0])
    ]
    return any(">>>" in doc for doc in docs)


@pytest.mark.parametrize("name", ["kesler", *(f"kesler.{name}" for name in public_names.MODULES)])
def test_every_public_name_has_an_example(name):
    module = importlib.import_module(name)
    things = {each: getattr(module, each) for each in module.__all__}
    bare = {each for each, thing in things.items() if not has_example(thing)}
    assert not bare - BASES - NOT_HERE


def public_calls() -> Iterator[Any]:
    """Yield the public classes and functions, and the public methods of these classes."""
    for name in ["kesler", *(f"kesler.{name}" for name in public_names.MODULES)]:
        module = importlib.import_module(name)
        for thing in (getattr(module, each) for each in module.__all__):
            if inspect.isclass(thing) or inspect.isroutine(thing):
                yield thing
            if inspect.isclass(thing):
                yield from (
                    m for n, m in inspect.getmembers(thing, inspect.isroutine) if n[0] != "_"
                )


def said_defaults(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parameters whose default a docstring gives as a literal, and the literal."""
    text = inspect.cleandoc((thing.__doc__ or "").replace("\\\n", ""))
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    for names, said in re.findall(r"^(\w[\w, ]*?) : (?:.*, )?default (.*)$", section, re.MULTILINE):
        with suppress(ValueError, SyntaxError):
            value = literal_eval(re.sub(r"(?<=\d),(?=\d{3})", "", said))
            yield from ((name, value) for name in names.split(", "))


def test_docstrings_give_the_defaults_of_signatures():
    things = {id(thing): thing for thing in public_calls()}.values()
    said = [(thing, *each) for thing in things for each in said_defaults(thing)]
    wrong = [
        (getattr(thing, "__qualname__", thing), name, value)
        for thing, name, value in said
        if (default := signature(thing).parameters[name].default) != value
        and repr(default) != "<factory>"
    ]
    assert not wrong and len(said) > 200


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_parameters_of_an_estimator_stand_by_groups(name):
    """Each parameter is once on its page, with its own lines, under the heading of its group."""
    names = [*signature(getattr(kesler, name)).parameters]
    parameters = {each: [f"    **{each}** : int", f"        About {each}."] for each in names}
    text = [":Parameters:", "", *chain.from_iterable(parameters.values()), "", ":Attributes:", "a"]
    found = parameter_groups.grouped(["Summary.", "", *text])
    assert (found[:2], found[-2:]) == (["Summary.", ""], [":Attributes:", "a"])
    heading, groups = "", {}
    for i, line in enumerate(found[:-2]):
        heading = line if line.startswith(":") else heading
        if line.startswith("    **"):
            groups[line.split("**")[1]] = heading
            assert found[i : i + 2] == parameters[line.split("**")[1]]
    kept = [line for line in found if line and not line.startswith(":Parameters")]
    assert sorted(kept) == sorted(["Summary.", *filter(None, text[1:])])
    for each in names:
        group = SETTINGS[each].group if each in SETTINGS else None
        assert groups[each] == (f":Parameters ({group}):" if group else ":Parameters:")


def test_every_setting_is_once_on_the_page_of_settings(tmp_path):
    settings_page.write(tmp_path)
    listed = re.findall(r"^\| `(\w+)` \|", (tmp_path / "settings.md").read_text("utf-8"), re.M)
    assert sorted(listed) == sorted(SETTINGS)


@pytest.mark.parametrize("command", sorted(command_line.commands(command_line.parser())))
def test_the_page_of_the_command_line_has_every_command(command):
    assert f"usage: kesler {command}" in command_line.page()

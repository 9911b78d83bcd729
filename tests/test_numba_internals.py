"""What we use of Numba and llvmlite without their promise: one module lists and uses it."""

import ast
import dis
import inspect
import tomllib
from importlib import import_module
from pathlib import Path

import llvmlite
import numba
import pytest
from packaging.requirements import Requirement

import kesler
from kesler.compiled.jit import numba_internals
from kesler.compiled.jit.numba_internals import ASSIGNED, OPTION, PRIVATE

HOME = Path(numba_internals.__file__)
SOURCES = [
    file
    for folder in (Path(kesler.__file__).parent, Path(__file__).parents[1] / "wheels")
    for file in sorted(folder.rglob("*.py"))
    if file != HOME
]
DOCUMENTED = {
    "numba": {"__version__", "config", "from_dtype", "njit", "types"},
    "numba.extending": {"intrinsic", "overload"},
    "llvmlite": {"__version__", "ir"},
}
UNDERSCORED = {name.rpartition(".")[2] for name in PRIVATE if "._" in name}
OPTIONS = {name.rpartition(".")[2] for name, kind in PRIVATE.items() if kind == OPTION}
# So are attributes of other things called too.
ELSEWHERE = {"_cache", "_impl", "_CacheLocator", "_StructProxy"}


def resolved(name):
    """Return the thing of a dotted name and what holds it, the thing None if only that is there."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            thing = import_module(".".join(parts[:n]))
        except ImportError:
            continue
        for part in parts[n:]:
            owner, thing = thing, getattr(thing, part, None)
        return thing, owner
    return None, None


def assigns(owner, name):
    """Whether a method of a class, or of one that it derives from, assigns an attribute."""
    methods = (m for each in inspect.getmro(owner) for m in vars(each).values())
    codes = [m.__code__ for m in methods if inspect.isfunction(m)]
    return any(
        step.opname == "STORE_ATTR" and step.argval == name
        for code in codes
        for step in dis.get_instructions(code)
    )


def change_of(name, expected):
    """Return what has changed of a private name, None if nothing has."""
    thing, owner = resolved(name)
    if expected == ASSIGNED:
        if inspect.isclass(owner) and (thing is not None or assigns(owner, name.split(".")[-1])):
            return None
        return f"{name} is no longer assigned by a method of its class"
    if thing is None:
        return f"{name} is no longer there"
    if isinstance(expected, tuple):
        parameters = tuple(inspect.signature(thing).parameters)
        if parameters != expected:
            return f"{name} takes {parameters}, no longer {expected}"
    return None


def first_change(table):
    """Return the first change of all that a table lists, None if there is none."""
    return next((c for row in table.items() if (c := change_of(*row)) is not None), None)


def test_all_that_is_private_of_numba_is_as_it_was():
    assert first_change(PRIVATE) is None


@pytest.mark.parametrize(
    ("name", "expected", "change"),
    [
        ("numba.core.nothing.at_all", (), "is no longer there"),
        ("numba.core.ccallback.CFunc.translate", ("self",), "is no longer there"),
        ("numba.core.ccallback.CFunc.compile", ("self", "x"), r"takes ('self',), no longer"),
        ("numba.core.ccallback.CFunc._drawer", ASSIGNED, "is no longer assigned"),
        ("numba.core.cpu.CPUTargetOptions._no_such", OPTION, "is no longer there"),
    ],
)
def test_the_first_that_has_changed_is_named(name, expected, change):
    settings = first_change({**PRIVATE, name: expected, "numba.later": ()})
    assert settings.startswith(name) and change in settings


def uses(file):
    """Yield what a file uses of Numba and llvmlite, and all attributes, keywords and texts."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield "import", (node.module, alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                home, _, name = alias.name.rpartition(".")
                yield "import", (home, name) if home else (name, "__version__")
        elif isinstance(node, ast.Attribute):
            yield "name", node.attr
        elif isinstance(node, ast.keyword):
            yield "option", node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield "option", node.value


def strays(file):
    """Return what a file uses that is private to Numba or llvmlite."""
    return [
        use
        for kind, use in uses(file)
        if (
            kind == "import"
            and use[0].split(".")[0] in ("numba", "llvmlite")
            and use[1] not in DOCUMENTED.get(use[0], ())
        )
        or (kind == "name" and use in UNDERSCORED - ELSEWHERE)
        or (kind == "option" and use in OPTIONS)
    ]


def test_no_other_module_uses_what_is_private():
    assert {file: found for file in SOURCES if (found := strays(file))} == {}


def test_strays_are_found(tmp_path):
    file = tmp_path / "stray.py"
    file.write_text("from numba.core import cgutils\nimport llvmlite.binding\nx._tm\nf(_nrt=1)\n")
    assert len(strays(file)) == 4


def test_this_version_is_within_the_bounds():
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    needed = map(Requirement, tomllib.loads(text)["project"]["dependencies"])
    bounds = {each.name: each.specifier for each in needed}
    for module in (numba, llvmlite):
        assert module.__version__ in bounds[module.__name__]
        assert any(bound.operator == "<" for bound in bounds[module.__name__])

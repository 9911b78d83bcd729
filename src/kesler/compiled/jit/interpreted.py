"""The interpreted copy of the compiled package, which computes until kernels are compiled.

Every module under `kesler.compiled` can be loaded a second time, under `kesler.interpreted`, with
decorators that leave functions as they are: the same code, run by Python. Its functions give the
same bits as the compiled ones, a thousand times more slowly.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

ORIGINAL, COPY = "kesler.compiled", "kesler.interpreted"

SHARED = frozenset(
    f"{ORIGINAL}.jit.{name}"
    for name in ("background", "cache", "interpreted", "numba_internals", "pruning")
)
"""Modules that are not copied: they extend Numba, or know what is compiled in this process."""


def copy_of(function: Any) -> FunctionType:
    """Return the interpreted copy of a function, compiled or not, that kernels consist of."""
    plain = getattr(function, "py_func", function)
    home = plain.__globals__["__name__"]
    if not home.startswith(f"{ORIGINAL}."):
        return _copy_outside(plain)
    original, copied = vars(sys.modules[home]), vars(_copied_module(home))
    if original.get(plain.__name__) is function:
        found: FunctionType = copied[plain.__name__]
        return found
    # A function made from a template, of which some globals have other values.
    changed = {
        name: copy_of(value)
        for name, value in plain.__globals__.items()
        if value is not original.get(name) and is_function(value)
    }
    return _with(plain, {**copied, **changed})


def is_function(value: Any) -> bool:
    """Return whether a value is a Python function, compiled or not."""
    return isinstance(getattr(value, "py_func", value), FunctionType)


def _copy_outside(plain: FunctionType) -> FunctionType:
    """Return a copy of a function from another package, and of those that it calls."""
    globals_ = plain.__globals__
    names = [name for name in _names_in(plain.__code__) if is_function(globals_.get(name))]
    called = {name: copy_of(globals_[name]) for name in names if globals_[name] is not plain}
    return _with(plain, {**globals_, **called}) if called or plain.__closure__ else plain


def _with(plain: FunctionType, globals_: dict[str, Any]) -> FunctionType:
    contents = [cell.cell_contents for cell in plain.__closure__ or ()]
    cells = tuple(CellType(copy_of(c) if is_function(c) else c) for c in contents)
    return FunctionType(plain.__code__, globals_, plain.__name__, plain.__defaults__, cells)


def _names_in(code: CodeType) -> list[str]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return [*code.co_names, *(name for each in inner for name in _names_in(each))]


# ---- modules ------------------------------------------------------------------------------------


def _copied_module(name: str) -> ModuleType:
    _install()
    return importlib.import_module(_copied(name))


def _copied(name: str) -> str:
    """Return the name of a module in the copy; of a shared or of another module, its own."""
    is_copied = name == ORIGINAL or name.startswith(f"{ORIGINAL}.")
    return COPY + name.removeprefix(ORIGINAL) if is_copied and name not in SHARED else name


@cache
def _install() -> None:
    """Let Python find the modules of the copy."""
    sys.meta_path.append(_Finder())


class _Finder(MetaPathFinder):
    """Finds a module of the copy where the original lies."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load a module of the copy, None for other modules."""
        if fullname != COPY and not fullname.startswith(f"{COPY}."):
            return None
        original = find_spec(ORIGINAL + fullname.removeprefix(COPY))
        if original is None:
            return None
        is_package = original.submodule_search_locations is not None
        loader = _Loader(original)
        spec = ModuleSpec(fullname, loader, origin=original.origin, is_package=is_package)
        spec.has_location = True
        return spec


class _Loader(Loader):
    """Runs the code of an original module with imports from the copy."""

    def __init__(self, original: ModuleSpec) -> None:
        self._original = original

    def exec_module(self, module: ModuleType) -> None:
        """Run the code, of which Python's cache may hold the bytecode."""
        loader: Any = self._original.loader
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}
        exec(loader.get_code(self._original.name), vars(module))


def _import(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """Import as Python does, but modules of the copy in place of the originals."""
    return builtins.__import__(_copied(name), globals, locals, fromlist or (), level)

"""Decorators that compile plain Python functions to machine code, cached across processes."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dis import get_instructions
from functools import cache
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic, overload

from kesler.compiled.jit.numba_internals import (
    compiled_callback,
    compiled_kernel,
    helper_options,
)
from kesler.errors import KeslerError

Function = Callable[..., Any]

INT = types.int64
INDICES = types.Array(types.int32, 1, "C")
INTS = types.Array(types.int64, 1, "C")
INT_TABLE = types.Array(types.int64, 2, "C")
FLOATS = types.Array(types.float32, 1, "C")
FLOAT_TABLE = types.Array(types.float32, 2, "C")
FLOAT_STACK = types.Array(types.float32, 3, "C")
DOUBLES = types.Array(types.float64, 1, "C")
DOUBLE_TABLE = types.Array(types.float64, 2, "C")
DOUBLE_STACK = types.Array(types.float64, 3, "C")
BOOLS = types.Array(types.boolean, 1, "C")

IS_COPY = not __name__.startswith("kesler.compiled.")
"""Whether this module is of the copy that stands in for kernels that are not compiled yet."""
IS_INTERPRETED = bool(config.DISABLE_JIT) or IS_COPY
"""Whether functions stay as they are, for Python to interpret."""

_DIGESTS = re.compile("(_[0-9a-f]{5,8}){2,}$")  # at the end of the name of a copy
_STEP = "Failed in nopython mode pipeline"  # of Numba, before what it found


def kernel(signature: Any, *, nogil: bool = True) -> Callable[[Function], Function]:
    """Compile a loop for its signature, or a list of signatures, and cache it where possible.

    It runs without the GIL if `nogil`.

    Numba checks only the file of the function itself when it validates its cache, not the files of
    the functions that it calls. Therefore the name of a kernel ends with a digest of this package
    and of the numbers that it takes from others.
    """

    def decorate(function: Function) -> Function:
        if IS_INTERPRETED:
            return np.errstate(all="ignore")(function)  # machine code gives no warnings
        function.__qualname__ += f"_{_package_digest():x}"
        signatures = signature if isinstance(signature, list) else [signature]
        from kesler.compiled.jit.background import Store, loaded_or_waiting

        def compiled(cache: Any) -> Any:
            return compiled_kernel(function, cache, signatures, nogil=nogil)

        return loaded_or_waiting(Store(function, compiled))

    return decorate


def inlined(function: Function, *, allocates: bool = False, always: bool = False) -> Function:
    """Compile a helper that kernels call.

    It has no cache, since it becomes part of the kernel that calls it, and no wrapper for calls
    from Python, which would take longer to compile than the helper. Unless it allocates, it does
    not count references to its arrays, which took a third of the time of a short trial.
    """
    if IS_INTERPRETED:
        return function
    return njit(function, **helper_options(allocates=allocates, always=always))


def always_inlined(function: Function) -> Function:
    """Compile a helper as `inlined` does, and force LLVM to inline it.

    This is for helpers that a trial runs so often that calls are slow: where LLVM decided for
    itself, a trial of PA-I took a third longer.
    """
    return inlined(function, always=True)


def allocating(function: Function) -> Function:
    """Compile a helper that allocates arrays, as `inlined` does."""
    return inlined(function, allocates=True)


@inlined
def are_finite(numbers: Any) -> bool:
    """Return whether all numbers of an array are finite."""
    total = 0.0  # zero times what is not finite is NaN
    for i in range(numbers.shape[0]):
        total += 0.0 * numbers[i]
    return total == 0


def chosen_by(choose: Callable[[Any], Function]) -> Any:
    """Return a helper that calls the function that `choose` returns for its first argument.

    When a kernel is compiled, `choose` receives the type of the argument.
    """

    def chosen(first: Any, *arguments: Any) -> Any:
        return choose(first)(first, *arguments)

    chosen.choose = choose  # type: ignore[attr-defined]
    if not IS_INTERPRETED:
        options = helper_options(allocates=False, always=True)

        @overload(chosen, jit_options=options, strict=False)
        def _version(first: Any, *arguments: Any) -> Function:
            version = choose(first)
            return getattr(version, "py_func", version)

    return chosen


def by_class(versions: dict[type, Function]) -> Any:
    """Return a helper that calls the version for the class of its first argument, a named tuple."""
    named = {kind.__qualname__: version for kind, version in versions.items()}
    return chosen_by(lambda first: named[class_of(first).__qualname__])


def class_of(argument: Any) -> type:
    """Return the class of a named tuple, given the tuple or its type in compiled code."""
    return getattr(argument, "instance_class", None) or type(argument)


def field_of(argument: Any, name: str) -> Any:
    """Return a field of a named tuple, or its type in compiled code; the argument without one."""
    names = getattr(argument, "fields", ())
    if isinstance(names, tuple) and name in names:
        return argument.types[names.index(name)]
    return getattr(argument, name, argument)


def callback_address(function: Function, signature: Any, *, allocates: bool = True) -> int:
    """Return the address by which kernels call `function`.

    It is compiled for `signature` and cached in its own file.

    Unless it allocates, it does not count references to its arrays: with many arrays, that took
    most of the time.
    """
    if IS_INTERPRETED:
        from kesler.compiled.jit.background import FUNCTIONS

        FUNCTIONS[id(function)] = function
        return id(function)
    return _callback(_named_by_contents(function), signature, allocates=allocates).address


@cache
def _callback(function: Function, signature: Any, *, allocates: bool) -> Any:
    from kesler.compiled.jit.background import FunctionByAddress, Store

    def compiled(cache: Any) -> Any:
        return compiled_callback(function, signature, cache, allocates=allocates)

    try:
        return FunctionByAddress(Store(function, compiled))
    except Exception as error:
        name = _DIGESTS.sub("", f"{function.__module__}.{function.__qualname__}")
        raise KeslerError(
            f"{name} cannot be compiled ({_reason(error)}): use only arithmetic, comparisons and "
            "indexing, and the arguments documented for this kind of function"
        ) from error


def _reason(error: Exception) -> str:
    """Return what Numba found, and in which line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    found = next((line for line in lines if not line.startswith(_STEP)), lines[0])
    place = next((line for line in lines if line.startswith("File ")), "")
    return f"{found} {place}".strip(" :")


def by_address(signature: Any) -> Function:
    """Return a function ``call(address, *arguments)`` for use inside kernels.

    An address is that of the place where the address of the machine code is written.
    Passing one of Numba's first-class functions to a kernel costs 8 us each time; passing an
    integer costs nothing.
    """
    if IS_INTERPRETED:
        from kesler.compiled.jit.background import called_at

        return lambda address, *arguments: called_at(address)(*arguments)

    @intrinsic
    def call(typing_context: Any, address: Any, *arguments: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            llvm_types = [context.get_value_type(each) for each in signature.args]
            function_type = ir.FunctionType(ir.VoidType(), llvm_types)
            place = builder.inttoptr(values[0], function_type.as_pointer().as_pointer())
            function = builder.load(place)
            unpacked = [builder.extract_value(values[1], i) for i in range(len(llvm_types))]
            builder.call(function, unpacked)
            return context.get_dummy_value()

        return types.void(INT, types.StarArgTuple(signature.args)), generate

    return call


def with_globals(function: Function, label: str, values: dict[str, Any]) -> Function:
    """Return a copy of a function in which globals have other values, given a label for them.

    The cache distinguishes the copies by this label.
    """
    globals_ = {**function.__globals__, **values}
    copy = FunctionType(function.__code__, globals_, f"{function.__name__.lstrip('_')}_{label}")
    copy.__qualname__ = copy.__name__
    copy.__module__ = function.__module__
    return copy


def instantiate(
    template: Function,
    name: str,
    function: Function,
    *,
    allocates: bool = True,
    checked: bool = False,
) -> Function:
    """Return a copy of `template` in which the global `name` is `function`, inlined.

    If `checked`, an index out of range raises an error in `function` and in all that it calls.

    The copy has the file, the line and the name of `function`, so that Numba caches it next to
    `function` and recompiles it when that file changes. (Closures over compiled functions would be
    recompiled in every process.)
    """
    code = template.__code__.replace(
        co_filename=function.__code__.co_filename,
        co_firstlineno=function.__code__.co_firstlineno,
    )
    globals_ = dict(template.__globals__)
    options = helper_options(allocates=allocates, always=not allocates, checked=checked)
    part = _with_helpers(function, checked=checked)
    globals_[name] = function if IS_INTERPRETED else njit(part, **options)
    digest = f"{_digest(function):x}_{_digest(template):x}"
    copy = FunctionType(code, globals_, f"{function.__name__}_{digest}", template.__defaults__)
    copy.__qualname__ = f"{function.__qualname__}_{digest}"
    copy.__module__ = function.__module__
    return copy


def _named_by_contents(function: Function) -> Function:
    """Return the function under a name that ends with a digest of what it computes.

    Numba's cache distinguishes functions by file, name and line only, which does not distinguish
    two lambdas on one line, or two closures made by one function. A digest of this package is part
    of the name too, as in `kernel`, since the function may contain its loops.
    """
    copy = _with_helpers(function, checked=False)
    digests = f"{_digest(function):x}_{_package_digest():x}"
    copy.__qualname__ = f"{function.__qualname__}_{digests}"
    copy.__module__ = function.__module__
    return copy


def _with_helpers(
    function: Function, *, checked: bool, callers: tuple[Function, ...] = ()
) -> Function:
    """Return a function in which the plain functions that it calls are compiled.

    If they are checked, functions that the user has compiled are compiled again. None may call
    itself: Numba crashes when it loads such a function from its cache.
    """
    chain = (function, *callers)
    options = {"error_model": "numpy", **({"boundscheck": True} if checked else {})}

    def compiled(value: Any) -> Any:
        inner = getattr(value, "py_func", value) if checked else value
        if not isinstance(inner, FunctionType):
            return value
        _require_no_recursion(inner, chain)
        return njit(_with_helpers(inner, checked=checked, callers=chain), **options)

    globals_ = dict(function.__globals__)
    for name in _names_in(function.__code__):
        if name in globals_:
            globals_[name] = compiled(globals_[name])
    cells = tuple(CellType(compiled(cell.cell_contents)) for cell in function.__closure__ or ())
    return FunctionType(
        function.__code__, globals_, function.__name__, function.__defaults__, cells
    )


def _require_no_recursion(function: Function, chain: tuple[Function, ...]) -> None:
    """Raise if a function is called by itself, or by a function that it calls."""
    if function in chain:
        user = chain[-1]
        raise KeslerError(
            f"{user.__module__}.{user.__qualname__} cannot be compiled, since "
            f"{function.__qualname__} calls itself: write a loop instead"
        )


@cache
def _package_digest() -> int:
    return zlib.crc32(b"".join(file.read_bytes() for file in _sources()))


def _sources() -> list[Path]:
    """Return the files of this package, and of the numbers and records that it takes."""
    kesler = Path(__file__).parents[2]
    of_folders = (file for name in ("compiled", "state") for file in (kesler / name).rglob("*.py"))
    return sorted([kesler / "codes.py", kesler / "python_internals.py", *of_folders])


def _digest(function: Function) -> int:
    """Return a checksum of the code, defaults, closure and globals of a function."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    named = [function.__globals__.get(name) for name in _names_in(function.__code__)]
    values = [*cells, *named, *(function.__defaults__ or ())]
    parts = [repr(_contents(function.__code__)), *map(_of_value, values)]
    return zlib.crc32("\n".join(parts).encode())


def _of_value(value: Any) -> str:
    """Return a text that identifies a value that a function refers to, equal in every process."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {zlib.crc32(np.ascontiguousarray(value).data)}"
    inner = getattr(value, "py_func", value)
    if isinstance(inner, FunctionType):
        return str(_digest(inner))
    if isinstance(value, (bool, int, float, complex, str, bytes, np.generic, type(None))):
        return repr(value)
    if isinstance(value, dict):
        return _of_value(tuple(value.items()))
    if isinstance(value, tuple):
        return repr([_of_value(each) for each in value])
    return str(getattr(value, "__name__", type(value).__name__))


def _names_in(code: CodeType) -> list[str]:
    """Return the names of the globals that code reads, and not those of attributes."""
    read = [each.argval for each in get_instructions(code) if each.opname == "LOAD_GLOBAL"]
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return [*dict.fromkeys(read), *(name for each in inner for name in _names_in(each))]


def _contents(code: CodeType) -> tuple[Any, ...]:
    constants = [_contents(c) if isinstance(c, CodeType) else c for c in code.co_consts]
    return code.co_code, code.co_names, constants

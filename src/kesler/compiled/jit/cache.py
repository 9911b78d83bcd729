"""The sources of kernels: the cache of this machine, the package or, last, the compiler.

Compiling a kernel from Python takes half a minute, mostly in Numba, which types and lowers about
two hundred helpers. Therefore a package may contain kernels: as machine code for the processors of
a level (x86-64-v3 and v4), and as bitcode, optimised by LLVM but not yet machine code, which is
translated for any other processor in seconds, once.
"""

from __future__ import annotations

import hashlib
import pickle
import platform
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import llvmlite
import numba

from kesler.compiled.jit.numba_internals import (
    ShippedCache,
    UnwritableCache,
    dumps,
    processor_level,
    processor_name,
)

# What is shipped is valid only for the versions that it was made with: others compile from Python.
VERSIONS = f"{sys.implementation.cache_tag}-numba{numba.__version__}-llvmlite{llvmlite.__version__}"
SHIPPED = Path(__file__).parents[1] / "shipped" / f"{VERSIONS}-{sys.platform}-{platform.machine()}"

Function = Callable[..., Any]

_destinations: list[Path] = []


def platform_name() -> str:
    """Return what the bits of compiled loops depend on: the compiler and the processor."""
    level = f", {processor_level()}" if SHIPPED.exists() else ""
    return f"{VERSIONS} {sys.platform} {processor_name()}{level}"


def is_shipping() -> bool:
    """Return whether functions are compiled for the package."""
    return bool(_destinations)


class KernelCache(ShippedCache):
    """A cache that also reads what is in the package.

    The qualified names of its functions must end with digests of all that they are compiled from.
    """

    def is_shipping(self) -> bool:
        """Return whether compiled functions are written for the package, by `shipping`."""
        return is_shipping()

    def ship(self, function: Function, signature: Any, form: str, contents: Any) -> None:
        """Write a file to each directory of `shipping`."""
        for directory in _destinations:
            path = _path(directory, function, signature, form)
            path.write_bytes(zlib.compress(dumps(contents), 9))

    def shipped(self, function: Function, signature: Any, form: str) -> Any:
        """Return a function in the package in a form, None if there is none."""
        return shipped(function, signature, form)


def shipped(function: Function, signature: Any, form: str) -> Any:
    """Return a function in the package in a form, None if there is none."""
    path = _path(SHIPPED, function, signature, form)
    return pickle.loads(zlib.decompress(path.read_bytes())) if path.exists() else None


def _path(directory: Path, function: Function, signature: Any, form: str) -> Path:
    name = f"{function.__module__}.{function.__qualname__}{signature}"
    return directory / f"{hashlib.sha256(name.encode()).hexdigest()[:20]}.{form}"


def cache_of(function: Function) -> Any:
    """Return the cache of the machine code of a function.

    Numba raises an error if there is no directory for the cache: for a package on a read-only disk
    and a user without a home directory, or a function typed at a prompt. These are not cached, but
    what the package contains is read.
    """
    try:
        return KernelCache(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return UnwritableCache(partial(shipped, function))


@contextmanager
def shipping(directory: Path = SHIPPED) -> Iterator[None]:
    """Write functions compiled in this context to a directory instead of the cache."""
    directory.mkdir(parents=True, exist_ok=True)
    _destinations.append(directory)
    try:
        yield
    finally:
        _destinations.pop()

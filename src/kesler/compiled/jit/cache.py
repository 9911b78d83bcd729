"""The sources of kernels: the cache of this machine, the package or, last, the compiler.

Compiling a kernel from Python takes half a minute, mostly in Numba, which types and lowers about
two hundred helpers. Therefore a package may contain kernels as bitcode, optimised by LLVM but not
yet machine code: translating it for the processor takes seconds, once.
"""

from __future__ import annotations

import hashlib
import pickle
import platform
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import llvmlite
import numba

from kesler.compiled.jit.numba_internals import BitcodeCache, NullCache, dumps, processor_name

# Bitcode is valid only for the versions that it was made with: others compile from Python.
VERSIONS = f"{sys.implementation.cache_tag}-numba{numba.__version__}-llvmlite{llvmlite.__version__}"
SHIPPED = Path(__file__).parents[1] / "shipped" / f"{VERSIONS}-{sys.platform}-{platform.machine()}"

_destinations: list[Path] = []


def platform_name() -> str:
    """Return what the bits of compiled loops depend on: the compiler and the processor."""
    return f"{VERSIONS} {sys.platform} {processor_name()}"


class KernelCache(BitcodeCache):
    """A cache that also reads the bitcode in the package.

    The qualified names of its functions must end with digests of all that they are compiled from.
    """

    def writes_bitcode(self) -> bool:
        """Return whether compiled functions are written as bitcode, by `shipping`."""
        return bool(_destinations)

    def write_bitcode(self, function: Callable[..., Any], signature: Any, shipped: Any) -> None:
        """Write a file of bitcode to each directory of `shipping`."""
        for directory in _destinations:
            _path(directory, function, signature).write_bytes(zlib.compress(dumps(shipped), 9))

    def read_bitcode(self, function: Callable[..., Any], signature: Any) -> Any:
        """Return the bitcode of a function in the package, None if there is none."""
        path = _path(SHIPPED, function, signature)
        return pickle.loads(zlib.decompress(path.read_bytes())) if path.exists() else None


def _path(directory: Path, function: Callable[..., Any], signature: Any) -> Path:
    name = f"{function.__module__}.{function.__qualname__}{signature}"
    return directory / hashlib.sha256(name.encode()).hexdigest()[:20]


def cache_of(function: Callable[..., Any]) -> Any:
    """Return the cache of the machine code of a function.

    Numba raises an error if there is no directory for the cache: for a package on a read-only disk
    and a user without a home directory, or a function typed at a prompt. These are not cached.
    """
    try:
        return KernelCache(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return NullCache()


@contextmanager
def shipping(directory: Path = SHIPPED) -> Iterator[None]:
    """Write functions compiled in this context to a directory instead of the cache."""
    directory.mkdir(parents=True, exist_ok=True)
    _destinations.append(directory)
    try:
        yield
    finally:
        _destinations.pop()

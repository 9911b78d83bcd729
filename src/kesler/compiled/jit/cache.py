"""Where kernels come from: this machine's cache, the package, or, last, the compiler.

Compiling a kernel from Python takes half a minute, nearly all of it in Numba, which types and
lowers some two hundred helpers. So a package may carry kernels as bitcode, optimised by LLVM but
not yet machine code: to translate it for the processor at hand takes seconds, once.
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

from kesler.compiled.jit.numba_internals import BitcodeCache, NullCache, dumps

# Bitcode is good for the versions that it was made with: others compile from Python.
VERSIONS = f"{sys.implementation.cache_tag}-numba{numba.__version__}-llvmlite{llvmlite.__version__}"
SHIPPED = Path(__file__).parents[1] / "shipped" / f"{VERSIONS}-{sys.platform}-{platform.machine()}"

_destinations: list[Path] = []


class KernelCache(BitcodeCache):
    """A cache that is filled from what the package carries, for functions whose names tell all.

    That is, their qualified names end with digests of all that they are compiled from.
    """

    def writes_bitcode(self) -> bool:
        """Whether what is compiled now is to be shipped."""
        return bool(_destinations)

    def write_bitcode(self, function: Callable[..., Any], signature: Any, shipped: Any) -> None:
        """Write a file of bitcode for each who ships."""
        for directory in _destinations:
            _path(directory, function, signature).write_bytes(zlib.compress(dumps(shipped), 9))

    def read_bitcode(self, function: Callable[..., Any], signature: Any) -> Any:
        """Return what the package carries of a function, None if it carries nothing."""
        path = _path(SHIPPED, function, signature)
        return pickle.loads(zlib.decompress(path.read_bytes())) if path.exists() else None


def _path(directory: Path, function: Callable[..., Any], signature: Any) -> Path:
    name = f"{function.__module__}.{function.__qualname__}{signature}"
    return directory / hashlib.sha256(name.encode()).hexdigest()[:20]


def cache_of(function: Callable[..., Any]) -> Any:
    """Return where the machine code of a function is kept.

    A package on a read-only disk, a user without a home directory and a function typed at a prompt
    leave no place for it: Numba refuses, and we go on without.
    """
    try:
        return KernelCache(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return NullCache()


@contextmanager
def shipping(directory: Path = SHIPPED) -> Iterator[None]:
    """Compile all that is asked for within, and write it to a directory instead of the cache."""
    directory.mkdir(parents=True, exist_ok=True)
    _destinations.append(directory)
    try:
        yield
    finally:
        _destinations.pop()

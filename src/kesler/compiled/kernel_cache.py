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
import llvmlite.binding as llvm
import numba
from numba.core.caching import FunctionCache, NullCache
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from kesler.compiled.helper_library import machine_code_of

# Bitcode is good for the versions that it was made with: others compile from Python.
VERSIONS = f"{sys.implementation.cache_tag}-numba{numba.__version__}-llvmlite{llvmlite.__version__}"
SHIPPED = Path(__file__).parent / "shipped" / f"{VERSIONS}-{sys.platform}-{platform.machine()}"

_destinations: list[Path] = []


class KernelCache(FunctionCache):
    """Numba's cache, filled from what the package carries, for functions whose names tell all.

    That is, their qualified names end with digests of all that they are compiled from.
    """

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return a function found in the cache or in the package, None if it is in neither.

        Numba would first load all that it knows for compiling, SciPy's linear algebra with it:
        twice the time of everything else here. Machine code needs its runtime alone.
        """
        if _destinations:
            return None
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            found = self._load_overload(signature, target_context)
            return self._shipped(signature, target_context) if found is None else found

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a function in the cache, or among what is to be shipped."""
        for directory in _destinations:
            library, *rest = self._impl.reduce(result)
            shipped = library[0], result.library.bitcode, rest
            self._path(directory, signature).write_bytes(zlib.compress(dumps(shipped), 9))
        if not _destinations:
            super().save_overload(signature, result)

    def _shipped(self, signature: Any, target_context: Any) -> Any:
        path = self._path(SHIPPED, signature)
        if not path.exists():
            return None
        name, bitcode, rest = pickle.loads(zlib.decompress(path.read_bytes()))
        codegen = target_context.codegen()
        code = machine_code_of(codegen, llvm.parse_bitcode(bitcode))
        found = (name, "object", code), *rest
        self._impl.locator.ensure_cache_path()
        self._cache_file.save(self._index_key(signature, codegen), found)
        return self._impl.rebuild(target_context, found)

    def _path(self, directory: Path, signature: Any) -> Path:
        function = self._py_func
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

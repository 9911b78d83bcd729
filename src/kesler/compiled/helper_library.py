"""How helpers are compiled: to the form that kernels take in, and no further.

Numba makes machine code of every function, and optimises each together with all that it calls. Ours
are called by kernels alone, which do both for all that they call: once is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import CodeLibrary, JITCodeLibrary
from numba.core.compiler import Compiler


class HelperLibrary(JITCodeLibrary):
    """The code of one helper, to be linked into that of a kernel."""

    def finalize(self) -> None:
        """Make the code ready to be linked, without that of what it calls."""
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of machine code: there is none."""
        return 0

    @property
    def codegen(self) -> Any:
        """What made the code, and would make machine code of it."""
        return _WithoutMachineCode(self._codegen)


class KernelLibrary(JITCodeLibrary):
    """The code of a kernel, of the helpers that it calls, and of those that they call.

    Attributes
    ----------
    bitcode : the code as LLVM has optimised it, before it became machine code.
    """

    bitcode: bytes

    def serialize_using_object_code(self) -> Any:
        """Return what a cache keeps: machine code, and no bitcode, since nothing calls a kernel."""
        self._ensure_finalized()
        return self.name, "object", (self._get_compiled_object(), _outline(self._final_module))

    def _finalize_final_module(self) -> None:
        self.bitcode = self._final_module.as_bitcode()
        super()._finalize_final_module()

    def add_linking_library(self, library: CodeLibrary) -> None:
        """Take in the code of what is called."""
        for each in _with_all_that_it_calls(library, set()):
            super().add_linking_library(each)


class _WithoutMachineCode:
    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Set where machine code finds its constants: it has none."""


class HelperCompiler(Compiler):
    """Numba's compiler, for helpers."""

    def define_pipelines(self) -> Any:
        """Return what is done to a function, after choosing where its code goes."""
        return _in_library(self.state, HelperLibrary, super().define_pipelines())


class KernelCompiler(Compiler):
    """Numba's compiler, for kernels and callbacks."""

    def define_pipelines(self) -> Any:
        """Return what is done to a function, after choosing where its code goes."""
        return _in_library(self.state, KernelLibrary, super().define_pipelines())


def machine_code_of(codegen: Any, module: Any) -> tuple[bytes, bytes]:
    """Return the machine code of a kernel's module, and its outline, as caches keep them."""
    outline = _outline(module)  # first: becoming machine code changes a module
    return codegen._tm.emit_object(module), outline


def _outline(module: Any) -> bytes:
    """Return the bitcode of a module that defines the same names, and nothing behind them."""
    functions = (f.name for f in module.functions if not f.is_declaration)
    variables = (v.name for v in module.global_variables if not v.is_declaration)
    lines = [
        *(f'define void @"{name}"() {{ unreachable }}' for name in functions),
        *(f'@"{name}" = global i8 0' for name in variables),
    ]
    return llvm.parse_assembly("\n".join(lines)).as_bitcode()


def _in_library(state: Any, kind: type[CodeLibrary], pipelines: Any) -> Any:
    if state.library is None:
        state.library = kind(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
    return pipelines


def _with_all_that_it_calls(library: CodeLibrary, seen: set[CodeLibrary]) -> Iterator[CodeLibrary]:
    if library not in seen:
        seen.add(library)
        yield library  # first: LLVM leaves out what nothing has called so far
        for each in getattr(library, "_linking_libraries", ()):
            yield from _with_all_that_it_calls(each, seen)

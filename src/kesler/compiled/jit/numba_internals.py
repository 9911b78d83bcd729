"""The internals of Numba and llvmlite that we use, which later versions may change.

Other modules use Numba's documented functions only: `njit`, `types`, `config`, `intrinsic`,
`overload`, and llvmlite's `ir`. `PRIVATE` lists what may change; tests/test_numba_internals.py
checks the list and names the first change. The upper bound in pyproject.toml is the last version
that passed.

Helpers are compiled only to the form that is linked into kernels. Numba would optimise every
function together with all that it calls, and translate it to machine code. Our helpers are called
by kernels only, where both is done once.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from numba import config, njit
from numba.core import cgutils
from numba.core import ir as numba_ir
from numba.core.analysis import compute_cfg_from_blocks, compute_live_map, compute_use_defs
from numba.core.caching import FunctionCache, NullCache
from numba.core.ccallback import CFunc
from numba.core.codegen import CodeLibrary, JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, run_frontend
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.imputils import impl_ret_borrowed
from numba.core.ir_utils import build_definitions
from numba.core.postproc import PostProcessor
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature
from numba.core.typing.templates import AttributeTemplate
from numba.core.untyped_passes import IRProcessing
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
    type_callable,
)
from numba.np.arrayobj import populate_array

from kesler.progress import compiling

__all__ = [
    "AttributeTemplate",
    "NotCached",
    "ShippedCache",
    "UnwritableCache",
    "cgutils",
    "compiled_callback",
    "compiled_kernel",
    "compute_cfg_from_blocks",
    "compute_live_map",
    "compute_use_defs",
    "definitions_of",
    "dumps",
    "helper_options",
    "impl_ret_borrowed",
    "infer_getattr",
    "llvm",
    "lower_builtin",
    "lower_getattr_generic",
    "models",
    "numba_ir",
    "populate_array",
    "processor_level",
    "redefine",
    "register_model",
    "register_width",
    "run_frontend",
    "type_callable",
    "value_of",
]

Function = Callable[..., Any]

ASSIGNED = "assigned by a method"
OPTION = "an option of njit"
PRESENT = "there"

PRIVATE: dict[str, tuple[str, ...] | str] = {
    # Functions and methods, with their parameter names.
    "numba.core.caching.FunctionCache": ("py_func",),
    "numba.core.caching.FunctionCache.load_overload": ("self", "sig", "target_context"),
    "numba.core.caching.FunctionCache.save_overload": ("self", "sig", "data"),
    "numba.core.caching.FunctionCache._load_overload": ("self", "sig", "target_context"),
    "numba.core.caching.FunctionCache._guard_against_spurious_io_errors": ("self",),
    "numba.core.caching.FunctionCache._index_key": ("self", "sig", "codegen"),
    "numba.core.caching.IndexDataCacheFile.save": ("self", "key", "data"),
    "numba.core.caching.CompileResultCacheImpl.reduce": ("self", "cres"),
    "numba.core.caching.CompileResultCacheImpl.rebuild": ("self", "target_context", "payload"),
    "numba.core.caching._CacheLocator.ensure_cache_path": ("self",),
    "numba.core.caching._CacheLocator.get_cache_path": ("self",),
    "numba.core.caching.NullCache": (),
    "numba.core.ccallback.CFunc": ("pyfunc", "sig", "locals", "options", "pipeline_class"),
    "numba.core.ccallback.CFunc.compile": ("self",),
    "numba.core.cgutils.alloca_once_value": ("builder", "value", "name", "zfill"),
    "numba.core.cgutils.gep_inbounds": ("builder", "ptr", "inds", "kws"),
    "numba.core.cgutils.get_null_value": ("ltype",),
    "numba.core.cgutils.unpack_tuple": ("builder", "tup", "count"),
    "numba.core.types.BaseTuple.from_types": ("tys", "pyclass"),
    "numba.core.codegen.JITCodeLibrary": ("codegen", "name"),
    "numba.core.codegen.JITCodeLibrary.add_linking_library": ("self", "library"),
    "numba.core.codegen.JITCodeLibrary.enable_object_caching": ("self",),
    "numba.core.codegen.JITCodeLibrary.finalize": ("self",),
    "numba.core.codegen.JITCodeLibrary.get_pointer_to_function": ("self", "name"),
    "numba.core.codegen.JITCodeLibrary.serialize_using_object_code": ("self",),
    "numba.core.codegen.JITCodeLibrary._ensure_finalized": ("self",),
    "numba.core.codegen.JITCodeLibrary._finalize_dynamic_globals": ("self",),
    "numba.core.codegen.JITCodeLibrary._finalize_final_module": ("self",),
    "numba.core.codegen.JITCodeLibrary._get_compiled_object": ("self",),
    "numba.core.codegen.JITCodeLibrary._raise_if_finalized": ("self",),
    "numba.core.codegen.JITCPUCodegen.set_env": ("self", "env_name", "env"),
    "numba.core.compiler.CompileResult._rebuild": (
        *("target_context", "libdata", "fndesc", "env", "signature", "objectmode", "lifted"),
        *("typeann", "reload_init", "referenced_envs"),
    ),
    "numba.core.compiler.Compiler.compile_extra": ("self", "func"),
    "numba.core.compiler.Compiler.define_pipelines": ("self",),
    "numba.core.dispatcher.Dispatcher.compile": ("self", "sig"),
    "numba.core.dispatcher.Dispatcher.disable_compile": ("self", "val"),
    "numba.core.imputils.impl_ret_borrowed": ("ctx", "builder", "retty", "ret"),
    "numba.core.runtime.rtsys.initialize": ("ctx",),
    "numba.core.serialize.dumps": ("obj",),
    "numba.core.sigutils.normalize_signature": ("sig",),
    "numba.core.typing.templates.AttributeTemplate": ("context",),
    "numba.np.arrayobj.populate_array": (
        *("array", "data", "shape", "strides", "itemsize", "meminfo", "parent"),
    ),
    # What intrinsics use of the target that they generate code for, and of a tuple of arrays.
    "numba.core.base.BaseContext.cast": ("self", "builder", "val", "fromty", "toty"),
    "numba.core.base.BaseContext.get_dummy_value": ("self",),
    "numba.core.base.BaseContext.get_value_type": ("self", "ty"),
    "numba.core.base.BaseContext.make_array": ("self", "typ"),
    "numba.core.base.BaseContext.make_tuple": ("self", "builder", "typ", "values"),
    "numba.core.cgutils._StructProxy._getvalue": ("self",),
    "numba.core.cgutils.voidptr_t": PRESENT,
    "numba.core.cpu.CPUContext.codegen": ("self",),
    "numba.core.registry.cpu_target": PRESENT,
    "numba.core.types.ExternalFunction": PRESENT,
    "numba.core.types.StarArgTuple": PRESENT,
    # What the removal of branches uses: Numba's intermediate representation and its passes.
    "numba.core.analysis.compute_cfg_from_blocks": ("blocks",),
    "numba.core.analysis.compute_live_map": ("cfg", "blocks", "var_use_map", "var_def_map"),
    "numba.core.analysis.compute_use_defs": ("blocks",),
    "numba.core.compiler.run_frontend": ("func", "inline_closures", "emit_dels"),
    "numba.core.compiler_machinery.FunctionPass.run_pass": ("self", "args", "kwargs"),
    "numba.core.compiler_machinery.PassManager.add_pass_after": ("self", "pass_cls", "location"),
    "numba.core.compiler_machinery.PassManager.finalize": ("self",),
    "numba.core.compiler_machinery.register_pass": PRESENT,
    "numba.core.ir_utils.build_definitions": ("blocks", "definitions"),
    "numba.core.postproc.PostProcessor.run": ("self", "emit_dels", "extend_lifetimes"),
    "numba.core.untyped_passes.IRProcessing": PRESENT,
    # Attributes that Numba's own methods assign.
    "numba.core.caching.FunctionCache._cache_file": ASSIGNED,
    "numba.core.ir.FunctionIR._definitions": ASSIGNED,
    "numba.core.caching.FunctionCache._impl": ASSIGNED,
    "numba.core.caching.FunctionCache._py_func": ASSIGNED,
    "numba.core.ccallback.CFunc._cache": ASSIGNED,
    "numba.core.codegen.JITCodeLibrary._codegen": ASSIGNED,
    "numba.core.codegen.JITCodeLibrary._final_module": ASSIGNED,
    "numba.core.codegen.JITCodeLibrary._finalized": ASSIGNED,
    "numba.core.codegen.JITCodeLibrary._linking_libraries": ASSIGNED,
    "numba.core.codegen.JITCodeLibrary._reload_init": ASSIGNED,
    "numba.core.codegen.JITCPUCodegen._tm": ASSIGNED,
    "numba.core.compiler.CompilerBase.func_id": ASSIGNED,
    "numba.core.compiler.CompilerBase.library": ASSIGNED,
    "numba.core.compiler.CompilerBase.targetctx": ASSIGNED,
    "numba.core.dispatcher.Dispatcher._cache": ASSIGNED,
    # Undocumented options of njit.
    "numba.core.cpu.CPUTargetOptions._nrt": OPTION,
    "numba.core.cpu.CPUTargetOptions.forceinline": OPTION,
    "numba.core.cpu.CPUTargetOptions.no_cfunc_wrapper": OPTION,
    "numba.core.cpu.CPUTargetOptions.no_cpython_wrapper": OPTION,
    # The extension interface, which is documented as subject to change.
    "numba.extending.infer_getattr": PRESENT,
    "numba.extending.lower_builtin": PRESENT,
    "numba.extending.lower_getattr_generic": PRESENT,
    "numba.extending.models.PrimitiveModel": PRESENT,
    "numba.extending.register_model": PRESENT,
    "numba.extending.type_callable": PRESENT,
    # llvmlite.
    "llvmlite.binding.ModuleRef.as_bitcode": ("self",),
    "llvmlite.binding.TargetMachine.emit_assembly": ("self", "module"),
    "llvmlite.binding.TargetMachine.emit_object": ("self", "module"),
    "llvmlite.binding.Target.create_target_machine": (
        *("self", "cpu", "features", "opt", "reloc", "codemodel"),
        *("printmc", "jit", "abiname"),
    ),
    "llvmlite.binding.get_host_cpu_features": (),
    "llvmlite.binding.get_host_cpu_name": (),
    "llvmlite.binding.parse_assembly": ("llvmir", "context"),
    "llvmlite.binding.parse_bitcode": ("bitcode", "context"),
}
"""The qualified name of everything that we use and that may change, with its expected form."""


class HelperLibrary(JITCodeLibrary):
    """The code of one helper, to be linked into the code of a kernel."""

    def finalize(self) -> None:
        """Prepare the code for linking, without the code of the functions that it calls."""
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, since there is no machine code."""
        return 0

    @property
    def codegen(self) -> Any:
        """The code generator, without the part for machine code."""
        return _WithoutMachineCode(self._codegen)


class KernelLibrary(JITCodeLibrary):
    """The code of a kernel and of all helpers that it calls, directly or indirectly.

    Attributes
    ----------
    bitcode : the code as optimised by LLVM, before translation to machine code.
    """

    bitcode: bytes

    def serialize_using_object_code(self) -> Any:
        """Return what a cache stores: machine code without bitcode, as nothing calls a kernel."""
        self._ensure_finalized()
        return self.name, "object", (self._get_compiled_object(), _outline(self._final_module))

    def _finalize_final_module(self) -> None:
        self.bitcode = self._final_module.as_bitcode()
        super()._finalize_final_module()

    def add_linking_library(self, library: CodeLibrary) -> None:
        """Link a library and all libraries that it calls, each after all that call it.

        LLVM omits what no code that is linked so far calls.
        """
        for each in reversed([*_after_all_that_it_calls(library, set())]):
            super().add_linking_library(each)


class _WithoutMachineCode:
    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing, since there is no machine code that reads the environment."""


PRUNING: list[Callable[[Any, Any], bool]] = []
"""What removes branches; :mod:`kesler.compiled.jit.pruning`, which reads facts, adds it."""


@register_pass(mutates_CFG=True, analysis_only=False)
class PruneByFacts(FunctionPass):
    """The pass that removes branches which the facts of an argument decide."""

    _name = "prune_by_facts"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Remove the branches; return whether there were any."""
        if not any(getattr(argument, "facts", None) for argument in state.args):
            return False
        has_changed = any(prune(state.func_ir, state.args) for prune in PRUNING)
        if has_changed:
            PostProcessor(state.func_ir).run()
        return has_changed


class HelperCompiler(Compiler):
    """Numba's compiler, for helpers."""

    def define_pipelines(self) -> Any:
        """Return the pipelines, after choosing the library for the code."""
        return _in_library(self.state, HelperLibrary, _pruning(super().define_pipelines()))


class KernelCompiler(Compiler):
    """Numba's compiler, for kernels and callbacks."""

    def compile_extra(self, func: Function) -> Any:
        """Compile a function that no cache contains, and show that it is compiled."""
        name = f"{func.__module__}.{func.__name__}".removeprefix("kesler.compiled.")
        with compiling(name):
            return super().compile_extra(func)

    def define_pipelines(self) -> Any:
        """Return the pipelines, after choosing the library for the code."""
        return _in_library(self.state, KernelLibrary, _pruning(super().define_pipelines()))


MOST_SECONDS = 120.0
"""How long a process waits while another compiles the same function; few take a third of it."""


class NotCached(LookupError):
    """A function is not in a cache that was only to be read."""


class ShippedCache(FunctionCache):
    """Numba's cache, extended by methods that read what a package ships, or write that instead.

    These are bitcode, optimised by LLVM but not yet translated for one processor, and machine code
    for all processors of a level.
    """

    _turn: Any = None  # the lock of a function that this process compiles
    is_only_read = False  # whether a function that is not there raises NotCached

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return a function found in the cache or in the package, None if there is neither.

        Numba would first load all that compilation needs, SciPy's linear algebra included, which
        takes twice the time of everything else here. Machine code needs only the runtime.

        Of several processes that need a function at once, one compiles it while the others wait.
        """
        if self.is_shipping():
            return None
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            found = self._found(signature, target_context)
            if found is None and self.is_only_read:
                raise NotCached
            if found is None:
                self._wait_for_turn(signature)
                found = self._found(signature, target_context)
                if found is not None:
                    self.end_turn()
            return found

    def _found(self, signature: Any, target_context: Any) -> Any:
        found = self._load_overload(signature, target_context)
        return self._of_package(signature, target_context) if found is None else found

    def _wait_for_turn(self, signature: Any) -> None:
        """Hold the lock of a function until `end_turn`, or compile it without one in the end."""
        from filelock import FileLock, Timeout

        name = f"{self._py_func.__module__}.{self._py_func.__qualname__}{signature}"
        try:
            self._impl.locator.ensure_cache_path()
            folder = Path(self._impl.locator.get_cache_path())
            lock = FileLock(folder / f"{sha256(name.encode()).hexdigest()[:20]}.lock")
            lock.acquire(timeout=MOST_SECONDS)
        except (NotImplementedError, OSError, Timeout):
            return  # a file system without locks, or a process that does not end
        self._turn = lock

    def end_turn(self) -> None:
        """Let other processes load, or compile, the function."""
        if self._turn is not None:
            self._turn.release()
            self._turn = None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Save a function in the cache, or what is shipped of it."""
        if not self.is_shipping():
            super().save_overload(signature, result)
            self.end_turn()
            return
        library, *rest = self._impl.reduce(result)
        name, bitcode = library[0], result.library.bitcode
        self.ship(self._py_func, signature, BITCODE, (name, bitcode, rest))
        for level in levels():
            machine = _machine_of(level)
            self.ship(self._py_func, signature, level, _translated(name, bitcode, rest, machine))

    def _of_package(self, signature: Any, target_context: Any) -> Any:
        """Return a function that the package ships; what must be translated is saved."""
        codegen = target_context.codegen()
        found, is_new = _of_forms(partial(self.shipped, self._py_func, signature), codegen._tm)
        if is_new:
            self._impl.locator.ensure_cache_path()
            self._cache_file.save(self._index_key(signature, codegen), found)
        return None if found is None else self._impl.rebuild(target_context, found)

    def is_shipping(self) -> bool:
        """Return whether functions are written for a package instead of to the cache."""
        raise NotImplementedError

    def ship(self, function: Function, signature: Any, form: str, contents: Any) -> None:
        """Write what `shipped` returns."""
        raise NotImplementedError

    def shipped(self, function: Function, signature: Any, form: str) -> Any:
        """Return what was shipped of a function in a form, None if there is nothing."""
        raise NotImplementedError


class UnwritableCache(NullCache):
    """What a package ships of a function, where no cache can be written.

    Parameters
    ----------
    shipped : function of a signature and a form, as `ShippedCache.shipped` without the function.
    """

    def __init__(self, shipped: Callable[[Any, str], Any]) -> None:
        self._shipped = shipped

    def end_turn(self) -> None:
        """Do nothing: processes that cannot write a cache do not wait for each other."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the function, None if the package does not ship it."""
        rtsys.initialize(target_context)
        found, _ = _of_forms(partial(self._shipped, sig), target_context.codegen()._tm)
        return None if found is None else CompileResult._rebuild(target_context, *found)


def _of_forms(shipped: Callable[[str], Any], machine: Any) -> tuple[Any, bool]:
    """Return what a cache holds of a shipped function or None, and whether it was translated."""
    level = processor_level()
    found = None if level is None else shipped(level)
    of_bitcode = shipped(BITCODE) if found is None else None
    if of_bitcode is None:
        return found, False
    name, bitcode, rest = of_bitcode
    return _translated(name, bitcode, rest, machine), True


def _translated(name: str, bitcode: bytes, rest: Any, machine: Any) -> tuple[Any, ...]:
    """Return what a cache holds of a function, with machine code."""
    module = llvm.parse_bitcode(bitcode)
    outline = _outline(module)  # first: translation to machine code changes the module
    return (name, "object", (machine.emit_object(module), outline)), *rest


# ---- levels of processors -----------------------------------------------------------------------

BITCODE = "bitcode"
OF_V3 = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
LEVELS = {
    "x86-64-v4": (*OF_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "x86-64-v3": OF_V3,
}
"""What a processor of each level of x86-64 has, the highest level first."""


def levels() -> tuple[str, ...]:
    """Return the levels for which this machine can translate."""
    return tuple(LEVELS) if platform.machine() in ("x86_64", "AMD64") else ()


@cache
def processor_level() -> str | None:
    """Return the highest level that this processor has; None if none, or if another is chosen."""
    is_chosen = config.CPU_NAME is not None or config.CPU_FEATURES is not None
    if is_chosen or not config.ENABLE_AVX:
        return None
    there = llvm.get_host_cpu_features()
    return next((level for level in levels() if all(map(there.get, LEVELS[level]))), None)


@cache
def _machine_of(level: str) -> Any:
    """Return the translator to the machine code of a level, with the options of Numba's own."""
    target = llvm.Target.from_default_triple()
    options: dict[str, Any] = {"reloc": "static", "codemodel": "jitdefault", "jit": True}
    return target.create_target_machine(cpu=level, opt=config.OPT, **options)


# ---- compiling ----------------------------------------------------------------------------------


def helper_options(*, allocates: bool, always: bool, checked: bool = False) -> dict[str, Any]:
    """Return options of njit for a function that only kernels call, without wrappers.

    They say whether to count references, to force inlining and to check indices.
    """
    return {
        **({"boundscheck": True} if checked else {}),
        "error_model": "numpy",
        "_nrt": allocates,
        "forceinline": always,
        "nogil": True,
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
        "pipeline_class": HelperCompiler,
    }


def compiled_kernel(function: Function, cache: Any, signatures: list[Any], *, nogil: bool) -> Any:
    """Return a loop compiled for these signatures only."""
    compiled = njit(nogil=nogil, error_model="numpy", pipeline_class=KernelCompiler)(function)
    compiled._cache = cache
    try:
        for signature in signatures:
            compiled.compile(signature)
    finally:
        cache.end_turn()
    compiled.disable_compile()
    return compiled


def compiled_callback(function: Function, signature: Any, cache: Any, *, allocates: bool) -> Any:
    """Return a compiled C callback, which is called by its `address`."""
    typed, options = normalize_signature(signature), {"error_model": "numpy", "_nrt": allocates}
    compiled: Any = CFunc(function, typed, {}, options, pipeline_class=KernelCompiler)
    compiled._cache = cache
    try:
        compiled.compile()
    finally:
        cache.end_turn()
    return compiled


@cache
def processor_name() -> str:
    """Return LLVM's name of the processor, on which machine code depends."""
    return str(llvm.get_host_cpu_name())


def register_width() -> int:
    """Return the bits of the vectors that LLVM computes with on this processor: 512, 256 or 128."""
    lines = "<16 x float> @add(<16 x float> %a, <16 x float> %b)"
    body = "%sum = fadd <16 x float> %a, %b\n ret <16 x float> %sum"
    module = llvm.parse_assembly(f"define {lines} {{\n {body}\n}}")
    code = cpu_target.target_context.codegen()._tm.emit_assembly(module)
    return 512 if "zmm" in code else 256 if "ymm" in code else 128


def value_of(struct: Any) -> Any:
    """Return the LLVM value of a struct whose members were set one by one."""
    return struct._getvalue()


def definitions_of(function_ir: Any) -> Any:
    """Return the definitions of the variables of Numba's intermediate representation, by name."""
    return function_ir._definitions


def redefine(function_ir: Any) -> None:
    """Find the definitions again after blocks have changed."""
    function_ir._definitions = build_definitions(function_ir.blocks)


def _outline(module: Any) -> bytes:
    """Return the bitcode of a module that defines the same names, without their contents."""
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


def _pruning(pipelines: Any) -> Any:
    for each in pipelines:
        each.add_pass_after(PruneByFacts, IRProcessing)
        each.finalize()
    return pipelines


def _after_all_that_it_calls(library: CodeLibrary, seen: set[CodeLibrary]) -> Iterator[CodeLibrary]:
    if library not in seen:
        seen.add(library)
        for each in getattr(library, "_linking_libraries", ()):
            yield from _after_all_that_it_calls(each, seen)
        yield library

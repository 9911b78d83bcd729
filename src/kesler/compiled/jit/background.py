"""Compilation in another process, while this one computes with interpreted functions.

A kernel that no cache contains is asked of a process that compiles one after another and saves them
in Numba's cache. Until it is there, its interpreted copy takes its place, on the same arrays and
with the same bits. Functions that kernels call by address have a place in memory for the address
of their machine code, which is 0 until they are compiled; no compiled kernel runs before.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property, wraps
from importlib import import_module
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar
from weakref import ref

import numpy as np
from numba import config

from kesler.compiled.jit.cache import KernelCache, cache_of, is_shipping
from kesler.compiled.jit.interpreted import ORIGINAL, copy_of
from kesler.compiled.jit.numba_internals import NotCached
from kesler.interrupts import Postponed

Function = Callable[..., Any]
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

VARIABLE = "KESLER_COMPILE"
FOREGROUND = "foreground"
BY_ROWS = ("trial", "forest", "kernels", "weights", "candidates", "readers")
"""Packages of kernels that may be interpreted; batch learners pass over their rows many times."""
MOST_NUMBERS, MOST_ROWS = 1 << 14, 256
"""Sizes up to which a call takes less time when interpreted than the compilation."""
SECONDS = 0.01  # between two looks at what another process has compiled

LOGGER = logging.getLogger("kesler")
FIRST_LINE = "import sys, json; sys.path[:] = json.loads(sys.stdin.readline())"
LEFT_OUT = "-"  # before a recipe that was asked for
COMPILER = f"{FIRST_LINE}; from kesler.compiled.jit.background import main; main()"
"""The program of the process that compiles."""


class UnknownAddress(LookupError):
    """An interpreted function was given an address that was written before it was needed."""


_foregrounds: list[bool] = []  # for each context of `in_foreground`, whether it is `alone`


@contextlib.contextmanager
def in_foreground(*, alone: bool = True) -> Iterator[None]:
    """Let kernels be compiled before they are called, within the context.

    Parameters
    ----------
    alone : whether this process compiles all of them, as times are measured; the other one takes
        its part otherwise.
    """
    _foregrounds.append(alone)
    try:
        yield
    finally:
        _foregrounds.remove(alone)


def is_on() -> bool:
    """Return whether kernels may be compiled in another process, which POSIX ends with this one."""
    is_wanted = os.environ.get(VARIABLE) != FOREGROUND and not any(_foregrounds)
    return is_wanted and os.name == "posix" and bool(sys.executable)


def may_interpret() -> bool:
    """Return whether kernels may be interpreted until they are compiled."""
    return is_on() and not _foregrounds


class Store:
    """A function, and what is compiled of it: from a cache, or now.

    Parameters
    ----------
    function : the function.
    compile : returns what is compiled, given the cache.
    """

    def __init__(self, function: Function, compile: Callable[[Any], Any]) -> None:
        self.function, self._compile = function, compile
        self._cache = cache_of(function)
        is_ours = function.__module__.startswith("kesler.") and not is_shipping()
        self.may_wait = is_ours and is_on() and isinstance(self._cache, KernelCache)

    def compiled(self) -> Any:
        """Return what is compiled, now if no cache contains it."""
        with Postponed():  # an interrupted compiler may crash the process later
            return self._compile(self._cache)

    def loaded(self) -> Any:
        """Return what a cache contains; raise `NotCached` if none does."""
        self._cache.is_only_read = True
        try:
            return self.compiled()
        finally:
            self._cache.is_only_read = False


# ---- what is to be compiled ---------------------------------------------------------------------

_recipes = threading.local()


def recipe(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Let another process compile what a function compiles, by calling it with equal arguments."""

    @wraps(function)
    def called(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        outer = getattr(_recipes, "steps", None)
        _recipes.steps = outer or (called, args, kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            _recipes.steps = outer

    return called


def current_recipe(function: Function) -> str | None:
    """Return what another process must do to compile a function, None if it cannot.

    It imports modules of this package only: a user's module may have effects of its own.
    """
    steps: Any = getattr(_recipes, "steps", None)
    called, args, kwargs = steps or (import_module, (function.__module__,), {})
    named = [*args, *kwargs.values()]
    if any(callable(each) and not each.__module__.startswith("kesler.") for each in named):
        return None
    try:
        return b64encode(pickle.dumps((called, args, kwargs))).decode()
    except (pickle.PicklingError, AttributeError):  # a function without a name of its own
        return None


class Compiler:
    """The process that compiles, and what was asked of it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process: Any = None
        self._asked: dict[str, bool] = {}  # whether each recipe is done
        self._rest = b""
        self.is_busy = False

    def forget(self) -> None:
        """Begin anew, in a forked process, to which the compiling process does not belong."""
        if self._process is not None:
            self._process.returncode = 0  # it is not waited for
            self._close()
        self.__init__()  # type: ignore[misc]

    def ask(self, recipe: str) -> None:
        """Have a recipe followed, after all that were asked before."""
        with self._lock:
            if recipe in self._asked:
                return
            self._asked[recipe] = False
            self.is_busy = True
            try:
                self._write(recipe)
            except OSError:
                self._give_up()

    def is_done(self, recipe: str) -> bool:
        """Return whether a recipe was followed, or will not be."""
        if self._asked.get(recipe):
            return True
        with self._lock:
            self.ask(recipe)  # in a fork of the process that asked
            self._read()
            return self._asked[recipe]

    def is_at(self, recipe: str) -> bool:
        """Return whether the process has begun to follow a recipe and has not done it."""
        with self._lock:
            self._read()
            return recipe == next((each for each, done in self._asked.items() if not done), "")

    def leave_out(self, recipe: str) -> None:
        """Let the process pass over a recipe that is followed here."""
        with self._lock:
            self._asked[recipe] = True
            if self._process is not None:
                with contextlib.suppress(OSError):  # it has ended, which is noted when it is read
                    self._write(LEFT_OUT + recipe)

    def wait(self) -> None:
        """Wait a moment for what the process is at."""
        time.sleep(SECONDS)

    def end(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            if self._process is not None:
                self._close()
                self._process.kill()
                self._process.wait()
            self._process, self.is_busy = None, False

    def _close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            stream.close()

    def _write(self, line: str) -> None:
        if self._process is None:
            self._process = self._started()
            self._write(json.dumps(sys.path))
        self._process.stdin.write(line.encode() + b"\n")

    def _started(self) -> Any:
        environment = os.environ | {VARIABLE: FOREGROUND}
        if config.CACHE_DIR:
            environment["NUMBA_CACHE_DIR"] = config.CACHE_DIR
        LOGGER.info("compiling in the background, once on this machine")
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", COMPILER],
            bufsize=0,
            start_new_session=True,  # Ctrl-C in a terminal is for the process that asked
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        os.set_blocking(process.stdout.fileno(), False)  # type: ignore[union-attr]
        return process

    def _read(self) -> None:
        """Note what the process has compiled."""
        if self._process is None:
            return
        try:
            found = os.read(self._process.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if not found:  # it has ended
            self._give_up()
            return
        *lines, self._rest = (self._rest + found).split(b"\n")
        self._asked.update((line.decode(), True) for line in lines)
        if all(self._asked.values()):
            LOGGER.info("compiled in the background")
            self.end()

    def _give_up(self) -> None:
        """Let this process compile what the other did not."""
        self.end()
        self._asked = dict.fromkeys(self._asked, True)


COMPILING = Compiler()
atexit.register(COMPILING.end)


def main() -> None:
    """Follow recipes from standard input, one a line, and print each that is done."""
    lines: SimpleQueue[str] = SimpleQueue()
    left_out = set()

    def read() -> None:
        for line in map(str.strip, sys.stdin):
            if line.startswith(LEFT_OUT):
                left_out.add(line.removeprefix(LEFT_OUT))
            else:
                lines.put(line)
        os._exit(0)  # the process that asked has ended: what it asked for has no use

    threading.Thread(target=read, daemon=True).start()
    while True:
        line = lines.get()
        if line not in left_out:
            called, args, kwargs = pickle.loads(b64decode(line))
            called(*args, **kwargs)
        print(line, flush=True)


# ---- arguments by address -----------------------------------------------------------------------

_arguments: dict[int, ref[Any]] = {}
_most_arguments = [1 << 10]  # after as many, those that exist no longer are removed


def hold(arguments: Any) -> None:
    """Let interpreted functions find arguments by the address that kernels take."""
    _arguments[arguments.address] = ref(arguments)
    if len(_arguments) > _most_arguments[0]:
        for address, found in list(_arguments.items()):
            if found() is None:
                _arguments.pop(address, None)  # another thread may have removed it
        _most_arguments[0] = 2 * len(_arguments) + (1 << 10)


def arguments_at(address: int) -> Any:
    """Return the tuple that was written to an address."""
    found = _held(address)
    if found is None:
        raise UnknownAddress
    return found.arrays


def _held(address: int) -> Any:
    """Return the arguments at an address, None if there are none."""
    found = _arguments.get(address)
    return None if found is None else found()


# ---- functions that kernels call by address ------------------------------------------------------

FUNCTIONS: dict[int, Function] = {}
"""The functions by address, which interpreted functions call."""

_copies: dict[int, Function] = {}


def called_at(address: int) -> Function:
    """Return the interpreted copy of the function of an address."""
    if address not in _copies:
        _copies[address] = copy_of(FUNCTIONS[address])
    return _copies[address]


class FunctionByAddress:
    """A function that kernels call by address.

    Parameters
    ----------
    store : the function, and what is compiled of it.

    Attributes
    ----------
    address : the address of the place where the address of its machine code is written.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._place = np.zeros(1, dtype=np.int64)
        self.address = self._place.ctypes.data
        FUNCTIONS[self.address] = store.function
        with _SWITCH:
            self.recipe = current_recipe(store.function) if store.may_wait else None
            may_wait = self.recipe is not None and not _SWITCH.has_compiled
            try:
                self.fill(store.loaded() if may_wait else store.compiled())
            except NotCached:
                COMPILING.ask(self.recipe)  # type: ignore[arg-type]
                _SWITCH.pending.append(self)

    def fill(self, compiled: Any = None) -> None:
        """Write the address of the machine code, compiled now if no cache contains it."""
        self._compiled = self._store.compiled() if compiled is None else compiled
        self._place[0] = self._compiled.address


class _Switch:
    """The step from interpreted to compiled kernels, which call only what is compiled.

    Attributes
    ----------
    has_compiled : whether a kernel is compiled, so that no function may be left for later.
    pending : the functions that are left for later.
    kernels : the kernels that were asked for, by recipe, the last at the end.
    """

    def __init__(self) -> None:
        self.renew()
        self.has_compiled = False
        self.pending: list[FunctionByAddress] = []
        self.kernels: defaultdict[str, list[Store]] = defaultdict(list)

    def renew(self) -> None:
        """Make a new lock, in a forked process, in which nobody would release the old one."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def is_possible(self) -> bool:
        """Return whether all functions are compiled, after filling the places of those that are."""
        while self.pending and COMPILING.is_done(self.pending[0].recipe):  # type: ignore[arg-type]
            self.pending.pop(0).fill()
        return not self.pending

    def take(self, kernel: WaitingKernel) -> Function:
        """Return a kernel, compiled with all that it may call.

        What was asked last is compiled here, since the other process begins with the first.
        """
        self.has_compiled = True
        while self.pending:
            self._wait_or_compile(self.pending[-1].recipe)
            self.pending.pop().fill()
        recipe = kernel.recipe
        self._wait_or_compile(recipe)
        if recipe is not None and recipe in self.kernels and not COMPILING.is_done(recipe):
            self._compile_all(recipe)
        found: Function = kernel.store.compiled()
        return found

    def _wait_or_compile(self, recipe: str | None) -> None:
        """Compile other kernels while the other process is at a recipe."""
        while recipe is not None and COMPILING.is_at(recipe):
            left = [each for each in self.kernels if not COMPILING.is_done(each)]
            if left and not COMPILING.is_at(left[-1]):
                self._compile_all(left[-1])
            else:
                COMPILING.wait()

    def _compile_all(self, recipe: str) -> None:
        """Compile the kernels of a recipe, over which the other process passes."""
        COMPILING.leave_out(recipe)
        for store in self.kernels.pop(recipe):
            store.compiled()


_SWITCH = _Switch()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=COMPILING.forget)
    os.register_at_fork(after_in_child=_SWITCH.renew)


# ---- kernels ------------------------------------------------------------------------------------


def is_ready(kernel: Any) -> bool:
    """Return whether a kernel is compiled, so that calling it takes no longer than its work."""
    return not isinstance(kernel, WaitingKernel) or kernel.is_ready()


def loaded_or_waiting(store: Store) -> Any:
    """Return a kernel, or one that waits until it is compiled."""
    if not store.may_wait:
        return store.compiled()
    with _SWITCH:
        try:
            found = store.loaded()
        except NotCached:
            return WaitingKernel(store)
        if _SWITCH.pending:
            return WaitingKernel(store)
        _SWITCH.has_compiled = True
        return found


class WaitingKernel:
    """A kernel that another process compiles.

    Parameters
    ----------
    store : the function, and what is compiled of it.
    """

    def __init__(self, store: Store) -> None:
        self.store, self.py_func = store, store.function
        self._compiled: Function | None = None
        package = self.py_func.__module__.removeprefix(f"{ORIGINAL}.").partition(".")[0]
        self.recipe = current_recipe(self.py_func) if package in BY_ROWS else None
        if self.recipe is not None:
            COMPILING.ask(self.recipe)
            _SWITCH.kernels[self.recipe].append(store)

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled kernel if it is there, and its interpreted copy otherwise."""
        if self._compiled is None and not self.is_ready():
            if self.recipe is not None and may_interpret() and _is_small(arguments):
                with contextlib.suppress(UnknownAddress):
                    return self._interpret(*arguments)
            with _SWITCH:
                self._compiled = _SWITCH.take(self)
        return self._compiled(*arguments)  # type: ignore[misc]

    def is_ready(self) -> bool:
        """Return whether the kernel is compiled; if another process has done it, take it."""
        if self._compiled is None and self.recipe is not None and COMPILING.is_done(self.recipe):
            with _SWITCH:
                if self._compiled is None and _SWITCH.is_possible():
                    self._compiled = _SWITCH.take(self)
        return self._compiled is not None

    @cached_property
    def _copy(self) -> Function:
        return copy_of(self.py_func)

    def _interpret(self, *arguments: Any) -> Any:
        with Postponed(), np.errstate(all="ignore"):
            return self._copy(*arguments)


def _is_small(arguments: tuple[Any, ...]) -> bool:
    """Return whether the arguments, some of which may be addresses, hold few numbers and rows."""
    n_numbers = sum(each.size for each in arguments if isinstance(each, np.ndarray))
    found = [_held(each) for each in arguments if isinstance(each, int)]
    tasks = [each.arrays for each in found if each is not None and "rows" in each.arrays._fields]
    n_rows = max((len(task.rows.indptr) for task in tasks), default=0)
    return n_numbers <= MOST_NUMBERS and n_rows <= MOST_ROWS

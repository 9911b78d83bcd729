"""Compact classifiers in C and WebAssembly, called from Python."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

CC, CLANG = shutil.which("cc"), shutil.which("clang")
HAS_LINKER = shutil.which("wasm-ld") is not None
STRICT = ("-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wconversion")
FOR_WEB = ("--target=wasm32", "-ffreestanding", "-nostdlib", "-Wl,--no-entry")
GUARD = b"\xa5" * 64
needs_compiler = pytest.mark.skipif(CC is None, reason="there is no C compiler, cc")
needs_clang = pytest.mark.skipif(
    CLANG is None or not HAS_LINKER, reason="there is no clang and wasm-ld, which build WebAssembly"
)


def run(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class InC:
    """A compact classifier compiled from C, whose working memory is as large as it says."""

    def __init__(self, model, folder, name="model"):
        source, library = folder / f"{name}.c", folder / f"{name}.so"
        model.export(source)
        run(CC, *STRICT, "-shared", "-fPIC", "-o", library, source)
        loaded = ctypes.CDLL(str(library))
        self.n_classes = len(model.classes_)
        labels = (ctypes.c_char_p * self.n_classes).in_dll(loaded, f"{name}_labels")
        self.labels = [label.decode() for label in labels]
        self.scratch, self._predict = loaded[f"{name}_scratch"], loaded[f"{name}_predict"]
        self._probabilities = loaded[f"{name}_probabilities"]
        size, pointer = ctypes.c_size_t, ctypes.c_void_p
        self.scratch.argtypes, self.scratch.restype = [size], size
        self._predict.argtypes = [ctypes.c_char_p, size, pointer, pointer]
        self._probabilities.argtypes, self._probabilities.restype = self._predict.argtypes, None

    def __call__(self, text):
        """Return the number of the class, its probability, and those of all classes."""
        size, found = self.scratch(len(text)), np.empty(self.n_classes)
        memory = ctypes.create_string_buffer(b"\xff" * size + GUARD, size + len(GUARD))
        probability = ctypes.c_double()
        best = self._predict(text, len(text), memory, ctypes.byref(probability))
        assert self._predict(text, len(text), memory, None) == best
        self._probabilities(text, len(text), memory, found.ctypes.data)
        assert memory.raw[size:] == GUARD
        return best, probability.value, found


class InWebAssembly:
    """A compact classifier as WebAssembly, whose memory grows as a text requires."""

    def __init__(self, model, folder, name="model"):
        wasmtime = pytest.importorskip("wasmtime", reason="needs wasmtime, which runs WebAssembly")
        source, module = folder / f"{name}.c", folder / f"{name}.wasm"
        model.export(source)
        names = [f"{name}_{each}" for each in ("scratch", "predict", "probabilities")]
        exports = [f"-Wl,--export={each}" for each in (*names, "__heap_base")]
        run(CLANG, *STRICT, *FOR_WEB, *exports, "-o", module, source)
        self.n_classes = len(model.classes_)
        self._store = wasmtime.Store()
        loaded = wasmtime.Module.from_file(self._store.engine, str(module))
        assert loaded.imports == []
        exports = wasmtime.Instance(self._store, loaded, []).exports(self._store)
        self._memory, base = exports["memory"], exports["__heap_base"].value(self._store)
        self._first = (base + 15) // 16 * 16
        self._functions = [exports[each] for each in names]

    def __call__(self, text):
        """Return the same as in C."""
        scratch, predict, probabilities = self._functions
        found = self._first
        letters = found + 8 * (1 + self.n_classes)
        working = letters + (len(text) + 15) // 16 * 16
        missing = working + scratch(self._store, len(text)) - self._memory.data_len(self._store)
        if missing > 0:
            self._memory.grow(self._store, missing // 65536 + 1)
        self._memory.write(self._store, text, letters)
        best = predict(self._store, letters, len(text), working, found)
        probabilities(self._store, letters, len(text), working, found + 8)
        numbers = self._memory.read(self._store, found, found + 8 * (1 + self.n_classes))
        probability, *shares = np.frombuffer(bytes(numbers))
        return best, float(probability), np.array(shares)

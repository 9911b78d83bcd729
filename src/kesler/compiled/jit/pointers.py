"""Tuples of arrays that are passed by address, and prefetching from addresses.

Numba passes a tuple as its elements: a learner would be about four hundred numbers, copied at every
call that LLVM does not inline, and read by its passes at every call that it might inline. Its
address is one number, and the syntax to read a field is the same: ``learner.weights``.

Python may pass an address to a kernel as well: unpacking a learner and checking each of its arrays
takes longer than a trial. Such a tuple is written once, and read by many calls.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kesler.compiled.jit.background import arguments_at
from kesler.compiled.jit.background import hold as hold_address
from kesler.compiled.jit.decorators import IS_COPY, IS_INTERPRETED
from kesler.compiled.jit.numba_internals import (
    AttributeTemplate,
    cgutils,
    impl_ret_borrowed,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    value_of,
)


class Facts(frozenset[tuple[str, frozenset[int]]]):
    """What a kernel may assume of a named tuple: the values that a number in it can have.

    Numbers have dotted names: ``rule.selection``; ``parts.kind.each`` for all values of an array,
    ``ranks.order.shape.0`` for its length. A name without values has any.
    """

    def values(self, name: str) -> frozenset[int] | None:
        """Return the values that a number can have, None if that is not known."""
        return dict(self).get(name)

    def of(self, name: str) -> Facts:
        """Return the facts of a field, by the rest of their names."""
        prefix = f"{name}."
        return Facts((k.removeprefix(prefix), v) for k, v in self if k.startswith(prefix))

    def __str__(self) -> str:
        return str(sorted((name, sorted(values)) for name, values in self))


class Pointed(types.Type):
    """The type of the address of a named tuple, valid as long as the tuple is alive.

    Parameters
    ----------
    arguments : the type of the tuple.
    facts : what is known of its numbers.
    """

    def __init__(self, arguments: types.NamedTuple, facts: Facts = Facts()) -> None:  # noqa: B008
        self.arguments, self.facts = arguments, facts
        # A digest for the fields, since the name becomes part of the name of every helper: machine
        # code from the cache calls by name, and learners differ in the fields of one class alone.
        digest = zlib.crc32(f"{arguments}{facts if facts else ''}".encode())
        super().__init__(name=f"{arguments.instance_class.__qualname__}At{digest:08x}")

    @property
    def key(self) -> tuple[types.NamedTuple, Facts]:
        """The key by which two of these types are equal."""
        return self.arguments, self.facts

    def field(self, name: str) -> types.Type | None:
        """Return the type of a field, None if there is none."""
        if name not in self.fields:
            return None
        field = self.types[self.fields.index(name)]
        return Pointed(field, self.facts.of(name)) if _is_nested(field) else field

    @property
    def instance_class(self) -> type:
        """The class of the tuple, by which `decorators.class_of` distinguishes learners."""
        return self.arguments.instance_class

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields of the tuple."""
        return self.arguments.fields

    @property
    def types(self) -> Any:
        """The types of the fields of the tuple."""
        return self.arguments.types


def _is_nested(field: types.Type) -> bool:
    return isinstance(field, types.BaseNamedTuple)


@register_model(Pointed)
class _Address(models.PrimitiveModel):
    def __init__(self, manager: Any, pointed: Pointed) -> None:
        arguments = manager.lookup(pointed.arguments).get_value_type()
        super().__init__(manager, pointed, arguments.as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):
    key = Pointed

    def generic_resolve(self, pointed: Pointed, name: str) -> types.Type | None:
        return pointed.field(name)


@lower_getattr_generic(Pointed)
def _field(context: Any, builder: ir.IRBuilder, pointed: Pointed, address: Any, name: str) -> Any:
    place = pointed.arguments.fields.index(name)
    field = cgutils.gep_inbounds(builder, address, 0, place)
    field_type = pointed.arguments.types[place]
    if _is_nested(field_type):
        return field
    array = builder.load(field)
    # Nothing writes to a tuple. Without this hint LLVM would reload it after each write to memory.
    array.set_metadata("invariant.load", builder.module.add_metadata([]))
    return impl_ret_borrowed(context, builder, field_type, array)


def dereference(arguments: Any) -> Any:
    """Return the address of a tuple, which must be kept alive with `hold` while it is used."""
    return arguments


def dereference_with(known: Facts) -> Any:
    """Return `dereference` for tuples of which facts are known."""
    return dereference if IS_INTERPRETED else intrinsic(_dereferencing(known))


def hold(*arguments: Any) -> None:
    """Keep tuples alive until here: Numba frees arrays after the last use of a variable."""


def stay_apart() -> None:
    """Prevent the function that calls this one from being inlined.

    The hint that nothing writes to a tuple is valid only in functions that do not create it.
    """


class KernelArguments:
    """A tuple of arrays, kept alive here and written to an address from which kernels read it.

    Parameters
    ----------
    write_arguments : the kernel that writes such a tuple to an address.
    arrays : the tuple, which may contain tuples.

    Attributes
    ----------
    address : the address, valid as long as this object is alive.
    """

    __slots__ = ("__weakref__", "_place", "address", "arrays")

    def __init__(self, write_arguments: Any, arrays: Any) -> None:
        self.arrays = arrays
        self.address: Any = arrays
        if not IS_INTERPRETED:
            if write_arguments not in _N_WORDS:
                _N_WORDS[write_arguments] = _n_words(arrays)
            self._place = np.empty(_N_WORDS[write_arguments], dtype=np.int64)
            self.address = self._place.ctypes.data
            write_arguments(arrays, self.address)
            hold_address(self)


_N_WORDS: dict[Any, int] = {}  # of the one type of record that each kernel writes


def _n_words(arrays: Any) -> int:
    """Return the number of words in Numba's representation: 5 + 2 * ndim for an array."""
    if isinstance(arrays, np.ndarray):
        return 5 + 2 * arrays.ndim
    if isinstance(arrays, (np.generic, int, float)):
        return 1
    return sum(map(_n_words, arrays))


def pointer_reader(arguments: types.NamedTuple, facts: Facts = Facts()) -> Any:  # noqa: B008
    """Return a function for use inside kernels that converts an address to a `Pointed` tuple."""
    if IS_COPY:
        return arguments_at
    if IS_INTERPRETED:
        return lambda address: address

    @intrinsic
    def at(_: Any, address: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(arguments).as_pointer())

        return Pointed(arguments, facts)(address), generate

    return at


def word_at(address: int) -> int:
    """Return the int64 number at an address."""
    return ctypes.c_int64.from_address(address).value


def byte_at(address: int) -> int:
    """Return the byte at an address."""
    return ctypes.c_uint8.from_address(address).value


def copy_bytes(target: int, source: int, n: int) -> None:
    """Copy n bytes from one address to another; the two regions must not overlap."""
    ctypes.memmove(target, source, n)


def put(arrays: Any, address: Any) -> None:
    """Write a tuple to an address, without references to its arrays."""
    if IS_COPY:
        words = np.array(list(_words_of(arrays)), dtype=np.int64)
        ctypes.memmove(address, words.ctypes.data, words.nbytes)


def _words_of(arrays: Any) -> Iterator[int]:
    """Yield the words of a tuple in Numba's representation, without owners of its arrays."""
    if isinstance(arrays, np.ndarray):
        yield from (0, 0, arrays.size, arrays.itemsize, arrays.ctypes.data)
        yield from (*arrays.shape, *arrays.strides)
    elif isinstance(arrays, np.void):  # a record is represented by its address
        yield arrays.__array_interface__["data"][0]
    elif isinstance(arrays, float):
        yield int(np.float64(arrays).view(np.int64))
    elif isinstance(arrays, (int, np.integer)):
        yield int(arrays)
    else:
        for each in arrays:
            yield from _words_of(each)


if not IS_INTERPRETED:

    def _put(_: Any, arguments: Any, address: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            value = _unclaimed(context, builder, arguments, values[0])
            place = builder.inttoptr(values[1], value.type.as_pointer())
            builder.store(value, place)
            return context.get_dummy_value()

        return types.void(arguments, address), generate

    def _unclaimed(context: Any, builder: ir.IRBuilder, arguments: Any, value: Any) -> Any:
        """Return the tuple with arrays that have no owner, so that no references are counted."""
        if isinstance(arguments, (types.Number, types.Record)):
            return value
        if not isinstance(arguments, types.BaseNamedTuple):
            array = context.make_array(arguments)(context, builder, value)
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            return value_of(array)
        for place, field in enumerate(arguments.types):
            part = _unclaimed(context, builder, field, builder.extract_value(value, place))
            value = builder.insert_value(value, part, place)
        return value

    def _reader(kind: types.Integer) -> Any:
        def _at(_: Any, address: Any) -> Any:
            def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
                place = context.get_value_type(kind).as_pointer()
                number = builder.load(builder.inttoptr(values[0], place))
                return context.cast(builder, number, kind, types.int64)

            return types.int64(address), generate

        return intrinsic(_at)

    def _dereferencing(known: Facts) -> Any:
        def _dereference(_: Any, arguments: Any) -> Any:
            def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
                return cgutils.alloca_once_value(builder, values[0])

            return Pointed(arguments, known)(arguments), generate

        return _dereference

    def _hold(_: Any, *arguments: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            return context.get_dummy_value()

        return types.void(types.StarArgTuple(arguments)), generate

    def _stay_apart(_: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            builder.function.attributes.add("noinline")
            return context.get_dummy_value()

        return types.void(), generate

    dereference, hold, stay_apart = (
        intrinsic(_dereferencing(Facts())),
        intrinsic(_hold),
        intrinsic(_stay_apart),
    )
    put, word_at, byte_at = intrinsic(_put), _reader(types.int64), _reader(types.uint8)
    copy_bytes = types.ExternalFunction(
        "memcpy", types.int64(types.int64, types.int64, types.int64)
    )

# LLVM's number for the second cache of a core. With prefetches into the first one, which waits for
# few lines at a time, trials of the default learner took 1.8 times as long (on AMD's Zen 4).
SECOND_CACHE = 2


def _ask(builder: ir.IRBuilder, address: Any) -> None:
    """Prefetch the cache line of an address, for reading, as data."""
    number = ir.IntType(32)
    takes = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], takes)
    builder.call(prefetch, [address, number(0), number(SECOND_CACHE), number(1)])


def _fetcher() -> Callable[[Any, int], None]:
    """Return a function that prefetches a cache line of an array."""

    def fetch(array: Any, position: int) -> None:
        """Prefetch the cache line of an element of an array, given by its flat index."""

    def _fetch(_: Any, array: Any, position: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            data = context.make_array(array)(context, builder, values[0]).data
            address = builder.bitcast(builder.gep(data, [values[1]]), cgutils.voidptr_t)
            _ask(builder, address)
            return context.get_dummy_value()

        return types.void(array, types.intp), generate

    return fetch if IS_INTERPRETED else intrinsic(_fetch)


def _address_fetcher() -> Callable[[int], None]:
    """Return a function that prefetches the cache line of an address."""

    def fetch_at(address: int) -> None:
        """Prefetch the cache line of an address."""

    def _fetch_at(_: Any, address: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            _ask(builder, builder.inttoptr(values[0], cgutils.voidptr_t))
            return context.get_dummy_value()

        return types.void(address), generate

    return fetch_at if IS_INTERPRETED else intrinsic(_fetch_at)


fetch = _fetcher()
fetch_at = _address_fetcher()

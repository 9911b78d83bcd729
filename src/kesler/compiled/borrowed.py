"""Tuples of arrays that helpers are handed by their address.

Numba hands a tuple on as its parts: a learner would be some four hundred numbers, copied at every
call that LLVM does not inline, and read by its passes at every call that it might. Its address is
one number, and what is read through it looks the same: ``learner.weights``.

Python, too, may hand a kernel an address: to take a learner apart and to check each of its arrays
takes longer than a trial. Such a tuple is lent once, and borrowed by many calls.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
)


class Borrowed(types.Type):
    """The address of a named tuple, good for as long as the tuple is held."""

    def __init__(self, lent: types.NamedTuple) -> None:
        self.lent = lent
        # Not its fields: the name becomes part of that of every helper.
        super().__init__(name=f"Borrowed[{lent.instance_class.__qualname__}]")

    @property
    def key(self) -> types.NamedTuple:
        """What makes two of these types the same."""
        return self.lent

    @property
    def instance_class(self) -> type:
        """The class of the tuple, by which `jit.by_learner` chooses."""
        return self.lent.instance_class


@register_model(Borrowed)
class _Address(models.PrimitiveModel):
    def __init__(self, manager: Any, borrowed: Borrowed) -> None:
        lent = manager.lookup(borrowed.lent).get_value_type()
        super().__init__(manager, borrowed, lent.as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):
    key = Borrowed

    def generic_resolve(self, borrowed: Borrowed, name: str) -> types.Type | None:
        if name not in borrowed.lent.fields:
            return None
        field = borrowed.lent.types[borrowed.lent.fields.index(name)]
        return Borrowed(field) if isinstance(field, types.NamedTuple) else field


@lower_getattr_generic(Borrowed)
def _field(context: Any, builder: ir.IRBuilder, borrowed: Borrowed, address: Any, name: str) -> Any:
    place = borrowed.lent.fields.index(name)
    field = cgutils.gep_inbounds(builder, address, 0, place)
    field_type = borrowed.lent.types[place]
    if isinstance(field_type, types.NamedTuple):
        return field
    array = builder.load(field)
    # Nothing writes to a tuple: without a word LLVM would read it again after each write to memory.
    array.set_metadata("invariant.load", builder.module.add_metadata([]))
    return impl_ret_borrowed(context, builder, field_type, array)


def borrow(lent: Any) -> Any:
    """Return the address of a tuple, which must be held as long as it is used."""
    return lent


def hold(*lent: Any) -> None:
    """Keep tuples alive until here: Numba frees arrays after the last mention of a variable."""


def stay_apart() -> None:
    """Keep the function that calls this one from becoming part of another.

    That nothing writes to a tuple holds for those only who have not seen it being made.
    """


class Lent:
    """A tuple of arrays, kept here, and written where kernels can borrow it from.

    Parameters
    ----------
    lend : the kernel that writes such a tuple to an address.
    arrays : the tuple, which may hold tuples.

    Attributes
    ----------
    address : good for as long as this object is.
    """

    __slots__ = ("_place", "address", "arrays")

    def __init__(self, lend: Any, arrays: Any) -> None:
        self.arrays = arrays
        self.address: Any = arrays
        if not config.DISABLE_JIT:
            self._place = np.empty(_n_words(arrays), dtype=np.int64)
            self.address = self._place.ctypes.data
            lend(arrays, self.address)


def _n_words(arrays: Any) -> int:
    """Return how many words Numba takes to describe arrays: five and two for each dimension."""
    if isinstance(arrays, np.ndarray):
        return 5 + 2 * arrays.ndim
    return sum(map(_n_words, arrays))


def borrower(lent: types.NamedTuple) -> Any:
    """Return what makes a borrowed tuple of an address, inside of kernels."""
    if config.DISABLE_JIT:
        return lambda address: address

    @intrinsic
    def at(_: Any, address: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(lent).as_pointer())

        return Borrowed(lent)(address), generate

    return at


def word_at(address: int) -> int:
    """Return the word, a number of type int64, that lies at an address."""
    return ctypes.c_int64.from_address(address).value


def byte_at(address: int) -> int:
    """Return the byte that lies at an address."""
    return ctypes.c_uint8.from_address(address).value


def copy_bytes(target: int, source: int, n: int) -> None:
    """Copy n bytes from one address to another; the two stretches must not overlap."""
    ctypes.memmove(target, source, n)


def put(arrays: Any, address: Any) -> None:
    """Write a tuple to an address, without a claim to its arrays."""


if not config.DISABLE_JIT:

    def _put(_: Any, lent: Any, address: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            value = _unclaimed(context, builder, lent, values[0])
            place = builder.inttoptr(values[1], value.type.as_pointer())
            builder.store(value, place)
            return context.get_dummy_value()

        return types.void(lent, address), generate

    def _unclaimed(context: Any, builder: ir.IRBuilder, lent: Any, value: Any) -> Any:
        """Return a tuple whose arrays have no owner that references would be counted of."""
        if not isinstance(lent, types.NamedTuple):
            array = context.make_array(lent)(context, builder, value)
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            return array._getvalue()
        for place, field in enumerate(lent.types):
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

    def _borrow(_: Any, lent: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            return cgutils.alloca_once_value(builder, values[0])

        return Borrowed(lent)(lent), generate

    def _hold(_: Any, *lent: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            return context.get_dummy_value()

        return types.void(types.StarArgTuple(lent)), generate

    def _stay_apart(_: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            builder.function.attributes.add("noinline")
            return context.get_dummy_value()

        return types.void(), generate

    borrow, hold, stay_apart = intrinsic(_borrow), intrinsic(_hold), intrinsic(_stay_apart)
    put, word_at, byte_at = intrinsic(_put), _reader(types.int64), _reader(types.uint8)
    copy_bytes = types.ExternalFunction(
        "memcpy", types.int64(types.int64, types.int64, types.int64)
    )

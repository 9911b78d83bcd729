"""Columns of Arrow tables, also those of Parquet files, with types that Python has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kesler.data.labels import NARROW, decimals
from kesler.errors import KeslerError


def arrow_columns(table: Any) -> dict[str, Any]:
    """Return the arrays of a pyarrow.Table or RecordBatch, of structs those of their fields.

    The fields of a struct are columns ``outer.inner``. Times in nanoseconds, which Python does not
    have, are in microseconds.

    Raises
    ------
    KeslerError
        If two columns have one name.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"size": [1, 2], "from": [{"name": "Ann"}, {"name": "Bob"}]})
    >>> [(name, array.to_pylist()) for name, array in arrow_columns(table).items()]
    [('size', [1, 2]), ('from.name', ['Ann', 'Bob'])]
    """
    found: dict[str, Any] = {}
    for outer, column in zip(table.schema.names, table.columns, strict=True):
        for name, array in _fields(outer, column):
            if name in found:
                raise KeslerError(f"the table names a column twice ({name!r}): rename its columns")
            found[name] = array
    return found


def _fields(name: str, array: Any) -> Iterator[tuple[str, Any]]:
    """Yield a column, or the columns of the fields of a struct."""
    from pyarrow import types

    if types.is_struct(array.type):
        for field, values in zip(array.type, array.flatten(), strict=True):
            yield from _fields(f"{name}.{field.name}", values)
    else:
        kind = _of_python(array.type)
        yield name, array if kind is array.type else array.cast(kind, safe=False)


def _of_python(kind: Any) -> Any:
    """Return a type as it is, or one in microseconds in place of one in nanoseconds."""
    from pyarrow import duration, time64, timestamp, types

    if getattr(kind, "unit", "") != "ns":
        return kind
    if types.is_timestamp(kind):
        return timestamp("us", kind.tz)
    return duration("us") if types.is_duration(kind) else time64("us")


def with_decimals(array: Any) -> Any:
    """Return an array of numbers of few bits as one of the shortest decimals; others as they are.

    Examples
    --------
    >>> import pyarrow as pa
    >>> with_decimals(pa.array([1.3, None], pa.float32())).to_pylist()
    [1.3, None]
    """
    import pyarrow as pa

    if str(array.type) not in NARROW:
        return array
    found = decimals(array.to_numpy(zero_copy_only=False))
    return pa.array(found, mask=array.is_null().to_numpy(zero_copy_only=False))


def can_hold(kind: Any) -> bool:
    """Return whether a kind of column can hold cells of an Arrow type: numbers, texts, lists.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [can_hold(kind) for kind in (pa.int8(), pa.binary(), pa.list_(pa.list_(pa.int8())))]
    [True, False, False]
    """
    from pyarrow import types

    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return can_hold(kind.value_type) and not _is_compound(kind.value_type)
    is_binary = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    return not (is_binary or types.is_fixed_size_binary(kind) or types.is_union(kind))


def _is_compound(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_nested(kind) or (types.is_temporal(kind) and not types.is_duration(kind)))

"""Values of partitions that are stored on workers, and sums over them.

The client stores the state of a run; the values on workers can be recomputed from it and from the
partitions. If a worker dies, Dask recomputes its values on another worker from the same numbers in
the same order, so the results do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from types import ModuleType
from typing import Any, cast

import numpy as np

from kesler.errors import KeslerError

# Maximum number of values in one addition; more values are added in a tree.
FAN_IN = 8
# Larger arrays, in bytes, are sent to the workers once, not with each task.
LARGE = 1 << 18
NO_WARNING = {"distributed.admin.large-graph-warning-threshold": "100 GB"}


def resolve_client(client: Any) -> Any:
    """Return the given Dask client, or the current one.

    Raises
    ------
    KeslerError
        If Dask is not installed or there is no client.
    """
    try:
        import distributed
    except ImportError as error:
        raise KeslerError(
            "kesler.distributed needs Dask: install it with pip install 'kesler[dask]'"
        ) from error
    if client is not None:
        return client
    try:
        return cast(Any, distributed).default_client()
    except ValueError:
        raise KeslerError(
            "there is no Dask client: create one with distributed.Client(), which starts workers "
            "on this machine, or Client(address), or pass client=..."
        ) from None


@dataclass(frozen=True, eq=False)
class StoredValue:
    """A value stored on a worker; it reports its size, so that Dask avoids moving it.

    Parameters
    ----------
    value : anything
    """

    value: Any

    def __sizeof__(self) -> int:
        return n_bytes(self.value)


def n_bytes(value: Any) -> int:
    """Return the approximate memory of a value: the bytes of its arrays, each counted once.

    Examples
    --------
    >>> n_bytes(StoredValue([np.zeros(4), np.zeros(1)]))
    40
    """
    total, seen, waiting = 0, set[int](), [value]
    while waiting:
        each = waiting.pop()
        if id(each) in seen:  # objects may refer to each other
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            total += each.nbytes
        else:
            waiting.extend(_parts(each))
    return total


def _parts(value: Any) -> Iterable[Any]:
    """Return the values of which a sequence or an object is made; code and modules have none."""
    if isinstance(value, (list, tuple)):
        return value
    fields = getattr(value, "__dict__", None)
    is_code = callable(value) or isinstance(value, ModuleType)
    return fields.values() if isinstance(fields, dict) and not is_code else ()


@dataclass(frozen=True, eq=False)
class Scattered:
    """One value for each partition, stored on the workers.

    Parameters
    ----------
    client : distributed.Client
    futures : sequence of distributed.Future
        In the order of the partitions.
    """

    client: Any
    futures: Sequence[Any]

    def __len__(self) -> int:
        return len(self.futures)

    def each(self, function: Callable[..., Any], *arguments: Any) -> Scattered:
        """Apply a function to each value; arguments may also be scattered."""
        return Scattered(self.client, self._each(stored, function, arguments))

    def total(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of the results of a function, in the order of the partitions.

        Lists and tuples are summed element by element.
        """
        futures = self._each(called, function, arguments)
        while len(futures) > FAN_IN:
            runs = [futures[i : i + FAN_IN] for i in range(0, len(futures), FAN_IN)]
            futures = self.client.map(added, runs, pure=False)
        return added(self.client.gather(futures))

    def collect(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return the results of a function as a list on the client."""
        return list(self.client.gather(self._each(called, function, arguments)))

    def results(self) -> Iterator[Any]:
        """Yield the values one after another on the client."""
        for future in self.futures:
            yield future.result().value

    def _each(
        self, how: Callable[..., Any], function: Callable[..., Any], arguments: Sequence[Any]
    ) -> list[Any]:
        given = [self._placed(argument) for argument in arguments]
        import dask

        with dask.config.set(NO_WARNING):
            # With unique task names, no earlier result is reused.
            found: list[Any] = self.client.map(
                how, [function] * len(self), self.futures, *given, pure=False
            )
        return found

    def some(self, numbers: Sequence[int]) -> Scattered:
        """Return the values of the given partitions."""
        return Scattered(self.client, [self.futures[number] for number in numbers])

    def _placed(self, argument: Any) -> Sequence[Any]:
        """Return the argument of each partition."""
        if isinstance(argument, Scattered):
            return argument.futures
        if isinstance(argument, np.ndarray) and argument.nbytes > LARGE:
            argument = sent(self.client, argument)
        return [argument] * len(self)


def sent(client: Any, value: Any) -> Any:
    """Send a value to the workers once for all tasks; lost values are sent again."""
    import dask

    with dask.config.set(NO_WARNING):
        return client.submit(itself, value, pure=False)


def itself(value: Any) -> Any:
    """Return the value."""
    return value


def called(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with values that may be stored on a worker."""
    return function(*(each.value if isinstance(each, StoredValue) else each for each in arguments))


def stored(function: Callable[..., Any], *arguments: Any) -> StoredValue:
    """Call a function as `called` does, and store the result on the worker."""
    return StoredValue(called(function, *arguments))


def added(values: Sequence[Any]) -> Any:
    """Return the sum of values; lists and tuples are summed element by element.

    Examples
    --------
    >>> added([(1, [2.0]), (3, [4.0])])
    (4, [6.0])
    """
    return reduce(_plus, values)


def _plus(a: Any, b: Any) -> Any:
    if isinstance(a, (list, tuple)):
        return type(a)(_plus(one, other) for one, other in zip(a, b, strict=True))
    return a + b

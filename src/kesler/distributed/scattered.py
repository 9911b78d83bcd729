"""Values of partitions that stay where they are, and sums over them that come here.

What is kept here, on the client, is all that a run knows; what workers hold can be computed anew
from it and from the partitions. A worker that dies costs time, therefore, and nothing else: Dask
computes what it held on another one, from the same numbers in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import numpy as np

from kesler.errors import KeslerError

# So many values are added up in one place; more go there by way of others.
FAN_IN = 8
# Arrays of more bytes are sent to the workers once, not with each task.
LARGE = 1 << 18
NO_WARNING = {"distributed.admin.large-graph-warning-threshold": "100 GB"}


def resolve_client(client: Any) -> Any:
    """Return a Dask client: the one given, or else the one that is there.

    Raises
    ------
    KeslerError
        If Dask is not installed, or there is no client.
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
            "there is no Dask client: make one with distributed.Client(), which starts workers on "
            "this machine, or Client(address), or give client=..."
        ) from None


@dataclass(frozen=True, eq=False)
class Kept:
    """A value that stays with a worker, and tells Dask how large it is, lest it be moved lightly.

    Parameters
    ----------
    value : anything
    """

    value: Any

    def __sizeof__(self) -> int:
        return n_bytes(self.value)


def n_bytes(value: Any) -> int:
    """Return about how much memory a value takes: that of the arrays in it.

    Examples
    --------
    >>> n_bytes(Kept([np.zeros(4), np.zeros(1)]))
    40
    """
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, (list, tuple)):
        return sum(n_bytes(each) for each in value)
    return sum(n_bytes(each) for each in getattr(value, "__dict__", {}).values())


@dataclass(frozen=True, eq=False)
class Scattered:
    """One value for each partition, kept by the workers.

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
        """Return what a function makes of each value; arguments may be scattered likewise."""
        return Scattered(self.client, self._each(kept, function, arguments))

    def total(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of what a function makes of each value, in the order of the partitions.

        Lists and tuples are summed number by number.
        """
        futures = self._each(told, function, arguments)
        while len(futures) > FAN_IN:
            runs = [futures[i : i + FAN_IN] for i in range(0, len(futures), FAN_IN)]
            futures = self.client.map(added, runs, pure=False)
        return added(self.client.gather(futures))

    def collect(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return what a function makes of each value, here."""
        return list(self.client.gather(self._each(told, function, arguments)))

    def results(self) -> Iterator[Any]:
        """Yield the values themselves, one after the other."""
        for future in self.futures:
            yield future.result().value

    def _each(
        self, how: Callable[..., Any], function: Callable[..., Any], arguments: Sequence[Any]
    ) -> list[Any]:
        given = [self._placed(argument) for argument in arguments]
        import dask

        with dask.config.set(NO_WARNING):
            # Every task has a name of its own: none is taken for one that was done before.
            found: list[Any] = self.client.map(
                how, [function] * len(self), self.futures, *given, pure=False
            )
        return found

    def some(self, numbers: Sequence[int]) -> Scattered:
        """Return the values of some partitions."""
        return Scattered(self.client, [self.futures[number] for number in numbers])

    def _placed(self, argument: Any) -> Sequence[Any]:
        """Return an argument for each partition."""
        if isinstance(argument, Scattered):
            return argument.futures
        if isinstance(argument, np.ndarray) and argument.nbytes > LARGE:
            argument = sent(self.client, argument)
        return [argument] * len(self)


def sent(client: Any, value: Any) -> Any:
    """Send a value to the workers, once for all tasks; what is lost is sent again."""
    import dask

    with dask.config.set(NO_WARNING):
        return client.submit(itself, value, pure=False)


def itself(value: Any) -> Any:
    """Return a value as it is."""
    return value


def told(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function makes of values that are kept, or not."""
    return function(*(each.value if isinstance(each, Kept) else each for each in arguments))


def kept(function: Callable[..., Any], *arguments: Any) -> Kept:
    """Keep what a function makes of values that are kept, or not."""
    return Kept(told(function, *arguments))


def added(values: Sequence[Any]) -> Any:
    """Return the sum of values, of lists and tuples number by number.

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

"""Reading ahead: what comes next is made ready in a second thread."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from queue import Queue
from threading import Event, Thread
from typing import TypeVar

Item = TypeVar("Item")

NAME = "kesler reads ahead"


def read_ahead(items: Iterator[Item], room: int) -> Generator[Item, None, None]:
    """Yield items that a second thread asks for, in their order; of those ready, `room` wait.

    What asking raises is raised here, in its place. The thread ends with the items, or soon after
    the iterator is closed or dropped.

    Examples
    --------
    >>> list(read_ahead(iter("abc"), 2))
    ['a', 'b', 'c']
    """
    waiting = Queue[tuple[Item] | BaseException | None](room)
    dropped = Event()

    def fill() -> None:
        end: BaseException | None = None
        try:
            for item in items:
                waiting.put((item,))
                if dropped.is_set():
                    return
        except BaseException as error:
            end = error
        waiting.put(end)
        end = None  # an error knows this frame: each would keep the other, and all that is here

    thread = Thread(target=fill, name=NAME, daemon=True)
    thread.start()
    try:
        while isinstance(found := waiting.get(), tuple):
            yield found[0]
        if found is not None:
            raise found
    finally:
        found = None
        dropped.set()
        # Who waits to put an item finds room for it, sees that none is wanted, and ends.
        while not waiting.empty():
            waiting.get_nowait()
        thread.join()

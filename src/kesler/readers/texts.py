"""Texts: whole lines as compiled loops take them, which read many bytes at a time."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

Text = npt.NDArray[np.uint8]

BEYOND = 64  # bytes that may be read past the end of a text
LASTING = 4  # so many texts there are at a time, of a file that is read
SHORT_TOKEN = 64  # bytes; such ones are taken all at once, which is faster
NEWLINE = ord("\n")
LINE_END = re.compile(rb"\n")


def text_of(content: bytes) -> Text:
    """Return a text, with room beyond it.

    Examples
    --------
    >>> text = text_of(b"a b")
    >>> text.tobytes(), len(text.base) >= 3 + BEYOND
    (b'a b', True)
    """
    buffer = np.zeros(len(content) + BEYOND, dtype=np.uint8)
    buffer[: len(content)] = np.frombuffer(content, dtype=np.uint8)
    return buffer[: len(content)]


def read_texts(
    read_into: Callable[[memoryview], int], n_bytes: int, number: int
) -> Iterator[tuple[int, Text]]:
    r"""Yield what is read, about so many bytes at a time, up to the end of a line; end the last.

    Each text comes with the number of its first line, counted on from `number`. It holds until
    `LASTING` more are asked for, which then take its memory.

    Examples
    --------
    >>> from io import BytesIO
    >>> texts = read_texts(BytesIO(b"a\nb\nc d\ne").readinto, 5, 1)
    >>> [(number, text.tobytes()) for number, text in texts]
    [(1, b'a\nb\n'), (3, b'c d\n'), (4, b'e\n')]
    """
    buffers = deque(bytearray(n_bytes + BEYOND) for _ in range(LASTING))
    n_begun = 0
    while n_read := read_into(memoryview(buffers[0])[n_begun:-BEYOND]):
        buffer, n_there = buffers[0], n_begun + n_read
        end = buffer.rfind(b"\n", n_begun, n_there) + 1
        n_begun = n_there - end
        if end:
            text = np.frombuffer(buffer, dtype=np.uint8, count=end)
            yield number, text
            number += int(np.count_nonzero(text == NEWLINE))
            buffers.rotate(-1)
        if n_begun + BEYOND >= len(buffers[0]):
            buffers[0] = bytearray(2 * n_begun + BEYOND)
        if buffers[0] is not buffer:
            buffers[0][:n_begun] = buffer[end:n_there]
    if n_begun:
        buffers[0][n_begun] = NEWLINE
        yield number, np.frombuffer(buffers[0], dtype=np.uint8, count=n_begun + 1)


def end_of_line(text: Text, start: int) -> int:
    r"""Return where the line that begins at `start` has ended; every line of a text ends.

    Examples
    --------
    >>> end_of_line(text_of(b"a\nb c\n"), 2)
    6
    """
    found = LINE_END.search(text.data, start)
    assert found is not None
    return found.end()


def tokens_of(text: Text, spans: npt.NDArray[np.int64]) -> list[bytes]:
    """Return the tokens that begin and end so; none ends with a NUL.

    Examples
    --------
    >>> tokens_of(text_of(b"spam | a"), np.array([[0, 4], [7, 8], [2, 2]]))
    [b'spam', b'a', b'']
    """
    starts, ends = spans[:, :1], spans[:, 1:]
    longest = max(1, int((ends - starts).max(initial=0)))
    if longest > SHORT_TOKEN:
        return [text[start:end].tobytes() for start, end in spans.tolist()]
    places = starts + np.arange(longest)
    letters = text.take(places, mode="clip")
    letters[places >= ends] = 0
    tokens: list[bytes] = letters.view(f"S{longest}").ravel().tolist()
    return tokens


def is_utf8(text: Text) -> bool:
    r"""Return whether a text is UTF-8.

    Examples
    --------
    >>> is_utf8(text_of("é".encode())), is_utf8(text_of(b"\xe9"))
    (True, False)
    """
    if text.max(initial=0) >= 0x80:
        try:
            text.tobytes().decode()
        except UnicodeDecodeError:
            return False
    return True

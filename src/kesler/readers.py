"""Readers: read files of every supported format as blocks of rows."""

from kesler.data.inputs import tokenize
from kesler.data.readers.opening import READERS, Format, open_stream
from kesler.data.readers.stream import Block, Stream

__all__ = [
    "READERS",
    "Block",
    "Format",
    "Stream",
    "open_stream",
    "tokenize",
]

"""Readers: every format in, blocks of rows out."""

from kesler.readers.opening import open_stream
from kesler.readers.stream import Block, Stream
from kesler.readers.tokens import tokenize

__all__ = ["Block", "Stream", "open_stream", "tokenize"]

from .opening import READERS as READERS
from .opening import Format as Format
from .opening import open_stream as open_stream
from .stream import Block as Block
from .stream import Stream as Stream

def tokenize(text: str) -> list[str]: ...

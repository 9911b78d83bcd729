"""Model files: arrays and JSON in one safetensors file."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable
from contextlib import suppress
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.whole_file import whole_file
from kesler.errors import KeslerError

FORMAT, HEADER = "kesler", "header"
VERSION = 2
COMPACT = b"KSMTEXT1"
"""What the files of compact classifiers begin with, which are no model files."""
# The types of numbers by their names in safetensors, whose files list those of later ones first.
TYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "uint16": "U16",
    "float16": "F16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "float64": "F64",
    "int64": "I64",
    "uint64": "U64",
}
_ORDER = list(TYPES)

Arrays = dict[str, npt.NDArray[Any]]


def save(path: str | os.PathLike[str], arrays: Arrays, metadata: dict[str, Any]) -> None:
    """Write arrays and metadata; the same contents are always the same bytes.

    Parameters
    ----------
    path : the path of the file; see :func:`~kesler.data.whole_file.write_whole`.
    arrays : the arrays of numbers, by name.
    metadata : a dictionary that JSON can represent. It is stored as an array of bytes, since the
        size of the file's header is limited.

    Raises
    ------
    KeslerError
        If the folder cannot be written to, or JSON cannot represent the metadata.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> path = tempfile.mkdtemp() + "/model.kesler"
    >>> save(path, {"w": np.ones(2)}, {"names": ["a", "b"]})
    >>> arrays, metadata = load(path)
    >>> arrays["w"].tolist(), metadata
    ([1.0, 1.0], {'names': ['a', 'b']})
    """
    write(path, pieces_of(arrays, metadata, path))


def write(path: str | os.PathLike[str], pieces: list[memoryview]) -> None:
    """Write the pieces of a model file, one after another, as a whole file."""
    with whole_file(path) as file:
        file.writelines(pieces)


def to_bytes(arrays: Arrays, metadata: dict[str, Any], path: object = "the model") -> bytes:
    """Return the contents of a model file; `path` is what messages call it."""
    return b"".join(pieces_of(arrays, metadata, path))


def pieces_of(arrays: Arrays, metadata: dict[str, Any], path: object) -> list[memoryview]:
    """Return the contents of a model file in pieces, which are views of the arrays.

    The bytes are those of `safetensors.numpy.save`, which copies all arrays twice.
    """
    contents = {**arrays, "metadata": _as_array(metadata, path)}
    names = sorted(contents, key=lambda name: (-_ORDER.index(contents[name].dtype.name), name))
    contents = {name: contents[name] for name in names}
    pieces = [_bytes_of(array) for array in contents.values()]
    first = _first_bytes(contents, accumulate(map(len, pieces), initial=0))
    return [memoryview(len(first).to_bytes(8, "little") + first), *pieces]


def _as_array(metadata: dict[str, Any], path: object) -> npt.NDArray[np.uint8]:
    """Return metadata as the bytes of JSON; raise if it cannot hold them."""
    try:
        text = json.dumps(metadata, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise KeslerError(
            f"{path}: a model file keeps what JSON can hold, which not all of this is ({error})"
        ) from None
    return np.frombuffer(text, dtype=np.uint8)


def _first_bytes(contents: Arrays, offsets: Iterable[int]) -> bytes:
    """Return what safetensors writes before the arrays: JSON that says where each of them is."""
    header = {"format": FORMAT, "version": VERSION, "checksum": _checksum(contents)}
    # In one entry: safetensors writes several in any order.
    listed: dict[str, Any] = {"__metadata__": {HEADER: json.dumps(header)}}
    for (name, array), part in zip(contents.items(), pairwise(offsets), strict=True):
        kind = TYPES[array.dtype.name]
        listed[name] = {"dtype": kind, "shape": array.shape, "data_offsets": part}
    text = json.dumps(listed, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % 8)


def _bytes_of(array: npt.NDArray[Any]) -> memoryview:
    """Return the bytes of an array in C order, the lowest of each number first."""
    found = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return found.reshape(-1).view(np.uint8).data


def load(path: str | os.PathLike[str]) -> tuple[Arrays, dict[str, Any]]:
    """Read the arrays and the metadata that `save` wrote.

    Raises
    ------
    KeslerError
        If the file does not exist, is not a model file, is cut off or damaged, or was written by a
        newer version of Kesler.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise KeslerError(f"{path}: there is no such model file")
    if begins_with(path, COMPACT):
        raise KeslerError(
            f"{path}: a compact classifier, which does not learn: read it by "
            "kesler.compact.CompactClassifier.load, or CompactMultilabelClassifier.load if it "
            "predicts label sets, or kesler.fasttext.load_model"
        )
    try:
        with safe_open(path, framework="numpy") as file:
            header = _header(path, file.metadata() or {})
            arrays = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, TypeError, ValueError) as error:
        if isinstance(error, KeslerError):
            raise
        raise _damaged(path, str(error)) from error
    except OSError as error:
        raise KeslerError(f"{path}: cannot be read ({error.strerror})") from error
    return _checked(path, header, arrays)


def begins_with(path: str | os.PathLike[str], magic: bytes) -> bool:
    """Return whether a file can be read and begins with some bytes."""
    with suppress(OSError), open(path, "rb") as file:
        return file.read(len(magic)) == magic
    return False


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins as a model file does; its contents are not checked."""
    header = json.dumps({"format": FORMAT}).removesuffix("}")
    entry = json.dumps({HEADER: header}, separators=(",", ":")).removesuffix('"}')
    with suppress(OSError), open(path, "rb") as file:
        return file.read(100)[8:].startswith(f'{{"__metadata__":{entry}'.encode())
    return False


def from_bytes(contents: bytes, path: object = "the model") -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the metadata of a model file, of which `to_bytes` made the contents."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as read

    try:
        length = int.from_bytes(contents[:8], "little")
        header = _header(path, json.loads(contents[8 : 8 + length])["__metadata__"])
        arrays = read(contents)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, KeslerError):
            raise
        raise _damaged(path, str(error)) from error
    return _checked(path, header, arrays)


def _checked(path: object, header: dict[str, Any], arrays: Arrays) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays of a file and its metadata, once the checksum has been compared."""
    if header.get("checksum") != _checksum(arrays):
        raise _damaged(path, "its checksum is wrong")
    try:
        return arrays, json.loads(arrays.pop("metadata").tobytes())
    except (KeyError, ValueError, RecursionError) as error:
        raise _damaged(path, f"its metadata cannot be read: {error}") from error


def _damaged(path: object, reason: str) -> KeslerError:
    return KeslerError(
        f"{path}: not a model file, or one that is cut off or damaged ({reason}): take an earlier "
        "copy or learn again"
    )


def _checksum(arrays: Arrays) -> str:
    """Return a checksum of names, types, shapes and contents."""
    checksum = 0
    for name in sorted(arrays):
        array = arrays[name]
        described = f"{name} {array.dtype.str} {array.shape}".encode()
        checksum = zlib.crc32(np.ascontiguousarray(array).data, zlib.crc32(described, checksum))
    return f"{checksum:08x}"


def _header(path: object, entries: dict[str, str]) -> dict[str, Any]:
    """Return the header of a model file that this version can read."""
    try:
        header = json.loads(entries.get(HEADER, "{}"))
    except RecursionError:
        header = {}
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise KeslerError(f"{path}: a safetensors file, but not a model of Kesler")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise _damaged(path, f"its version is {version!r}")
    if version > VERSION:
        raise KeslerError(
            f"{path}: written by a newer Kesler (format {version}, this one reads up to "
            f"{VERSION}): update Kesler"
        )
    return header

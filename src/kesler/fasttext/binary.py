"""fastText's model files, ``.bin`` and ``.ftz``: their arguments, dictionary and matrices."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError

Floats = npt.NDArray[np.float32]

MAGIC, VERSIONS = 793712314, (11, 12)
N_CENTROIDS = 256
LARGEST_DECODED = 1 << 30  # bytes of a quantized matrix whose file is small
LONGEST_WORD = 1 << 20  # bytes, more than any that fastText writes
LONGEST_RUN = 1 << 10  # of words, or of characters of a word


class Loss(IntEnum):
    """The losses of fastText, by their numbers in files."""

    HIERARCHICAL_SOFTMAX = 1
    NEGATIVE_SAMPLING = 2
    SOFTMAX = 3
    ONE_VS_ALL = 4


SUPERVISED = 3  # the number of classifiers among fastText's models


@dataclass(frozen=True)
class Arguments:
    """The arguments of a model that a prediction depends on."""

    dim: int
    word_ngrams: int
    loss: Loss
    bucket: int
    minn: int
    maxn: int


@dataclass(frozen=True)
class Dictionary:
    """The words and labels of a model, each with its count, and the rows of kept hashes.

    Attributes
    ----------
    words, labels : dict of str to int
        Counts, in the order of their rows.
    kept : dict of int to int, or None
        The rows of the hashes of a pruned model, after those of the words; None if it has all.
    """

    words: dict[str, int]
    labels: dict[str, int]
    kept: dict[int, int] | None


@dataclass(frozen=True)
class Quantized:
    """A matrix whose rows are codes of a product quantizer, with their norms or without.

    Row i is the concatenation of the centroids `codebook[m, codes[i, m]]`, times its norm
    (Joulin et al. 2016).
    """

    codes: npt.NDArray[np.uint8]
    codebooks: list[Floats]
    norms: Floats | None

    def __getitem__(self, rows: Any) -> Floats:
        """Return some rows as they are decoded."""
        codes = self.codes[rows]
        parts = [book[codes[..., m]] for m, book in enumerate(self.codebooks)]
        decoded: Floats = np.concatenate(parts, axis=-1)
        return decoded if self.norms is None else decoded * self.norms[rows][..., None]

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class Content:
    """What a file holds."""

    arguments: Arguments
    dictionary: Dictionary
    input: Floats | Quantized
    output: Floats


def is_fasttext(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins as fastText's models do."""
    with Path(path).open("rb") as file:
        return file.read(4) == struct.pack("<i", MAGIC)


def read_content(path: str | os.PathLike[str]) -> Content:
    """Read a classifier that fastText has saved.

    Raises
    ------
    KeslerError
        If the file is cut short, longer than it says, of another version, holds numbers that no
        model has, or is a model of word vectors alone.
    """
    with Path(path).open("rb") as file:
        source = _Source(file, os.fspath(path))
        if source.integers("ii") not in [(MAGIC, version) for version in VERSIONS]:
            raise source.damaged("it does not begin as a model of version 11 or 12 does")
        file.seek(4)
        arguments = _arguments(source, version=source.integers("i")[0])
        dictionary = _dictionary(source)
        content = _with_matrices(source, arguments, dictionary)
        if file.read(1):
            raise source.damaged("there are bytes behind its end")
    return content


class _Source:
    """A file that is read from its start, whose numbers are checked."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        self.n_bytes = os.fstat(file.fileno()).st_size

    def damaged(self, what: str) -> KeslerError:
        return KeslerError(
            f"{self._name} can't be read as a model of fastText ({what}): if it is cut short or "
            "damaged, fetch or save it again"
        )

    def integers(self, form: str) -> tuple[Any, ...]:
        form = f"<{form}"
        return struct.unpack(form, self.bytes(struct.calcsize(form)))

    def bytes(self, n_bytes: int) -> bytes:
        if n_bytes > self.n_bytes - self._file.tell():
            raise self.damaged("it ends too early")
        return self._file.read(n_bytes)

    def size(self, form: str, what: str, least: int = 0) -> int:
        """Return a number of things, none of which takes less than a byte."""
        (found,) = self.integers(form)
        if not least <= found <= max(self.n_bytes, least):
            raise self.damaged(f"it says that it has {found} {what}")
        return int(found)

    def flag(self) -> bool:
        (found,) = self.integers("B")
        if found > 1:
            raise self.damaged(f"a flag is {found}")
        return bool(found)

    def array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        n_bytes = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
        found = np.frombuffer(self.bytes(n_bytes), dtype=dtype).reshape(shape)
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise self.damaged("a weight is not finite")
        return found

    def word(self) -> str:
        """Return the text up to the next zero byte."""
        at = self._file.tell()
        found = self._file.read(64)
        while b"\0" not in found:
            more = self._file.read(1024)
            if not more or len(found) > LONGEST_WORD:
                raise self.damaged("a word has no end")
            found += more
        found = found[: found.index(b"\0")]
        self._file.seek(at + len(found) + 1)
        return found.decode(errors="surrogateescape")


def _arguments(source: _Source, version: int) -> Arguments:
    numbers = source.integers("12id")
    dim, _, _, _, _, word_ngrams, loss, model, bucket, minn, maxn, _, _ = numbers
    if model != SUPERVISED:
        raise KeslerError(
            f"{source._name} holds word vectors, not a classifier: give its vectors (.vec) to "
            "OnlineClassifier(vectors=...)"
        )
    maxn = 0 if version == 11 else maxn
    has_hashes = word_ngrams > 1 or maxn > 0
    is_run = 0 <= word_ngrams and max(word_ngrams, minn, maxn) <= LONGEST_RUN
    if loss not in [*Loss] or dim < 1 or bucket < has_hashes or not is_run:
        raise source.damaged("its arguments are none of fastText's")
    return Arguments(dim, word_ngrams, Loss(loss), bucket, minn, maxn)


def _dictionary(source: _Source) -> Dictionary:
    size, n_words, n_labels = (source.size("i", what) for what in ("entries", "words", "labels"))
    n_tokens, n_kept = source.integers("qq")
    if size != n_words + n_labels or n_labels < 1 or n_kept < -1 or n_kept > source.n_bytes:
        raise source.damaged("the numbers of its words and labels do not agree")
    entries = [(source.word(), *source.integers("qb")) for _ in range(size)]
    kinds = [kind for _, _, kind in entries]
    if kinds != [0] * n_words + [1] * n_labels:
        raise source.damaged("its words and labels are not in order")
    words, labels = ({w: n for w, n, each in entries if each == kind} for kind in (0, 1))
    if len(words) < n_words or len(labels) < n_labels:
        raise source.damaged("a word or a label stands twice")
    counts = [*words.values(), *labels.values()]
    if min(counts) < 0 or sum(counts) > n_tokens:
        raise source.damaged("its words and labels are more than it says")
    kept = source.array((max(n_kept, 0), 2), "<i4").tolist()
    return Dictionary(words, labels, None if n_kept < 0 else dict(kept))


def _with_matrices(source: _Source, arguments: Arguments, dictionary: Dictionary) -> Content:
    is_quantized, kept = source.flag(), dictionary.kept
    if kept is not None and not is_quantized:
        raise source.damaged("it is pruned, but not quantized")
    dim = arguments.dim
    rows = _quantized(source, dim) if is_quantized else _dense(source, dim)
    output = _decoded(source, dim) if source.flag() else _dense(source, dim)
    n_hashes = arguments.bucket if kept is None else len(kept)
    if len(rows) != len(dictionary.words) + n_hashes or len(output) != len(dictionary.labels):
        raise source.damaged("its matrices have other rows than its dictionary")
    if kept and not 0 <= min(kept.values()) <= max(kept.values()) < n_hashes:
        raise source.damaged("a kept hash has no row")
    return Content(arguments, dictionary, rows, output)


def _decoded(source: _Source, dim: int) -> Floats:
    found = _quantized(source, dim)
    if 4 * len(found) * dim > max(LARGEST_DECODED, 64 * source.n_bytes):
        raise source.damaged(f"its {len(found)} labels with {dim} numbers each are too many")
    return found[:]


def _dense(source: _Source, dim: int) -> Floats:
    return source.array(_shape(source, dim), "<f4")


def _shape(source: _Source, dim: int) -> tuple[int, int]:
    n_rows = source.size("q", "rows")
    (n_columns,) = source.integers("q")
    if n_columns != dim:
        raise source.damaged(f"a matrix has {n_columns} columns, not {dim}")
    return n_rows, dim


def _quantized(source: _Source, dim: int) -> Quantized:
    has_norms = source.flag()
    n_rows, _ = _shape(source, dim)
    n_codes = source.size("i", "codes")
    if n_rows == 0 or n_codes % n_rows:
        raise source.damaged("its codes do not fit its rows")
    codes = source.array((n_rows, n_codes // n_rows), "u1")
    books = _codebooks(source, dim, codes.shape[1])
    if not has_norms:
        return Quantized(codes, books, None)
    norms = source.array((n_rows,), "u1")
    return Quantized(codes, books, _codebooks(source, 1, 1)[0][norms, 0])


def _codebooks(source: _Source, dim: int, n_parts: int) -> list[Floats]:
    """Return the centroids of each part of a row."""
    found_dim, found_parts, width, last = source.integers("iiii")
    widths = [width] * (n_parts - 1) + [last]
    if (found_dim, found_parts, sum(widths)) != (dim, n_parts, dim) or min(widths) < 1:
        raise source.damaged("its quantizer does not fit its rows")
    return [source.array((N_CENTROIDS, each), "<f4") for each in widths]

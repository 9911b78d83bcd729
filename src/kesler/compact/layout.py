"""The file of a compact classifier: a header, the labels, and the entries of each feature in bits.

A feature is known by the upper bits of the hash of its name, its key. The first bits of a key are
the number of a bucket, whose records follow each other in the order of the rest of their keys: this
rest, the number of entries, and for each entry a class and the number of a level.

The flags of the header say which features texts have, and what follows the labels: how the
features of a column of texts are named, the intercepts of classes, and what label sets are decided
by. In a file of label sets, an entry of the class after the last belongs to all labels.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.compact.names import NO_RUNS, Range, Terms, Words
from kesler.data.model_file import COMPACT as MAGIC
from kesler.data.model_file import begins_with
from kesler.data.texts import EARLIEST, LATEST, TextLengths
from kesler.errors import KeslerError

HEADER = struct.Struct("<8sIIIIBBBBIqqdd")
OF_TERMS = struct.Struct("<BBBBBH")  # the fields of `Terms`, with the length of the name
MOST_OF_NAME = 2**16 - 1  # bytes of the name of a column
MOST_KEY_BITS, MOST_BUCKET_BITS, FEATURES_OF_BUCKET = 32, 28, 4
MOST_BITS = 2**32 - 1
COLLISIONS = 1000
"""An unknown name is taken for a known one at most once in so many, up to 4 million features."""
PADDING = 8  # bytes behind the last bit, so that words of 8 bytes can be read
WHOLE = 32767  # the largest level
FRACTION, LARGEST_ODDS = 1 << 8, 1 << 30
"""Odds are integers, this fraction of the inverse temperature, and at most so large as offsets."""
SPREAD = 2.0  # of the scores of a text, times their temperature, before rows have taught one
WORDS_ONLY, TERMS, SETS, INTERCEPTS, LATEST_TEXTS = 1, 2, 4, 8, 16
KNOWN_FLAGS = {
    of | kind
    for of in (0, WORDS_ONLY, TERMS, LATEST_TEXTS, TERMS | LATEST_TEXTS)
    for kind in (0, SETS, INTERCEPTS)
}
MOST_NGRAMS, MOST_RUN = 3, 8

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Offsets:
    """The odds of each class in a text without known features, and those that labels must exceed.

    Odds are logarithms, integers in units of the inverse temperature divided by `FRACTION`.

    Attributes
    ----------
    of_classes : int32 array
        The odds of each class in a text without known features: its intercept.
    to_beat : int or None
        The odds of a label that is just not predicted; None if a text has one class.
    """

    of_classes: npt.NDArray[np.int32]
    to_beat: int | None = None


@dataclass(frozen=True)
class Content:
    """What a file holds.

    Attributes
    ----------
    labels : list of str
        The names of the classes.
    prefix : str
        What all of them begin with.
    features : Words or Terms
        The features of a text.
    offsets : Offsets or None
        None if a text has one class, and classes no intercepts.
    inverse, lapse : float
        The inverse temperature for sums of levels, 0 if the highest and lowest score of each text
        are to be 2 apart, and the share of rows that scores do not explain.
    widths : Widths
        The numbers of bits of all fields.
    levels : int16 array
        The weights by their numbers, in units of the largest.
    keys : int64 array
        The key of each feature, ascending.
    starts : int64 array
        The first entry of each feature, and the number of all.
    classes, codes : int64 arrays
        The class and the number of the level of each entry; of label sets, the class after the last
        stands for all.
    """

    labels: list[str]
    prefix: str
    features: Words | Terms
    offsets: Offsets | None
    inverse: float
    lapse: float
    widths: Widths
    levels: npt.NDArray[np.int16]
    keys: Numbers
    starts: Numbers
    classes: Numbers
    codes: Numbers

    @property
    def n_owners(self) -> int:
        """The number of classes that entries may have."""
        return len(self.labels) + self.has_sets

    @property
    def has_sets(self) -> bool:
        """Whether a text has a set of labels."""
        return self.offsets is not None and self.offsets.to_beat is not None


@dataclass(frozen=True)
class Widths:
    """The numbers of bits of the fields.

    Attributes
    ----------
    key, bucket : int
        The bits of a key, and how many of them are the number of a bucket.
    owner, code : int
        The bits of the number of a class, and of a level.
    count : int
        The bits of the number of the entries of a feature.
    """

    key: int
    bucket: int
    owner: int
    code: int
    count: int

    @staticmethod
    def of(n_owners: int, n_features: int, bits: int) -> Widths:
        """Return the widths for so many features at most, and levels of so many bits."""
        key = min(MOST_KEY_BITS, bits_for(COLLISIONS * max(1, n_features)))
        bucket = max(0, (n_features // FEATURES_OF_BUCKET).bit_length() - 1)
        return Widths.given(n_owners, key, bucket, bits)

    @staticmethod
    def given(n_owners: int, key: int, bucket: int, code: int) -> Widths:
        """Return the widths of a file that states three of them."""
        return Widths(key, bucket, bits_for(n_owners), code, bits_for(n_owners + 1))

    @property
    def rest(self) -> int:
        """The bits of a key that a record holds."""
        return self.key - self.bucket

    def n_bytes(self, n_features: int, n_entries: int, n_bytes_of_others: int) -> int:
        """Return the size of the file, of which labels and what follows take so many bytes."""
        bits = n_features * (self.rest + self.count) + n_entries * (self.owner + self.code)
        fixed = HEADER.size + (2 << self.code) + n_bytes_of_others + PADDING
        return fixed + 4 * ((1 << self.bucket) + 1) + (bits + 7) // 8


def bits_for(n: int) -> int:
    """Return the number of bits of numbers below n.

    Examples
    --------
    >>> bits_for(1), bits_for(2), bits_for(77)
    (0, 1, 7)
    """
    return (n - 1).bit_length()


# ---- writing --------------------------------------------------------------------------------


def to_bytes(content: Content) -> bytes:
    """Return the contents of a file."""
    widths, names = content.widths, bytes_of_labels(content.labels)
    records, starts = bytes_of_records(content)
    flags, lengths = _flags_of(content.features)
    fields = (
        *(len(content.labels), len(content.keys), len(names)),
        *(widths.key, widths.bucket, widths.code, flags | _flag_of(content.offsets)),
        len(content.prefix.encode()),
        *(lengths.n_texts, lengths.n_characters, content.inverse, content.lapse),
    )
    found = HEADER.pack(MAGIC, 0, *fields) + content.levels.astype("<i2").tobytes() + names
    found += bytes_of_features(content.features) + bytes_of_offsets(content.offsets)
    found += starts.astype("<u4").tobytes() + records
    checksum = zlib.crc32(found[12:])
    return found[:8] + struct.pack("<I", checksum) + found[12:]


def bytes_of_labels(labels: list[str]) -> bytes:
    """Return names in UTF-8, each with a 0 behind it.

    Raises
    ------
    KeslerError
        If a label has a character 0, or cannot be written.
    """
    for label in labels:
        if "\0" in label or not _is_unicode(label):
            raise KeslerError(
                f"the label {label!r:.60} has a character that a compact file cannot hold: rename "
                "the class"
            )
    return b"".join(label.encode() + b"\0" for label in labels)


def _flags_of(features: Words | Terms) -> tuple[int, TextLengths]:
    """Return what the header says of features."""
    if isinstance(features, Terms):
        return TERMS | LATEST_TEXTS * features.beginning, TextLengths()
    if features.lengths is None:
        return WORDS_ONLY, TextLengths()
    return LATEST_TEXTS * (features.lengths.version == LATEST), features.lengths


def bytes_of_features(features: Words | Terms) -> bytes:
    """Return how the features of a column are named; nothing of texts as strings.

    Raises
    ------
    KeslerError
        If the name of the column cannot be written.
    """
    if isinstance(features, Words):
        return b""
    if not _is_unicode(features.column) or len(features.column.encode()) > MOST_OF_NAME:
        raise KeslerError(
            f"the column {features.column!r:.60} has a name that a compact file cannot hold: "
            "rename the column"
        )
    name = features.column.encode()
    numbers = features.ngrams, *features.chars, *features.subwords
    return OF_TERMS.pack(*numbers, len(name)) + name


def _flag_of(offsets: Offsets | None) -> int:
    """Return what the header says of offsets."""
    if offsets is None:
        return 0
    return INTERCEPTS if offsets.to_beat is None else SETS


def bytes_of_offsets(offsets: Offsets | None) -> bytes:
    """Return the odds that label sets must exceed, and the offsets of classes."""
    if offsets is None:
        return b""
    first = [] if offsets.to_beat is None else [offsets.to_beat]
    return np.array([*first, *offsets.of_classes], dtype="<i4").tobytes()


def _is_unicode(label: str) -> bool:
    try:
        label.encode()
    except UnicodeEncodeError:
        return False
    return True


def bytes_of_records(content: Content) -> tuple[bytes, Numbers]:
    """Return the bytes of all records, and the bit at which each bucket begins.

    Raises
    ------
    KeslerError
        If they are more than 512 MB.
    """
    widths, counts = content.widths, np.diff(content.starts)
    n_fields = 2 + 2 * counts  # the rest of the key, the number of entries, and these
    first = np.concatenate([[0], np.cumsum(n_fields)])
    values, lengths = np.zeros(first[-1], np.int64), np.zeros(first[-1], np.int64)
    of_entries = np.repeat(first[:-1] + 2 - 2 * content.starts[:-1], counts)
    of_entries += 2 * np.arange(len(content.classes))
    rest = content.keys & ((1 << widths.rest) - 1)
    for places, numbers, width in (
        (first[:-1], rest, widths.rest),
        (first[:-1] + 1, counts, widths.count),
        (of_entries, content.classes, widths.owner),
        (of_entries + 1, content.codes, widths.code),
    ):
        values[places], lengths[places] = numbers, width
    ends = np.concatenate([[0], np.cumsum(lengths)])
    of_features = ends[first]
    buckets = np.searchsorted(content.keys >> widths.rest, np.arange((1 << widths.bucket) + 1))
    if ends[-1] > MOST_BITS:
        raise KeslerError("the records of a compact file take at most 512 MB: give max_bytes")
    owners = np.repeat(np.arange(len(values)), lengths)
    bits = values[owners] >> (np.arange(ends[-1]) - ends[owners]) & 1
    packed = np.packbits(bits.astype(np.uint8), bitorder="little").tobytes()
    return packed + bytes(PADDING), of_features[buckets]


# ---- reading --------------------------------------------------------------------------------


def is_compact(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins as that of a compact classifier does."""
    return begins_with(path, MAGIC)


def from_bytes(found: bytes, name: str) -> Content:
    """Return what the bytes of a file hold; `name` is what messages call it.

    Raises
    ------
    KeslerError
        If they are no file of a compact classifier, or are damaged.
    """
    if len(found) < HEADER.size or not found.startswith(MAGIC):
        raise KeslerError(f"{name} is no file of a compact classifier: check the path")
    _, checksum, *fields = HEADER.unpack_from(found)
    if checksum != zlib.crc32(found[12:]):
        raise _damaged(name, "its checksum is another")
    try:
        return _read(found, fields)
    except (ValueError, IndexError, OverflowError) as error:
        raise _damaged(name, str(error)) from None


class _Cursor:
    """The bytes of a file, taken one part after another."""

    def __init__(self, found: bytes, place: int) -> None:
        self._found, self._place = found, place

    def take(self, n: int) -> bytes:
        """Return the next n bytes."""
        start, self._place = self._place, self._place + n
        if self._place > len(self._found):
            raise _wrong_length()
        return self._found[start : self._place]

    def numbers(self, kind: str, n: int) -> npt.NDArray[Any]:
        """Return the next n numbers of a type of NumPy."""
        return np.frombuffer(self.take(n * np.dtype(kind).itemsize), kind)

    def rest(self) -> npt.NDArray[np.uint8]:
        """Return all bytes that are left."""
        return np.frombuffer(self._found, np.uint8, offset=self._place)


def _read(found: bytes, fields: list[Any]) -> Content:
    n_classes, n_features, n_of_labels, key, bucket, code, flags, n_prefix, *numbers = fields
    are_bits = bucket <= min(key, MOST_BUCKET_BITS) and key <= MOST_KEY_BITS and 1 <= code <= 8
    if not (n_classes and are_bits and flags in KNOWN_FLAGS):
        raise ValueError("its header holds impossible numbers")
    n_texts, n_characters, inverse, lapse = numbers
    is_counted = bool(n_texts or n_characters) and bool(flags & TERMS)  # texts of a column are not
    are_shares = 0 <= inverse < np.inf and 0 <= lapse <= 1
    if min(n_texts, n_characters) < 0 or is_counted or not are_shares:
        raise ValueError("its header holds impossible numbers")
    cursor, n_owners = _Cursor(found, HEADER.size), n_classes + bool(flags & SETS)
    widths = Widths.given(n_owners, key, bucket, code)
    levels = cursor.numbers("<i2", 1 << code)
    labels, prefix = _labels(cursor.take(n_of_labels), n_classes, n_prefix)
    version = LATEST if flags & LATEST_TEXTS else EARLIEST
    lengths = None if flags & WORDS_ONLY else TextLengths(n_texts, n_characters, version)
    features = _terms(cursor, flags) if flags & TERMS else Words(lengths)
    offsets = _offsets(cursor, n_classes, flags)
    buckets = cursor.numbers("<u4", (1 << bucket) + 1).astype(np.int64)
    records = cursor.rest()
    if len(records) != (int(buckets[-1]) + 7) // 8 + PADDING:
        raise _wrong_length()
    parts = _records(records, buckets, widths)
    if len(parts[0]) != n_features or parts[2].max(initial=0) >= n_owners:
        raise ValueError("it holds another number of features, or of classes")
    return Content(labels, prefix, features, offsets, inverse, lapse, widths, levels, *parts)


def _wrong_length() -> ValueError:
    return ValueError("it is cut short, or longer than it says")


def _labels(names: bytes, n_classes: int, n_prefix: int) -> tuple[list[str], str]:
    """Return the labels, and what they begin with."""
    labels = names.decode().split("\0")
    if labels.pop() or len(labels) != n_classes:
        raise ValueError("it names another number of labels")
    prefix = names[:n_prefix].decode()
    if not all(label.startswith(prefix) for label in labels):
        raise ValueError("its labels do not begin with their prefix")
    return labels, prefix


def _terms(cursor: _Cursor, flags: int) -> Terms:
    """Return how the features of a column are named."""
    ngrams, *runs, n_name = OF_TERMS.unpack(cursor.take(OF_TERMS.size))
    chars, subwords = (runs[0], runs[1]), (runs[2], runs[3])
    if ngrams > MOST_NGRAMS or not (_are_lengths(chars) and _are_lengths(subwords)):
        raise ValueError("it holds impossible lengths of runs")
    name = cursor.take(n_name).decode()
    return Terms(name, ngrams, chars, subwords, bool(flags & LATEST_TEXTS))


def _are_lengths(runs: Range) -> bool:
    return runs == NO_RUNS or 1 <= runs[0] <= runs[1] <= MOST_RUN


def _offsets(cursor: _Cursor, n_classes: int, flags: int) -> Offsets | None:
    """Return the offsets of classes, and the odds that label sets must exceed."""
    if not flags & (SETS | INTERCEPTS):
        return None
    to_beat = int(cursor.numbers("<i4", 1)[0]) if flags & SETS else None
    return Offsets(cursor.numbers("<i4", n_classes), to_beat)


def _records(
    content: npt.NDArray[np.uint8], buckets: Numbers, widths: Widths
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return keys, starts, classes and codes, as in `Content`."""
    if (np.diff(buckets) < 0).any() or buckets[0]:
        raise ValueError("its buckets are not in order")
    of_entry = widths.owner + widths.code
    at, numbers = buckets[:-1].copy(), np.arange(len(buckets) - 1)
    keys, counts, places = list[Numbers](), list[Numbers](), list[Numbers]()
    while (is_left := at < buckets[1:][numbers]).any():
        at, numbers = at[is_left], numbers[is_left]
        keys.append(numbers << widths.rest | _bits(content, at, widths.rest))
        counts.append(_bits(content, at + widths.rest, widths.count))
        places.append(at + widths.rest + widths.count)
        at = places[-1] + counts[-1] * of_entry
        if (at > buckets[1:][numbers]).any():
            raise ValueError("a bucket ends within a record")
    none = np.zeros(0, np.int64)
    found, lengths, first = (np.concatenate([none, *each]) for each in (keys, counts, places))
    order = np.argsort(found, kind="stable")
    found, lengths, first = found[order], lengths[order], first[order]
    if (np.diff(found) <= 0).any():
        raise ValueError("its features are not in order")
    starts = np.concatenate([[0], np.cumsum(lengths)])
    where = np.repeat(first, lengths)
    where += of_entry * (np.arange(starts[-1]) - np.repeat(starts[:-1], lengths))
    classes = _bits(content, where, widths.owner)
    return found, starts, classes, _bits(content, where + widths.owner, widths.code)


def _bits(content: npt.NDArray[np.uint8], at: Numbers, n: int) -> Numbers:
    """Return the numbers of n bits, 32 at most, that begin at these bits."""
    first = at >> 3
    found = np.zeros(len(at), np.int64)
    for i in range(5):
        found |= content[first + i].astype(np.int64) << (8 * i)
    return found >> (at & 7) & ((1 << n) - 1)


def _damaged(name: str, why: str) -> KeslerError:
    return KeslerError(f"{name} is damaged ({why}): copy it again, or make it anew")

"""JSON: the objects of an array, or one object after another, each on any number of lines."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from json import JSONDecodeError
from typing import Any, NamedTuple

from kesler.errors import KeslerError
from kesler.readers.features import Names
from kesler.readers.jsonl import JSON, checked_object, example_of, objects
from kesler.readers.lines import CHUNK, Lines, require_text
from kesler.readers.reader import BadRow, Example, Reader
from kesler.readers.records import Fields

FIRST = re.compile(r"\{|\[\s*(?:[\[{\]]|$)")
# Also the separator of JSON text sequences (RFC 7464), marks of byte order and ends of DOS.
BETWEEN = re.compile("[\\s,\x1e\ufeff\x1a\0]*")
NUMERAL = re.compile(r"[-+.0-9eE]*")
LONGEST_TOKEN = 12  # characters of a number, name or escape that is cut by the end of a text
MOST_INDENT = 200


def json_reader(lines: Lines, fields: Fields, names: Names) -> Reader:
    """Read JSON, an array of objects or one object after another, on any number of lines.

    The fields of an object are those of JSON lines.
    """
    records = objects(fields, names)
    example = example_of(fields, records)

    def parse(value: Value) -> Example:
        if isinstance(value.content, BadRow):
            raise value.content
        require_text(value.text)
        return example(checked_object(value.content, value.text))

    values = JsonValues(lines.pieces(), lines.longest)
    return Reader("line", values, parse, records.gather, names.vocabulary)


def begins_json(line: str) -> bool:
    """Return whether a first line is JSON: an object, or an array of objects or arrays.

    Examples
    --------
    >>> begins_json('[{"label": "spam"},'), begins_json("["), begins_json("[a],[b]")
    (True, True, False)
    """
    return FIRST.match(line) is not None


class Value(NamedTuple):
    """A JSON value.

    Parameters
    ----------
    content : Any
        The value, or BadRow if it cannot be read.
    text : str
        What it was read from.
    """

    content: Any
    text: str = ""


class JsonValues:
    r"""The values of a source, each with the number of the line on which it begins.

    Arrays at the outermost level are lists of values. Values may be separated by commas or white
    space alone. After an error, reading continues with the next object that begins a line with the
    same indentation or, if the unreadable one did not begin a line, that follows another object.

    Parameters
    ----------
    pieces : iterator of bytes
        The text in UTF-8.
    longest : int
        The largest number of characters of a value.

    Examples
    --------
    >>> values = JsonValues(iter([b'[{"a": 1},\n', b'{"a"', b': 2}]']), 1 << 20)
    >>> [(line, value.content) for line, value in values]
    [(1, {'a': 1}), (2, {'a': 2})]
    """

    def __init__(self, pieces: Iterator[bytes], longest: int) -> None:
        self._pieces = pieces
        self._longest = longest
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
        self._scan = JSON.raw_decode
        self._text, self._at, self._line = "", 0, 1
        self._counted = 0
        self._has_ended = False

    def __iter__(self) -> Iterator[tuple[int, Value]]:
        in_array = False
        while (first := self._next()) or in_array:
            self._count_lines()
            line = self._line
            if not first:
                yield line, Value(BadRow("the array does not end: the file may be cut short"))
                return
            if (first == "[" and not in_array) or (first == "]" and in_array):
                in_array = first == "["
                self._at += 1
                continue
            try:
                content, end = self._value()
            except BadRow as fault:
                yield line, Value(fault)
                if not self._find_next():
                    return
            else:
                yield line, Value(content, self._text[self._at : end])
                self._at = end

    def _next(self) -> str:
        """Return the next character of a value or an array; nothing at the end."""
        while True:
            found = BETWEEN.match(self._text, self._at)
            assert found is not None
            self._at = found.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_more():
                return ""

    def _value(self) -> tuple[Any, int]:
        """Return the next value and its end in the text; raise BadRow if it is no JSON."""
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except JSONDecodeError as error:
                where = self._line_at(error.pos)
                if not (self._may_be_cut(error) and self._read_more()):
                    raise BadRow(f"it is not JSON ({error.msg} on line {where})") from None
            except (ValueError, RecursionError) as error:
                raise BadRow(f"it is not JSON ({error})") from None
            else:
                if self._is_whole(end) or not self._read_more():
                    return value, end

    def _is_whole(self, end: int) -> bool:
        """Return whether a value ends here, wherever the text goes on."""
        rest = NUMERAL.match(self._text, end)
        return self._text[end - 1] in '}]"' or (rest is not None and rest.end() < len(self._text))

    def _may_be_cut(self, error: JSONDecodeError) -> bool:
        """Return whether the text may end within a value that is right."""
        is_near_end = not self._text[error.pos + LONGEST_TOKEN :].strip()
        return is_near_end or error.msg.startswith("Unterminated string")

    def _find_next(self) -> bool:
        """Go to the next object behind one that cannot be read; return whether there is one."""
        line_start = self._text.rfind("\n", 0, self._at) + 1
        before = self._text[line_start : self._at]
        pattern = rf"\n{before},?\{{" if not before.strip() else r"\}\s*,\s*\{"
        self._at += 1
        while not (found := re.compile(pattern).search(self._text, self._at)):
            self._at = max(self._at, len(self._text) - MOST_INDENT)
            if not self._read_more():
                return False
        self._at = found.end() - 1
        return True

    def _read_more(self) -> bool:
        """Read another piece, or as much as there is of a long value; return whether there is one.

        The values that have been read are forgotten, except for the beginning of their last line.
        """
        begun = len(self._text) - self._at
        if begun > self._longest:
            raise KeslerError(
                f"the value on line {self._line_at(self._at)} has more than {self._longest:,} "
                "bytes: check the file, or allow more bytes of memory with max_line=..."
            )
        pieces, n_read = list[str](), 0
        while not self._has_ended and n_read < (begun if begun > CHUNK else 1):
            piece = next(self._pieces, b"")
            self._has_ended = not piece
            pieces.append(self._decode(piece, self._has_ended))
            n_read += len(pieces[-1])
        kept = max(self._text.rfind("\n", 0, self._at) + 1, self._at - MOST_INDENT, 0)
        self._count_lines()
        self._text = "".join([self._text[kept:], *pieces])
        self._at = self._counted = self._at - kept
        return n_read > 0

    def _line_at(self, position: int) -> int:
        """Return the number of the line at a position behind the last one counted."""
        return self._line + self._text.count("\n", self._counted, position)

    def _count_lines(self) -> None:
        self._line, self._counted = self._line_at(self._at), self._at

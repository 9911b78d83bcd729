"""Bytes to text, whatever charset is declared; no byte is left out."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

LATIN = "utf-8"
"""What is read as UTF-8, and as windows-1252 where it is none: text that declares nothing."""
SUPERSETS = {
    "ascii": LATIN,
    "iso8859-1": LATIN,
    "cp1252": LATIN,
    "iso8859-8": "cp1255",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso2022_jp": "iso2022_jp_ext",
}
"""The charsets that mail declares, and those that it is written in (Python's names)."""
DECORATION = re.compile(
    r"^x-(?!mac)|(?<=^cp)-|^unicode-1-1-|^windows-(?=874|949)|(?<=8859-[68])-[ie]$|\*.*|[^\w*.:-]",
    re.ASCII,
)
"""What Python does not know in a name, as in x-sjis, iso-8859-8-i and "utf-8";."""
SEVEN_BIT = re.compile(r"iso2022|hz$|utf-7")
WIDE = re.compile(r"utf-(?:16|32)")
TWO_BYTES = re.compile(r"gb|big5|cp9[345]|euc|johab")
ESCAPE = re.compile(rb"\x1b\$[@B]")
LAST_OF_TWO_BYTES = "\u07ff"
OTHERWISE = "kesler.windows-1252"
"""The handler of bytes that do not fit a charset."""


def text_of(content: bytes, declared: str | None) -> str:
    r"""Return the text of bytes with a declared charset, which may be wrong, unknown or None.

    It is UTF-8 if it can be, or else in the charset that contains the declared one, such as
    windows-1252 for ISO-8859-1 and GB 18030 for GB 2312. Bytes that fit neither are read as those
    of windows-1252.

    Examples
    --------
    >>> text_of("Grüße".encode(), "us-ascii"), text_of("Grüße".encode("latin-1"), "utf-8")
    ('Grüße', 'Grüße')
    >>> text_of("朱镕基".encode("gbk"), "gb2312"), text_of(b"caf\xe9 \x80", "nonsense")
    ('朱镕基', 'café €')
    """
    charset = _charset(declared or "")
    if WIDE.match(charset) and (b"\0" in content or content.startswith((b"\xff\xfe", b"\xfe\xff"))):
        return content.decode(charset, OTHERWISE)
    if content.isascii():
        if not SEVEN_BIT.match(charset):
            charset = "iso2022_jp_ext" if ESCAPE.search(content) else "ascii"
        return content.decode(charset, OTHERWISE)
    text = _decoded(content, "utf-8")
    if text is not None and TWO_BYTES.match(charset) and max(text) <= LAST_OF_TWO_BYTES:
        # Two bytes can be one Latin, Greek or Cyrillic letter, or a Chinese or Korean one.
        return _decoded(content, charset) or text
    return content.decode(charset, OTHERWISE) if text is None else text


def _decoded(content: bytes, charset: str) -> str | None:
    try:
        return content.decode(charset)
    except UnicodeDecodeError:
        return None


@lru_cache(maxsize=256)
def _charset(declared: str) -> str:
    """Return Python's name of the charset in which text of a declared one is read."""
    name = DECORATION.sub("", declared.lower())
    try:
        b"a\xff".decode(name, OTHERWISE)  # refuses encodings of other things than text
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return LATIN
    return SUPERSETS.get(found, found)


def _of_windows(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    byte = error.object[error.start : error.start + 1]
    # Five bytes have no letter in windows-1252.
    return byte.decode("cp1252", "ignore") or byte.decode("latin-1"), error.start + 1


codecs.register_error(OTHERWISE, _of_windows)

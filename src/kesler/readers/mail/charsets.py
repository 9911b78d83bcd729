"""Bytes to text, whatever charset is declared; no byte is left out."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

from kesler.readers.encodings import found_encoding, wide_encoding

LATIN = "utf-8"
"""What is read as UTF-8, and as windows-1252 where it is none."""
UNKNOWN = ""
"""What is read as UTF-8, and where it is none in the charset that is found: nothing declared."""
SUPERSETS = {
    "ascii": UNKNOWN,
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
OF_WINDOWS = {
    "iso8859-2": "cp1250",
    "iso8859-4": "cp1257",
    "iso8859-5": "cp1251",
    "iso8859-6": "cp1256",
    "iso8859-7": "cp1253",
    "iso8859-13": "cp1257",
    "iso8859-15": "cp1252",
}
"""What text is in that declares one of these and has bytes which are letters in the other alone."""
SURROGATES = re.compile("[\ud800-\udfff]")
SAMPLE = 1 << 14  # bytes in which a charset is found
CONTROLS = re.compile(rb"[\x80-\x9f]")
DECORATION = re.compile(r"^x-(?!mac)|^unicode-1-1-|(?<=8859-[68])-[ie]$|\*.*|[^\w*.:-]", re.ASCII)
"""What Python does not know in a name, as in x-sjis, iso-8859-8-i and "utf-8";."""
CODE_PAGE = re.compile(r"(?:cp|win|windows|dos|ibm|ms)?[-_]?(\d{3,4})")
KOI8 = re.compile(r"koi8[-_]?([ru])")
JAPANESE = {"euc_jp", "iso2022_jp_ext"}
SEVEN_BIT = re.compile(r"iso2022|hz$|utf-7")
WIDE = re.compile(r"utf-(?:16|32)")
TWO_BYTES = re.compile(r"gb|big5|cp9[345]|euc|johab")
ESCAPE = re.compile(rb"\x1b\$[@B]")
LAST_OF_TWO_BYTES = "\u07ff"
OTHERWISE = "kesler.windows-1252"
"""The handler of bytes that do not fit a charset."""


def in_utf8(message: bytes) -> bytes:
    """Return a message that was saved in UTF-16 in UTF-8, and others as they are."""
    wide = wide_encoding(message[:4])
    return message.decode(wide, "replace").encode() if wide else message


def text_of(content: bytes, declared: str | None) -> str:
    r"""Return the text of bytes with a declared charset, which may be wrong, unknown or None.

    It is UTF-8 if it can be, or else in the charset that contains the declared one, such as
    windows-1252 for ISO-8859-1 and GB 18030 for GB 2312, or in the one that is found if none is
    declared. Bytes that fit neither are read as those of windows-1252.

    Examples
    --------
    >>> text_of("Grüße".encode(), "us-ascii"), text_of("Grüße".encode("latin-1"), "utf-8")
    ('Grüße', 'Grüße')
    >>> text_of("朱镕基".encode("gbk"), "gb2312"), text_of(b"caf\xe9 \x80", "nonsense")
    ('朱镕基', 'café €')
    """
    return without_surrogates(_read(content, _charset(declared or "")))


def without_surrogates(text: str) -> str:
    r"""Return a text that can be written: charsets such as UTF-7 can have lone surrogates.

    Examples
    --------
    >>> without_surrogates("a\ud800b")
    'a\ufffdb'
    """
    return text if text.isascii() else SURROGATES.sub("\ufffd", text)


def _read(content: bytes, charset: str) -> str:
    if WIDE.match(charset) and (b"\0" in content or content.startswith((b"\xff\xfe", b"\xfe\xff"))):
        marked = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        return content.decode("utf-16" if marked else charset, OTHERWISE)
    if content.isascii():
        if not SEVEN_BIT.match(charset):
            charset = "iso2022_jp_ext" if ESCAPE.search(content) else "ascii"
        return content.decode(charset, OTHERWISE)
    text = _decoded(content, "utf-8")
    if text is not None and TWO_BYTES.match(charset) and max(text) <= LAST_OF_TWO_BYTES:
        # Two bytes can be one Latin, Greek or Cyrillic letter, or a Chinese or Korean one.
        return _decoded(content, charset) or text
    if text is not None:
        return text
    if charset in OF_WINDOWS and CONTROLS.search(content):
        charset = OF_WINDOWS[charset]
    return content.decode(charset or found_encoding(content[:SAMPLE]), OTHERWISE)


def _decoded(content: bytes, charset: str) -> str | None:
    try:
        return content.decode(charset)
    except UnicodeDecodeError:
        return None


@lru_cache(maxsize=256)
def _charset(declared: str) -> str:
    """Return Python's name of the charset in which text of a declared one is read."""
    name = DECORATION.sub("", declared.lower())
    found = _known(name) or _known(_code_page(name)) or _label_of_web(name)
    return SUPERSETS.get(found, found)


def _known(name: str) -> str:
    """Return Python's name of a charset; an empty one if it knows none, or no text."""
    try:
        b"a\xff".decode(name, OTHERWISE)  # refuses encodings of other things than text
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""


def _code_page(name: str) -> str:
    page, koi = CODE_PAGE.fullmatch(name), KOI8.fullmatch(name)
    return f"cp{page[1]}" if page else f"koi8-{koi[1]}" if koi else ""


def _label_of_web(name: str) -> str:
    """Return Python's name of a charset by the labels that browsers know."""
    from webencodings import lookup

    found = lookup(name)
    return _known(found.codec_info.name) if found else ""


def _of_windows(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    pair = bytes(byte & 0x7F for byte in error.object[error.start : error.start + 2])
    if error.encoding in JAPANESE and (sign := _of_nec(pair)):
        return sign, error.start + 2
    byte = error.object[error.start : error.start + 1]
    # Five bytes have no letter in windows-1252.
    return byte.decode("cp1252", "ignore") or byte.decode("latin-1"), error.start + 1


def _of_nec(pair: bytes) -> str:
    """Return the sign at a row and a column of JIS that Microsoft took over from NEC, such as ①."""
    if len(pair) < 2 or not all(0x21 <= byte <= 0x7E for byte in pair):
        return ""
    row, column = pair
    first = (row + 1) // 2 + (0x70 if row < 0x5F else 0xB0)
    second = column + (0x7E if row % 2 == 0 else 0x1F if column < 0x60 else 0x20)
    return bytes((first, second)).decode("cp932", "ignore")


codecs.register_error(OTHERWISE, _of_windows)

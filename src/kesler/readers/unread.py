"""Files that hold no rows in a format that is read: what they are, and what can be done."""

from __future__ import annotations

import re

from kesler.errors import KeslerError

UNREAD: dict[str, tuple[bytes, str]] = {
    "an array of NumPy without labels": (
        rb"\x93NUMPY",
        "save it with its labels, numpy.savez('rows.npz', X=X, y=y)",
    ),
    "an archive of tar": (rb".{257}ustar", "unpack it with tar xf, and name one of its files"),
    "a page of HTML or XML, whatever its name says": (
        rb"(?i:(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|head|meta|body|table|\?xml)\b)",
        "open it in Excel or LibreOffice and save it as .xlsx or CSV, or write it with pandas, "
        "pandas.read_html(...)[0].to_csv('rows.csv', index=False)",
    ),
    "a document of PDF": (rb"%PDF-", "export its table as CSV"),
    "a file of Arrow": (
        rb"ARROW1\0\0|FEA1",
        "write it as Parquet, pandas.read_feather(...).to_parquet",
    ),
    "a file of HDF5": (rb"\x89HDF\r\n", "write its table as Parquet or CSV"),
    "a file of Avro": (rb"Obj\x01", "write it as Parquet or JSON lines"),
    "a file of ORC": (rb"ORC[^\t\r -~]", "write it as Parquet"),  # "ORCID" may begin a table
    "a pickle of Python, which can run any code": (
        rb"\x80[\x02-\x05][\x00-\x1f\x28-\x7f\x80-\xff]",
        "write its table as Parquet or CSV",
    ),
}
"""What files can be: the pattern of their first bytes, and what can be done."""

ENOUGH = 1 << 10
"""The bytes of a file that show what it is, with white space before a page."""

_PATTERNS = {
    what: (re.compile(pattern, re.DOTALL), remedy) for what, (pattern, remedy) in UNREAD.items()
}


def require_no_other(source: str, start: bytes) -> None:
    """Raise KeslerError if a source begins as a file of another kind does.

    Examples
    --------
    >>> require_no_other("rows.csv", b"kind,size")
    >>> require_no_other("paper", b"%PDF-1.4")
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: paper is a document of PDF: export its table as CSV
    """
    for what, (pattern, remedy) in _PATTERNS.items():
        if pattern.match(start):
            raise KeslerError(f"{source} is {what}: {remedy}")

"""Labels and numbers: how a token of a text format is understood."""

from __future__ import annotations

import math
from typing import Any

from kesler.readers.faults import BadRow


def parse_number(token: str) -> float | None:
    """Read a token as a number, NaN and infinity included; None if it isn't one.

    Stricter than ``float``, which takes ``1_000`` and the digits of every script for numbers.

    Examples
    --------
    >>> parse_number("-1e3"), parse_number("1_000")
    (-1000.0, None)
    """
    if "_" in token or not token.isascii():
        return None
    try:
        return float(token)
    except ValueError:
        return None


def parse_label(token: str) -> str | int | float:
    """Read the label in a format of numbers: an integer, another finite number, or else the token.

    Parameters
    ----------
    token : str
        As it is written, white space around it allowed.

    Examples
    --------
    >>> parse_label("+1"), parse_label("2.5"), parse_label(" spam "), parse_label("1_0")
    (1, 2.5, 'spam', '1_0')
    """
    token = token.strip()
    number = parse_number(token)
    if number is None or not math.isfinite(number):
        return token
    try:
        return int(token)
    except ValueError:
        return number


def require_label(label: Any, required: bool) -> None:
    """Raise BadRow if a label can't name a class, or is missing although required."""
    if label is None and required:
        raise BadRow("there is no label (only prediction can do without)")
    if not isinstance(label, str | int | float | None):
        raise BadRow(f"the label is a {type(label).__name__}, not a string or a number")
    if isinstance(label, float) and not math.isfinite(label):
        raise BadRow(f"the label is {label}, which names no class")

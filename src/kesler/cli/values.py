"""What options accept as their values; the errors are those of the parser."""

from __future__ import annotations

from argparse import ArgumentTypeError


def share_up_to_1(token: str) -> float:
    """Return a share above 0, up to 1."""
    return 1.0 if token in ("1", "1.0") else share_of_rows(token)


def share_of_rows(token: str) -> float:
    """Return a share between 0 and 1."""
    try:
        share = float(token)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise ArgumentTypeError(f"{token!r} is not a share between 0 and 1, such as 0.2")
    return share


def coverage(token: str) -> float:
    """Return a share of rows that prediction sets can hold."""
    from kesler.state.uncertainty import COVERAGES

    share = share_of_rows(token)
    if share < COVERAGES[0]:
        raise ArgumentTypeError(f"{token!r} is below {COVERAGES[0]}, the smallest that is tracked")
    return share


def separator(token: str) -> str:
    """Return what separates the names of a path; raise if it is empty."""
    if not token:
        raise ArgumentTypeError("it is empty: give what separates the names, such as ';'")
    return token


def character(token: str) -> str:
    """Return one character, or nothing, given it or its name."""
    from kesler.readers.dialects import NAMED

    found = NAMED.get(token.lower(), token)
    if len(found) > 1:
        raise ArgumentTypeError(f"{token!r} is neither one character nor tab, space or none")
    return found


def positive(token: str) -> int:
    """Return an integer of at least 1."""
    return _at_least(1, token)


def seed(token: str) -> int:
    """Return an integer of at least 0."""
    return _at_least(0, token)


def _at_least(least: int, token: str) -> int:
    if not token.isdecimal() or int(token) < least:
        raise ArgumentTypeError(f"{token!r} is not an integer of at least {least}")
    return int(token)

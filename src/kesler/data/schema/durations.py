"""Times of day and durations as people write them, in seconds."""

from __future__ import annotations

import re

CLOCK = ":"  # the unit of columns of times of day and durations
_CLOCK = re.compile(
    r"(?P<sign>-?)(?:(?P<days>\d{1,6})\s*(?:days?|d|Tage?|T)\.?,?\s+)?"
    r"(?P<hours>\d{1,4})(?::|h)(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d(?:[.,]\d+)?))?"
    r"(?:\s*(?P<half>[AaPp])\.?\s?[Mm]\.?)?(?:\s?(?:Uhr|h))?(?:\s?(?:Z|[+-]\d\d:?\d\d))?"
)
_MINUTES = re.compile(r"(?P<sign>-?)(?P<minutes>\d{1,4}):(?P<seconds>[0-5]\d[.,]\d+)")
_UNITS = {
    "days": (86_400.0, r"d|days?|Tage?|T"),
    "hours": (3600.0, r"h|hrs?|hours?|Std|Stunden?"),
    "minutes": (60.0, r"m|mins?|minutes?|Min|Minuten?"),
    "seconds": (1.0, r"s|secs?|seconds?|Sek|Sekunden?"),
}
"""The seconds in the units of durations, and what these are called."""
_NUMBER = r"\d+(?:[.,]\d+)?"
_PARTS = re.compile(
    r"(?P<sign>-?)"
    + "".join(
        rf"(?:(?P<{name}>{_NUMBER})\s*(?:{words})(?![^\W\d_])\.?,?\s*)?"
        for name, (_, words) in _UNITS.items()
    )
)
_ISO = re.compile(
    rf"(?P<sign>-?)P(?:(?P<days>{_NUMBER})D)?(?:T(?:(?P<hours>{_NUMBER})H)?"
    rf"(?:(?P<minutes>{_NUMBER})M)?(?:(?P<seconds>{_NUMBER})S)?)?"
)
_FORMS = (_CLOCK, _MINUTES, _ISO, _PARTS)


def seconds_of(text: str) -> float | None:
    """Return the seconds of a time of day or a duration, None if the text states none.

    Examples
    --------
    >>> [seconds_of(text) for text in ("13:45", "1:45 PM", "13h45", "13:45:00+01:00")]
    [49500.0, 49500.0, 49500.0, 49500.0]
    >>> [seconds_of(text) for text in ("PT5M3S", "5 Min. 3 Sek.", "5m3s", "05:03.0", "1 day, 0:00")]
    [303.0, 303.0, 303.0, 303.0, 86400.0]
    """
    found = next(filter(None, (form.fullmatch(text) for form in _FORMS)), None)
    parts = {} if found is None else {k: v for k, v in found.groupdict().items() if v}
    half = parts.pop("half", "").lower()
    is_negative = parts.pop("sign", "") == "-"
    if not parts:
        return None
    sizes = {name: float(part.replace(",", ".")) for name, part in parts.items()}
    if half:
        if is_negative or not 1 <= sizes["hours"] <= 12:
            return None
        sizes["hours"] = sizes["hours"] % 12 + 12 * (half == "p")
    total = sum(_UNITS[name][0] * size for name, size in sizes.items())
    return -total if is_negative else total


def is_clear_duration(text: str) -> bool:
    """Return whether a text can only be a time or a duration, unlike "5 h", a number with a unit.

    Examples
    --------
    >>> [is_clear_duration(text) for text in ("5:03", "5h 3m", "PT5H", "5 h", "5")]
    [True, True, True, False, False]
    """
    parts = _PARTS.fullmatch(text)
    if parts is not None:
        return sum(parts[name] is not None for name in _UNITS) > 1
    return seconds_of(text) is not None

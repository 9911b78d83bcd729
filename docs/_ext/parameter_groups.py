"""The parameters of an estimator under a heading for each group of the table of settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, get_args

from kesler.settings.codec import ESTIMATORS
from kesler.settings.table import SETTINGS, Group

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HEADING = ":Parameters:"
PARAMETER = re.compile(r"    \*\*(\w+)(?:, \w+)*\*\*")
"""The first line of one or more parameters, as numpydoc writes it."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Change docstrings after numpydoc has read their sections."""
    app.connect("autodoc-process-docstring", process, priority=900)
    return {"parallel_read_safe": True}


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Group the parameters of the online estimators."""
    if what == "class" and obj.__module__.startswith("kesler.") and obj.__name__ in ESTIMATORS:
        lines[:] = grouped(lines)


def grouped(lines: list[str]) -> list[str]:
    """Return a docstring with its parameters in groups; those that are no settings come first."""
    start = lines.index(HEADING)
    after = range(start + 1, len(lines))
    end = next((i for i in after if lines[i] and not lines[i][0].isspace()), len(lines))
    found: dict[str | None, list[str]] = {None: [], **{each: [] for each in get_args(Group)}}
    group = None
    for line in lines[start + 1 : end]:
        named = PARAMETER.match(line)
        if named is not None:
            group = SETTINGS[named[1]].group if named[1] in SETTINGS else None
        found[group].append(line)
    titled = [
        line
        for group, own in found.items()
        if any(own)
        for line in (HEADING if group is None else f":Parameters ({group}):", "", *own, "")
    ]
    return [*lines[:start], *titled, *lines[end:]]

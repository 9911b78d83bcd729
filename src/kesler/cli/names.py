"""Help texts for the names in the registries of parts and readers."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kesler.hypotheses import NAMED
from kesler.kernels import KERNELS
from kesler.links import LINKS
from kesler.maps import MAPS
from kesler.preconditioners import PRECONDITIONERS
from kesler.preprocessing import PREPROCESSINGS
from kesler.readers.opening import READERS
from kesler.settings.table import SETTINGS, Setting, name_or_none
from kesler.updates import RULES

WIDTH = 80

PARTS: dict[str, Mapping[str, Callable[..., Any]]] = {
    SETTINGS[name].option: registry
    for name, registry in (
        ("update", RULES),
        ("link", LINKS),
        ("preconditioner", PRECONDITIONERS),
        ("feature_map", MAPS),
        ("kernel", KERNELS),
        ("preprocessing", PREPROCESSINGS),
    )
}
"""The registries of the options that name a part."""

HYPOTHESES = tuple(NAMED)


def listed(names: Iterable[str], last: str = "or") -> str:
    """Return names as an enumeration in a sentence.

    Examples
    --------
    >>> listed(["multi", "single", "hybrid"])
    'multi, single or hybrid'
    """
    *others, end = names
    return f"{', '.join(others)} {last} {end}" if others else end


def parts() -> str:
    """Return a table of the names of each registry, with the first lines of docstrings."""
    blocks = [f"{option}:\n{table(_by_class(names))}" for option, names in PARTS.items()]
    return "\n\n".join(blocks)


def formats() -> str:
    """Return a table of the input formats, with their contents and suffixes."""
    rows = {
        name: f"{format.summary} {' '.join(format.suffixes)}" for name, format in READERS.items()
    }
    with_fields = listed([name for name, each in READERS.items() if each.has_fields], "and")
    sniffed = listed([name for name, each in READERS.items() if each.begins is not None], "and")
    certain = [name for name, each in READERS.items() if each.begins_bytes or each.holds]
    note = (
        f"{listed(certain, 'and').capitalize()} are recognised by their content, other formats by "
        "the suffix, before that of a compression. Without a suffix, such as on standard input, "
        f"{sniffed} are recognised by the first line. --label and --text apply to {with_fields}."
    )
    return f"formats:\n{table(rows)}\n{textwrap.fill(note, WIDTH)}"


def help_of(setting: Setting) -> str:
    """Return the help of the option of a setting."""
    choices = [] if setting.choices is None else list(setting.choices())
    if setting.read is name_or_none:
        choices.append("none")
    named = f": {listed(choices)}" if choices else ""
    default = "none" if setting.default is None else setting.default
    return f"{setting.summary}{named}" + ("" if default is False else f" (default: {default})")


def table(rows: Mapping[str, str]) -> str:
    """Return names and their descriptions in two columns."""
    width = 2 + max(map(len, rows))
    lines = [
        textwrap.fill(
            text, WIDTH, initial_indent=f"  {name:{width}}", subsequent_indent=" " * (width + 2)
        )
        for name, text in rows.items()
    ]
    return "\n".join(lines)


def summary(part: Any) -> str:
    """Return the first line of the docstring of a class."""
    return (inspect.getdoc(part) or "").partition("\n")[0]


def _by_class(names: Mapping[str, Callable[..., Any]]) -> dict[str, str]:
    """Return descriptions of names, with names of one class or function in one row."""
    classes: dict[Any, list[str]] = {}
    for name, make in names.items():
        part = make()
        if part is not None:
            made_of = getattr(part, "function", None) or type(part)
            classes.setdefault(made_of, []).append(name)
    return {", ".join(together): summary(each) for each, together in classes.items()}

"""The kinds of columns: the options that name them, and how messages say these."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from ast import literal_eval
from collections.abc import Mapping
from typing import Any

from kesler.data.schema.dates import NAMED
from kesler.data.schema.kinds import WITH_OPTION
from kesler.data.schema.languages import is_language
from kesler.data.schema.schema import OTHERS, TEXT_FEATURES
from kesler.errors import KeslerError

_COLUMNS = re.compile(r"columns=(\{(?:[^{}]|\{[^{}]*\})*\})")


def columns(options: Namespace, *, is_table: bool = False) -> dict[str, Any] | None:
    """Return the kinds of the columns that are given on the command line; None if none are.

    If only texts are given, all other columns of a table are ignored.
    """
    given = [options.table, options.decimal, *(getattr(options, kind) for kind in WITH_OPTION)]
    if not any(given) and not (options.text and is_table):
        return None
    kinds: dict[str, Any] = {}
    for kind in ("text", *WITH_OPTION):
        parted = _with_k if kind == "sequence" else _parted
        named = map(parted, _listed(getattr(options, kind) or ""))
        for name, options_of_name in texts(options) if kind == "text" else named:
            known = kinds.setdefault(name, {"kind": kind, **options_of_name})["kind"]
            if known != kind:
                raise KeslerError(f"column {name!r} is given as --{known} and as --{kind}")
    found = {name: each if len(each) > 1 else each["kind"] for name, each in kinds.items()}
    if not any(given):
        return {**found, OTHERS: "ignore"}
    return {**found, OTHERS: {"decimal": options.decimal}} if options.decimal else found


def _listed(names: str) -> list[str]:
    """Return names separated by commas, which formats of dates may contain.

    Examples
    --------
    >>> _listed("a, b:%b %d, %Y,c")
    ['a', 'b:%b %d, %Y', 'c']
    """
    found: list[str] = []
    for piece in names.split(","):
        if found and ":%" in found[-1] and "%" in piece and ":%" not in piece:
            found[-1] += f",{piece}"
        else:
            found.append(piece)
    return [name.strip() for name in found if name.strip()]


def _parted(named: str) -> tuple[str, dict[str, str]]:
    """Return the name of a column, and the format and the language that follow it.

    Examples
    --------
    >>> _parted("when:%d. %B %Y:de"), _parted("at:epoch"), _parted("a:b")
    (('when', {'format': '%d. %B %Y', 'language': 'de'}), ('at', {'format': 'epoch'}), ('a:b', {}))
    """
    name, colon, form = named.partition(":%")
    if colon:
        form, _, language = f"%{form}".rpartition(":")
        has_language = form and is_language(language)
        return name, (
            {"format": form, "language": language}
            if has_language
            else {"format": named.removeprefix(f"{name}:")}
        )
    name, _, form = named.rpartition(":")
    return (name, {"format": form}) if name and form in NAMED else (named, {})


def _with_k(named: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a sequence, and the length of its runs and the strands that follow it.

    Examples
    --------
    >>> _with_k("dna:7"), _with_k("dna:7:both")
    (('dna', {'k': 7}), ('dna', {'k': 7, 'reverse_complement': True}))
    """
    found = re.fullmatch(r"(.+?)(?::(\d{1,3}))?(:both)?", named)
    name, k, both = found.groups() if found else (named, None, None)
    options = {"k": int(k)} if k else {}
    return name, {**options, **({"reverse_complement": True} if both else {})}


def texts(options: Namespace) -> list[tuple[str, dict[str, str]]]:
    """Return the columns of texts that are given, each with the features that are chosen for it."""
    return [*map(_with_features, _listed(options.text or ""))]


def _with_features(named: str) -> tuple[str, dict[str, str]]:
    """Return the name of a text, and the features that follow it.

    Examples
    --------
    >>> _with_features("body:characters"), _with_features("a:b")
    (('body', {'features': 'characters'}), ('a:b', {}))
    """
    name, _, features = named.rpartition(":")
    return (name, {"features": features}) if name and features in TEXT_FEATURES else (named, {})


def spoken_kinds(sentence: str) -> str:
    """Return a message in which kinds of columns are options.

    Examples
    --------
    >>> spoken_kinds("name it: columns={'zip': 'category'}")
    'name it: --category zip'
    """
    return _COLUMNS.sub(_spoken, sentence)


def _spoken(match: re.Match[str]) -> str:
    try:
        given = literal_eval(match[1])
    except (SyntaxError, ValueError):
        return match[0]
    return " ".join(_option(name, each) for name, each in given.items()) or "--table"


def _option(name: str, given: Any) -> str:
    """Return the option for a column: its kind, or a mapping of this and its options."""
    named: Mapping[str, Any] = given if isinstance(given, Mapping) else {"kind": given}
    form = [named[option] for option in ("format", "language") if option in named]
    kind = f"--{named['kind']} {shlex.quote(':'.join([name, *form]))}" if "kind" in named else ""
    decimal = f"--decimal {named['decimal']}" if "decimal" in named else ""
    return " ".join(filter(None, (kind, decimal)))

"""Outputs: the files that a command writes."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kesler.errors import KeslerError
from kesler.progressive import Comparison, Line
from kesler.readers import Stream

if TYPE_CHECKING:
    from kesler.bounds import MistakeBound


def require_writable(path: str | None) -> None:
    """Raise a sentence now if a file cannot be written there later; None is no file."""
    if path is None:
        return
    folder = Path(path).parent
    if Path(path).is_dir() or not os.access(folder, os.W_OK):
        raise KeslerError(f"{path} cannot be written: name a file in a folder that can")


def require_distinct(options: Namespace, *names: str) -> None:
    """Raise a sentence if two of INPUT and the files to be written are one."""
    taken: dict[Path, str] = {}
    if options.input != "-":
        taken[Path(options.input).resolve()] = "INPUT"
    for name in names:
        path = getattr(options, name)
        if path is None:
            continue
        place = Path(path).resolve()
        if place in taken:
            raise KeslerError(f"--{name} {path} is {taken[place]}, too: give each its own file")
        taken[place] = f"--{name}"


def account(
    stream: Stream,
    comparison: Comparison,
    lines: list[Line],
    bounds: Mapping[str, MistakeBound | KeslerError],
) -> dict[str, Any]:
    """Return a run as JSON can hold it: the input, the table, and the record of each method."""
    methods = {name: each.to_json() for name, each in comparison.results().items()}
    for name, bound in bounds.items():
        methods[name]["bound"] = None if isinstance(bound, KeslerError) else bound.to_json()
    return {
        "input": stream.source,
        "rows": stream.n_rows,
        "bad_rows": stream.n_bad,
        "features": comparison.n_features,
        "classes": comparison.n_classes,
        "table": [line.to_json() for line in lines],
        "methods": methods,
    }


def write_json(path: str, contents: dict[str, Any]) -> None:
    """Write an object as indented JSON."""
    Path(path).write_text(json.dumps(contents, indent=1, ensure_ascii=False) + "\n", "utf-8")

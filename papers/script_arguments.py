"""The arguments of the scripts that write results."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from pathlib import Path


def script_parser(about: str | None, file: str) -> argparse.ArgumentParser:
    """Return a parser with the option that all scripts have, the folder of the results.

    Parameters
    ----------
    about : str
        The docstring of the script, whose first line is in the help.
    file : str
        The path of the script: results are beside it in `results` if no other folder is given.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    folder = Path(file).parent / "results"
    shown = "/".join(folder.parts[-2:])
    parser.add_argument(
        "--results", type=Path, default=folder, help=f"folder of the results (default {shown})"
    )
    return parser


def chosen(parser: argparse.ArgumentParser, names: list[str], known: Iterable[str]) -> list[str]:
    """Return the names that were given, or all if none was; end the script if one is unknown."""
    listed = [*known]
    for name in names:
        if name not in listed:
            parser.error(f"there is no {name!r}: choose from {', '.join(listed)}")
    return names or listed


def folder_of(
    parser: argparse.ArgumentParser, options: argparse.Namespace, *, is_whole: bool
) -> Path:
    """Return the folder of the results: without a given one, a temporary one of runs in part."""
    if is_whole or options.results != parser.get_default("results"):
        return Path(options.results)
    return Path(tempfile.mkdtemp(prefix="kesler-results-"))

"""The page of the command line: the help texts of its parser."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from public_names import kept

from kesler.cli.arguments import parser

if TYPE_CHECKING:
    from sphinx.application import Sphinx

INTRODUCTION = """\
# Command line

`kesler` has one command for each task. Each reads a file, a folder of mail, standard input (`-`) or
a bundled data set (`dataset:letter`). What follows is what `kesler COMMAND --help` prints.
"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the page before Sphinx looks for it."""
    app.connect(
        "config-inited",
        lambda app, config: kept(Path(app.srcdir) / "reference/command-line.md", page()),
    )
    return {"parallel_read_safe": True}


def page() -> str:
    """Return the help of every command."""
    os.environ["COLUMNS"] = "100"
    root = parser()
    parts = [INTRODUCTION, block(root.format_help())]
    for name, command in commands(root).items():
        parts += [f"## kesler {name}", block(printed(command))]
    return "\n\n".join(parts) + "\n"


def commands(root: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the commands by name."""
    actions = [a for a in root._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(actions[0].choices)


def printed(command: argparse.ArgumentParser) -> str:
    """Return what ``--help`` prints; commands add their arguments only then."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        command.parse_args(["--help"])
    return out.getvalue()


def block(text: str) -> str:
    """Return a block of text as printed."""
    return f"```text\n{text.rstrip()}\n```"

"""The option --json: a file of what a command has found, or standard output."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

STANDARD_OUTPUT = "-"


@contextmanager
def json_alone(options: Namespace) -> Iterator[None]:
    """Print nothing but JSON while a command runs whose option --json is standard output."""
    options.printed = sys.stdout
    if getattr(options, "json", None) != STANDARD_OUTPUT:
        yield
        return
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        yield


def write_json(options: Namespace, contents: Any) -> None:
    """Write an object or a list as indented JSON to the file of --json, or print it."""
    text = json.dumps(contents, indent=1, ensure_ascii=False) + "\n"
    if options.json == STANDARD_OUTPUT:
        options.printed.write(text)
    else:
        Path(options.json).write_text(text, "utf-8")

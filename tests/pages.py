"""Run every code block of the README and of the documentation as printed.

python tests/pages.py                      # all pages
python tests/pages.py docs/guides/drift.md

The blocks of a page run in order, in one empty folder and without KESLER_DATA:

- ``python`` blocks share one namespace. What they print is the ``text`` block that follows at once.
- ``c`` blocks are written to the file that a comment in their first line names.
- ``console`` blocks hold lines of ``$ command``, each followed by what it prints.
- ``sh`` blocks are not run: they need a network, or are what this script is part of.

``...`` stands for any text in what is printed.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[1]
FENCE = re.compile(
    r"^(?P<fence>```+)(?P<language>[\w{}-]*)[^\n]*\n(?P<text>.*?)^(?P=fence)[ \t]*$", re.S | re.M
)
NAMED = re.compile(r"/\* (\w+\.c) \*/\n")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    text: str
    line: int
    output: str = ""
    """What a ``python`` block prints: the ``text`` block right behind it."""


def pages() -> list[Path]:
    """Return the README and the pages of the documentation that are not made by its build."""
    built = ("docs/examples", "docs/_build", "docs/results/benchmarks", "docs/results/papers")
    found = (ROOT / "docs").rglob("*.md")
    return [ROOT / "README.md", *sorted(p for p in found if not is_below(p, built))]


def is_below(page: Path, folders: tuple[str, ...]) -> bool:
    """Return whether a page is in one of the folders of the repository."""
    return any(ROOT / folder in page.parents for folder in folders)


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, with what they print."""
    text = page.read_text("utf-8")
    matches = list(FENCE.finditer(text))
    found = []
    for match, after in zip_longest(matches, matches[1:]):
        line = text.count("\n", 0, match.start()) + 1
        follows = (
            after and after["language"] == "text" and not text[match.end() : after.start()].strip()
        )
        output = after["text"] if after and follows else ""
        found.append(Block(match["language"], match["text"], line, output))
    return found


def faults(page: Path) -> Iterator[str]:
    """Run the blocks of a page in an empty folder, and yield what differs from the print."""
    space: dict[str, object] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in blocks(page):
            if block.language == "python":
                yield from _python_faults(page, block, space)
            elif block.language == "console":
                yield from _console_faults(page, block)
            elif block.language == "c":
                yield from _c_faults(page, block)


def _python_faults(page: Path, block: Block, space: dict[str, object]) -> Iterator[str]:
    out = io.StringIO()
    where = f"{page.relative_to(ROOT)}:{block.line}"
    try:
        with contextlib.redirect_stdout(out):
            exec(compile("\n" * block.line + block.text, str(page), "exec"), space)
    except Exception:
        yield f"{where}: the block fails\n{traceback.format_exc(limit=-3)}"
        return
    yield from _differences(where, block.output, out.getvalue())


def _console_faults(page: Path, block: Block) -> Iterator[str]:
    for command, expected in commands(block.text):
        result = subprocess.run(
            ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, text=True, env=_environment(), timeout=300,
        )  # fmt: skip
        where = f"{page.relative_to(ROOT)}:{block.line}: $ {command}"
        yield from _differences(where, expected, result.stdout)


def _c_faults(page: Path, block: Block) -> Iterator[str]:
    where = f"{page.relative_to(ROOT)}:{block.line}"
    if named := NAMED.match(block.text):
        Path(named[1]).write_text(block.text)
    else:
        yield f"{where}: name the file in the first line, /* main.c */"


def commands(text: str) -> list[tuple[str, str]]:
    """Return the commands of a ``console`` block, each with what it prints."""
    parts = re.split(r"^\$ ", text, flags=re.M)[1:]
    return [_command(part) for part in parts]


def _command(part: str) -> tuple[str, str]:
    lines = part.splitlines(keepends=True)
    n = 1
    while lines[n - 1].rstrip().endswith("\\"):
        n += 1
    return "".join(lines[:n]).strip(), "".join(lines[n:])


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    kept = {key: value for key, value in os.environ.items() if key != "KESLER_DATA"}
    return kept | {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}


def _differences(where: str, expected: str, printed: str) -> Iterator[str]:
    if not doctest.OutputChecker().check_output(
        f"\n{expected.strip()}\n", f"\n{printed.strip()}\n", FLAGS
    ):
        yield f"{where}: prints something else\n--- the page\n{expected}--- printed\n{printed}"


def main(names: list[str]) -> int:
    """Run the pages named, or all; print their faults, and return how many pages have some."""
    warnings.simplefilter("error")
    os.environ.pop("KESLER_DATA", None)
    bad = 0
    for page in [Path(name).resolve() for name in names] or pages():
        start = time.perf_counter()
        found = list(faults(page))
        bad += bool(found)
        print(f"{page.relative_to(ROOT)}: {len(found)} faults, {time.perf_counter() - start:.1f} s")
        print("\n".join(found), end="\n" if found else "", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Mutations of src, drawn at random: does any test notice?

    python tests/mutations.py record --workers 2    # once: which tests run which functions
    python tests/mutations.py draw                  # the mutations, without running anything
    python tests/mutations.py run --workers 2       # tries what has not been tried yet
    python tests/mutations.py run --retry           # tries again what no test caught
    python tests/mutations.py run -n 200 --in src/kesler/durable src/kesler/service
    python tests/mutations.py page FILE             # writes the table

The commit is the seed, or `--seed`. Each mutation is tried in a copy of the working tree: first
the tests that run the mutated function, with NUMBA_DISABLE_JIT=1 so that nothing is compiled,
then all tests as they are, until one fails that passes without the mutation. Results are kept in
the folder `--work`, one line of JSON a mutation, so that a run that was stopped goes on.

What is known of survivors stands in tests/mutations.toml, under the key in the table:

    [0123456789]
    equivalent = true
    why = "Both orders of the sum are exact in integers."
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import tempfile
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from mutation_runs import Copy, Record, read_lines, stop, test_files
from mutation_sites import Mutation, draw

ROOT = Path(__file__).resolve().parent.parent
EXPLAINED = Path(__file__).with_suffix(".toml")
WORK = Path(tempfile.gettempdir()) / "kesler-mutations"


def commit() -> str:
    """Return the commit that is checked out."""
    settings = ["git", "rev-parse", "HEAD"]
    return subprocess.run(
        settings, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def results_file(work: Path, seed: str) -> Path:
    return work / f"results-{seed[:12]}.jsonl"


def results(file: Path) -> dict[str, dict[str, Any]]:
    """Return the last result of each mutation, by its key."""
    return {line["key"]: line for line in read_lines(file)}


def untried(mutations: list[Mutation], file: Path, retry: bool) -> list[Mutation]:
    """Return the mutations that are still to be tried: not yet tried or, again, not caught."""
    known = results(file)
    return [
        each
        for each in mutations
        if each.key not in known or (retry and known[each.key]["outcome"] != "caught")
    ]


# ---- commands ------------------------------------------------------------------------------------


def record_tests(settings: argparse.Namespace) -> None:
    """Note which tests run which functions, for the files of tests not noted yet."""
    folder = settings.work / "record"
    folder.mkdir(parents=True, exist_ok=True)

    def note(copy: Copy, file: str) -> None:
        noted = copy.record(file)
        (folder / f"{Path(file).stem}.json").write_text(json.dumps(noted))
        print(f"{file}: {len(noted)} tests", flush=True)

    files = settings.files or test_files(ROOT)
    in_copies(settings, note, [f for f in files if not (folder / f"{Path(f).stem}.json").exists()])


def run(settings: argparse.Namespace) -> None:
    """Try the mutations that have not been tried, and report the results."""
    settings.work.mkdir(parents=True, exist_ok=True)
    mutations = draw(ROOT, settings.number, settings.seed, settings.folders)
    file = results_file(settings.work, settings.seed)
    record = Record.read(settings.work / "record")

    def attempt(copy: Copy, mutation: Mutation) -> None:
        result = mutation.as_dict() | copy.try_out(mutation, record, settings.minutes)
        with open(file, "a") as lines:
            lines.write(json.dumps(result) + "\n")
        print(row(result, {}), flush=True)

    in_copies(settings, attempt, untried(mutations, file, settings.retry))
    print(summary(mutations, results(file), explanations()))


def in_copies(settings: argparse.Namespace, work: Any, items: list[Any]) -> None:
    """Call ``work(copy, item)`` for each item, in the given number of copies of the tree."""
    copies: SimpleQueue[Copy] = SimpleQueue()
    for i in range(min(settings.workers, len(items))):
        copies.put(Copy(ROOT, settings.work / f"copy{i}"))

    def one(item: Any) -> None:
        copy = copies.get()
        try:
            work(copy, item)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(settings.workers) as pool:
        list(pool.map(one, items))


def show_drawn(settings: argparse.Namespace) -> None:
    """Print the mutations."""
    for each in draw(ROOT, settings.number, settings.seed, settings.folders):
        print(f"{each.key} {each.where} {each.kind}: {short(each.before)} -> {short(each.after)}")


def write_page(settings: argparse.Namespace) -> None:
    """Write what became of each mutation as a page."""
    mutations = draw(ROOT, settings.number, settings.seed, settings.folders)
    known, explained = results(results_file(settings.work, settings.seed)), explanations()
    lines = [
        "# Mutations",
        "",
        f"{datetime.now(UTC):%d %B %Y}, commit and seed {settings.seed[:12]}: "
        "`tests/mutations.py`.",
        summary(mutations, known, explained),
        "",
        "| key | where | kind | before | after | outcome | by |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(row(known[each.key], explained) for each in mutations if each.key in known),
    ]
    settings.file.write_text("\n".join(lines) + "\n")


# ---- words ---------------------------------------------------------------------------------------


def explanations() -> dict[str, dict[str, Any]]:
    """Return what is known of survivors, by their keys."""
    return tomllib.loads(EXPLAINED.read_text("utf-8")) if EXPLAINED.exists() else {}


def outcome(result: dict[str, Any], explained: dict[str, dict[str, Any]]) -> str:
    """Return the outcome: a survivor may be explained as equivalent."""
    if result["outcome"] == "caught":
        return "caught"
    known = explained.get(result["key"], {})
    return "equivalent" if known.get("equivalent") else result["outcome"]


def row(result: dict[str, Any], explained: dict[str, dict[str, Any]]) -> str:
    """Return a result as a row of the table."""
    became = outcome(result, explained)
    by = result["by"] if became == "caught" else explained.get(result["key"], {}).get("why", "")
    cells = [
        result["key"],
        f"{result['path']}:{result['line']}",
        result["kind"],
        f"`{short(result['before'])}`",
        f"`{short(result['after'])}`",
        became,
        f"{by} ({result['seconds']:.0f} s)",
    ]
    return "| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |"


def short(text: str, most: int = 60) -> str:
    """Return text on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def summary(
    mutations: list[Mutation],
    known: dict[str, dict[str, Any]],
    explained: dict[str, dict[str, Any]],
) -> str:
    """Return how many were caught."""
    tried = [known[each.key] for each in mutations if each.key in known]
    counts = Counter(outcome(each, explained) for each in tried)
    settings = ", ".join(f"{n} {name}" for name, n in counts.most_common())
    return f"{len(tried)} of {len(mutations)} tried: {settings or 'nothing yet'}."


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=Path, default=WORK, help="folder for copies and results")
    commands = parser.add_subparsers(required=True)
    drawn = argparse.ArgumentParser(add_help=False)
    drawn.add_argument("-n", "--number", type=int, default=60, help="how many mutations")
    drawn.add_argument("--seed", default=commit(), help="the checked out commit by default")
    drawn.add_argument(
        "--in", dest="folders", nargs="+", default=["src"], metavar="FOLDER", help="only there"
    )
    several = argparse.ArgumentParser(add_help=False)
    several.add_argument("--workers", type=int, default=1, help="how many copies work at once")

    recorded = commands.add_parser("record", parents=[several], help=record_tests.__doc__)
    recorded.add_argument("files", nargs="*", help="files of tests, all by default")
    recorded.set_defaults(do=record_tests)
    commands.add_parser("draw", parents=[drawn], help=show_drawn.__doc__).set_defaults(
        do=show_drawn
    )
    tried = commands.add_parser("run", parents=[drawn, several], help=run.__doc__)
    tried.add_argument("--minutes", type=float, default=10.0, help="for one mutation, at most")
    tried.add_argument("--retry", action="store_true", help="try again what no test caught")
    tried.set_defaults(do=run)
    page = commands.add_parser("page", parents=[drawn], help=write_page.__doc__)
    page.add_argument("file", type=Path)
    page.set_defaults(do=write_page)
    return parser


if __name__ == "__main__":
    settings = arguments().parse_args()
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    settings.do(settings)

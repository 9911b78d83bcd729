"""Attack the package with inputs drawn at random, each attack in a process of its own.

    python tests/attack/run.py --seconds 3600 --seed 1 [--only "model files"] [--bounds]

A case is drawn from the seed and its number alone, so `--only NAME --first N --cases 1` shows it
again. A crash, a hang and every line that an attack returns are faults, and the exit status is 1 if
there are any.
`--bounds` has all compiled code check its indices, which takes longer to compile and to run.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np

Case = Callable[[np.random.Generator], str | None]

ATTACKS = {
    "model files": "attack.model_files",
    "matrices": "attack.matrices",
    "functions": "attack.functions",
    "kills": "attack.kills",
    "saves": "attack.saves",
}
"""Attacks by name: modules with `prepare(folder)`, which returns a function of one case."""

MEMORY = 8 << 30
"""What a process may ask for: an input that makes it ask for more is a fault."""
PATIENCE = 300.0
"""Seconds after which a case counts as hanging; the first compiles what it needs."""
AT_ONCE = 500
"""Cases of one process, so that what an early case did to it is seen soon."""


class Found(NamedTuple):
    """What the cases of an attack did."""

    n_cases: int
    faults: list[str]


def attack(name: str, seed: int, numbers: Iterator[int], until: float) -> Found:
    """Run cases of an attack until a time, or until there are no more numbers."""
    n_cases, faults = 0, []
    while time.monotonic() < until:
        piece = list(itertools.islice(numbers, AT_ONCE))
        if not piece:
            break
        with tempfile.TemporaryDirectory() as folder:
            n_done, said = _in_a_process(name, seed, piece, until, Path(folder))
        n_cases, faults = n_cases + n_done, faults + said
        numbers = itertools.chain(piece[n_done:], numbers)
    return Found(n_cases, faults)


def _in_a_process(
    name: str, seed: int, numbers: list[int], until: float, folder: Path
) -> tuple[int, list[str]]:
    """Return how many cases a process has done, the last perhaps fatal, and the faults."""
    context = multiprocessing.get_context("spawn")
    process = context.Process(
        target=_work, args=(name, ATTACKS[name], seed, numbers, until, folder)
    )
    process.start()
    n_done = _watched(process, folder)
    said = (folder / "faults").read_text().splitlines()
    if process.exitcode:
        how = "did not end" if process.exitcode == -9 else f"ended with {process.exitcode}"
        said.append(f"{name} {numbers[n_done]}: the process {how}{_place(folder)}")
        n_done += 1
    return n_done, said


def _watched(process: multiprocessing.process.BaseProcess, folder: Path) -> int:
    """Wait for a process, kill it if a case takes too long, and return how many cases it ended."""
    n_done, since = 0, time.monotonic()
    while process.is_alive():
        process.join(0.2)
        now = _n_done(folder)
        if now != n_done:
            n_done, since = now, time.monotonic()
        elif time.monotonic() - since > PATIENCE:
            process.kill()
    return _n_done(folder)


def _place(folder: Path) -> str:
    """Return the line of the package in which a process crashed, if it did."""
    frames = (folder / "crash").read_text().splitlines()
    return next((f": {frame.strip()}" for frame in frames if "/kesler/" in frame), "")


def _n_done(folder: Path) -> int:
    done = folder / "done"
    return done.stat().st_size if done.exists() else 0


def _work(
    name: str, module: str, seed: int, numbers: list[int], until: float, folder: Path
) -> None:
    """Run cases one after another; each adds a byte to a file, and its fault to another."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    with (
        (folder / "done").open("ab", 0) as done,
        (folder / "faults").open("a", 1) as faults,
        (folder / "crash").open("w") as crash,
    ):
        faulthandler.enable(crash)
        with tempfile.TemporaryDirectory() as own:
            case: Case = import_module(module).prepare(Path(own))
            for i in numbers:
                fault = case(np.random.default_rng((seed, i)))
                if fault is not None:
                    faults.write(f"{name} {i}: {fault}\n")
                done.write(b".")
                if time.monotonic() > until:
                    break


def main(arguments: list[str] | None = None) -> int:
    """Run the attacks that are asked for, in turns of equal time, and print what they found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="time for all attacks together")
    parser.add_argument("--only", choices=ATTACKS, action="append", help="attacks to run")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, help="number of cases of each attack at most")
    parser.add_argument("--bounds", action="store_true", help="check indices in compiled code")
    asked = parser.parse_args(arguments)
    if asked.bounds:
        _check_bounds()
    names = asked.only or list(ATTACKS)
    n_faults = 0
    for name in names:
        end = None if asked.cases is None else asked.first + asked.cases
        numbers = iter(range(asked.first, end)) if end is not None else itertools.count(asked.first)
        until = time.monotonic() + asked.seconds / len(names)
        found = attack(name, asked.seed, numbers, until)
        for line in found.faults:
            print(line)
        print(f"{name}: {found.n_cases} cases, {len(found.faults)} faults", flush=True)
        n_faults += len(found.faults)
    return 1 if n_faults else 0


def _check_bounds() -> None:
    """Have processes compile with checks of indices, and keep what they compile to themselves.

    Numba's cache does not tell code with checks from code without.
    """
    os.environ["NUMBA_BOUNDSCHECK"] = "1"
    cache = os.environ.get("NUMBA_CACHE_DIR", str(Path.home() / ".cache" / "kesler"))
    os.environ["NUMBA_CACHE_DIR"] = f"{cache}-bounds"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.exit(main())

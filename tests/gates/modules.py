"""How many modules of the package each public name loads, against the limits in `modules.tsv`.

    python tests/gates/modules.py            # what is loaded now, beside the limits
    python tests/gates/modules.py --write    # lower the limits to what is loaded now

A limit goes down with `--write`; who needs a higher one edits the line, and says why in the commit.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FILE = Path(__file__).parent / "modules.tsv"

COUNT = """
import gc, os, sys, warnings
import joblib, numba, numpy, scipy.linalg, scipy.optimize, scipy.sparse, sklearn.linear_model

gc.disable()  # else each process goes through all that is loaded
warnings.simplefilter("ignore")  # a fork beside the threads of a library, which are left alone
for line in sys.stdin.read().split():
    home, _, name = line.rpartition(":")
    child = os.fork()
    if child == 0:
        exec(f"from {home} import {name}" if home else f"import {name}")
        loaded = [each for each in sys.modules if each.split(".")[0] == "kesler"]
        print(line, len(loaded), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{line} cannot be imported")
"""
"""Forks a process for each name, in which all is loaded but the package."""


MODULES = (
    *("algorithms", "bounds", "budgets", "checks", "costs", "datasets", "decompositions"),
    *("dictionaries", "distributed", "durable", "errors", "exploration", "forests", "hypotheses"),
    *("kernels", "links", "maps", "metrics", "plots", "preconditioners", "preprocessing"),
    *("queries", "readers", "service", "trees", "updates"),
)
"""Modules that users import from."""


def public_names() -> list[str]:
    """Return all that is public: modules by their names, and names as "kesler:NAME"."""
    import kesler

    modules = [f"kesler.{name}" for name in MODULES]
    return ["kesler", *modules, *(f"kesler:{name}" for name in kesler.__all__)]


def loaded(names: list[str]) -> dict[str, int]:
    """Return how many modules of the package each name loads in a process of its own."""
    command = [sys.executable, "-c", COUNT]
    done = subprocess.run(command, input="\n".join(names), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {name: int(n) for name, n in (line.split() for line in done.stdout.splitlines())}


def limits() -> dict[str, int]:
    """Read the limits."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    pairs = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return {name: int(limit) for name, limit in pairs}


def write(now: dict[str, int]) -> None:
    """Write limits: those of new names, and lower ones."""
    before = limits() if FILE.exists() else {}
    rows = [f"{name}\t{min(n, before.get(name, n))}" for name, n in now.items()]
    heading = [
        "# Most modules of kesler that each public name may load in a new process.",
        "# `python tests/gates/modules.py --write` lowers the limits to what is loaded.",
    ]
    FILE.write_text("\n".join([*heading, *rows]) + "\n", encoding="utf-8")


def main() -> int:
    """Print what is loaded, or write it."""
    now = loaded(public_names())
    if "--write" in sys.argv[1:]:
        write(now)
    most = limits()
    for name, n in now.items():
        print(f"{name}\t{n}\tof {most.get(name, 'no limit')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

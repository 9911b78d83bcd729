"""Wheels in empty environments: the times of first answers, cold and warm.

    python benchmarks/wheels.py python3.11 python3.12 python3.13

For each interpreter the wheel with the loops is built from a clone, and installed in an empty
environment, away from the sources. Cold, Numba's cache is empty, as after an installation; warm,
it is what the first process left. Times are those of whole processes; the service is timed from
its start to the answer of its first prediction, after a model is made and taught a row. Each time
is the least of three, since machines are shared; cold ones have an empty cache each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kesler.service import Client

sys.path.append(str(Path(__file__).parents[1] / "papers"))
sys.path.append(str(Path(__file__).parents[1] / "tests"))
from script_arguments import script_parser  # isort: skip
from report import Report, table  # isort: skip
from serving import Server  # isort: skip

ROOT = Path(__file__).parents[1]
MOST_COMPARE, MOST_SERVICE = 4.0, 3.0
RUNS = 3


@dataclass(frozen=True)
class Times:
    """Seconds of one version of Python, and the size of its wheel."""

    version: str
    megabytes: float
    compare: tuple[float, float]  # cold, warm
    service: tuple[float, float]


def environment(python: str, folder: Path) -> Path:
    """Make an empty environment; return its interpreter."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    own = folder / "bin" / "python"
    install(own, "--upgrade", "pip>=25.1")
    return own


def install(python: Path, *what: str) -> None:
    """Install packages."""
    subprocess.run([python, "-m", "pip", "install", "--quiet", *what], check=True)


def built(python: str, folder: Path) -> Path:
    """Build the wheel of an interpreter from a clone of the last commit."""
    source = folder / "source"
    subprocess.run(["git", "clone", "--quiet", ROOT, source], check=True)
    own = environment(python, folder / "building")
    install(own, "--editable", f"{source}[plots,serve]")
    subprocess.run([own, "wheels/ship_kernels.py"], cwd=source, check=True)
    command = [own, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", "."]
    subprocess.run(command, cwd=source, check=True)
    [wheel] = (source / "dist").glob("*.whl")
    return wheel


def compare_seconds(python: Path, cache: str) -> float:
    """Return the seconds of the first command of the README."""
    begin = time.perf_counter()
    command = [python, "-m", "kesler", "compare", "dataset:letter"]
    done = subprocess.run(
        command,
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "default" in done.stdout, done.stderr
    return time.perf_counter() - begin


def service_seconds(python: Path, cache: str) -> float:
    """Return the seconds from the start of a service to the answer of its first prediction."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        given = {"NUMBA_CACHE_DIR": cache}
        with Server(Path(folder, "first.db"), environment=given, python=str(python)) as server:
            mail = Client(server.url, "mail")
            mail.create()
            mail.learn("win cash", "spam")
            mail.predict("cash")
            return time.perf_counter() - begin


def cold_and_warm(python: Path, seconds_of: Callable[[Path, str], float]) -> tuple[float, float]:
    """Return the least seconds with empty caches, and with those that the first process left."""
    cold, warm = [], []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(seconds_of(python, cache))
            warm.append(seconds_of(python, cache))
    return min(cold), min(warm)


def measured(python: str) -> Times:
    """Build the wheel of an interpreter, install it and measure its first answers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = built(python, folder)
        own = environment(python, folder / "empty")
        install(own, f"{wheel}[serve]")
        said = subprocess.run([own, "--version"], check=True, capture_output=True, text=True).stdout
        found = Times(
            said.split()[1],
            wheel.stat().st_size / 2**20,
            cold_and_warm(own, compare_seconds),
            cold_and_warm(own, service_seconds),
        )
        print(found, flush=True)
        return found


def written(report: Report, found: list[Times]) -> int:
    """Write the page; return 1 if a target is missed."""
    report.add(__doc__.rpartition("\n\n")[2].strip())
    heading = ["Python", "wheel, MB", "compare, cold", "warm", "service, cold", "warm"]
    rows = [
        [t.version, f"{t.megabytes:.1f}", *(f"{s:.1f} s" for s in (*t.compare, *t.service))]
        for t in found
    ]
    report.add(table(heading, rows))
    for t in found:
        (compare, _), (service, _) = t.compare, t.service
        what = f"Python {t.version}, cold: kesler compare dataset:letter in {MOST_COMPARE:.0f} s"
        report.check(f"{what}: {compare:.1f}", compare < MOST_COMPARE)
        what = f"Python {t.version}, cold: a new service answers in {MOST_SERVICE:.0f} s"
        report.check(f"{what}: {service:.1f}", service < MOST_SERVICE)
    return report.write()


def main() -> int:
    """Measure the wheels of all interpreters."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("python", nargs="+", help="interpreters of CPython 3.11 or newer")
    given = parser.parse_args()
    report = Report("wheels", "First answers of wheels", given.results)
    return written(report, [measured(python) for python in given.python])


if __name__ == "__main__":
    sys.exit(main())

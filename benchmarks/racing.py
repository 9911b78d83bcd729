"""Common code of the races: contestants run in turn, medians, ratios, checks, and their page.

A race is one script of this folder. It writes its results to benchmarks/results/<name>.json, and
generates benchmarks/RESULTS.md from all such files.

    def main() -> int:
        race = Race("stream", "Rows per second", __doc__, command_line(__doc__).parse_args())
        laps = race.run("20 classes", [Contestant("kesler", run_ours, 1000), Contestant(...)])
        race.at_least("times the peer's rows per second", times_faster(laps, "kesler", "vw"), 8)
        return race.write()
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from statistics import median
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "papers"))
from report import circumstances, table

RESULTS = Path(__file__).parent / "results"
PAGE = "RESULTS.md"
INTRODUCTION = """Each race is one command, `python benchmarks/<race>.py`; `make races` runs all of
them, and `make bench` a shorter form of each. Contestants run in turn, in one process unless stated
otherwise; the tables show medians. The races generate this page; the figures of each run are in
[results](results/)."""

LEVELS = {
    "native": "every instruction of this processor",
    "haswell": "AVX2 (vectors of 256 bits)",
    "x86-64-v2": "SSE4.2 (vectors of 128 bits, the width of ARM's NEON, which was not measured)",
}
"""The processors that a race can compile for, by their names in LLVM and GCC."""

Figures = Mapping[str, float]
"""Figures shown beside a time, by the title of their column: {"error %": 4.2}."""
Clock = Callable[[], float]


def processor_time() -> float:
    """Return the processor time in seconds of this process and its finished child processes."""
    used = (getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "processor": processor_time}


# ---- contestants ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Contestant:
    """One learner or command in a race.

    Parameters
    ----------
    name : str
        The name in the tables.
    run : callable without arguments
        The timed function. It returns the figures to show beside the time, such as its mistakes,
        or None.
    work : int
        The number of rows (or events) of a run; contestants are compared by the time per row.
    package : str
        The distribution that it needs; without it, the contestant is skipped. Empty for none.
    most : int
        The largest number of runs: few for one that takes minutes.
    prepare : callable without arguments, optional
        Called once before the first run, not timed: writes files, warms caches.
    """

    name: str
    run: Callable[[], Figures | None]
    work: int = 1
    package: str = ""
    most: int = 1000
    prepare: Callable[[], object] | None = None


@dataclass
class Laps:
    """The times of a contestant's runs in seconds, and the figures of the last run."""

    work: int
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def seconds(self, clock: str = "wall") -> float:
        """Return the median time of a run."""
        return median(getattr(self, clock))

    def each(self, clock: str = "wall") -> float:
        """Return the median time per row (or event)."""
        return self.seconds(clock) / self.work


def timed(run: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return the wall time, the processor time and the result of a run."""
    gc.collect()
    wall, processor = time.perf_counter(), processor_time()
    found = run()
    return time.perf_counter() - wall, processor_time() - processor, found


def in_turn(
    contestants: Sequence[Contestant], repeats: int, *, is_warm: bool = False
) -> dict[str, Laps]:
    """Run each contestant once, then each a second time, and so on, under the same conditions.

    If `is_warm`, contestants with several runs have an untimed run before each timed one, which
    then finds memory as a run of its own left it. Otherwise small tables reuse memory of earlier
    runs, while large ones wait for the system to allocate it: a millisecond per megabyte on shared
    machines.

    Examples
    --------
    >>> laps = in_turn([Contestant("a", lambda: {"error %": 1.0}), Contestant("b", dict)], 3)
    >>> len(laps["a"].wall), len(laps["b"].processor), laps["a"].figures
    (3, 3, {'error %': 1.0})
    """
    laps = {each.name: Laps(each.work) for each in contestants}
    for each in contestants:
        if each.prepare:
            each.prepare()
    for repeat in range(repeats):
        for each in contestants:
            if is_warm and repeat < each.most and min(each.most, repeats) > 1:
                each.run()
            if repeat < each.most:
                wall, processor, figures = timed(each.run)
                laps[each.name].wall.append(wall)
                laps[each.name].processor.append(processor)
                laps[each.name].figures = dict(figures or {})
    return laps


def times_faster(laps: Mapping[str, Laps], ours: str, theirs: str, clock: str = "wall") -> float:
    """Return the ratio of the rows per second of ours to theirs; NaN if theirs was skipped.

    Examples
    --------
    >>> laps = {"a": Laps(100, wall=[1.0]), "b": Laps(10, wall=[0.5])}
    >>> times_faster(laps, "a", "b")
    5.0
    """
    return laps[theirs].each(clock) / laps[ours].each(clock) if theirs in laps else math.nan


def installed_version(package: str) -> str | None:
    """Return the version of a distribution, None if it is not installed.

    Examples
    --------
    >>> installed_version("no such distribution")
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None


# ---- growth ---------------------------------------------------------------------------------


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return b of the model cost = a size^b, by least squares on the logarithms.

    Examples
    --------
    >>> round(exponent([1, 2, 4, 8], [3, 12, 48, 192]), 6)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


@dataclass(frozen=True)
class Growth:
    """Work of one kind at several sizes.

    Parameters
    ----------
    of : str
        The name of the size that grows.
    sizes : sequence of int
        The sizes.
    prepare : callable of a size
        Returns the function to time at that size.
    most : float
        The largest accepted exponent.
    """

    of: str
    sizes: Sequence[int]
    prepare: Callable[[int], Callable[[], Any]]
    most: float = math.inf

    def contestants(self) -> list[Contestant]:
        """Return one contestant per size."""
        return [Contestant(str(size), _without_figures(self.prepare(size))) for size in self.sizes]


def _without_figures(run: Callable[[], Any]) -> Callable[[], None]:
    """Return a function that runs without returning figures."""

    def without() -> None:
        run()

    return without


# ---- races ----------------------------------------------------------------------------------


def command_line(about: str) -> argparse.ArgumentParser:
    """Return a parser with the common options; `about` is the docstring of the file."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a short form, for `make bench`")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each contestant")
    parser.add_argument(
        "--clock",
        choices=list(CLOCKS),
        default="wall",
        help="clock of the ratios: processor time if other work runs on the machine (default wall)",
    )
    parser.add_argument(
        "--cpu",
        choices=list(LEVELS),
        default="native",
        help="processor to compile our loops and those in C++ for (default native)",
    )
    parser.add_argument(
        "--results",
        type=Path,
        help="folder of the results (default benchmarks/results, with --quick a temporary one)",
    )
    return parser


class Race:
    """The results of one race: tables, checks, and the folder where they are written.

    Parameters
    ----------
    name : str
        The name of the file, without suffix.
    title : str
        The heading on the page.
    about : str
        The docstring of the file; the page shows all but its first two paragraphs.
    arguments : argparse.Namespace
        The options, as `command_line` parses them.
    """

    def __init__(self, name: str, title: str, about: str, arguments: argparse.Namespace) -> None:
        require_level(arguments.cpu)
        self.name, self.title, self.about = name, title, about.split("\n\n", 2)[2].strip()
        self.cpu = arguments.cpu
        self.is_quick, self.clock = arguments.quick, arguments.clock
        self.repeats = arguments.repeats
        temporary = Path(tempfile.gettempdir()) / "kesler-races" / "results"
        self.folder = arguments.results or (temporary if self.is_quick else RESULTS)
        self.blocks: list[str] = []
        self.checks: list[dict[str, Any]] = []
        self.runs: dict[str, Any] = {}
        self.peers: dict[str, str] = {}
        self.start = time.perf_counter()

    def run(
        self,
        heading: str,
        contestants: Iterable[Contestant],
        unit: str = "rows",
        *,
        is_warm: bool = False,
    ) -> dict[str, Laps]:
        """Time contestants in turn, and add a table with times relative to the first."""
        laps = in_turn(self.present(contestants), self.repeats, is_warm=is_warm)
        self.show(heading, laps, unit)
        return laps

    def show(self, heading: str, laps: Mapping[str, Laps], unit: str = "rows") -> None:
        """Add a table of runs, with times relative to the first, and store their figures."""
        self.runs[heading] = {name: asdict(each) for name, each in laps.items()}
        self.add(f"### {heading}", laps_table(laps, unit, self.clock))

    def present(self, contestants: Iterable[Contestant]) -> list[Contestant]:
        """Return the contestants whose packages are installed; report the others on the page."""
        found = []
        for each in contestants:
            if each.package:
                self.peers[each.package] = installed_version(each.package) or "not installed"
            if self.peers.get(each.package) == "not installed":
                self.add(f"{each.name} is skipped: {each.package} is not installed.")
            else:
                found.append(each)
        return found

    def grow(self, heading: str, growths: Iterable[Growth]) -> dict[str, float]:
        """Time work at several sizes; add a table and checks; return the exponents."""
        lines, found = [], {}
        for each in growths:
            laps = in_turn(each.contestants(), self.repeats)
            seconds = [lap.seconds(self.clock) for lap in laps.values()]
            found[each.of] = exponent(each.sizes, seconds)
            self.runs[f"{heading}: {each.of}"] = {n: asdict(lap) for n, lap in laps.items()}
            pairs = zip(each.sizes, seconds, strict=True)
            cells = (f"{size:,}: {second:.3g}" for size, second in pairs)
            lines.append([each.of, *cells, f"{found[each.of]:.2f}"])
            if each.most < math.inf:
                claim = f"{heading}: exponent of the time in {each.of}"
                self.at_most(claim, found[each.of], each.most)
        sizes = [f"size {i}: s" for i in range(1, max(map(len, lines)) - 1)]
        self.add(f"### {heading}", table(["size", *sizes, "exponent"], lines))
        return found

    def add(self, *blocks: str) -> None:
        """Add Markdown to the page, and print it at once."""
        for block in blocks:
            print(f"\n{block}", flush=True)
        self.blocks.extend(blocks)

    def check(self, claim: str, holds: bool | None, **figures: Any) -> None:
        """Add a claim to check; `holds` is None if it was not measured."""
        check = {"claim": claim, "holds": None if holds is None else bool(holds)}
        self.checks.append(check | figures)

    def at_least(self, claim: str, found: float, target: float) -> None:
        """Check that a figure is at least its target."""
        self._compare(claim, found, f"at least {target:g}", found >= target)

    def at_most(self, claim: str, found: float, target: float) -> None:
        """Check that a figure is at most its target."""
        self._compare(claim, found, f"at most {target:g}", found <= target)

    def _compare(self, claim: str, found: float, target: str, holds: bool) -> None:
        is_measured = not math.isnan(found)
        self.check(
            f"{claim}: {figure(found)}{target}",
            holds if is_measured else None,
            of=f"{claim}, {target}",
            found=f"{found:.3g}" if is_measured else "-",
        )

    def write(self) -> int:
        """Write the figures and the page; return the exit code: 1 if a check failed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        found = {
            "race": self.name,
            "cpu": self.cpu,
            "title": self.title,
            "about": self.about,
            "circumstances": f"{circumstances()} {processor_name()}.",
            "peers": self.peers,
            "seconds": round(time.perf_counter() - self.start),
            "is_quick": self.is_quick,
            "clock": self.clock,
            "blocks": self.blocks,
            "checks": self.checks,
            "runs": self.runs,
        }
        text = json.dumps(found, indent=1) + "\n"
        level = "" if self.cpu == "native" else f".{self.cpu}"
        (self.folder / f"{self.name}{level}.json").write_text(text, encoding="utf-8")
        page = write_page(self.folder)
        print("", *verdicts(self.checks), f"wrote {page}", sep="\n")
        return 1 if any(each["holds"] is False for each in self.checks) else 0


def require_level(cpu: str) -> None:
    """Start this command anew, for code that is compiled for a processor, unless it already is.

    Numba reads these settings when it is imported.
    """
    settings = {} if cpu == "native" else {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}
    if any(os.environ.get(name) != value for name, value in settings.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | settings)


# ---- the page -------------------------------------------------------------------------------


def laps_table(laps: Mapping[str, Laps], unit: str, clock: str) -> str:
    """Return a table of contestants; the last column is the time per row relative to the first."""
    columns = list(dict.fromkeys(name for each in laps.values() for name in each.figures))
    first = next(iter(laps.values()))
    lines = []
    for name, each in laps.items():
        rate = "-" if each.work == 1 else f"{1 / each.each(clock):,.0f}"
        figures = [f"{each.figures[c]:.4g}" if c in each.figures else "-" for c in columns]
        times = [f"{each.seconds(c):.3g}" for c in CLOCKS]
        relative = f"{each.each(clock) / first.each(clock):.2f}"
        lines.append([name, f"{each.work:,}", *times, rate, *figures, relative])
    header = [
        "contestant",
        unit,
        *(f"{c}, s" for c in CLOCKS),
        f"{unit}/s",
        *columns,
        "relative time",
    ]
    return table(header, lines)


def figure(found: float) -> str:
    """Return a figure as text before its target; empty if it was not measured.

    Examples
    --------
    >>> figure(9.876), figure(math.nan)
    ('9.88, ', '')
    """
    return "" if math.isnan(found) else f"{found:.3g}, "


def write_page(folder: Path) -> Path:
    """Write the page of all races with results in the folder; return its path."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    races: dict[str, list[Mapping[str, Any]]] = {}
    for each in found:
        if isinstance(each, dict) and "race" in each:
            races.setdefault(each["race"], []).append(each)
    page = folder.parent / PAGE
    parts = ["# Races", INTRODUCTION, *(section(levels) for levels in races.values())]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return page


def section(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the section of one race: each level, and all levels side by side."""
    levels = {each.get("cpu", "native"): each for each in found}
    levels = {cpu: levels[cpu] for cpu in LEVELS if cpu in levels}
    first = next(iter(levels.values()))
    blocks = [f"## {first['title']}", first["about"]]
    for cpu, each in levels.items():
        if len(levels) > 1:
            blocks.append(f"### Compiled for {cpu}: {LEVELS[cpu]}")
            blocks.extend(block.replace("### ", "#### ") for block in each["blocks"])
        else:
            blocks.extend(each["blocks"])
        blocks.extend(("\n".join(verdicts(each["checks"])), setting(each)))
    if len(levels) > 1:
        blocks.extend(("### Side by side", side_by_side(levels)))
    return "\n\n".join(filter(None, blocks))


def setting(found: Mapping[str, Any]) -> str:
    """Return the command of a race, and the circumstances of its run."""
    peers = ", ".join(f"{package} {each}" for package, each in found["peers"].items())
    cpu = found.get("cpu", "native")
    level = "" if cpu == "native" else f" --cpu {cpu}"
    made = f"`python benchmarks/{found['race']}.py{level}{' --quick' * found['is_quick']}`"
    settings = f"{made}, {found['seconds']} s, by {found['clock']} time; {found['circumstances']}"
    return f"{settings}{' ' + peers if peers else ''}"


def side_by_side(levels: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of the figures that are checked, one column for each level."""
    figures = {
        cpu: {each["of"]: each["found"] for each in found["checks"] if "of" in each}
        for cpu, found in levels.items()
    }
    claims = dict.fromkeys(claim for each in figures.values() for claim in each)
    lines = [[claim, *(each.get(claim, "-") for each in figures.values())] for claim in claims]
    return table(["what is checked", *levels], lines)


def verdicts(checks: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return one line per check."""
    words = {True: "yes", False: "NO", None: "not measured"}
    return [f"- {words[each['holds']]}: {each['claim']}" for each in checks]


def processor_name() -> str:
    """Return the model name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()

"""Run tests against one mutation after another, in a copy of the working tree."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutation_sites import Mutation

COMPILED = "compiled"
"""The folder of loops that Numba compiles: a change in it has all of them compiled again."""
ROWS_RECORDED = 20
SECONDS_RECORDED = 1.0
COVERING_SECONDS = 90.0
TESTS_A_FILE = 4
LIMITS = {True: 60, False: 240}
"""Seconds that one test may take, interpreted and compiled; longer counts as a failure."""
RUNNING: set[int] = set()
LONGEST = 1800.0
"""Seconds that a run without a mutation may take."""
OPTIONS = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "mutation_plugin"]


# ---- which tests run a function ------------------------------------------------------------------


@dataclass
class Record:
    """Which tests run which functions, as `record` noted it, one JSON file for a file of tests.

    It decides on the order of tests alone, so one made some commits ago does no harm.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    by_function: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    by_file: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def read(cls, folder: Path) -> Record:
        record = cls()
        for file in sorted(folder.glob("*.json")):
            for test in json.loads(file.read_text()):
                record.seconds[test["test"]] = test["seconds"]
                for function in test["functions"]:
                    record.by_function[function].append(test["test"])
                    record.by_file[function.split("::")[0]].add(test["test"])
        return record

    def covering(self, mutation: Mutation) -> list[str]:
        """Return the tests that run the mutated function: some of each file, then the others.

        Where no test is known to run it, those that run any function of its file.
        """
        tests = self.by_function.get(f"{mutation.path}::{mutation.scope}")
        files: dict[str, list[str]] = defaultdict(list)
        for test in sorted(tests or self.by_file.get(mutation.path, ()), key=self._cost):
            files[file_of(test)].append(test)
        begin = [test for each in files.values() for test in spread(each, TESTS_A_FILE)]
        rest = [test for each in files.values() for test in each]
        ordered = sorted(begin, key=self._cost) + sorted(rest, key=self._cost)
        return list(dict.fromkeys(ordered))

    def quick(self, tests: list[str], seconds: float) -> list[str]:
        """Return the first tests that together take no longer than some seconds."""
        stored = []
        for test in tests:
            seconds -= self.seconds[test]
            if seconds < 0:
                break
            stored.append(test)
        return stored

    def _cost(self, test: str) -> tuple[float, str]:
        return self.seconds[test], test


def spread(tests: list[str], most: int) -> list[str]:
    """Return at most so many tests, evenly spread."""
    n = min(most, len(tests))
    return [tests[i * len(tests) // n] for i in range(n)]


def file_of(test: str) -> str:
    return test.split("::")[0]


def files_of(tests: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(file_of(test) for test in tests))


def test_files(root: Path) -> list[str]:
    """Return every file of tests, and src for its doctests."""
    return [*(f"tests/{each.name}" for each in sorted((root / "tests").glob("test_*.py"))), "src"]


def by_name(root: Path, mutation: Mutation) -> list[str]:
    """Return every file of tests, first those that name the mutated function or its module."""
    module = Path(mutation.path).with_suffix("")
    dotted = ".".join(module.parts[1:])
    named = {each for each in mutation.scope.split(".") if each.isidentifier()} | {module.name}

    def score(file: str) -> tuple[bool, int]:
        if file == "src":
            return True, 0
        text = (root / file).read_text("utf-8")
        words = len(named & set(re.findall(r"\w+", text)))
        return False, -(4 * (module.name in file) + 4 * (dotted in text) + words)

    return sorted(test_files(root), key=score)


# ---- stages: the covering tests, then all --------------------------------------------------------


@dataclass(frozen=True)
class Stage:
    """One run of pytest: which files, which of their tests first, or only those."""

    files: list[str]
    first: list[str]
    only: bool
    interpreted: bool
    seconds: float


def stages(root: Path, mutation: Mutation, record: Record) -> list[Stage]:
    """Return the runs for a mutation: covering tests as Python, which compile nothing; then all."""
    covering = record.covering(mutation)
    quick = record.quick(covering, COVERING_SECONDS)
    named = by_name(root, mutation)
    first = Stage(files_of(quick), quick, True, True, 4 * COVERING_SECONDS)
    if not quick:
        first = Stage(named[:3], [], False, True, COVERING_SECONDS)
    files = list(dict.fromkeys([*(file for file in files_of(covering) if file in named), *named]))
    return [first, Stage(files, covering, False, False, float("inf"))]


# ---- runs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """The outcome of a run of pytest: the failed test, whether all ran, and the reports."""

    failed: str | None
    ended: bool
    events: list[dict[str, Any]]


@dataclass
class Copy:
    """A copy of the working tree, in which one mutation at a time is tried."""

    root: Path
    place: Path
    passing: dict[tuple[str, bool], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shutil.rmtree(self.tree, ignore_errors=True)
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (self.root / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.root / name, self.tree / name)  # with its time, for Numba's cache

    @property
    def tree(self) -> Path:
        return self.place / "tree"

    def record(self, file: str) -> list[dict[str, Any]]:
        """Return what each test of a file calls, run as Python and only as long as is needed."""
        settings = {"trace": SECONDS_RECORDED, "sample": ROWS_RECORDED, "limit": 10 * LIMITS[True]}
        run = self.test([file], interpreted=True, seconds=LONGEST, plan=settings)
        return [event for event in run.events if event["event"] == "ran"]

    def try_out(self, mutation: Mutation, record: Record, minutes: float) -> dict[str, Any]:
        """Return what became of a mutation: its outcome, the test that caught it, the time."""
        began = time.monotonic()
        self.place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.place) as cache:
            for stage in stages(self.tree, mutation, record):
                left = minutes * 60 - (time.monotonic() - began)
                by, ended = self._caught(mutation, stage, left, Path(cache))
                if by is not None:
                    break
        return {
            "outcome": "caught" if by is not None else "survived" if ended else "unfinished",
            "by": by,
            "interpreted": stage.interpreted,
            "seconds": round(time.monotonic() - began, 1),
        }

    def _caught(
        self, mutation: Mutation, stage: Stage, seconds: float, cache: Path
    ) -> tuple[str | None, bool]:
        """Return the first test that fails with the mutation alone, and whether all ran."""
        is_compiled = COMPILED in Path(mutation.path).parts
        ends = time.monotonic() + min(seconds, stage.seconds)
        while (left := ends - time.monotonic()) > 0:
            skip = [test for (test, how), good in self.passing.items() if not good]
            plan = {"first": stage.first, "only": stage.only, "skip": skip}
            plan["limit"] = LIMITS[stage.interpreted]
            with self.mutated(mutation):
                run = self.test(
                    stage.files,
                    interpreted=stage.interpreted,
                    seconds=left,
                    plan=plan,
                    cache=cache if is_compiled else None,
                )
            if run.failed is None:
                return None, run.ended
            if self.passes(run.failed, stage):
                return run.failed, True
        return None, False

    def passes(self, test: str, stage: Stage) -> bool:
        """Whether a test passes without any mutation."""
        asked = test, stage.interpreted
        if asked not in self.passing:
            files = [file_of(test)] if "::" in test else stage.files
            settings = {"first": [test], "only": True, "limit": 2 * LIMITS[False]}
            run = self.test(files, interpreted=stage.interpreted, seconds=LONGEST, plan=settings)
            self.passing[asked] = run.failed is None and run.ended
        return self.passing[asked]

    @contextmanager
    def mutated(self, mutation: Mutation) -> Iterator[None]:
        """Mutate a file, and put it back as it was, its time too: caches go by that."""
        file = self.tree / mutation.path
        text, status = file.read_bytes(), file.stat()
        file.write_bytes(mutation.applied(text.decode()).encode())
        os.utime(file, (status.st_atime, int(status.st_mtime) + 1 + mutation.start))
        try:
            yield
        finally:
            file.write_bytes(text)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    def test(
        self,
        files: list[str],
        *,
        interpreted: bool,
        seconds: float,
        plan: dict[str, Any],
        cache: Path | None = None,
    ) -> Run:
        """Run files of tests as a plan says (see mutation_plugin), to the first failure."""
        report, written = self.place / "report.jsonl", self.place / "plan.json"
        report.unlink(missing_ok=True)
        paths = {"source": str(self.tree / "src"), "report": str(report)}
        written.write_text(json.dumps(paths | plan))
        environment = os.environ | {
            "MUTATION_PLAN": str(written),
            "PYTHONPATH": f"{self.tree / 'src'}{os.pathsep}{self.tree / 'tests'}",
            "NUMBA_CACHE_DIR": str(cache or self.place / "numba"),
            "NUMBA_DISABLE_JIT": "1" if interpreted else "0",
        }
        stop = [] if "trace" in plan else ["-x"]
        command = [sys.executable, "-m", "pytest", *OPTIONS, *stop, *files]
        with open(self.place / "output.txt", "w") as output:
            code = finished(command, seconds, cwd=self.tree, env=environment, stdout=output)
        return ended_run(code, report)


def finished(command: list[str], seconds: float, **options: Any) -> int | None:
    """Return the exit code of a command, None where its time was over before it ended."""
    running = subprocess.Popen(command, stderr=subprocess.STDOUT, start_new_session=True, **options)
    RUNNING.add(running.pid)
    try:
        return running.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        return None
    finally:
        RUNNING.discard(running.pid)


def stop(*_: Any) -> None:
    """End this process and the tests that it has started."""
    for group in list(RUNNING):
        os.killpg(group, signal.SIGKILL)
    os._exit(1)


def ended_run(code: int | None, report: Path) -> Run:
    """Return how a run ended; a process that died has failed in the test that ran last."""
    events = read_lines(report)
    for event in events:
        if event["event"] == "source" and not event["right"]:
            raise RuntimeError(f"the tests ran {event['place']}, not the mutated copy")
    tests = {name: [e["test"] for e in events if e["event"] == name] for name in KINDS}
    failed: str | None = None
    if tests["failed"]:
        failed = tests["failed"][0]
    elif code not in (0, 5, None):  # 5: no tests were left
        failed = tests["begins"][-1] if tests["begins"] else "the start of pytest"
    return Run(failed, code is not None, events)


KINDS = ("failed", "begins")


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the JSON of each line; a process that died may have left half a line, or a trace."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

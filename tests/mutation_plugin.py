"""What pytest does in a run of mutations.py: which tests run, in which order, and what it reports.

`MUTATION_PLAN` names a JSON file with `report`, a file to write to, and perhaps:

- first: tests to run before all others; only: no others;
- skip: tests that fail without a mutation; sample: how many rows of a parametrized test to run;
- limit: seconds after which a test that has not ended ends the process;
- trace: seconds after which a test is interrupted, while the functions that it calls are noted;
- source: the folder of the sources, from which kesler must come.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

PLAN: dict[str, Any] = json.loads(Path(os.environ["MUTATION_PLAN"]).read_text())
REPORT = open(PLAN["report"], "a", buffering=1)


def tell(event: str, **settings: Any) -> None:
    """Add a line to the report."""
    REPORT.write(json.dumps({"event": event, **settings}) + "\n")


def pytest_sessionfinish() -> None:
    """Have mutations in the code that is meant, not in an installed package."""
    kesler = sys.modules.get("kesler")
    place = Path(kesler.__file__ or "") if kesler else Path(PLAN["source"])
    tell("source", right=place.is_relative_to(PLAN["source"]), place=str(place))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """End a recording at once: the threads of a test that was interrupted may go on for ever."""
    if "trace" in PLAN:
        os._exit(0)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the first tests first, and leave out what is not to be run."""
    rank = {nodeid: i for i, nodeid in enumerate(PLAN.get("first", ()))}
    skip = set(PLAN.get("skip", ()))
    stored = [each for each in items if each.nodeid not in skip]
    if PLAN.get("only"):
        stored = [each for each in stored if each.nodeid in rank]
    stored.sort(key=lambda each: rank.get(each.nodeid, len(rank)))
    items[:] = sampled(stored, PLAN["sample"]) if "sample" in PLAN else stored


def sampled(items: list[pytest.Item], most: int) -> list[pytest.Item]:
    """Return at most so many rows of each parametrized test, evenly spread."""
    rows: dict[str, list[pytest.Item]] = defaultdict(list)
    for each in items:
        rows[each.nodeid.split("[")[0]].append(each)
    return [
        row[i * len(row) // min(most, len(row))]
        for row in rows.values()
        for i in range(min(most, len(row)))
    ]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Report a file that cannot be collected."""
    if report.failed:
        tell("failed", test=report.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Report a failed test."""
    if report.failed:
        tell("failed", test=report.nodeid)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Report the start of a test."""
    tell("begins", test=nodeid)


class TooLongError(BaseException):
    """A test that ran longer than the record of it may take."""


def interrupt(*_: Any) -> None:
    """Stop a test of which enough has been seen."""
    raise TooLongError


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Run a test within its limit, noting what it calls where that is asked for."""
    if "limit" in PLAN:
        faulthandler.dump_traceback_later(PLAN["limit"], exit=True, file=REPORT)
    calls = Calls(PLAN["source"]) if "trace" in PLAN else None
    began = time.perf_counter()
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        if calls:
            calls.stop()
            seconds = round(time.perf_counter() - began, 3)
            tell("ran", test=item.nodeid, seconds=seconds, functions=calls.functions())


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Any:
    """Interrupt a test where it is traced for long; it counts as passed then."""
    if "trace" not in PLAN:
        return (yield)
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, PLAN["trace"])
    try:
        return (yield)
    except TooLongError:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Calls:
    """The functions of src that are called from now on, in every thread of this process."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.seen: dict[int, CodeType] = {}
        threading.settrace(self._note)
        sys.settrace(self._note)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        self.seen[id(frame.f_code)] = frame.f_code

    def stop(self) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def functions(self) -> list[str]:
        """Return the functions seen, as the paths of their files in src and their names."""
        inside = [code for code in self.seen.values() if code.co_filename.startswith(self.source)]
        root = Path(self.source).parent
        return sorted(
            {f"{Path(c.co_filename).relative_to(root).as_posix()}::{named(c)}" for c in inside}
        )


def named(code: CodeType) -> str:
    """Return the name of the function defined with def that contains a code object."""
    parts = code.co_qualname.split(".")
    while parts and parts[-1].startswith("<"):
        parts.pop()
    return ".".join(parts)

"""The service and its pages at thousands of classes.

    python benchmarks/service_many_classes.py               # all 95,414 rows, a few minutes
    python benchmarks/service_many_classes.py --rows 12000

Glosses of WordNet with their hypernyms, from KESLER_DATA, are learnt by a model of a journal, which
a server in another process opens. One client with a connection that is kept sends each kind of
request 20 times to warm and then 200 times. Pages are drawn by Chromium, where it and Playwright
are installed: the time is from the start of the navigation until the first content is drawn and all
is loaded, the bytes are those of the page without its script and its style.

The script writes benchmarks/results/service_many_classes.md, and exits with 1 if a target is
missed.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from typing import Any

from kesler import OnlineClassifier
from kesler.durable import Journal
from many_classes_streams import is_available, stream

sys.path.append(str(Path(__file__).parents[1] / "papers"))
sys.path.append(str(Path(__file__).parents[1] / "tests"))
from script_arguments import script_parser  # isort: skip
from report import Report, table  # isort: skip
from serving import HOST, Server  # isort: skip

MODEL = "/api/models/wordnet"
ROWS_AT_ONCE, WARM, ASKED, DRAWN, WAITING = 1000, 20, 200, 10, 30
MOST_MS, MOST_PAGE_MS, MOST_BYTES = 20.0, 200.0, 200_000
ASKING: dict[str, dict[str, Any]] = {
    "predict": {},
    "predict, the 5 most probable": {"probabilities": 5},
    "predict, confidence and set": {"coverage": 0.9},
    "predict and explain": {"explain": 10},
}
GETTING = {
    "figures of the model": MODEL,
    "20 events": f"{MODEL}/history",
    "classes that contain a text": f"{MODEL}/classes?q=n1234",
}
PAGES = {
    "inbox": "",
    "inbox, most in doubt first": "?order=useful",
    "history": "/history",
    "classes": "/classes",
    "error": "/error",
}
DURATION = """() => {
    const loaded = performance.getEntriesByType("navigation")[0];
    const drawn = performance.getEntriesByName("first-contentful-paint")[0];
    return [Math.max(loaded.loadEventEnd, drawn?.startTime ?? 0), loaded.decodedBodySize];
}"""


@dataclass(frozen=True)
class Taken:
    """How long answers took, in milliseconds, and the size of the largest."""

    median: float
    slowest: float  # the 99th percentile, or of a few the slowest
    size: int

    @staticmethod
    def of(times: list[float], size: int) -> Taken:
        """Return the figures of times in milliseconds."""
        late = sorted(times)[min(len(times) - 1, int(0.99 * len(times)))]
        return Taken(statistics.median(times), late, size)


def filled(path: Path, rows: list[tuple[str, str]]) -> int:
    """Write a journal whose model has learnt rows; return its number of classes."""
    with Journal(path) as journal:
        model = journal.open("wordnet", OnlineClassifier())
        for start in range(0, len(rows), ROWS_AT_ONCE):
            model.learn_many([(*row, None, None) for row in rows[start : start + ROWS_AT_ONCE]])
        return len(model.classes_)


Requests = Iterator[tuple[Any, ...]]


class Asking:
    """A client with a connection that is kept."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection(HOST, port)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[float, int]:
        """Return how many milliseconds an answer takes, and its bytes."""
        data = None if body is None else json.dumps(body)
        start = time.perf_counter()
        self._connection.request(method, path, data, {"content-type": "application/json"})
        answer = self._connection.getresponse()
        found = answer.read()
        assert answer.status == 200, found[:300]
        return 1000 * (time.perf_counter() - start), len(found)

    def taken(self, requests: Requests) -> Taken:
        """Return how long the answers to requests take, after some to warm."""
        found = [self.ask(*next(requests)) for _ in range(WARM + ASKED)][WARM:]
        return Taken.of([ms for ms, _ in found], max(size for _, size in found))


def requests_of(rows: list[tuple[str, str]]) -> dict[str, Requests]:
    """Return each kind of request: method, path and body."""
    chosen = rows[:: max(1, len(rows) // (WARM + ASKED))]
    return {
        **{name: _predictions(chosen, wanted) for name, wanted in ASKING.items()},
        "learn": _lessons(chosen),
        **{name: repeat(("GET", path)) for name, path in GETTING.items()},
    }


def _predictions(rows: list[tuple[str, str]], wanted: dict[str, Any]) -> Requests:
    return (("POST", f"{MODEL}/predict", {"row": text, **wanted}) for text, _ in rows)


def _lessons(rows: list[tuple[str, str]]) -> Requests:
    for i, (text, answer) in enumerate(rows):
        yield "POST", f"{MODEL}/learn", {"row": f"{text} {i}", "answer": answer, "id": f"{i}"}


def pages_of(server: Server) -> dict[str, Taken]:
    """Return how long pages take until they are drawn; none without a browser."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if chromium is None or find_spec("playwright") is None:
        return {}
    from playwright.sync_api import sync_playwright

    found = {}
    with sync_playwright() as playwright:
        # Containers run as root, where the sandbox of Chromium cannot start.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{server.url}/")
        for name, path in PAGES.items():
            address, figures = f"{server.url}/models/wordnet{path}", list[tuple[float, int]]()
            page.goto(address)
            _wait_for_figures(page, address)
            for _ in range(DRAWN):
                page.goto(address, wait_until="load")
                page.wait_for_function("performance.timing.loadEventEnd > 0")
                figures.append(tuple(page.evaluate(DURATION)))
            found[name] = Taken.of([ms for ms, _ in figures], figures[0][1])
            print(name, found[name], flush=True)
        browser.close()
    return found


def _wait_for_figures(page: Any, address: str) -> None:
    """Load a page until it shows the figures of the history, which a thread computes."""
    while page.locator(".state").count():
        time.sleep(1)
        page.goto(address)


def measured(path: Path, rows: list[tuple[str, str]]) -> dict[str, dict[str, Taken]]:
    """Return how long answers and pages of a server take."""
    with Server(path) as server:
        asking = Asking(server.port)
        answers = {}
        for name, requests in requests_of(rows).items():
            answers[name] = asking.taken(requests)
            print(name, answers[name], flush=True)
        items = [{"text": f"{text} waiting"} for text, _ in rows[:: len(rows) // WAITING]]
        for item in items:
            asking.ask("POST", f"{MODEL}/import", item)
        pages = pages_of(server)
    return {"answers": answers, "pages": pages}


def lines_of(found: dict[str, Taken]) -> list[list[str]]:
    """Return the lines of a table."""
    return [
        [name, f"{each.median:.1f}", f"{each.slowest:.1f}", f"{each.size:,}"]
        for name, each in found.items()
    ]


def written(report: Report, found: dict[str, dict[str, Taken]], n_rows: int, n_classes: int) -> int:
    """Write the page of the results; return 1 if a target is missed."""
    answers, pages = found["answers"], found["pages"]
    report.add(
        f"{n_rows:,} glosses of WordNet, {n_classes:,} classes, one client in another process on "
        f"the same cores; {ASKED} requests of each kind after {WARM} to warm, {DRAWN} loads of "
        f"each page, with {WAITING} items that wait. The load of the machine, other programs "
        f"included, was {os.getloadavg()[2]:.1f} over the last 15 minutes."
    )
    columns = ["median, ms", "99 %, ms", "bytes"]
    report.add(table(["answer", *columns], lines_of(answers)))
    if pages:
        report.add(table(["page, drawn", "median, ms", "slowest, ms", "bytes"], lines_of(pages)))
    slowest = max(each.slowest for each in answers.values())
    report.check(f"99 % of the answers of each kind within {MOST_MS:g} ms", slowest <= MOST_MS)
    largest = max(each.size for each in [*answers.values(), *pages.values()])
    report.check(f"no answer and no page of more than {MOST_BYTES:,} bytes", largest <= MOST_BYTES)
    if pages:
        slowest = max(each.median for each in pages.values())
        report.check(f"each page drawn within {MOST_PAGE_MS:g} ms", slowest <= MOST_PAGE_MS)
    return report.write()


def main() -> int:
    """Measure; return 1 if a target is missed."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("--rows", type=int, default=0, help="the first rows (default: all)")
    options = parser.parse_args()
    report = Report("service_many_classes", "The service at thousands of classes", options.results)
    if not is_available("wordnet"):
        print("the glosses of WordNet are not in KESLER_DATA")
        return 1
    rows = list(zip(*stream("wordnet", options.rows), strict=True))
    os.environ.setdefault("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "desk.db"
        n_classes = filled(path, rows)
        found = measured(path, rows)
    return written(report, found, len(rows), n_classes)


if __name__ == "__main__":
    sys.exit(main())

"""The service under load and under kills.

    python benchmarks/service.py            # a few minutes
    python benchmarks/service.py --full     # five minutes for each load, 200 kills

Load: 1, 8 and 64 clients, each with a connection that is kept, ask for predictions, and then teach
answers, each of which is on the disk before it is acknowledged. The clients run in another process
on the same cores. Beside it, in the same run and where they are installed: a service of FastAPI and
scikit-learn that fits all its rows again every ten answers, and keeps them in memory only, and the
daemon of Vowpal Wabbit, for predictions.

Kills: the server is ended by SIGKILL at random moments while eight clients teach, and started
again. No answer that was acknowledged may be lost or be there twice, and the model must equal a
replay of the history.

The script writes benchmarks/results/service.md, and exits with 1 if a target is missed.
"""

from __future__ import annotations

import asyncio
import json
import math
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kesler.datasets import load
from kesler.service import Client

sys.path.append(str(Path(__file__).parents[1] / "papers"))
sys.path.append(str(Path(__file__).parents[1] / "tests"))
from script_arguments import script_parser  # isort: skip
from report import Report, table  # isort: skip
from serving import Connection, Server, free_port, killed, lost_and_doubled  # isort: skip

CLIENTS = (1, 8, 64)
TAUGHT_BEFORE = 1000  # rows that the model knows when it predicts
LEAST_PREDICTIONS, LEAST_ANSWERS = 1500, 500  # a second, with 8 clients
MOST_OF_PEERS = 30.0  # seconds of each load
MOST_SECONDS, MOST_MEGABYTES = 3.0, 250.0
WORDS = 100_000


@dataclass(frozen=True)
class Load:
    """What clients got: how many answers a second, and how long they waited."""

    rate: float
    median: float  # in ms
    slowest: float  # the 99th percentile
    processor: float  # ms of the server's processor time for each request


def texts() -> list[tuple[str, str]]:
    """Return questions to a bank with their classes."""
    banking = load("banking77/stream")
    return [(r["text"], str(y)) for r, y in zip(banking.records, banking.y, strict=True)]


# ---- load ---------------------------------------------------------------------------------------


async def _ask(port: int, path: str, bodies: Iterator[Any], end: float, times: list[float]) -> None:
    connection = Connection(port)
    while (start := time.perf_counter()) < end:
        status, said = await connection.post(path, next(bodies))
        assert status == 200, said
        times.append(time.perf_counter() - start)
    connection.close()


def _bodies(rows: list[tuple[str, str]], key: str, *, teaches: bool) -> Iterator[Any]:
    i = 0
    while True:
        text, answer = rows[i % len(rows)]
        yield (
            {"row": f"{text} {i}", "answer": answer, "id": f"{key}-{i}"}
            if teaches
            else {"row": text}
        )
        i += 1


async def _load(port: int, path: str, n: int, seconds: float, *, teaches: bool) -> list[float]:
    rows, times = texts(), list[float]()
    key, end = f"{time.time()}", time.perf_counter() + seconds
    await asyncio.gather(
        *(
            _ask(port, path, _bodies(rows[i::n], f"{key}-{i}", teaches=teaches), end, times)
            for i in range(n)
        )
    )
    return times


def _in_process(given: tuple[int, str, int, float, bool]) -> list[float]:
    port, path, n, seconds, teaches = given
    return asyncio.run(_load(port, path, n, seconds, teaches=teaches))


def loaded(port: int, pid: int, path: str, n: int, seconds: float, *, teaches: bool) -> Load:
    """Return what n clients in another process get."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        before = _processor(pid)
        times = sorted(pool.apply(_in_process, ((port, path, n, seconds, teaches),)))
        spent = _processor(pid) - before
    middle, late = times[len(times) // 2], times[int(len(times) * 0.99)]
    return Load(len(times) / seconds, 1000 * middle, 1000 * late, 1000 * spent / len(times))


def _processor(pid: int) -> float:
    """Return the seconds of processor time that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def loads_of(port: int, pid: int, seconds: float) -> dict[tuple[str, int], Load]:
    """Return the loads of a server that has the two paths of ours."""
    model = "/api/models/mail"
    found = {}
    for n in CLIENTS:
        for what, teaches in (("predict", False), ("learn", True)):
            found[what, n] = loaded(port, pid, f"{model}/{what}", n, seconds, teaches=teaches)
            print(f"{what:8}{n:4}  {found[what, n]}", flush=True)
    return found


def taught(server: Server) -> None:
    """Create the model and teach it."""
    mail = Client(server.url, "mail")
    mail.create()
    mail.learn_many(texts()[:TAUGHT_BEFORE])
    mail.predict("what is the exchange rate")


# ---- a plain service ----------------------------------------------------------------------------

PLAIN = """
import sys, threading, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

class Row(BaseModel):
    row: str
    answer: str = ""
    id: str = ""

app, X, y, state, lock = FastAPI(), [], [], {}, threading.Lock()

def fit():
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=200))
    state["model"] = model.fit(list(X), list(y))

@app.get("/health")
def health():
    return {}

@app.post("/api/models/mail/predict")
def predict(row: Row):
    return {"label": str(state["model"].predict([row.row])[0])}

@app.post("/api/models/mail/learn")
def learn(row: Row):
    with lock:
        X.append(row.row), y.append(row.answer)
        if len(X) % 10 == 0 and len(set(y)) > 1:
            fit()
    return {}

@app.post("/api/models/mail/rows")
def rows(given: dict):
    X.extend(text for text, _ in given["rows"]), y.extend(label for _, label in given["rows"])
    fit()
    return {}

uvicorn.run(app, port=int(sys.argv[1]), log_level="error", access_log=False)
"""


def plain_loads(seconds: float) -> dict[tuple[str, int], Load]:
    """Return the loads of a plain service; none where FastAPI is not installed."""
    if find_spec("fastapi") is None:
        return {}
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", PLAIN, str(port)])
    try:
        _wait(port)
        body = json.dumps({"rows": texts()[:TAUGHT_BEFORE]}).encode()
        headers = {"Content-Type": "application/json"}
        url = f"http://127.0.0.1:{port}/api/models/mail/rows"
        urllib.request.urlopen(urllib.request.Request(url, body, headers)).read()
        return loads_of(port, process.pid, seconds)
    finally:
        process.kill()
        process.wait()


def _wait(port: int) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).read()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the plain service did not start")


# ---- Vowpal Wabbit -------------------------------------------------------------------------------

WABBIT = """
import sys, time
from vowpalwabbit import Workspace

daemon = Workspace(f"--daemon --foreground --port {sys.argv[1]} --oaa 80 --quiet")
daemon.run_parser()
time.sleep(1e6)
"""


async def _ask_wabbit(port: int, seconds: float) -> list[float]:
    """Teach a daemon, and ask it as one client."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    numbers: dict[str, int] = {}
    for text, answer in texts()[:TAUGHT_BEFORE]:
        number = numbers.setdefault(answer, len(numbers) + 1)
        writer.write(f"{number} {_in_wabbit(text)}".encode())
        await reader.readline()
    rows, times, end = texts(), list[float](), time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        writer.write(_in_wabbit(rows[len(times) % len(rows)][0]).encode())
        await reader.readline()
        times.append(time.perf_counter() - start)
    writer.close()
    return times


def _in_wabbit(text: str) -> str:
    return f"| {' '.join(re.findall('[a-z0-9]+', text.lower()))}\n"


def wabbit_load(seconds: float) -> dict[tuple[str, int], Load]:
    """Return the load of Vowpal Wabbit's daemon by one client; none where it is not installed."""
    if find_spec("vowpalwabbit") is None:
        return {}
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", WABBIT, str(port)])
    try:
        time.sleep(3)
        times = sorted(asyncio.run(_ask_wabbit(port, seconds)))
        middle, late = times[len(times) // 2], times[int(len(times) * 0.99)]
        found = Load(len(times) / seconds, 1000 * middle, 1000 * late, math.nan)
        print("vw", found, flush=True)
        return {("predict", 1): found}
    finally:
        process.kill()
        process.wait()


# ---- kills, start and memory ---------------------------------------------------------------------


@dataclass(frozen=True)
class Killing:
    """What kills did, and whether nothing was lost."""

    sentence: str
    is_kept: bool


def kills(folder: Path, n: int) -> Killing:
    """Kill a server n times under eight clients."""
    rng, rows = random.Random(0), texts()
    with Server(folder / "kills.db") as server:
        Client(server.url, "mail").create()

        async def said(kill: int) -> None:
            if kill % 10 == 9:
                print(f"{kill + 1} kills", flush=True)

        known = asyncio.run(killed(server, n, 8, rows, lambda: rng.uniform(0.02, 1.0), said))
    lost, doubled, n_rows, differences = lost_and_doubled(folder / "kills.db", known)
    sentence = (
        f"{n} times SIGKILL under 8 clients: {len(known.acknowledged):,} answers acknowledged, "
        f"{known.retries:,} requests repeated, {n_rows:,} rows in the history; {lost} lost, "
        f"{doubled} twice; differences from a replay: {differences or 'none'}."
    )
    return Killing(sentence, not lost and not doubled and not differences)


def beginnings(folder: Path) -> dict[str, float]:
    """Return the seconds to a first answer, and the memory with a model of many words."""
    with Server(folder / "first.db") as server:
        begin = time.perf_counter()
        Client(server.url, "mail").create()
    with Server(folder / "first.db", port=server.port) as server:
        begin = time.perf_counter()
        server.kill()
        server.start()
        mail = Client(server.url, "mail")
        mail.learn("win cash", "spam")
        mail.predict("cash")
        first = time.perf_counter() - begin
        rng = random.Random(0)
        words = [f"word{i}" for i in range(WORDS)]
        rows = [(" ".join(words[i : i + 80]), f"c{rng.randrange(10)}") for i in range(0, WORDS, 80)]
        for start in range(0, len(rows), 250):
            mail.learn_many(rows[start : start + 250])
        mail.predict("word1 word2")
        return {"seconds": first, "megabytes": server.megabytes()}


# ---- the page -----------------------------------------------------------------------------------


def written(
    report: Report,
    ours: dict[tuple[str, int], Load],
    peers: dict[str, dict[tuple[str, int], Load]],
    killing: Killing,
    first: dict[str, float],
    seconds: float,
) -> int:
    """Write the page of the results; return 1 if a target is missed."""
    report.add(
        f"Clients in another process on the same cores, {seconds:g} s for each line of Kesler and "
        f"{min(seconds, MOST_OF_PEERS):g} s for each of the others. Predictions "
        f"say the class and its confidence, after {TAUGHT_BEFORE:,} of banking77's questions and "
        "those taught by the lines before. Answers are on the disk (full sync) when they are "
        "acknowledged. The plain service is FastAPI with TF-IDF and logistic regression, fitted "
        "again every ten answers, which it keeps in memory only. Vowpal Wabbit's daemon has a "
        "protocol of its own and one client at a time. The load of the machine, other "
        f"programs included, was {os.getloadavg()[2]:.1f} over the last 15 minutes; the processor "
        "time of the server for each request depends less on it."
    )
    names = {"predict": "predictions", "learn": "answers"}
    rows = [
        [
            f"{who}, {n} {'client' if n == 1 else 'clients'}",
            names[what],
            f"{each.rate:,.0f}",
            f"{each.median:.1f}",
            f"{each.slowest:.1f}",
            "-" if math.isnan(each.processor) else f"{each.processor:.2f}",
        ]
        for what in names
        for who, found in {"Kesler": ours, **peers}.items()
        for n in CLIENTS
        if (each := found.get((what, n)))
    ]
    columns = ["service", "what", "a second", "median, ms", "99 %, ms", "processor, ms"]
    report.add(table(columns, rows))
    report.add(killing.sentence)
    report.add(
        f"First answer of a started server, its process included: {first['seconds']:.1f} s. Memory "
        f"with a model of {WORDS:,} words: {first['megabytes']:.0f} MB."
    )
    fast, durable = ours["predict", 8].rate, ours["learn", 8].rate
    report.check(
        f"{LEAST_PREDICTIONS:,} predictions a second, 8 clients", fast >= LEAST_PREDICTIONS
    )
    report.check(f"{LEAST_ANSWERS} durable answers a second, 8 clients", durable >= LEAST_ANSWERS)
    report.check("nothing acknowledged is lost or twice, and models are replays", killing.is_kept)
    report.check(f"a first answer in {MOST_SECONDS:g} s", first["seconds"] < MOST_SECONDS)
    report.check(f"less than {MOST_MEGABYTES:g} MB", first["megabytes"] < MOST_MEGABYTES)
    return report.write()


def main() -> int:
    """Run everything; return 1 if a target is missed."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("--full", action="store_true", help="five minutes a load, and 200 kills")
    parser.add_argument("--seconds", type=float, help="seconds of each load")
    parser.add_argument("--kills", type=int, help="number of kills")
    options = parser.parse_args()
    report = Report("service", "The service under load and under kills", options.results)
    seconds = options.seconds or (300.0 if options.full else 5.0)
    n_kills = options.kills if options.kills is not None else (200 if options.full else 10)
    os.environ.setdefault("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = beginnings(folder)
        print(first, flush=True)
        with Server(folder / "load.db") as server:
            taught(server)
            assert server.process is not None
            ours = loads_of(server.port, server.process.pid, seconds)
        peers = {
            "FastAPI, scikit-learn": plain_loads(min(seconds, MOST_OF_PEERS)),
            "Vowpal Wabbit": wabbit_load(min(seconds, MOST_OF_PEERS)),
        }
        killing = kills(folder, n_kills)
    return written(report, ours, peers, killing, first, seconds)


if __name__ == "__main__":
    sys.exit(main())

"""The service beside 5,000 connections whose clients do not go on.

    python benchmarks/service_idle.py            # some ten minutes
    python benchmarks/service_idle.py --seconds 5

Eight clients, each with a connection that is kept, ask for predictions and then teach answers, for
some seconds without and with 5,000 others, in turn. A fifth of these send nothing, half of a first
request, half of a second one, headers byte by byte, and a body byte by byte, a byte every five
seconds. Whoever is closed connects again after 15 seconds. One server has the default settings, so
that most of the 5,000 are closed for others; another keeps all of them open. All runs on the same
cores.

The script writes benchmarks/results/service_idle.md, and exits with 1 if the 99th percentile of the
eight clients is more than twice that without the others.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

from service import Load, loaded, taught

sys.path.append(str(Path(__file__).parents[1] / "papers"))
sys.path.append(str(Path(__file__).parents[1] / "tests"))
from script_arguments import script_parser  # isort: skip
from report import Report, table  # isort: skip
from serving import HOST, Server  # isort: skip

N_CLIENTS, N_IDLE, N_TURNS = 8, 5000, 5
PAUSE, SLOW = 15.0, 5.0  # seconds until a new connection, and between bytes
MOST = 2.0  # times the 99th percentile without idle connections
WHOLE = f"GET /health HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
HALF = WHOLE[:-4]
BODY = f"POST /api/models HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 9999\r\n\r\n".encode() + b"{"
KINDS = ((b"", False), (HALF, False), (WHOLE + HALF, False), (HALF, True), (BODY, True))
OPTIONS = {
    "at most 500 connections": ("--no-tokens", "--rate", "1000000"),
    "all open": (
        "--no-tokens", "--rate", "1000000", "--max-connections", "6000", "--patience", "3600",
    ),
}  # fmt: skip


# ---- clients that do not go on ------------------------------------------------------------------


async def _stay(port: int, sent: bytes, *, is_slow: bool) -> None:
    """Keep a connection for ever, and open another when it is closed."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(sent)
            slow = asyncio.create_task(_trickle(writer)) if is_slow else None
            with suppress(OSError):
                while await reader.read(1000):
                    pass
            if slow is not None:
                slow.cancel()
            writer.close()
        await asyncio.sleep(PAUSE)


async def _trickle(writer: asyncio.StreamWriter) -> None:
    while True:
        await asyncio.sleep(SLOW)
        writer.write(b"x")


async def _stay_all(port: int) -> None:
    tasks = []
    for i in range(N_IDLE):
        sent, is_slow = KINDS[i % len(KINDS)]
        tasks.append(asyncio.create_task(_stay(port, sent, is_slow=is_slow)))
        if i % 50 == 0:
            await asyncio.sleep(0.02)
    await asyncio.gather(*tasks)


def _idle_process(port: int) -> None:
    asyncio.run(_stay_all(port))


@contextmanager
def idle(port: int) -> Iterator[None]:
    """Keep 5,000 connections in another process."""
    process = multiprocessing.get_context("spawn").Process(target=_idle_process, args=(port,))
    process.start()
    time.sleep(8)  # until all have connected
    yield
    process.kill()
    process.join()
    time.sleep(2)


# ---- measurements -------------------------------------------------------------------------------


def n_connections(pid: int) -> int:
    """Return the number of sockets of a process."""
    folder = Path(f"/proc/{pid}/fd")
    return sum(os.readlink(each).startswith("socket") for each in folder.iterdir())


def turns(server: Server, seconds: float) -> tuple[dict[tuple[str, bool], list[Load]], int]:
    """Return the loads, without and with idle connections, and how many sockets are open."""
    assert server.process is not None
    pid, found, most = server.process.pid, dict[tuple[str, bool], list[Load]](), 0

    def measure(*, beside: bool) -> None:
        for what in ("predict", "learn"):
            path, teaches = f"/api/models/mail/{what}", what == "learn"
            load = loaded(server.port, pid, path, N_CLIENTS, seconds, teaches=teaches)
            found.setdefault((what, beside), []).append(load)
            print(what, beside, load, flush=True)

    for _ in range(N_TURNS):
        measure(beside=False)
        with idle(server.port):
            most = max(most, n_connections(pid))
            measure(beside=True)
    return found, most


def lines_of(name: str, found: dict[tuple[str, bool], list[Load]]) -> tuple[list[Any], list[float]]:
    """Return the lines of the table about a server, and how many times as long its clients wait."""
    lines, ratios = [], []
    for what in ("predict", "learn"):
        pairs = [*zip(found[what, False], found[what, True], strict=True)]
        ratios.append(median(after.slowest / before.slowest for before, after in pairs))
        cells = [
            f"{median(each.slowest for each in loads):.1f}"
            for loads in (found[what, False], found[what, True])
        ]
        rates = [
            f"{median(each.rate for each in loads):,.0f}"
            for loads in (found[what, False], found[what, True])
        ]
        asked = "predictions" if what == "predict" else "answers"
        lines.append([name, asked, *rates, *cells, f"{ratios[-1]:.2f}"])
    return lines, ratios


def main() -> int:
    """Measure, and write the page of the results."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load")
    given = parser.parse_args()
    seconds = given.seconds
    report = Report("service_idle", "The service beside idle connections", given.results)
    lines, ratios, opened = [], [], []
    for name, options in OPTIONS.items():
        with (
            tempfile.TemporaryDirectory() as folder,
            Server(Path(folder) / "d.db", options) as server,
        ):
            taught(server)
            found, most = turns(server, seconds)
            own, times = lines_of(name, found)
            lines, ratios, opened = lines + own, ratios + times, [*opened, most]
    report.add(
        f"{N_CLIENTS} clients in another process on the same cores, {seconds:g} s for each load, "
        f"{N_TURNS} times without and with {N_IDLE:,} other connections in turn; medians, and the "
        f"median of the ratios of the 99th percentiles. The two servers had {opened[0]:,} and "
        f"{opened[1]:,} sockets open. The others send nothing, half of a first or of a second "
        "request, and headers or a body by a byte every 5 s; who is closed connects again after "
        "15 s.",
        table(
            ["server", "what", "a second", "with others", "99 %, ms", "with others", "ratio"], lines
        ),
    )
    report.check(f"the 99th percentile is at most {MOST:g} times that without", max(ratios) <= MOST)
    return report.write()


if __name__ == "__main__":
    sys.exit(main())

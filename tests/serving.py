"""Servers in processes of their own, and clients that ask as fast as they can."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECONDS = 60.0  # to start; the first server of a machine compiles what it needs
HOST = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """A server of one database, which may be killed and started again."""

    database: Path
    options: tuple[str, ...] = ("--no-tokens", "--rate", "1000000")
    port: int = field(default_factory=free_port)
    environment: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()  # arguments of Python in place of the command line
    python: str = sys.executable
    process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.process is not None:
            self.kill()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def start(self) -> float:
        """Start the process; return the seconds until it answers."""
        begin = time.perf_counter()
        port = str(self.port)
        ours = ("-m", "kesler", "serve", self.database, "--port", port, *self.options)
        given = (*self.command, self.database, port) if self.command else ours
        self.process = subprocess.Popen(
            [self.python, *given], env=os.environ | self.environment, stderr=subprocess.PIPE
        )
        while time.perf_counter() - begin < SECONDS:
            if self.process.poll() is not None:
                assert self.process.stderr is not None
                raise AssertionError(self.process.stderr.read().decode())
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5).read()
                return time.perf_counter() - begin
            except OSError:
                time.sleep(0.02)
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        """End the process at once."""
        self.end(signal.SIGKILL)

    def end(self, by: signal.Signals) -> int:
        """Send a signal; return the exit code, once the process has ended."""
        assert self.process is not None
        self.process.send_signal(by)
        code = self.process.wait(timeout=30)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code

    def megabytes(self) -> float:
        """Return the memory of the process."""
        assert self.process is not None
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("the system does not say")


class Connection:
    """A connection that is kept, without more than a benchmark needs."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Send JSON; return the status and the answer. OSError if the connection ends."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(HOST, self._port)
        reader, writer = self._streams
        try:
            writer.write(request_of(path, body))
            head = await reader.readuntil(b"\r\n\r\n")
            data = await reader.readexactly(_length(head))
        except (OSError, asyncio.IncompleteReadError) as error:
            self.close()
            raise OSError("the connection ended") from error
        return int(head[9:12]), json.loads(data)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def request_of(path: str, body: Any) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(data)}\r\n"
    return f"{head}Content-Type: application/json\r\n\r\n".encode() + data


def _length(head: bytes) -> int:
    at = head.lower().index(b"content-length:")
    return int(head[at + 15 : head.index(b"\r\n", at)])


# ---- kills --------------------------------------------------------------------------------------


@dataclass
class Taught:
    """What clients have been told is kept, by id."""

    acknowledged: dict[str, str] = field(default_factory=dict)
    retries: int = 0


async def teach(
    port: int, name: str, texts: list[tuple[str, str]], taught: Taught, is_over: Callable[[], bool]
) -> None:
    """Teach rows of a client's own until it is over; repeat those whose answer is lost."""
    connection, i = Connection(port), 0
    while not is_over():
        text, answer = texts[i % len(texts)]
        id = f"{name}-{i}"
        body = {"row": f"{text} {id}", "answer": answer, "id": id}
        try:
            status, said = await connection.post("/api/models/mail/learn", body)
        except OSError:
            taught.retries += 1
            await asyncio.sleep(0.05)
            continue
        assert status == 200, said
        taught.acknowledged[id] = answer
        i += 1
    connection.close()


async def killed(
    server: Server, n_kills: int, n_clients: int, texts: list[tuple[str, str]],
    wait: Callable[[], float], each: Callable[[int], Awaitable[None]] | None = None,
) -> Taught:  # fmt: skip
    """Kill a server at moments that `wait` says, under teaching clients; return what they know.

    Each second kill is also after an answer since the last start, however slow the machine is.
    """
    taught, over = Taught(), asyncio.Event()
    clients = [
        asyncio.create_task(teach(server.port, f"c{i}", texts, taught, over.is_set))
        for i in range(n_clients)
    ]
    for kill in range(n_kills):
        known, end = len(taught.acknowledged), time.monotonic() + 60
        while kill % 2 and len(taught.acknowledged) == known and time.monotonic() < end:
            await asyncio.sleep(0.01)
        await asyncio.sleep(wait())
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        if each is not None:
            await each(kill)
        for client in clients:
            if client.done():
                client.result()
    over.set()
    await asyncio.gather(*clients)
    return taught


def lost_and_doubled(database: Path, taught: Taught) -> tuple[int, int, int, list[str]]:
    """Return the acknowledged rows that a database lacks, those that it has twice, all that it has,
    and what differs from a replay."""
    from kesler.durable import Journal

    with Journal(database) as journal:
        mail = journal.open("mail")
        rows = [*mail.remaining()]
        kept = {each.id: each.current for each in rows}
        lost = sum(kept.get(id) != answer for id, answer in taught.acknowledged.items())
        texts = [each.row for each in rows]
        return lost, len(texts) - len(set(texts)), len(rows), journal.check()

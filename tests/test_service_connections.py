"""Connections whose clients do not go on: they are closed, and others are answered meanwhile."""

import os
import select
import socket
import time
from functools import partial
from types import SimpleNamespace
from unittest.mock import Mock

import httpx2 as httpx
import pytest
import uvicorn

from kesler.service.connections import protocol_of
from serving import HOST, Server

WHOLE = f"GET /health HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
HALF = WHOLE[:-4]  # in the middle of a header
BODY = b"POST /api/models HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{"
MOST, MANY = 60, 300
SECONDS = 30  # after which a test fails


@pytest.fixture
def server(request, tmp_path):
    """A server of at most 60 connections, which waits for two seconds, or as long as is asked."""
    patience = getattr(request, "param", "2")
    options = ("--no-tokens", "--max-connections", str(MOST), "--patience", patience)
    with Server(tmp_path / "desk.db", options) as started:
        yield started


@pytest.fixture
def connect(server):
    opened = []

    def connect():
        opened.append(socket.create_connection((HOST, server.port), SECONDS))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


def ask(connection):
    """Send a request on a connection, and return the status of its answer."""
    connection.sendall(WHOLE)
    return answer_of(connection)


def answer_of(connection):
    received = b""
    while not received.endswith(b"}"):
        piece = connection.recv(10_000)
        assert piece, "the connection has been closed"
        received += piece
    return int(received[9:12])


def rest_of(connection):
    """Return all that comes until a connection is closed."""
    try:
        return b"".join(iter(partial(connection.recv, 10_000), b""))
    except ConnectionResetError:
        return b""


SENT = {"nothing": b"", "whole": WHOLE, "half": HALF, "second": WHOLE + HALF, "body": BODY}


@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
def test_many_connections_that_do_not_go_on_are_closed_and_others_answered(server, connect, sent):
    with httpx.Client() as steady:
        assert steady.get(f"{server.url}/health").is_success
        silent = []
        for i in range(MANY):
            silent.append(connect())
            silent[-1].sendall(sent)
            if i % 10 == 0:  # on a connection of before, and on a new one
                assert steady.get(f"{server.url}/health").is_success
                assert httpx.get(f"{server.url}/health").is_success
        for each in silent:
            assert rest_of(each).count(b"HTTP/1.1") <= 1
        assert httpx.get(f"{server.url}/health").is_success


@pytest.mark.parametrize("server", ["600"], indirect=True)
def test_connections_that_were_closed_take_no_room(server, connect):
    first = connect()
    assert ask(first) == 200
    for _ in range(MOST + 5):
        answer = httpx.get(f"{server.url}/health")
        assert answer.is_success and "server" not in answer.headers
    assert ask(first) == 200


class Loop:
    """Timers without a clock, which are called in the order of their times."""

    def __init__(self):
        self.timers, self.works = [], []

    def call_later(self, seconds, work):
        timer = SimpleNamespace(seconds=seconds, work=work)
        timer.cancel = lambda: self.timers.remove(timer) if timer in self.timers else None
        self.timers.append(timer)
        return timer

    def create_task(self, work, **options):
        self.works.append(work)
        return Mock()

    def run_timers(self):
        for each in sorted(self.timers, key=lambda timer: timer.seconds):
            self.timers.remove(each)
            each.work()


@pytest.fixture
def patient():
    loop = Loop()
    config = uvicorn.Config(print, http=protocol_of(3.0, 9), interface="asgi3")
    config.load()
    found = config.http_protocol_class(
        config=config, server_state=uvicorn.server.ServerState(), app_state={}, _loop=loop
    )
    transport = Mock(**{"get_extra_info.return_value": None, "is_closing.return_value": False})
    found.connection_made(transport)
    yield found, transport, loop
    for each in loop.works:
        each.close()


def test_a_client_that_reads_on_in_time_is_not_left(patient):
    connection, transport, loop = patient
    connection.data_received(WHOLE)
    for _ in range(2):
        connection.pause_writing()
        assert [each.seconds for each in loop.timers] == [3.0]
        connection.resume_writing()
        assert loop.timers == []
    connection.pause_writing()
    loop.run_timers()
    assert transport.abort.call_count == 1


@pytest.mark.parametrize("sent", [b"", HALF, WHOLE], ids=["nothing", "half", "whole"])
def test_a_connection_that_is_lost_leaves_no_timer(patient, sent):
    connection, transport, loop = patient
    assert [each.seconds for each in loop.timers] == [3.0]
    connection.data_received(sent)
    if sent == WHOLE:
        assert loop.timers == []
        connection.pause_writing()
    assert len(loop.timers) == 1
    connection.connection_lost(OSError())
    assert loop.timers == [] and transport.abort.call_count == 0


@pytest.mark.parametrize("server", ["600"], indirect=True)
def test_the_connection_that_is_silent_for_longest_makes_room(connect):
    first, second, *others = [connect() for _ in range(MOST)]
    assert ask(second) == ask(first) == 200
    for each in others:
        assert ask(each) == 200
    assert ask(first) == 200
    new = connect()
    assert ask(new) == ask(first) == 200
    assert rest_of(second) == b""
    assert ask(others[0]) == 200


@pytest.mark.parametrize("before", [b"", WHOLE], ids=["first", "second"])
def test_headers_that_come_byte_by_byte_do_not_come_for_ever(connect, before):
    slow, end = connect(), time.monotonic() + SECONDS
    slow.sendall(before)
    if before:
        assert answer_of(slow) == 200
    slow.sendall(HALF)
    while not select.select([slow], [], [], 0.05)[0]:
        assert time.monotonic() < end
        slow.sendall(b"x")
    assert rest_of(slow) == b""


@pytest.fixture
def deaf(server, connect):
    """A connection whose client has asked for 6 MB and reads nothing, and how often it asked.

    The system keeps less than that for it.
    """
    connection = connect()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    length = len(httpx.get(f"{server.url}/openapi.json").content)
    n = 6_000_000 // length
    connection.sendall(WHOLE.replace(b"/health", b"/openapi.json") * n)
    assert connection.recv(1) == b"H"
    return connection, n


def test_clients_that_do_not_read_are_left(server, deaf):
    connection, n = deaf
    folder, end = f"/proc/{server.process.pid}/fd", time.monotonic() + SECONDS
    before = len(os.listdir(folder))
    while len(os.listdir(folder)) >= before:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert rest_of(connection).count(b"HTTP/1.1 200") < n


@pytest.mark.parametrize("server", ["600"], indirect=True)
def test_who_is_being_answered_is_not_closed_for_others(connect, deaf):
    connection, n = deaf
    others = [connect() for _ in range(MOST + 9)]
    assert ask(others[-1]) == 200
    connection.sendall(WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert rest_of(connection).count(b"TTP/1.1 200") == n + 1


def test_a_client_that_leaves_while_it_sends_a_body_is_no_failure(desk, caplog):
    received = iter([{"type": "http.request", "body": b"{", "more_body": True}])
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/models",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8000")],
    }
    sent = []

    async def receive():
        return next(received, {"type": "http.disconnect"})

    async def send(message):
        sent.append(message)

    desk.portal.call(desk.app, scope, receive, send)
    assert (sent[0]["status"], sent[1]["body"]) == (400, b"")
    assert caplog.text == ""

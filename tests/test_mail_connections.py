"""Connections that end within TLS or stand still, and folders whose names need care."""

import random
import socket
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest

from kesler.durable import Journal
from mailserver import PASSWORD, Dovecot, Person, message, needs_dovecot

pytest.importorskip("imapclient", reason="needs the extra mail")

from kesler.mail.imap import Server, ServerError
from kesler.mail.settings import MailSettings, read_settings
from kesler.mail.sorter import Sorter

pytestmark = needs_dovecot


class Line:
    """What is between a client and a server, and does harm after some bytes of the server.

    Parameters
    ----------
    harm : "end" closes the connection, "silence" sends nothing more, "noise" sends bytes that are
        no TLS.
    """

    def __init__(self, port, harm, after):
        self.harm, self.left, self.target = harm, after, port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open, self._threads = [self._listener], []
        self._begin(self._accept)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for each in self._open:
            each.close()

    def _begin(self, target, *given):
        self._threads.append(Thread(target=target, args=given, daemon=True))
        self._threads[-1].start()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
                self._open += [client, server]
                self._begin(self._pass, client, server, False)
                self._begin(self._pass, server, client, True)

    def _pass(self, source, sink, is_harmed):
        with suppress(OSError):
            while piece := source.recv(4096):
                if is_harmed:
                    self.left -= len(piece)
                    if self.left < 0:
                        self._do_harm(sink)
                        return
                sink.sendall(piece)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _do_harm(self, sink):
        if self.harm == "noise":
            sink.sendall(b"* OK this is no TLS\r\n" * 100)
        if self.harm != "silence":
            sink.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def dovecot():
    with TemporaryDirectory(prefix="dc") as folder, Dovecot(Path(folder)) as server:
        yield server


@pytest.mark.parametrize("harm", ["end", "silence", "noise"])
@pytest.mark.parametrize("after", [0, 1500, 4000, 9000])  # within the handshake and behind it
def test_connections_that_fail_within_tls_change_nothing(dovecot, tmp_path, harm, after):
    user = f"{harm}{after}"
    settings = read_settings(str(dovecot.settings(tmp_path / "mail.toml", user)))
    with Person(dovecot, user) as person:
        person.create("Bills")
        for number in range(40):
            person.append("Bills", message(number, "invoice payment due"))
    with Journal(tmp_path / "mail.db") as journal, Line(dovecot.tls, harm, after) as line:
        broken = MailSettings(settings.values | {"port": line.port}, settings.folder)
        with (
            pytest.raises(ServerError, match=r"localhost:\d+ has|the connection to localhost"),
            Server(broken, PASSWORD, seconds=0.5) as server,
        ):
            [*Sorter(journal, settings).look(server, predict=False)]
        sorter = Sorter(journal, settings)
        with Server(settings, PASSWORD) as server:
            [*sorter.look(server, predict=False)]
            assert [*sorter.look(server)] == []
        assert [each.id for each in sorter.model.remaining()] == [
            f"<{number}@example.org>" for number in range(40)
        ]


@pytest.mark.parametrize("separator", ["/", ".", "^"])
def test_folders_within_folders_of_names_in_all_scripts(tmp_path, separator):
    """They are classes by the names that people see, and messages are moved into them."""
    sent = {"B&APw-ro": "Büro", "&ZeVnLIqe-": "日本語", "R&-D": "R&D", "a ~ *'": "a ~ *'"}
    outer = "Kunden"
    names = {f"{outer}{separator}{raw}": f"{outer}{separator}{own}" for raw, own in sent.items()}
    with (
        TemporaryDirectory(prefix="dc") as folder,
        Dovecot(Path(folder), layout=":LAYOUT=index", separator=separator) as dovecot,
    ):
        path = dovecot.settings(tmp_path / "mail.toml", "ann", action="move", error=0.4)
        settings, rng = read_settings(str(path)), random.Random(0)
        with Person(dovecot, "ann") as person, Journal(tmp_path / "mail.db") as journal:
            person.create(*names)
            for number in range(80):
                raw = rng.choice([*names])
                person.append(raw, message(number, f"word{[*names].index(raw)} again"))
            sorter = Sorter(journal, settings)
            with Server(settings, PASSWORD) as server:
                assert len([*sorter.look(server, predict=False)]) == 80
                assert {*sorter.model.classes_} == {*names.values()}
                for i, raw in enumerate(names):
                    dovecot.deliver("ann", message(100 + i, f"word{i} again"))
                    done = [each[:3] for each in sorter.look(server)]
                    identity = f"<{100 + i}@example.org>"
                    assert ("moved", identity, names[raw]) in done
                    assert person.numbers(raw, identity)

"""Tokens of OAuth2 and a real server, which asks an authority of the test whether they hold."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest

pytest.importorskip("imapclient", reason="needs the extra mail")

from kesler.cli.mail import connected
from kesler.durable import Journal
from kesler.mail.imap import LoginError, Server
from kesler.mail.passwords import secret_of
from kesler.mail.settings import read_settings
from kesler.mail.sorter import Sorter
from kesler.mail.watching import watch
from mailserver import Dovecot, Person, message, needs_dovecot

pytestmark = needs_dovecot

PASSDB = """
auth_mechanisms = plain {mechanisms}
auth_failure_delay = 0
passdb {{
  driver = oauth2
  mechanisms = {mechanisms}
  args = {root}/oauth2.conf
}}
"""
ASKED = """
tokeninfo_url = http://127.0.0.1:{port}/token?t=
introspection_mode = auth
username_attribute = user
force_introspection = no
"""


class Authority:
    """A server that says of whom a token is, as long as it holds."""

    def __init__(self):
        self.tokens: dict[str, str] = {}
        self.n_refused = 0
        authority = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                user = authority.tokens.get(self.path.rpartition("=")[2])
                authority.n_refused += user is None
                answer = json.dumps({"user": user} if user else {"error": "expired"}).encode()
                self.send_response(200 if user else 401)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(params=["xoauth2", "oauthbearer", "xoauth2 oauthbearer"])
def servers(request):
    """A Dovecot that takes tokens by some mechanisms, and its authority."""
    with TemporaryDirectory(prefix="dc") as folder, Authority() as authority:
        root = Path(folder)
        (root / "oauth2.conf").write_text(ASKED.format(port=authority.port))
        extra = PASSDB.format(mechanisms=request.param, root=root)
        with Dovecot(root, extra=extra) as dovecot:
            yield dovecot, authority


def test_a_token_that_expires_is_asked_for_again(servers, tmp_path):
    """The connections of a watch end, and its command then prints the old token once more."""
    dovecot, authority = servers
    printed = tmp_path / "token"
    command = f"oauth2:cat {printed}"
    path = dovecot.settings(tmp_path / "mail.toml", "ann", password=command)
    settings = read_settings(str(path))
    authority.tokens = {"first": "ann"}
    printed.write_text("first\n")
    with Person(dovecot, "ann") as person:
        person.create("Bills")
        person.append("Bills", message(1, "invoice"))
    done, pauses, opened = [], [], []

    def connect():
        opened.append(connected(settings))
        return opened[-1]

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:  # the command prints a new token from now on
            authority.tokens = {"second": "ann"}
            printed.write_text("second\n")

    with Journal(tmp_path / "mail.db") as journal:
        for each in watch(connect, Sorter(journal, settings), pause=pause):
            done.append(each[:2])
            if len(done) == 2:
                break
            authority.tokens = {}  # the token has expired, and the connection ends
            with Person(dovecot, "ann") as person:
                person.append("Bills", message(2, "invoice"))
            for server in opened:
                server.close()
    assert done == [("learnt", "<1@example.org>"), ("learnt", "<2@example.org>")]
    assert authority.n_refused == 1 and len(pauses) == 2


def test_tokens_of_others_are_refused(servers, tmp_path):
    dovecot, authority = servers
    authority.tokens = {"of-bob": "bob"}
    path = dovecot.settings(tmp_path / "mail.toml", "ann", password="oauth2:echo of-bob")
    settings = read_settings(str(path))
    with pytest.raises(LoginError, match="refuses the user ann"):
        Server(settings, secret_of(settings))
    with pytest.raises(LoginError, match="refuses the user ann"):
        Server(settings, "none")

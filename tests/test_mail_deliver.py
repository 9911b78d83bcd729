"""The filter of delivery: folders from a server, with procmail and maildrop, and no mail lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

import kesler.mail.deliver
from kesler import OnlineClassifier
from kesler.durable import Journal
from kesler.mail.known import Known
from kesler.mail.messages import read, row_of
from kesler.mail.threads import Threads
from serving import HOST, Server, free_port

SCRIPT = kesler.mail.deliver.__file__
MAIL = {
    "bills": b"From: shop@a.org\nSubject: Invoice\n\nPlease pay this invoice\n",
    "friends": b"From: bob@b.org\nSubject: Lunch\n\nSoup at one?\n",
}


def deliver(message, *options, **environment):
    """Run the client as a script; return its process."""
    command = [sys.executable, "-I", "-S", SCRIPT, *options]
    environment = os.environ | environment
    return subprocess.run(command, input=message, capture_output=True, env=environment, timeout=60)


class Fake:
    """A server of one answer, which keeps what it was asked."""

    def __init__(self, *pieces, is_silent=False):
        self.pieces, self.is_silent, self.asked = pieces, is_silent, b""
        self.listener = socket.create_server((HOST, 0))
        self.url = f"http://{HOST}:{self.listener.getsockname()[1]}"
        self.thread = Thread(target=self.answer, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.join(30)
        self.listener.close()

    def is_asked(self):
        head, _, body = self.asked.partition(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", head)
        return length is not None and len(body) == int(length[1])

    def answer(self):
        connection, _ = self.listener.accept()
        with connection:
            while not self.is_asked():
                self.asked += connection.recv(1 << 16)
            for piece in self.pieces:
                connection.sendall(piece)
            while self.is_silent and connection.recv(1 << 16):
                pass


def said(status=b"200 OK", **answer):
    return b"HTTP/1.1 %s\r\ncontent-type: x\r\n\r\n" % status + json.dumps(answer).encode()


# ---- what it prints -------------------------------------------------------------------------


def test_a_folder_is_printed_if_the_model_is_sure():
    answer = said(label="bills", confidence=0.95)
    with Fake(answer[:20], answer[20:]) as fake:
        options = ("--url", fake.url, "--model", "my-mail")
        done = deliver(MAIL["bills"], *options, KESLER_TOKEN="secret")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"bills\n", b"")
    head, _, body = fake.asked.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /api/models/my-mail/predict HTTP/1.1\r\n")
    assert b"Content-Type: message/rfc822" in head and b"Authorization: Bearer secret" in head
    assert body == MAIL["bills"]


@pytest.mark.parametrize("confidence", [0.89, None])
def test_the_default_is_printed_if_it_is_not(confidence):
    with Fake(said(label="bills", confidence=confidence)) as fake:
        done = deliver(MAIL["bills"], "--url", fake.url, "--default", "other")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"other\n", b"")


FAULTS = {
    "an error": said(b"500 Internal Server Error", error="the server failed"),
    "an error with a label": said(b"500 Internal Server Error", label="bills", confidence=0.99),
    "no model": said(b"404 Not Found", error="there is no model"),
    "garbage": b"\0\xff" * 100,
    "no answer": b"",
    "half an answer": said(label="bills", confidence=0.99)[:-5],
    "no label": said(confidence=0.99),
    "a folder above": said(label="../../etc/passwd", confidence=0.99),
    "a folder of the root": said(label="/etc", confidence=0.99),
    "a folder of two lines": said(label="a\nb", confidence=0.99),
    "a folder of a control character": said(label="a\0b", confidence=0.99),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_the_server_says_mail_goes_to_the_default_or_is_tried_again(fault):
    for options, expected in (([], (0, b"INBOX\n")), (["--tempfail"], (75, b""))):
        with Fake(FAULTS[fault]) as fake:
            done = deliver(MAIL["bills"], "--url", fake.url, *options)
        assert (done.returncode, done.stdout) == expected
        assert done.stderr.startswith(b"kesler: ")
        assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}", "https://127.0.0.1:1", "nowhere"])
def test_without_a_server_mail_goes_to_the_default_or_is_tried_again(url):
    url = url.format(port=free_port())
    for options, expected in (([], (0, b"INBOX\n")), (["--tempfail"], (75, b""))):
        done = deliver(MAIL["bills"], "--url", url, *options)
        assert (done.returncode, done.stdout) == expected


def test_a_silent_server_is_not_waited_for():
    with Fake(is_silent=True) as fake:
        done = deliver(MAIL["bills"], "--url", fake.url, "--timeout", "0.2")
    assert (done.returncode, done.stdout) == (0, b"INBOX\n")


@pytest.mark.parametrize("options", [["--wrong"], ["--min-confidence", "2"], ["--timeout", "x"]])
def test_a_wrong_option_returns_75_and_no_other_status(options):
    done = deliver(MAIL["bills"], *options)
    assert (done.returncode, done.stdout) == (75, b"")


def test_a_closed_standard_output_returns_75():
    with Fake(said(label="bills", confidence=1.0)) as fake, open("/dev/full", "wb") as full:
        command = [sys.executable, "-I", "-S", SCRIPT, "--url", fake.url]
        done = subprocess.run(command, input=MAIL["bills"], stdout=full, timeout=60)
    assert done.returncode == 75


def test_all_of_a_large_message_is_read_and_its_beginning_sent():
    with Fake(said(label="bills", confidence=0.99)) as fake:
        command = [sys.executable, "-I", "-S", SCRIPT, "--url", fake.url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdin.write(MAIL["bills"] + b"x" * 5_000_000)  # fails if it is not read
            process.stdin.close()
            assert process.stdout.read() == b"bills\n"
    assert b"Content-Length: 262144\r\n" in fake.asked


def test_the_client_imports_nothing_of_kesler_nor_anything_large():
    code = (
        "import runpy, sys; sys.argv = ['deliver', '--url', 'http://127.0.0.1:1']\n"
        f"try: runpy.run_path({SCRIPT!r}, run_name='__main__')\n"
        "except SystemExit: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], input=b"", capture_output=True)
    loaded = set(done.stdout.decode().split())
    assert {"argparse", "socket"} <= loaded
    large = {"numpy", "email", "http", "urllib", "ssl", "encodings.idna", "shutil", "bz2", "lzma"}
    assert not loaded & {"kesler", *large}


def test_the_command_imports_no_more_of_kesler_than_the_client():
    """Its time is that of the interpreter and of these modules."""
    code = (
        "import sys; sys.argv = ['kesler', 'mail', 'deliver', '--url', 'http://127.0.0.1:1']\n"
        "before = {*sys.modules}\nfrom kesler.__main__ import run\nrun()\n"
        "print(*({*sys.modules} - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"", capture_output=True)
    folder, _, loaded = done.stdout.decode().partition("\n")
    own = {name for name in loaded.split() if name.startswith("kesler")}
    assert folder == "INBOX"
    assert own == {"kesler", "kesler.__main__", "kesler.mail", "kesler.mail.deliver"}
    assert not {*loaded.split()} & {"lazy_loader", "typing", "importlib.util", "email", "http"}


# ---- real programs --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """Serve a model of mail."""
    pytest.importorskip("starlette", reason="kesler[service] is not installed")
    database = tmp_path_factory.mktemp("desk") / "mail.db"
    with Journal(database) as journal:
        model = journal.open("mail", OnlineClassifier())
        for i in range(60):
            folder = ("bills", "friends")[i % 2]
            model.learn_one(row_of(MAIL[folder]), folder, id=f"m{i}")
    with Server(database) as server:
        yield server


def delivered(root):
    """Return the folders of the messages under a directory."""
    return {
        path.parent.parent.name: path.read_bytes()
        for path in Path(root).rglob("*")
        if path.parent.name == "new"
    }


def test_the_command_asks_the_server(service):
    for folder, message in MAIL.items():
        command = [sys.executable, "-m", "kesler", "mail", "deliver", "--url", service.url]
        done = subprocess.run([*command, "--min-confidence", "0.5"], input=message,
                              capture_output=True, timeout=60)  # fmt: skip
        assert (done.returncode, done.stdout.decode()) == (0, f"{folder}\n"), done.stderr


def test_the_server_knows_the_threads_that_the_sorter_of_mail_keeps(tmp_path):
    """An answer without a word that was learnt is put where the message it answers is."""
    pytest.importorskip("starlette", reason="kesler[service] is not installed")
    asked = {
        folder: b"Message-ID: <%d@a>\nFrom: ann@a.org\nSubject: %s\n\n%s\n" % (i, word, word)
        for i, (folder, word) in enumerate([("bills", b"invoice"), ("friends", b"lunch")])
    }
    with Journal(tmp_path / "mail.db") as journal:
        model = journal.open("mail", OnlineClassifier())
        known = Known(model)
        for i in range(60):
            folder = ("bills", "friends")[i % 2]
            found = read(asked[folder].replace(b"@a>", b"@a%d>" % i if i > 1 else b"@a>"))
            model.learn_one(found.row(known.threads), folder, id=f"m{i}")
            known.file(found.keys, folder)
        expected = Threads({**known.threads.folders})
        with Server(tmp_path / "mail.db") as server:
            for i, folder in enumerate(asked):
                reply = b"In-Reply-To: <%d@a>\nFrom: new%d@b.org\nSubject: x\n\nzzz\n" % (i, i)
                options = ("--url", server.url, "--min-confidence", "0")
                done = deliver(reply, *options)
                guess = model.predict_one(row_of(reply, expected))
                assert (done.stdout.decode().strip(), guess) == (folder, folder)


def test_a_message_is_predicted_as_its_row(service):
    import urllib.request

    from kesler.service import Client

    for message in (*MAIL.values(), b"", b"\0\xff" * 300):
        request = urllib.request.Request(
            f"{service.url}/api/models/mail/predict", message, {"Content-Type": "message/rfc822"}
        )
        answer = json.loads(urllib.request.urlopen(request, timeout=30).read())
        assert answer == Client(service.url, "mail").predict(row_of(message))


PROCMAIL = """
PATH={path}
SHELL=/bin/sh
MAILDIR={root}
DEFAULT={root}/lost/
LOGFILE={root}/log
:0
FOLDER=| {command}
:0
* FOLDER ?? ^^^^
{{
  EXITCODE=75
  HOST
}}
:0
$FOLDER/
"""
MAILDROP = """
FOLDER=`{command}`
if ($RETURNCODE != 0)
{{
  EXITCODE=75
  exit
}}
to "{root}/$FOLDER/"
"""


def filtered(program, root, message, url, *options):
    """Deliver a message by procmail or maildrop; return the exit status."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    for name in ("bills", "friends", "INBOX", "lost"):
        for part in ("cur", "new", "tmp"):
            (root / name / part).mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-I", "-S", SCRIPT, "--min-confidence", "0.5", "--url", url, *options]
    rules = root / "rules"
    text = {"procmail": PROCMAIL, "maildrop": MAILDROP}[program]
    rules.write_text(text.format(root=root, path=os.environ["PATH"], command=" ".join(words)))
    rules.chmod(0o600)
    environment = os.environ | {"HOME": str(root)}
    done = subprocess.run([program, str(rules)], input=message, env=environment,
                          capture_output=True, timeout=60)  # fmt: skip
    return done.returncode


@pytest.mark.parametrize("program", ["procmail", "maildrop"])
def test_filters_deliver_into_the_folder(program, service, tmp_path):
    for folder, message in MAIL.items():
        root = tmp_path / folder
        root.mkdir()
        assert filtered(program, root, message, service.url) == 0
        assert [*delivered(root)] == [folder]
        assert message.rstrip() in delivered(root)[folder]


@pytest.mark.parametrize("program", ["procmail", "maildrop"])
def test_filters_lose_no_mail_where_no_server_is(program, tmp_path):
    url = f"http://{HOST}:{free_port()}"
    assert filtered(program, tmp_path, MAIL["bills"], url) == 0
    assert [*delivered(tmp_path)] == ["INBOX"]
    again = tmp_path / "again"
    again.mkdir()
    assert filtered(program, again, MAIL["bills"], url, "--tempfail") == 75
    assert delivered(again) == {}

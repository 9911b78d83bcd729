"""Servers with mailboxes of their own on 127.0.0.1, and a person who uses them."""

from __future__ import annotations

import imaplib
import os
import shutil
import signal
import smtplib
import socket
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "s3cret"

missing = [
    name
    for name, path in {
        "dovecot": shutil.which("dovecot", path=f"{os.environ['PATH']}:/usr/sbin"),
        "dovecot-imapd": Path("/usr/lib/dovecot/imap").exists(),
        "dovecot-lmtpd": Path("/usr/lib/dovecot/lmtp").exists(),
        "openssl": shutil.which("openssl"),
        "root, as Dovecot needs": os.geteuid() == 0,
    }.items()
    if not path
]
needs_dovecot = pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")

SETTINGS = """
base_dir = {root}/run
state_dir = {root}/state
log_path = {root}/log
protocols = imap lmtp
listen = 127.0.0.1
ssl = yes
ssl_cert = <{root}/server.pem
ssl_key = <{root}/server.key
disable_plaintext_auth = no
mail_location = maildir:{root}/mail/%u{layout}
mail_uid = mail
mail_gid = mail
first_valid_uid = 1
first_valid_gid = 1
auth_mechanisms = plain login xoauth2
mail_max_userip_connections = 50
{extra}
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid=mail gid=mail home={root}/mail/%u allow_all_users=yes
}}
service imap-login {{
  process_min_avail = 1
  inet_listener imap {{
    port = {plain}
  }}
  inet_listener imaps {{
    port = {tls}
    ssl = yes
  }}
}}
service lmtp {{
  unix_listener lmtp {{
    mode = 0666
  }}
  inet_listener lmtp {{
    address = 127.0.0.1
    port = {lmtp}
  }}
}}
namespace inbox {{
  inbox = yes
  separator = {separator}
  mailbox Trash {{
    special_use = \\Trash
    auto = create
  }}
  mailbox Ablage {{
    special_use = \\Archive
    auto = create
  }}
}}
"""


def free_ports(n: int) -> list[int]:
    found = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [each.getsockname()[1] for each in found]
    for each in found:
        each.close()
    return ports


def wait_for(port: int) -> None:
    """Wait until something answers at a port."""
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"nothing answers at the port {port}")


def certificates(root: Path) -> None:
    """Make an authority, and a certificate of 127.0.0.1 and localhost that it has signed."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=root, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
            "-subj", "/CN=Authority", "-addext", "keyUsage=critical,keyCertSign")  # fmt: skip
    openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (root / "names").write_text(
        "subjectAltName=DNS:localhost,IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n"
    )
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-out", "server.pem", "-days", "2", "-extfile", "names")  # fmt: skip


class MailServer:
    """A server with a folder of its own: what Dovecot and others have in common."""

    separator = "/"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.plain, self.tls, self.lmtp = free_ports(3)
        self._process: subprocess.Popen[bytes] | None = None

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self, *command: object, **environment: str) -> None:
        """Start the program of the server, and wait until it answers."""
        words, env = [str(each) for each in command], os.environ | environment
        self._process = subprocess.Popen(words, env=env, start_new_session=True)
        for port in (self.tls, self.plain, self.lmtp):
            wait_for(port)

    def stop(self) -> None:
        """End the server with the processes of its connections, which may outlive it otherwise."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait(20)
            self._process = None

    def deliver(self, user: str, message: bytes) -> None:
        """Deliver a message by LMTP."""
        lines = message.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        with smtplib.LMTP("127.0.0.1", self.lmtp) as client:
            client.sendmail("sender@example.org", [user], lines)

    def settings(self, path: Path, user: str, **values: Any) -> Path:
        """Write a file of settings for a user."""
        given = {"server": "localhost", "port": self.tls, "user": user, "every": 1}
        given |= {"ca_file": str(self.root / "ca.pem"), "password": "environment:MAIL_PASSWORD"}
        given |= {"never": ["Trash", "Ablage"], "database": f"{user}.db"} | values
        lines = [f"{name} = {_toml(value)}" for name, value in given.items()]
        path.write_text("\n".join(lines) + "\n", "utf-8")
        return path


class Dovecot(MailServer):
    """A server in a folder, as long as a block runs."""

    def __init__(
        self, root: Path, *, layout: str = "", separator: str = "/", extra: str = ""
    ) -> None:
        super().__init__(root)
        self.separator = separator
        self._given = {"layout": layout, "separator": separator, "extra": extra}

    def __enter__(self) -> Dovecot:
        for name in ("run", "state", "mail"):
            (self.root / name).mkdir(exist_ok=True)
        shutil.chown(self.root / "mail", "mail", "mail")
        self.root.chmod(0o755)
        certificates(self.root)
        values = {"root": self.root, "password": PASSWORD, "plain": self.plain}
        values |= {"tls": self.tls, "lmtp": self.lmtp, **self._given}
        (self.root / "dovecot.conf").write_text(SETTINGS.format(**values))
        self.start()
        return self

    def start(self) -> None:
        path = f"{os.environ['PATH']}:/usr/sbin"
        self._run(shutil.which("dovecot", path=path), "-F", "-c", self.root / "dovecot.conf")


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value) if isinstance(value, (int, float)) else f'"{value}"'


class Person:
    """A person with a mail program, who moves messages by their Message-IDs."""

    def __init__(self, server: MailServer, user: str) -> None:
        context = ssl.create_default_context(cafile=str(server.root / "ca.pem"))
        self._client = imaplib.IMAP4_SSL("localhost", server.tls, ssl_context=context)
        self._client.login(user, PASSWORD)

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.shutdown()

    def _do(self, command: str, *arguments: str) -> list[Any]:
        kind, found = getattr(self._client, command)(*arguments)
        assert kind == "OK", (command, arguments, found)
        return found

    def create(self, *folders: str) -> None:
        for name in folders:
            self._do("create", f'"{name}"')

    def rename(self, old: str, new: str) -> None:
        self._do("rename", f'"{old}"', f'"{new}"')

    def delete(self, folder: str) -> None:
        self._do("delete", f'"{folder}"')

    def folders(self) -> list[str]:
        found = self._do("list")
        return sorted(each.decode().rpartition(' "')[2].strip('"').split(" ")[-1] for each in found)

    def numbers(self, folder: str, identity: str = "") -> list[str]:
        self._do("select", f'"{folder}"')
        search = f'HEADER Message-ID "{identity}"' if identity else "ALL"
        return self._do("uid", "SEARCH", search)[0].decode().split()

    def move(self, identity: str, source: str, target: str, *, in_two_steps: bool = False) -> None:
        (number,) = self.numbers(source, identity)
        if not in_two_steps:
            self._do("uid", "MOVE", number, f'"{target}"')
            return
        self._do("uid", "COPY", number, f'"{target}"')
        self._do("uid", "STORE", number, "+FLAGS.SILENT", "(\\Deleted)")
        self._do("expunge")

    def copy(self, identity: str, source: str, target: str) -> None:
        (number,) = self.numbers(source, identity)
        self._do("uid", "COPY", number, f'"{target}"')

    def expunge(self, identity: str, folder: str) -> None:
        for number in self.numbers(folder, identity):
            self._do("uid", "STORE", number, "+FLAGS.SILENT", "(\\Deleted)")
        self._do("expunge")

    def append(self, folder: str, message: bytes) -> None:
        self._do("append", f'"{folder}"', "", "", message.replace(b"\n", b"\r\n"))

    def flags(self, identity: str, folder: str) -> str:
        (number,) = self.numbers(folder, identity)
        return str(self._do("uid", "FETCH", number, "(FLAGS)")[0])

    def bodies(self, folder: str) -> list[bytes]:
        """Return the messages of a folder as they are, sorted."""
        numbers = self.numbers(folder)
        if not numbers:
            return []
        found = self._do("uid", "FETCH", ",".join(numbers), "(BODY.PEEK[])")
        return sorted(each[1] for each in found if isinstance(each, tuple))


def message(number: int, words: str, sender: str = "ann@example.org", *, id: str = "") -> bytes:
    """A message whose date follows its number."""
    identity = id or f"<{number}@example.org>"
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(1.7e9 + 60 * number))
    return (
        f"Message-ID: {identity}\nDate: {date}\nFrom: {sender}\nSubject: {words}\n\n"
        f"Number {number}: {words}\n"
    ).encode()

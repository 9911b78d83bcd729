"""A Cyrus with mailboxes of its own on 127.0.0.1.

Its package cannot be installed beside Dovecot's. KESLER_CYRUS is a folder in which it is unpacked,
as `.ci/run` does; without it, that of the system is used.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from mailserver import PASSWORD, MailServer, certificates

PLACE = Path(os.environ.get("KESLER_CYRUS", "/"))
PROGRAMS = PLACE / "usr/lib/cyrus/bin"

missing = [
    name
    for name, is_there in {
        "cyrus-imapd": (PROGRAMS / "master").exists() and (PROGRAMS / "imapd").exists(),
        "openssl": shutil.which("openssl"),
        "root, as Cyrus needs": os.geteuid() == 0,
    }.items()
    if not is_there
]
needs_cyrus = pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")

IMAPD = """
configdirectory: {root}/conf
partition-default: {root}/spool
cyrus_user: mail
cyrus_group: mail
sasl_pwcheck_method: saslauthd
sasl_saslauthd_path: {root}/passwords
sasl_mech_list: PLAIN
unixhierarchysep: yes
altnamespace: yes
autocreate_quota: 0
autocreate_post: yes
autocreate_inbox_folders: Trash | Ablage
xlist-trash: Trash
tls_server_cert: {root}/server.pem
tls_server_key: {root}/server.key
"""

CYRUS = """
START {{
  recover cmd="{programs}/ctl_cyrusdb -C {root}/imapd.conf -r"
}}
SERVICES {{
  imap cmd="{programs}/imapd -C {root}/imapd.conf" listen="127.0.0.1:{plain}"
  imaps cmd="{programs}/imapd -C {root}/imapd.conf -s" listen="127.0.0.1:{tls}"
  lmtp cmd="{programs}/lmtpd -C {root}/imapd.conf -a" listen="127.0.0.1:{lmtp}"
}}
EVENTS {{
}}
"""


class Cyrus(MailServer):
    """A server in a folder, as long as a block runs; users get mailboxes when they log in."""

    def __enter__(self) -> Cyrus:
        for name in ("db", "lock", "log", "msg", "proc", "socket"):
            (self.root / "conf" / name).mkdir(parents=True)
        (self.root / "spool").mkdir()
        self.root.chmod(0o755)
        certificates(self.root)
        values = {"root": self.root, "programs": PROGRAMS}
        values |= {"plain": self.plain, "tls": self.tls, "lmtp": self.lmtp}
        (self.root / "imapd.conf").write_text(IMAPD.format(**values))
        (self.root / "cyrus.conf").write_text(CYRUS.format(**values))
        for path in (self.root, *self.root.rglob("*")):
            shutil.chown(path, "mail", "mail")
        self._passwords = socket.socket(socket.AF_UNIX)
        self._passwords.bind(str(self.root / "passwords"))
        self._passwords.listen()
        (self.root / "passwords").chmod(0o777)
        self._thread = Thread(target=self._answer, daemon=True)
        self._thread.start()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        with suppress(OSError):
            self._passwords.shutdown(socket.SHUT_RDWR)
        self._passwords.close()
        self._thread.join(5)

    def start(self) -> None:
        options = ("-C", self.root / "imapd.conf", "-M", self.root / "cyrus.conf", "-D")
        libraries = sorted({str(each.parent) for each in PLACE.glob("usr/lib/*/libcyrus*.so.0")})
        self._run(
            PROGRAMS / "master", *options, "-p", self.root / "pid",
            LD_LIBRARY_PATH=":".join(libraries),
        )  # fmt: skip

    def _answer(self) -> None:
        """Answer as saslauthd does whether passwords are right."""
        with suppress(OSError):
            while True:
                connection, _ = self._passwords.accept()
                with connection, connection.makefile("rb") as given:
                    lengths = (struct.unpack(">H", given.read(2))[0] for _ in range(4))
                    _, password, *_ = [given.read(length) for length in lengths]
                    answer = b"OK" if password == PASSWORD.encode() else b"NO"
                    connection.sendall(struct.pack(">H", len(answer)) + answer)

"""Settings of a server: where it listens, what it refuses."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, fields

from kesler.errors import KeslerError
from kesler.service.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Settings:
    """What a server allows.

    Parameters
    ----------
    tokens : Tokens, default none
        Who may do what. Without tokens everybody who reaches the server may do everything.
    host : str, default "127.0.0.1"
        The address to listen on. Any but that of the same machine needs tokens.
    port : int, default 8000
        The port to listen on, 0 for a free one.
    max_body : int, default 1,048,576
        The largest body of a request in bytes, and the longest line of a stream. A larger one is
        refused with status 413 before it is read.
    max_import : int, default 67,108,864
        The largest file to import and the largest stream of lines, in bytes.
    max_rows : int, default 100,000
        The most rows of a request, of a file or of a stream.
    rate : float, default 5,000
        The most requests a second of each token, or of each address where there are no tokens;
        twice as many may come at once. Others are refused with status 429.
    patience : float, default 15
        The seconds for which the server waits: for the headers of a request from their first byte
        on, for the next bytes of its body, for the next request of a connection, and for a client
        to read more of its answer. The connection is closed then; a body is refused with status
        408.
    max_connections : int, default 500
        The most connections at a time. A new one beyond closes that which has sent nothing for
        longest, among those whose request is not being answered. More needs a file descriptor for
        each, of which the system must allow twice as many.
    history : int, default 100
        The most events on a page of the history.

    Raises
    ------
    KeslerError
        If a number is out of its range, or other machines could use the server without a token.

    Examples
    --------
    >>> Settings(host="0.0.0.0")
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: 0.0.0.0 is reached from other machines, so that tokens are needed: \
give --token-file or KESLER_TOKENS, or serve on 127.0.0.1
    """

    tokens: Tokens = field(default_factory=Tokens)
    host: str = "127.0.0.1"
    port: int = 8000
    max_body: int = 1 << 20
    max_import: int = 64 << 20
    max_rows: int = 100_000
    rate: float = 5000.0
    patience: float = 15.0
    max_connections: int = 500
    history: int = 100

    def __post_init__(self) -> None:
        for each in fields(self):
            value, least = getattr(self, each.name), 0 if each.name == "port" else 1
            if each.name in ("tokens", "host"):
                continue
            if not value >= least:
                raise KeslerError(f"{each.name}={value!r} is too small: give {least} or more")
        if self.port > 65535:
            raise KeslerError(f"port={self.port} does not exist: give 0 to 65535")
        if not len(self.tokens) and not is_local(self.host):
            raise KeslerError(
                f"{self.host} is reached from other machines, so that tokens are needed: give "
                "--token-file or KESLER_TOKENS, or serve on 127.0.0.1"
            )


def is_local(host: str) -> bool:
    """Return whether an address is reached from the same machine only.

    Examples
    --------
    >>> is_local("127.0.0.1"), is_local("0.0.0.0"), is_local("example.org")
    (True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

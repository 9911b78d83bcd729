"""What a sorter asks of a mailbox, which a server of IMAP and a Maildir both answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from kesler.errors import KeslerError
from kesler.mail.folders import Listed
from kesler.mail.known import Status
from kesler.mail.state import Folder

MOST_OF_HEADERS = 1 << 16
LONGEST_NAME = 400  # characters of the name of a folder


class ServerError(KeslerError):
    """The connection to a server has failed: it has to be made again."""


class LoginError(ServerError):
    """The server has refused the user, the password or the token."""


class RefusedError(ServerError):
    """The server has refused a command, and the connection goes on."""


class Opened(NamedTuple):
    """A folder that is open: its UIDVALIDITY, and the numbers of messages not deleted."""

    validity: int
    numbers: list[int]


class Server(Protocol):
    """A mailbox that answers. Its methods raise `ServerError`, or `RefusedError` for a folder."""

    @property
    def can_idle(self) -> bool:
        """Whether it tells of changes by itself."""

    def __enter__(self) -> Server:
        """Return itself."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: Any
    ) -> None:
        """Close it."""

    def close(self) -> None:
        """End the connection."""

    def folders(self) -> list[Listed]:
        """Return the folders."""

    def exists(self, name: str) -> bool:
        """Return whether a folder is there, asked for by itself."""

    def status(self, name: str) -> Status:
        """Return what is known of a folder without its messages; it changes with them."""

    def open(self, name: str) -> Opened:
        """Open a folder, and return the messages in it."""

    def reopen(self, name: str, former: Folder, since: int) -> Opened:
        """Open a folder as `open` does; it may ask for what has changed alone.

        Parameters
        ----------
        name : the folder.
        former : the folder as it was seen.
        since : the `modseq` of the status before it was seen.
        """

    def identities(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the identities of messages of the folder that is open, of those that are there."""

    def messages(self, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """Yield the first bytes of messages of the folder that is open, of those there."""

    def move(self, source: str, number: int, identity: str, target: str) -> bool:
        """Move a message; return whether it was there."""

    def mark(self, folder: str, number: int, identity: str, keyword: str) -> bool:
        """Give a message a keyword; return whether it was there."""

    def wait(self, seconds: float) -> bool:
        """Wait until something changes in the folder that is open; return whether it has."""

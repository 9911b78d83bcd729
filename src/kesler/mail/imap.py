"""A server of IMAP: all that is asked of one, and nothing is believed that it says without need.

Every error is raised as a `ServerError`, also those that the client's parser raises for answers
that are none.
"""

from __future__ import annotations

import imaplib
import ssl
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from kesler.errors import KeslerError
from kesler.mail.folders import Listed
from kesler.mail.identities import digest_of, identity_of
from kesler.mail.known import Status
from kesler.mail.messages import MOST_BYTES
from kesler.mail.server import (
    LONGEST_NAME,
    MOST_OF_HEADERS,
    LoginError,
    Opened,
    RefusedError,
    ServerError,
)
from kesler.mail.settings import MailSettings
from kesler.mail.state import Folder
from kesler.progress import LOGGER

SECONDS = 60.0
"""The time that the server has for an answer."""

AT_ONCE, WHOLE_AT_ONCE = 500, 50  # messages of which headers, or all, are asked for at once
LARGEST_LITERAL = MOST_BYTES + (1 << 16)

NAMED = "BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)]"
HEADERS = f"BODY.PEEK[HEADER]<0.{MOST_OF_HEADERS}>"
WHOLE = f"BODY.PEEK[]<0.{MOST_BYTES}>"

WRONG = (
    imaplib.IMAP4.error,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    RecursionError,
)
"""What the client raises when a server refuses, is silent, ends or answers with nonsense."""


class Server:
    """A connection to a server.

    Parameters
    ----------
    settings : the settings of the mailbox.
    secret : the password or the token.
    seconds : float, above 0
        The time that the server has for each answer.

    Raises
    ------
    KeslerError
        If the file of trusted certificates cannot be read.
    LoginError
        If the user or the password is refused.
    ServerError
        If the server cannot be reached, its certificate is not trusted, or it does not answer.
    """

    def __init__(self, settings: MailSettings, secret: str, seconds: float = SECONDS) -> None:
        self._name = f"{settings.server}:{settings.port_used}"
        self._raw: dict[str, bytes] = {}
        self._n_odd = 0
        self._opened = ""  # the folder that is open
        context = _trusting(settings)
        with self._in_words():
            self._client = _connected(settings, context, seconds)
        try:
            self._log_in(settings, secret)
            with self._in_words():
                self._client.folder_encode = False
                self._can_resync = self._enabled("QRESYNC")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, without a word to the server."""
        try:
            self._client.shutdown()
        except WRONG:
            pass  # it has ended by itself

    def _log_in(self, settings: MailSettings, secret: str) -> None:
        try:
            if settings.has_token:
                self._give_token(settings.user, secret)
            elif f"{settings.user}{secret}".isascii():
                self._client.login(settings.user, secret)
            else:  # which LOGIN has no form for
                self._client.plain_login(settings.user, secret)
        except imaplib.IMAP4.abort as error:
            raise self._error(error) from None
        except imaplib.IMAP4.error as error:
            if "[UNAVAILABLE]" in str(error):  # RFC 5530: nothing is known of the password
                raise ServerError(
                    f"{self._name} cannot check users for now ({error!s:.200}): try again later"
                ) from None
            raise LoginError(
                f"{self._name} refuses the user {settings.user} or the password: check both"
            ) from None
        except WRONG as error:
            raise self._error(error) from None

    def _give_token(self, user: str, token: str) -> None:
        """Log in by a token, in the way that more servers know, or else in that of RFC 7628."""
        offers = self._client.has_capability
        if offers("AUTH=OAUTHBEARER") and not offers("AUTH=XOAUTH2"):
            self._client.oauthbearer_login(user, token)
        else:
            self._client.oauth2_login(user, token)

    def _enabled(self, extension: str) -> bool:
        """Return whether the server offers an extension and has enabled it."""
        offers = all(self._client.has_capability(each) for each in ("ENABLE", extension))
        return offers and extension.encode() in self._client.enable(extension)

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except KeslerError:
            raise
        except imaplib.IMAP4.abort as error:
            raise self._error(error) from None
        except imaplib.IMAP4.error as error:
            raise RefusedError(f"{self._name} has refused a command ({error!s:.200})") from None
        except WRONG as error:
            raise self._error(error) from None

    def _error(self, error: BaseException) -> ServerError:
        if isinstance(error, ssl.SSLCertVerificationError):
            return ServerError(
                f"the certificate of {self._name} is not trusted ({error.verify_message}): check "
                "the name of the server, or give the file of its authority as ca_file"
            )
        if isinstance(error, TimeoutError):
            return ServerError(f"{self._name} has not answered in time: try again later")
        return ServerError(
            f"the connection to {self._name} has failed ({type(error).__name__}: {error!s:.200}): "
            "check the server, the port and the security, or try again later"
        )

    # ---- folders ----------------------------------------------------------------------------

    @property
    def can_idle(self) -> bool:
        """Whether the server tells of changes by itself."""
        with self._in_words():
            return bool(self._client.has_capability("IDLE"))

    def folders(self) -> list[Listed]:
        """Return the folders, without those of names that cannot be sent back."""
        with self._in_words():
            found = self._client.list_folders()
            listed = [_listed(*each) for each in found]
        by_name: dict[str, tuple[Listed, bytes]] = {}
        for each, raw in listed:
            if each is not None:
                by_name.setdefault(each.name, (each, raw))
        self._raw = {name: raw for name, (_, raw) in by_name.items()}
        self._warn_of_odd_names(len(listed) - len(by_name))
        return [each for each, _ in by_name.values()]

    def _warn_of_odd_names(self, n: int) -> None:
        if n != self._n_odd:
            LOGGER.warning(
                "%s: %d folders are left out, whose names cannot be sent back", self._name, n
            )
        self._n_odd = n

    def exists(self, name: str) -> bool:
        """Return whether a folder is there, asked for by itself."""
        with self._in_words():
            found = self._client.list_folders("", self._sent(name))
            return any(_listed(*each)[1] == self._sent(name) for each in found)

    def status(self, name: str) -> Status:
        """Return what is known of a folder without its messages."""
        wanted = ["UIDVALIDITY", "UIDNEXT", "MESSAGES"]
        with self._in_words():
            if self._client.has_capability("CONDSTORE"):
                wanted.append("HIGHESTMODSEQ")
            if name == self._opened:  # of which a server may say what it was when it was opened
                self._client.noop()
            found = self._client.folder_status(self._sent(name), wanted)
            return Status(*(_number(found.get(each.encode(), 0)) for each in wanted))

    def open(self, name: str, *, to_write: bool = False) -> Opened:
        """Open a folder, and return the messages in it."""
        with self._in_words():
            found = self._select(name, to_write)
            return Opened(_number(found[b"UIDVALIDITY"]), self._searched())

    def reopen(self, name: str, former: Folder, since: int) -> Opened:
        """Open a folder as `open` does, asking for what has changed alone where that is offered.

        Parameters
        ----------
        name : the folder.
        former : the folder as it was seen.
        since : the `modseq` of the status before it was seen.
        """
        if not (since and self._can_resync):
            return self.open(name)
        with self._in_words():
            found = self._select(name, to_write=False)
            # Where the server has counted anew, nothing would have changed since.
            is_later = _number(found.get(b"HIGHESTMODSEQ", 0)) >= since
            is_same = is_later and found[b"UIDVALIDITY"] == former.validity
            numbers = self._changed(former, since) if is_same else []
            if len(numbers) != found[b"EXISTS"]:  # some are marked as deleted, or others have come
                numbers = self._searched()
            return Opened(_number(found[b"UIDVALIDITY"]), numbers)

    def _searched(self) -> list[int]:
        return sorted({_number(each) for each in self._client.search(["UNDELETED"])})

    def _changed(self, former: Folder, since: int) -> list[int]:
        """Return the messages in the folder that is open, from those that were in it before."""
        from imapclient.response_parser import parse_fetch_response

        client = self._client._imap  # for IMAPClient takes no "1:*", and knows nothing of VANISHED
        asked = ("1:*", "(FLAGS)", f"(CHANGEDSINCE {since} VANISHED)")
        kind, answer = client.uid("FETCH", *asked)
        if kind != "OK":
            raise imaplib.IMAP4.error(answer)
        changed = parse_fetch_response(answer)
        found = former.messages.keys() | {_number(number) for number in changed}
        found -= {n for n, items in changed.items() if b"\\Deleted" in items.get(b"FLAGS", ())}
        gone = [each for each in client.response("VANISHED")[1] if each is not None]
        return sorted(found - _listed_in(gone, sorted(found)))

    def _select(self, name: str, to_write: bool) -> Any:
        self._opened = name
        return self._client.select_folder(self._sent(name), readonly=not to_write)

    def _sent(self, name: str) -> bytes:
        from imapclient.imap_utf7 import encode

        return self._raw.get(name) or bytes(encode(name))

    # ---- messages of the folder that is open --------------------------------------------------

    def identities(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the identities of messages, of those that are there."""
        found: dict[int, str] = {}
        for start in range(0, len(numbers), AT_ONCE):
            asked = numbers[start : start + AT_ONCE]
            named = {n: identity_of(part) for n, part in self._parts(asked, NAMED)}
            found |= {n: identity for n, identity in named.items() if identity is not None}
            rest = [n for n, identity in named.items() if identity is None]
            found |= self._digests(rest)
        return found

    def _digests(self, numbers: Sequence[int]) -> dict[int, str]:
        sizes = dict(self._items(numbers, "RFC822.SIZE"))
        headers = self._parts(numbers, HEADERS)
        return {n: digest_of(part, _number(sizes.get(n, 0))) for n, part in headers}

    def messages(self, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """Yield the first bytes of messages, of those that are there."""
        starts = range(0, len(numbers), WHOLE_AT_ONCE)
        asked = (numbers[start : start + WHOLE_AT_ONCE] for start in starts)
        yield from _ahead(lambda some: [*self._parts(some, WHOLE)], asked)

    def _parts(self, numbers: Sequence[int], what: str) -> Iterator[tuple[int, bytes]]:
        for number, part in self._items(numbers, what):
            if isinstance(part, bytes):
                yield number, part

    def _items(self, numbers: Sequence[int], what: str) -> list[tuple[int, Any]]:
        """Return an item of messages, of those that the server has sent."""
        key = what.partition("[")[0].replace(".PEEK", "").encode()
        with self._in_words():
            found = self._client.fetch([*numbers], [what]) if numbers else {}
            return [
                (number, value)
                for number, items in found.items()
                for name, value in items.items()
                if bytes(name).startswith(key)
            ]

    # ---- changes ----------------------------------------------------------------------------

    def move(self, source: str, number: int, identity: str, target: str) -> bool:
        """Move a message; return whether it was there."""
        if not self._is_there(source, number, identity):
            return False
        with self._in_words():
            if self._client.has_capability("MOVE"):
                self._client.move([number], self._sent(target))
            else:
                self._copy_and_delete(number, target)
        return True

    def _copy_and_delete(self, number: int, target: str) -> None:
        """Move a message in two steps; one that ends between them leaves a copy behind."""
        if not self._client.has_capability("UIDPLUS"):
            raise KeslerError(
                f"{self._name} offers neither MOVE nor UIDPLUS, so that no message can be moved "
                "without others being deleted: choose the action keyword or nothing"
            )
        self._client.copy([number], self._sent(target))
        self._client.delete_messages([number], silent=True)
        self._client.uid_expunge([number])

    def mark(self, folder: str, number: int, identity: str, keyword: str) -> bool:
        """Give a message a keyword; return whether it was there."""
        if not self._is_there(folder, number, identity):
            return False
        with self._in_words():
            self._client.add_flags([number], [keyword], silent=True)
        return True

    def _is_there(self, folder: str, number: int, identity: str) -> bool:
        """Open a folder to write, and return whether a number is still that of a message."""
        with self._in_words():
            self._select(folder, to_write=True)
        return self.identities([number]).get(number) == identity

    # ---- waiting ----------------------------------------------------------------------------

    def wait(self, seconds: float) -> bool:
        """Wait until the server tells something of the folder that is open; return whether."""
        with self._in_words():
            self._client.idle()
            told = self._client.idle_check(timeout=seconds)
            _, also = self._client.idle_done()
        return bool(told or also)


def _ahead(
    ask: Callable[[Sequence[int]], list[Any]], asked: Iterable[Sequence[int]]
) -> Iterator[Any]:
    """Yield what is asked for in turn; while answers are read, the next ones are on their way."""
    with ThreadPoolExecutor(1) as thread:  # at its end, nothing is asked for any more
        coming = None
        for some in asked:
            arrived, coming = coming, thread.submit(ask, some)
            yield from () if arrived is None else arrived.result()
        yield from () if coming is None else coming.result()


def _listed_in(sets: Iterable[bytes], numbers: Sequence[int]) -> set[int]:
    """Return those of numbers, in ascending order, that are in sets as IMAP writes them.

    Examples
    --------
    >>> sorted(_listed_in([b"(EARLIER) 2:4,9", b"7"], [1, 3, 4, 7, 8]))
    [3, 4, 7]
    """
    found: set[int] = set()
    for each in sets:
        for part in each.rpartition(b" ")[2].split(b","):
            first, _, last = part.partition(b":")
            ends = sorted((int(first), int(last or first)))
            found |= {*numbers[bisect_left(numbers, ends[0]) : bisect_right(numbers, ends[1])]}
    return found


def _trusting(settings: MailSettings) -> ssl.SSLContext:
    """Return what certificates are checked with; raise KeslerError if it cannot be read."""
    own = settings.path("ca_file") if settings.ca_file else None
    try:
        return ssl.create_default_context(cafile=own)
    except OSError as error:
        raise KeslerError(
            f"the certificates of ca_file = {own!r} cannot be read ({error.strerror}): give a file "
            "of certificates in the PEM format"
        ) from None


def _connected(settings: MailSettings, context: ssl.SSLContext, seconds: float) -> Any:
    """Return a client that is connected, and protected unless the settings say plain."""
    is_tls = settings.security == "tls"
    client = required().IMAPClient(
        settings.server,
        settings.port_used,
        ssl=is_tls,
        ssl_context=context if is_tls else None,
        timeout=seconds,
    )
    client._imap.read = _limited(client._imap.read)
    if settings.security == "starttls":
        try:
            client.starttls(context)
        except BaseException:
            client.shutdown()
            raise
    return client


def _limited(read: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """Return a function that reads as much as is announced, unless nobody has asked for so much."""

    def limited(size: int) -> bytes:
        if size > LARGEST_LITERAL:
            raise imaplib.IMAP4.abort(f"it announces {size} bytes, more than were asked for")
        return read(size)

    return limited


def required() -> Any:
    """Return the module imapclient; raise KeslerError if the extra is not installed."""
    try:
        import imapclient
    except ImportError:
        raise KeslerError("IMAPClient is not installed: pip install 'kesler[mail]'") from None
    return imapclient


def _number(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise imaplib.IMAP4.abort(f"{value!r:.40} is no number of a message")
    return value


def _listed(flags: Any, delimiter: Any, raw: Any) -> tuple[Listed | None, bytes]:
    """Return a folder, and its name as the server writes it; None if that cannot be sent."""
    from imapclient.imap_utf7 import decode, encode

    written = raw if isinstance(raw, bytes) else str(raw).encode("utf-8")
    if not written.isascii() or not 0 < len(written) <= LONGEST_NAME or not _is_printable(written):
        return None, written
    try:
        name = decode(written)
        is_exact = bytes(encode(name)) == written and name.isprintable()
    except (ValueError, LookupError):
        is_exact = False
    names = frozenset(each.decode("latin-1").lower() for each in flags if isinstance(each, bytes))
    shown = name if is_exact else written.decode("ascii")
    return Listed(shown, names, delimiter.decode("latin-1") if delimiter else None), written


def _is_printable(name: bytes) -> bool:
    return all(32 <= each < 127 for each in name)

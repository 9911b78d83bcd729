"""A Maildir as a mailbox: a message is a file, a folder a directory, and a move a renaming.

Numbers of messages are digests of the names that programs give to their files, without the flags.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from socket import gethostname
from typing import NoReturn
from uuid import uuid4

from kesler.errors import KeslerError
from kesler.mail.folders import Listed
from kesler.mail.identities import digest_of, identity_of
from kesler.mail.known import Status
from kesler.mail.messages import MOST_BYTES
from kesler.mail.server import (
    LONGEST_NAME,
    MOST_OF_HEADERS,
    Opened,
    RefusedError,
    ServerError,
)
from kesler.mail.state import Folder
from kesler.progress import LOGGER
from kesler.readers.mail.folders import MAILDIR, folder_at

PARTS = ("new", "cur")
"""The directories of a folder that hold its messages, in the order in which a message is there."""

POLL = 1.0  # seconds between two looks at the times of directories
QUIET_NS = 2_000_000_000  # after which the time of a directory tells every change of it
TRIES = 5  # of a listing in which nothing is renamed meanwhile
DEEPEST = 20  # folders within folders
TRASHED = "T"
END_OF_HEADERS = re.compile(rb"\n\r?\n")
CODED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"CRYPTED\x03")
"""What files begin with that gzip, bzip2, xz, zstd or Dovecot's encryption has written."""
AT_FIRST = 1 << 13  # bytes of a file, most of which hold all headers


class Maildir:
    """A Maildir: with subfolders such as ``.Work.Old`` (Maildir++), or directories within others.

    Parameters
    ----------
    path : its directory.

    Raises
    ------
    ServerError
        If it cannot be read, or holds no folder.
    """

    can_idle = True

    def __init__(self, path: str) -> None:
        self._root = Path(path)
        self._paths: dict[str, Path] = {}
        self._counts: dict[str, tuple[int, int]] = {}
        self._folder = self._root
        self._files: dict[int, Path] = {}
        self._n_odd = 0
        self.folders()
        self._seen = self._times()

    def __enter__(self) -> Maildir:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: no file stays open."""

    # ---- folders ----------------------------------------------------------------------------

    def folders(self) -> list[Listed]:
        """Return the folders, without those of names that are no text, or those of others."""
        found, directories = dict[str, Path](), [*_directories(self._root)]
        for path in directories:
            name = folder_at(path.relative_to(self._root))
            if name.isprintable() and len(name) <= LONGEST_NAME:
                found.setdefault(name, path)
        if not found:
            raise ServerError(
                f"{self._root} holds no folder with the directories cur and new: give the path of "
                "a Maildir, or mount it"
            )
        self._warn_of_odd_names(len(directories) - len(found))
        self._paths = found
        return [Listed(name) for name in found]

    def _warn_of_odd_names(self, n: int) -> None:
        if n != self._n_odd:
            LOGGER.warning(
                "%s: %d folders are left out, whose names are no text or the same as others",
                self._root,
                n,
            )
        self._n_odd = n

    def exists(self, name: str) -> bool:
        """Return whether a folder is there."""
        self.folders()
        return name in self._paths

    def status(self, name: str) -> Status:
        """Return what is known of a folder without its messages.

        The time of a directory that was changed just now may hide another change: it is left out,
        so that the next look reads the folder again.
        """
        path = self._at(name)
        with _in_words(path):
            times = _times_of(path)
            now = time.time_ns()
            state = _digest(repr(times if max(times) < now - QUIET_NS else now))
            if self._counts.get(name, (0, 0))[0] != state:
                self._counts[name] = state, len(_files(path))
            return Status(_validity(path), 0, self._counts[name][1], state)

    def open(self, name: str) -> Opened:
        """Open a folder, and return the messages in it."""
        self._folder = self._at(name)
        with _in_words(self._folder):
            self._files = _files(self._folder)
            return Opened(_validity(self._folder), sorted(self._files))

    def reopen(self, name: str, former: Folder, since: int) -> Opened:
        """Open a folder: its names are listed as fast as those that have changed."""
        return self.open(name)

    def _at(self, name: str) -> Path:
        if name not in self._paths:
            self.folders()
        if name not in self._paths:
            raise RefusedError(f"{self._root} has no folder {name}: make it in the mail program")
        return self._paths[name]

    # ---- messages of the folder that is open --------------------------------------------------

    def identities(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the identities of messages, of those that are there."""
        found = {}
        for number in numbers:
            start = self._start(number, AT_FIRST)
            if start is not None and END_OF_HEADERS.search(start) is None:
                start = self._start(number, MOST_OF_HEADERS)
            if start is not None:
                end = END_OF_HEADERS.search(start)
                header = start[: end.end()] if end else start
                found[number] = identity_of(header) or digest_of(header, self._size(number))
        return found

    def messages(self, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """Yield the first bytes of messages, of those that are there.

        They come in the order of the names of files, which begin with the time of delivery.
        """
        for number in sorted(numbers, key=self._name):
            start = self._start(number, MOST_BYTES)
            if start is not None:
                yield number, start

    def _start(self, number: int, most: int) -> bytes | None:
        """Return the first bytes of a message; None if it is gone.

        Its file has another name when its flags have changed.
        """
        with _in_words(self._folder):
            for _ in range(2):
                try:
                    if number in self._files:
                        with self._files[number].open("rb") as file:
                            return _plain(file.read(most))
                except FileNotFoundError:
                    pass
                self._files = _files(self._folder)
        return None

    def _name(self, number: int) -> str:
        return self._files[number].name if number in self._files else ""

    def _size(self, number: int) -> int:
        try:
            return self._files[number].stat().st_size
        except (OSError, KeyError):
            return 0

    # ---- changes ----------------------------------------------------------------------------

    def move(self, source: str, number: int, identity: str, target: str) -> bool:
        """Move a message in one step, with its flags; return whether it was there.

        Raises
        ------
        RefusedError
            If the folder is not there, or the letters of the message's keywords mean others in it.
        """
        self.open(source)
        if self.identities([number]).get(number) != identity:
            return False
        path, folder = self._files[number], self._at(target)
        with _in_words(folder):
            name = _name_in(folder, path, target)
            try:
                path.rename(folder / path.parent.name / name)
            except FileNotFoundError:
                if path.exists():
                    raise
                return False  # somebody has moved it meanwhile
        return True

    def mark(self, folder: str, number: int, identity: str, keyword: str) -> bool:
        """Refuse to give a message a keyword."""
        raise KeslerError(
            f"the message cannot get the keyword {keyword}, as a Maildir has none that all "
            "programs know: choose the action nothing or move"
        )

    # ---- waiting ----------------------------------------------------------------------------

    def wait(self, seconds: float) -> bool:
        """Wait until something has changed in any folder since the last wait; return whether."""
        end = time.monotonic() + seconds
        while (now := self._times()) == self._seen and (left := end - time.monotonic()) > 0:
            time.sleep(min(POLL, left))
        if now == self._seen:
            return False
        with suppress(ServerError):  # the look says what is wrong
            self.folders()  # there may be new ones
        self._seen = self._times()
        return True

    def _times(self) -> list[tuple[int, ...]]:
        """Return the times of the folders, and of the directory in which new ones are made."""
        try:
            found = [_times_of(path) for path in self._paths.values() if (path / "cur").exists()]
            return [*found, (self._root.stat().st_mtime_ns,)]
        except OSError:
            return []  # the look says what is wrong


def _directories(root: Path) -> Iterator[Path]:
    """Yield the folders of a Maildir, the inbox first; raise ServerError if it cannot be read."""
    try:
        for path, directories, _ in os.walk(root, onerror=_refuse):
            within = Path(path).relative_to(root).parts
            is_folder = {*PARTS} <= {*directories}
            if is_folder and not any(os.path.islink(os.path.join(path, part)) for part in PARTS):
                yield Path(path)
            is_deep = len(within) >= DEEPEST
            # A name of two dots is that of a folder which Dovecot is about to delete.
            directories[:] = sorted(
                each
                for each in directories
                if each not in MAILDIR and not each.startswith("..") and not is_deep
            )
    except OSError as error:
        raise ServerError(
            f"{root} cannot be read ({error.strerror}): give the path of a Maildir that this "
            "user may read"
        ) from None


def _refuse(error: OSError) -> NoReturn:
    raise error


@contextmanager
def _in_words(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RefusedError(f"{folder}: cannot be read or changed ({error.strerror})") from None


def _plain(start: bytes) -> bytes:
    """Return the beginning of a message; raise RefusedError if it is compressed or encrypted."""
    if start.startswith(CODED):
        raise RefusedError(
            "a Maildir holds compressed or encrypted messages, which its server alone can read: "
            "give the server in place of the Maildir"
        )
    return start


def _digest(text: str) -> int:
    """Return a number that fits into the 63 bits that databases have."""
    raw = text.encode("utf-8", "surrogateescape")
    return int.from_bytes(blake2b(raw, digest_size=8).digest()) >> 1


def _validity(path: Path) -> int:
    """Return a number that a folder keeps when it is renamed, by the numbers of its directories."""
    found = [each.stat().st_ino for each in (path, *(path / part for part in PARTS))]
    marker = path / "maildirfolder"  # which programs make with the folder
    if marker.exists():
        found.append(marker.stat().st_mtime_ns)
    return _digest(repr(found))


def _times_of(path: Path) -> tuple[int, ...]:
    return tuple((path / part).stat().st_mtime_ns for part in PARTS)


def _files(path: Path) -> dict[int, Path]:
    """Return the files of the messages of a folder that are not marked as deleted.

    A file that is renamed while a directory is read may be in neither place: it is read again then.
    """
    for _ in range(TRIES):
        before, found = _times_of(path), dict[int, Path]()
        for part in PARTS:
            for name in _names(path / part):
                if TRASHED not in _flags(name):
                    found[_digest(_base(name))] = path / part / name
        if _times_of(path) == before:
            break
    return found


def _names(directory: Path) -> list[str]:
    """Return the names of the files of messages in a directory."""
    with os.scandir(directory) as found:
        return [
            each.name
            for each in found
            if not each.name.startswith(".") and each.is_file(follow_symlinks=False)
        ]


def _base(name: str) -> str:
    return name.partition(":")[0]


def _flags(name: str) -> str:
    return name.partition(":2,")[2]


def _name_in(folder: Path, path: Path, shown: str) -> str:
    """Return the name of a file in another folder, in which no other file is called like it."""
    base, _, info = path.name.partition(":")
    if any(_base(each) == base for part in PARTS for each in os.listdir(folder / part)):
        _, comma, sizes = base.partition(",")
        base = f"{int(time.time())}.{uuid4().hex}.{_host()}{comma}{sizes}"
    letters = {each: each for each in _flags(path.name) if each.islower()}
    if letters:
        meant, known = _keywords(path.parents[1]), _keywords(folder)
        by_keyword = {keyword: letter for letter, keyword in known.items()}
        letters = {each: by_keyword.get(meant.get(each, ""), "") for each in letters}
        if not all(letters.values()):
            raise RefusedError(
                f"a message has keywords that {shown} does not know: move it in the mail program"
            )
        flags = sorted(letters.get(each, each) for each in _flags(path.name))
        info = f"2,{''.join(flags)}"
    return f"{base}:{info}" if info else base


def _host() -> str:
    return re.sub(r"[/:,]", "_", gethostname())


def _keywords(folder: Path) -> dict[str, str]:
    """Return the keywords that Dovecot has for the letters of flags in a folder."""
    try:
        lines = (folder / "dovecot-keywords").read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return {}
    found = (line.partition(" ") for line in lines)
    return {chr(ord("a") + int(n)): word for n, _, word in found if n.isdigit() and int(n) < 26}

"""Where programs keep mail: files that hold messages, and the folders that these belong to."""

from __future__ import annotations

import os
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import NamedTuple, NoReturn

INBOX = "INBOX"
MAILDIR = {"cur", "new", "tmp"}
MBOX_SUFFIXES = (".mbox", ".mbx", ".mbs")
MESSAGE_SUFFIXES = (".eml", ".emlx", ".msg")
OF_KMAIL = re.compile(r"\.(.+)\.directory")
"""The directory in which KMail keeps the folders within one."""
INDEXES = (".msf", ".plist", ".wdseml", ".mozeml")
SETTINGS = {
    "msgFilterRules.dat",
    "popstate.dat",
    "filterlog.html",
    "nstmp",
    "desktop.ini",
    "Thumbs.db",
}
"""Files of programs beside mail, which hold no messages or copies of them."""
NUMBERED = re.compile(r"msg\..|.*\d")
"""Names that programs give to single messages, as procmail does."""


class Mailbox(NamedTuple):
    """A file of messages: an mbox, or a file that is one message.

    Parameters
    ----------
    path : Path
        The file.
    folder : str or None
        The folder of its message if it is one; None if it is in none.
    base : Path or None
        What the name of its folder is relative to if it is an mbox; None if it cannot be one.
    """

    path: Path
    folder: str | None
    base: Path | None

    @property
    def own(self) -> str:
        """The folder of its messages if it is an mbox."""
        return folder_at(self.path.relative_to(self.base or self.path.parent))

    @property
    def is_named(self) -> bool:
        """Whether it holds mail by its name, or was named itself."""
        name = self.path.name.lower()
        return self.folder is None or name.endswith((*MBOX_SUFFIXES, *MESSAGE_SUFFIXES))

    @property
    def is_of_folder(self) -> bool:
        """Whether it is the mbox of a folder by its name, or by the index beside it."""
        beside = self.path.with_name(f"{self.path.name}.msf")
        return self.path.name.lower().endswith(MBOX_SUFFIXES) or beside.exists()

    @property
    def is_of_one(self) -> bool:
        """Whether an mbox of one message is the file of that message, by its name."""
        named = NUMBERED.match(self.path.name) and not self.is_of_folder
        return self.folder is not None and bool(named)


def mailboxes(root: Path, left_out: list[Path]) -> Iterator[Mailbox]:
    """Yield the files under a directory that may hold messages, or the file itself.

    Parameters
    ----------
    root : Path
        A directory or a file.
    left_out : list of Path
        Receives what is where messages are and is none.

    Raises
    ------
    OSError
        If a directory cannot be read.
    """
    base = root.parent if root.is_file() or is_apple(root.name) else root
    if root.is_file():
        yield Mailbox(root, None, _base(root.name, base))
        return
    for at, subdirectories, files in os.walk(root, onerror=_refuse):
        directory = Path(at)
        relative = directory.relative_to(base)
        if _is_maildir(directory, subdirectories, files):
            parts = [directory / part for part in ("cur", "new") if part in subdirectories]
            subdirectories[:] = set(subdirectories) - MAILDIR
            folder = folder_at(directory.relative_to(root))
            yield from (Mailbox(path, folder, None) for path in _files_in(parts, left_out))
        elif not any(map(_is_hidden, directory.relative_to(root).parts)):
            holds = _is_of_apple if any(map(is_apple, relative.parts)) else _is_mail
            folder = folder_at(relative)
            for name in filter(holds, files):
                path = directory / name
                if path.is_file():
                    yield Mailbox(path, folder, _base(name, base))


def _files_in(parts: Iterable[Path], left_out: list[Path]) -> Iterator[Path]:
    """Yield the files of the parts of a Maildir."""
    for part in parts:
        for entry in os.scandir(part):
            if entry.is_dir():
                left_out.append(Path(entry.path))
            elif not entry.name.startswith("."):
                yield Path(entry.path)


def _base(name: str, base: Path) -> Path | None:
    return None if name.lower().endswith(MESSAGE_SUFFIXES) else base


def _is_maildir(directory: Path, subdirectories: list[str], files: list[str]) -> bool:
    """Return whether a directory is a Maildir, whose empty parts are not kept by all programs."""
    holds_new_alone = subdirectories == ["new"] and not files
    is_known = directory.name.startswith(".") or "tmp" in subdirectories or holds_new_alone
    return "cur" in subdirectories or ("new" in subdirectories and is_known)


def _is_hidden(part: str) -> bool:
    """Return whether a directory, if it is no Maildir, can hold nothing but such."""
    return part.startswith(".") and not OF_KMAIL.fullmatch(part)


def _is_mail(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(INDEXES) and name not in SETTINGS


def _is_of_apple(name: str) -> bool:
    """Return whether a file holds messages in a folder of Apple Mail; attachments are beside."""
    return name == "mbox" or name.endswith(".emlx")


def folder_at(relative: PurePath) -> str:
    """Return the folder whose mail is at a path.

    Examples
    --------
    >>> [folder_at(PurePath(each)) for each in (".Work.Old", "Work.sbd/Team", "Bills.mbox/mbox")]
    ['Work/Old', 'Work/Team', 'Bills']
    """
    parts = list(relative.parts)
    of_apple = [i for i, part in enumerate(parts) if is_apple(part)]
    if of_apple:
        parts = parts[: of_apple[-1] + 1]
    # Python decodes a name that is not UTF-8 to lone surrogates, which cannot be printed.
    return os.fsencode("/".join(map(_name, parts))).decode(errors="replace") or INBOX


def is_apple(part: str) -> bool:
    """Return whether a name in a path is that of a directory, or file, of one folder."""
    return part.endswith(".mbox")


def _name(part: str) -> str:
    """Return the name of a folder; a Maildir stores the folder Work/Old in .Work.Old."""
    part = OF_KMAIL.sub(r"\1", part)
    if part.startswith("."):
        return decoded_name(part[1:].replace(".", "/"))
    return decoded_name(re.sub(r"(?i)\.(?:mbox|mbx|mbs|sbd)$", "", part))


def decoded_name(name: str) -> str:
    """Decode a name in the modified UTF-7 of IMAP (RFC 3501); others remain as they are.

    Examples
    --------
    >>> decoded_name("Entw&APw-rfe"), decoded_name("R&D-team"), decoded_name("Q&-A")
    ('Entwürfe', 'R&D-team', 'Q&A')
    """
    try:
        return re.sub("&([A-Za-z0-9+,]*)-", _shifted, name)
    except ValueError:
        return name


def _shifted(found: re.Match[str]) -> str:
    """Return the characters of a shifted sequence; raise ValueError if no program writes it."""
    code = found[1].replace(",", "/")
    text = b64decode(code + "=" * (-len(code) % 4)).decode("utf-16-be")
    again = b64encode(text.encode("utf-16-be")).decode().rstrip("=")
    if again != code or any(" " <= character <= "~" for character in text):
        raise ValueError(found[0])
    return text or "&"


def _refuse(error: OSError) -> NoReturn:
    raise error

"""Where programs keep mail: files that hold messages, and the folders that these belong to."""

from __future__ import annotations

import os
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import NamedTuple, NoReturn

from kesler.readers.mail.mbox import begins_mbox

INBOX = "INBOX"
MAILDIR = {"cur", "new", "tmp"}
MBOX_SUFFIXES = {".mbox", ".mbx"}
MESSAGE_SUFFIXES = {".eml", ".emlx"}
OF_KMAIL = re.compile(r"\.(.+)\.directory")
"""The directory in which KMail keeps the folders within one."""
INDEXES = (".msf", ".plist")
SETTINGS = {"msgFilterRules.dat", "popstate.dat", "filterlog.html", "desktop.ini", "Thumbs.db"}
"""Files of programs beside mail, which hold no messages."""


class Mailbox(NamedTuple):
    """A file of messages: an mbox, or a file that is one message.

    Parameters
    ----------
    path : Path
        The file.
    folder : str or None
        The folder of its messages; None if it is a single message.
    is_mbox : bool
        Whether it can hold more than one message.
    """

    path: Path
    folder: str | None
    is_mbox: bool


def mailboxes(root: Path) -> Iterator[Mailbox]:
    """Yield the files of messages under a directory, or the file itself.

    Raises
    ------
    OSError
        If a directory or a file cannot be read.
    """
    if root.is_file():
        is_mbox = _is_mbox(root)
        yield Mailbox(root, folder_at(root.relative_to(root.parent)) if is_mbox else None, is_mbox)
        return
    for name, subdirectories, files in os.walk(root, onerror=_refuse):
        directory = Path(name)
        relative = directory.relative_to(root)
        if _is_maildir(directory, subdirectories, files):
            parts = [directory / part for part in ("cur", "new") if part in subdirectories]
            subdirectories[:] = set(subdirectories) - MAILDIR
            folder = folder_at(relative)
            yield from (Mailbox(path, folder, False) for part in parts for path in part.iterdir())
        elif not any(map(_is_hidden, relative.parts)):
            holds = _is_of_apple if any(map(is_apple, relative.parts)) else _is_mail
            paths = (directory / name for name in files if holds(name))
            yield from (_mailbox(path, root) for path in paths if path.is_file())


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


def _mailbox(path: Path, root: Path) -> Mailbox:
    relative = path.relative_to(root)
    is_mbox = _is_mbox(path)
    return Mailbox(path, folder_at(relative if is_mbox else relative.parent), is_mbox)


def _is_mbox(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(1 << 10)
    if not head:
        named = path.with_name(f"{path.name}.msf")
        return path.suffix.lower() in MBOX_SUFFIXES or named.exists()
    return begins_mbox(head) and path.suffix.lower() not in MESSAGE_SUFFIXES


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
    return decoded_name(re.sub(r"(?i)\.(?:mbox|mbx|sbd)$", "", part))


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

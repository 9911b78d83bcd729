"""The settings of a mailbox: one table, and a file of TOML that holds them."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

from kesler.errors import KeslerError
from kesler.mail.decisions import ACTIONS

WIDTH = 100  # of the file of settings

SECRET = "password"
"""The setting whose value is not shown, as it may be the password itself."""
SECURITY = {"tls": 993, "starttls": 143, "plain": 143}
"""How a connection is protected, and the usual port."""

PAGE = ("nothing", "folders", "subjects")
"""What the page of `kesler serve` shows of messages with suggestions."""

DELETED = ("keep", "forget")
"""What becomes of the class of a folder that is deleted."""

PASSWORDS = ("keyring", "environment:", "command:", "oauth2:")
"""Where a password comes from, or by oauth2 a token."""


OF_SERVERS = ("server", "user", "security", "port", "ca_file", "password")
"""The settings that a Maildir has not."""


class Setting(NamedTuple):
    """A setting: its default, what it means, and what its values are."""

    default: Any
    help: str
    check: Callable[[Any], bool]
    values: str


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and value.isprintable()


def _is_share(value: Any) -> bool:
    return isinstance(value, float) and 0 < value < 1


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_password(value: Any) -> bool:
    return _is_text(value) and (
        value == "keyring" or any(value.startswith(each) and value != each for each in PASSWORDS)
    )


def _one_of(names: Collection[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in names


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


SETTINGS: dict[str, Setting] = {
    "maildir": Setting(
        "",
        "directory of a Maildir, which is read and changed in place of a mailbox on a server",
        lambda value: value == "" or _is_text(value),
        "a path, or nothing",
    ),
    "server": Setting(None, "name of the IMAP server", _is_text, "a name"),
    "user": Setting(None, "name of the user there", _is_text, "a name"),
    "account": Setting("mail", "name of the model in the database", _is_text, "a name"),
    "database": Setting("mail.db", "file of the journal", _is_text, "a path"),
    "security": Setting(
        "tls",
        "protection of the connection; plain sends the password and all mail for everyone on the "
        "way to read",
        _one_of(SECURITY),
        "tls, starttls or plain",
    ),
    "port": Setting(
        0,
        "port of the server; 0 is the usual one, 993 for tls, else 143",
        lambda value: value == 0 or (_is_count(value) and value < 65536),
        "a number from 0 to 65535",
    ),
    "ca_file": Setting(
        "",
        "file of certificates that are trusted in place of those of the system",
        lambda value: value == "" or _is_text(value),
        "a path, or nothing",
    ),
    "password": Setting(
        "keyring",
        "where the password comes from: keyring, environment:VARIABLE or command:COMMAND; or "
        "oauth2:COMMAND, a command that prints a token",
        _is_password,
        "keyring, environment:VARIABLE, command:COMMAND or oauth2:COMMAND",
    ),
    "never": Setting(
        [],
        "folders that are never touched, in which a message has no answer; all others but INBOX "
        "are classes",
        _is_list,
        "a list of names",
    ),
    "action": Setting(
        "nothing",
        "what is done with a new message that is surely of a class: nothing, a keyword, or a move",
        _one_of(ACTIONS),
        "nothing, keyword or move",
    ),
    "error": Setting(
        0.02,
        "largest share of wrong moves or keywords; smaller ones leave more messages in the inbox",
        _is_share,
        "a number between 0 and 1",
    ),
    "every": Setting(
        60, "seconds between two looks at the folders", _is_count, "a number of seconds, 1 or more"
    ),
    "page": Setting(
        "nothing",
        "what the page of kesler serve shows of messages that wait for an answer: nothing; the "
        "folders that are suggested; or subjects, senders and words as well. The database keeps "
        "that and their words until they are answered",
        _one_of(PAGE),
        "nothing, folders or subjects",
    ),
    "deleted": Setting(
        "keep",
        "what becomes of the class of a folder that is deleted: keep it, or forget it for good",
        _one_of(DELETED),
        "keep or forget",
    ),
}


@dataclass(frozen=True)
class MailSettings:
    """The settings of a mailbox.

    Parameters
    ----------
    values : those that differ from the defaults, by name.
    folder : the folder to which paths are relative.

    Raises
    ------
    KeslerError
        If there is no such setting, a value is none of it, or the server or the user is missing,
        or a setting is not one of a Maildir.
    """

    values: Mapping[str, Any]
    folder: Path = field(default_factory=Path)

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            if name not in SETTINGS:
                raise KeslerError(f"there is no setting {name!r}: known are {', '.join(SETTINGS)}")
            if not SETTINGS[name].check(value):
                given = name if name == SECRET else f"{name} = {value!r:.80}"
                raise KeslerError(f"{given}: give {SETTINGS[name].values}")
        if self.maildir:
            self._require_of_maildir()
            return
        for name, setting in SETTINGS.items():
            if setting.default is None and name not in self.values:
                raise KeslerError(
                    f"the setting {name} is missing: give the {setting.help}, or maildir"
                )

    def _require_of_maildir(self) -> None:
        for name in OF_SERVERS:
            if name in self.values:
                raise KeslerError(f"{name} is of a server, and maildir names a directory: give one")
        if self.action == "keyword":
            raise KeslerError(
                "action = 'keyword': a Maildir has no keywords that all programs know: give "
                "nothing or move"
            )

    def __getattr__(self, name: str) -> Any:
        if name not in SETTINGS:
            raise AttributeError(name)
        return self.values.get(name, SETTINGS[name].default)

    @property
    def place(self) -> str:
        """Where the mailbox is, in words."""
        return self.maildir or f"{self.server} as {self.user}"

    @property
    def has_token(self) -> bool:
        """Whether the server is given a token of OAuth2 in place of a password."""
        return str(self.password).startswith("oauth2:")

    @property
    def identity(self) -> str:
        """Which mailbox it is: equal for all settings of one mailbox, however they are written."""
        if self.maildir:
            return os.path.abspath(self.path("maildir"))
        return f"{self.server.lower()}:{self.port_used} as {self.user}"

    @property
    def port_used(self) -> int:
        """The port, the usual one if none is given."""
        return int(self.port) or SECURITY[self.security]

    def path(self, name: str) -> str:
        """Return the path of a setting."""
        return os.path.join(self.folder, getattr(self, name))

    @property
    def text(self) -> str:
        """The settings as a file of TOML, each below what it means."""
        lines = ["# Settings of kesler mail. The password is not here: see the setting password."]
        left_out = OF_SERVERS if self.maildir else ("maildir",)
        for name, setting in SETTINGS.items():
            if name in left_out:
                continue
            said = wrap(setting.help, WIDTH, initial_indent="# ", subsequent_indent="# ")
            lines += ["", *said, f"{name} = {_toml(getattr(self, name))}"]
        return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """Return a value as TOML writes it, which is as JSON does but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_settings(path: str) -> MailSettings:
    """Return the settings of a file.

    Raises
    ------
    KeslerError
        If there is none, it is no file of TOML, or as :class:`MailSettings`.
    """
    try:
        values = tomllib.loads(Path(path).read_text("utf-8"))
    except FileNotFoundError:
        sentence = f"there is no file {path}: write it with kesler mail setup {path}"
        raise KeslerError(sentence) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        sentence = f"{path} is no file of TOML ({error}): write it with kesler mail setup"
        raise KeslerError(sentence) from None
    try:
        return MailSettings(values, Path(path).parent)
    except KeslerError as error:
        raise KeslerError(f"{path}: {error}") from None

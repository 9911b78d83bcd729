"""Passwords and tokens: from the keyring, a variable of the environment or a command."""

from __future__ import annotations

import os
import subprocess

from kesler.errors import KeslerError
from kesler.mail.settings import MailSettings

SERVICE = "kesler-mail"
"""The name under which the keyring has passwords."""

SECONDS = 60
"""The time that a command has to print a password."""


def secret_of(settings: MailSettings) -> str:
    """Return the password of a mailbox, or its token of OAuth2.

    Raises
    ------
    KeslerError
        If there is none.
    """
    kind, _, what = settings.password.partition(":")
    if kind == "environment":
        return _of_environment(what)
    if kind == "keyring":
        return _of_keyring(f"{settings.user}@{settings.server}")
    return _printed(what)


def _of_environment(name: str) -> str:
    found = os.environ.get(name)
    if not found:
        raise KeslerError(f"the variable {name} of the environment holds no password: set it")
    return found


def _of_keyring(name: str) -> str:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise KeslerError("keyring is not installed: pip install 'kesler[mail]'") from None
    try:
        found = keyring.get_password(SERVICE, name)
    except KeyringError as error:
        raise KeslerError(
            f"the keyring cannot be read ({error}): unlock it, or give environment:VARIABLE or "
            "command:COMMAND as the setting password"
        ) from None
    if not found:
        raise KeslerError(f"the keyring has no password: run keyring set {SERVICE} {name}")
    return found


def _printed(command: str) -> str:
    """Return the first line that a command prints."""
    try:
        done = subprocess.run(
            command, shell=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise KeslerError(
            f"the command {command!r} has printed no password in {SECONDS} seconds: try it"
        ) from None
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    if done.returncode or not lines or not lines[0]:
        raise KeslerError(
            f"the command {command!r} has ended with the code {done.returncode} and without a "
            "password on its standard output: try it"
        )
    return lines[0]

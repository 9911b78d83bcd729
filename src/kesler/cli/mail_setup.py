"""kesler mail setup: check the connection, propose classes, and write the file of settings."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from kesler.cli.mail import connected
from kesler.mail.accounts import followed
from kesler.mail.folders import Listed, is_inbox
from kesler.mail.settings import SETTINGS, MailSettings, read_settings

if TYPE_CHECKING:
    from kesler.mail.server import Server


def run(options: Namespace) -> None:
    """Connect, print the folders with what becomes of them, and write the settings."""
    from pathlib import Path

    from kesler.data.whole_file import whole_file

    former = read_settings(options.settings) if os.path.exists(options.settings) else None
    values = dict[str, Any](former.values if former else {})
    given = {name: getattr(options, name) for name in SETTINGS}
    values |= {name: each for name, each in given.items() if each is not None}
    settings = MailSettings(values, Path(options.settings).parent)
    with connected(settings) as server:
        listed = [each for each in server.folders() if each.can_hold_messages]
        folders = sorted(listed, key=lambda each: (not is_inbox(each.name), each.name))
        if "never" not in values:
            values["never"] = [each.name for each in folders if each.has_special_use]
        _print_folders(server, folders, values["never"])
    with followed(former or settings, settings), whole_file(options.settings) as file:
        file.write(MailSettings(values, settings.folder).text.encode())
    print(f"\nwritten: {options.settings}; next: kesler mail learn {options.settings}")


def _print_folders(server: Server, folders: list[Listed], never: list[str]) -> None:
    from kesler.mail.server import RefusedError

    width = max([len(each.name) for each in folders], default=0)
    for each in folders:
        try:
            n_messages = str(server.status(each.name).n_messages)
        except RefusedError:
            n_messages = "?"
        print(f"{each.name:{width}}  {n_messages:>7}  {_kind(each.name, never)}")


def _kind(name: str, never: list[str]) -> str:
    if is_inbox(name):
        return "inbox, where new messages are predicted"
    return "never touched" if name in never else "class"

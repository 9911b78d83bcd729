"""Which folders are classes: all but the inbox and those that are never touched."""

from __future__ import annotations

import re
from typing import NamedTuple

SPECIAL = {
    "\\all", "\\archive", "\\drafts", "\\flagged", "\\important", "\\junk", "\\sent", "\\trash",
}  # fmt: skip
"""Flags of folders with a special use (RFC 6154), in small letters."""

NAMES = re.compile(
    r"all mail|alle nachrichten|archives?|archiv|archivio|archivo"
    r"|drafts?|entw[uü]rfe|brouillons|borradores|bozze"
    r"|junk([ -]?e?-?mail)?|spam|bulk( mail)?|unerw[uü]nscht|ind[eé]sirables"
    r"|sent([ -](items|mail|messages))?|gesendet(e (objekte|elemente))?|envoy[eé]s|enviados"
    r"|posta inviata|outbox|postausgang|templates|vorlagen|notes|notizen"
    r"|trash|bin|deleted([ -](items|messages))?|papierkorb|gel[oö]schte? (objekte|elemente)"
    r"|corbeille|papelera|cestino|starred|important|chats|snoozed|scheduled"
    r"|conversation history|rss[ -]feeds|sync issues",
    re.IGNORECASE,
)
"""Names of such folders, for servers that do not flag them."""


class Listed(NamedTuple):
    """A folder as a server lists it: its name, its flags in small letters, its delimiter."""

    name: str
    flags: frozenset[str] = frozenset()
    delimiter: str | None = "/"

    @property
    def can_hold_messages(self) -> bool:
        """Whether it is more than a part of the names of others."""
        return not self.flags & {"\\noselect", "\\nonexistent"}

    @property
    def has_special_use(self) -> bool:
        """Whether it has a special use: by its flags, else by its name.

        Examples
        --------
        >>> Listed("INBOX.Sent Items", delimiter=".").has_special_use
        True
        >>> Listed("Sent to Ann").has_special_use
        False
        """
        if self.flags & SPECIAL:
            return True
        name = self.name.rsplit(self.delimiter, 1)[-1] if self.delimiter else self.name
        return NAMES.fullmatch(name) is not None


def is_inbox(name: str) -> bool:
    """Return whether a folder is the inbox, whose name is the same in all letters."""
    return name.upper() == "INBOX"

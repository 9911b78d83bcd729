"""Threads: where the earlier messages of a conversation, of its people and its sender are."""

from __future__ import annotations

import re
from email.message import Message
from email.utils import getaddresses
from hashlib import blake2b
from typing import NamedTuple

from kesler.mail.identities import ids_in
from kesler.readers.mail.message import decoded_words

__all__ = ["Keys", "Threads", "keys_of"]

MOST_KEYS = 200_000
"""Keys that are remembered; a message has up to five."""
LONGEST_VALUE = 10_000
"""Characters of a header that are read."""
LONGEST_KEY = 250
MOST_REFERENCES = 20
REPLY = re.compile(
    r"(?:(?:re|fwd?|aw|wg|antw|sv|vs|vb|tr|rif|i|r|rv|res|enc|odp|pd|ynt|ilt)"
    r"(?:[ ]?[\[(]?\d{1,3}[\])]?)?[ ]?:[ ]?)+",
    re.IGNORECASE,
)
"""What mail programs put before the subject of a reply, or of what is forwarded."""


class Keys(NamedTuple):
    """What connects a message with others.

    Parameters
    ----------
    own : str
        Its Message-ID, empty if it has none.
    answered : tuple of str
        The Message-IDs that it answers, the nearest first.
    subject : str
        Its subject without the prefixes of replies, in lower case.
    people : str
        A digest of the addresses of its sender and recipients; empty if it has none.
    sender : str
        The list that it came by (List-Id), or else the address of its sender.
    """

    own: str
    answered: tuple[str, ...]
    subject: str
    people: str
    sender: str


def keys_of(message: Message) -> Keys:
    r"""Return what connects a message with others.

    Examples
    --------
    >>> from email import message_from_string
    >>> keys = keys_of(message_from_string("From: Ann <Ann@a.org>\nSubject: Re: AW: Lunch\n\n"))
    >>> keys.subject, keys.sender
    ('lunch', 'ann@a.org')
    """
    own = ids_in(header(message, "message-id"))
    answered = header(message, "in-reply-to") + " " + header(message, "references", last=True)
    first, *others = ids_in(answered) or [""]
    nearest = dict.fromkeys([first, *reversed(others[-MOST_REFERENCES:])])
    return Keys(
        own[0] if own else "",
        tuple(filter(None, nearest)),
        plain_subject(header(message, "subject")),
        _digest(sorted({*addresses(message, "from", "to", "cc")})),
        (list_of(message) or next(iter(addresses(message, "from")), ""))[:LONGEST_KEY],
    )


def _digest(texts: list[str]) -> str:
    return blake2b("\n".join(texts).encode(), digest_size=8).hexdigest() if texts else ""


def header(message: Message, name: str, *, last: bool = False) -> str:
    """Return the first header of a name, decoded and on one line; a long one is cut.

    With `last`, its end is kept and not its beginning.
    """
    value = str(message.get(name, ""))
    cut = value[-LONGEST_VALUE:] if last else value[:LONGEST_VALUE]
    return " ".join(decoded_words(cut).split())


def plain_subject(subject: str) -> str:
    """Return a subject without the prefixes of replies, in lower case.

    Examples
    --------
    >>> plain_subject("Re: [team] Fwd: Lunch"), plain_subject("AW[2]: WG: Lunch")
    ('[team] fwd: lunch', 'lunch')
    """
    subject = " ".join(subject.lower().split())
    found = REPLY.match(subject)
    return subject[found.end() if found else 0 :].strip()[:LONGEST_KEY]


def list_of(message: Message) -> str:
    """Return the identifier of the list that a message came by, empty if it came by none."""
    value = header(message, "list-id").lower()
    return value.rpartition("<")[2].partition(">")[0].strip()


def addresses(message: Message, *names: str) -> list[str]:
    """Return the addresses in headers, in lower case, without those after the first characters."""
    values = filter(None, (header(message, name) for name in names))
    try:
        # One by one: of several, later versions of Python return none if one has no addresses.
        found = [each for value in values for each in getaddresses([value])]
    except RecursionError:  # comments within comments
        return []
    return [address.lower() for _, address in found if address]


class Threads:
    r"""The folders of the messages so far: by thread, by people and by sender.

    A message belongs to the thread of those that it answers (In-Reply-To, References); if none of
    them is known, to that of the last message with its subject, apart from the prefixes of
    replies. Folders are those that were learnt: nothing is known of a message before it is filed.

    Parameters
    ----------
    folders : dict from str to str, optional
        What `folders` was earlier, to continue with; it is changed.
    most : int of 1 or more, default 200,000
        The keys that are remembered. Larger values remember older threads, and take about 200 bytes
        for each more key.

    Attributes
    ----------
    folders : dict from str to str
        The folder of each key, the most recent last; it can be stored as JSON. Keys are digests,
        which hold nothing of a message.

    Examples
    --------
    >>> from email import message_from_string
    >>> ask = message_from_string("Message-ID: <1@a>\nFrom: ann@a\nSubject: Lunch\n\n")
    >>> answer = message_from_string("In-Reply-To: <1@a>\nFrom: bob@b\nSubject: Re: Lunch\n\n")
    >>> threads = Threads()
    >>> _ = threads.learn(keys_of(ask), "friends")
    >>> threads.found(keys_of(answer))
    {'thread': 'friends'}
    """

    def __init__(self, folders: dict[str, str] | None = None, most: int = MOST_KEYS) -> None:
        self.folders = {} if folders is None else folders
        self._most = most

    def found(self, keys: Keys) -> dict[str, str]:
        """Return the folder of the thread of a message, and of the last messages of its kind.

        The names are "thread", "people" (the last message among the same people), "series" (the
        last one of its sender, or list, with its subject) and "sender" (the last one of its sender,
        or list). What is not known is left out.
        """
        known = {name: map(self.folders.get, of(keys)) for name, of in KINDS.items()}
        first = {name: next(filter(None, folders), "") for name, folders in known.items()}
        return {name: folder for name, folder in first.items() if folder}

    def learn(self, keys: Keys, folder: str) -> dict[str, str | None]:
        """Remember the folder of a message; learning it again moves it.

        Returns
        -------
        The keys that have changed with their folders, None for those that are no longer remembered.
        """
        found = dict[str, str | None]()
        for key in filed_under(keys):
            self.folders.pop(key, None)
            self.folders[key] = found[key] = folder
        while len(self.folders) > self._most:
            found[oldest := next(iter(self.folders))] = None
            del self.folders[oldest]
        return found


def asked_for(keys: Keys) -> list[str]:
    """Return the keys by which threads find a message."""
    return [key for of in KINDS.values() for key in of(keys)]


def filed_under(keys: Keys) -> list[str]:
    """Return the keys under which the folder of a message is remembered."""
    return asked_for(keys._replace(answered=(keys.own,) if keys.own else ()))


def _threads_of(keys: Keys) -> list[str]:
    subjects = [f"subject {keys.subject}"] if keys.subject else []
    return [_digest([key]) for key in (*(f"id {each}" for each in keys.answered), *subjects)]


def _people_of(keys: Keys) -> list[str]:
    return [_digest([f"people {keys.people}"])] if keys.people else []


def _sender_of(keys: Keys) -> list[str]:
    return [_digest([f"sender {keys.sender}"])] if keys.sender else []


def _series_of(keys: Keys) -> list[str]:
    is_known = keys.sender and keys.subject
    return [_digest(["series", keys.sender, keys.subject])] if is_known else []


KINDS = {
    "thread": _threads_of,
    "people": _people_of,
    "series": _series_of,
    "sender": _sender_of,
}

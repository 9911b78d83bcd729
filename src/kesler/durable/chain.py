"""The chain of a history: digests by which each event fits the one before it.

The content of an event is sealed by a digest of a random number and the content; the digest of the
event is one of the digest before it, of its number, and of this seal. An event that is forgotten
leaves its number, its seal and its digest. Without its random number, which is removed with it,
nobody can find its content by trying contents. The event that forgets says which others it has
removed or changed, and seals what is left of those.

All digests are SHA-256, as 64 hexadecimal characters.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

# Values that only somebody else can have written, such as bytes, have digests as well.
_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=repr).encode


class Content(NamedTuple):
    """What an event says: all that is stored of it but what follows from other events.

    Answers, names of classes and rows are JSON, as is `forgotten`: the numbers of the events that
    an event has removed, with null, and of those that it has changed, with their seals.
    """

    kind: str
    id: str
    time: float
    subject: str | None = None
    answer: str | None = None
    old: str | None = None
    target: int | None = None
    author: str | None = None
    changed_from: int | None = None
    n_rows: int = 0
    forgotten: str | None = None
    form: str | None = None
    row: str | None = None

    @property
    def text(self) -> str:
        """What is sealed: all that is given as a JSON object, and a row, if any, in a second line.

        A row is long, and JSON already: it would be written as JSON once more within the object.
        """
        *described, row = self
        names = zip(self._fields, described, strict=False)
        text = _to_json({name: value for name, value in names if value is not None})
        return text if row is None else f"{text}\n{row}"


class Link(NamedTuple):
    """An event in the chain.

    Attributes
    ----------
    number : its number.
    digest : its digest, as stored.
    sealed : the seal with which it was written, if it has been removed or changed since.
    nonce : the random number of the seal; None if the event has been removed.
    content : what it says; None if it has been removed.
    taken_back : which event has taken it back, as stored.
    """

    number: int
    digest: str
    sealed: str | None
    nonce: str | None = None
    content: Content | None = None
    taken_back: int | None = None

    @property
    def now(self) -> str | None:
        """The seal of its content as it is; None if it has been removed."""
        return None if self.content is None else seal_of(str(self.nonce), self.content.text)

    @property
    def first_seal(self) -> str:
        """The seal with which it was written."""
        return self.sealed or self.now or ""

    @property
    def line(self) -> str:
        """What an export holds of it: its content as the text that is sealed."""
        text = None if self.content is None else self.content.text
        found = {"number": self.number, "digest": self.digest, "sealed": self.sealed}
        found |= {"nonce": self.nonce, "content": text}
        return _to_json({name: value for name, value in found.items() if value is not None})


class Beginning(NamedTuple):
    """The model that a chain begins with, as stored."""

    name: str
    settings: str

    @property
    def digest(self) -> str:
        """The digest that the first event follows."""
        return seal_of("", self._text)

    @property
    def line(self) -> str:
        """What an export holds of it."""
        return _to_json({"content": self._text, "digest": self.digest})

    @property
    def _text(self) -> str:
        return _to_json({"name": self.name, "settings": self.settings})


class End(NamedTuple):
    """The number and the digest of the last event that was written, as stored with the model."""

    last: int
    head: str


def new_nonce() -> str:
    """Return a random number of 128 bits."""
    return os.urandom(16).hex()


def seal_of(nonce: str, text: str) -> str:
    """Return the digest that seals a content."""
    return _sha256(f"{nonce}{text}")


def digest_after(before: str, number: int, seal: str) -> str:
    """Return the digest of an event, given the one before it."""
    return _sha256(f"{before} {number} {seal}")


def _sha256(text: str) -> str:
    """Return the digest of a text, in which surrogates stand for bytes that are not UTF-8."""
    return sha256(text.encode(errors="surrogateescape")).hexdigest()


# ---- what does not fit --------------------------------------------------------------------------


def faults_of(beginning: Beginning, links: Iterable[Link], end: End) -> list[str]:
    """Return which events of a chain do not fit, in words, the first of each kind of fault."""
    reader = _Reader(beginning.digest)
    for link in links:
        reader.follow(link)
    return reader.faults(end)


class _Reader:
    """What has been read of a chain, of which later parts are read as if those before fitted."""

    def __init__(self, digest: str) -> None:
        self._number, self._digest = 0, digest
        self._unfit: Link | None = None  # the first that does not follow from the one before
        self._left: dict[int, str | None] = {}  # the seals of events removed and changed
        self._stated: dict[int, str | None] = {}  # those that the events that forget say
        self._undos: dict[int, int | None] = {}
        self._taken_back: dict[int, int] = {}

    def follow(self, link: Link) -> None:
        """Take the next event up."""
        fits = digest_after(self._digest, link.number, link.first_seal) == link.digest
        self._number, self._digest = link.number, link.digest
        if not fits:
            self._unfit = self._unfit or link
        if link.sealed is not None:
            self._left[link.number] = link.now
        if link.taken_back is not None:
            self._taken_back[link.number] = link.taken_back
        if fits and link.content is not None and link.sealed is None:
            self._say(link.number, link.content)

    def _say(self, number: int, content: Content) -> None:
        """Take up what an event says of others."""
        if content.kind == "undo":
            self._undos[number] = content.target
        if content.forgotten is not None:
            stated = json.loads(content.forgotten)
            self._stated |= {int(each): seal for each, seal in stated.items()}

    def faults(self, end: End) -> list[str]:
        """Return which events do not fit, in words."""
        found = [] if self._unfit is None else [f"{_named(self._unfit)} {_UNFIT}"]
        if (self._number, self._digest) != end:
            found.append(f"the history ends with event {self._number!r}, {_UNENDED} {end.last!r}")
        pairs = (
            (self._left, self._stated, "is not as the events that forget have left it"),
            (self._taken_back, taken_back_by(self._undos), "is marked otherwise than events undo"),
        )
        for is_so, follows, what in pairs:
            number = _first_difference(is_so, follows)
            if number is not None:
                found.append(f"event {number!r} {what}: it has been changed or removed by hand")
        return found


_UNFIT = (
    "does not fit the one before it: it has been changed by hand, or events between the two have "
    "been removed, put in or moved"
)
_UNENDED = "and the last that was written, which has been changed or removed by hand, was event"


def _first_difference(found: Mapping[int, Any], expected: Mapping[int, Any]) -> int | None:
    """Return the first number for which two mappings differ; None if they are equal."""
    numbers = found.keys() | expected.keys()
    unlike = (n for n in numbers if found.get(n, ...) != expected.get(n, ...))
    return min(unlike, key=lambda n: n if type(n) is int else 0, default=None)


def _named(link: Link) -> str:
    if link.content is None:
        return f"event {link.number!r}, which has been forgotten,"
    kind = str(link.content.kind).encode(errors="backslashreplace").decode()
    return f"event {link.number!r} ({kind:.60} {link.content.id!r:.60})"


def taken_back_by(undos: Mapping[int, int | None]) -> dict[int, int]:
    """Return which event has taken each back.

    Parameters
    ----------
    undos : the numbers of the events that undo, in order, and of those that each is about.

    Examples
    --------
    >>> taken_back_by({5: 3}), taken_back_by({5: 3, 6: 5}), taken_back_by({5: 3, 6: 5, 7: 6})
    ({3: 5}, {5: 6}, {3: 5, 6: 7})
    """
    found: dict[int, int | None] = {}
    for number, target in undos.items():
        for event, by in flips(number, target, undos):
            found[event] = by
    return {event: by for event, by in found.items() if by is not None}


def flips(
    number: int, target: int | None, undos: Mapping[int, int | None]
) -> Iterator[tuple[int, int | None]]:
    """Yield what an undo makes of the event that it is about, and of those that this one is about.

    Each is a number, and that of the event that has then taken it back, or None.
    """
    by: int | None = number
    while target is not None:
        yield target, by
        by, target = (target if by is None else None), undos.get(target)

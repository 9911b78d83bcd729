"""Messages of Outlook as tests write them: properties (MS-OXMSG) in a compound file (MS-CFB)."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import datetime

FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
SECTOR, SMALL = 512, 64
TEXT, BYTES, TIME, NUMBER = 0x001F, 0x0102, 0x0040, 0x0003
KIND, SUBJECT, BODY, HTML, HEADERS = 0x001A, 0x0037, 0x1000, 0x1013, 0x007D
SENDER, SENDER_ADDRESS, SUBMITTED, CODEPAGE = 0x0C1A, 0x0C1F, 0x0039, 0x3FDE
NAME, ADDRESS, FILE_NAME, METHOD, DATA = 0x3001, 0x3003, 0x3707, 0x3705, 0x3701
NAMED = [f"__substg1.0_000{i}0102" for i in (2, 3, 4)]  # the streams of properties that have names
Value = str | bytes | int | datetime
Storage = dict[str, "bytes | Storage"]


def _padded(content: bytes, unit: int) -> bytes:
    return content + bytes(-len(content) % unit)


def _chain(n_units: int, first: int) -> list[int]:
    """Return the entries of a table of units that follow one another."""
    return [*range(first + 1, first + n_units), END] if n_units else []


class _Directory:
    """The entries of a compound file, and the streams that they name."""

    def __init__(self, root: Storage) -> None:
        self.entries: list[bytes] = []
        self.small, self.links = b"", list[int]()
        self._add("Root Entry", root, kind=5)

    def _add(self, name: str, content: bytes | Storage, kind: int) -> int:
        place = len(self.entries)
        self.entries.append(b"")
        children, start, size = FREE, 0, 0
        if isinstance(content, bytes):
            assert len(content) < 4096, name
            start, size = (len(self.small) // SMALL, len(content)) if content else (END, 0)
            self.links += _chain(-(-len(content) // SMALL), len(self.links))
            self.small += _padded(content, SMALL)
        else:  # the children of a storage are a tree, which may be a list
            for child, each in sorted(content.items(), key=_order, reverse=True):
                number = self._add(child, each, 2 if isinstance(each, bytes) else 1)
                self.entries[number] = self._linked(number, children)
                children = number
        self.entries[place] = _entry(name, kind, FREE, children, start, size)
        return place

    def _linked(self, number: int, after: int) -> bytes:
        entry = self.entries[number]
        return entry[:72] + struct.pack("<I", after) + entry[76:]

    def of_root(self, start: int) -> bytes:
        entry = self.entries[0]
        return entry[:116] + struct.pack("<IQ", start, len(self.small))


def _order(child: tuple[str, object]) -> tuple[int, str]:
    return len(child[0]), child[0].upper()


def _entry(name: str, kind: int, right: int, child: int, start: int, size: int) -> bytes:
    encoded = name.encode("utf-16-le")
    links = struct.pack("<HBBIII", len(encoded) + 2, kind, 1, FREE, right, child)
    head = encoded.ljust(64, b"\0") + links
    return head.ljust(116, b"\0") + struct.pack("<IQ", start, size)


def compound_file(root: Storage) -> bytes:
    """Return a compound file whose streams are all small."""
    directory = _Directory(root)
    small = _padded(directory.small, SECTOR)
    links = struct.pack(f"<{len(directory.links)}I", *directory.links)
    links += b"\xff" * (-len(links) % SECTOR)
    entries = [directory.of_root(0), *directory.entries[1:]]
    listed = b"".join(entries)
    listed += _entry("", 0, FREE, FREE, 0, 0) * (-len(entries) % 4)
    sizes = [len(part) // SECTOR for part in (listed, links, small)]
    n_fat = 1
    while n_fat * SECTOR // 4 < sum(sizes) + n_fat:
        n_fat += 1
    first = n_fat
    table = [FAT] * n_fat
    starts = []
    for size in sizes:
        starts.append(first if size else END)
        table += _chain(size, first)
        first += size
    listed = directory.of_root(starts[2]) + listed[128:]
    fat = struct.pack(f"<{len(table)}I", *table)
    fat += b"\xff" * (n_fat * SECTOR - len(fat))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<IIIIIIIII", 0, n_fat, starts[0], 0, 4096, starts[1], sizes[1], END, 0)
    header += struct.pack("<109I", *range(n_fat), *[FREE] * (109 - n_fat))
    return header + fat + listed + links + small


def _properties(values: Mapping[int, Value], header: bytes) -> Storage:
    """Return the streams of properties."""
    found, lines = Storage(), header
    for number, value in values.items():
        if isinstance(value, (int, datetime)):
            kind = NUMBER if isinstance(value, int) else TIME
            ticks = value if isinstance(value, int) else _ticks(value)
            lines += struct.pack("<HHIQ", kind, number, 6, ticks)
            continue
        kind = TEXT if isinstance(value, str) else BYTES
        content = value.encode("utf-16-le") if isinstance(value, str) else value
        size = len(content) + 2 * isinstance(value, str)
        lines += struct.pack("<HHIII", kind, number, 6, size, 0)
        found[f"__substg1.0_{number:04X}{kind:04X}"] = content
    return {"__properties_version1.0": lines, **found}


def _ticks(moment: datetime) -> int:
    return int((moment - datetime(1601, 1, 1, tzinfo=moment.tzinfo)).total_seconds()) * 10_000_000


def outlook_message(
    values: Mapping[int, Value],
    recipients: Sequence[tuple[str, str]] = (),
    attachments: Sequence[str] = (),
) -> bytes:
    """Return a message with these properties, recipients and names of attachments."""
    n_parts = len(recipients), len(attachments)
    counts = struct.pack("<8xIIII8x", *n_parts, *n_parts)
    root = _properties({KIND: "IPM.Note", **values}, counts)
    root["__nameid_version1.0"] = dict.fromkeys(NAMED, b"")
    for i, (name, address) in enumerate(recipients):
        root[f"__recip_version1.0_#{i:08X}"] = _properties({NAME: name, ADDRESS: address}, bytes(8))
    for i, name in enumerate(attachments):
        values = {FILE_NAME: name, METHOD: 1, DATA: b"%PDF"}
        root[f"__attach_version1.0_#{i:08X}"] = _properties(values, bytes(8))
    return compound_file(root)

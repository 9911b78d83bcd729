"""The inbox in a journal's database, against a plain list."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from kesler.durable import items as inbox
from kesler.durable.items import Item, Items

TEXTS = ["Größe", "GRÖSSE 3", 'say "no"', "back\\slash", "plain text", "plain texs", "slain text"]
ALL = 1000


@dataclass
class Entry:
    """An item of the plain list; `answered` says when it was, in turn, and 0 that it waits."""

    model: str
    item: Item
    answered: int = 0


@dataclass
class PlainInbox:
    """Items in the order of their places, and what follows by the definition alone."""

    most: int
    entries: list[Entry] = field(default_factory=list)

    def entry(self, model: str, id: str) -> Entry | None:
        found = [each for each in self.entries if (each.model, each.item.id) == (model, id)]
        return found[0] if found else None

    def add(self, model: str, given: list[Item]) -> list[bool]:
        outcomes = []
        for item in given:
            known = self.entry(model, item.id)
            outcomes.append(known is None or bool(known.answered))
            if known is None:
                self.entries.append(Entry(model, item))
            elif known.answered:
                known.item = item._replace(arrived=known.item.arrived, note=None)
                known.answered = 0
        return outcomes

    def waiting(self, model: str, text: str = "") -> list[Item]:
        own = [each.item for each in self.entries if each.model == model and not each.answered]
        return [each for each in own if _has(each, text)]

    def answer(self, model: str, ids: list[str]) -> None:
        for id in ids:
            entry = self.entry(model, id)
            if entry is not None and not entry.answered:
                entry.answered = 1 + max(e.answered for e in self.entries if e.model == model)
                entry.item = entry.item._replace(subject=None, title=None, note=None)
        last = max((e.answered for e in self.entries if e.model == model), default=0)
        self._keep(lambda e: e.model != model or not 0 < e.answered <= last - self.most)

    def describe(self, model: str, descriptions: dict[str, Any]) -> None:
        for id, (title, note) in descriptions.items():
            entry = self.entry(model, id)
            if entry is not None:
                entry.item = entry.item._replace(title=title, note=note)

    def remove(self, model: str, ids: list[str]) -> None:
        self._keep(lambda e: e.model != model or e.item.id not in ids)

    def discard(self, model: str, ids: list[str] | None, text: str) -> int:
        gone = self.waiting(model, text) if ids is None else self.waiting(model)
        named = [each.id for each in gone if ids is None or each.id in ids]
        self.remove(model, named)
        return len(named)

    def remove_subject(self, model: str, subject: str) -> None:
        self._keep(lambda e: e.model != model or e.item.subject != subject)

    def _keep(self, condition: Any) -> None:
        self.entries = [each for each in self.entries if condition(each)]


class Locked:
    """A connection that is to be used under the lock of the inbox."""

    def __init__(self, items: Items) -> None:
        self.connection, self.lock = items._database, items._lock

    def __getattr__(self, name: str) -> Any:
        assert self.lock._is_owned(), f"{name} is called without the lock"
        return getattr(self.connection, name)


def _has(item: Item, text: str) -> bool:
    """Whether the row of an item or its title contains a text, whatever their case."""
    folded = text.casefold()
    return folded in item.row.casefold() or folded in (item.title or "").casefold()


def step(chance: random.Random, items: Items, plain: PlainInbox) -> None:
    """Do the same with the database and with the list."""
    model, ids = chance.choice(["mail", "desk"]), chance.sample([f"i{n}" for n in range(12)], 3)
    text, subject = chance.choice(TEXTS), chance.choice([None, "ann", "bob"])
    way = chance.choices(
        ["add", "answer", "describe", "remove", "discard", "discard text", "subject"],
        [8, 5, 2, 1, 1, 1, 1],
    )[0]
    if way == "add":
        title = chance.choice([None, "", "Über uns"])
        given = [Item(id, chance.choice(TEXTS), subject, 1.0 + chance.random(), title, "new")
                 for id in ids]  # fmt: skip
        assert items.add(model, given) == plain.add(model, given)
    elif way == "answer":
        items.answer(model, ids)
        plain.answer(model, ids)
    elif way == "describe":
        waiting = [each.id for each in plain.waiting(model)]
        described = {id: (chance.choice([None, "Ü 1"]), text) for id in waiting[::2]}
        items.describe(model, described)
        plain.describe(model, described)
    elif way == "remove":
        items.remove(model, ids[:1])
        plain.remove(model, ids[:1])
    elif way == "subject":
        items.remove_subject(model, "ann")
        plain.remove_subject(model, "ann")
    else:
        given = None if way == "discard text" else ids
        text = text or "plain"
        assert items.discard(model, given, text) == plain.discard(model, given, text)


@pytest.mark.parametrize("seed", range(3))
def test_an_inbox_is_as_a_list(seed, tmp_path, monkeypatch):
    assert inbox.MOST_PLACES == 1000
    monkeypatch.setattr(inbox, "MOST_PLACES", 4)
    chance, plain = random.Random(seed), PlainInbox(most=4)
    with closing(Items(str(tmp_path / "desk.db"))) as items:
        items._database.execute("PRAGMA synchronous = OFF")
        items._database = Locked(items)
        for _ in range(120):
            step(chance, items, plain)
            for model in ("mail", "desk"):
                expected, text = plain.waiting(model), chance.choice(TEXTS)
                assert items.page(model, "", 0, ALL) == expected
                assert items.page(model, "", 1, 2) == expected[1:3]
                assert items.page(model, text, 0, ALL) == plain.waiting(model, text)
                assert items.count(model, text) == len(plain.waiting(model, text))
                assert items.count(model) == len(expected)
                described = {each.id: (each.title, each.note) for each in expected}
                assert items.descriptions(model) == described
                entries = [each for each in plain.entries if each.model == model]
                answered = {each.item.id for each in entries if each.answered}
                assert {*items.answered(model)} == answered
                for id in ("i0", "i1", "i2"):
                    found = [each for each in expected if each.id == id]
                    assert items.get(model, id) == (found[0] if found else None)
        items.remove_model("mail")
        assert items.count("mail") == 0 == len(items.answered("mail"))
        assert items.page("desk", "", 0, ALL) == plain.waiting("desk")


def test_an_item_arrives_when_it_is_added_or_says_when_it_did(tmp_path):
    before = time.time()
    with closing(Items(str(tmp_path / "desk.db"))) as items:
        assert items.add("mail", [Item("a", {"w": [1, None]}), Item("b", "x", arrived=7.5)])
        first, second = items.page("mail", "", 0, ALL)
        assert before <= first.arrived <= time.time() and second.arrived == 7.5
        assert first == Item("a", {"w": [1, None]}, arrived=first.arrived)


def test_what_is_removed_is_not_in_the_file(tmp_path):
    path = tmp_path / "desk.db"
    with closing(Items(str(path))) as items:
        items.add("mail", [Item(f"i{i}", f"plantedword {i}", "plantedname") for i in range(40)])
        items.add("mail", [Item("kept", "another")])
        items.answer("mail", [f"i{i}" for i in range(20)])
        items.discard("mail", [f"i{i}" for i in range(20, 30)])
        items.remove_subject("mail", "plantedname")
        assert items.count("mail") == 1
    assert b"planted" not in path.read_bytes()


def test_a_change_that_fails_changes_nothing_and_the_next_is_made(tmp_path):
    with closing(Items(str(tmp_path / "desk.db"))) as items:
        items.add("mail", [Item("a", "text")])
        with pytest.raises(Exception, match="type 'object' is not supported"):
            items.discard("mail", ["a", object()])
        assert items.count("mail") == 1
        assert items.add("mail", [Item("b", "text")]) == [True]
    with closing(Items(str(tmp_path / "desk.db"))) as items:
        assert [*items.descriptions("mail")] == ["a", "b"]


def test_a_change_waits_for_another_connection_that_writes(tmp_path):
    path = str(tmp_path / "desk.db")
    other = sqlite3.connect(path, check_same_thread=False)
    with closing(Items(path)) as items, closing(other):
        other.execute("BEGIN IMMEDIATE")
        waiting = threading.Timer(0.1, other.rollback)
        waiting.start()
        assert items.add("mail", [Item("a", "text")]) == [True]
        waiting.join()


def test_nothing_is_written_without_an_item(tmp_path):
    """Nor is there a wait for whoever writes."""
    path = str(tmp_path / "desk.db")
    with closing(Items(path)) as items, closing(sqlite3.connect(path)) as other:
        items._database.execute("PRAGMA busy_timeout = 0")
        items.add("mail", [Item("a", "text")])
        other.execute("BEGIN IMMEDIATE")
        items.answer("mail", ["nobody"])
        items.answer("mail", [])
        items.remove("mail", [])
        with pytest.raises(Exception, match="another process is writing"):
            items.remove("mail", ["a"])


def test_items_of_a_connection_that_is_closed_are_refused(tmp_path):
    items = Items(str(tmp_path / "desk.db"))
    items.close()
    with pytest.raises(Exception, match="the journal is closed"):
        items.count("mail")

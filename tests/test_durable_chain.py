"""The chain of a journal: changes by hand are named, and what is forgotten leaves no word."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import pages
from histories import WITHOUT_DIGESTS, Walk
from kesler import KeslerError, OnlineClassifier, OnlineMultilabelClassifier
from kesler.durable import Journal
from kesler.durable.chain import Beginning, Content, End, Link, faults_of

ROWS = [(f"w{i} w{i % 5}", "abcd"[i % 4]) for i in range(40)]
SETS = [(words, sorted({label, "cdea"[i % 4]})) for i, (words, label) in enumerate(ROWS)]


def drawing(rows):
    return lambda rng: rows[rng.integers(len(rows))]


def walked(path, seed, n_steps=60, each=None):
    """Write a journal of two models, by random calls in turn."""
    rng = np.random.default_rng(seed)
    with Journal(path) as journal:
        walks = [
            Walk(journal.open("mail", OnlineClassifier()), drawing(ROWS), rng),
            Walk(journal.open("tags", OnlineMultilabelClassifier()), drawing(SETS), rng),
        ]
        for step in range(n_steps):
            walks[step % 2].step()
            if each is not None:
                each(journal)
    return path


def said_of(line):
    """What an event of an export says, without its row."""
    return json.loads(line["content"].partition("\n")[0])


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    path = walked(tmp_path_factory.mktemp("chain") / "desk.db", seed=3, n_steps=120)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM forgotten").fetchone()[0] > 5
        assert database.execute("SELECT count(sealed) FROM events").fetchone()[0] > 2
    return path


# ---- histories that nobody has changed ----------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_chain_holds_after_any_calls_and_says_what_was_before(tmp_path, seed):
    kept = {"mail": set(), "tags": set()}

    def look(journal):
        assert journal.verify() == []
        for name, digest in journal.digests().items():
            kept[name].add(digest)

    path = walked(tmp_path / "desk.db", seed, each=look)
    with Journal(path) as journal:
        assert journal.check() == []
        for name, digests in kept.items():
            assert digests <= {json.loads(line)["digest"] for line in journal.export(name)}


def test_processes_that_write_in_turn_continue_one_chain(tmp_path):
    with Journal(tmp_path / "desk.db") as one, Journal(tmp_path / "desk.db") as other:
        models = one.open("mail", OnlineClassifier()), other.open("mail", OnlineClassifier())
        for i, (words, label) in enumerate(ROWS):
            models[i % 2].learn_one(words, label, id=f"m{i}")
        models[0].forget("m7")
        models[1].undo("m9")
        assert one.verify() == other.verify() == [] and one.digests() == other.digests()


def test_what_is_deleted_or_not_there_has_no_chain(tmp_path):
    with Journal(tmp_path / "desk.db") as journal:
        journal.open("mail", OnlineClassifier())
        assert journal.verify() == [] and len([*journal.export("mail")]) == 1
        journal.open("mail").learn_one("win cash", "spam", id="m1")
        journal.open("mail").forget("m1")
        journal.delete("mail")
        assert journal.verify() == [] and journal.digests() == {}
        with pytest.raises(KeslerError, match="no model 'mail'"):
            next(journal.export("mail"))


FORMER = f"{WITHOUT_DIGESTS} PRAGMA user_version = 2;"


def test_journals_without_digests_get_them(desk, tmp_path):
    path = shutil.copy(desk, tmp_path / "former.db")
    with Journal(path) as journal:
        before = {name: repr(journal.open(name).history(None)) for name in journal.models()}
    with closing(sqlite3.connect(path)) as database:
        database.executescript(FORMER)
    for _ in range(2):
        with Journal(path) as journal:
            assert journal.check() == []
            assert before == {n: repr(journal.open(n).history(None)) for n in journal.models()}
    database, n = sqlite3.connect(path), 0
    with closing(database), database:
        (n,) = database.execute("SELECT min(number) FROM rows").fetchone()
        database.execute("UPDATE rows SET row = '[]' WHERE number = ?", (n,))
    with Journal(path) as journal:
        assert f"event {n} " in journal.verify()[0]


# ---- changes by hand ----------------------------------------------------------------------------


EVENT = (
    "kind id subject answer old target time author changed_from n_rows forgotten nonce sealed "
    "digest taken_back"
).split()


class Hand:
    """Random changes of a database, each with the number of the event that it makes not fit."""

    def __init__(self, path, rng):
        self.database, self.rng = sqlite3.connect(path, isolation_level=None), rng
        self.database.execute("PRAGMA synchronous = OFF")

    def all(self, query, *values):
        return [each for (each,) in self.database.execute(query, values)]

    def one(self, query, *values):
        found = self.all(query, *values)
        return found[self.rng.integers(len(found))]

    def do(self, statement, *values):
        assert self.database.execute(statement, values).rowcount == 1, statement

    def event(self, condition="TRUE"):
        return self.one(f"SELECT number FROM events WHERE {condition}")

    def after(self, number):
        """The next event of the same model, forgotten ones included; the one before at the end."""
        chain = "SELECT model, number FROM events UNION SELECT model, number FROM forgotten"
        (model,) = self.all(f"SELECT model FROM ({chain}) WHERE number = ?", number)
        numbers = self.all(f"SELECT number FROM ({chain}) WHERE model = ? ORDER BY number", model)
        at = numbers.index(number)
        return numbers[at + 1] if at + 1 < len(numbers) else numbers[at - 1]

    def alter_event(self):
        columns = EVENT
        column, number = str(self.rng.choice(columns)), self.event()
        (was,) = self.all(f"SELECT {column} FROM events WHERE number = ?", number)
        value = (was or 0) + 1 if not isinstance(was, str) else was[:-1] + "~"
        if was is not None and column not in ("kind", "id", "time", "n_rows", "nonce", "digest"):
            value = value if self.rng.random() < 0.5 else None
        self.do(f"UPDATE events SET {column} = ? WHERE number = ?", value, number)
        return number

    def alter(self, table, *columns):
        number, column = self.one(f"SELECT number FROM {table}"), str(self.rng.choice(columns))
        self.do(f"UPDATE {table} SET {column} = {column} || ' ' WHERE number = ?", number)
        return number

    def alter_row(self):
        return self.alter("rows", "form", "row")

    def alter_mark(self):
        return self.alter("forgotten", "digest", "sealed")

    def write_no_text(self):
        """Write bytes that are not UTF-8, where there is a text or a number."""
        table = str(self.rng.choice(["events", "rows"]))
        columns = {"events": EVENT, "rows": ["form", "row"]}[table]
        number, column = self.one(f"SELECT number FROM {table}"), str(self.rng.choice(columns))
        value = "CAST(CAST(coalesce(kind, '') AS BLOB) || x'61ff62' AS TEXT)".replace(
            "kind", column
        )
        self.do(f"UPDATE {table} SET {column} = {value} WHERE number = ?", number)
        return number

    def delete(self, table):
        number = self.one(f"SELECT number FROM {table}")
        follower = self.after(number)
        self.do(f"DELETE FROM {table} WHERE number = ?", number)
        self.database.execute("DELETE FROM rows WHERE number = ?", (number,))
        return follower

    def delete_event(self):
        return self.delete("events")

    def delete_mark(self):
        return self.delete("forgotten")

    def delete_row(self):
        number = self.one("SELECT number FROM rows")
        self.do("DELETE FROM rows WHERE number = ?", number)
        return number

    def pretend_to_forget(self):
        """Remove an event, and leave the mark that forgetting leaves."""
        with Journal(self.all("SELECT file FROM pragma_database_list")[0]) as journal:
            name = self.one("SELECT name FROM models")
            links = [json.loads(line) for line in journal.export(name)][1:]
        link = links[self.rng.choice([i for i, each in enumerate(links) if "content" in each])]
        seal = link.get("sealed") or sha256((link["nonce"] + link["content"]).encode()).hexdigest()
        (model,) = self.all("SELECT key FROM models WHERE name = ?", name)
        values = model, link["number"], link["digest"], seal
        self.do("DELETE FROM events WHERE number = ?", link["number"])
        self.database.execute("DELETE FROM rows WHERE number = ?", (link["number"],))
        self.do("INSERT INTO forgotten VALUES (?, ?, ?, ?)", *values)
        said = json.loads(said_of(link).get("forgotten", "{}"))
        return min(map(int, said), default=link["number"])

    def swap_answers(self):
        first = self.event("kind = 'learn'")
        other = self.event(
            f"kind = 'learn' AND answer <> (SELECT answer FROM events WHERE number = {first})"
        )
        answers = self.all(
            "SELECT answer FROM events WHERE number IN (?, ?) ORDER BY number = ?",
            first, other, first,
        )  # fmt: skip
        for number, answer in zip((first, other), answers, strict=True):
            self.do("UPDATE events SET answer = ? WHERE number = ?", answer, number)
        return min(first, other)

    def reorder(self):
        first, other = self.event("model = 1"), self.event("model = 1")
        if first == other:
            return self.delete_event()
        for table in ("events", "rows"):
            for number, becomes in ((first, -1), (other, first), (-1, other)):
                query = f"UPDATE {table} SET number = ? WHERE number = ?"
                self.database.execute(query, (becomes, number))
        return min(first, other)

    def insert(self):
        """Copy an event to the end, or to the number of one that was forgotten."""
        places = self.all("SELECT number FROM forgotten WHERE model = 1")
        places.append(self.all("SELECT max(number) + 1 FROM events")[0])
        number, source = int(self.rng.choice(places)), self.event("model = 1")
        columns = "model, kind, subject, answer, old, target, time, n_rows, nonce, digest"
        query = f"INSERT INTO events (number, id, {columns}) SELECT ?, ?, {columns} FROM events "
        self.do(f"{query} WHERE number = ?", number, f"new{number}", source)
        self.database.execute("INSERT OR IGNORE INTO rows VALUES (?, 'text', '\"w\"')", (number,))
        return number

    def alter_model(self):
        key = self.one("SELECT key FROM models")
        column = str(self.rng.choice(["name", "settings", "head", "last", "key"]))
        self.do(f"UPDATE models SET {column} = {column} || '1' WHERE key = ?", key)
        if column == "key":
            return min(self.all("SELECT number FROM events WHERE model = ?", key))
        extreme = "max" if column in ("head", "last") else "min"
        chain = "SELECT model, number FROM events UNION SELECT model, number FROM forgotten"
        return self.all(f"SELECT {extreme}(number) FROM ({chain}) WHERE model = ?", key)[0]

    def put_a_row(self):
        number = self.event("kind <> 'learn'")
        self.do("INSERT INTO rows VALUES (?, 'text', '\"w\"')", number)
        return number


CHANGES = [name for name, each in vars(Hand).items() if callable(each) and name[0] != "_"]
HELPERS = ("all", "one", "do", "event", "after", "alter", "delete")
CHANGES = [name for name in CHANGES if name not in HELPERS]
N_CHANGES = 80  # of each kind: about a thousand in all


@pytest.mark.parametrize("kind", CHANGES)
def test_changes_by_hand_are_named(desk, tmp_path, kind):
    rng = np.random.default_rng(CHANGES.index(kind))
    for _ in range(N_CHANGES):
        path = shutil.copy(desk, tmp_path / "altered.db")
        hand = Hand(path, rng)
        with closing(hand.database):
            number = getattr(hand, kind)()
        with Journal(path) as journal:
            found = journal.verify()
            named = [int(each) for fault in found for each in re.findall(r"event (\d+)", fault)]
            assert number in named, (number, found)
            assert journal.check() == found


def test_what_is_no_text_is_refused_by_all_but_the_check(desk, tmp_path):
    path = shutil.copy(desk, tmp_path / "altered.db")
    database = sqlite3.connect(path)
    with closing(database), database:
        database.execute("UPDATE events SET author = CAST(x'61ff62' AS TEXT) WHERE model = 1")
    with Journal(path) as journal:
        for _ in range(2):
            with pytest.raises(KeslerError, match="UTF-8"):
                [*journal.export("mail")]
            assert journal.verify() != []


def sha256_of(text):
    return sha256(text.encode()).hexdigest()


def test_the_text_that_is_sealed_stays_as_it_is():
    """The digests that journals hold are of it."""
    given = {"subject": "Zoë", "answer": '"ü"', "n_rows": 1, "form": "text", "row": '"naïve"'}
    assert Content("learn", "é1", 2.5, **given).text == (
        '{"kind":"learn","id":"é1","time":2.5,"subject":"Zoë","answer":"\\"ü\\"","n_rows":1,'
        '"form":"text"}\n"naïve"'
    )
    assert Content("undo", "u", 3.5, target=2).text == (
        '{"kind":"undo","id":"u","time":3.5,"target":2,"n_rows":0}'
    )
    assert Beginning("é", "{}").digest == sha256_of('{"name":"é","settings":"{}"}')


BEGINNING = Beginning("mail", "{}")


def chained(events):
    """Return links whose digests follow from one another, given (number, sealed, content)."""
    before, links = BEGINNING.digest, []
    for number, sealed, content in events:
        seal = sealed or sha256_of("nonce" + content.text)
        before = sha256_of(f"{before} {number} {seal}")
        links.append(Link(number, before, sealed, content and "nonce", content))
    return links, End(links[-1].number, before)


def saying(number):
    return Content("forget", "f", 1.0, n_rows=1, forgotten=json.dumps({number: None}))


def test_of_events_that_nothing_says_to_be_forgotten_the_first_is_named():
    numbers = (5, 33, 64)  # which a set of Python has in another order
    marks = [(number, sha256_of("seal"), None) for number in numbers]
    links, end = chained(marks)
    (fault,) = faults_of(BEGINNING, links, end)
    assert fault.startswith("event 5 is not as the events that forget have left it")
    links, end = chained([*marks[1:], (70, None, saying(33))])
    (fault,) = faults_of(BEGINNING, links, end)
    assert fault.startswith("event 64 is not as")


def test_what_an_event_says_that_does_not_fit_is_not_believed():
    links, end = chained([(5, sha256_of("seal"), None), (7, None, saying(5))])
    assert faults_of(BEGINNING, links, end) == []
    for altered in (
        links[1]._replace(nonce="another"),
        links[1]._replace(digest=sha256_of("another")),
    ):
        found = faults_of(BEGINNING, [links[0], altered], End(7, altered.digest))
        assert [each[:8] for each in found] == ["event 7 ", "event 5 "]
    links, end = chained([(5, sha256_of("seal"), None), (7, sha256_of("7"), saying(5))])
    (found,) = faults_of(BEGINNING, links, end)
    assert found.startswith("event 5 is not as the events that forget have left it")


# ---- exports ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fault_of():
    """The program of the page, which has no module of Kesler."""
    page = Path(pages.ROOT / "docs/guides/records.md")
    (text,) = (block.text for block in pages.blocks(page) if "def fault_of" in block.text)
    space: dict[str, object] = {}
    program, _, _ = text.partition("\n\n\nwith open")
    assert "kesler" not in program
    exec(program, space)
    return space["fault_of"]


def test_an_export_is_checked_without_kesler(desk, fault_of):
    with Journal(desk) as journal:
        for name in journal.models():
            lines = [*journal.export(name)]
            assert fault_of(lines) is None
            assert json.loads(lines[-1])["digest"] == journal.digests()[name]


def test_the_program_of_the_page_names_what_check_names(desk, tmp_path, fault_of):
    rng, n = np.random.default_rng(0), 0
    exported = [kind for kind in CHANGES if kind != "write_no_text"]  # which `export` refuses
    for kind in exported * 5:
        path = shutil.copy(desk, tmp_path / "altered.db")
        hand = Hand(path, rng)
        with closing(hand.database):
            getattr(hand, kind)()
        with Journal(path) as journal:
            found = " ".join(journal.verify())
            for name in re.findall(r"the model '(\w+)': event \d+ (?!is marked)", found):
                said = fault_of([*journal.export(name)])
                number = re.match(r"event \d+", said or "")
                assert number and re.search(rf"{number[0]}\b", found), (found, said)
                n += 1
    assert n > 30


@pytest.mark.parametrize("way", ["drop", "swap", "repeat", "alter"])
def test_lines_that_were_changed_are_named(desk, fault_of, way):
    with Journal(desk) as journal:
        lines = [*journal.export("mail")]
    for at in range(1, len(lines) - 1):
        altered, number = [*lines], json.loads(lines[at])["number"]
        if way == "drop":
            del altered[at]
            number = json.loads(lines[at + 1])["number"]
        elif way == "swap":
            altered[at : at + 2] = altered[at : at + 2][::-1]
            number = json.loads(lines[at + 1])["number"]
        elif way == "repeat":
            altered.insert(at, altered[at])
        else:
            altered[at] = json.dumps(json.loads(lines[at]) | {"number": number + 1000})
            number += 1000
        assert f"event {number} " in fault_of(altered)


# ---- forgetting ---------------------------------------------------------------------------------


def files_of(folder):
    return b"".join(each.read_bytes() for each in sorted(folder.iterdir()) if each.is_file())


def test_rows_that_are_forgotten_leave_a_digest_and_no_word(tmp_path):
    """Neither the words of a row nor its random number, by which its content could be tried."""
    n = 60
    with Journal(tmp_path / "desk.db") as journal:
        mail = journal.open("mail", OnlineClassifier())
        mail.learn_many(
            (f"planted{i:04}w all", "ab"[i % 2], f"planted{i:04}i", f"planted{i // 20:04}s")
            for i in range(n)
        )
        mail.relabel("planted0003i", "c", event="planted0003r")
        mail.undo("planted0030i", event="planted0030u")
        lines = [json.loads(line) for line in journal.export("mail")][1:]
        nonces = {said_of(each)["id"]: each["nonce"] for each in lines}
        gone: list[str] = []

        def forgotten(ids):
            gone.extend(ids)
            words = [f"{id[:-1]}w" for id in gone] + gone + [nonces[id] for id in gone]
            contents = files_of(tmp_path)
            assert not any(word.encode() in contents for word in words)
            assert journal.verify() == []

        for i in (3, 0, 19, 7):
            mail.forget(f"planted{i:04}i")
            extra = ["planted0003r"] if i == 3 else []
            forgotten([f"planted{i:04}i", *extra])
        mail.forget_subject("planted0001s")
        contents = files_of(tmp_path)
        assert b"planted0001s" not in contents
        forgotten([*(f"planted{i:04}i" for i in range(20, 40)), "planted0030u"])
        digests = [json.loads(line)["digest"] for line in journal.export("mail")][1:]
        assert digests[: len(lines)] == [each["digest"] for each in lines]
    with Journal(tmp_path / "desk.db") as journal:
        assert journal.check() == []
    assert nonces["planted0055i"].encode() in files_of(tmp_path)


def test_a_class_that_is_forgotten_leaves_no_random_number_of_its_rows(tmp_path):
    """With it the name of the class could be tried as a part of an answer that is left."""
    with Journal(tmp_path / "desk.db") as journal:
        tags = journal.open("tags", OnlineMultilabelClassifier())
        for i in range(9):
            answer = ["a", "plantedclass"][: 1 + i % 2]
            tags.learn_one(f"w{i} all", answer, id=f"m{i}")
        tags.rename("a", "plantedname")
        lines = [json.loads(line) for line in journal.export("tags")][1:]
        kept = journal.digests()["tags"]
        for label in ("plantedclass", "plantedname"):
            tags.forget_class(label)
            contents = files_of(tmp_path)
            assert label.encode() not in contents
            assert not any(each["nonce"].encode() in contents for each in lines)
            assert journal.verify() == []
        assert any(json.loads(line)["digest"] == kept for line in journal.export("tags"))

"""What a server has acknowledged is kept: kills, full disks and copies under eight clients."""

import asyncio
import random
import threading
import time

import pytest

from kesler import KeslerError
from kesler.datasets import load
from kesler.durable import Journal
from kesler.durable.items import Item, Items
from kesler.service import Client, ModelRegistry
from kesler.service.answers import Wanted
from kesler.service.rows_in import Taught as Row
from serving import Server, Taught, killed, lost_and_doubled, teach

BANKING = load("banking77/stream")
TEXTS = [(r["text"], str(y)) for r, y in zip(BANKING.records, BANKING.y, strict=True)][:300]


def test_no_acknowledged_answer_is_lost_or_there_twice(tmp_path):
    """benchmarks/service.py does this 200 times."""
    rng, database = random.Random(0), tmp_path / "desk.db"
    with Server(database) as server:
        Client(server.url, "mail").create()
        taught = asyncio.run(killed(server, 4, 8, TEXTS, lambda: rng.uniform(0.1, 0.6)))
    assert len(taught.acknowledged) > 20 and taught.retries
    lost, doubled, n_rows, differences = lost_and_doubled(database, taught)
    assert (lost, doubled, differences) == (0, 0, [])
    assert n_rows >= len(taught.acknowledged)


def test_a_full_disk_refuses_and_loses_nothing(tmp_path):
    database = tmp_path / "desk.db"
    code = (
        "import resource, sys; from kesler.service import Settings, serve; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000)); "
        "serve(sys.argv[1], Settings(port=int(sys.argv[2])))"
    )
    known = {}
    with Server(database, command=("-c", code)) as server:
        mail = Client(server.url, "mail")
        mail.create()
        with pytest.raises(KeslerError, match="disk"):
            for i in range(2000):
                text = f"{TEXTS[i % 300][0]} {i} " + "x" * 500
                known[mail.learn(text, TEXTS[i % 300][1])["id"]] = TEXTS[i % 300][1]
        assert mail.predict("what is the exchange rate")["label"]
        with pytest.raises(KeslerError, match="disk"):
            mail.learn("x" * 100_000, "more")
    assert known
    lost, doubled, n_rows, differences = lost_and_doubled(database, Taught(known))
    assert (lost, doubled, differences) == (0, 0, []) and n_rows == len(known)


def test_a_copy_made_meanwhile_is_whole(tmp_path):
    database, copy = tmp_path / "desk.db", tmp_path / "copy.db"
    with Server(database) as server:
        Client(server.url, "mail").create()
        known, over = Taught(), threading.Event()

        async def clients():
            await asyncio.gather(
                *(teach(server.port, f"c{i}", TEXTS, known, over.is_set) for i in range(8))
            )

        thread = threading.Thread(target=lambda: asyncio.run(clients()))
        thread.start()
        while len(known.acknowledged) < 50:
            time.sleep(0.01)
        before = Taught(dict(known.acknowledged))
        with Journal(database) as journal:
            journal.backup(copy)
        over.set()
        thread.join()
    lost, doubled, n_rows, differences = lost_and_doubled(copy, before)
    assert (lost, doubled, differences) == (0, 0, []) and n_rows >= 50


@pytest.fixture
def desk(tmp_path):
    desk = ModelRegistry(tmp_path / "desk.db")
    yield desk
    desk.close()


def test_readers_do_not_wait_for_a_writer(desk):
    served = desk.create("mail")
    served.learn([Row("win cash", "spam"), Row("team lunch", "work")], "ann").result()
    served.answer("cash", Wanted())
    going, over = threading.Event(), threading.Event()
    change = served.change(lambda: (going.set(), over.wait(10)))
    going.wait(10)
    learn = served.learn([Row("garden", "home")], "ann")
    start = time.perf_counter()
    assert served.answer("cash", Wanted())["label"] == "spam"
    assert time.perf_counter() - start < 1 and not change.done() and not learn.done()
    over.set()
    assert learn.result(10)[0]["changed"]


def test_rows_that_wait_together_are_written_together_and_refused_alone(desk):
    served = desk.create("mail")
    going, over = threading.Event(), threading.Event()
    served.change(lambda: (going.set(), over.wait(10)))
    going.wait(10)
    rows = [Row(f"row {i}", "ab"[i % 2], f"r{i}") for i in range(20)]
    futures = [served.learn([row], f"teacher {i % 3}") for i, row in enumerate(rows)]
    futures.append(served.learn([Row("another row", "a", "r1")], "teacher 1"))
    futures.append(served.learn([rows[0], Row({"a": object()}, "a", "bad")], "teacher 1"))
    over.set()
    outcomes = [future.result(10) for future in futures]
    assert all(each[0]["changed"] for each in outcomes[:20])
    assert outcomes[20][0].status == 409
    assert outcomes[21][0]["changed"] is False and outcomes[21][1].status == 422
    assert sorted(each.id for each in served.model.remaining()) == sorted(row.id for row in rows)


def test_items_answered_before_a_kill_do_not_wait(tmp_path):
    """The row is on the disk before its item is removed; a start removes what is left over."""
    desk = ModelRegistry(tmp_path / "desk.db")
    desk.create("mail").learn([Row("win cash", "spam", "m1")], "ann").result()
    desk.close()
    items = Items(str(tmp_path / "desk.db"))
    items.add("mail", [Item("m1", "win cash"), Item("m2", "team lunch")])
    items.close()
    desk = ModelRegistry(tmp_path / "desk.db")
    assert [*desk.find("mail").items.descriptions("mail")] == ["m2"]
    desk.close()

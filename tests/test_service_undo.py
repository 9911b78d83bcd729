"""The service: where what is taken back waits, and what a correction changes besides."""

import json
import sqlite3
from contextlib import closing

from desks import LINES, post
from kesler import KeslerError


def arrivals(client):
    """When the items arrived, by their ids in the order of the inbox."""
    items = client.get("/api/models/mail/items").json()["items"]
    return {each["id"]: each["arrived"] for each in items}


def waiting(client):
    return [*arrivals(client)]


def test_what_is_taken_back_waits_where_it_waited(desk, tmp_path, monkeypatch):
    monkeypatch.setattr("kesler.durable.items.MOST_PLACES", 4)
    lines = "".join(json.dumps({"text": f"text {i}", "id": f"i{i}"}) + "\n" for i in range(8))
    assert desk.post("/api/models/mail/import", content=lines, headers=LINES).json()["added"] == 8
    came = arrivals(desk)

    def file(*ids):
        for id in ids:
            post(desk, "learn", row=f"text {id[1:]}", answer="ab"[int(id[1:]) % 2], id=id)

    file("i3", "i7", "i0")
    assert waiting(desk) == ["i1", "i2", "i4", "i5", "i6"]
    undone = post(desk, "undo", id="i0")
    post(desk, "undo", ids=["i7", "i3"])
    assert [*arrivals(desk).items()] == [*came.items()]
    post(desk, "undo", id=undone["id"])
    assert waiting(desk) == [*came][1:]
    post(desk, "learn", row="text 9", answer="a", id="i9")
    file("i1", "i2", "i3", "i4")
    post(desk, "undo", ids=["i4", "i3", "i9", "i2", "i1", "i0"])
    assert waiting(desk) == ["i1", "i2", "i3", "i4", "i5", "i6", "i7", "i9", "i0"]
    file("i5", "i6")
    post(desk, "forget", id="i5")
    post(desk, "forget", **{"class": "a"})
    with closing(sqlite3.connect(tmp_path / "desk.db")) as database:
        kept = {id for (id,) in database.execute("SELECT id FROM service_items")}
    assert kept == {"i0", "i1", "i2", "i3", "i4", "i7", "i9"}


def test_what_takes_back_through_other_undos_lets_the_item_wait(desk):
    """Each undo takes back the one before: the row is taken back by every other one."""
    for id, row in ("m0", "text 0"), ("m1", "text 1"):
        post(desk, "learn", row=row, answer="a", id=id)
    id = "m0"
    for n_undos in range(1, 6):
        id = post(desk, "undo", id=id)["id"]
        rows = desk.get("/api/models/mail").json()["rows"]
        assert (waiting(desk), rows) == ((["m0"], 1) if n_undos % 2 else ([], 2))
    post(desk, "discard", ids=["m0"])
    assert not post(desk, "undo", id="m0")["changed"] and waiting(desk) == []


def test_rows_that_are_not_taken_back_do_not_wait(desk, monkeypatch):
    def refuse(*given, **named):
        raise KeslerError("the disk is full")

    for id in "m0", "m1":
        post(desk, "learn", row=f"text {id}", answer="a", id=id)
    for name in "undo", "undo_many":
        monkeypatch.setattr(f"kesler.durable.Model.{name}", refuse)
    outcomes = post(desk, "undo", ids=["m0", "m1"])["outcomes"]
    assert ["disk" in each["error"] for each in outcomes] == [True, True]
    assert "disk" in post(desk, "undo", 422, id="m0")["error"]
    assert waiting(desk) == []


def test_a_correction_says_which_columns_are_of_another_kind(desk):
    bodies = ["I tried it from home " * 100] + [f"printer {i} has no ink " * 6 for i in range(20)]
    rows = [{"row": {"body": body, "hours": 3}, "answer": "ab"[i % 2], "id": f"m{i}"}
            for i, body in enumerate(bodies)]  # fmt: skip
    post(desk, "learn", rows=rows)
    undone = post(desk, "undo", id="m0")
    (said,) = undone["kinds"]
    assert "column 'body' is text (ngrams=2, chars=(4, 4)) now" in said
    (said,) = post(desk, "undo", id=undone["id"])["kinds"]
    assert "column 'body' is text (beginning=True) now" in said
    page = desk.post("/models/mail/history", data={"do": "undo", "id": "m0"})
    assert "Column &#39;body&#39; is text (ngrams=2, chars=(4, 4)) now" in page.text

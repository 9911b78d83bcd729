"""The service: every endpoint, what it refuses, and what is on the disk afterwards."""

import asyncio
import gzip
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
from functools import partial

import httpx2 as httpx
import pytest

from commands import kesler, refused
from desks import LINES, ROWS, TOKENS, bearer, error_of, exported, post, served, state
from kesler import KeslerError, OnlineMultilabelClassifier
from kesler.durable import Journal
from kesler.service import Client, ModelRegistry, Settings, Tokens
from kesler.service.api import Lines as LinesOfAnswers
from kesler.service.import_options import ImportOptions
from kesler.service.rows_in import rows_of_file
from kesler.service.server import address_of, listening
from kesler.service.uploads import File
from serving import HOST, Server

# ---- predictions --------------------------------------------------------------------------------


def test_a_model_that_knows_nothing_says_so(desk):
    assert post(desk, "predict", row="hello") == {"label": None, "confidence": None}
    assert desk.get("/api/models").json()["models"][0]["rows"] == 0


def test_predictions_are_those_of_the_model(taught, tmp_path):
    wanted = {"coverage": 0.9, "probabilities": 5, "explain": 2}
    said = post(taught, "predict", row="cash", **wanted)
    with Journal(tmp_path / "desk.db") as journal:
        mail = journal.open("mail")
        assert said["label"] == mail.predict_one("cash") == "spam"
        assert said["confidence"] == mail.confidence_one("cash")
        known = mail.predict_proba_one("cash")
        assert {p["label"]: p["probability"] for p in said["probabilities"]} == known
        assert said["explanation"] == json.loads(
            json.dumps(mail.explain_one("cash", n=2).to_dict())
        )
        covered = mail.predict_set_one("cash", coverage=0.9)
        assert said["set"] == [each for each in covered if isinstance(each, str)]
        assert said["may_be_new"] == (len(covered) > len(said["set"]))
    assert post(taught, "predict", row="cash") == {k: said[k] for k in ("label", "confidence")}
    assert post(taught, "predict", row="cash") == {k: said[k] for k in ("label", "confidence")}


def test_several_rows_and_lines_have_the_answers_of_single_rows(taught):
    rows = ["cash", "team", "nothing known"]
    single = [post(taught, "predict", row=row) for row in rows]
    assert post(taught, "predict", rows=rows) == {"answers": single}
    body = "\n".join(json.dumps({"row": row}) for row in rows)
    lines = taught.post("/api/models/mail/predict", content=body, headers=LINES).text.splitlines()
    assert [json.loads(line) for line in lines] == single


def test_rows_may_be_numbers_or_tables(tmp_path):
    with served(tmp_path / "desk.db") as client:
        for name, row in (("numbers", [1.0, 0.5]), ("table", {"kind": "card", "hours": 3})):
            client.post("/api/models", json={"name": name})
            path = f"/api/models/{name}"
            for answer in ("a", "b"):
                assert client.post(f"{path}/learn", json={"row": row, "answer": answer}).is_success
            assert client.post(f"{path}/predict", json={"row": row}).json()["label"] in ("a", "b")
            assert client.get(f"/models/{name}").is_success
            exported = client.get(f"{path}/export.jsonl").text.splitlines()
            assert [json.loads(line)["row"] for line in exported] == [row, row]


def test_models_of_scripts_are_served(tmp_path):
    with Journal(tmp_path / "desk.db") as journal:
        journal.open("mail", OnlineMultilabelClassifier()).learn_one("win cash", ["a", "b"])
    with served(tmp_path / "desk.db") as client:
        post(client, "learn", row="team", answer=["b"], id="m1")
        assert post(client, "predict", row="win cash")["label"] == ["a", "b"]
        assert client.get("/models/mail/history").is_success


# ---- changes ------------------------------------------------------------------------------------


def test_a_repeated_request_changes_nothing(taught):
    before = state(taught)
    again = post(taught, "learn", row=ROWS[0][0], answer="spam", id="m0", subject="s0")
    assert not again["changed"] and state(taught) == before
    sentence = post(taught, "learn", 409, row="other", answer="spam", id="m0")["error"]
    assert "m0" in sentence and state(taught) == before


def test_what_was_taken_back_waits_and_can_be_answered_anew(taught):
    assert post(taught, "undo", id="m1") == {"changed": True, "kind": "learn"} | {
        key: post(taught, "undo", id="m1")[key] for key in ("id", "n_rows")
    }
    assert taught.get("/api/models/mail").json()["classes"] == ["spam"]
    (item,) = taught.get("/api/models/mail/items").json()["items"]
    assert (item["id"], item["row"], item["subject"]) == ("m1", "team lunch", "s1")
    assert post(taught, "learn", row="team lunch", answer="office", id="m1", subject="s1")[
        "changed"
    ]
    assert taught.get("/api/models/mail/items").json()["items"] == []
    assert exported(taught)["m1"]["label"] == "office"
    post(taught, "undo", id="m1")
    assert post(taught, "learn", row="team lunch", answer="office", id="m1", subject="s1")[
        "changed"
    ]
    assert exported(taught)["m1"]["label"] == "office"
    post(taught, "undo", id="m1")
    post(taught, "learn", 409, row="another row", answer="office", id="m1", subject="s1")


def test_several_rows_are_taken_back_at_once_and_discarded(taught):
    outcomes = post(taught, "undo", ids=["m0", "nobody", "m2", "m0"])["outcomes"]
    assert [each.get("changed") for each in outcomes] == [True, None, True, False]
    assert outcomes[1]["status"] == 404 and "'nobody'" in outcomes[1]["error"]
    assert set(exported(taught)) == {"m1"}
    waiting = taught.get("/api/models/mail/items").json()["items"]
    assert {each["id"] for each in waiting} == {"m0", "m2"}
    assert post(taught, "discard", ids=["m0", "m2"])["discarded"] == 2
    assert taught.get("/api/models/mail/items").json()["items"] == []
    for wrong in ({}, {"id": "m1", "ids": ["m1"]}):
        assert "an id, or several as ids" in post(taught, "undo", 422, **wrong)["error"]
    assert post(taught, "undo", 422, ids=["m1", ""])["error"]
    assert set(exported(taught)) == {"m1"}


def test_rows_that_cannot_be_taken_back_together_are_taken_back_one_by_one(taught, monkeypatch):
    def refuse(*given, **named):
        raise KeslerError("one of them cannot be taken back")

    monkeypatch.setattr("kesler.durable.Model.undo_many", refuse)
    outcomes = post(taught, "undo", ids=["m0", "m2"])["outcomes"]
    assert [(each["changed"], each["kind"]) for each in outcomes] == [(True, "learn")] * 2
    assert set(exported(taught)) == {"m1"}
    waiting = taught.get("/api/models/mail/items").json()["items"]
    assert {each["id"] for each in waiting} == {"m0", "m2"}


def test_taking_back_what_took_back_answers_the_item(taught):
    event = post(taught, "undo", id="m2")
    assert post(taught, "undo", id=event["id"])["changed"]
    assert taught.get("/api/models/mail/items").json()["items"] == []
    assert set(exported(taught)) == {"m0", "m1", "m2"}


def test_classes_are_renamed_and_merged_and_rows_relabelled(taught):
    assert post(taught, "rename", old="spam", new="advertising")["changed"]
    assert post(taught, "relabel", id="m1", answer="advertising")["changed"]
    assert {each["label"] for each in exported(taught).values()} == {"advertising"}
    post(taught, "learn", row="garden", answer="home", id="m3")
    merged = post(taught, "merge", source="home", target="advertising")
    assert taught.get("/api/models/mail").json()["classes"] == ["advertising"]
    post(taught, "undo", id=merged["id"])
    assert set(taught.get("/api/models/mail").json()["classes"]) == {"advertising", "home"}
    assert "no class" in post(taught, "rename", 404, old="nobody", new="x")["error"]


@pytest.mark.parametrize("what", [{"id": "m0"}, {"subject": "s0"}, {"class": "spam"}])
def test_what_is_forgotten_is_in_no_file(taught, tmp_path, what):
    taught.post("/api/models/mail/import", content="text,person,id\ncash in the box,s0,m9\n")
    assert post(taught, "forget", **what)["n_rows"] >= 1
    assert "m0" not in exported(taught)
    if "subject" in what:
        assert taught.get("/api/models/mail/items").json()["items"] == []
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        assert b"win cash now" not in content
        assert b"box" not in content or "subject" not in what


def test_the_history_says_who_did_what(guarded):
    ann = bearer("teach")
    learn = {"row": "win cash", "answer": "spam", "id": "m0"}
    guarded.post("/api/models/mail/learn", json=learn, headers=ann)
    guarded.post("/api/models/mail/undo", json={"id": "m0"}, headers=bearer("admin"))
    path = "/api/models/mail/history"
    page = guarded.get(f"{path}?limit=1", headers=ann).json()
    assert [(e["kind"], e["by"], e["target"]) for e in page["events"]] == [("undo", "eve", "m0")]
    rest = guarded.get(f"{path}?before={page['before']}", headers=ann).json()
    (event,) = rest["events"]
    assert (event["kind"], event["by"], event["taken_back"]) == ("learn", "ann", True)
    assert rest["before"] is None


def test_streams_teach_what_is_right_and_refuse_the_rest(desk):
    lines = [
        json.dumps({"row": "win cash", "answer": "spam", "id": "a"}),
        "{no json",
        json.dumps({"row": "team", "answer": {"no": "label"}}),
        "",
        json.dumps({"row": "team", "answer": "work", "id": "b"}),
    ]
    said = desk.post("/api/models/mail/learn", content="\n".join(lines), headers=LINES)
    outcomes = [json.loads(line) for line in said.text.splitlines()]
    assert [each.get("status", 200) for each in outcomes] == [200, 400, 422, 400, 200]
    assert "line 2" in outcomes[1]["error"] and set(exported(desk)) == {"a", "b"}
    assert outcomes[3]["error"].startswith("line 4 is empty")


# ---- files --------------------------------------------------------------------------------------


def test_an_import_is_filed_and_may_be_repeated(desk):
    content = (
        '﻿text;label;id;person\nwin cash;spam;a;ann\n"two\nlines; here";;b;\nteam;;;\nteam;;;\n'
    )
    first = desk.post("/api/models/mail/import", content=content.encode()).json()
    assert first == {
        "added": 3, "learnt": 1, "unchanged": 0, "refused": 0,
        "sentences": [], "ignored": [], "notes": [],
    }  # fmt: skip
    again = desk.post("/api/models/mail/import", content=content.encode()).json()
    assert (again["added"], again["learnt"], again["unchanged"]) == (0, 0, 4)
    items = desk.get("/api/models/mail/items").json()["items"]
    assert [each["row"] for each in items] == ["two\nlines; here", "team", "team"]
    post(desk, "learn", row="two\nlines; here", answer="work", id="b")
    assert desk.post("/api/models/mail/import", content=content.encode()).json()["added"] == 0


MBOX = (
    b"From ann@example.org Mon Jan  1 10:00:00 2024\nX-Gmail-Labels: greetings\nSubject: hello\n\n"
    b"there\n"
)
FILES = {
    "semicolons in another encoding": ("text;label\nhällo;grüße\n".encode("cp1252"), {}),
    "UTF-16": ("text,label\nhällo,grüße\n".encode("utf-16"), {}),
    "compressed": (gzip.compress("text,label\nhällo,grüße\n".encode()), {}),
    "a JSON array": ('[{"text": "hällo", "label": "grüße"}]'.encode(), {}),
    "several texts": (
        "subject,body,team\n,hällo,grüße\n".encode(),
        {"text": "subject,body", "label": "team"},
    ),
    "tabs": (b"Text\tLABEL\nhello there\tgreetings\n", {}),
    "a byte order mark": (b"\xef\xbb\xbftext,label\nhello there,greetings\n", {}),
    "other names": (b"team,message\ngreetings,hello there\n", {"label": "team", "text": "message"}),
    "JSON lines": (b'\xef\xbb\xbf{"Text": "hello there", "Label": "greetings"}\n', {}),
}


@pytest.mark.parametrize("content, columns", FILES.values(), ids=FILES)
def test_columns_of_files_have_other_names(content, columns):
    (found,) = rows_of_file(File(content), 9, ImportOptions(columns)).rows
    known = {"hello there": "greetings", "hällo": "grüße"}
    assert known[found.row] == found.answer


def test_mail_is_imported_as_its_texts_with_the_labels_of_gmail():
    (found,) = rows_of_file(File(MBOX), 9).rows
    assert (found.row, found.answer) == ("hello\nthere\n", "greetings")


def test_a_refusal_names_the_line_and_columns_that_are_not_used_are_reported(desk):
    path = "/api/models/mail/import"
    said = desk.post(path, content=b'text,label,id,day\n"two\nlines",a,x,1\nb,b,\x07,2\n').json()
    assert said["error"].startswith("line 4 of the file: id contains characters")
    said = desk.post(path, content=b"text,day,subject\nhello,1,re\n").json()
    assert said["ignored"] == ["day", "subject"] and said["added"] == 1
    said = desk.post(path, content=b'text,label\na,b\n"never closed,c\n').json()
    assert "line 3" in said["error"] and "/tmp" not in said["error"]
    assert "skip_bad=true" in said["error"]  # as the query has it, and not as Python


def test_a_file_may_be_in_a_form_as_curl_sends_it(desk):
    path, files = "/api/models/mail/import", {"file": ("rows.csv", b"text,label\nhello,greeting\n")}
    assert desk.post(path, files=files).json()["learnt"] == 1
    two = [("file", ("a.csv", b"text\na\n")), ("file", ("b.csv", b"text\nb\n"))]
    assert "2 files" in error_of(desk.post(path, files=two), 400)
    broken = {"content-type": "multipart/form-data; boundary=x"}
    error_of(desk.post(path, content=b"no form", headers=broken), 400)


def test_rows_that_wait_are_discarded_by_id_by_text_or_all(desk):
    desk.post("/api/models/mail/import", content=b"text,id\nred one,a\nred two,b\nblue,c\nred,d\n")
    assert post(desk, "discard", ids=["a", "never"])["discarded"] == 1
    assert post(desk, "discard", q="RED t")["discarded"] == 1
    assert [each["id"] for each in desk.get("/api/models/mail/items").json()["items"]] == ["c", "d"]
    post(desk, "discard", status=422)
    assert post(desk, "discard", q="")["discarded"] == 2


def test_rows_of_every_kind_come_back_from_an_exported_table(desk):
    rows = ["7", "win cash", '{"a": 1}', {"size": 1.5, "colour": "red"}, {"row": "a"}, [1.0, 2.5]]
    answers = ["7", "true", "[1]", "red", "b, c", "plain"]
    for kind, some in (("texts", rows[:3]), ("tables", rows[3:5]), ("arrays", rows[5:])):
        desk.post("/api/models", json={"name": kind})
        for i, row in enumerate(some):
            body = {"row": row, "answer": answers[i], "id": str(i)}
            assert desk.post(f"/api/models/{kind}/learn", json=body).status_code == 200
        lines, table = (
            desk.get(f"/api/models/{kind}/export.{ending}").content for ending in ("jsonl", "csv")
        )
        found = rows_of_file(File(table), 9).rows
        assert found == rows_of_file(File(lines), 9).rows
        assert [each.row for each in found] == some


def test_an_import_says_which_encoding_was_found(desk):
    content = "text,label\nhällo,grüße\n".encode("cp1252")
    said = desk.post("/api/models/mail/import", content=content).json()
    (note,) = said["notes"]
    assert note.startswith("the file is not UTF-8 and is read as windows-1252")
    assert note.endswith("name its encoding with encoding=...")
    said = desk.post("/api/models/mail/import?encoding=windows-1252", content=content).json()
    assert (said["notes"], said["unchanged"]) == ([], 1)


# ---- for machines -------------------------------------------------------------------------------


def test_lines_are_made_only_so_far_ahead_of_their_client(monkeypatch):
    monkeypatch.setattr("kesler.service.api.MOST_PENDING", 100)
    lines = [b'{"n": %d}\n' % n for n in range(500)]
    made, received, ahead = 0, [], 0

    async def values():
        nonlocal made
        for n in range(len(lines)):
            made += 1
            yield [{"n": n}]

    async def send(message):
        nonlocal ahead
        received.append(message)
        for _ in range(20):  # the client is slower than what makes the lines
            await asyncio.sleep(0)
        ahead = max(ahead, made - len(received) + 2)

    async def answer():
        await asyncio.wait_for(LinesOfAnswers(values())({}, None, send), 30)

    asyncio.run(answer())
    start, *pieces, end = received
    assert [each["body"] for each in pieces] == lines and end["body"] == b""
    assert [name for name, _ in start["headers"]] == [b"content-type"]
    assert 100 / len(lines[-1]) <= ahead <= 100 / len(lines[-1]) + 4


def test_32_mib_of_answers_are_made_for_a_client_that_reads_nothing():
    text, made = "x" * ((1 << 20) - 3), 0  # a line of 1 MiB, with its quotes and its end

    async def values():
        nonlocal made
        while True:
            made += 1
            yield [text]

    async def send(message):
        await asyncio.Event().wait()

    async def answer():
        task, before = asyncio.create_task(LinesOfAnswers(values())({}, None, send)), -1
        while made != before:
            before = made
            for _ in range(20):
                await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(answer())
    assert made == 33


def test_what_is_wrong_with_a_field_is_said_of_it(taught):
    sentence = post(taught, "predict", 422, row="x", coverage=2)["error"]
    assert "coverage" in sentence and "0.8 to below 1" in sentence
    sentence = post(taught, "predict", 422, raw="x")["error"]
    assert "`raw`" in sentence and "its fields are row, rows, coverage" in sentence
    sentence = post(taught, "learn", 422, rows=[{"row": "x"}])["error"]
    assert "answer" in sentence and "rows[0]" in sentence
    sentence = post(taught, "learn", 422, rows=[{"row": "x", "answer": "a"}], id="1")["error"]
    assert "no others beside it" in sentence


def test_health_needs_no_token(guarded):
    assert guarded.get("/health").json() == {"status": "ok", "models": 1}


# ---- tokens and settings ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["teach ann short", "boss ann " + "x" * 20, "teach " + "x" * 20, "teach a<b " + "x" * 20,
     "read a xxxxxxxxxxxxxxxxxxxx\nread a yyyyyyyyyyyyyyyyyyyy",
     "read a xxxxxxxxxxxxxxxxxxxx\nread b xxxxxxxxxxxxxxxxxxxx"],
)  # fmt: skip
def test_lines_that_are_no_tokens_are_refused_without_their_secrets(text):
    with pytest.raises(KeslerError) as error:
        Tokens.of_text(text, "tokens.txt")
    assert "tokens.txt" in str(error.value) and "xxxx" not in str(error.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org"])
def test_others_need_tokens(host):
    with pytest.raises(KeslerError, match="tokens are needed"):
        Settings(host=host)
    Settings(host=host, tokens=Tokens.of_text(TOKENS))


def test_the_documentation_of_settings_names_their_defaults():
    said = dict(re.findall(r"^ +(\w+) : \w+, default (\S+)$", Settings.__doc__, re.MULTILINE))
    found = {name: getattr(Settings(), name) for name in Settings.__dataclass_fields__}
    assert said.keys() == found.keys()
    assert said.pop("tokens") == "none" and not len(found["tokens"])
    for name, text in said.items():
        assert found[name] == (text[1:-1] if text[0] == '"' else float(text.replace(",", "")))


@pytest.mark.parametrize("wrong", [{"max_body": 0}, {"rate": -1}, {"port": 70000}, {"port": -1}])
def test_settings_have_ranges(wrong):
    with pytest.raises(KeslerError, match=next(iter(wrong))):
        Settings(**wrong)


# ---- the command, and processes -----------------------------------------------------------------


def test_the_command_refuses_what_it_cannot_serve(capsys, tmp_path, monkeypatch):
    file = tmp_path / "desk.db"
    refused(kesler(capsys, "serve", file, "--host", "0.0.0.0"), "token", "127.0.0.1")
    refused(kesler(capsys, "serve", file, "--host", "0.0.0.0", "--no-tokens"), "--token-file")
    refused(kesler(capsys, "serve", file, "--token-file", tmp_path / "none"), "none")
    refused(kesler(capsys, "serve", file, "--no-tokens", "--token-file", "t"), "exclude")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "uvicorn", None)
        refused(kesler(capsys, "serve", file), "pip install 'kesler[serve]'")
    monkeypatch.setenv("KESLER_TOKENS", "# nobody")
    refused(kesler(capsys, "serve", file), "KESLER_TOKENS")
    monkeypatch.delenv("KESLER_TOKENS")
    file.write_text("this is no database, but a text of some length")
    refused(kesler(capsys, "serve", file, "--no-tokens"), "desk.db")


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server") / "desk.db") as server:
        Client(server.url, "mail").create()
        yield server


def test_the_client_does_what_the_model_does(process, tmp_path):
    mail = Client(process.url, "mail")
    assert mail.learn("win cash", "spam", id="m1", subject="ann")["id"] == "m1"
    assert [each["changed"] for each in mail.learn_many([("team", "work"), ("garden", "home")])]
    assert mail.predict("cash", coverage=0.9)["label"] == "spam"
    assert mail.rename("spam", "advertising")["changed"]
    assert mail.merge("home", "work")["changed"] and mail.relabel("m1", "work")["changed"]
    assert mail.undo("m1")["changed"] and mail.figures()["rows"] == 2
    assert [each["changed"] for each in mail.undo_many(["m1"])] == [False]
    kinds = [each["kind"] for each in mail.history()]
    assert kinds == ["undo", "relabel", "merge", "rename", "learn", "learn", "learn"]
    assert [each["label"] for each in mail.export()] == ["work", "work"]
    assert mail.forget(subject="ann")["n_rows"] == 1
    with pytest.raises(KeslerError, match="no event"):
        mail.undo("nothing")
    (tmp_path / "rows.csv").write_text("title;team\nlunch, maybe;work\n;home\n")
    given = {"text": "title", "label": "team"}
    with pytest.raises(KeslerError, match=r"line 3 of the file: it has no text.*skip_bad=true"):
        mail.import_file(tmp_path / "rows.csv", **given)
    report = mail.import_file(tmp_path / "rows.csv", **given, skip_bad=True)
    assert (report["learnt"], report["refused"]) == (1, 1)
    with pytest.raises(KeslerError, match="cannot be reached"):
        Client("http://127.0.0.1:9", "mail", timeout=0.1).figures()
    with pytest.raises(KeslerError, match="no address"):
        Client("127.0.0.1", "mail")


HALF = b"POST /api/models/mail/learn HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{"


def test_clients_that_say_nothing_are_left(tmp_path):
    """Whether they send no headers, or half a body: others are answered meanwhile."""
    code = (
        "import sys; from kesler.service import Settings, serve; "
        "serve(sys.argv[1], Settings(port=int(sys.argv[2]), patience=1))"
    )
    with Server(tmp_path / "desk.db", command=("-c", code)) as server:
        Client(server.url, "mail").create()
        with socket.create_connection((HOST, server.port), 10) as silent:
            with socket.create_connection((HOST, server.port), 10) as half:
                half.sendall(HALF)
                assert httpx.get(f"{server.url}/health").is_success
                assert half.recv(100).startswith(b"HTTP/1.1 408")
            assert silent.recv(100) == b""
        with socket.create_connection((HOST, server.port), 10) as huge:
            huge.sendall(HALF.replace(b"Length: 9", b"Length: 1073741824"))
            received = b"".join(iter(partial(huge.recv, 1000), b""))  # until it is closed
            assert received.startswith(b"HTTP/1.1 413")


def test_a_server_ends_gracefully_and_keeps_what_it_has_said(tmp_path):
    server = Server(tmp_path / "desk.db")
    server.start()
    mail = Client(server.url, "mail")
    mail.create()
    mail.learn_many(ROWS)
    assert server.end(signal.SIGTERM) in (0, -signal.SIGTERM)
    assert not (tmp_path / "desk.db-wal").exists()  # the database was closed
    server.start()
    assert mail.figures()["rows"] == 3
    server.kill()


def test_a_server_that_ends_finishes_the_request_that_it_has(tmp_path):
    body = json.dumps({"row": "win cash", "answer": "spam"}).encode()
    head = f"POST /api/models/mail/learn HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(body)}"
    with Server(tmp_path / "desk.db") as server:
        Client(server.url, "mail").create()
        with socket.create_connection((HOST, server.port), 30) as half:
            half.sendall(f"{head}\r\n\r\n".encode() + body[:9])
            assert httpx.get(f"{server.url}/health").is_success  # it has read that much
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(httpx.TransportError):
                while True:
                    httpx.get(f"{server.url}/health")
            assert not select.select([half], [], [], 0.5)[0]
            half.sendall(body[9:])
            assert half.recv(100).startswith(b"HTTP/1.1 200")
        server.end(signal.SIGTERM)  # waits for the end, and says it once more
        server.start()
        assert Client(server.url, "mail").figures()["rows"] == 1


def ended(database, port):
    """Start a server that cannot serve; return the sentence that it ends with."""
    asked = [sys.executable, "-m", "kesler", "serve", database, "--port", str(port)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and not done.stdout
    (line,) = done.stderr.splitlines()
    return line


def test_a_port_in_use_is_a_sentence_alone(tmp_path):
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        line = ended(tmp_path / "d.db", port)
    assert line.startswith(f"kesler: {HOST}:{port} cannot be used")
    assert line.endswith("choose another port with --port")
    assert not [*tmp_path.iterdir()]  # nothing was opened before


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_the_address_of_ipv6_is_one_for_browsers():
    with listening("::1", 0) as opened:
        assert address_of(opened) == f"http://[::1]:{opened.getsockname()[1]}/"


def test_a_database_has_one_server_which_another_names(process):
    line = ended(process.database, 0)
    assert line == (
        f"kesler: {process.database}: process {process.process.pid} serves this database already: "
        "use that server, or stop it first"
    )
    assert Client(process.url, "mail").figures()["name"] == "mail"


def test_a_server_on_any_free_port_says_which(tmp_path):
    asked = [sys.executable, "-m", "kesler", "serve", tmp_path / "desk.db", "--port", "0"]
    with subprocess.Popen(asked, stderr=subprocess.PIPE, text=True) as server:
        try:
            said = server.stderr.readline()
            assert httpx.get(re.search(r"http://[\d.:]+/", said)[0] + "health").is_success
        finally:
            server.send_signal(signal.SIGTERM)
    assert [each.name for each in tmp_path.iterdir()] == ["desk.db"]


def test_a_registry_waits_for_no_process_that_was_killed(tmp_path):
    database, left = tmp_path / "desk.db", tmp_path / "desk.db-server"
    left.write_text("12345678")  # longer than what is written next, and held by nobody
    first = ModelRegistry(database)
    assert left.read_text() == str(os.getpid())
    other = tmp_path / "link.db"
    other.symlink_to(database)
    with pytest.raises(KeslerError, match=f"link.db: process {os.getpid()} serves"):
        ModelRegistry(other)
    first.close()
    first.close()
    assert not left.exists()
    ModelRegistry(database).close()
    with pytest.raises(KeslerError, match=r"none/desk.db-server: cannot be written \(No such file"):
        ModelRegistry(tmp_path / "none" / "desk.db")


def test_a_registry_that_cannot_be_opened_leaves_nothing_behind(tmp_path):
    (tmp_path / "desk.db").write_text("this is no database, but a text of some length")
    with pytest.raises(KeslerError, match="not a journal"):
        ModelRegistry(tmp_path / "desk.db")
    assert [each.name for each in tmp_path.iterdir()] == ["desk.db"]

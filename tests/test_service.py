"""The service: every endpoint, what it refuses, and what is on the disk afterwards."""

import csv
import io
import json
import re
import signal
import socket
import sys

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

from commands import kesler, refused
from kesler import KeslerError, OnlineMultilabelClassifier
from kesler.durable import Journal
from kesler.service import Client, Desk, Settings, Tokens, application
from kesler.service.api import ENDPOINTS
from serving import HOST, Server

LINES = {"content-type": "application/x-ndjson"}
SECRETS = {
    "read": "read-read-read-read",
    "teach": "teach-teach-teach-teach",
    "admin": "admin-admin-admin-admin",
    "other": "other-other-other-other",
}
TOKENS = f"""
# who may do what
read bob {SECRETS["read"]}
teach ann {SECRETS["teach"]}

admin eve {SECRETS["admin"]}
admin oscar {SECRETS["other"]} post,parcels
"""
ROWS = [("win cash now", "spam"), ("team lunch", "work"), ("cash prize", "spam")]


def served(path, **settings):
    settings = {"rate": 1e6} | settings
    client = TestClient(
        application(Desk(path), Settings(**settings)), base_url="http://127.0.0.1:8000"
    )
    return client


@pytest.fixture
def desk(tmp_path):
    """A service without tokens, with a model that knows nothing."""
    with served(tmp_path / "desk.db") as client:
        assert client.post("/api/models", json={"name": "mail"}).status_code == 201
        yield client


@pytest.fixture
def taught(desk):
    """The same, with three rows m0, m1 and m2."""
    for i, (row, answer) in enumerate(ROWS):
        said = post(desk, "learn", row=row, answer=answer, id=f"m{i}", subject=f"s{i % 2}")
        assert said == {"id": f"m{i}", "changed": True, "n_rows": 1}
    return desk


@pytest.fixture
def guarded(tmp_path):
    """A service with tokens."""
    with served(tmp_path / "desk.db", tokens=Tokens.of_text(TOKENS)) as client:
        client.post("/api/models", json={"name": "mail"}, headers=bearer("admin"))
        yield client


def bearer(role):
    return {"authorization": f"Bearer {SECRETS[role]}"}


def post(client, what, status=200, **body):
    answer = client.post(f"/api/models/mail/{what}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def error_of(answer, status):
    """An answer is a refusal: its status, and a sentence."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body["status"] == status and " " in body["error"] and "\n" not in body["error"]
    assert "Traceback" not in body["error"]
    return body["error"]


def state(client):
    """All that a model says of itself."""
    return [
        client.get(f"/api/models/mail{path}").text
        for path in ("", "/history?limit=100", "/items?limit=1000", "/export.jsonl")
    ]


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


def exported(client):
    lines = client.get("/api/models/mail/export.jsonl").text.splitlines()
    return {each["id"]: each for each in map(json.loads, lines)}


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
    taught.post("/api/models/mail/import", content="text,subject,id\ncash in the box,s0,m9\n")
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
    assert [each.get("status", 200) for each in outcomes] == [200, 400, 422, 200]
    assert "line 2" in outcomes[1]["error"] and set(exported(desk)) == {"a", "b"}


# ---- files --------------------------------------------------------------------------------------


def test_an_import_is_filed_and_may_be_repeated(desk):
    content = (
        '﻿text;label;id;subject\nwin cash;spam;a;ann\n"two\nlines; here";;b;\nteam;;;\nteam;;;\n'
    )
    first = desk.post("/api/models/mail/import", content=content.encode()).json()
    assert first == {"added": 3, "learnt": 1, "unchanged": 0, "refused": 0, "sentences": []}
    again = desk.post("/api/models/mail/import", content=content.encode()).json()
    assert (again["added"], again["learnt"], again["unchanged"]) == (0, 0, 4)
    items = desk.get("/api/models/mail/items").json()["items"]
    assert [each["row"] for each in items] == ["two\nlines; here", "team", "team"]
    post(desk, "learn", row="two\nlines; here", answer="work", id="b")
    assert desk.post("/api/models/mail/import", content=content.encode()).json()["added"] == 0


def test_what_is_exported_can_be_imported(taught):
    post(taught, "learn", row='a "quoted", text\nof lines', answer="wörk", id="m3")
    before = exported(taught)
    for kind in ("csv", "jsonl"):
        file = taught.get(f"/api/models/mail/export.{kind}")
        assert f'filename="mail.{kind}"' in file.headers["content-disposition"]
        taught.post("/api/models", json={"name": kind})
        said = taught.post(f"/api/models/{kind}/import", content=file.content).json()
        assert (said["learnt"], said["refused"]) == (4, 0)
        lines = taught.get(f"/api/models/{kind}/export.jsonl").text.splitlines()
        assert {each["id"]: each for each in map(json.loads, lines)} == before
    table = csv.DictReader(io.StringIO(taught.get("/api/models/mail/export.csv").text, newline=""))
    assert [row["label"] for row in table] == ["spam", "work", "spam", "wörk"]


# ---- for machines -------------------------------------------------------------------------------


def test_every_endpoint_is_in_the_document_and_on_the_page(desk):
    document = desk.get("/openapi.json").json()
    page = desk.get("/api").text
    for each in ENDPOINTS:
        operation = document["paths"][each.path][each.method.lower()]
        assert each.role in operation["description"]
        assert f"{each.method} {each.path}" in page
    assert document["openapi"].startswith("3.1")
    assert not re.search(r'(src|href)="https?:', page)


def test_metrics_are_those_of_prometheus(taught):
    post(taught, "predict", row="cash")
    text = taught.get("/metrics").text
    assert 'kesler_requests_total{endpoint="learn",status="200"} 3' in text
    assert 'kesler_request_seconds_count{endpoint="predict"} 1' in text
    assert 'kesler_rows{model="mail"} 3' in text and 'kesler_classes{model="mail"} 2' in text
    sample = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+')
    for line in text.splitlines():
        assert line.startswith("# ") or sample.fullmatch(line), line


def test_health_needs_no_token(guarded):
    assert guarded.get("/health").json() == {"status": "ok", "models": 1}


# ---- attacks ------------------------------------------------------------------------------------


def test_without_a_token_nothing_is_said(guarded):
    for each in ENDPOINTS:
        path = each.path.replace("{model}", "mail")
        answer = guarded.request(each.method, path)
        assert "token" in error_of(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer"
    for path in ("/metrics", "/openapi.json"):
        error_of(guarded.get(path), 401)
    assert guarded.get("/", follow_redirects=False).headers["location"] == "/login"


def test_tokens_cannot_be_guessed_quickly(guarded):
    codes = [
        guarded.get("/api/models", headers={"authorization": f"Bearer guess{i}"}).status_code
        for i in range(30)
    ]
    assert codes[0] == 401 and codes[-1] == 429 and set(codes) == {401, 429}
    assert guarded.get("/api/models", headers=bearer("read")).status_code == 200


def test_each_role_may_do_what_it_is_for(guarded):
    ranks = {"read": 0, "teach": 1, "admin": 2}
    for each in ENDPOINTS:
        path = each.path.replace("{model}", "mail")
        if each.name == "delete":
            continue
        for role, rank in ranks.items():
            answer = guarded.request(each.method, path, headers=bearer(role))
            assert (answer.status_code == 403) == (rank < ranks[each.role]), (each, role)


def test_a_token_is_for_its_models(guarded):
    for what in ("", "/history", "/items", "/export.csv"):
        sentence = error_of(guarded.get(f"/api/models/mail{what}", headers=bearer("other")), 403)
        assert "other models" in sentence
    assert guarded.get("/api/models", headers=bearer("other")).json() == {"models": []}
    assert "kesler_rows" not in guarded.get("/metrics", headers=bearer("other")).text
    answer = guarded.post("/api/models", json={"name": "new"}, headers=bearer("other"))
    error_of(answer, 403)


NAMES = ["../mail", "..%2f..%2fetc", "a/b", "mail'; DROP TABLE events;--", "", ".", "con\x00", "é",
         "<script>alert(1)</script>", "a" * 65, "{{7*7}}", 7, None, ["a"]]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_of_models_are_names(desk, name, tmp_path):
    files = sorted(tmp_path.iterdir())
    error_of(desk.post("/api/models", json={"name": name}), 422)
    assert sorted(tmp_path.iterdir()) == files
    if isinstance(name, str) and name.isprintable():
        answer = desk.get(f"/api/models/{httpx.URL(path='/' + name).raw_path.decode()[1:]}/history")
        assert answer.status_code in (404, 405) and "error" in answer.json()


SQL = "x' OR '1'='1'; DROP TABLE events; --"
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.mark.parametrize("text", [SQL, SCRIPT, "{{ 7 * 7 }}", "%s%n", "\\u0000"])
def test_texts_in_every_field_are_texts(taught, text):
    post(taught, "learn", row=text, answer=text, id=text, subject=text)
    assert exported(taught)[text] == {"text": text, "label": text, "id": text, "subject": text}
    taught.post("/api/models/mail/import", content=json.dumps({"text": text, "id": text + "2"}))
    post(taught, "rename", old=text, new=text + "3")
    post(taught, "relabel", id=text, answer=text)
    for page in ("", "/classes", "/history", "/error", "/files", "?q=" + text):
        answer = taught.get(f"/models/mail{page}")
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text and "<img" not in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
    assert taught.get("/api/models/mail/items", params={"q": text}).json()["items"]
    post(taught, "undo", id=text)
    post(taught, "forget", subject=text)
    assert set(exported(taught)) == {"m0", "m1", "m2"}


BAD = [
    ("learn", {"row": "x"}),
    ("learn", {"row": "x", "answer": None}),
    ("learn", {"row": "x", "answer": ""}),
    ("learn", {"row": "x", "answer": "a" * 201}),
    ("learn", {"row": "x", "answer": "a\nb"}),
    ("learn", {"row": "x", "answer": "\u202egnp"}),
    ("learn", {"row": "x", "answer": 1.5}),
    ("learn", {"row": "x", "answer": 1 << 60}),
    ("learn", {"row": "x", "answer": True}),
    ("learn", {"row": "x", "answer": "a", "id": 3}),
    ("learn", {"row": "x", "answer": "a", "unknown": 3}),
    ("learn", {"row": None, "answer": "a"}),
    ("learn", {"row": [1, "x"], "answer": "a"}),
    ("learn", {"row": {"a": {"b": {"c": {"d": {}}}}}, "answer": "a"}),
    ("learn", {"rows": "x"}),
    ("learn", {"rows": ["x"]}),
    ("predict", {"row": []}),
    ("predict", {"row": "x", "coverage": 1}),
    ("predict", {"row": "x", "coverage": "most"}),
    ("predict", {"row": "x", "explain": -1}),
    ("predict", {"row": "x", "probabilities": 1.5}),
    ("undo", {}),
    ("relabel", {"id": "m0"}),
    ("rename", {"old": "spam", "new": ""}),
    ("rename", {"old": "spam", "new": "work"}),
    ("merge", {"source": "spam", "target": "spam"}),
    ("forget", {}),
    ("forget", {"id": "m0", "subject": "s0"}),
]


@pytest.mark.parametrize(("what", "body"), BAD)
def test_what_is_wrong_is_refused_and_nothing_changes(taught, what, body):
    before = state(taught)
    error_of(taught.post(f"/api/models/mail/{what}", json=body), 422)
    assert state(taught) == before


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b'{"row": NaN}', b"\xff\xfe", b'{"row": "\\ud800"}', b"[" * 100_000, b'"x"'],
)
def test_bodies_are_objects_of_json(taught, content):
    for what in ("learn", "predict", "undo"):
        error_of(taught.post(f"/api/models/mail/{what}", content=content), 400)


FORGED = [
    b"",
    b"text,text\na,b\n",
    b"text,label\nonly one\n",
    b'text,label\n"never closed,spam\n',
    b"\x00\x01\x02\xff",
    b'{"text": "a"}\n{"text": }\n',
    b'{"text": "a"}\n{"label": "no text"}\n',
    b'{"text": "a", "label": {"x": 1}}\n',
    b"text,label\na," + b"x" * 300 + b"\n",
    b"PK\x03\x04 not a table",
    b"text\n" + b"row\n" * 11,
]


@pytest.mark.parametrize("content", FORGED)
def test_forged_files_are_refused_as_a_whole(tmp_path, content):
    with served(tmp_path / "desk.db", max_rows=10) as client:
        client.post("/api/models", json={"name": "mail"})
        before = state(client)
        answer = client.post("/api/models/mail/import", content=content)
        assert answer.status_code in (400, 413, 422), answer.text
        error_of(answer, answer.status_code)
        assert state(client) == before


def test_unknown_things_are_404(taught):
    for what in ("undo", "relabel"):
        body = {"id": "nothing"} | ({"answer": "x"} if what == "relabel" else {})
        error_of(taught.post(f"/api/models/mail/{what}", json=body), 404)
    error_of(taught.post("/api/models/post/learn", json={"row": "x", "answer": "y"}), 404)
    for path in ("/nothing", "/static/../web.py", "/static/web.py", "/api/models/mail/nothing"):
        error_of(taught.get(path), 404)
    error_of(taught.put("/api/models"), 405)


def test_bodies_and_rows_have_limits(tmp_path):
    with served(tmp_path / "desk.db", max_body=1000, max_rows=3, max_import=5000) as client:
        client.post("/api/models", json={"name": "mail"})
        path = "/api/models/mail"
        long = {"row": "x" * 1000, "answer": "y"}
        answer = client.post(f"{path}/learn", json=long)
        assert "1000 bytes" in error_of(answer, 413) and answer.headers["connection"] == "close"
        wide = {"rows": ["x"] * 3, "explain": 1000, "probabilities": 1000}
        assert client.post(f"{path}/predict", json=wide).status_code == 200
        many = {"rows": ["x"] * 4}
        assert "3 rows" in error_of(client.post(f"{path}/predict", json=many), 413)
        lines = "\n".join([json.dumps({"row": "x", "answer": "y"})] * 4)
        said = client.post(f"{path}/learn", content=lines, headers=LINES).text.splitlines()
        assert json.loads(said[-1])["status"] == 413
        said = client.post(f"{path}/learn", content="x" * 2000, headers=LINES).text.splitlines()
        assert json.loads(said[-1])["status"] == 413
        error_of(client.post(f"{path}/import", content=b"text\n" + b"x" * 5000), 413)
        assert client.get(path).json()["rows"] == 3  # the lines before the limit are learnt


def test_answers_have_a_limit(taught):
    body = {"rows": ["x"] * 1001, "probabilities": 1000}
    assert "fewer rows" in error_of(taught.post("/api/models/mail/predict", json=body), 413)


def test_searches_know_the_letters_of_all_languages(desk):
    desk.post("/api/models/mail/import", content="text\nÉCOLE Straße\nother\n".encode())
    for q in ("école", "STRASSE", "e s"):
        found = desk.get("/api/models/mail/items", params={"q": q}).json()["items"]
        assert [each["row"] for each in found] == ["ÉCOLE Straße"], q


def test_a_model_that_was_deleted_is_gone(taught):
    assert taught.delete("/api/models/mail").json() == {"deleted": "mail"}
    error_of(taught.get("/api/models/mail"), 404)
    taught.post("/api/models", json={"name": "mail"})
    assert taught.get("/api/models/mail").json()["rows"] == 0


def test_a_body_that_lies_about_its_length_is_refused(tmp_path):
    def chunks():
        for _ in range(100):
            yield b"x" * 1000

    with served(tmp_path / "desk.db", max_body=5000) as client:
        client.post("/api/models", json={"name": "mail"})
        error_of(client.post("/api/models/mail/learn", content=chunks()), 413)


def test_too_many_requests_are_refused(tmp_path):
    with served(tmp_path / "desk.db", rate=5) as client:
        codes = [client.get("/api/models").status_code for _ in range(30)]
        assert codes[0] == 200 and codes[-1] == 429
        assert client.get("/api/models").headers["retry-after"] == "1"


def test_pages_of_other_sites_change_nothing(taught, guarded):
    before = state(taught)
    form = {"do": "undo", "id": "m0"}
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"},
                    {"origin": "null"}):  # fmt: skip
        assert taught.post("/models/mail", data=form, headers=headers).status_code == 403
        sentence = taught.post("/api/models/mail/undo", json={"id": "m0"}, headers=headers)
        assert "another site" in error_of(sentence, 403)
    for host in ("evil.example", "127.0.0.1.evil.example", "[::", ""):
        error_of(taught.get("/api/models", headers={"host": host}), 400)
    assert state(taught) == before


def test_sessions_are_those_of_their_token(guarded):
    assert "does not know" in guarded.post("/login", data={"token": "wrong" * 5}).text
    answer = guarded.post("/login", data={"token": SECRETS["read"]}, follow_redirects=False)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and SECRETS["read"] not in cookie
    assert "bob" in guarded.get("/").text
    assert guarded.post("/models/mail", data={"do": "undo", "id": "x"}).status_code == 403
    assert guarded.get("/models/mail").status_code == 200
    guarded.get("/logout")
    assert guarded.get("/", follow_redirects=False).headers["location"] == "/login"


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


def test_the_client_does_what_the_model_does(process):
    mail = Client(process.url, "mail")
    assert mail.learn("win cash", "spam", id="m1", subject="ann")["id"] == "m1"
    assert [each["changed"] for each in mail.learn_many([("team", "work"), ("garden", "home")])]
    assert mail.predict("cash", coverage=0.9)["label"] == "spam"
    assert mail.rename("spam", "advertising")["changed"]
    assert mail.merge("home", "work")["changed"] and mail.relabel("m1", "work")["changed"]
    assert mail.undo("m1")["changed"] and mail.figures()["rows"] == 2
    kinds = [each["kind"] for each in mail.history()]
    assert kinds == ["undo", "relabel", "merge", "rename", "learn", "learn", "learn"]
    assert [each["label"] for each in mail.export()] == ["work", "work"]
    assert mail.forget(subject="ann")["n_rows"] == 1
    with pytest.raises(KeslerError, match="no event"):
        mail.undo("nothing")
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
            assert huge.recv(1000).startswith(b"HTTP/1.1 413")
            assert huge.recv(1000) == b""  # closed, without the rest


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

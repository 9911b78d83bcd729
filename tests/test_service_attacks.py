"""Attacks on the service: each is refused with a sentence and a status, and changes nothing."""

import html
import json

import httpx2 as httpx
import numpy as np
import pytest

from desks import LINES, SECRETS, bearer, error_of, exported, post, served, state
from kesler.service.endpoints import ENDPOINTS
from kesler.service.limits import Rate
from kesler.service.refusals import Refusal

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
    assert exported(taught)[text] == {"text": text, "label": text, "id": text, "person": text}
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


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\nb", "a\\nb"),
        ("a\tb\x07", "a\\tb\\u0007"),
        ("\u2066left\u2069", "\\u2066left\\u2069"),
        ("a\\nb", "a\\\\nb"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("\u200fחשבון", "\u200fחשבון"),
        ("a\u00a0b", "a\u00a0b"),
    ],
    ids=repr,
)
def test_labels_are_learnt_as_they_are_and_shown_with_escapes(taught, label, name):
    post(taught, "learn", row="bid of today", answer=label, id="odd")
    assert exported(taught)["odd"]["label"] == label
    post(taught, "learn", row="bid of others", answer="other", id="m9")
    taught.post("/api/models/mail/import", content=json.dumps({"text": "bid today", "id": "new"}))
    for page in ("", "/classes", "/history"):
        text = html.unescape(taught.get(f"/models/mail{page}").text)
        assert name in text, page
        assert name == label or label not in text
    form = {"do": "answer", "id": "new", "answer": name}
    assert taught.post("/models/mail", data=form).status_code == 200
    assert exported(taught)["new"]["label"] == label
    form = {"do": "rename", "old": name, "new": "plain"}
    assert taught.post("/models/mail/classes", data=form).status_code == 200
    assert exported(taught)["odd"]["label"] == "plain"


BAD = [
    ("learn", {"row": "x"}),
    ("learn", {"row": "x", "answer": None}),
    ("learn", {"row": "x", "answer": ""}),
    ("learn", {"row": "x", "answer": "a" * 201}),
    ("learn", {"row": "x", "answer": {"a": 1}}),
    ("learn", {"row": "x", "answer": 1 << 60}),
    ("learn", {"row": "x", "answer": "a", "id": "a\nb"}),
    ("learn", {"row": "x", "answer": "a", "subject": "\u202egnp"}),
    ("learn", {"row": "x", "answer": "a", "id": 3}),
    ("learn", {"row": "x", "answer": "a", "unknown": 3}),
    ("learn", {"row": None, "answer": "a"}),
    ("learn", {"row": [1, "x"], "answer": "a"}),
    ("learn", {"row": {"a": {"b": {"c": {"d": {}}}}}, "answer": "a"}),
    ("learn", {"rows": "x"}),
    ("learn", {"rows": ["x"]}),
    ("predict", {"row": []}),
    ("predict", {"row": "x", "coverage": 1}),
    ("predict", {"row": "x", "coverage": 0.5}),
    ("predict", {"row": "x", "coverage": "most"}),
    ("predict", {"row": "x", "explain": -1}),
    ("predict", {"row": "x", "probabilities": 1.5}),
    ("undo", {}),
    ("relabel", {"id": "m0"}),
    ("rename", {"old": "spam", "new": ""}),
    ("merge", {"source": "spam", "target": "spam"}),
    ("forget", {}),
    ("forget", {"id": "m0", "subject": "s0"}),
]


@pytest.mark.parametrize(("what", "body"), BAD)
def test_what_is_wrong_is_refused_and_nothing_changes(taught, what, body):
    before = state(taught)
    error_of(taught.post(f"/api/models/mail/{what}", json=body), 422)
    assert state(taught) == before


@pytest.mark.parametrize("levels", [4, 300, 700])
def test_deep_rows_are_refused(taught, levels):
    for begin, end in ((b"[", b"]"), (b'{"a":', b"}")):
        row = b'{"a":' + begin * levels + b"1" + end * levels + b"}"
        error_of(taught.post("/api/models/mail/predict", content=b'{"row":' + row + b"}"), 422)


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
        said = error_of(client.post(f"{path}/import", content=b"text\n" + b"x\n" * 4), 413)
        assert said == "the file has more than 3 rows: send it in parts"
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
    now = [0.0]
    with served(tmp_path / "desk.db", clock=lambda: now[0], rate=5) as client:
        codes = [client.get("/api/models").status_code for _ in range(12)]
        assert codes == [200] * 10 + [429] * 2
        assert client.get("/api/models").headers["retry-after"] == "1"
        now[0] += 0.2
        assert [client.get("/api/models").status_code for _ in range(2)] == [200, 429]


def test_rates_are_those_of_a_bucket_for_each_caller_in_bounded_memory(monkeypatch):
    monkeypatch.setattr("kesler.service.limits.MOST_CALLERS", 40)
    rng = np.random.default_rng(7)
    now, buckets, refused = 0.0, {}, 0
    rate = Rate(3.0, clock=lambda: now)
    for _ in range(3000):
        now += rng.exponential(0.05)  # some 40 requests in two seconds, of as many callers at most
        caller = f"caller {int(rng.integers(300) * rng.random() ** 6)}"
        left, last = buckets.get(caller, (6.0, now))
        left = min(6.0, left + 3.0 * (now - last))
        if left >= 1:
            buckets[caller] = left - 1, now
            rate.count(caller)
        else:
            refused += 1
            with pytest.raises(Refusal, match="wait 1 s"):
                rate.count(caller)
        assert len(rate._left) <= 40
    assert refused > 100 and len(buckets) > 80
    for i in range(500):  # more callers at once than can be remembered
        rate.count(f"stranger {i}")
        assert len(rate._left) <= 40


CHANGES = {
    "undo": {"id": "m0"},
    "relabel": {"id": "m0", "answer": "spam"},
    "rename": {"old": "spam", "new": "junk"},
    "merge": {"source": "spam", "target": "work"},
    "forget": {"id": "m0"},
}


@pytest.mark.parametrize("what", CHANGES)
def test_unknown_fields_of_a_change_are_refused(taught, what):
    before = state(taught)
    answer = taught.post(f"/api/models/mail/{what}", json={**CHANGES[what], "note": "why"})
    assert "note" in error_of(answer, 422)
    assert state(taught) == before
    assert taught.post(f"/api/models/mail/{what}", json=CHANGES[what]).status_code == 200


def test_the_history_has_20_events_unless_more_are_asked_for(taught):
    rows = [{"row": "win cash", "answer": "spam"} for _ in range(40)]
    taught.post("/api/models/mail/learn", json={"rows": rows})
    path = "/api/models/mail/history"
    assert len(taught.get(path).json()["events"]) == 20
    assert len(taught.get(f"{path}?limit=30").json()["events"]) == 30


def test_the_history_is_no_longer_than_the_most_that_may_be_asked_for(tmp_path):
    with served(tmp_path / "desk.db", history=7) as client:
        client.post("/api/models", json={"name": "mail"})
        rows = [{"row": "win cash", "answer": "spam"} for _ in range(12)]
        client.post("/api/models/mail/learn", json={"rows": rows})
        assert len(client.get("/api/models/mail/history").json()["events"]) == 7


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
    left = guarded.get("/logout", follow_redirects=False)
    assert left.status_code == 303 and "max-age=0" in left.headers["set-cookie"].lower()
    assert guarded.get("/", follow_redirects=False).headers["location"] == "/login"

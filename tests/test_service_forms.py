"""The forms of the pages: what each does and says, for whom, and where its links lead."""

import html
import json
import re
from itertools import pairwise
from types import SimpleNamespace

import pytest

from desks import SECRETS, TOKENS, error_of, exported, post, served
from kesler.durable import Journal
from kesler.durable.items import ANSWERS
from kesler.service import Tokens

FORM = {"content-type": "application/x-www-form-urlencoded"}


def said(answer):
    """Return what a page says of a form, and whether it says that something was refused."""
    found = re.search(r'<p class="message( failed)?" id="message">(.*?)</p>', answer.text)
    return found and (html.unescape(found[2]), bool(found[1]))


def sent(client, page="", status=200, **form):
    """Send a form; return its message, which is one of a failure if the status is."""
    answer = client.post(f"/models/mail{page}", data=form)
    assert answer.status_code == status, answer.text
    message, failed = said(answer)
    assert failed == (status != 200)
    return message


def add(client, *rows):
    """Let rows wait for an answer, given their texts or what else they have."""
    lines = (json.dumps({"text": each} if isinstance(each, str) else each) for each in rows)
    assert client.post("/api/models/mail/import", content="\n".join(lines)).is_success


def waiting(client):
    return [each["id"] for each in client.get("/api/models/mail/items").json()["items"]]


# ---- what forms do ------------------------------------------------------------------------------


def test_forms_say_what_they_did(taught):
    add(taught, {"text": "cash for all", "id": "i1"})
    assert said(taught.get("/models/mail")) is None
    assert sent(taught, do="answer", id="i1", answer=" spam ") == "Filed as spam."
    gone = "the item does not wait any more: somebody has answered it"
    assert sent(taught, status=422, do="answer", id="i1", answer="spam") == gone
    assert sent(taught, "/history", do="undo", id="i1") == "Taken back. The item waits again."
    assert sent(taught, "/history", do="undo", id="i1") == "It had been taken back already."
    assert waiting(taught) == ["i1"]
    assert sent(taught, "/history", do="relabel", id="m1", answer="office") == (
        "Corrected to office."
    )
    assert sent(taught, "/classes", do="rename", old="spam", new="junk") == "Renamed spam to junk."
    event = taught.get("/api/models/mail/history?limit=1").json()["events"][0]
    assert sent(taught, "/history", do="undo", id=event["id"]) == "Taken back."
    assert sent(taught, "/classes", do="merge", source="office", target="spam") == (
        "Merged office into spam."
    )
    assert {each["label"] for each in exported(taught).values()} == {"spam"}
    add(taught, "red one", "red two", "blue")
    assert sent(taught, do="discard", q="red") == "Discarded: 2 items."
    assert sent(taught, do="discard", q="blue") == "Discarded: 1 item."
    assert waiting(taught) == ["i1"]
    assert sent(taught, "/history", do="forget", subject="s0") == "Forgotten: 2 rows."
    assert sent(taught, "/history", do="forget", id="m1") == "Forgotten: 1 row."
    assert exported(taught) == {}


def test_several_events_are_taken_back_and_counted(taught):
    post(taught, "rename", old="work", new="team")
    event = taught.get("/api/models/mail/history?limit=1").json()["events"][0]["id"]
    post(taught, "undo", id="m0")
    nothing = "nothing is selected: select what is to be taken back"
    assert sent(taught, "/history", 422, do="undo_several") == nothing
    form = {"do": "undo_several", "ids": [event, "m0", "m1", "m2", "nobody"]}
    message = sent(taught, "/history", **form)
    assert message.startswith(
        "3 taken back, 2 items to be filed again, 1 had been taken back already, "
        "1 refused (mail has no event 'nobody'"
    )
    assert waiting(taught) == ["m0", "m1", "m2"] and exported(taught) == {}
    known = sent(taught, "/history", do="undo_several", ids=["m0", "m1"])
    assert known == "0 taken back, 2 had been taken back already."


def test_all_events_of_a_page_are_taken_back_at_once(desk):
    rows = [{"row": f"word{i}", "answer": "a", "id": f"r{i}"} for i in range(65)]
    post(desk, "learn", rows=rows)
    found, path, sizes = [], "/models/mail/history", []
    while path:
        page = desk.get(path).text
        shown = re.findall('<li class="card[^"]*" data-id="([^"]+)"', page)
        found, sizes = found + shown, [*sizes, len(shown)]
        following = re.search('<a href="([^"]*)" rel="next"', page)
        path = following and following[1]
    assert found == [f"r{i}" for i in reversed(range(65))] and sizes == [30, 30, 5]
    assert sent(desk, "/history", do="undo_several", ids=found[:30]) == (
        "30 taken back, 30 items to be filed again."
    )
    post(desk, "undo", ids=found[30:35])
    for n_earlier, is_more in ((29, False), (30, False), (31, True)):
        before = events(desk)[-n_earlier - 1]
        page = desk.get(f"/models/mail/history?before={before}").text
        assert ('rel="next"' in page) == is_more
    for limit, is_more in ((99, True), (100, False)):
        answer = desk.get(f"/api/models/mail/history?limit={limit}").json()
        assert len(answer["events"]) == limit and (answer["before"] is not None) == is_more


def events(client):
    """Return the numbers of all events, the last first."""
    found, before = [], 0
    while before is not None:
        answer = client.get(f"/api/models/mail/history?limit=7&before={before}").json()
        found += [each["number"] for each in answer["events"]]
        before = answer["before"]
    assert found == sorted({*found}, reverse=True)
    return found


@pytest.mark.parametrize("by", ["form", "file"])
def test_a_file_is_added_with_what_is_wrong_and_not_used(desk, by):
    content = "text,label,id,day\nwin,spam,1,x\nteam,work,2,x\ngarden,,3,x\nlunch,,4,x\n"
    again = "text,label,id\nwin,spam,1\nother,,5\nparty,,3\n"

    def filed(text):
        if by == "form":
            return sent(desk, do="import", lines=text, skip_bad="true")
        answer = desk.post("/models/mail?do=import&skip_bad=true", content=text.encode())
        return said(answer)[0]

    assert filed(content) == "2 items added, 2 rows learnt, not used: day."
    message = filed(again)
    assert message.startswith("1 item added, 1 known already, 1 refused (line 4 of the file: the")
    assert filed("text\nhällo\n") == "1 item added."
    assert filed("text,label\nnew,spam\n") == "1 row learnt."
    message = filed("text,team\nwin it,spam\n")
    assert message.startswith("1 item added, not used: team, no column is the label, so that the")


def test_what_the_model_refuses_is_not_said_to_be_filed(desk):
    post(desk, "learn", row="one", answer=1)
    post(desk, "learn", row="two", answer=2)
    add(desk, {"text": "three", "id": "i1"})
    assert "label" in sent(desk, status=422, do="answer", id="i1", answer="a text")
    assert waiting(desk) == ["i1"]
    assert sent(desk, do="answer", id="i1", answer="2") == "Filed as 2."  # the number of before
    assert exported(desk)["i1"]["label"] == 2


WRONG = [
    ({}, "the form asks for nothing"),
    ({"do": "delete"}, "the form asks for nothing"),
    ({"do": "answer", "id": "i1"}, "the class is no text, no number"),
    ({"do": "answer", "id": "", "answer": "spam"}, "id must have 1 to 200 characters"),
    ({"do": "relabel", "id": "m0", "answer": ""}, "the class must have 1 to 200 characters"),
    ({"do": "rename", "old": "spam", "new": " "}, "the new name must have 1 to 200"),
    ({"do": "forget", "id": "m0", "subject": ""}, "name one thing to forget"),
    ({"do": "forget", "note": "m0"}, "has no field 'note'"),
    ({"do": "discard", "q": ""}, "the text must have 1 to 200 characters"),
]


@pytest.mark.parametrize(("form", "words"), WRONG, ids=str)
def test_forms_that_are_wrong_say_why_and_change_nothing(taught, form, words):
    add(taught, {"text": "cash", "id": "i1"})
    before = [taught.get(f"/api/models/mail/{what}").text for what in ("history", "items")]
    message = sent(taught, status=422, **form)
    assert words in message
    after = [taught.get(f"/api/models/mail/{what}").text for what in ("history", "items")]
    assert after == before


def test_forms_are_texts_of_utf_8(taught):
    for content in (b"do=undo&id=%ff", b"do=undo&id=\xff"):
        answer = taught.post("/models/mail", content=content, headers=FORM)
        assert answer.status_code == 422 and said(answer) == ("the form cannot be read", True)


def test_a_class_is_forgotten_by_the_name_that_the_page_shows(taught):
    post(taught, "learn", row="odd", answer="a\nb", id="odd")
    post(taught, "learn", row="number", answer="other", id="a\\nb")
    assert sent(taught, "/classes", do="forget", **{"class": "a\\nb"}) == "Forgotten: 1 row."
    assert "odd" not in exported(taught)
    assert sent(taught, do="forget", id="a\\nb") == "Forgotten: 1 row."


def test_answers_are_those_of_the_program_that_adds_the_items(taught, tmp_path):
    with Journal(tmp_path / "desk.db") as journal:
        journal.open("mail").keep(ANSWERS, ["spam", "rare"])
    add(taught, {"text": "cash", "id": "i1"})
    page = taught.get("/models/mail").text
    listed = re.search(r"<datalist.*?</datalist>", page, re.DOTALL)[0]
    assert re.findall('value="([^"]*)"', listed) == ["spam", "rare"]
    assert "more by parts" not in page and "Another class" in page
    message = sent(taught, status=422, do="answer", id="i1", answer="work")
    assert message.startswith("work cannot be chosen here")
    message = sent(taught, "/history", 422, do="relabel", id="m0", answer="work")
    assert message.startswith("work cannot be chosen here")
    message = sent(taught, "/classes", 409, do="rename", old="spam", new="junk")
    assert "the program that adds its items" in message
    assert sent(taught, do="answer", id="i1", answer="rare") == "Filed as rare."


def shown_events(client):
    """What the history says of each event, and whether it can be selected, undone and corrected."""
    page = html.unescape(client.get("/models/mail/history").text)
    for part in page.split('<li class="card')[1:]:
        what = re.search('<p class="what">(.*?)</p>', part)[1]
        words = re.sub("<[^>]*>", "", what).strip()
        yield words, "checkbox" in part, 'value="undo"' in part, 'value="relabel"' in part


def test_every_event_has_a_sentence_and_only_some_can_be_taken_back(taught):
    post(taught, "relabel", id="m1", answer="office")
    renamed = post(taught, "rename", old="spam", new="junk")["id"]
    post(taught, "learn", row="garden", answer="home", id="m3")
    post(taught, "undo", id=renamed)
    post(taught, "merge", source="home", target="spam")
    post(taught, "forget", id="m2")
    assert [*shown_events(taught)] == [
        ("Forgot rows", False, False, False),
        ("Merged home into spam", True, True, False),
        ("Took back: Renamed spam to junk", True, True, False),
        ("Filed as home, now spam", True, True, True),
        ("Renamed spam to junk taken back", False, False, False),
        ("Corrected to office", True, True, False),
        ("Filed as work, now office", True, True, True),
        ("Filed as spam", True, True, True),
    ]
    post(taught, "forget", **{"class": "office"})
    assert next(shown_events(taught)) == ("Forgot a class", False, False, False)


# ---- pages --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 10, 11, 20])
def test_a_page_of_the_inbox_has_ten_items_and_links_to_its_neighbours(desk, n):
    add(desk, *({"text": f"text {i}", "id": f"i{i:02d}"} for i in range(n)))
    starts = [0, 9, 10, n - 1, n, n + 1, 999_999_999, "x", "-1", "1.5", "²", "", "9" * 5000]
    for start in starts:
        page = desk.get("/models/mail", params={"start": start}).text
        number = start if isinstance(start, int) else 0
        first = min(number, n - 1) // 10 * 10
        ids = re.findall('data-id="i(..)"', page)
        assert [*map(int, ids)] == [*range(first, min(first + 10, n))]
        assert f"Items {first + 1} to {min(first + 10, n)} of {n}" in page
        links = {rel: int(at) for at, rel in re.findall(r'start=(\d+)" rel="(\w+)"', page)}
        near = {"prev": first - 10, "next": first + 10}
        assert links == {rel: at for rel, at in near.items() if 0 <= at < n}


def test_items_in_doubt_come_first_among_the_first_thousand(desk, monkeypatch):
    monkeypatch.setattr("kesler.service.views.MOST_RANKED", 20)
    for i in range(20):
        post(desk, "learn", row=["win cash", "team lunch"][i % 2], answer="ab"[i % 2])
    texts = [["cash", "win cash", "cash lunch", "team lunch", "lunch"][i % 5] for i in range(35)]
    add(desk, *({"text": text, "id": f"i{i:02d}"} for i, text in enumerate(texts)))
    shown = []
    for start in range(0, 40, 10):
        page = desk.get(f"/models/mail?order=useful&start={start}").text
        shown += [int(each) for each in re.findall('data-id="i(..)"', page)]
    ranked, rest = shown[:20], shown[20:]
    assert sorted(ranked) == [*range(20)] and rest == [*range(20, 35)]
    assert [i % 5 for i in ranked[:4]] == [2] * 4  # the words of both classes
    for one, two in pairwise(ranked):
        assert one % 5 != two % 5 or one < two  # of equal doubt, those that came first


def test_a_thousand_items_are_looked_at_for_doubt(desk):
    for row, answer in [("win cash", "a"), ("team lunch", "b")] * 10:
        post(desk, "learn", row=row, answer=answer)
    texts = ["win cash"] * 999 + ["cash lunch"] * 3
    add(desk, *({"text": text, "id": f"i{i:04d}"} for i, text in enumerate(texts)))
    shown = []
    for start in (0, 1000):
        page = desk.get(f"/models/mail?order=useful&start={start}").text
        shown.append([int(each) for each in re.findall('data-id="i(....)"', page)])
    assert shown == [[999, *range(9)], [1000, 1001]]


def test_the_last_answer_is_that_of_who_looks(guarded):
    headers = {role: {"authorization": f"Bearer {SECRETS[role]}"} for role in ("teach", "admin")}
    for i, role in enumerate(["teach", "admin", "teach", "admin"]):
        row = {"row": f"word{i}", "answer": f"of {role} {i}", "id": f"m{i}"}
        guarded.post("/api/models/mail/learn", json=row, headers=headers[role])

    def offered(role):
        page = guarded.get("/models/mail", headers=headers[role]).text
        return re.findall('Take back: <bdi class="cut">([^<]*)</bdi>', page)

    assert (offered("teach"), offered("admin")) == (["of teach 2"], ["of admin 3"])
    guarded.post("/api/models/mail/undo", json={"id": "m2"}, headers=headers["teach"])
    assert (offered("teach"), offered("admin")) == (["of teach 0"], ["of admin 3"])
    guarded.post("/api/models/mail/undo", json={"id": "m0"}, headers=headers["teach"])
    assert offered("teach") == []


def test_pages_show_the_share_of_mistakes(taught):
    figures = taught.get("/api/models/mail").json()
    for i in range(10):  # one of each class in turn, of which the model knows nothing
        row = {"row": f"word{i}", "answer": ["spam", "work"][i % 2]}
        post(taught, "learn", **row)
    figures = taught.get("/api/models/mail").json()
    assert 0 < figures["mistakes"] < figures["rows"]
    share = f"{100 * figures['mistakes'] / figures['rows']:.0f}\N{NO-BREAK SPACE}%"
    tiles = re.findall("<dt>([^<]*)</dt><dd>([^<]*)</dd>", taught.get("/models/mail").text)
    assert tiles[:4] == [
        ("waiting", "0"), ("filed", "13"), ("classes", "2"), ("error so far", share)
    ]  # fmt: skip
    line = re.search("<tr><th.*mail.*</tr>", taught.get("/").text)[0]
    assert re.findall('class="number">([^<]*)<', line) == ["0", "13", "2", share]


def test_the_page_for_programs_lists_what_is_sent_and_returned(desk):
    page, document = desk.get("/api").text, desk.get("/openapi.json").json()
    sections = {html.unescape(part.partition('"')[0]): html.unescape(part)
                for part in page.split('aria-labelledby="')[1:]}  # fmt: skip
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, each in operations.items():
            fields = [p["name"] for p in each["parameters"] if p["in"] == "query"]
            bodies = each.get("requestBody", {"content": {}})["content"]
            for content in bodies.values():
                schema = content.get("schema", {})
                name = schema.get("$ref", "").rpartition("/")[2]
                fields += [*schemas.get(name, schema).get("properties", {})]
            section = sections[each["operationId"]]
            assert f"{method.upper()} {path}" in section
            listed = re.findall("<dt><code>(.*?)</code></dt>", section)
            assert {*listed} == {*fields} and len(listed) == len({*listed})
            (success,) = (code for code in each["responses"] if code != "default")
            returned = each["responses"][success]["description"]
            assert f"Returns {returned}" in section
            (content,) = each["responses"][success]["content"].values()
            kinds = content.get("schema", {})
            for kind in kinds.get("oneOf", [kinds] if kinds else []):
                properties = schemas[kind["$ref"].rpartition("/")[2]]["properties"]
                assert all(re.search(rf"\b{name}\b", returned) for name in properties)


# ---- who may ------------------------------------------------------------------------------------


def logged_in(client, role, **options):
    """Log in; return the answer and the cookie."""
    answer = client.post("/login", data={"token": SECRETS[role]}, follow_redirects=False, **options)
    return answer, {"cookie": answer.headers.get("set-cookie", "").partition(";")[0]}


def test_pages_have_the_rights_of_their_token(guarded):
    answer, _ = logged_in(guarded, "teach")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert sent(guarded, do="import", lines="text,label,id\nwin,spam,m0\n") == "1 row learnt."
    message = sent(guarded, status=403, do="forget", id="m0")
    assert message == "the token of ann is to teach, not admin"
    assert "m0" in guarded.get("/models/mail/history").text
    assert guarded.post("/", data={"name": "new"}).status_code == 403
    assert "New model" not in guarded.get("/").text and "Log out" in guarded.get("/").text
    logged_in(guarded, "read")
    page = guarded.get("/models/mail/history").text
    assert 'data-id="m0"' in page and "checkbox" not in page and "<form" not in page
    logged_in(guarded, "other")
    start = guarded.get("/").text
    assert "New model" in start and "/models/mail" not in start
    answer = guarded.post("/", data={"name": "new"}, follow_redirects=False)
    assert answer.status_code == 403
    assert said(answer) == ("the token of oscar is for other models", True)
    answer = guarded.post("/", data={"name": "post"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/models/post")
    assert "/models/post" in guarded.get("/").text
    answer = guarded.post("/", data={"name": "post"}, follow_redirects=False)
    assert answer.status_code == 409 and "take another name" in said(answer)[0]
    logged_in(guarded, "admin")
    answer = guarded.post("/", data={"name": "a/b"}, follow_redirects=False)
    assert answer.status_code == 422 and said(answer)[1]


def test_who_is_not_known_is_sent_to_the_login_and_others_are_told(guarded):
    for path in ("/", "/api", "/models/mail", "/models/none/history"):
        answer = guarded.get(path, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
        answer = guarded.post(path, data={"do": "undo"}, follow_redirects=False)
        assert answer.status_code == (405 if path == "/api" else 401)
    logged_in(guarded, "read")
    answer = guarded.get("/models/none", follow_redirects=False)
    assert answer.status_code == 404 and "<h1>there is no model" in html.unescape(answer.text)
    assert "location" not in answer.headers
    assert guarded.get("/api/nothing").json()["error"] == (
        "there is nothing at this path: see /api"
    )
    answer = guarded.put("/api/models")
    assert error_of(answer, 405) == "PUT does nothing here: see /api"
    assert {*answer.headers["allow"].split(", ")} & {"GET", "POST"}


def test_pages_without_tokens_have_no_log_out(desk):
    for path in ("/", "/models/mail", "/models/none", "/login", "/api"):
        page = desk.get(path).text
        assert "Log out" not in page and 'class="message' not in page
    wrong = desk.post("/login", data={"token": "x" * 16})
    assert wrong.status_code == 401 and said(wrong)[1]


def test_a_session_ends_after_twelve_hours_and_with_its_log_out(guarded, monkeypatch):
    now = [1e9]
    monkeypatch.setattr("kesler.service.gate.time", SimpleNamespace(time=lambda: now[0]))
    first, cookie = logged_in(guarded, "read")
    _, other = logged_in(guarded, "teach")
    key = cookie["cookie"].partition("=")[2]
    assert len(key) >= 43 and key not in other["cookie"]  # 256 bits, in letters of 6
    assert "max-age=43200" in first.headers["set-cookie"].lower()
    assert "secure" not in first.headers["set-cookie"].lower()
    guarded.cookies.clear()

    def is_known(cookie):
        return guarded.get("/", headers=cookie, follow_redirects=False).status_code == 200

    assert is_known(cookie) and is_known(other) and not is_known({})
    now[0] += 12 * 3600
    assert is_known(cookie) and is_known(other)
    guarded.get("/logout", headers=other)
    assert is_known(cookie) and not is_known(other)
    now[0] += 1
    assert not is_known(cookie)
    _, cookie = logged_in(guarded, "read")
    guarded.cookies.clear()
    assert is_known(cookie) and not is_known(other)


def test_the_oldest_session_makes_room(guarded, monkeypatch):
    monkeypatch.setattr("kesler.service.gate.MOST_SESSIONS", 3)
    cookies = [logged_in(guarded, "read")[1] for _ in range(5)]
    guarded.cookies.clear()
    codes = [guarded.get("/", headers=each, follow_redirects=False).status_code for each in cookies]
    assert codes == [303, 303, 200, 200, 200]


def test_sessions_are_not_used_by_other_sites(guarded):
    evil = {"origin": "http://evil.example"}
    assert logged_in(guarded, "teach", headers=evil)[0].status_code == 403
    answer, cookie = logged_in(guarded, "teach", headers={"origin": "http://127.0.0.1:8000"})
    assert answer.status_code == 303
    guarded.cookies.clear()
    form = {"do": "import", "lines": "text\na\n"}
    for headers, status in (
        (evil, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://127.0.0.1:8001"}, 403),
        ({"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
    ):
        answer = guarded.post("/models/mail", data=form, headers=cookie | headers)
        assert answer.status_code == status, headers
        assert guarded.get("/models/mail", headers=cookie | headers).status_code == 200


def test_an_address_with_a_token_logs_in(tmp_path):
    tokens = Tokens.of_text(TOKENS)
    with served(tmp_path / "desk.db", tokens=tokens) as client:
        client.base_url = "https://127.0.0.1:8000"
        path = "/login?token="
        answer = client.get(path + SECRETS["read"], follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert "secure" in answer.headers["set-cookie"].lower()
        assert "bob" in client.get("/").text
        client.cookies.clear()
        answer = client.get(path + "wrong", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
        assert "set-cookie" not in answer.headers


def test_the_page_of_files_links_to_the_exports(taught):
    links = re.findall(r'href="([^"]+)" download', taught.get("/models/mail/files").text)
    assert [link.rsplit(".")[-1] for link in links] == ["csv", "jsonl"]
    for link in links:
        page, api = taught.get(link), taught.get(f"/api{link}")
        assert page.content == api.content
        assert page.headers["content-type"] == api.headers["content-type"]

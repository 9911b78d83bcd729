"""Models of a service: their creation with settings, and the figures of their histories."""

import html
import json
import re
import threading

import pytest

from desks import LINES, ROWS, error_of, post, served, state
from kesler import NEW, Ensemble, OnlineClassifier
from kesler.durable import Journal, JournalError
from kesler.service import Client, validation
from kesler.service.answers import Wanted, answer_of
from kesler.service.bodies import PredictRequest
from kesler.service.refusals import refusal_of
from serving import Server


@pytest.fixture
def client(tmp_path):
    with served(tmp_path / "desk.db") as client:
        yield client


# ---- creation -----------------------------------------------------------------------------------

USABLE = [
    {},
    {"settings": {"half_life": 5000, "preprocessing": "idf", "update": "pa1"}},
    {"settings": {"update": "pa1", "hypotheses": "multi", "C": 0.1}},
    {"settings": {"columns": {"kind": "category"}}},
    {"estimator": "Ensemble"},
]


@pytest.mark.parametrize("given", USABLE, ids=str)
def test_models_are_created_with_settings_and_keep_them(tmp_path, given):
    with served(tmp_path / "desk.db") as client:
        assert client.post("/api/models", json={"name": "mail"} | given).status_code == 201
        row = {"kind": "card", "hours": 3} if "columns" in given.get("settings", {}) else "a b"
        for answer in ("x", "y"):
            assert post(client, "learn", row=row, answer=answer)["changed"]
    with served(tmp_path / "desk.db") as client:
        assert post(client, "predict", row=row)["label"] in ("x", "y")
    made = {"OnlineClassifier": OnlineClassifier, "Ensemble": Ensemble}
    expected = made[given.get("estimator", "OnlineClassifier")](**given.get("settings", {}))
    with Journal(tmp_path / "desk.db") as journal:
        assert journal.open("mail", expected).n_trials_ == 2


UNUSABLE = [
    ({"estimator": "LinearMax"}, "estimator must be one of"),
    ({"estimator": ["OnlineClassifier"]}, "estimator is one of"),
    ({"estimator": "os.system"}, "estimator must be one of"),
    ({"settings": []}, "settings is an object"),
    ({"settings": {"halflife": 5}}, "no setting 'halflife'"),
    ({"settings": {"half_life": -1}}, "half_life=-1"),
    ({"settings": {"half_life": "x"}}, "half_life='x'"),
    ({"settings": {"update": {"pa1": 1}}}, "update="),
    ({"settings": {"update": ["pa1"]}}, "ensemble"),
    ({"settings": {"hypotheses": 3}}, "hypotheses=3"),
    ({"settings": {"costs": {"a": 1}}}, "costs"),
    ({"code": "import os"}, "code"),
]


@pytest.mark.parametrize(("given", "words"), UNUSABLE, ids=str)
def test_models_are_not_created_with_what_they_cannot_use(client, given, words):
    answer = client.post("/api/models", json={"name": "mail"} | given)
    assert words in error_of(answer, 422)
    assert client.get("/api/models").json() == {"models": []}


def test_the_client_creates_models_with_settings(tmp_path):
    with Server(tmp_path / "desk.db") as server:
        Client(server.url, "mail").create(half_life=5000, update="pa1")
        Client(server.url, "all").create("Ensemble")
    with Journal(tmp_path / "desk.db") as journal:
        assert journal.open("mail").estimator.half_life == 5000
        assert isinstance(journal.open("all").estimator, Ensemble)


def test_pages_and_endpoints_take_models_of_label_sets(client):
    client.post("/api/models", json={"name": "mail", "estimator": "OnlineMultilabelClassifier"})
    for text, labels in (("win cash", ["a", "b"]), ("team lunch", ["b"]), ("cash", ["a"])):
        post(client, "learn", row=text, answer=labels)
    body = '{"text": "cash now"}\n'
    headers = {"content-type": "application/x-ndjson"}
    assert client.post("/api/models/mail/import", content=body, headers=headers).is_success
    said = post(client, "predict", row="win cash", coverage=0.9, probabilities=2, explain=2)
    assert said["label"] == ["a", "b"] and said["explanation"]["label"] == "a"
    for path in ("", "/classes", "/history", "/error", "/files"):
        assert client.get(f"/models/mail{path}").status_code == 200, path
    page = shown_when_ready(client, "error", "imperfect predictions")
    assert "micro F1" in page and "precision at 1, 3, 5" in page
    assert 'data-class="b"' in shown_when_ready(client, "classes", "2 classes, 3 rows")


# ---- the figures of a history -------------------------------------------------------------------


@pytest.fixture
def slow(monkeypatch):
    """Validation waits for an event, and pages do not wait for it."""
    going, really = threading.Event(), validation.validated
    monkeypatch.setattr(validation, "validated", lambda model: going.wait(30) and really(model))
    monkeypatch.setattr(validation.Validation.last, "__defaults__", (0.05,))
    yield going
    going.set()


def shown_when_ready(client, page, words):
    for _ in range(200):
        text = client.get(f"/models/mail/{page}").text
        if words in text:
            return text
    raise AssertionError(text)


@pytest.mark.parametrize("page", ["classes", "error"])
def test_pages_say_which_rows_their_figures_are_of(slow, client, page):
    client.post("/api/models", json={"name": "mail"})
    slow.set()
    empty = shown_when_ready(client, page, "empty")
    assert "being computed" not in empty
    slow.clear()
    for text, label in ROWS:
        post(client, "learn", row=text, answer=label)
    first = client.get(f"/models/mail/{page}").text
    assert "figures are being computed" in first and "Show again" in first
    slow.set()
    assert "of the first" not in shown_when_ready(
        client, page, "3 rows" if page == "classes" else "mistakes"
    )
    slow.clear()
    post(client, "learn", row="garden", answer="home")
    later = client.get(f"/models/mail/{page}").text
    assert "figures are of the first 3 rows" in later
    slow.set()
    shown_when_ready(client, page, "4 rows" if page == "classes" else "<dd>4</dd>")


def test_the_pages_of_the_inbox_lead_to_all_items_and_back(client):
    client.post("/api/models", json={"name": "many"})
    content = "\n".join(["text", *(f"item{i} of many" for i in range(27)), "another"])
    assert client.post("/api/models/many/import", content=content.encode()).json()["added"] == 28
    page, found = "/models/many?q=of+many", []
    for _ in range(3):
        text = client.get(page).text
        found.append(re.findall(r"item\d+ of many", text))
        links = dict(re.findall(r'<a href="([^"]+)" rel="(\w+)"', text))
        links = {rel: html.unescape(link) for link, rel in links.items()}
        page = links.get("next")
    assert page is None and [len(set(each)) for each in found] == [10, 10, 7]
    assert len(set().union(*found)) == 27
    assert {*re.findall(r"item\d+ of many", client.get(links["prev"]).text)} == {*found[1]}


def test_a_validation_that_fails_is_logged_and_tried_again(client, monkeypatch, caplog):
    client.post("/api/models", json={"name": "mail"})
    post(client, "learn", row="win cash", answer="spam")
    with monkeypatch.context() as broken:
        broken.setattr(validation, "validated", lambda model: 1 / 0)
        assert "being computed" in client.get("/models/mail/error").text
    assert "could not be validated" in caplog.text
    assert "being computed" not in client.get("/models/mail/error").text


# ---- reasons ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "status"),
    [("not found", 404), ("conflict", 409), ("busy", 503), ("full", 507), ("unusable", 500)],
)
def test_reasons_of_the_journal_have_a_status(reason, status):
    refusal = refusal_of(JournalError("a sentence", reason))
    assert refusal.status == status and str(refusal) == "a sentence"
    assert bool(refusal.wait) == (reason == "busy")


def test_refusals_of_the_journal_have_their_status(client):
    client.post("/api/models", json={"name": "mail"})
    for i, (text, label) in enumerate(ROWS):
        post(client, "learn", row=text, answer=label, id=f"m{i}")
    before = state(client)
    post(client, "undo", 404, id="m9")
    post(client, "rename", 404, old="nothing", new="more")
    post(client, "rename", 409, old="spam", new="work")
    post(client, "merge", 422, source="spam", target="spam")
    post(client, "learn", 409, row="another", answer="spam", id="m0")
    assert state(client) == before


# ---- the inbox ----------------------------------------------------------------------------------


def test_the_inbox_lists_first_what_a_label_budget_would_ask_about(client, tmp_path):
    client.post("/api/models", json={"name": "mail"})
    words = ["cash", "prize", "win", "team", "lunch", "meeting"]
    for i in range(30):
        text = " ".join(words[(i % 2) * 3 + j] for j in range(1 + i % 3))
        post(client, "learn", row=text, answer=["spam", "work"][i % 2])
    rows = ["win cash prize", "cash team", "team lunch meeting", "a garden", "cash", "lunch win"]
    lines = "\n".join(json.dumps({"text": row, "id": f"i{i}"}) for i, row in enumerate(rows))
    lines += '\n{"row": [1, 2], "id": "i6"}'
    assert client.post("/api/models/mail/import", content=lines, headers=LINES).is_success
    shown = client.get("/models/mail?order=useful").text
    order = re.findall(r'data-id="i(\d)"', shown)
    with Journal(tmp_path / "desk.db") as journal:
        model = journal.open("mail").copy()

    def doubt(row):
        if row is None:
            return 1  # of another kind than the rows learnt
        first, second = sorted(model.predict_proba_one(row).values(), reverse=True)[:2]
        return 1 - (first - second) * (1 - model.predict_proba_one(row, new=True)[NEW])

    assert order == sorted("0123456", key=lambda i: -doubt([*rows, None][int(i)]))
    assert order[0] == "6" and order[1] in "135" and "A label budget would ask" in shown
    shown = client.get("/models/mail").text
    assert re.findall(r'data-id="i(\d)"', shown) == [*"0123456"]
    for row, item in zip(rows, shown.split("data-id=")[1:], strict=False):
        marked = re.findall(r'value="(\w+)" class="in', item)
        covered = {model.predict_one(row), *model.predict_set_one(row, 0.9)} - {NEW}
        assert {*marked} == covered
        assert ("may be a new class" in item) == (NEW in model.predict_set_one(row, 0.9))


def test_what_is_not_asked_for_is_not_said():
    assert Wanted() == Wanted.of(PredictRequest(row="cash"))
    model = OnlineClassifier().learn_one("win cash", "spam").learn_one("team lunch", "work")
    assert answer_of(model, "cash", Wanted()).keys() == {"label", "confidence"}


def test_no_class_is_answered_below_the_least_confidence(tmp_path):
    client = served(tmp_path / "desk.db")
    client.post("/api/models", json={"name": "mail"})
    assert post(client, "predict", row="cash", min_confidence=0.9)["label"] is None
    for i in range(40):
        post(client, "learn", row=["win cash", "team lunch"][i % 2], answer=["spam", "work"][i % 2])
    with Journal(tmp_path / "desk.db") as journal:
        model = journal.open("mail")
        for row in ("win cash", "lunch", "cash for lunch", "words not seen"):
            sure = model.confidence_one(row)
            for least in (0, sure, min(1, sure + 1e-9), 1):
                expected = model.predict_one(row, min_confidence=least)
                said = post(client, "predict", row=row, min_confidence=least)
                assert said == {"label": expected, "confidence": sure}
                assert (said["label"] is None) == (sure < least)
    client.post("/api/models", json={"name": "sets", "estimator": "OnlineMultilabelClassifier"})
    client.post("/api/models/sets/learn", json={"row": "a", "answer": ["x"]})
    answer = client.post("/api/models/sets/predict", json={"row": "a", "min_confidence": 0.5})
    assert "confidence is that of each label" in error_of(answer, 422)


@pytest.mark.parametrize("settings", [{}, {"update": "pa1"}])
def test_with_a_separator_the_path_alone_is_bounded(tmp_path, settings):
    """A model without confidences has paths, and nothing that a label could be bounded by."""
    client = served(tmp_path / "desk.db")
    client.post("/api/models", json={"name": "mail", "settings": settings})
    for i in range(12):
        post(client, "learn", row={"k": 1, "ghs"[i % 3]: 1}, answer=TAXA[i % 3])
    asked = {"row": {"k": 1}, "separator": ";"}
    plain, bounded = post(client, "predict", **asked), []
    for least in (0, 1):
        bounded.append(post(client, "predict", **asked, min_confidence=least))
        assert bounded[-1]["label"] == plain["label"] in TAXA
    assert bounded[0]["path"]["path"] == plain["path"]["nodes"][-1]["path"]
    assert bounded[1]["path"]["probability"] == 1
    answer = client.post("/api/models/mail/predict", json={"row": {"k": 1}, "min_confidence": 1})
    if settings:
        said = error_of(answer, 422)
        assert said.startswith("min_confidence needs") and "out of the request" in said
    else:
        assert answer.json()["label"] is None


def test_a_set_says_whether_the_class_may_be_new(tmp_path):
    client, said = served(tmp_path / "desk.db"), set()
    client.post("/api/models", json={"name": "mail"})
    with Journal(tmp_path / "desk.db") as journal:
        model = journal.open("mail")
        for i in range(40):
            row, answer = [("win cash", "spam"), ("team lunch", "work")][i % 2]
            post(client, "learn", row=row, answer=answer)
            if i in (2, 39):
                for coverage in (0.8, 0.99):
                    covered = model.predict_set_one(row, coverage=coverage)
                    found = post(client, "predict", row=row, coverage=coverage)
                    assert found["set"] == [each for each in covered if each is not NEW]
                    assert found["may_be_new"] is (NEW in covered)
                    said.add((NEW in covered, bool(found["set"])))
    assert {(True, True), (False, True)} <= said


# ---- classes that are paths ---------------------------------------------------------------------

TAXA = ["k;g;s", "k;g;t", "k;h;u"]


def test_answers_stop_at_the_rank_that_is_sure_enough(tmp_path):
    client = served(tmp_path / "desk.db")
    client.post("/api/models", json={"name": "mail"})
    for i in range(60):
        name = TAXA[i % 3]
        post(client, "learn", row={"k": 1, name[2]: 1, name[4]: 1}, answer=name)
    with Journal(tmp_path / "desk.db") as journal:
        model = journal.open("mail")
        for row in ({"g": 1}, {"k": 1}, {"u": 1}):
            for given, least in ({}, 0.9), ({"min_confidence": 0.2}, 0.2):
                expected = model.predict_path_one(row, min_confidence=least)
                assert expected == model.estimator.predict_path_one(row, least)
                said = post(client, "predict", row=row, separator=";", **given)["path"]
                assert said["path"] == expected.path and said["probability"] == expected.probability
                assert {
                    each["path"]: each["probability"] for each in said["nodes"]
                } == expected.nodes
                assert {each["path"]: each["new"] for each in said["nodes"]} == expected.new
    paths = {post(client, "predict", row={"g": 1}, separator=";", min_confidence=p)["path"]["path"]
             for p in (0, 0.7, 1)}  # fmt: skip
    assert len(paths) > 1
    asked = {"rows": [{"g": 1}], "separator": ";"}
    assert "path" in post(client, "predict", **asked)["answers"][0]


def test_answers_by_paths_that_there_are_not_are_refused(tmp_path):
    client = served(tmp_path / "desk.db")
    client.post("/api/models", json={"name": "mail"})
    assert post(client, "predict", row="a", separator=";")["label"] is None
    post(client, "learn", row="a", answer=1)
    for body, sentence in (
        ({"separator": ";"}, "is no text"),
        ({"separator": ""}, "what separates their names"),
        ({"separator": ";", "min_confidence": 1.5}, "least probability"),
        ({"min_confidence": 1.5}, "least probability"),
    ):
        answer = client.post("/api/models/mail/predict", json={"row": "a", **body})
        assert sentence in error_of(answer, 422)
    sets = {"name": "sets", "estimator": "OnlineMultilabelClassifier"}
    client.post("/api/models", json=sets)
    client.post("/api/models/sets/learn", json={"row": "a", "answer": ["k;s"]})
    answer = client.post("/api/models/sets/predict", json={"row": "a", "separator": ";"})
    assert "no answers by paths" in error_of(answer, 422)

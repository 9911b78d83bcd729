"""Answers and pages of a service whose model has thousands of classes: their sizes stay small."""

import json
import re
import time
from urllib.parse import quote

import pytest

from desks import error_of, post, served
from kesler import OnlineClassifier
from kesler.durable import Journal
from kesler.service.names import names_of

FEW, MANY = 300, 3000
PAGES = ("", "/history", "/classes", "/error", "/files")
MOST_OF_PAGE, MOST_OF_ANSWER = 120_000, 4_000  # bytes


def label_of(i):
    return f"class number {i:04d}" if i % 50 else f"odd\n<b>class</b> {i:04d}"


def rows_of(n_classes):
    """One row for each class, and two more for those of the numbers 7, 17, 27 ..."""
    rows = [(f"word{i} shared{i % 40}", label_of(i)) for i in range(n_classes)]
    return rows + [rows[i] for i in range(7, n_classes, 10) for _ in range(2)]


def desk(folder, n_classes):
    path = folder / f"{n_classes}.db"
    with Journal(path) as journal:
        rows = [(*row, None, None) for row in rows_of(n_classes)]
        journal.open("mail", OnlineClassifier()).learn_many(rows)
    client = served(path)
    items = [{"text": f"word{i} shared{i % 40}"} for i in range(12)]
    lines = "\n".join(map(json.dumps, items)).encode()
    assert client.post("/api/models/mail/import", content=lines).json()["added"] == 12
    while "being computed" in client.get("/models/mail/classes").text:
        time.sleep(0.01)
    return client


@pytest.fixture(scope="module")
def desks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("desks")
    return {n: desk(folder, n) for n in (FEW, MANY)}


@pytest.fixture
def many(desks):
    return desks[MANY]


def page_of(client, path="", **query):
    answer = client.get(f"/models/mail{path}", params=query)
    assert answer.status_code == 200
    return answer.text


def test_figures_count_the_classes_and_list_those_of_most_rows(many):
    found = many.get("/api/models/mail")
    assert found.json()["n_classes"] == MANY
    assert found.json()["classes"] == [label_of(i) for i in range(7, 1007, 10)]
    assert len(found.content) < MOST_OF_ANSWER
    assert len(many.get("/api/models").content) < MOST_OF_ANSWER
    assert f'kesler_classes{{model="mail"}} {MANY}\n' in many.get("/metrics").text


def test_all_classes_are_listed_page_by_page_in_the_order_in_which_they_came(many):
    found = []
    for start in range(0, MANY + 1000, 1000):
        query = {"limit": 1000, "start": start}
        answer = many.get("/api/models/mail/classes", params=query).json()
        assert answer["n_found"] == MANY
        found += answer["classes"]
    assert [each["label"] for each in found] == [label_of(i) for i in range(MANY)]
    assert found[50]["name"] == "odd\\n<b>class</b> 0050"
    assert len(many.get("/api/models/mail/classes").json()["classes"]) == 100
    assert "limit" in error_of(many.get("/api/models/mail/classes?limit=1001"), 422)
    assert "wanted" in error_of(many.get("/api/models/mail/classes?wanted=1"), 422)


def test_classes_are_found_by_parts_of_their_names(many):
    answer = many.get("/api/models/mail/classes", params={"q": "NUMBER 123", "limit": 3}).json()
    assert [each["label"] for each in answer["classes"]] == [
        label_of(i) for i in (1230, 1231, 1232)
    ]
    assert answer["n_found"] == 10
    assert many.get("/api/models/mail/classes?q=nothing").json() == {"classes": [], "n_found": 0}
    names = names_of(("a card", "Card", "scarf", "car"))
    assert [names.shown[i] for i in names.containing("CAR")] == ["Card", "car", "a card", "scarf"]


def test_a_model_without_rows_has_no_classes(tmp_path):
    client = served(tmp_path / "desk.db")
    client.post("/api/models", json={"name": "mail"})
    assert client.get("/api/models/mail/classes").json() == {"classes": [], "n_found": 0}
    assert client.get("/api/models/mail").json()["n_classes"] == 0


@pytest.mark.parametrize("settings", [{}, {"uncertainty": False}])
def test_the_most_probable_classes_are_those_of_the_library(settings, tmp_path):
    with Journal(tmp_path / "few.db") as journal:
        model = journal.open("mail", OnlineClassifier(**settings))
        model.learn_many([(*row, None, None) for row in rows_of(FEW)])
        expected = model.predict_top_one("word8 shared9", 5)
    client = served(tmp_path / "few.db")
    said = post(client, "predict", row="word8 shared9", probabilities=5)["probabilities"]
    assert said == [{"label": each.label, "probability": each.probability} for each in expected]
    every = post(client, "predict", row="word8 shared9", probabilities=True)["probabilities"]
    assert len({each["label"] for each in every}) == FEW
    assert client.get("/api/models/mail").json()["n_classes"] == FEW


def test_answers_are_short(many):
    for wanted in ({}, {"probabilities": 5}, {"explain": 10}):
        answer = many.post("/api/models/mail/predict", json={"row": "word9 shared9", **wanted})
        assert len(answer.content) < MOST_OF_ANSWER, wanted
    assert len(many.get("/api/models/mail/history?limit=10").content) < MOST_OF_ANSWER


@pytest.mark.parametrize("path", PAGES)
def test_pages_do_not_grow_with_the_number_of_classes(desks, path):
    few, many = (page_of(desks[n], path) for n in (FEW, MANY))
    assert len(many) < min(MOST_OF_PAGE, 1.05 * len(few) + 500)
    assert many.count("<option") <= 102 and many.count("data-class=") <= 25
    if path in ("", "/history", "/classes"):
        assert many.count("<option value=") >= 100
        assert f"{MANY - 100:,} more by parts of their names" in many


def test_few_classes_are_listed_without_a_word(tmp_path):
    client = served(tmp_path / "desk.db")
    client.post("/api/models", json={"name": "mail"})
    for i in range(3):
        post(client, "learn", row=f"word{i}", answer=f"c{i}")
    page = page_of(client, "/classes")
    assert page.count("data-class=") == 3 and "more by parts" not in page
    assert 'role="search"' not in page and 'class="count"' not in page


def test_the_page_of_classes_shows_all_of_them_one_page_after_the_other(many):
    found, path = [], "/models/mail/classes"
    while path:
        page = many.get(path).text
        shown = re.findall('data-class="([^"]*)"', page)
        assert 0 < len(shown) <= 25
        found += shown
        following = re.search('<a href="([^"]*)" rel="next"', page)
        path = following and following[1].replace("&amp;", "&")
        if len(found) >= 200:
            break
    assert len({*found}) == len(found) == 200 and found[0] == label_of(7)
    last = page_of(many, "/classes", start=str(MANY - 1))
    assert f"Classes {MANY - 24:,} to {MANY:,} of {MANY:,}" in last and 'rel="next"' not in last
    page = page_of(many, "/classes", q="Number 123")
    assert len(re.findall("data-class=", page)) == 10
    assert "No class contains" in page_of(many, "/classes", q="nothing")


def test_forms_know_classes_that_no_page_lists(desks, tmp_path):
    client = desk(tmp_path, FEW)
    form = {"content-type": "application/x-www-form-urlencoded"}

    def sent(path, what, status=200):
        answer = client.post(f"/models/mail{path}", content=what, headers=form)
        assert answer.status_code == status
        return answer.text

    item = client.get("/api/models/mail/items").json()["items"][0]["id"]
    odd = quote("odd\\n<b>class</b> 0150")  # as the page shows it
    assert label_of(150) not in client.get("/api/models/mail").json()["classes"]
    sent("", f"do=answer&id={item}&answer={odd}")
    last = client.get("/api/models/mail/history?limit=1").json()["events"][0]
    assert last["answer"] == label_of(150)
    sent("/classes", f"do=merge&source={quote(label_of(1))}&target={odd}")
    assert client.get("/api/models/mail").json()["n_classes"] == FEW - 1
    page = sent("/classes", f"do=merge&source={quote(label_of(2))}&target=unknown", status=404)
    assert "unknown" in page


def test_a_history_of_many_rows_is_not_waited_for(many, monkeypatch):
    """The page says so, and shows the figures once they are there."""
    monkeypatch.setattr("kesler.service.validation.FEW_ROWS", 0)
    monkeypatch.setattr("kesler.service.validation.validated", lambda model: None)
    post(many, "learn", row="word1", answer=label_of(1))
    assert "are being computed" in page_of(many, "/error")

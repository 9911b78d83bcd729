"""What the pages of classes and of the error show, and what they say is not known yet."""

import threading
from collections import Counter, defaultdict
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from desks import post
from kesler import OnlineClassifier, progressive_validate
from kesler.service import figures, validation
from kesler.service.validation import Validated
from kesler.service.views import NO_BREAK, percent, row_text, shown_time


def stand_in(report, times=(), is_current=True):
    """What the pages ask of a served model whose history has this report."""
    found = Validated(1, report, [*times])
    last = SimpleNamespace(last=lambda: (found, is_current))
    return SimpleNamespace(name="mail", validation=last)


def rows_of(n_classes, n_rows, seed=0):
    """Rows of which each class has one at least, and which say little of their classes."""
    rng = np.random.default_rng(seed)
    labels = [*range(n_classes), *rng.integers(n_classes, size=n_rows - n_classes).tolist()]
    rows = [f"word{label % 2} noise{rng.integers(4)}" for label in labels]
    return rows, [f"class {label:02d}" for label in labels]


class History:
    """A model of a journal that has learnt rows of nine classes, which it confuses."""

    name, n_trials_, estimator = "mail", 150, OnlineClassifier()

    def __init__(self):
        self.rows, self.labels = rows_of(9, 150)
        self.times = [1e9 + 60 * i for i in range(150)]

    def history(self, limit):
        return [SimpleNamespace(number=150)]

    def remaining(self):
        taught = zip(self.rows, self.labels, self.times, strict=True)
        return [SimpleNamespace(row=row, current=label, time=t) for row, label, t in taught]


@pytest.fixture(scope="module")
def shown():
    history, known = History(), OnlineClassifier()
    seen, wrong, predicted = Counter(), Counter(), []
    for row, label in zip(history.rows, history.labels, strict=True):
        predicted.append(known.predict_one(row) if seen else None)
        wrong[label, predicted[-1]] += seen[label] > 0 and predicted[-1] != label
        seen[label] += 1
        known.learn_one(row, label)
    found = validation.validated(history)
    desk = stand_in(found.report, found.times)
    return history, seen, +wrong, figures.classes_of(desk, "", 0), figures.error_of(desk)


def test_each_class_has_its_rows_its_error_its_arrival_and_what_it_is_taken_for(shown):
    history, seen, wrong, of_classes, _ = shown
    pairs = defaultdict(list)
    for (label, other), n in wrong.items():
        pairs[label].append((other, n))
    assert len(wrong) > 20 and max(map(len, pairs.values())) > 3
    assert [each["label"] for each in of_classes["shown"]] == [
        label for label, _ in sorted(seen.items(), key=lambda pair: -pair[1])
    ]
    for each in of_classes["shown"]:
        label = each["label"]
        n_wrong, first = sum(n for _, n in pairs[label]), history.labels.index(label)
        assert each["rows"] == str(seen[label])
        share = n_wrong / (seen[label] - 1)  # the first row of a class is no mistake
        assert each["error"] == f"{100 * share:.0f}{NO_BREAK}%"
        assert each["arrival"] == f"{shown_time(history.times[first])}, row {first + 1}"
        counts = sorted((n for _, n in pairs[label]), reverse=True)
        assert [n for _, n in each["confusions"]] == counts[:3]
        assert {*each["confusions"]} <= {*pairs[label]}
    assert of_classes["summary"].startswith("9 classes, 150 rows. The error of a class is")
    assert (of_classes["older"], of_classes["newer"], of_classes["state"]) == ("", "", "")


def test_the_error_has_the_pairs_that_are_confused_most(shown):
    _, _, wrong, _, of_error = shown
    n_wrong = wrong.total()
    share = f"{100 * n_wrong / 150:.0f}{NO_BREAK}%"
    assert of_error["tiles"] == [
        ("error", share), ("mistakes", str(n_wrong)), ("rows", "150"), ("classes", "9"),
    ]  # fmt: skip
    found = [(each["target"], each["predicted"], int(each["count"]))
             for each in of_error["confusions"]]  # fmt: skip
    assert [n for *_, n in found] == sorted(wrong.values(), reverse=True)[:15]
    assert all(wrong[target, predicted] == n for target, predicted, n in found)


@pytest.mark.parametrize("n_classes", [1, 25, 26, 50])
def test_a_page_of_classes_has_25_and_links_to_its_neighbours(n_classes):
    rows, labels = rows_of(n_classes, n_classes)
    report = progressive_validate(OnlineClassifier(), rows, labels).report()
    desk, every = stand_in(report), sorted(labels)
    for start in {0, 24, 25, n_classes - 1, n_classes, n_classes + 1, 10**9}:
        for q in ("", "CLASS 1", "nothing"):
            some = [each for each in every if q.lower() in each]
            first = min(start, max(len(some) - 1, 0)) // 25 * 25
            found = figures.classes_of(desk, q, start)
            assert [each["label"] for each in found["shown"]] == some[first : first + 25]
            for name, at in (("newer", first - 25), ("older", first + 25)):
                query = parse_qs(urlsplit(found[name]).query, keep_blank_values=True)
                is_there = 0 <= at < len(some)
                assert query == ({"q": [q], "start": [str(at)]} if is_there else {})


def test_arrivals_that_are_not_known_are_not_shown():
    rows, labels = rows_of(3, 3)
    report = progressive_validate(OnlineClassifier(), rows, labels).report()
    found = figures.classes_of(stand_in(report, [0.0, 60.0]), "", 0)["shown"]
    assert [each["arrival"] for each in found] == [
        "1970-01-01 00:00, row 1", "1970-01-01 00:01, row 2", "-",
    ]  # fmt: skip


def test_the_first_event_makes_figures_that_were_of_no_row_old(desk):
    for page in ("classes", "error"):
        assert 'class="empty"' in desk.get(f"/models/mail/{page}").text
    post(desk, "learn", row="win cash", answer="spam")
    assert "1 class, 1 row." in desk.get("/models/mail/classes").text
    assert "<dt>rows</dt><dd>1</dd>" in desk.get("/models/mail/error").text


def test_figures_of_many_rows_are_said_to_be_made_until_they_are(desk, monkeypatch):
    going, over, really = threading.Event(), threading.Event(), validation.validated

    def slow(model):
        going.set()
        assert over.wait(20)
        return really(model)

    post(desk, "learn", row="win cash", answer="spam")
    monkeypatch.setattr(validation, "validated", slow)
    monkeypatch.setattr(validation, "FEW_ROWS", 0)
    for _ in range(3):
        page = desk.get("/models/mail/error").text
        assert "are being computed" in page and "<dt>rows" not in page
        assert going.wait(20)
    over.set()
    while "are being computed" in (page := desk.get("/models/mail/error").text):
        pass
    assert "<dt>rows</dt><dd>1</dd>" in page


SHARES = {0.0: "0 %", 1e-9: "< 1 %", 1 / 200: "< 1 %", 0.0051: "1 %", 0.5: "50 %", 1: "100 %"}


@pytest.mark.parametrize(("value", "text"), SHARES.items())
def test_a_share_is_nothing_only_where_there_is_none(value, text):
    assert percent(value) == text.replace(" ", NO_BREAK)


def test_cells_are_shown_in_their_letters():
    row = {"tags": ["é", 1], "kind": "ß", "n": 1.5, "none": None}
    assert row_text(row) == 'tags: ["é", 1]\nkind: ß\nn: 1.5\nnone: null'

"""The client: which answers it asks for again, how long it waits, and what it says in the end."""

import io
import json
import urllib.error
from email.message import Message
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from kesler import KeslerError
from kesler.service import Client


class Answers:
    """What stands for a server: it gives these answers in turn, the last one for ever."""

    def __init__(self, *answers):
        self._answers, self.asked, self.waits = list(answers), [], []

    def urlopen(self, request, timeout):
        body = request.data and json.loads(request.data)
        self.asked.append((request.method, request.full_url, body))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        status, content = answer
        if status != 200:
            raise urllib.error.HTTPError("", status, "", Message(), io.BytesIO(content))
        return io.BytesIO(content)


@pytest.fixture
def server(monkeypatch):
    def server(*answers):
        found = Answers(*answers)
        monkeypatch.setattr("urllib.request.urlopen", found.urlopen)
        monkeypatch.setattr("time.sleep", found.waits.append)
        return found

    return server


MAIL = Client("http://desk.example/", "mail", token="secret")
DONE = (200, b'{"changed": true}')
BUSY = (503, b'{"error": "try later", "status": 503}')
OFTEN = (429, b'{"error": "wait 1 s", "status": 429}')


def test_numbers_and_arrays_of_numpy_are_those_of_python(server):
    desk = server(DONE)
    MAIL.learn(np.array([1.0, 2.5], dtype=np.float32), np.int64(3))
    MAIL.learn({"a": np.float32(0.5), "b": [np.bool_(True)]}, np.str_("spam"))
    sent = [(body["row"], body["answer"]) for _, _, body in desk.asked]
    assert sent == [([1.0, 2.5], 3), ({"a": 0.5, "b": [True]}, "spam")]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"a": float("nan")}, "not JSON compliant"),
        ({"a": np.float32("inf")}, "not JSON compliant"),
        ({"on": pd.Timestamp(2026, 1, 2)}, "is a Timestamp"),
        ({(1, 2): 3}, "keys must be"),
    ],
    ids=str,
)
def test_what_json_has_no_form_for_is_refused_in_a_sentence_and_not_sent(server, row, why):
    desk = server(DONE)
    with pytest.raises(KeslerError, match=f"JSON .*{why}.*: give .* None where a value is missing"):
        MAIL.predict(row)
    assert desk.asked == []


@pytest.mark.parametrize("lost", [BUSY, OFTEN, OSError("lost"), ValueError("lost")], ids=str)
def test_what_may_succeed_later_is_asked_for_again(server, lost):
    desk = server(lost, lost, DONE)
    assert MAIL.learn("win cash", "spam")["changed"]
    assert len(desk.asked) == 3 and desk.asked[0] == desk.asked[1] == desk.asked[2]
    method, url, body = desk.asked[0]
    assert (method, url) == ("POST", "http://desk.example/api/models/mail/learn")
    assert body["id"] and body["row"] == "win cash"  # by which it is learnt once
    desk = server(lost)
    words = json.loads(lost[1])["error"] if isinstance(lost, tuple) else "cannot be reached: lost"
    with pytest.raises(KeslerError, match=words):
        MAIL.figures()
    assert len(desk.asked) == 5
    assert sum(desk.waits) == pytest.approx(3)  # seconds, each wait twice the one before
    assert [b / a for a, b in pairwise(desk.waits)] == [2, 2, 2]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500, 507])
def test_what_is_refused_is_not_asked_for_again(server, status):
    desk = server((status, json.dumps({"error": f"no: {status}"}).encode()), DONE)
    with pytest.raises(KeslerError, match=f"^no: {status}$"):
        MAIL.undo("m1")
    assert len(desk.asked) == 1 and desk.waits == []


@pytest.mark.parametrize("content", [b"<html>Bad Gateway</html>", b"", b"[1]", b"{}", b"7"])
def test_answers_of_others_than_the_server_are_said_by_their_status(server, content):
    server((502, content))
    with pytest.raises(KeslerError, match=r"^the server answered with status 502$"):
        MAIL.figures()


def test_a_class_is_forgotten_by_its_label(server):
    desk = server(DONE)
    MAIL.forget(label="spam")
    MAIL.forget(subject="ann")
    assert [body for _, _, body in desk.asked] == [{"class": "spam"}, {"subject": "ann"}]


def test_the_history_is_read_page_by_page(server):
    pages = [{"events": [9, 8], "before": 8}, {"events": [7], "before": 7},
             {"events": [], "before": None}]  # fmt: skip
    desk = server(*((200, json.dumps(each).encode()) for each in pages))
    assert [*MAIL.history()] == [9, 8, 7]
    assert [url.rpartition("?")[2] for _, url, _ in desk.asked] == [
        "before=0", "before=8", "before=7",
    ]  # fmt: skip

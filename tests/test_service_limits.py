"""The limits of a service, from both sides: the last value that is accepted, the first refused."""

import asyncio
import json
import threading
from itertools import pairwise
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from desks import LINES, SECRETS, TOKENS, bearer, error_of, served
from kesler import KeslerError
from kesler.durable.items import Item
from kesler.service import Settings, Tokens, validation, views
from kesler.service.bodies import UndoRequest, decoded
from kesler.service.gate import COOKIE, Gate
from kesler.service.limits import SLOWEST, Rate, lines_of, pieces_of
from kesler.service.refusals import Refusal
from kesler.service.uploads import Record, _bounded
from kesler.service.validation import Validated

PATH = "/api/models/mail"

# ---- queries ------------------------------------------------------------------------------------

QUERIES = [
    ("classes", "limit", 1, 1000),
    ("classes", "start", 0, 1 << 31),
    ("items", "limit", 1, 1000),
    ("items", "start", 0, 1 << 31),
    ("history", "limit", 1, 100),
    ("history", "before", 0, 1 << 62),
]


@pytest.mark.parametrize(("what", "name", "least", "most"), QUERIES)
def test_numbers_in_a_query_have_a_least_and_a_most(taught, what, name, least, most):
    for value in (least, most):
        assert taught.get(f"{PATH}/{what}?{name}={value}").status_code == 200
    for value in (least - 1, most + 1, "x", "1.5", ""):
        sentence = error_of(taught.get(f"{PATH}/{what}?{name}={value}"), 422)
        assert sentence == f"{name} must be an integer from {least} to {most}"


def test_a_search_for_items_has_200_characters(desk):
    lines = "".join(json.dumps({"text": "x" * n}) + "\n" for n in (199, 200, 201))
    assert desk.post(f"{PATH}/import", content=lines).json()["added"] == 3

    def found(q):
        answer = desk.get(f"{PATH}/items", params={"q": q}).json()
        page = desk.get("/models/mail", params={"q": q}).text
        assert page.count("data-id=") == len(answer["items"])
        return [len(each["row"]) for each in answer["items"]]

    assert found("x" * 200) == found("x" * 200 + "y") == [200, 201]
    assert found("x" * 199 + "y") == []


# ---- bodies -------------------------------------------------------------------------------------

LONG = "x" * 200
USABLE = [
    ("predict", {"row": {"a": {"b": {"c": 1}}}}),
    ("predict", {"row": "x", "coverage": 0.8}),
    ("predict", {"row": "x", "coverage": 0.999}),
    ("predict", {"row": "x", "explain": 0, "probabilities": 0, "min_confidence": 0}),
    ("predict", {"row": "x", "explain": 1000, "probabilities": 1000, "min_confidence": 1}),
    ("predict", {"row": "x", "separator": LONG}),
    ("predict", {"rows": []}),
    ("learn", {"row": "x", "answer": LONG, "id": LONG, "subject": LONG}),
    ("learn", {"row": "x", "answer": "a", "id": "i", "subject": "s"}),
    ("learn", {"row": "x", "answer": 2**53 - 1}),
    ("learn", {"row": "x", "answer": 1 - 2**53}),
]
UNUSABLE = [
    ("predict", {}, "the request needs row"),
    ("predict", {"row": {"a": {"b": {"c": {}}}}}, "at most 3 levels"),
    ("predict", {"row": "x", "coverage": 0.79}, "coverage is the share"),
    ("predict", {"row": "x", "coverage": 1}, "coverage is the share"),
    ("predict", {"row": "x", "explain": 1001}, "explain is the number"),
    ("predict", {"row": "x", "probabilities": 1001}, "probabilities is the number"),
    ("predict", {"row": "x", "probabilities": -1}, "probabilities is the number"),
    ("predict", {"row": "x", "separator": LONG + "x"}, "separator is of classes"),
    ("predict", {"row": "x", "min_confidence": 1.001}, "min_confidence is the least"),
    ("predict", {"row": "x", "min_confidence": -0.001}, "min_confidence is the least"),
    ("learn", {"row": "x", "answer": LONG + "x"}, "the answer must have 1 to 200 characters"),
    ("learn", {"row": "x", "answer": "a", "id": LONG + "x"}, "id must have 1 to 200"),
    ("learn", {"row": "x", "answer": "a", "subject": ""}, "subject must have 1 to 200"),
    ("learn", {"row": "x", "answer": 2**53}, "more than 53 bits"),
    ("learn", {"row": "x", "answer": -(2**53)}, "more than 53 bits"),
]


@pytest.mark.parametrize(("what", "body"), USABLE, ids=lambda each: str(each)[:60])
def test_fields_are_accepted_up_to_their_limits(desk, what, body):
    answer = desk.post(f"{PATH}/{what}", json=body)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(("what", "body", "words"), UNUSABLE, ids=lambda each: str(each)[:60])
def test_fields_are_refused_beyond_their_limits_before_a_model_knows_anything(
    desk, what, body, words
):
    assert words in error_of(desk.post(f"{PATH}/{what}", json=body), 422)
    assert desk.get(PATH).json()["rows"] == 0


def test_the_document_has_the_limits_of_ids(desk):
    schemas = desk.get("/openapi.json").json()["components"]["schemas"]
    id = schemas["RelabelRequest"]["properties"]["id"]
    assert (id["minLength"], id["maxLength"]) == (1, 200)


def test_the_numbers_of_an_answer_are_at_most_a_million(desk):
    def asked(n_rows, probabilities, explain):
        body = {"rows": ["x"] * n_rows, "probabilities": probabilities, "explain": explain}
        return desk.post(f"{PATH}/predict", json=body)

    assert len(asked(1000, 600, 400).json()["answers"]) == 1000
    for n_rows, probabilities, explain in (9901, 100, 1), (9901, 1, 100):  # 1,000,001 numbers
        assert "fewer rows" in error_of(asked(n_rows, probabilities, explain), 413)


def test_bodies_may_begin_with_a_byte_order_mark(desk):
    body = b'\xef\xbb\xbf{"row": "win cash", "answer": "spam"}'
    assert desk.post(f"{PATH}/learn", content=body).status_code == 200
    said = desk.post(f"{PATH}/learn", content=body, headers=LINES)
    assert json.loads(said.text)["changed"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"row": NaN}', b'{"id": 17, "x', b'{"unknown": 1', b'{"id": 1} {}', b"\xff"],
)
def test_what_is_no_json_is_refused_by_that_whatever_else_is_wrong(content):
    try:
        msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError) as error:
        words = str(error)
    with pytest.raises(Refusal) as found:
        decoded(content, UndoRequest)
    assert found.value.status == 400
    assert str(found.value) == f"the body is no JSON in UTF-8 ({words})"


# ---- how much, and how slowly -------------------------------------------------------------------


class Sent:
    """A request whose body comes in pieces, each after some seconds."""

    def __init__(self, pieces, now=None, **headers):
        self.headers, self._pieces, self._now = headers, pieces, now

    async def stream(self):
        for seconds, piece in self._pieces:
            if self._now is not None:
                self._now[0] += seconds
            yield piece


def read(pieces):
    """Return what an asynchronous iterator yields, and the status by which it ends."""

    async def all_of_them():
        found = []
        try:
            async for each in pieces:
                found.append(each)
        except Refusal as refusal:
            return found, refusal.status
        return found, None

    return asyncio.run(all_of_them())


def test_a_body_may_have_as_many_bytes_as_the_limit():
    for sizes in ([10], [4, 6], [4, 6, 0]):
        pieces = [(0, b"x" * n) for n in sizes]
        for headers in ({}, {"content-length": "10"}, {"content-length": "no number"}):
            assert read(pieces_of(Sent(pieces, **headers), 10, 5)) == ([p for _, p in pieces], None)
            assert read(pieces_of(Sent(pieces, **headers), 9, 5))[1] == 413
    announced = {"content-length": "11"}
    assert read(pieces_of(Sent([(0, b"x")], **announced), 10, 5)) == ([], 413)  # nothing is read


def test_bodies_come_at_a_thousand_bytes_a_second_over_a_long_time(monkeypatch):
    now = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("kesler.service.limits.time", clock)
    rng, ended = np.random.default_rng(3), []
    for _ in range(40):
        n = int(rng.integers(1, 30))
        pieces = [(float(rng.integers(8)), b"x" * int(rng.integers(6000))) for _ in range(n)]
        waited, length, expected = 0.0, 0, []
        for seconds, piece in pieces:
            waited, length = waited + seconds, length + len(piece)
            if waited > 20 + length / 1000:
                break
            expected.append(piece)
        status = None if len(expected) == n else 408
        assert read(pieces_of(Sent(pieces, now), 10**9, 20)) == (expected, status)
        ended.append(status)
    assert SLOWEST == 1000 and 5 < ended.count(408) < 35
    just = [(21.0, b"x" * 1000), (0.5, b"x" * 500)]
    assert read(pieces_of(Sent(just, now), 10**9, 20)) == ([piece for _, piece in just], None)


@pytest.mark.parametrize("seed", range(5))
def test_lines_are_those_of_the_whole_body_however_it_is_cut(seed):
    rng = np.random.default_rng(seed)
    body = bytes(rng.choice([*b"ab\n"], 200, p=[0.4, 0.4, 0.2]).tolist())
    cuts = [0, *sorted(rng.integers(0, 201, 30)), 200]
    pieces = [(0, body[i:j]) for i, j in pairwise(cuts)]
    lines = body.split(b"\n")
    lines = lines if lines[-1] else lines[:-1]
    longest = max(map(len, lines))
    found, status = read(lines_of(Sent(pieces), 200, longest, 5))
    assert ([line for some in found for line in some], status) == (lines, None)
    assert read(lines_of(Sent(pieces), 200, longest - 1, 5))[1] == 413
    assert read(lines_of(Sent(pieces), 199, longest, 5))[1] == 413


def test_streams_have_as_many_rows_as_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("kesler.service.api.ROWS_AT_ONCE", 2)
    with served(tmp_path / "desk.db", max_rows=5) as client:
        client.post("/api/models", json={"name": "mail"})
        rows = [json.dumps({"row": "x", "answer": "y", "id": str(i)}) for i in range(6)]
        said = client.post(f"{PATH}/learn", content="\n".join(rows[:5]), headers=LINES)
        assert said.status_code == 200 and said.text.count('"changed": true') == 5
        said = client.post(f"{PATH}/predict", content="\n".join(rows), headers=LINES)
        assert "more than 5 rows" in json.loads(said.text.splitlines()[-1])["error"]
        bad = "\n".join([*rows[:3], "{", rows[4]])
        said = client.post(f"{PATH}/learn", content=bad, headers=LINES).text.splitlines()
        assert "line 4 is no JSON" in json.loads(said[3])["error"] and len(said) == 5


@pytest.mark.parametrize("what", ["learn", "predict", "undo", "label-studio/predict"])
def test_every_list_of_a_body_is_as_long_as_the_limit(tmp_path, what):
    row = {"row": "x", "answer": "y"}
    config = '<V><T name="s" value="$b"/><Choices name="c" toName="s"/></V>'
    bodies = {
        "learn": lambda n: {"rows": [row] * n},
        "predict": lambda n: {"rows": ["x"] * n},
        "undo": lambda n: {"ids": [str(i) for i in range(n)]},
        "label-studio/predict": lambda n: {"tasks": [{"data": {"b": "x"}}] * n,
                                           "label_config": config},
    }  # fmt: skip
    with served(tmp_path / "desk.db", max_rows=3) as client:
        client.post("/api/models", json={"name": "mail"})
        assert client.post(f"{PATH}/{what}", json=bodies[what](3)).status_code == 200
        assert "3 rows" in error_of(client.post(f"{PATH}/{what}", json=bodies[what](4)), 413)


# ---- how many at a time -------------------------------------------------------------------------


def test_the_last_ten_thousand_callers_are_remembered():
    rate = Rate(1.0, clock=lambda: 0.0)

    def is_refused(caller):
        try:
            rate.count(caller)
        except Refusal:
            return True
        return False

    for caller in map(str, range(10_000)):
        assert [is_refused(caller) for _ in range(2)] == [False, False]
    assert all(is_refused(str(i)) for i in (0, 4999, 5000, 9999))
    rate.count("one more")  # for whom the half that came first is forgotten
    assert [is_refused(str(i)) for i in (0, 4999, 5000, 9999)] == [False, False, True, True]


def test_a_thousand_sessions_are_open_at_a_time():
    gate = Gate(Settings(tokens=Tokens.of_text(TOKENS)))

    def request(**cookies):
        return SimpleNamespace(method="GET", headers={}, cookies=cookies, client=None)

    keys = [gate.log_in(request(), SECRETS["read"]) for _ in range(1001)]
    known = [gate.known(request(**{COOKIE: key})) is not None for key in keys]
    assert known == [False] + [True] * 1000


def test_the_first_thousand_items_are_ordered_by_doubt(monkeypatch):
    listed = [Item(f"i{i}", f"text {i}") for i in range(1005)]
    items = SimpleNamespace(page=lambda name, q, start, n: listed[start : start + n])
    served = SimpleNamespace(name="mail", items=items, estimator=SimpleNamespace(n_known_=0))
    monkeypatch.setattr(views, "_doubt", lambda estimator, row: int(row.split()[1]))

    def shown(start):
        return [each.id for each in views.items_of(served, "", "useful", start)]

    assert shown(0) == [f"i{i}" for i in range(999, 989, -1)]
    assert shown(990) == [f"i{i}" for i in range(9, -1, -1)]
    assert shown(1000) == [f"i{i}" for i in range(1000, 1005)]


@pytest.mark.parametrize(("n_rows", "is_awaited"), [(10_000, True), (10_001, False)])
def test_figures_of_ten_thousand_rows_are_waited_for(monkeypatch, n_rows, is_awaited):
    made, may_end = Validated(1, None, []), threading.Event()

    def validated(model):
        assert may_end.wait(60)
        return made

    if is_awaited:
        may_end.set()
    monkeypatch.setattr(validation, "validated", validated)
    event = SimpleNamespace(number=1)
    model = SimpleNamespace(name="mail", n_trials_=n_rows, history=lambda limit: [event])
    found = validation.Validation(model).last(patience=60)
    may_end.set()
    assert found == ((made, True) if is_awaited else (None, False))


class Long(str):
    """A text that says that it has more characters than it has."""

    def __new__(cls, n):
        text = super().__new__(cls, "x")
        text.n = n
        return text

    def __len__(self):
        return self.n


def test_the_texts_of_a_file_have_256_mib_of_characters():
    def kept(*lengths):
        record = Record("line 2 of the file", dict(zip("abc", map(Long, lengths), strict=False)))
        return [*_bounded(iter([Record("line 1", {"a": Long(9), "b": 7}), record]), 2)]

    assert len(kept(2**28 - 9)) == len(kept(2**27, 2**27 - 9)) == 2
    for lengths in ((2**28 - 8,), (2**27, 2**27 - 9, 1)):
        with pytest.raises(Refusal, match="more than 268435456 characters: send it") as found:
            kept(*lengths)
        assert found.value.status == 413


# ---- settings and tokens ------------------------------------------------------------------------


def test_settings_have_the_least_and_the_most_that_they_say():
    names = {*Settings.__dataclass_fields__} - {"tokens", "host"}
    assert Settings(**dict.fromkeys(names, 1)).history == 1
    assert Settings(port=0).port == 0 and Settings(port=65535).port == 65535
    for name in names:
        with pytest.raises(KeslerError, match=f"^{name}="):
            Settings(**{name: -1 if name == "port" else 0})
    with pytest.raises(KeslerError, match="port=65536 does not exist"):
        Settings(port=65536)
    with pytest.raises(KeslerError, match="patience=nan"):
        Settings(patience=float("nan"))


def test_secrets_have_16_characters_and_messages_their_line():
    tokens = Tokens.of_text(f"# of all\nread bob {'x' * 16}\n\nteach ann {'y' * 16} mail,desk\n")
    assert len(tokens) == 2 and tokens.find("y" * 16).models == {"mail", "desk"}
    for line in (f"read eve {'x' * 15}", f"read eve {'x' * 16} mail desk", "read eve"):
        with pytest.raises(KeslerError, match=r"^line 3 of tokens\.txt"):
            Tokens.of_text(f"\nread bob {'z' * 16}\n{line}\n", "tokens.txt")


def test_each_token_has_the_rate_and_guesses_have_their_own(tmp_path):
    now = [0.0]
    tokens = Tokens.of_text(TOKENS)
    with served(tmp_path / "desk.db", clock=lambda: now[0], rate=3, tokens=tokens) as client:

        def codes(n, headers):
            return [client.get("/api/models", headers=headers).status_code for _ in range(n)]

        assert codes(8, bearer("read")) == [200] * 6 + [429] * 2
        assert codes(7, {}) == [401] * 6 + [429]
        guess = {"authorization": "Bearer guess"}
        assert codes(11, guess) == [401] * 10 + [429]  # five a second, twice as many at once
        assert client.post("/login", data={"token": "guess"}).status_code == 429
        assert codes(7, bearer("teach")) == [200] * 6 + [429]
        now[0] += 0.2
        assert codes(2, guess) == [401, 429]
        now[0] += 0.2
        said = [client.post("/login", data={"token": "guess"}).status_code for _ in range(2)]
        assert said == [401, 429]
        assert SECRETS["read"] not in client.get("/login").text

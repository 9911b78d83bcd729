"""The threads of a service: what waits is written in its order, refused when it is too much, and
nothing stays open behind a model, a server or a client that has left."""

import asyncio
import gc
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import kesler.durable
from desks import LINES, error_of, post, served
from kesler import KeslerError
from kesler.durable import Journal
from kesler.durable.items import Item
from kesler.service import ModelRegistry
from kesler.service.answers import Wanted
from kesler.service.api import Lines as LinesOfAnswers
from kesler.service.lock import ServerLock
from kesler.service.refusals import Refusal
from kesler.service.rows_in import Taught as Row
from kesler.service.server import warm_up

SECONDS = 20  # after which a test fails


@pytest.fixture
def registry(tmp_path):
    registry = ModelRegistry(tmp_path / "desk.db")
    yield registry
    registry.close()


class Busy:
    """A block in which the thread that writes is busy, so that changes wait together."""

    def __init__(self, served):
        self._served, self._going, self._over = served, threading.Event(), threading.Event()

    def __enter__(self):
        self.change = self._served.change(lambda: (self._going.set(), self._over.wait(SECONDS)))
        assert self._going.wait(SECONDS)
        return self

    def __exit__(self, *error):
        self._over.set()


def resources():
    """Return the threads of this process, and how many files it has open."""
    gc.collect()  # what other tests have left
    return {*threading.enumerate()}, len(os.listdir("/proc/self/fd"))


def threads_of(name):
    return {each for each in threading.enumerate() if each.name == name}


# ---- the thread that writes ---------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [1, 2, 3, 256])
def test_what_waits_is_done_in_its_order(registry, monkeypatch, at_once):
    monkeypatch.setattr("kesler.service.served.MOST_AT_ONCE", at_once)
    served = registry.create("mail")
    plan, futures = "llclclllccl", []
    with Busy(served):
        for i, each in enumerate(plan):
            if each == "l":
                futures.append(served.learn([Row(f"word{i}", "a", f"m{i}")], "ann"))
            else:
                futures.append(served.change(lambda: served.figures()["rows"]))
        assert served.depth == len(plan) and not any(each.done() for each in futures)
    found = [each.result(SECONDS) for each in futures]
    for i, each in enumerate(plan):
        if each == "l":
            assert found[i] == [{"id": f"m{i}", "changed": True, "n_rows": 1}]
        else:
            assert found[i] == plan[:i].count("l")
    assert served.depth == 0


@pytest.mark.parametrize("n", [1, 255, 256, 257, 513])
def test_256_answers_are_written_in_one_transaction_at_most(registry, monkeypatch, n):
    served, sizes, really = registry.create("mail"), [], kesler.durable.Model.learn_many

    def learn_many(model, rows, by):
        sizes.append(len(rows))
        return really(model, rows, by=by)

    monkeypatch.setattr("kesler.durable.Model.learn_many", learn_many)
    with Busy(served):
        waiting = [served.learn([Row("word", "a", f"m{i}")], "ann") for i in range(n)]
    assert [each.result(SECONDS)[0]["id"] for each in waiting] == [f"m{i}" for i in range(n)]
    assert sizes == [min(256, n - start) for start in range(0, n, 256)]


@pytest.mark.parametrize("at_once", [1, 256])
def test_a_model_that_is_closed_writes_what_waits_and_refuses_the_rest(
    registry, monkeypatch, at_once
):
    monkeypatch.setattr("kesler.service.served.MOST_AT_ONCE", at_once)
    of_others = threads_of("kesler-mail")  # that earlier tests have left
    served = registry.create("mail")
    with Busy(served):
        before = [served.learn([Row(f"word{i}", "a")], "ann") for i in range(3)]
        closing = threading.Thread(target=served.close)
        closing.start()
        while served.depth < 4:
            closing.join(0.001)
        late = [served.change(lambda: 1), served.learn([Row("late", "a")], "ann")]
    closing.join(SECONDS)
    assert not closing.is_alive() and threads_of("kesler-mail") <= of_others
    assert [each.result(SECONDS)[0]["changed"] for each in before] == [True] * 3
    for each in late:
        with pytest.raises(Refusal, match="mail was closed or deleted meanwhile") as found:
            each.result(SECONDS)
        assert found.value.status == 404
    with pytest.raises(Refusal, match="mail was closed or deleted meanwhile"):
        served.learn([Row("later", "a")], "ann")


def test_a_change_that_comes_while_a_model_is_closed_is_refused(registry, monkeypatch):
    served = registry.create("mail")
    put = served._queue.put_nowait

    def late(job):
        served.close()
        put(job)

    monkeypatch.setattr(served._queue, "put_nowait", late)
    with pytest.raises(Refusal, match="mail was closed or deleted meanwhile"):
        served.change(lambda: 1)


def test_ten_thousand_changes_can_wait_and_more_are_refused(registry):
    served = registry.create("mail")
    with Busy(served):
        waiting = [served.change(lambda i=i: i) for i in range(10_000)]
        with pytest.raises(Refusal, match=r"^10000 changes of mail wait already: try") as found:
            served.change(lambda: -1)
        assert (found.value.status, found.value.wait) == (503, 1)
    assert [each.result(SECONDS) for each in waiting] == [*range(10_000)]


def broken(*given, **named):
    raise RuntimeError("secret")


def test_a_failure_is_said_without_its_words_and_logged_and_the_next_change_is_made(
    taught, monkeypatch, caplog
):
    path = "/api/models/mail"
    with monkeypatch.context() as failing:
        for name in ("learn_many", "undo", "undo_many", "find"):
            failing.setattr(f"kesler.durable.Model.{name}", broken)
        for what, body in (
            ("learn", {"row": "x", "answer": "y"}),
            ("learn", {"rows": [{"row": "x", "answer": "y"}]}),
            ("undo", {"id": "m0"}),
        ):
            sentence = error_of(taught.post(f"{path}/{what}", json=body), 500)
            assert sentence == "the server failed, and its log says why: nothing was changed"
        assert caplog.text.count("RuntimeError: secret") == 3
        assert caplog.text.count("mail: rows could not be learnt") == 2
        assert caplog.text.count("a change failed") == 1
    caplog.clear()
    assert post(taught, "learn", row="x", answer="y")["changed"]
    post(taught, "undo", 404, id="nobody")
    post(taught, "learn", 409, row="x", answer="y", id="m0")
    taught.get("/models/none")
    assert caplog.text == ""


def test_what_fails_in_a_request_is_said_and_logged(taught, monkeypatch, caplog):
    monkeypatch.setattr("kesler.service.served.Served.figures", broken)
    sentence = error_of(taught.get("/api/models/mail"), 500)
    assert sentence == "the server failed, and its log says why: nothing was changed"
    page = taught.get("/models/mail")
    assert page.status_code == 500 and "secret" not in page.text
    assert caplog.text.count("'/api/models/mail' failed") == 1
    assert caplog.text.count("RuntimeError: secret") == 2


def test_the_database_is_closed_once_no_thread_uses_it(tmp_path, monkeypatch):
    closed, are_early, close = threading.Event(), [], ModelRegistry.close

    class Pool(ThreadPoolExecutor):
        def shutdown(self, **given):
            self.submit(lambda: are_early.append(closed.wait(0.1)))
            super().shutdown(**given)

    monkeypatch.setattr("kesler.service.web.ThreadPoolExecutor", Pool)
    monkeypatch.setattr(ModelRegistry, "close", lambda self: (close(self), closed.set()))
    with served(tmp_path / "desk.db") as client:
        assert client.get("/health").is_success
    assert closed.is_set() and are_early == [False]


# ---- answers at once ----------------------------------------------------------------------------


def test_an_answer_is_given_at_once_only_where_it_takes_a_moment(registry):
    served, pool = registry.create("mail"), ThreadPoolExecutor(1)
    kinds = [Wanted(coverage=c, probabilities=n) for c in (None, 0.9) for n in (0, 2)]
    for each in kinds:  # of a model that knows nothing, no answer runs a loop
        assert served.answer_at_once("cash", each) is None
        assert served.answer("cash", each) == {"label": None, "confidence": None}
        assert served.answer_at_once("cash", each) is None
    rows = [Row("win cash", "spam"), Row("team lunch", "work")]
    served.learn(rows, "ann").result(SECONDS)
    for i, each in enumerate(kinds):
        assert [served.answer_at_once("cash", other) for other in kinds[i:]] == [None] * (4 - i)
        said = served.answer("cash", each)
        assert served.answer_at_once("cash", each) == said and said["label"] == "spam"
    assert served.answer_at_once("cash", Wanted(probabilities=1)) is not None  # by the same loops
    assert served.answer_at_once(["cash"], Wanted()) is None  # a row of another type
    for slow in (Wanted(explain=1), Wanted(separator="/")):
        assert served.answer_at_once("cash", slow) is None
    assert served.answer_at_once("x" * 2000, Wanted()) is not None
    assert served.answer_at_once("x" * 2001, Wanted()) is None
    lock = served.estimator._fitted().lock
    with pool:
        for is_busy in (True, False, True):
            change = lock.acquire if is_busy else lock.release
            pool.submit(change).result(SECONDS)
            assert (served.answer_at_once("cash", Wanted()) is None) == is_busy
        pool.submit(lock.release).result(SECONDS)


@pytest.mark.parametrize("fails", [False, True])
def test_loops_that_cannot_be_loaded_ahead_are_logged(monkeypatch, caplog, fails):
    asked = []
    monkeypatch.setattr("kesler.service.answers.answer_of", lambda *given: asked.append(given))
    if fails:
        monkeypatch.setattr("kesler.OnlineClassifier.learn_one", broken)
    warm_up().join(SECONDS)
    assert len(asked) == (not fails)
    for words in ("the loops could not be loaded ahead: the first answer", "RuntimeError: secret"):
        assert caplog.text.count(words) == fails


# ---- streams ------------------------------------------------------------------------------------


def test_a_stream_that_fails_ends_with_a_sentence(taught, monkeypatch, caplog):
    path, line = "/api/models/mail/predict", json.dumps({"row": "cash"})
    bad = [line, "{", "", json.dumps({}), json.dumps({"row": [1, 2]}), json.dumps({"text": "x"})]
    said = taught.post(path, content="\n".join([*bad, line]), headers=LINES)
    assert said.headers["content-type"] == "application/x-ndjson"
    outcomes = [json.loads(each) for each in said.text.splitlines()]
    assert [each.get("status", 200) for each in outcomes] == [200, 400, 400, 422, 422, 422, 200]
    assert outcomes[0] == outcomes[-1] and caplog.text == ""
    monkeypatch.setattr("kesler.service.served.Served.answer", broken)
    said = taught.post(path, content=line, headers=LINES)
    assert said.status_code == 200 and json.loads(said.text) == {
        "error": "the server failed, and its log says why: the rows after the last answer were "
        "not read",
        "status": 500,
    }
    assert "a stream failed" in caplog.text and "RuntimeError: secret" in caplog.text


def test_a_stream_ends_when_its_client_has_left():
    ended = []

    async def values():
        try:
            yield [1]
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def send(message):
        if message["type"] == "http.response.body":
            raise OSError("the client has left")

    async def answer():
        with pytest.raises(OSError, match="has left"):
            await LinesOfAnswers(values())({}, None, send)
        for _ in range(5):
            await asyncio.sleep(0)
        assert ended == [True]

    asyncio.run(answer())


# ---- what is opened and closed ------------------------------------------------------------------


def test_a_service_that_ends_leaves_no_thread_and_no_file_open(tmp_path):
    with served(tmp_path / "first.db") as client:  # what is imported stays
        client.post("/api/models", json={"name": "mail"})
    before = resources()
    with served(tmp_path / "desk.db") as client:
        for name in ("mail", "other"):
            client.post("/api/models", json={"name": name})
        post(client, "learn", row="win cash", answer="spam")
        assert post(client, "predict", row="cash", explain=1)["label"] == "spam"
        assert len(resources()[0] - before[0]) >= 3 and resources()[1] > before[1]
        assert client.delete("/api/models/other").is_success and not threads_of("kesler-other")
    after = resources()
    assert after[0] <= before[0] and after[1] <= before[1]


def test_the_lock_of_a_database_is_let_go_by_all_who_asked(tmp_path):
    path, left = str(tmp_path / "desk.db"), tmp_path / "desk.db-server"
    mask = os.umask(0o022)
    try:
        before = resources()[1]
        lock = ServerLock(path)
        assert left.stat().st_mode & 0o777 == 0o644  # as any new file
        for _ in range(3):
            with pytest.raises(KeslerError, match=f"process {os.getpid()} serves this database"):
                ServerLock(path)
        lock.release()
        lock.release()
        assert resources()[1] <= before and not left.exists()
    finally:
        os.umask(mask)


def test_a_link_in_place_of_the_lock_has_no_other_file_written(tmp_path):
    other = tmp_path / "other"
    other.write_text("kept")
    (tmp_path / "desk.db-server").symlink_to(other)
    with pytest.raises(KeslerError, match="cannot be written"):
        ServerLock(str(tmp_path / "desk.db"))
    assert other.read_text() == "kept"


def test_a_model_is_created_once_by_two_at_the_same_time(registry, monkeypatch):
    inside, over, really = threading.Semaphore(0), threading.Event(), registry.journal.open
    of_others = threads_of("kesler-mail")

    def slow(*given):
        inside.release()
        assert over.wait(SECONDS)
        return really(*given)

    monkeypatch.setattr(registry.journal, "open", slow)
    outcomes = []

    def create():
        try:
            outcomes.append(registry.create("mail"))
        except Refusal as refusal:
            outcomes.append(refusal.status)

    threads = [threading.Thread(target=create) for _ in range(2)]
    for each in threads:
        each.start()
    assert inside.acquire(timeout=SECONDS)
    assert not inside.acquire(timeout=0.1)  # the other waits before it
    over.set()
    for each in threads:
        each.join(SECONDS)
    assert len(threads_of("kesler-mail") - of_others) == 1
    assert sorted(map(str, outcomes))[0] == "409" and registry.find("mail") in outcomes


def test_a_model_is_created_anew_once_the_one_of_its_name_is_deleted(registry, monkeypatch):
    going, over, really = threading.Event(), threading.Event(), registry.journal.delete

    def slow(name):
        going.set()
        assert over.wait(SECONDS)
        really(name)

    registry.create("mail").learn([Row("win", "spam")], "ann").result(SECONDS)
    monkeypatch.setattr(registry.journal, "delete", slow)
    deleting = threading.Thread(target=registry.delete, args=("mail",))
    creating = threading.Thread(target=registry.create, args=("mail",))
    deleting.start()
    assert going.wait(SECONDS)
    creating.start()
    creating.join(0.1)
    over.set()
    for each in (deleting, creating):
        each.join(SECONDS)
    served = registry.find("mail")
    assert served.figures()["rows"] == 0 and registry.journal.models() == ["mail"]
    assert served.learn([Row("win", "spam")], "ann").result(SECONDS)[0]["changed"]


def test_what_a_deleted_model_had_is_gone(registry):
    served = registry.create("mail")
    served.items.add("mail", [Item("i1", "waits")])
    served.learn([Row("win", "spam", "m1")], "ann").result(SECONDS)
    registry.delete("mail")
    assert registry.names() == registry.journal.models() == []
    with pytest.raises(Refusal, match="no model 'mail'"):
        registry.delete("mail")
    served = registry.create("mail")
    assert served.figures() == {
        "name": "mail", "rows": 0, "mistakes": 0, "n_classes": 0, "classes": [],
        "waiting": 0, "n_writes_waiting": 0,
    }  # fmt: skip
    assert served.history(9) == ([], None)


def test_places_of_rows_that_another_program_forgot_are_removed_at_the_start(tmp_path):
    registry = ModelRegistry(tmp_path / "desk.db")
    served = registry.create("mail")
    served.items.add("mail", [Item(f"m{i}", f"text {i}") for i in range(3)])
    for i in range(2):
        served.learn([Row(f"text {i}", "a", f"m{i}")], "ann").result(SECONDS)
    assert served.items.answered("mail") == ["m0", "m1"]
    registry.close()
    with Journal(tmp_path / "desk.db") as journal:
        journal.open("mail").forget("m0")
    registry = ModelRegistry(tmp_path / "desk.db")
    items = registry.find("mail").items
    assert items.answered("mail") == ["m1"] and [*items.descriptions("mail")] == ["m2"]
    registry.close()


def test_a_row_that_only_waits_is_forgotten_and_one_that_was_taken_back_is_taught_again(desk):
    lines = "".join(json.dumps({"text": f"text {i}", "id": f"i{i}"}) + "\n" for i in range(2))
    desk.post("/api/models/mail/import", content=lines)
    assert post(desk, "forget", id="i0") == {"id": "i0", "changed": False, "n_rows": 0}
    assert [each["id"] for each in desk.get("/api/models/mail/items").json()["items"]] == ["i1"]
    for answer in ("a", "a", "b"):
        said = post(desk, "learn", row="text 1", answer=answer, id="i1")
        assert said == {"id": "i1", "changed": True, "n_rows": 1}
        post(desk, "undo", id="i1")

"""The endpoints for programs: JSON and lines of JSON."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kesler.service import rows_in
from kesler.service.answers import Wanted, jsonable
from kesler.service.filing import filed, import_report
from kesler.service.limits import body_of, lines_of
from kesler.service.refusals import FAILED, FORBIDDEN, NOT_VALID, TOO_LARGE, Refusal
from kesler.service.registry import DEFAULT, KINDS, ModelRegistry
from kesler.service.rows_in import Taught
from kesler.service.served import Served
from kesler.service.settings import Settings
from kesler.service.tokens import Token

_log = logging.getLogger("kesler.service")
_FAILED = "the server failed, and its log says why: the rows after the last answer were not read"
LINES = "application/x-ndjson"
ROWS_AT_ONCE = 500
MOST_NUMBERS = 1_000_000  # probabilities and features of the answers to a request
MOST_PENDING = 32 << 20  # bytes of a stream that its client has not read yet


@dataclass(frozen=True, slots=True)
class Call:
    """A request that was admitted, with what it needs."""

    request: Request
    who: Token
    registry: ModelRegistry
    settings: Settings
    pool: Executor

    @property
    def served(self) -> Served:
        """The model that the path names."""
        return self.registry.find(self.request.path_params["model"])

    async def body(self) -> dict[str, Any]:
        """Return the JSON object in the body."""
        data = await body_of(self.request, self.settings.max_body, self.settings.patience)
        return rows_in.parsed(data)

    async def thread(self, work: Callable[..., Any], *given: Any) -> Any:
        """Run a function in another thread."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, work, *given)

    def query(self, **allowed: str) -> dict[str, str]:
        """Return the query with defaults; raise if it has other names."""
        given = dict(self.request.query_params)
        rows_in.require_fields(given, allowed, "the query")
        return allowed | given

    @property
    def has_lines(self) -> bool:
        """Whether the body is lines of JSON."""
        return self.request.headers.get("content-type", "").partition(";")[0].strip() == LINES


Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint: how it is called, by whom, and what it does."""

    name: str
    method: str
    path: str
    role: str
    summary: str
    handler: Handler
    returns: str
    fields: Mapping[str, str] = field(default_factory=dict)
    takes_lines: bool = False


class Json(Response):
    """A response of JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the JSON of a value."""
        return _encoded(content).encode("utf-8", "backslashreplace")


_encoded = json.JSONEncoder(ensure_ascii=False).encode


class Lines(Response):
    """Lines of JSON that are sent as they are made.

    The body of the request is read meanwhile, also if the client reads nothing before it has sent
    all of it, up to `MOST_PENDING` bytes of answers.
    """

    media_type = LINES

    def __init__(self, lines: AsyncIterator[list[Any]]) -> None:
        super().__init__()
        self._lines, self._n_pending, self._has_room = lines, 0, asyncio.Event()
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines."""
        ready: asyncio.Queue[bytes] = asyncio.Queue()
        maker = asyncio.create_task(self._make(ready))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            while piece := await ready.get():
                self._n_pending -= len(piece)
                self._has_room.set()
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            maker.cancel()

    async def _make(self, ready: asyncio.Queue[bytes]) -> None:
        try:
            async for values in self._lines:
                texts = [_encoded(value) + "\n" for value in values]
                piece = "".join(texts).encode("utf-8", "backslashreplace")
                ready.put_nowait(piece)
                self._n_pending += len(piece)
                while self._n_pending > MOST_PENDING:
                    self._has_room.clear()
                    await self._has_room.wait()
        except ClientDisconnect:
            pass
        except Exception as error:
            refusal = error if isinstance(error, Refusal) else Refusal(FAILED, _FAILED)
            if refusal is not error:
                _log.error("a stream failed", exc_info=error)
            ready.put_nowait((_encoded(refused(refusal)) + "\n").encode())
        finally:
            ready.put_nowait(b"")


def refused(refusal: Refusal) -> dict[str, Any]:
    """Return a refusal as JSON can hold it."""
    return {"error": str(refusal), "status": refusal.status}


async def done(future: Future[Any]) -> Any:
    """Wait for what another thread does."""
    return await asyncio.wrap_future(future)


# ---- models -------------------------------------------------------------------------------------


async def models(call: Call) -> Response:
    """List the models that the token may use."""
    names = [name for name in call.registry.names() if call.who.may_use(name)]
    return Json({"models": [call.registry.find(name).figures() for name in names]})


async def create(call: Call) -> Response:
    """Create a model."""
    body = await call.body()
    rows_in.require_fields(body, {"name", "estimator", "settings"}, "the request")
    name = rows_in.model_name(body.get("name"))
    require_scope(call.who, name)
    estimator, settings = body.get("estimator", DEFAULT), body.get("settings", {})
    served = await call.thread(call.registry.create, name, estimator, settings)
    return Json(served.figures(), status_code=201)


def require_scope(who: Token, name: str) -> None:
    """Raise unless a token is for a model."""
    if not who.may_use(name):
        raise Refusal(FORBIDDEN, f"the token of {who.name} is for other models")


async def figures(call: Call) -> Response:
    """Return the figures of a model."""
    return Json(await call.thread(call.served.figures))


async def delete(call: Call) -> Response:
    """Delete a model."""
    name = call.served.name
    await call.thread(call.registry.delete, name)
    return Json({"deleted": name})


# ---- predictions --------------------------------------------------------------------------------


async def predict(call: Call) -> Response:
    """Predict one row, several, or a stream."""
    served = call.served
    if call.has_lines:
        return Lines(_predictions(call, served))
    body = await call.body()
    wanted = Wanted.of(body)
    if "rows" not in body:
        row = rows_in.row(body.get("row"))
        answer = served.answer_at_once(row, wanted)
        return Json(answer or await call.thread(served.answer, row, wanted))
    rows = [rows_in.row(each) for each in _listed(call, body)]
    if len(rows) * (wanted.probabilities + wanted.explain) > MOST_NUMBERS:
        raise Refusal(
            TOO_LARGE, f"the answer would have more than {MOST_NUMBERS} numbers: send fewer rows"
        )
    return Json({"answers": await call.thread(_answers, served, rows, wanted)})


def _listed(call: Call, body: Mapping[str, Any]) -> list[Any]:
    """Return the rows of a body."""
    rows = body["rows"]
    if not isinstance(rows, list):
        raise Refusal(NOT_VALID, "rows must be a list")
    if len(rows) > call.settings.max_rows:
        raise Refusal(TOO_LARGE, f"there are more than {call.settings.max_rows} rows")
    return rows


def _answers(served: Served, rows: list[Any], wanted: Wanted) -> list[dict[str, Any]]:
    return [served.answer(row, wanted) for row in rows]


async def _predictions(call: Call, served: Served) -> AsyncIterator[list[Any]]:
    async for _, bodies in _parsed_lines(call):
        yield await call.thread(_said_of_lines, served, bodies)


def _said_of_lines(served: Served, bodies: list[dict[str, Any] | Refusal]) -> list[Any]:
    return [_said_of_line(served, body) for body in bodies]


def _said_of_line(served: Served, body: dict[str, Any] | Refusal) -> dict[str, Any]:
    try:
        if isinstance(body, Refusal):
            raise body
        return served.answer(rows_in.row(body.get("row")), Wanted.of(body))
    except Refusal as refusal:
        return refused(refusal)
    except ValueError as error:
        return {"error": str(error), "status": NOT_VALID}


async def _parsed_lines(call: Call) -> AsyncIterator[tuple[int, list[dict[str, Any] | Refusal]]]:
    """Yield the bodies on lines, with the number of the first of each group."""
    limits, n = call.settings, 0
    async for lines in lines_of(call.request, limits.max_import, limits.max_body, limits.patience):
        for start in range(0, len(lines), ROWS_AT_ONCE):
            group = lines[start : start + ROWS_AT_ONCE]
            if n + len(group) > limits.max_rows:
                raise Refusal(TOO_LARGE, f"the stream has more than {limits.max_rows} rows")
            yield n + 1, [_parsed(line, n + i) for i, line in enumerate(group, 1)]
            n += len(group)


def _parsed(line: bytes, number: int) -> dict[str, Any] | Refusal:
    try:
        return rows_in.parsed(line, f"line {number}")
    except Refusal as refusal:
        return refusal


# ---- changes ------------------------------------------------------------------------------------


async def learn(call: Call) -> Response:
    """Learn one row, several, or a stream."""
    served = call.served
    if call.has_lines:
        return Lines(_lessons(call, served))
    body = await call.body()
    if "rows" in body:
        rows_in.require_fields(body, {"rows"}, "the request")
        rows = [rows_in.taught(_object(each)) for each in _listed(call, body)]
        outcomes = await done(served.learn(rows, call.who.name))
        return Json({"outcomes": [_outcome(each) for each in outcomes]})
    (outcome,) = await done(served.learn([rows_in.taught(body)], call.who.name))
    if isinstance(outcome, Refusal):
        raise outcome
    return Json(outcome)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refusal(NOT_VALID, "each of rows must be an object with row and answer")
    return value


def _outcome(outcome: dict[str, Any] | Refusal) -> dict[str, Any]:
    return refused(outcome) if isinstance(outcome, Refusal) else outcome


async def _lessons(call: Call, served: Served) -> AsyncIterator[list[Any]]:
    async for _, bodies in _parsed_lines(call):
        read = [_taught_of(body) for body in bodies]
        rows = [each for each in read if isinstance(each, Taught)]
        learnt = iter(await done(served.learn(rows, call.who.name)) if rows else [])
        yield [_outcome(next(learnt) if isinstance(each, Taught) else each) for each in read]


def _taught_of(body: dict[str, Any] | Refusal) -> Taught | Refusal:
    try:
        return body if isinstance(body, Refusal) else rows_in.taught(body)
    except Refusal as refusal:
        return refusal


def _changing(
    names: tuple[str, ...], work: Callable[[Served, dict[str, Any], str], Any]
) -> Handler:
    """Return the handler of a change whose body has these fields."""

    async def handler(call: Call) -> Response:
        body = await call.body()
        rows_in.require_fields(body, names, "the request")
        read = {name: _READ[name](body.get(name)) for name in names}
        served, by = call.served, call.who.name
        return Json(await done(served.change(lambda: work(served, read, by))))

    return handler


_READ: dict[str, Callable[[Any], Any]] = {
    "id": lambda value: rows_in.named(value, "id"),
    "answer": rows_in.label,
    **{name: partial(rows_in.label, what=name) for name in ("old", "new", "source", "target")},
}

undo = _changing(("id",), lambda served, given, by: served.undo(given["id"], by))
relabel = _changing(
    ("id", "answer"), lambda served, given, by: served.relabel(given["id"], given["answer"], by)
)
rename = _changing(
    ("old", "new"), lambda served, given, by: served.rename(given["old"], given["new"], by)
)
merge = _changing(
    ("source", "target"),
    lambda served, given, by: served.merge(given["source"], given["target"], by),
)


async def forget(call: Call) -> Response:
    """Forget a row, a subject or a class for good."""
    body = await call.body()
    what, value = forgotten(body)
    served, by = call.served, call.who.name
    return Json(await done(served.change(lambda: served.forget(what, value, by))))


def forgotten(body: Mapping[str, Any]) -> tuple[str, Any]:
    """Return what is to be forgotten, of the fields id, subject and class."""
    rows_in.require_fields(body, {"id", "subject", "class"}, "the request")
    if len(body) != 1:
        raise Refusal(NOT_VALID, "name one thing to forget: an id, a subject or a class")
    ((what, value),) = body.items()
    return what, rows_in.label(value, what) if what == "class" else rows_in.named(value, what)


# ---- history and files --------------------------------------------------------------------------


async def history(call: Call) -> Response:
    """Return events, the last first."""
    most = call.settings.history
    query = call.query(limit=str(min(20, most)), before="0")
    limit = rows_in.whole(query["limit"], "limit", 1, most)
    before = rows_in.whole(query["before"], "before", 0, 1 << 62)
    found = await call.thread(call.served.history, limit, before or None)
    rest = found[-1].number if len(found) == limit else None
    return Json({"events": [event_of(each) for each in found], "before": rest})


def event_of(event: Any) -> dict[str, Any]:
    """Return an event as JSON can hold it."""
    return {
        name: jsonable(getattr(event, name))
        for name in (
            "number", "kind", "id", "time", "by", "taken_back", "target", "answer", "current",
            "row", "subject",
        )
    }  # fmt: skip


async def export_jsonl(call: Call) -> Response:
    """Return the rows with their answers as JSON lines."""
    return _file(_exported_lines(call.served), LINES, f"{call.served.name}.jsonl")


async def export_csv(call: Call) -> Response:
    """Return the texts with their answers as CSV."""
    return _file(_exported_csv(call.served), "text/csv; charset=utf-8", f"{call.served.name}.csv")


def _file(pieces: Iterator[str], media_type: str, name: str) -> Response:
    from starlette.responses import StreamingResponse

    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(
        (piece.encode("utf-8", "backslashreplace") for piece in pieces),
        media_type=media_type,
        headers=headers,
    )


def _exported_lines(served: Served) -> Iterator[str]:
    for each in served.model.remaining():
        row = jsonable(each.row)
        content = {"text": row} if isinstance(row, str) else {"row": row}
        values = content | {"label": jsonable(each.current), "id": each.id}
        if each.subject is not None:
            values["subject"] = each.subject
        yield json.dumps(values, ensure_ascii=False) + "\n"


def _exported_csv(served: Served) -> Iterator[str]:
    yield "text,label,id,subject\r\n"
    for each in served.model.remaining():
        row = jsonable(each.row)
        text = row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)
        line = io.StringIO(newline="")
        csv.writer(line).writerow([text, jsonable(each.current), each.id, each.subject or ""])
        yield line.getvalue()


async def import_file(call: Call) -> Response:
    """File the rows of a CSV or JSON lines file."""
    limits = call.settings
    data = await body_of(call.request, limits.max_import, limits.patience)
    served, by = call.served, call.who.name
    rows = await call.thread(rows_in.rows_of_file, data, limits.max_rows)
    return Json(import_report(await filed(served, rows, by, call.thread)))


async def items(call: Call) -> Response:
    """Return rows that wait for an answer."""
    query = call.query(limit="20", start="0", q="")
    limit = rows_in.whole(query["limit"], "limit", 1, 1000)
    start = rows_in.whole(query["start"], "start", 0, 1 << 31)
    served = call.served
    found = await call.thread(served.items.page, served.name, query["q"][:200], start, limit)
    return Json({"items": [each._asdict() for each in found]})


ONE_ROW = {
    "row": "a text, a list of numbers, or an object of names and values",
    "rows": "several rows, in place of row",
    "coverage": "the share of rows whose set contains the right class, from 0.8 on: adds set and "
    "may_be_new",
    "probabilities": "the number of the most probable classes to list",
    "explain": "the number of features of an explanation",
}
LESSON = {
    "row": ONE_ROW["row"],
    "answer": "the class",
    "id": "an id of your own, by which a repeated request changes nothing",
    "subject": "whom the row is about, so that it can be forgotten",
    "rows": "several objects with these fields, in their place",
}
MODEL = "/api/models/{model}"
OTHERS = ", ".join(KINDS[1:])
ENDPOINTS = (
    Endpoint("models", "GET", "/api/models", "read", "The models.", models, "models: a list"),
    Endpoint("create", "POST", "/api/models", "admin", "Create a model.", create,
             "the figures of the model",
             {"name": "letters, digits, _ and -", "estimator": f"{DEFAULT} or another of {OTHERS}",
              "settings": "an object of its parameters, such as half_life; none for the default"}),
    Endpoint("figures", "GET", MODEL, "read", "The sizes and mistakes of a model.", figures,
             "rows, mistakes, classes, waiting"),
    Endpoint("delete", "DELETE", MODEL, "admin", "Delete a model for good.", delete, "deleted"),
    Endpoint("predict", "POST", f"{MODEL}/predict", "read", "Predict rows.", predict,
             "label and confidence, or answers: a list of these", ONE_ROW, takes_lines=True),
    Endpoint("learn", "POST", f"{MODEL}/learn", "teach", "Learn rows.", learn,
             "id and changed, once the row is on the disk, or outcomes: a list of these", LESSON,
             takes_lines=True),
    Endpoint("undo", "POST", f"{MODEL}/undo", "teach", "Take an event back.", undo,
             "id and changed", {"id": "the id of the event"}),
    Endpoint("relabel", "POST", f"{MODEL}/relabel", "teach", "Change the answer of a row.", relabel,
             "id and changed", {"id": "the id of the row", "answer": "the right class"}),
    Endpoint("rename", "POST", f"{MODEL}/rename", "teach", "Rename a class.", rename,
             "id and changed", {"old": "the class", "new": "its new name"}),
    Endpoint("merge", "POST", f"{MODEL}/merge", "teach", "Merge a class into another.", merge,
             "id and changed", {"source": "the class that ends", "target": "the other one"}),
    Endpoint("forget", "POST", f"{MODEL}/forget", "admin", "Remove rows for good.", forget,
             "id, changed and n_rows", {"id": "a row", "subject": "or all rows about somebody",
                                        "class": "or all rows of a class"}),
    Endpoint("history", "GET", f"{MODEL}/history", "read", "Events, the last first.", history,
             "events, and before for the next page",
             {"limit": "the most events", "before": "the number of an event: only earlier ones"}),
    Endpoint("items", "GET", f"{MODEL}/items", "read", "Rows that wait for an answer.", items,
             "items", {"limit": "the most items", "start": "the first one", "q": "a text"}),
    Endpoint("import", "POST", f"{MODEL}/import", "teach", "File the rows of CSV or JSON lines: "
             "those with a label are learnt, the others wait for an answer.", import_file,
             "added, learnt, unchanged and refused"),
    Endpoint("export_jsonl", "GET", f"{MODEL}/export.jsonl", "read", "Rows and answers as JSON "
             "lines.", export_jsonl, "a file"),
    Endpoint("export_csv", "GET", f"{MODEL}/export.csv", "read", "Rows and answers as CSV.",
             export_csv, "a file"),
)  # fmt: skip

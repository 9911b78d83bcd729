"""The endpoints for programs: JSON and lines of JSON."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from msgspec import UNSET
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kesler.service import bodies, rows_in
from kesler.service.answers import Wanted, jsonable
from kesler.service.bodies import Body, LearnRequest, PredictRequest, decoded, described
from kesler.service.exports import Kept, as_csv, as_json_lines
from kesler.service.filing import filed, import_report
from kesler.service.import_options import OPTIONS, ImportOptions
from kesler.service.limits import body_of, lines_of
from kesler.service.names import labels_of, names_of, shown_name
from kesler.service.refusals import BAD_REQUEST, FAILED, FORBIDDEN, NOT_VALID, TOO_LARGE, Refusal
from kesler.service.registry import ModelRegistry
from kesler.service.rows_in import Taught
from kesler.service.served import Served
from kesler.service.settings import Settings
from kesler.service.tokens import Token
from kesler.service.uploads import File, file_of

_log = logging.getLogger("kesler.service")
_FAILED = "the server failed, and its log says why: the rows after the last answer were not read"
LINES = "application/x-ndjson"
MESSAGE = "message/rfc822"
ROWS_AT_ONCE = 500
MOST_NUMBERS = 1_000_000  # probabilities and features of the answers to a request
MOST_CLASSES = 1000  # of an answer
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

    async def body(self, kind: type[Body]) -> Body:
        """Return the body, which is JSON of this type."""
        return decoded(await self.data(), kind)

    async def data(self) -> bytes:
        """Return the body as it is."""
        return await body_of(self.request, self.settings.max_body, self.settings.patience)

    async def thread(self, work: Callable[..., Any], *given: Any) -> Any:
        """Run a function in another thread."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, work, *given)

    def query(self, **allowed: str) -> dict[str, str]:
        """Return the query with defaults; raise if it has other names."""
        return allowed | self.query_of(allowed)

    def query_of(self, allowed: Iterable[str]) -> dict[str, str]:
        """Return the query; raise if it has other names, or one twice."""
        given = self.request.query_params
        rows_in.require_fields(given, allowed, "the query")
        if len(given) < len(given.multi_items()):
            raise Refusal(BAD_REQUEST, "the query has a name twice: send each once")
        return dict(given)

    @property
    def content_type(self) -> str:
        """The type of the body, without its parameters."""
        return self.request.headers.get("content-type", "").partition(";")[0].strip()


Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint: how it is called, by whom, and what it does.

    The types of bodies are those of :mod:`kesler.service.bodies`. `query` has the type and the
    words of each parameter, which may also be a field of a form that has files; `files` has the
    words of each of these, of which the first is required.
    """

    name: str
    method: str
    path: str
    role: str
    summary: str
    handler: Handler
    returns: tuple[type[Any], ...] | str
    body: type[Any] | None = None
    query: Mapping[str, tuple[type[Any], str]] = field(default_factory=dict)
    takes_lines: bool = False
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, str]:
        """What is sent, in words."""
        in_query = {name: words for name, (_, words) in self.query.items()}
        in_query |= self.files
        return in_query if self.body is None else described(self.body)

    @property
    def returned(self) -> str:
        """What is returned, in words."""
        if isinstance(self.returns, str):
            return f"a file of {self.returns}"
        return "; or ".join(", ".join(described(kind)) for kind in self.returns)


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
    body = await call.body(bodies.CreateRequest)
    name = rows_in.model_name(body.name)
    require_scope(call.who, name)
    served = await call.thread(call.registry.create, name, body.estimator, body.settings)
    return Json(served.figures(), status_code=201)


def require_scope(who: Token, name: str) -> None:
    """Raise unless a token is for a model."""
    if not who.may_use(name):
        raise Refusal(FORBIDDEN, f"the token of {who.name} is for other models")


async def figures(call: Call) -> Response:
    """Return the figures of a model."""
    return Json(await call.thread(call.served.figures))


async def classes(call: Call) -> Response:
    """Return classes, all or those whose names contain a text."""
    query = call.query(limit="100", start="0", q="")
    limit = rows_in.whole(query["limit"], "limit", 1, MOST_CLASSES)
    start = rows_in.whole(query["start"], "start", 0, 1 << 31)
    return Json(await call.thread(_classes, call.served.estimator, query["q"], start, limit))


def _classes(estimator: Any, q: str, start: int, limit: int) -> dict[str, Any]:
    labels = labels_of(estimator)
    if not q:
        listed = labels[start : start + limit]
    else:
        found = names_of(tuple(labels)).containing(q)
        listed = [labels[i] for i in found[start : start + limit]]
    named = [{"label": jsonable(each), "name": shown_name(each)} for each in listed]
    return {"classes": named, "n_found": len(found) if q else len(labels)}


async def delete(call: Call) -> Response:
    """Delete a model."""
    name = call.served.name
    await call.thread(call.registry.delete, name)
    return Json({"deleted": name})


# ---- predictions --------------------------------------------------------------------------------


async def predict(call: Call) -> Response:
    """Predict one row, several, a stream, or a message of mail."""
    served = call.served
    if call.content_type == LINES:
        return Lines(_predictions(call, served))
    if call.content_type == MESSAGE:
        return Json(await call.thread(_answer_of_message, served, await call.data()))
    body = await call.body(PredictRequest)
    wanted = Wanted.of(body)
    if body.rows is UNSET:
        row = _row_of(body)
        answer = served.answer_at_once(row, wanted)
        return Json(answer or await call.thread(served.answer, row, wanted))
    rows = [rows_in.row(each) for each in few(call, body.rows)]
    if len(rows) * (wanted.probabilities + wanted.explain) > MOST_NUMBERS:
        raise Refusal(
            TOO_LARGE, f"the answer would have more than {MOST_NUMBERS} numbers: send fewer rows"
        )
    return Json({"answers": await call.thread(answers_of, served, rows, wanted)})


def _answer_of_message(served: Served, message: bytes) -> dict[str, Any]:
    from kesler.mail.known import threads_of
    from kesler.mail.messages import read

    found = read(message)
    row = found.row(threads_of(served.model, found.keys))
    return served.answer(row, Wanted.of(PredictRequest()))


def _row_of(body: PredictRequest) -> Any:
    if body.row is UNSET:
        raise Refusal(NOT_VALID, f"the request needs row: {rows_in.ROW_IN_WORDS}")
    return rows_in.row(body.row)


def few(call: Call, rows: list[Any]) -> list[Any]:
    """Return the rows of a body; raise if there are too many."""
    if len(rows) > call.settings.max_rows:
        raise Refusal(TOO_LARGE, f"there are more than {call.settings.max_rows} rows")
    return rows


def answers_of(served: Served, rows: list[Any], wanted: Wanted) -> list[dict[str, Any]]:
    """Return what a model says of each row."""
    return [served.answer(row, wanted) for row in rows]


async def _predictions(call: Call, served: Served) -> AsyncIterator[list[Any]]:
    async for asked in _decoded_lines(call, PredictRequest):
        yield await call.thread(_said_of_lines, served, asked)


def _said_of_lines(served: Served, asked: list[PredictRequest | Refusal]) -> list[Any]:
    return [_said_of_line(served, body) for body in asked]


def _said_of_line(served: Served, body: PredictRequest | Refusal) -> dict[str, Any]:
    try:
        if isinstance(body, Refusal):
            raise body
        return served.answer(_row_of(body), Wanted.of(body))
    except Refusal as refusal:
        return refused(refusal)
    except ValueError as error:
        return {"error": str(error), "status": NOT_VALID}


async def _decoded_lines(call: Call, kind: type[Body]) -> AsyncIterator[list[Body | Refusal]]:
    """Yield the bodies on lines, in groups."""
    limits, n = call.settings, 0
    async for lines in lines_of(call.request, limits.max_import, limits.max_body, limits.patience):
        for start in range(0, len(lines), ROWS_AT_ONCE):
            group = lines[start : start + ROWS_AT_ONCE]
            if n + len(group) > limits.max_rows:
                raise Refusal(TOO_LARGE, f"the stream has more than {limits.max_rows} rows")
            yield [_decoded(line, kind, n + i) for i, line in enumerate(group, 1)]
            n += len(group)


def _decoded(line: bytes, kind: type[Body], number: int) -> Body | Refusal:
    if not line.strip():
        return Refusal(BAD_REQUEST, f"line {number} is empty: send a row on each line")
    try:
        return decoded(line, kind, f"line {number}")
    except Refusal as refusal:
        return refusal


# ---- changes ------------------------------------------------------------------------------------


async def learn(call: Call) -> Response:
    """Learn one row, several, or a stream."""
    served = call.served
    if call.content_type == LINES:
        return Lines(_lessons(call, served))
    body = await call.body(LearnRequest)
    if body.rows is not UNSET:
        if body != LearnRequest(rows=body.rows):
            raise Refusal(NOT_VALID, "rows has the fields of each row: send no others beside it")
        rows = [rows_in.taught(each) for each in few(call, body.rows)]
        outcomes = await done(served.learn(rows, call.who.name))
        return Json({"outcomes": [_outcome(each) for each in outcomes]})
    (outcome,) = await done(served.learn([rows_in.taught(body)], call.who.name))
    if isinstance(outcome, Refusal):
        raise outcome
    return Json(outcome)


def _outcome(outcome: dict[str, Any] | Refusal) -> dict[str, Any]:
    return refused(outcome) if isinstance(outcome, Refusal) else outcome


async def _lessons(call: Call, served: Served) -> AsyncIterator[list[Any]]:
    async for lessons in _decoded_lines(call, LearnRequest):
        read = [_taught_of(body) for body in lessons]
        rows = [each for each in read if isinstance(each, Taught)]
        learnt = iter(await done(served.learn(rows, call.who.name)) if rows else [])
        yield [_outcome(next(learnt) if isinstance(each, Taught) else each) for each in read]


def _taught_of(body: LearnRequest | Refusal) -> Taught | Refusal:
    try:
        return body if isinstance(body, Refusal) else rows_in.taught(body)
    except Refusal as refusal:
        return refusal


def _changing(
    kind: type[Body], prepared: Callable[[Served, Body, str], Callable[[], Any]]
) -> Handler:
    """Return the handler of a change whose body is of this type; it is checked before it waits."""

    async def handler(call: Call) -> Response:
        body, served, by = await call.body(kind), call.served, call.who.name
        return Json(await done(served.change(prepared(served, body, by))))

    return handler


async def undo(call: Call) -> Response:
    """Take back one event, or several."""
    body, served, by = await call.body(bodies.UndoRequest), call.served, call.who.name
    if (body.id is UNSET) == (body.ids is UNSET):
        raise Refusal(NOT_VALID, "name what to take back: an id, or several as ids")
    if body.ids is UNSET:
        id = rows_in.named(body.id, "id")
        return Json(await done(served.change(partial(served.undo, id, by))))
    ids = [rows_in.named(each, "id") for each in few(call, body.ids)]
    outcomes = await done(served.change(partial(served.undo_several, ids, by)))
    return Json({"outcomes": [_outcome(each) for each in outcomes]})


relabel = _changing(
    bodies.RelabelRequest,
    lambda served, given, by: partial(
        served.relabel, rows_in.named(given.id, "id"), rows_in.label(given.answer), by
    ),
)
rename = _changing(
    bodies.RenameRequest,
    lambda served, given, by: partial(
        served.rename, rows_in.label(given.old, "old"), rows_in.label(given.new, "new"), by
    ),
)
merge = _changing(
    bodies.MergeRequest,
    lambda served, given, by: partial(
        served.merge,
        rows_in.label(given.source, "source"),
        rows_in.label(given.target, "target"),
        by,
    ),
)


async def forget(call: Call) -> Response:
    """Forget a row, a subject or a class for good."""
    body = await call.body(bodies.ForgetRequest)
    given = {"id": body.id, "subject": body.subject, "class": body.label}
    what, value = forgotten({name: each for name, each in given.items() if each is not UNSET})
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
    found, rest = await call.thread(call.served.history, limit, before or None)
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
    return _file(as_json_lines(_kept(call.served)), LINES, f"{call.served.name}.jsonl")


async def export_csv(call: Call) -> Response:
    """Return the texts with their answers as CSV."""
    return _file(as_csv(_kept(call.served)), "text/csv; charset=utf-8", f"{call.served.name}.csv")


def _file(pieces: Iterator[str], media_type: str, name: str) -> Response:
    from starlette.responses import StreamingResponse

    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(
        (piece.encode("utf-8", "backslashreplace") for piece in pieces),
        media_type=media_type,
        headers=headers,
    )


def _kept(served: Served) -> Iterator[Kept]:
    for each in served.model.remaining():
        yield Kept(jsonable(each.row), jsonable(each.current), each.id, each.subject)


async def import_file(call: Call) -> Response:
    """File the rows of a file."""
    limits, query = call.settings, call.query_of(OPTIONS)
    data = await body_of(call.request, limits.max_import, limits.patience)
    file = await call.thread(file_of, data, call.request.headers.get("content-type", ""))
    options = ImportOptions.of(_options(query, file.fields))
    return Json(await imported(call, file, options))


def _options(query: Mapping[str, str], fields: Mapping[str, str]) -> dict[str, str]:
    """Return the options in the query and in the form of an import."""
    rows_in.require_fields(fields, OPTIONS, "the form")
    for name in query.keys() & fields.keys():
        if query[name] != fields[name]:
            raise Refusal(NOT_VALID, f"{name} is in the query and another in the form: send one")
    return {**query, **fields}


async def imported(call: Call, file: File, options: ImportOptions) -> dict[str, Any]:
    """File the rows of a file; return a report."""
    served, most = call.served, call.settings.max_rows
    upload = await call.thread(rows_in.rows_of_file, file, most, options)
    return import_report(await filed(served, upload, call.who.name, call.thread), upload)


async def discard(call: Call) -> Response:
    """Remove rows that wait for an answer."""
    body = await call.body(bodies.DiscardRequest)
    if (body.ids is UNSET) == (body.q is UNSET):
        raise Refusal(NOT_VALID, "name what to discard: ids, or the text q that rows contain")
    given: dict[str, Any] = {"text": body.q} if body.ids is UNSET else {"ids": body.ids}
    served = call.served
    found = await call.thread(partial(served.items.discard, served.name, **given))
    return Json({"discarded": found})


async def items(call: Call) -> Response:
    """Return rows that wait for an answer."""
    query = call.query(limit="20", start="0", q="")
    limit = rows_in.whole(query["limit"], "limit", 1, 1000)
    start = rows_in.whole(query["start"], "start", 0, 1 << 31)
    served = call.served
    found = await call.thread(served.items.page, served.name, query["q"][:200], start, limit)
    return Json({"items": [each._asdict() for each in found]})

"""The application: routes, and what every request and answer has in common."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kesler.errors import KeslerError
from kesler.service import pages
from kesler.service.api import Call, Endpoint, Json, refused, require_scope
from kesler.service.endpoints import ENDPOINTS
from kesler.service.gate import COOKIE, SESSION_SECONDS, Gate
from kesler.service.limits import Clock
from kesler.service.metrics import Labels, Metrics
from kesler.service.openapi import document
from kesler.service.refusals import (
    NO_TOKEN,
    NOT_FOUND,
    TOO_LARGE,
    TOO_SLOW,
    Refusal,
    refusal_of,
)
from kesler.service.registry import ModelRegistry
from kesler.service.settings import Settings

THREADS = 8
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
STATIC = {"style.css": "text/css", "desk.js": "text/javascript"}
_log = logging.getLogger("kesler.service")

Work = Callable[[Call], Awaitable[Response]]


class Headed:
    """Adds the headers of safety to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        await self._app(scope, receive, headed if scope["type"] == "http" else send)


class Service:
    """A registry of models behind a gate.

    Parameters
    ----------
    registry : ModelRegistry
    settings : Settings
    clock : function
        Returns the time in seconds, for the rates of requests.
    """

    def __init__(self, registry: ModelRegistry, settings: Settings, clock: Clock) -> None:
        self.registry, self.settings = registry, settings
        self.gate, self.metrics = Gate(settings, clock), Metrics()
        self.pool = ThreadPoolExecutor(THREADS, thread_name_prefix="kesler-reader")

    # ---- requests -----------------------------------------------------------------------------

    def route(
        self, name: str, method: str, path: str, role: str | None, work: Work, *, is_page: bool
    ) -> Route:
        """Return a route whose requests are admitted, counted, and answered also after errors."""

        async def endpoint(request: Request) -> Response:
            start = time.perf_counter()
            try:
                response = await self._answered(request, role, work)
            except Exception as error:
                response = self._failed(error, request, is_page=is_page)
            self.metrics.count(name, response.status_code, time.perf_counter() - start)
            return response

        return Route(path, endpoint, methods=[method], name=name)

    async def _answered(self, request: Request, role: str | None, work: Work) -> Response:
        model = request.path_params.get("model")
        if role is None:
            who = self.gate.known(request)
        else:
            who = self.gate.admit(request, role, model)
        return await work(Call(request, who, self.registry, self.settings, self.pool))  # type: ignore[arg-type]

    def _failed(self, error: Exception, request: Request, *, is_page: bool) -> Response:
        """Return the answer to a request that failed."""
        if isinstance(error, ClientDisconnect):
            return Response(status_code=400)
        if not isinstance(error, KeslerError):
            _log.error("%s %r failed", request.method, request.url.path, exc_info=error)
        refusal = refusal_of(error)
        headers = {"retry-after": str(refusal.wait)} if refusal.wait else {}
        if refusal.status in (TOO_SLOW, TOO_LARGE):
            headers["connection"] = "close"  # the rest of the body is not read
        if refusal.status == NO_TOKEN:
            headers["www-authenticate"] = "Bearer"
        if not is_page:
            return Json(refused(refusal), status_code=refusal.status, headers=headers)
        if refusal.status == NO_TOKEN and request.method == "GET":
            return RedirectResponse("/login", status_code=303)
        page = pages.rendered("refusal", heading=str(refusal), page="refusal")
        return HTMLResponse(page, status_code=refusal.status, headers=headers)

    # ---- routes -------------------------------------------------------------------------------

    def routes(self) -> Iterator[Route]:
        """Yield all routes."""
        for each in ENDPOINTS:
            work = each.handler
            yield self.route(each.name, each.method, each.path, each.role, work, is_page=False)
        for key, _ in pages.PAGES:
            path = f"/models/{{model}}/{key}".rstrip("/")
            yield self._page_route("GET", path, key, "read")
            yield self._page_route("POST", path, key, "teach")
        for name, method, path, role, work in (
            ("start", "GET", "/", "read", self._start),
            ("start", "POST", "/", "admin", self._create),
            ("login", "GET", "/login", None, self._login_form),
            ("login", "POST", "/login", None, self._login),
            ("logout", "GET", "/logout", None, self._logout),
            ("api", "GET", "/api", "read", self._api_page),
        ):
            yield self.route(name, method, path, role, work, is_page=True)
        for name, path, role, work in (
            ("export_csv", "/models/{model}/export.csv", "read", _handler_of("export_csv")),
            ("export_jsonl", "/models/{model}/export.jsonl", "read", _handler_of("export_jsonl")),
            ("openapi", "/openapi.json", "read", self._openapi),
            ("metrics", "/metrics", "read", self._metrics),
            ("health", "/health", None, self._health),
            ("static", "/static/{name}", None, self._static),
        ):
            yield self.route(name, "GET", path, role, work, is_page=False)

    def _page_route(self, method: str, path: str, key: str, role: str) -> Route:
        async def work(call: Call) -> Response:
            if method == "GET":
                return HTMLResponse(await pages.page_of(call, key))
            page, status = await pages.sent(call, key)
            return HTMLResponse(page, status_code=status)

        return self.route(f"page_{key or 'inbox'}", method, path, role, work, is_page=True)

    # ---- pages --------------------------------------------------------------------------------

    async def _start(self, call: Call) -> Response:
        return HTMLResponse(await pages.start_page(call))

    async def _create(self, call: Call) -> Response:
        form = await pages.form_of(call)
        try:
            name = form.get("name", "")
            require_scope(call.who, name)
            served = await call.thread(call.registry.create, name)
        except KeslerError as error:
            page = await pages.start_page(call, str(error))
            return HTMLResponse(page, status_code=refusal_of(error).status)
        return RedirectResponse(f"/models/{served.name}", status_code=303)

    async def _login_form(self, call: Call) -> Response:
        secret = call.request.query_params.get("token")
        if secret:
            return self._with_session(call.request, secret)
        return HTMLResponse(pages.rendered("login", heading="Log in", page="login"))

    async def _login(self, call: Call) -> Response:
        form = await pages.form_of(call)
        try:
            return self._with_session(call.request, form.get("token", ""))
        except Refusal as refusal:
            page = pages.rendered(
                "login", heading="Log in", page="login", message=str(refusal), failed=True
            )
            return HTMLResponse(page, status_code=refusal.status)

    def _with_session(self, request: Request, secret: str) -> Response:
        key = self.gate.log_in(request, secret)
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(
            COOKIE, key, max_age=SESSION_SECONDS, httponly=True, samesite="strict",
            secure=request.url.scheme == "https",
        )  # fmt: skip
        return response

    async def _logout(self, call: Call) -> Response:
        self.gate.log_out(call.request)
        response = RedirectResponse("/login", status_code=303)
        response.delete_cookie(COOKIE)
        return response

    async def _api_page(self, call: Call) -> Response:
        page = pages.rendered(
            "api", heading="Interface for programs", page="api", who=call.who,
            has_tokens=bool(len(self.settings.tokens)), endpoints=ENDPOINTS,
        )  # fmt: skip
        return HTMLResponse(page)

    # ---- for machines -------------------------------------------------------------------------

    async def _openapi(self, call: Call) -> Response:
        return Json(document(ENDPOINTS))

    async def _health(self, call: Call) -> Response:
        return Json({"status": "ok", "models": len(self.registry.names())})

    async def _metrics(self, call: Call) -> Response:
        gauges = await call.thread(lambda: [*self._gauges(call)])
        return Response(self.metrics.text(gauges), media_type="text/plain; version=0.0.4")

    def _gauges(self, call: Call) -> Iterator[tuple[str, str, Labels, float]]:
        found = [
            self.registry.find(name).figures()
            for name in self.registry.names()
            if call.who.may_use(name)
        ]
        for name, words, key in (
            ("kesler_rows", "Rows learnt.", "rows"),
            ("kesler_mistakes", "Rows predicted wrong before they were learnt.", "mistakes"),
            ("kesler_items_waiting", "Rows that wait for an answer.", "waiting"),
            ("kesler_writes_waiting", "Changes that wait to be written.", "n_writes_waiting"),
        ):
            for each in found:
                yield name, words, (("model", each["name"]),), each[key]
        for each in found:
            yield "kesler_classes", "Classes.", (("model", each["name"]),), each["n_classes"]

    async def _static(self, call: Call) -> Response:
        name = call.request.path_params["name"]
        if name not in STATIC:
            raise Refusal(NOT_FOUND, "there is no such file")
        return Response((pages.FOLDER / name).read_bytes(), media_type=STATIC[name])


def _handler_of(name: str) -> Work:
    found: Endpoint = next(each for each in ENDPOINTS if each.name == name)
    return found.handler


def application(
    registry: ModelRegistry, settings: Settings, clock: Clock = time.monotonic
) -> Starlette:
    """Return the ASGI application of a registry, which is closed when the application ends.

    Parameters
    ----------
    registry : ModelRegistry
        The models.
    settings : Settings
        Who may do what, and how much.
    clock : function
        Returns the time in seconds, for the rates of requests.
    """
    service = Service(registry, settings, clock)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        service.pool.shutdown(wait=True)
        registry.close()

    app = Starlette(routes=[*service.routes()], lifespan=lifespan)
    app.add_middleware(Headed)
    app.add_exception_handler(HTTPException, _no_route)
    return app


async def _no_route(request: Request, error: Any) -> Response:
    """Answer a request for a path or a method that does not exist."""
    sentence = (
        "there is nothing at this path: see /api"
        if error.status_code == 404
        else (f"{request.method} does nothing here: see /api")
    )
    content = json.dumps({"error": sentence, "status": error.status_code})
    return Response(
        content, error.status_code, headers=error.headers, media_type="application/json"
    )

"""The gate: who asks, whether they may, and whether a page of another site sent them."""

from __future__ import annotations

import base64
import secrets
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kesler.service.limits import Clock, Rate
from kesler.service.refusals import BAD_REQUEST, FORBIDDEN, NO_TOKEN, Refusal
from kesler.service.settings import Settings
from kesler.service.tokens import LOCAL, Token

if TYPE_CHECKING:
    from starlette.requests import Request

COOKIE = "kesler_session"
SESSION_SECONDS = 12 * 3600
MOST_SESSIONS = 1000
FAILED_LOGINS = 5.0  # a second and address
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_SAFE = ("GET", "HEAD", "OPTIONS")


class Gate:
    """Admits requests.

    Parameters
    ----------
    settings : Settings
    clock : function
        Returns the time in seconds, for the rates of requests.
    """

    def __init__(self, settings: Settings, clock: Clock = time.monotonic) -> None:
        self.tokens = settings.tokens
        self._rate, self._failures = Rate(settings.rate, clock), Rate(FAILED_LOGINS, clock)
        self._sessions: dict[str, tuple[Token, float]] = {}

    # ---- requests -----------------------------------------------------------------------------

    def admit(self, request: Request, role: str, model: str | None = None) -> Token:
        """Return who asks.

        Parameters
        ----------
        request : Request
        role : "read", "teach" or "admin"
            What they must at least be.
        model : str or None, default None
            The model that they want to use.

        Raises
        ------
        Refusal
            With status 401 without a token that the server knows, 403 if it is for less, or if
            the page of another site sent the request, 429 if there were too many requests.
        """
        who = self.known(request)
        if who is None:
            is_guess = "authorization" in request.headers
            (self._failures if is_guess else self._rate).count(_address(request))
            raise Refusal(
                NO_TOKEN, "this needs a token: send Authorization: Bearer TOKEN, or log in"
            )
        self._rate.count(who.name if len(self.tokens) else _address(request))
        if model is not None and not who.may_use(model):
            raise Refusal(FORBIDDEN, f"the token of {who.name} is for other models")
        if not who.may(role):
            raise Refusal(
                FORBIDDEN, f"the token of {who.name} is to {who.role}, and this needs {role}"
            )
        return who

    def known(self, request: Request) -> Token | None:
        """Return who asks, or None if that is not known."""
        if not len(self.tokens):
            self._require_local_name(request)
            self._require_same_site(request)
            return LOCAL
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.tokens.find(secret.strip())
        if scheme.lower() == "basic":
            return self.tokens.find(_password(secret))
        token, end = self._sessions.get(request.cookies.get(COOKIE, ""), (None, 0.0))
        if token is None or time.time() > end:
            return None
        self._require_same_site(request)
        return token

    def _require_local_name(self, request: Request) -> None:
        """Raise unless the server is called by a name of this machine: others may be a trick."""
        host, _ = _place(f"//{request.headers.get('host', '')}")
        if host not in _LOCAL_NAMES:
            raise Refusal(
                BAD_REQUEST, "without tokens this server answers to localhost and 127.0.0.1 only"
            )

    def _require_same_site(self, request: Request) -> None:
        """Raise if a page of another site sent a request that changes something."""
        if request.method in _SAFE:
            return
        site = request.headers.get("sec-fetch-site", "same-origin")
        origin = request.headers.get("origin")
        is_own = origin is None or _place(origin)[1] == request.headers.get("host")
        if site not in ("same-origin", "none") or not is_own:
            raise Refusal(FORBIDDEN, "the page of another site sent this: nothing was changed")

    # ---- sessions -----------------------------------------------------------------------------

    def log_in(self, request: Request, secret: str) -> str:
        """Return the key of a new session; raise a refusal if the token is not known."""
        token = self.tokens.find(secret.strip())
        if token is None:
            self._failures.count(_address(request))
            raise Refusal(NO_TOKEN, "this server does not know the token: look at its spelling")
        self._require_same_site(request)
        now = time.time()
        self._sessions = {k: v for k, v in self._sessions.items() if v[1] > now}
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        key = secrets.token_urlsafe(32)
        self._sessions[key] = token, now + SESSION_SECONDS
        return key

    def log_out(self, request: Request) -> None:
        """End the session of a request."""
        self._sessions.pop(request.cookies.get(COOKIE, ""), None)


def _place(url: str) -> tuple[str | None, str]:
    """Return the host of an address, and the host with its port; nothing if it is none."""
    try:
        parts = urlsplit(url)
        return parts.hostname, parts.netloc
    except ValueError:
        return None, ""


def _password(secret: str) -> str:
    """Return the password of basic authentication, whose user may have any name."""
    try:
        return base64.b64decode(secret, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _address(request: Request) -> str:
    return request.client.host if request.client else "an unknown address"

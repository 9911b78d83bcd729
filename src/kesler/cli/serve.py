"""kesler serve: the models of a journal over HTTP, with a page to teach them."""

from __future__ import annotations

import os
import secrets
import sys
from argparse import Namespace
from pathlib import Path

from kesler.errors import KeslerError
from kesler.service.settings import Settings, is_local
from kesler.service.tokens import Token, Tokens


def run(options: Namespace) -> None:
    """Serve until the process is asked to end."""
    from kesler.service import server

    server.require_extra()
    tokens, link = _tokens(options)
    given = {
        name: getattr(options, name)
        for name in ("max_body", "max_import", "max_rows", "max_connections", "patience", "rate")
        if getattr(options, name) is not None
    }
    settings = Settings(tokens=tokens, host=options.host, port=options.port, **given)

    def started(address: str) -> None:
        print(f"Serving {options.database} at {address}{link}", file=sys.stderr)

    server.run(options.database, settings, started)


def _tokens(options: Namespace) -> tuple[Tokens, str]:
    """Return the tokens, and the rest of the address to begin with."""
    if options.no_tokens:
        if options.token_file:
            raise KeslerError("--no-tokens and --token-file exclude each other: give one")
        return Tokens(), ""
    text, source = os.environ.get("KESLER_TOKENS", ""), "KESLER_TOKENS"
    if options.token_file:
        text, source = Path(options.token_file).read_text("utf-8"), options.token_file
    tokens = Tokens.of_text(text, source)
    if len(tokens):
        return tokens, ""
    if text.strip() or not is_local(options.host):
        raise KeslerError(
            f"there is no token in {source}: write lines such as teach ann SECRET, or serve on "
            "127.0.0.1"
        )
    secret = secrets.token_urlsafe(24)
    return Tokens([(secret, Token("admin", "local"))]), f"login?token={secret}"

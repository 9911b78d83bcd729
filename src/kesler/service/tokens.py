"""Tokens: who may read, teach and administer which models."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass

from kesler.errors import KeslerError

ROLES = ("read", "teach", "admin")
LEAST_SECRET = 16  # characters
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_FORM = "ROLE NAME SECRET [MODEL,MODEL]"


@dataclass(frozen=True, slots=True)
class Token:
    """Who asks, and what they may do.

    Parameters
    ----------
    role : "read", "teach" or "admin"
        Each may do what those before it may.
    name : str
        The name that the history shows.
    models : frozenset of str or None, default None
        The models that it may use; None for all of them, and for creating models.
    """

    role: str
    name: str
    models: frozenset[str] | None = None

    def may(self, role: str) -> bool:
        """Return whether the token has a role, or one above it.

        Examples
        --------
        >>> Token("teach", "ann").may("read"), Token("teach", "ann").may("admin")
        (True, False)
        """
        return ROLES.index(self.role) >= ROLES.index(role)

    def may_use(self, model: str) -> bool:
        """Return whether the token is for a model."""
        return self.models is None or model in self.models


LOCAL = Token("admin", "local")
"""Who asks where a server needs no tokens."""


class Tokens:
    """The tokens of a server, by the digests of their secrets.

    Parameters
    ----------
    pairs : iterable of (str, Token)
        Each secret with what it allows.

    Examples
    --------
    >>> tokens = Tokens.of_text("teach ann correct-horse-battery mail,desk")
    >>> tokens.find("correct-horse-battery").name, tokens.find("correct-horse")
    ('ann', None)
    """

    def __init__(self, pairs: Iterable[tuple[str, Token]] = ()) -> None:
        self._tokens = [(_digest(secret), token) for secret, token in pairs]

    @classmethod
    def of_text(cls, text: str, source: str = "the tokens") -> Tokens:
        """Return the tokens that a text lists, one a line: role, name, secret and models.

        Parameters
        ----------
        text : str
            Lines such as ``teach ann SECRET`` or ``read bot SECRET mail,desk``; empty lines and
            those that begin with ``#`` are skipped.
        source : str, default "the tokens"
            What messages call the text.

        Raises
        ------
        KeslerError
            If a line has another form, a secret is shorter than 16 characters, or a name or a
            secret stands twice. No message contains a secret.
        """
        pairs: list[tuple[str, Token]] = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip() and not line.lstrip().startswith("#"):
                pairs.append(_parsed(line, f"line {number} of {source}"))
        for what, values in (
            ("name", [token.name for _, token in pairs]),
            ("secret", [secret for secret, _ in pairs]),
        ):
            if len(set(values)) < len(values):
                raise KeslerError(f"a {what} stands twice in {source}: give each token its own")
        return cls(pairs)

    def __len__(self) -> int:
        return len(self._tokens)

    def find(self, secret: str) -> Token | None:
        """Return the token of a secret, or None; the time does not depend on the secret."""
        digest, found = _digest(secret), None
        for own, token in self._tokens:
            if hmac.compare_digest(own, digest):
                found = token
        return found


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _parsed(line: str, where: str) -> tuple[str, Token]:
    fields = line.split()
    if len(fields) not in (3, 4) or fields[0] not in ROLES:
        raise KeslerError(f"{where} is no token: write {_FORM}, where ROLE is read, teach or admin")
    role, name, secret = fields[:3]
    if not _NAME.fullmatch(name):
        raise KeslerError(f"{where} names nobody: use letters, digits and . _ @ - for the name")
    if len(secret) < LEAST_SECRET:
        raise KeslerError(
            f"{where} has a secret of fewer than {LEAST_SECRET} characters, which can be guessed: "
            "make one with python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    models = frozenset(fields[3].split(",")) if len(fields) == 4 else None
    return secret, Token(role, name, models)

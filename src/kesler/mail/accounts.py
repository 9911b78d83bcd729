"""The mailbox of which an account of a database has learnt: no other one may share its model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from kesler.errors import KeslerError

if TYPE_CHECKING:
    from kesler.durable import Model
    from kesler.mail.settings import MailSettings

MAILBOX = "mailbox"
"""The name under which the mailbox of a model is kept."""


def require_own(model: Model, settings: MailSettings) -> None:
    """Keep of which mailbox a model learns.

    Raises
    ------
    KeslerError
        If it has learnt of another one.
    """
    known = model.kept(MAILBOX).get(MAILBOX) or _first(model, settings.identity)
    if known != settings.identity:
        path = settings.path("database")
        raise KeslerError(
            f"the account {settings.account!r} of {path} has learnt the mailbox {known}, and not "
            f"{settings.identity}: give this one another account or database; or, if the mailbox "
            f"has moved, name {known} in the settings and then let kesler mail setup change it"
        )


def _first(model: Model, identity: str) -> str:
    """Keep the mailbox of a model that has none, unless another process was faster; return it."""
    with model.together():
        first: str = model.kept(MAILBOX).get(MAILBOX, identity)
        model.keep(MAILBOX, first)
    return first


@contextmanager
def followed(former: MailSettings, settings: MailSettings) -> Iterator[None]:
    """Let the account of settings follow its mailbox to another place, unless the block fails.

    Parameters
    ----------
    former : the settings so far, or the same ones.
    settings : those that replace them, which the block writes.

    Raises
    ------
    KeslerError
        Before the block, if the account has learnt another mailbox than that of its settings.
    """
    from kesler.durable import Journal

    path, account = settings.path("database"), settings.account
    is_same = (former.path("database"), former.account) == (path, account)
    with ExitStack() as stack:
        if os.path.exists(path):
            journal = stack.enter_context(Journal(path))
            if account in journal.models():
                model = journal.open(account)
                stack.enter_context(model.together())
                require_own(model, former if is_same else settings)
                model.keep(MAILBOX, settings.identity)
        yield

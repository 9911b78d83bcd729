"""Refusals: errors with the status by which a server answers them."""

from __future__ import annotations

from kesler.durable.failures import JournalError, Reason
from kesler.errors import KeslerError

BAD_REQUEST = 400
NO_TOKEN = 401
FORBIDDEN = 403
NOT_FOUND = 404
TOO_SLOW = 408
CONFLICT = 409
TOO_LARGE = 413
NOT_VALID = 422
TOO_MANY = 429
FAILED = 500
UNAVAILABLE = 503
FULL = 507


class Refusal(KeslerError):
    """A request that is refused.

    Parameters
    ----------
    status : int
        The status of the answer, 400 to 507.
    sentence : str
        What was wrong, where, and what to do.
    wait : int, default 0
        The seconds after which the client may try again; 0 for none.

    Examples
    --------
    >>> refusal = Refusal(404, "there is no model 'post': create it first")
    >>> refusal.status, str(refusal)
    (404, "there is no model 'post': create it first")
    """

    def __init__(self, status: int, sentence: str, wait: int = 0) -> None:
        super().__init__(sentence)
        self.status, self.wait = status, wait


_STATUS: dict[Reason, int] = {
    "not found": NOT_FOUND,
    "conflict": CONFLICT,
    "busy": UNAVAILABLE,
    "full": FULL,
    "unusable": FAILED,
}


def refusal_of(error: BaseException) -> Refusal:
    """Return an error as a refusal; one that nobody has foreseen becomes a sentence without it.

    Examples
    --------
    >>> refusal_of(JournalError("there is no event 'm1'", "not found")).status
    404
    >>> refusal_of(KeyError("secret")).status
    500
    """
    if isinstance(error, Refusal):
        return error
    if isinstance(error, JournalError):
        return Refusal(_STATUS[error.reason], str(error), wait=int(error.reason == "busy"))
    if isinstance(error, KeslerError):
        return Refusal(NOT_VALID, str(error))
    return Refusal(FAILED, "the server failed, and its log says why: nothing was changed")

"""Refusals: errors with the status by which a server answers them."""

from __future__ import annotations

from kesler.errors import KeslerError

BAD_REQUEST = 400
NO_TOKEN = 401
FORBIDDEN = 403
NOT_FOUND = 404
TOO_SLOW = 408
CONFLICT = 409
TOO_LARGE = 413
NO_SUCH_TYPE = 415
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

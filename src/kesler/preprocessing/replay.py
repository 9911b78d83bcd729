"""Replay: each new row is learnt together with some of the earlier rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from kesler.errors import KeslerError, is_integer, keep_integer

MOST_KEPT = 2**31 - 1
NEVER = 2**62  # rows, more than any stream has


@dataclass(frozen=True)
class Replay:
    r"""Rows drawn from a reservoir of earlier rows, learnt again after each new row.

    Row t is predicted and learnt; then `n_rows` rows are drawn from the reservoir R, with
    replacement, and learnt in this order; then row t is offered to the reservoir:

    .. math:: w \leftarrow U(w; x_t, y_t), \quad w \leftarrow U(w; x_i, y_i), \; i \sim R, \quad
        P(t \in R) = \min(1, |R| / t)

    so that R is at any time a random sample of all rows before.

    Parameters
    ----------
    n_rows : int, 1 or more, default 1
        Number of rows learnt again after each new row. Larger values learn more from few rows, and
        cost as many trials more.
    size : int, 1 or more, default 1000
        The maximum number of rows in the reservoir. Larger values represent the past better and
        take more memory; small ones are learnt by heart.
    seed : int, 0 or more, default 0
        The seed of the random numbers, which depend on it and the number of rows only.
    until : int, 1 or more, or None, default None
        The number of new rows after which none is learnt again or kept any more, None for never.
        Larger values learn more from few rows; smaller ones cost less, and cannot harm where
        classes change later, as earlier rows are then wrong.

    Raises
    ------
    KeslerError
        If a parameter is out of its range.

    Notes
    -----
    With a half-life, a new row is kept with a probability of at least
    :math:`|R| (1 - 2^{-1 / \text{half\_life}})`, so that recent rows are more likely to be in the
    reservoir (Aggarwal 2006). Costs `n_rows` trials per row. A row in the reservoir takes 4 bytes
    for each input of an expansion, else 8 for each feature that it lists and about 400 besides, so
    that texts and sparse rows are kept in proportion to their lengths; features of value 0 take
    none unless something reads them. Learning row by row, the order of trials costs about 0.15 ms
    more per row, which batches share.

    References
    ----------
    Lin (1992), "Self-improving reactive agents based on reinforcement learning, planning and
    teaching", experience replay; Vitter (1985), "Random sampling with a reservoir", Algorithm R;
    Rolnick, Ahuja, Schwarz, Lillicrap and Wayne (2019), "Experience replay for continual learning";
    Aggarwal (2006), "On biased reservoir sampling in the presence of stream evolution".

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.preprocessing import Replay
    >>> X, y = [[0.0], [5.0], [9.0]] * 20, ["low", "middle", "high"] * 20
    >>> model = OnlineClassifier("multi", update="softmax", intercept=1.0, replay=Replay(2, size=9))
    >>> model.fit(X, y).n_trials_
    60
    """

    n_rows: int = 1
    size: int = 1000
    seed: int = 0
    until: int | None = None

    def __post_init__(self) -> None:
        keep_integer(self, "n_rows", 1, 1000)
        keep_integer(self, "size", 1, MOST_KEPT)
        keep_integer(self, "seed", 0)
        keep_integer(self, "until", 1, MOST_KEPT, or_none=True)

    @property
    def end(self) -> int:
        """The number of new rows after which none is learnt again."""
        return NEVER if self.until is None else self.until

    @property
    def start(self) -> int:
        """The number below 2^63 that the random numbers of this seed start from."""
        return start_of(self.seed)


@cache  # every event asks for it
def start_of(seed: int) -> int:
    """Return the number below 2^63 that the random numbers of a seed start from."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 1)


def resolve_replay(choice: Any) -> Replay | None:
    """Return the replay that a parameter stands for: a number of rows, 0 for none, or itself.

    Raises
    ------
    KeslerError
        If it is neither.

    Examples
    --------
    >>> resolve_replay(2), resolve_replay(0)
    (Replay(n_rows=2, size=1000, seed=0, until=None), None)
    """
    if choice is None or isinstance(choice, Replay):
        return choice
    if not is_integer(choice, 0):
        raise KeslerError(
            f"replay={choice!r}: give the number of rows to learn again after each new row, 0 for "
            "none, or kesler.preprocessing.Replay(1, size=1000, seed=0)"
        )
    return replace(Replay(), n_rows=int(choice)) if choice else None

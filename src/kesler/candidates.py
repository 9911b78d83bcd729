"""Candidates: the classes that a row is compared with, where there are many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kesler.errors import KeslerError, is_integer, keep_integer

__all__ = ["Candidates"]

AUTO = "auto"
MOST = 2**20


@dataclass(frozen=True)
class Candidates:
    r"""The classes whose rows had the rarest features of a row most often.

    Features i of row x are visited in the order of how many classes had them, fewest first, until
    `budget` entries (feature, class) have been visited. Of the rows of class r, n_ir had feature i,
    and of all T rows, n_i. The row is compared with the classes of most points

    .. math:: \sum_{i \in x} n_{ir} \log^2 \frac{T + 1}{n_i + 1/2}

    and with its own class. They alone are scored and updated. A class has a weight for the features
    that its rows had; any other weight is that of a virtual class, which is always on the wrong
    side and from which new classes inherit.

    Of label sets, a row is compared with its own labels beside the candidates, and labels that are
    no candidates move as the virtual label does. They have one probability, the discounted share
    of such labels that rows had; an offset of the log-odds is learnt for all labels together.

    Parameters
    ----------
    most : int from 2 to 1,048,576, default 64
        The number of candidates. Larger values contain the right class more often
        (`candidate_recall_`) and cost time in proportion; with very large ones, classes that have
        little to do with a row push each other down.
    beyond : int, `most` or more, default 128
        The number of classes up to which each row is compared with all of them, in a dense table.
        Larger values are faster for a few hundred classes, and take memory for each feature and
        class.
    budget : int, 1 or more, default 2000
        The number of entries that are visited to find candidates. Larger values take frequent
        features into account, and cost time.

    Raises
    ------
    KeslerError
        If a parameter is out of its range.

    Notes
    -----
    Time O(candidates x features) for a row, whatever the number of classes is; memory of some 20
    bytes for each feature that a class has had.

    References
    ----------
    Points are those of Spärck Jones (1972), "A statistical interpretation of term specificity and
    its application in retrieval", squared as in the cosine of two weighted vectors.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.candidates import Candidates
    >>> model = OnlineClassifier(candidates=Candidates(2, beyond=2))
    >>> model = model.fit(["red rose", "tall oak", "blue jay"], ["flower", "tree", "bird"])
    >>> model.predict(["oak"]).tolist()
    ['tree']
    """

    most: int = 64
    beyond: int = 128
    budget: int = 2000

    def __post_init__(self) -> None:
        keep_integer(self, "most", 2, MOST)
        keep_integer(self, "beyond", self.most, MOST)
        keep_integer(self, "budget", 1, MOST)


def resolve_candidates(choice: Any) -> Candidates | None:
    """Return the candidates that a parameter stands for: those of a number, or itself.

    Raises
    ------
    KeslerError
        If it is neither "auto", a number, candidates nor None, which compares all classes.

    Examples
    --------
    >>> resolve_candidates(100), resolve_candidates(None)
    (Candidates(most=100, beyond=100, budget=2000), None)
    """
    if choice is None or isinstance(choice, Candidates):
        return choice
    if isinstance(choice, str) and choice == AUTO:
        return Candidates()
    if is_integer(choice, 2, MOST):
        return Candidates(int(choice), beyond=int(choice))
    raise KeslerError(
        f'candidates={choice!r}: give "auto", the number of classes that a row is compared with, '
        "from 2 on, kesler.candidates.Candidates(64, beyond=128), or None for all classes"
    )

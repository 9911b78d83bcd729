"""Preprocessing: transformations of a row that use statistics of earlier rows only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kesler.errors import KeslerError
from kesler.preprocessing.bins import Bins
from kesler.preprocessing.counts import Counts
from kesler.preprocessing.expansion import Concatenated, is_block
from kesler.preprocessing.fourier import RandomFourier
from kesler.preprocessing.method import Preprocessing
from kesler.preprocessing.pairs import Pairs
from kesler.preprocessing.ranges import Ranges
from kesler.preprocessing.replay import Replay
from kesler.preprocessing.z_scores import ZScores

__all__ = [
    "PREPROCESSINGS",
    "Bins",
    "Concatenated",
    "Counts",
    "Pairs",
    "Preprocessing",
    "RandomFourier",
    "Ranges",
    "Replay",
    "ZScores",
    "resolve_preprocessing",
]


PREPROCESSINGS: dict[str, Callable[[], Preprocessing]] = {
    "counts": Counts,
    "idf": lambda: Counts(idf=True),
    "information": lambda: Counts(information=True),
    "z-scores": ZScores,
    "ranges": Ranges,
    "bins": Bins,
    "random-fourier": RandomFourier,
    "pairs": Pairs,
}
"""The preprocessings by their names in estimators and on the command line."""

NAMES = ("scale", *PREPROCESSINGS)
"""All names: "scale" depends on the kind of the rows."""


def resolve_preprocessing(
    choice: Any, *, dense: bool, by_distance: bool = False
) -> Preprocessing | None:
    """Return the preprocessing of this name, or itself; "scale" depends on the kind of the rows.

    "scale" is :class:`Counts` for rows that list only non-zeros (text, counts). For rows that list
    every feature it is :class:`Ranges` if distances can be recomputed, `by_distance`, and
    :class:`ZScores` otherwise. A list stands for :class:`Concatenated`.

    Raises
    ------
    KeslerError
        If it is not known.

    Examples
    --------
    >>> resolve_preprocessing("scale", dense=True), resolve_preprocessing(None, dense=True)
    (ZScores(clip=4.0), None)
    """
    if choice is None or isinstance(choice, Preprocessing):
        return choice
    if isinstance(choice, (list, tuple)):
        return Concatenated(tuple(choice))
    if isinstance(choice, str) and choice == "scale":
        for_dense = Ranges() if by_distance else ZScores()
        return for_dense if dense else Counts()
    if isinstance(choice, str) and choice in PREPROCESSINGS:
        return PREPROCESSINGS[choice]()
    raise KeslerError(
        f"preprocessing={choice!r} is not known: choose one of {', '.join(NAMES)}, "
        "None, an object of kesler.preprocessing, or a list of blocks of features, such as "
        '["z-scores", "bins"]'
    )


def block_of(choice: Any) -> Preprocessing:
    """Return the block of features of a name, or itself.

    Raises
    ------
    KeslerError
        If it cannot be a block beside others.
    """
    part = None if isinstance(choice, Mapping) else resolve_preprocessing(choice, dense=True)
    if part is None or not is_block(part):
        raise KeslerError(
            f"preprocessing=[{choice!r}]: a list holds blocks of features: z-scores, bins, "
            "random-fourier, pairs, or such objects of kesler.preprocessing"
        )
    return part

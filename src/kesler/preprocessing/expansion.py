"""Expansions: preprocessing that replaces the features of a row by others, usually more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kesler.codes import Method
from kesler.errors import KeslerError
from kesler.preprocessing.method import Preprocessing
from kesler.preprocessing.z_scores import ZScores


@dataclass(frozen=True)
class Expansion(Preprocessing):
    """Preprocessing that replaces the features of a row by others, with statistics of its inputs.

    Every expansion keeps the mean and the deviation of each input, over the rows so far and the row
    itself. A learner expands rows before it adds the feature of the intercept. For dense rows only.
    An input that is missing (NaN) has the z-score 0 and is in no bin.
    """

    method = Method.NONE
    zero_at_zero = False
    takes_missing = True
    parameters = ()
    n_statistics = 0

    @property
    def blocks(self) -> tuple[Preprocessing, ...]:
        """The blocks of features, one after another."""
        return (self,)

    def width(self, n_inputs: int) -> int:
        """Return the number of features for this many inputs."""
        raise NotImplementedError

    def block(self, kind: type[Any]) -> Any:
        """Return the block of a class, None if there is none."""
        return next((each for each in self.blocks if isinstance(each, kind)), None)


@dataclass(frozen=True)
class Concatenated(Expansion):
    r"""Several blocks of features of the same inputs, one after another.

    .. math:: x' = (\phi_1(x), \dots, \phi_m(x))

    A list given as `preprocessing` stands for it.

    Parameters
    ----------
    blocks : list of ZScores and expansions
        At most one of each class. Names stand for objects.

    Raises
    ------
    KeslerError
        If the list is empty, or holds anything else or two of a class.

    Notes
    -----
    Costs the sum of the costs of the blocks. Statistics of inputs are stored once.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.preprocessing import Bins, RandomFourier
    >>> model = OnlineClassifier("multi", update="softmax", preprocessing=[Bins(4), "z-scores"])
    >>> model.fit([[1.0], [2.0], [3.0], [4.0]], ["a", "b", "b", "a"]).preprocessing_
    Concatenated(blocks=(Bins(n_bins=4, most_features=640), ZScores(clip=4.0)))
    """

    blocks: tuple[Preprocessing, ...] = ()

    def __post_init__(self) -> None:
        from kesler.preprocessing import block_of

        given: Any = self.blocks
        if not isinstance(given, Iterable) or isinstance(given, (str, Mapping)):
            given = [given]
        blocks = tuple(block_of(each) for each in given)
        kinds = [type(block).__name__ for block in blocks]
        if not blocks or len(set(kinds)) < len(kinds):
            raise KeslerError(
                f"preprocessing={list(blocks)!r}: give at least one block of features, and at most "
                "one of each class"
            )
        object.__setattr__(self, "blocks", blocks)

    def width(self, n_inputs: int) -> int:
        """Return the number of features of all blocks."""
        return sum(width_of(block, n_inputs) for block in self.blocks)


def width_of(block: Preprocessing, n_inputs: int) -> int:
    """Return the number of features of a block for this many inputs."""
    return block.width(n_inputs) if isinstance(block, Expansion) else n_inputs


def is_block(part: Any) -> bool:
    """Return whether a part can be a block of features beside others."""
    return isinstance(part, ZScores) or (
        isinstance(part, Expansion) and not isinstance(part, Concatenated)
    )

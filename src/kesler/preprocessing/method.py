"""The base classes of preprocessing: methods that change values, and expansions into features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

"""Numbers of the methods, as in `kesler.compiled.trial.preprocessing`."""


def in_mean_square(weights: tuple[float, ...]) -> tuple[float, ...]:
    """Return weights, not all of them 0, in units of the root of their mean square.

    Examples
    --------
    >>> in_mean_square((7.0, 1.0))
    (1.4, 0.2)
    """
    root = math.sqrt(sum(each * each for each in weights) / len(weights))
    return tuple(each / root for each in weights)


@dataclass(frozen=True)
class Preprocessing:
    """The preprocessing of a row before its trial, part of the learner and of its model file.

    Attributes
    ----------
    method : the number of the method in compiled code.
    zero_at_zero : whether a feature with value 0 remains 0, so that zeros of sparse rows may be
        omitted.
    takes_missing : whether features may be missing (NaN).
    """

    method: ClassVar[int]
    zero_at_zero: ClassVar[bool]
    takes_missing: ClassVar[bool] = False

    @property
    def statistics_of_classes(self) -> frozenset[str]:
        """The statistics of classes that it reads, as feature maps name them."""
        return frozenset()

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers passed to the compiled loops."""
        raise NotImplementedError

    @property
    def n_statistics(self) -> int:
        """Number of statistics that are stored for each feature."""
        raise NotImplementedError

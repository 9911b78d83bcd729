"""Pairs: the bins of two inputs together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kesler.errors import keep_integer
from kesler.preprocessing.expansion import Expansion


@dataclass(frozen=True)
class Pairs(Expansion):
    r"""One feature for each pair of bins of two inputs: products of one-hot columns.

    .. math:: x'_{ij,bc} = 1[x_i \in \text{bin } b] \, 1[x_j \in \text{bin } c], \quad i < j

    with the bins of :class:`Bins`. A score is then a sum of any functions of two inputs, such as
    exclusive or.

    Parameters
    ----------
    n_bins : int, 2 or more, default 4
        Number of bins of each input. Larger values give finer cells, with more weights to learn.
    n_pairs : int, 1 or more, default 400
        The maximum number of pairs of inputs. If there are more, these are chosen at random. Larger
        values cost more.
    seed : int, 0 or more, default 0
        The seed of this choice.

    Raises
    ------
    KeslerError
        If a parameter is out of its range; on first use, for sparse rows.

    Notes
    -----
    Costs one active feature per row and pair. The quantiles are computed as for :class:`Bins`.

    References
    ----------
    Lou, Caruana, Gehrke and Hooker (2013), "Accurate intelligible models with pairwise
    interactions".

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.preprocessing import Pairs
    >>> X, y = [[0, 0], [1, 1], [0, 1], [1, 0]] * 20, ["even", "even", "odd", "odd"] * 20
    >>> model = OnlineClassifier("multi", update="pa1", preprocessing=Pairs())
    >>> model.fit(X, y).predict(X[:4]).tolist()
    ['even', 'even', 'odd', 'odd']
    """

    n_bins: int = 4
    n_pairs: int = 400
    seed: int = 0

    def __post_init__(self) -> None:
        keep_integer(self, "n_bins", 2)
        keep_integer(self, "n_pairs", 1)
        keep_integer(self, "seed", 0)

    def pairs_of(self, n_inputs: int) -> npt.NDArray[np.int64]:
        """Return the inputs of each pair, of shape (n_pairs, 2)."""
        total = n_inputs * (n_inputs - 1) // 2
        n_pairs = min(self.n_pairs, total)
        random, numbers = np.random.RandomState(self.seed % 2**32), np.arange(n_pairs)
        if n_pairs < total <= 4 * n_pairs:
            numbers = random.permutation(total)[:n_pairs]
        elif n_pairs < total:  # so many numbers without a list of all
            numbers = np.unique(random.randint(0, total, 4 * n_pairs, dtype=np.int64))
            numbers = random.permutation(numbers)[:n_pairs]
        # Pairs are numbered by their first input.
        firsts = np.arange(n_inputs)
        starts = firsts * (2 * n_inputs - firsts - 1) // 2
        first = np.searchsorted(starts, np.sort(numbers), side="right") - 1
        second = first + 1 + np.sort(numbers) - starts[first]
        pairs: npt.NDArray[np.int64] = np.stack([first, second], axis=1).astype(np.int64)
        return pairs

    def width(self, n_inputs: int) -> int:
        """Return the number of features for this many inputs."""
        n_pairs = min(self.n_pairs, n_inputs * (n_inputs - 1) // 2)
        return n_pairs * self.n_bins * self.n_bins

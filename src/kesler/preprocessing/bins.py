"""Bins: the interval between quantiles that each input falls into."""

from __future__ import annotations

from dataclasses import dataclass

from kesler.errors import keep_integer
from kesler.preprocessing.expansion import Expansion


@dataclass(frozen=True)
class Bins(Expansion):
    r"""One feature for each interval between running quantiles of an input.

    .. math:: x'_{i,b} = 1[q_{i,b-1} < x_i \le q_{i,b}], \quad b = 1, \dots, B, \quad
        q_{i,0} = -\infty, \; q_{i,B} = \infty

    with the quantiles of the earlier rows. A score is then a step function of each input instead of
    a multiple of it. If an input has at most B values, each value has a bin.

    Parameters
    ----------
    n_bins : int, 2 or more, default 10
        Number of bins of each input, B. Larger values give finer steps, with more weights to learn.
    most_features : int, 0 or more, default 640
        The maximum number of features: rows of many inputs have fewer bins, and none if there would
        be fewer than two for each input. Larger values cost more memory.

    Raises
    ------
    KeslerError
        If a parameter is out of its range; on first use, for sparse rows.

    Notes
    -----
    The quantiles are those of a random sample of 512 earlier rows (a reservoir, Vitter 1985; with
    `half_life`, recent rows are more likely to be in it, as Aggarwal 2006 has it), recomputed
    whenever the number of rows has grown by half, so that the meaning of a bin rarely changes.
    Costs a search among the bins per row and input: as many active features as inputs, whatever B.
    Memory: 2 kB and 4 B bytes per input. With weights of rows, a row of any weight counts once.

    References
    ----------
    Vitter (1985), "Random sampling with a reservoir", Algorithm R; Aggarwal (2006), "On biased
    reservoir sampling in the presence of stream evolution"; Dougherty, Kohavi and Sahami (1995),
    equal-frequency intervals.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.preprocessing import Bins
    >>> X, y = [[0.0], [5.0], [9.0]] * 20, ["out", "in", "out"] * 20
    >>> model = OnlineClassifier("multi", update="pa1", preprocessing=Bins(4)).fit(X, y)
    >>> model.predict([[1.0], [5.0], [8.0]]).tolist()
    ['out', 'in', 'out']
    """

    n_bins: int = 10
    most_features: int = 640

    def __post_init__(self) -> None:
        keep_integer(self, "n_bins", 2)
        keep_integer(self, "most_features", 0)

    def bins_of(self, n_inputs: int) -> int:
        """Return the number of bins of each of this many inputs, 0 for none."""
        n_bins = min(self.n_bins, self.most_features // max(1, n_inputs))
        return n_bins if n_bins > 1 else 0

    def width(self, n_inputs: int) -> int:
        """Return the number of features for this many inputs."""
        return n_inputs * self.bins_of(n_inputs)

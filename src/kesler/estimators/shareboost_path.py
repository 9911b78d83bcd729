"""The path of a ShareBoost fit: its rounds, the rows put aside, and the bar that shows it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.dictionaries import Dictionary
from kesler.solvers.greedy import Round

Floats = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


class Path(list[Round]):
    """The rounds of a fit, in their order.

    Examples
    --------
    >>> from kesler.estimators.shareboost_path import Path
    >>> from kesler.solvers.greedy import Round
    >>> path = Path([Round(3, 1, 0.9, 0.4, 0.01, None, 5), Round(0, 2, 0.7, 0.3, 0.02, None, 6)])
    >>> path.table()["loss"].tolist()
    [0.9, 0.7]
    """

    def table(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of a table by name, as `pandas.DataFrame` takes them.

        A validation error that was not measured is NaN.
        """
        rows = [asdict(each) for each in self]
        table = {name: np.array([row[name] for row in rows]) for name in Round.__annotations__}
        return table | {"validation_error": table["validation_error"].astype(np.float64)}

    @property
    def best(self) -> int:
        """The number of rounds of least validation error, the fewest among equals."""
        return 1 + int(np.argmin(self.table()["validation_error"]))


@dataclass(eq=False)
class PutAside:
    """Rows on which every round is judged.

    Parameters
    ----------
    dictionary : Dictionary
        Fitted.
    X : validated rows.
    codes : int64 array of shape (n_rows,)
        Their classes by number, -1 for one that the training rows have not.
    """

    dictionary: Dictionary
    X: Any
    codes: Ints
    _columns: list[Floats] = field(default_factory=list)

    def error(self, candidates: Ints, weights: Floats) -> float:
        """Return the share of mistakes after some more candidates were chosen."""
        self._columns.append(self.dictionary.columns(self.X, candidates))
        scores = np.hstack(self._columns) @ weights[1:] + weights[0]
        return float((scores.argmax(axis=1) != self.codes).mean())


def shown(rounds: Iterable[Round], total: int, *, verbose: bool) -> Iterator[Round]:
    """Yield rounds, beside a bar where one was asked for and there is a terminal to show it."""
    if not (verbose and sys.stderr.isatty()):
        yield from rounds
        return
    if find_spec("tqdm") is None:
        warnings.warn(
            "verbose=True shows a bar by the library tqdm: run pip install tqdm, or leave it out",
            stacklevel=4,
        )
        yield from rounds
        return
    with import_module("tqdm").tqdm(total=total, unit="feature") as bar:
        for each in rounds:
            bar.set_postfix(loss=f"{each.loss:.4g}")
            bar.update()
            yield each

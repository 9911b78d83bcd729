"""Rows of a source that are left out: bad ones, and those without a label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kesler.readers.reader import BadRow

MOST_CLASSES = 5
"""Classes of bad rows that are named."""
MOST_SHOWN = 3
"""Cells of a column that are shown."""


@dataclass(slots=True)
class Losses:
    """The rows that are left out so far.

    Attributes
    ----------
    n_bad, n_unlabelled : int
        Numbers of bad rows, and of rows without a label where labels are required.
    first_bad, first_unlabelled : str
        The place of the first of them, and what was wrong.
    of_class : Counter
        Numbers of bad rows of each class, of those whose label is known.
    n_misfits, misfits : Counter, dict of str to list of str
        Numbers of cells that count as missing since they are no numbers, by columns of tables of
        numbers, and the first of them.
    """

    n_bad: int = 0
    n_unlabelled: int = 0
    first_bad: str = ""
    first_unlabelled: str = ""
    of_class: Counter[str] = field(default_factory=Counter)
    n_misfits: Counter[str] = field(default_factory=Counter)
    misfits: dict[str, list[str]] = field(default_factory=dict)

    def add_bad(self, place: str, fault: BadRow) -> None:
        """Count a bad row."""
        self.n_bad += 1
        self.first_bad = self.first_bad or f"{place}: {fault}"
        if fault.label is not None:
            self.of_class[str(fault.label)] += 1

    def add_misfits(self, place: str, misfits: Mapping[str, str]) -> None:
        """Count the cells of a row that are no numbers."""
        for column, cell in misfits.items():
            self.n_misfits[column] += 1
            shown = self.misfits.setdefault(column, [])
            if len(shown) < MOST_SHOWN:
                shown.append(f"{cell} ({place})")

    def add_unlabelled(self, place: str, fault: BadRow) -> None:
        """Count a row without a label."""
        self.n_unlabelled += 1
        self.first_unlabelled = self.first_unlabelled or f"{place}: {fault}"

    @property
    def bad_by_class(self) -> str:
        """The numbers of bad rows of each class, the largest first.

        Examples
        --------
        >>> losses = Losses()
        >>> for label in ["Bonn", "Köln", "Köln", None]:
        ...     losses.add_bad("line 3", BadRow("it is not CSV", label))
        >>> losses.bad_by_class
        'Köln 2, Bonn 1, of unknown class 1'
        """
        named = [f"{label} {n:,}" for label, n in self.of_class.most_common(MOST_CLASSES)]
        n_others = len(self.of_class) - len(named)
        n_unknown = self.n_bad - self.of_class.total()
        more = [f"{n_others:,} other classes"] if n_others else []
        return ", ".join(named + more + ([f"of unknown class {n_unknown:,}"] if n_unknown else []))

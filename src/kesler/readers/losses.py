"""Rows of a source that are left out: bad ones, and those without a label."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kesler.readers.reader import BadRow

MOST_CLASSES = 5
"""Classes of bad rows that are named."""


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
    """

    n_bad: int = 0
    n_unlabelled: int = 0
    first_bad: str = ""
    first_unlabelled: str = ""
    of_class: Counter[str] = field(default_factory=Counter)

    def add_bad(self, place: str, fault: BadRow) -> None:
        """Count a bad row."""
        self.n_bad += 1
        self.first_bad = self.first_bad or f"{place}: {fault}"
        if fault.label is not None:
            self.of_class[str(fault.label)] += 1

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

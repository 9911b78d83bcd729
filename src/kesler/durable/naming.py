"""The current answers of rows: what relabels, renames and merges have made of those given."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

Labels = Any  # a label, or a list of labels


class Naming:
    """The current answers of rows.

    Parameters
    ----------
    relabels : the last relabel of each row that has one, by the number of the row: its own number
        and its answer.
    renames : renames and merges in order: number, old label, new label.

    Examples
    --------
    >>> naming = Naming({2: (5, "a")}, [(4, "a", "b"), (6, "b", "c")])
    >>> naming.current(1, "a"), naming.current(2, "a"), naming.current(7, "a")
    ('c', 'a', 'a')
    """

    def __init__(
        self,
        relabels: Mapping[int, tuple[int, Labels]],
        renames: Iterable[tuple[int, Any, Any]],
    ) -> None:
        self._relabels = dict(relabels)
        self._renames = list(renames)
        self._numbers = [number for number, _, _ in self._renames]
        self._found: dict[tuple[type, Any, int], Any] = {}

    def renamed(self, number: int, old: Any, new: Any) -> Naming:
        """Return the answers after one more rename or merge."""
        return Naming(self._relabels, [*self._renames, (number, old, new)])

    def current(self, number: int, answer: Labels) -> Labels:
        """Return the current answer of a row, given its number and its first answer."""
        if self._relabels:
            number, answer = self._relabels.get(number, (number, answer))
        first = bisect_right(self._numbers, number)
        if first == len(self._numbers):
            return answer
        if isinstance(answer, list):
            return list(dict.fromkeys(self._renamed(label, first) for label in answer))
        return self._renamed(answer, first)

    def _renamed(self, label: Any, first: int) -> Any:
        """Return a label after the renames from one on."""
        key = type(label), label, first
        if key not in self._found:
            found = label
            for _, old, new in self._renames[first:]:
                if found == old:
                    found = new
            self._found[key] = found
        return self._found[key]


def labels_of(answer: Labels) -> list[Any]:
    """Return the labels of an answer, as a list."""
    return answer if isinstance(answer, list) else [answer]


class Coding:
    """Numbers of labels in the order of their first appearance."""

    def __init__(self) -> None:
        self.codes: dict[Any, int] = {}

    def of(self, answer: Labels) -> Any:
        """Return an answer with numbers in place of labels; new labels are added."""
        codes = self.codes
        if isinstance(answer, list):
            return [codes.setdefault(label, len(codes)) for label in answer]
        return codes.setdefault(answer, len(codes))


def first_difference(
    rows: Iterable[tuple[int, Labels]], old: Naming, new: Naming, *, by_name: bool
) -> int | None:
    """Return the number of the first row that a learner meets with another answer; None if none.

    Parameters
    ----------
    rows : the numbers of the rows and their first answers, in order.
    old, new : before and after a change.
    by_name : whether learning depends on the names of classes. Otherwise answers are the same if
        they are the same classes by the order of appearance, whatever their names are.

    Notes
    -----
    O(1) per row, about a microsecond.

    Examples
    --------
    >>> rows, old = [(1, "a"), (2, "b")], Naming({}, [])
    >>> first_difference(rows, old, Naming({}, [(3, "b", "c")]), by_name=False)
    >>> first_difference(rows, old, Naming({}, [(3, "b", "a")]), by_name=False)
    2
    """
    before, after = Coding(), Coding()
    for number, answer in rows:
        was, becomes = old.current(number, answer), new.current(number, answer)
        if was != becomes if by_name else before.of(was) != after.of(becomes):
            return number
    return None
